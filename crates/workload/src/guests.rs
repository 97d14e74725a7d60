//! Several virtual machines on one datastore: each guest runs all jobs of a set on its own share of the drive.
//!
//! A guest has a share of equal size, the threads of its jobs with their own queues, and its own random streams. The
//! guests start together and share the drive and the cores of the host. Not modelled: shares and limits of a hypervisor
//! (Storage I/O Control), the memory of guests, and virtual disks that overlap or grow.

use text::quantity::decimal;

use crate::job::{Extent, Job};

/// Unit of shares in bytes.
const UNIT: u64 = 1 << 20;

/// Largest number of guests.
pub const MAX_GUESTS: u32 = 256;

/// Returns the jobs of this number of guests on a drive of `capacity` bytes: for each job, one for each guest in order.
/// Offsets and sizes count from the beginning of a guest's share, percentages are those of the share.
///
/// # Errors
/// A number that is 0 or above [`MAX_GUESTS`], or each job that cannot run in a guest, with the reason.
pub fn of_guests(jobs: &[Job], guests: u32, capacity: u64) -> Result<Vec<Job>, Vec<String>> {
    if !(1..=MAX_GUESTS).contains(&guests) {
        return Err(vec![format!("{guests} is not in 1 to {MAX_GUESTS}")]);
    }
    let share = capacity / u64::from(guests) / UNIT * UNIT;
    let mut all = Vec::new();
    let mut problems = Vec::new();
    for job in jobs {
        match place(job, share) {
            Ok(range) => {
                all.extend((0..guests).map(|guest| Job {
                    name: format!("guest{}/{}", guest + 1, job.name),
                    guest: Some(guest + 1),
                    // The guests of a job start together, and each reports on its own.
                    stonewall: job.stonewall && guest == 0,
                    new_group: job.new_group || guest > 0,
                    offset: Extent::Bytes(range.offset + u64::from(guest) * share),
                    offset_increment: Extent::Bytes(range.increment),
                    size: Some(Extent::Bytes(range.size)),
                    io_size: range.io_size.map(Extent::Bytes),
                    // It counts from the start of the drive, and the size is within it already.
                    filesize: None,
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

/// The part of a share that a job uses, in bytes.
struct GuestRange {
    offset: u64,
    size: u64,
    increment: u64,
    io_size: Option<u64>,
}

/// Returns the range of a job in a share of this size.
fn place(job: &Job, share: u64) -> Result<GuestRange, String> {
    if !job.direct || job.filesystem.is_some() {
        return Err(
            "a guest's I/O is direct, without a page cache or file system of the host: set direct=1"
                .into(),
        );
    }
    if job.iolog.is_some() || job.records.is_some() {
        return Err("recorded I/Os have addresses of the whole drive: remove read_iolog".into());
    }
    if job.zoned.is_some() {
        return Err(
            "zones begin at multiples of zonesize on the whole drive: remove zonemode=zbd".into(),
        );
    }
    if job.strided.is_some() {
        return Err("its zones continue to the end of the drive: remove zonemode=strided".into());
    }
    let of = |all: u64| {
        move |extent: Extent| match extent {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(percent) => (all as f64 * percent / 100.0) as u64 / UNIT * UNIT,
        }
    };
    let (offset, increment) = (of(share)(job.offset), of(share)(job.offset_increment));
    let last = increment.saturating_mul(u64::from(job.numjobs.saturating_sub(1)));
    let before = offset.saturating_add(last);
    let file = job.filesize.map_or(share, |bytes| match job.on_device {
        true => bytes.min(share),
        false => bytes,
    });
    let left = file.saturating_sub(before);
    let size = match job.size {
        Some(size @ Extent::Percent(_)) => of(file)(size).min(left),
        Some(Extent::Bytes(bytes)) if job.filesize.is_some() => bytes.min(left),
        Some(Extent::Bytes(bytes)) => bytes,
        None => left,
    };
    if size == 0 || before.saturating_add(size) > share {
        return Err(format!(
            "its range ends at {}, and a guest's share is {}: use fewer guests, or a smaller size, filesize or offset",
            decimal(before.saturating_add(size)),
            decimal(share)
        ));
    }
    Ok(GuestRange {
        offset,
        size,
        increment,
        io_size: job.io_size.map(of(share)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided::StridedZones;

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

    #[test]
    fn percentages_and_files_are_those_of_the_share() {
        let io_size = Some(Extent::Percent(10.0));
        let all = of_guests(
            &[Job {
                io_size,
                ..job(None)
            }],
            2,
            40 * UNIT,
        )
        .expect("it fits");
        assert_eq!(all[1].io_size, Some(Extent::Bytes(2 * UNIT)));

        let file = Job {
            filesize: Some(4 * UNIT),
            ..job(Some(Extent::Percent(50.0)))
        };
        let all = of_guests(&[file], 2, 40 * UNIT).expect("it fits");
        let ranges: Vec<_> = all
            .iter()
            .map(|it| (it.offset, it.size, it.filesize))
            .collect();
        let size = Some(Extent::Bytes(2 * UNIT));
        assert_eq!(
            ranges,
            [
                (Extent::Bytes(0), size, None),
                (Extent::Bytes(20 * UNIT), size, None)
            ]
        );

        let large = Job {
            filesize: Some(25 * UNIT),
            ..job(None)
        };
        let why = of_guests(&[large], 2, 40 * UNIT).expect_err("larger than a share");
        assert!(why[0].contains("smaller size, filesize"), "{why:?}");
    }

    #[test]
    fn zones_and_impossible_numbers_are_refused() {
        let zones = Job {
            strided: Some(StridedZones::default()),
            ..job(None)
        };
        let why = of_guests(&[zones], 2, 40 * UNIT).expect_err("zones");
        assert!(why[0].contains("zonemode=strided"), "{why:?}");
        for guests in [0, MAX_GUESTS + 1] {
            let why = of_guests(&[job(None)], guests, 40 * UNIT).expect_err("a wrong number");
            assert!(why[0].contains("not in 1 to 256"), "{why:?}");
        }
    }
}
