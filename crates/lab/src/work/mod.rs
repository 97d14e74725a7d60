//! Each kind of work on a device: one file a kind.

mod act;
mod jobs;
mod trace;

use model::{Device, Drive};
use text::problem::Problems;

use crate::faults::TriggerLog;
use crate::outcome::Outcome;
use crate::progress::GoOn;
use crate::scenario::{Scenario, Work};

pub use trace::SPEEDS;

/// Runs the work of a scenario on a drive. Flash and XPoint, which are asked for more than all others, have the whole way from
/// workload to medium compiled for them; other drives, and a [`crate::Bench`]'s, share one (docs/decisions/0120).
///
/// # Errors
/// All of the work that does not fit it.
pub(crate) fn run_on_drive(
    drive: &mut Drive,
    scenario: &Scenario,
    go_on: GoOn<'_>,
) -> Result<Outcome, Problems> {
    match drive {
        Drive::XPoint(drive) => run_on(&mut **drive, scenario, go_on),
        Drive::Nand(drive) => run_on(&mut **drive, scenario, go_on),
        other => run_on(other.as_device(), scenario, go_on),
    }
}

/// Runs the work of a scenario on a device that is at hand, whose clock begins at zero.
///
/// # Errors
/// All of the work that does not fit it.
pub(crate) fn run_on(
    device: impl Device,
    scenario: &Scenario,
    go_on: GoOn<'_>,
) -> Result<Outcome, Problems> {
    run_struck(device, scenario, &TriggerLog::default(), go_on)
}

/// As [`run_on`], on a device that says which counts have triggered faults.
///
/// # Errors
/// As [`run_on`].
pub(crate) fn run_struck(
    device: impl Device,
    scenario: &Scenario,
    struck: &TriggerLog,
    go_on: GoOn<'_>,
) -> Result<Outcome, Problems> {
    match &scenario.work {
        Work::Jobs(jobs) => jobs::run(device, scenario, jobs, struck, go_on),
        Work::Trace(trace) => trace::run(device, scenario, trace, struck, go_on),
        Work::Act(test) => act::run(device, scenario, test, struck, go_on),
    }
}
