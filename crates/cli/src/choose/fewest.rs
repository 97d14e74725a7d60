//! `--fewest`: the smallest stripe of each drive that keeps up with the load and meets the limits.
//!
//! A drive that is not enough alone runs as a stripe of as many drives as its completed share suggests. Sizes between one
//! that is enough and one that is not follow. Stripes are without redundancy: for pairs, name
//! mirrors. Not covered: sizes between which a smaller stripe is better than a larger one.

use lab::Lab;
use study::decide::choose::{self, Candidate, ChooseRequest, Unfit};
use study::decide::memory_need::MachineMemory;
use text::problem::Problems;

use super::NamedDrive;
use super::candidates::refused;
use crate::drive::load as load_drive;
use crate::each::map_drives;
use crate::output;

/// Maximum number of drives in a stripe.
pub(super) const MOST: u32 = 16;

/// Returns the name of a stripe of this number of drives.
fn stripe(name: &str, count: u32) -> String {
    match count {
        1 => name.to_owned(),
        count => format!("stripe({count}*{name})"),
    }
}

/// Returns the number of drives to try after one that fails: by the completed share of the rate, otherwise twice as many.
fn next(count: u32, completes: Option<f64>) -> u32 {
    let by_share = completes.filter(|share| *share > 0.0 && *share < 1.0);
    let wanted = by_share.map_or(2 * count, |share| (f64::from(count) / share).ceil() as u32);
    wanted.clamp(count + 1, MOST.max(count + 1))
}

/// Finds the smallest count from 1 to [`MOST`] whose result meets everything: `judge` has whether it does, and the completed
/// share of the rate. Without one, returns the result of [`MOST`].
fn smallest<T>(
    of: impl Fn(u32) -> Result<T, Problems>,
    judge: impl Fn(&T) -> (bool, Option<f64>),
) -> Result<T, Problems> {
    let (mut fails, mut count) = (0, 1);
    let mut meets: Option<(u32, T)> = None;
    loop {
        let one = of(count)?;
        match judge(&one) {
            (true, _) => meets = Some((count, one)),
            (false, _) if count == MOST => return Ok(one),
            (false, share) => {
                fails = count;
                count = next(count, share);
            }
        }
        match meets.take() {
            Some((least, one)) if least == fails + 1 => return Ok(one),
            Some((least, one)) => {
                count = u32::midpoint(fails, least).max(fails + 1);
                meets = Some((least, one));
            }
            None => {}
        }
    }
}

/// Runs each drive as the smallest stripe that meets everything; those that cannot run are added to the unfit ones.
pub(super) fn ran(
    drives: &[NamedDrive],
    settings: &catalogue::Settings,
    request: &ChooseRequest,
    lab: &Lab,
    unfit: &mut Vec<Unfit>,
) -> Vec<Candidate> {
    let memory = MachineMemory::read();
    let results = map_drives(
        drives,
        |drive| &drive.name,
        |drive, go_on| {
            let of = |count: u32| {
                let name = stripe(&drive.name, count);
                let sheet = load_drive(&name, settings)?;
                memory.check(&sheet, request.conditions.seeds)?;
                let one = choose::candidate(request, &sheet, lab, go_on)?;
                Ok(Candidate { drive: name, ..one })
            };
            smallest(of, |one: &Candidate| (one.is_met(), one.completes))
        },
    );
    output::remark(
        "note",
        "--fewest: stripes have no redundancy, and one failed drive loses the data of all (drivelab odds)",
    );
    let mut candidates = Vec::new();
    for (drive, result) in drives.iter().zip(results) {
        match result {
            Ok(one) => {
                if !one.is_met() {
                    let what = format!("--fewest: {MOST} of {} are not enough", drive.name);
                    output::remark("note", &what);
                }
                candidates.push(one);
            }
            Err(problems) => unfit.push(refused(&drive.name, &problems)),
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_completes_suggests_the_next_number() {
        assert_eq!(next(1, Some(0.42)), 3);
        assert_eq!(next(3, Some(0.9)), 4);
        assert_eq!(next(2, None), 4);
        assert_eq!(next(1, Some(0.01)), MOST);
        assert_eq!(stripe("a", 1), "a");
        assert_eq!(stripe("a", 3), "stripe(3*a)");
    }

    /// Drives of which each does a share of the load, and how many of them do all of it.
    #[test]
    fn the_smallest_number_is_found_in_few_runs() {
        for (each, fewest) in [
            (1.0, 1),
            (0.5, 2),
            (0.42, 3),
            (0.11, 10),
            (0.065, 16),
            (0.01, 16),
        ] {
            for tells in [true, false] {
                let runs = std::cell::Cell::new(0);
                let of = |count: u32| {
                    runs.set(runs.get() + 1);
                    Ok(count)
                };
                let judge = |count: &u32| {
                    let share = each * f64::from(*count);
                    (share >= 1.0, tells.then_some(share))
                };
                assert_eq!(smallest(of, judge).expect("runs"), fewest, "{each}");
                assert!(runs.get() <= 8, "{each}: {} runs", runs.get());
            }
        }
    }
}
