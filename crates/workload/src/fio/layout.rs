//! Layout of job files on the drive.
//!
//! A device (`filename=/dev/nvme0n1`) is the drive. Regular files are placed one after another from the start of the
//! drive, as on a fresh file system. In a job without `filename`, each copy has its own file, so copies do not access
//! each other's blocks. Jobs that name the same file share it. A file without a size is the whole drive. Not
//! modelled: the file system's own I/O, fragmentation, several files per job.

use crate::job::{Extent, Job};
use crate::settings::smallest_block;

use super::files::is_device;
use super::settings::Settings;

/// Alignment of the start of a file.
const ALIGN: u64 = 4096;

/// Assigns a range to every job; returns remarks for the user.
pub(super) fn lay_out(jobs: &mut [(Settings, Job)]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut shared: Vec<(String, u64)> = shared_lengths(jobs);
    let mut starts: Vec<(String, u64)> = Vec::new();
    let mut free = 0;
    for (name, length) in shared.drain(..) {
        starts.push((name, free));
        free += length;
    }
    for (settings, job) in jobs {
        if let Some(names) = &settings.filename {
            if names.replace("\\:", "").contains(':') && !is_device(names) {
                notes.push(format!(
                    "filename={names}: several files are treated as one range of the drive"
                ));
            } else if is_device(names) && names.matches("/dev/").count() > 1 {
                notes.push(format!(
                    "filename={names}: several devices are treated as one drive"
                ));
            }
        }
        if let (Some(Extent::Bytes(size)), Some(file)) = (job.size, job.filesize)
            && size > file
            && !settings.is_on_device()
        {
            notes.push(format!(
                "job {}: size {size} goes beyond the filesize of {file} B and ends there, as in fio",
                job.name
            ));
        }
        let Some(length) = length_of(settings, job) else {
            continue;
        };
        let (start, step) = match &settings.filename {
            Some(name) => {
                let start = starts
                    .iter()
                    .find(|(known, _)| known == name)
                    .map_or(0, |&(_, start)| start);
                (start, 0)
            }
            None => {
                let start = free;
                free = free.saturating_add(length.saturating_mul(job.numjobs.into()));
                (start, length)
            }
        };
        if start == 0 && step == 0 {
            continue;
        }
        limit_by_file(job);
        let offset = place_of(job, job.offset, length);
        job.offset = Extent::Bytes(start.saturating_add(offset));
        if job.numjobs > 1 {
            let increment = place_of(job, job.offset_increment, length);
            job.offset_increment = Extent::Bytes(step.saturating_add(increment));
        }
    }
    notes
}

/// Replaces `filesize` by `size`, because a file that starts elsewhere does not end at `filesize`. A size that goes
/// beyond the file ends with it, as in fio.
fn limit_by_file(job: &mut Job) {
    let Some(file) = job.filesize else { return };
    let rest = file.saturating_sub(bytes_of(job.offset, file));
    let size = job.size.map_or(rest, |size| bytes_of(size, file));
    if rest > 0 {
        job.size = Some(Extent::Bytes(size.min(rest)));
        job.filesize = None;
    }
}

/// Returns the lengths of named files, in the order of their appearance: the longest length that a job gives.
fn shared_lengths(jobs: &[(Settings, Job)]) -> Vec<(String, u64)> {
    let mut shared: Vec<(String, u64)> = Vec::new();
    for (settings, job) in jobs {
        let (Some(name), Some(length)) = (&settings.filename, length_of(settings, job)) else {
            continue;
        };
        match shared.iter_mut().find(|(known, _)| known == name) {
            Some((_, longest)) => *longest = (*longest).max(length),
            None => shared.push((name.clone(), length)),
        }
    }
    shared
}

/// Returns the length of a job's file in bytes; `None` if the job uses the whole drive.
fn length_of(settings: &Settings, job: &Job) -> Option<u64> {
    if settings.is_on_device() || job.iolog.is_some() {
        return None;
    }
    let Some(Extent::Bytes(size)) = job.size else {
        return job.filesize.map(|length| length.next_multiple_of(ALIGN));
    };
    let offset = match job.offset {
        Extent::Bytes(offset) => offset,
        Extent::Percent(_) => 0,
    };
    let increments = match job.offset_increment {
        Extent::Bytes(step) if settings.filename.is_some() => {
            step.saturating_mul(u64::from(job.numjobs) - 1)
        }
        _ => 0,
    };
    let length = size.saturating_add(offset).saturating_add(increments);
    let length = job.filesize.unwrap_or(length);
    length.checked_next_multiple_of(ALIGN)
}

/// Returns the offset of a part of a file. A percentage is rounded up to a multiple of the job's smallest block, as
/// in fio.
fn place_of(job: &Job, extent: Extent, length: u64) -> u64 {
    let at = bytes_of(extent, length);
    match (extent, smallest_block(job)) {
        (Extent::Percent(_), Some(block)) => at.next_multiple_of(u64::from(block.max(1))),
        _ => at,
    }
}

fn bytes_of(extent: Extent, length: u64) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => (percent / 100.0 * length as f64) as u64,
    }
}
