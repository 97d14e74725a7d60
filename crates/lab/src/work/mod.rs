//! Runs each kind of work on a device: one file per kind.

mod act;
mod jobs;
mod trace;

use model::Device;
use text::problem::Problems;
use tier::Drive;

use crate::faults::TriggerLog;
use crate::outcome::Outcome;
use crate::progress::ProgressCallback;
use crate::scenario::{Scenario, Work};

pub use trace::SPEEDS;

/// Runs the work of a scenario on a drive. For NAND and XPoint, the most frequent media, the whole path from workload
/// to medium is compiled separately. Other drives, and those of a [`crate::Bench`], share one version
/// (docs/decisions/0120).
///
/// # Errors
/// Everything in the work that does not fit the drive.
pub(crate) fn run_on_drive(
    drive: &mut Drive,
    scenario: &Scenario,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    match drive {
        Drive::XPoint(drive) => run_on(&mut **drive, scenario, go_on),
        Drive::Nand(drive) => run_on(&mut **drive, scenario, go_on),
        other => run_on(other.as_device(), scenario, go_on),
    }
}

/// Runs the work of a scenario on an existing device, whose clock starts at zero.
///
/// # Errors
/// Everything in the work that does not fit the device.
pub(crate) fn run_on(
    device: impl Device,
    scenario: &Scenario,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    run_struck(device, scenario, &TriggerLog::default(), go_on)
}

/// As [`run_on`], on a device that reports which counts have triggered faults.
///
/// # Errors
/// As [`run_on`].
pub(crate) fn run_struck(
    device: impl Device,
    scenario: &Scenario,
    struck: &TriggerLog,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    match &scenario.work {
        Work::Jobs(jobs) => jobs::run(device, scenario, jobs, struck, go_on),
        Work::Trace(trace) => trace::run(device, scenario, trace, struck, go_on),
        Work::Act(test) => act::run(device, scenario, test, struck, go_on),
    }
}
