//! Several virtual machines on one datastore: each guest runs all jobs of a set on its own share of the drive.
//!
//! A guest has a share of equal size, the threads of its jobs with their own queues, and its own random streams. The
//! guests start together and share the drive and the cores of the host. Not modelled: shares and limits of a hypervisor
//! (Storage I/O Control), the memory of guests, and virtual disks that overlap or grow.

use text::quantity::decimal;

use crate::job::{Extent, Job};

/// Unit of shares in bytes.
const UNIT: u64 = 1 << 20;

/// Returns the jobs of this number of guests on a drive of `capacity` bytes: for each job, one for each guest in order.
/// Offsets and sizes count from the beginning of a guest's share, percentages are those of the share.
///
/// # Errors
/// Each job that cannot run in a guest, with the reason.
pub fn of_guests(jobs: &[Job], guests: u32, capacity: u64) -> Result<Vec<Job>, Vec<String>> {
    let share = capacity / u64::from(guests.max(1)) / UNIT * UNIT;
    let mut all = Vec::new();
    let mut problems = Vec::new();
    for job in jobs {
        match place(job, share) {
            Ok((offset, size, increment)) => {
                all.extend((0..guests).map(|guest| Job {
                    name: format!("guest{}/{}", guest + 1, job.name),
                    guest: Some(guest + 1),
                    // The guests of a job start together, and each reports on its own.
                    stonewall: job.stonewall && guest == 0,
                    new_group: job.new_group || guest > 0,
                    offset: Extent::Bytes(offset + u64::from(guest) * share),
                    offset_increment: Extent::Bytes(increment),
                    size: Some(Extent::Bytes(size)),
                    ..job.clone()
                }));
            }
            Err(why) => problems.push(format!("job {}: {why}", job.name)),
        }
    }
    match problems.is_empty() {
        true => Ok(all),
        false => Err(problems),
    }
}

/// Returns the offset, size and offset increment of a job in a share of this size.
fn place(job: &Job, share: u64) -> Result<(u64, u64, u64), String> {
    if !job.direct || job.filesystem.is_some() {
        return Err(
            "a guest's I/O is direct, without a page cache or file system of the host: set direct=1"
                .into(),
        );
    }
    if job.iolog.is_some() || job.records.is_some() {
        return Err("recorded I/Os have addresses of the whole drive: remove read_iolog".into());
    }
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => (share as f64 * percent / 100.0) as u64 / UNIT * UNIT,
    };
    let (offset, increment) = (bytes(job.offset), bytes(job.offset_increment));
    let last = increment.saturating_mul(u64::from(job.numjobs.saturating_sub(1)));
    let before = offset.saturating_add(last);
    let size = job.size.map_or(share.saturating_sub(before), bytes);
    if size == 0 || before.saturating_add(size) > share {
        return Err(format!(
            "its range ends at {}, and a guest's share is {}: use fewer guests or a smaller size",
            decimal(before.saturating_add(size)),
            decimal(share)
        ));
    }
    Ok((offset, size, increment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(size: Option<Extent>) -> Job {
        Job {
            name: "a".into(),
            size,
            direct: true,
            ..Job::default()
        }
    }

    #[test]
    fn each_guest_has_a_share_of_its_own() {
        let other = Job {
            name: "b".into(),
            stonewall: true,
            ..job(Some(Extent::Bytes(UNIT)))
        };
        let jobs = [job(None), other];
        let all = of_guests(&jobs, 3, 32 * UNIT).expect("they fit");
        let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "guest1/a", "guest2/a", "guest3/a", "guest1/b", "guest2/b", "guest3/b"
            ]
        );
        let ranges: Vec<_> = all.iter().map(|it| (it.offset, it.size)).collect();
        let at = |offset: u64, size: u64| {
            (
                Extent::Bytes(offset * UNIT),
                Some(Extent::Bytes(size * UNIT)),
            )
        };
        assert_eq!(
            ranges,
            [
                at(0, 10),
                at(10, 10),
                at(20, 10),
                at(0, 1),
                at(10, 1),
                at(20, 1)
            ]
        );
        let walls: Vec<bool> = all.iter().map(|it| it.stonewall).collect();
        assert_eq!(walls, [false, false, false, true, false, false]);
        let half = of_guests(&[job(Some(Extent::Percent(50.0)))], 2, 20 * UNIT);
        assert_eq!(
            half.expect("it fits")[1].size,
            Some(Extent::Bytes(5 * UNIT))
        );
    }

    #[test]
    fn what_does_not_fit_a_guest_is_refused() {
        let large = [job(Some(Extent::Bytes(11 * UNIT)))];
        let why = of_guests(&large, 3, 32 * UNIT).expect_err("too large");
        assert!(why[0].contains("a guest's share is 10.49 MB"), "{why:?}");
        let buffered = Job {
            direct: false,
            ..job(None)
        };
        let why = of_guests(&[buffered], 3, 32 * UNIT).expect_err("buffered");
        assert!(why[0].contains("direct=1"), "{why:?}");
    }
}
