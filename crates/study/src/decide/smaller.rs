//! Smaller drives in the place of whole ones, for runs that write little.
//!
//! A drive with a pSLC cache tidies up when it is idle: it moves valid data until it has enough erased blocks, once. In
//! a run at a low arrival rate this is nearly all that the drive does, and it is most of the cost of the simulation.
//! `Medium::shrunk` gives a drive with the same behaviour and fewer blocks, which tidies up in a shorter time. Wear of
//! such runs is left out anyway (`super::few_writes`).
//!
//! Not covered: pools, drives without a pSLC cache, jobs with addresses in bytes, and runs that write more than a share
//! of the smaller drive. The share is a choice of this project, not from a source.

use catalogue::DriveSheet;
use model::media::Medium;
use tier::DriveConfig;
use workload::job::{Distribution, Extent, Job};

use super::fill;
use super::rate;

/// Maximum share of the smaller drive that a run may write.
const WRITTEN: f64 = 0.1;
/// Maximum share of the smaller drive that jobs may read which end when their range is read.
const READ: f64 = 0.5;

/// Checks whether the jobs' addresses scale with the drive.
pub(super) fn is_relative(jobs: &[Job]) -> bool {
    let scales = |extent: &Extent| !matches!(extent, Extent::Bytes(bytes) if *bytes > 0);
    jobs.iter().all(|job| {
        let size = job.size.as_ref().is_none_or(scales);
        let offsets = scales(&job.offset) && scales(&job.offset_increment);
        let absolute = |it: &Distribution| matches!(it, Distribution::ZonedAbsolute(_));
        size && offsets
            && job.strided.is_none()
            && job.zoned.is_none()
            && !job.distribution.iter().any(absolute)
            && job.io_size.is_none()
            && job.filesize.is_none()
            && job.number_ios.is_none()
    })
}

/// Returns the drive with fewer blocks and the same behaviour.
pub(super) fn shrunk(drive: &DriveSheet) -> DriveSheet {
    let mut small = drive.clone();
    small.config = drive.config.shrunk(fill::SMALL);
    small.capacity = small.config.capacity_bytes();
    small
}

/// Returns the smaller drive for jobs with an assigned rate that run for this time; `None` if the whole one must run.
pub(super) fn for_few_writes(drive: &DriveSheet, jobs: &[Job], seconds: f64) -> Option<DriveSheet> {
    let DriveConfig::Nand(config) = &drive.config else {
        return None;
    };
    config.slc.as_ref()?;
    let written = rate::arrival(jobs, 1)?.bytes;
    let ending = jobs.iter().filter(|job| !job.time_based);
    let read = rate::arrival(ending, 0)?.bytes;
    let small = fill::SMALL as f64;
    let fits = written * seconds <= WRITTEN * small && read * seconds <= READ * small;
    (fits && is_relative(jobs)).then(|| shrunk(drive))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::super::rate::OfferedRate;
    use super::super::work::Load;
    use super::*;
    use crate::review::Workload;

    #[test]
    fn only_runs_that_write_little_have_a_smaller_drive() {
        let has = |drive: &str, load: &str, iops: f64, seconds: f64| {
            let text = named::text(load).expect("a named load").to_owned();
            let load = Load::of_text(load, text).expect("fio's words");
            let load = load.at_rate(OfferedRate::Iops(iops)).expect("a rate");
            let Workload::Jobs(jobs) = &load.user_workload().workload else {
                panic!("jobs")
            };
            let sheet = catalogue::drive(drive).expect("built in");
            for_few_writes(&sheet, jobs, seconds).map(|small| small.capacity)
        };
        let small = has("990pro-2000", "oltp", 5.0, 13_200.0).expect("few writes");
        assert!(small < 20 << 30, "{small}");
        // A third of the I/Os are writes of 8 KiB: 1.7 GB are reached after 700,000 I/Os.
        assert_eq!(has("990pro-2000", "oltp", 500.0, 13_200.0), None);
        for drive in ["p4800x-375", "p3700-1600", "mirror(2*990pro-2000)"] {
            assert_eq!(has(drive, "oltp", 5.0, 13_200.0), None, "{drive}");
        }
        // 12 reads of 128 KiB a second: the smaller drive is read once in 3 hours.
        let reads = |text: &str| {
            let load = Load::of_text("a job", format!("[a]\nrw=randread\nbs=128k\n{text}"));
            let load = load.expect("fio's words").at_rate(OfferedRate::Iops(12.0));
            let load = load.expect("a rate");
            let Workload::Jobs(jobs) = &load.user_workload().workload else {
                panic!("jobs")
            };
            let sheet = catalogue::drive("990pro-2000").expect("built in");
            for_few_writes(&sheet, jobs, 13_200.0).is_some()
        };
        assert!(!reads(""));
        assert!(reads("time_based=1\nruntime=20000\n"));
        let zones = "time_based=1\nruntime=20000\nrandom_distribution=zoned_abs:60/20g:40/40g\n";
        assert!(!reads(zones));
        let strided = "time_based=1\nruntime=20000\nzonemode=strided\nzonesize=1g\nzonerange=2g\n";
        assert!(!reads(strided));
        // The log's range is in bytes.
        assert_eq!(has("990pro-2000", "wal", 5.0, 100.0), None);
    }
}
