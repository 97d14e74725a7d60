//! Fault scripts, read for the drives of a run.

use catalogue::DriveSheet;
use text::problem::{Place, Problem, Problems};
use workload::faults::{DriveNames, FaultLine, ScheduledFault, Target, script};

use crate::faults::RunFault;

/// Parses the faults of a script, with their lines.
///
/// # Errors
/// All invalid lines, or no fault.
pub fn scripted(origin: &str, text: &str) -> Result<Vec<FaultLine>, Problems> {
    let faults = script(text).map_err(|all| {
        let all = all.into_iter();
        Problems(
            all.map(|(line, what)| of_line(origin, line, what))
                .collect(),
        )
    })?;
    match faults.is_empty() {
        true => Err(Problems(vec![Problem {
            origin: origin.to_owned(),
            place: Place::Whole,
            what: String::from("the fault script contains no fault"),
            help: Some(String::from("add a line such as `at 10s slow 2ms for 5s`")),
        }])),
        false => Ok(faults),
    }
}

/// Resolves the faults of a script for each of these drives.
///
/// # Errors
/// All faults that a drive does not support.
pub fn befalling(
    origin: &str,
    planned: &[FaultLine],
    drives: &[DriveSheet],
) -> Result<Vec<Vec<RunFault>>, Problems> {
    let mut problems = Problems::default();
    let mut of_drive = |drive: &DriveSheet| {
        let mut befalls = Vec::new();
        for (line, planned) in planned {
            match befalling_one(planned, drive) {
                Ok(more) => befalls.extend(more),
                Err(why) => {
                    let what = match drives.len() {
                        1 => why,
                        _ => format!("on {}: {why}", drive.id),
                    };
                    problems.0.push(of_line(origin, *line, what));
                }
            }
        }
        befalls
    };
    let all = drives.iter().map(&mut of_drive).collect();
    problems.or(all)
}

/// Returns a problem with a line of a script.
pub fn of_line(origin: &str, line: usize, what: String) -> Problem {
    Problem {
        origin: origin.to_owned(),
        place: Place::Line(line),
        what,
        help: None,
    }
}

/// Resolves a fault for this drive.
fn befalling_one(planned: &ScheduledFault, drive: &DriveSheet) -> Result<Vec<RunFault>, String> {
    // A RAID-0 is one drive; members of pools fail individually.
    let members = drive.named_members().into_iter();
    let members = members.filter(|_| drive.pool.is_some());
    let whole = DriveNames {
        name: drive.id.clone(),
        members: members.map(|(name, _)| name.to_owned()).collect(),
    };
    let target = Target::named(planned.drive.as_deref(), &[whole])?;
    RunFault::resolve(planned, &drive.config, target.member)
        .map_err(|why| format!("`{}`: {why}", planned.fault))
}
