//! `--scheduler`: the I/O scheduler between host and drive.

use catalogue::{DriveSheet, HostSheet};
use clap::ValueEnum;
use model::host::SchedulerKind;
use text::problem::Problems;

/// I/O scheduler.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SchedulerArg {
    /// Each request goes to the drive
    None,
    /// By address, in batches, with deadlines
    MqDeadline,
    /// Limits of requests in flight by latency
    Kyber,
    /// One process at a time, with a budget
    Bfq,
}

/// Returns the host with this scheduler.
///
/// # Errors
/// The host does not state its cost, or a device has no scheduler of its own.
pub(crate) fn with_scheduler(
    scheduler: Option<SchedulerArg>,
    drives: &[DriveSheet],
    mut host: HostSheet,
) -> Result<HostSheet, Problems> {
    let kind = match scheduler {
        None | Some(SchedulerArg::None) => return Ok(host),
        Some(SchedulerArg::MqDeadline) => SchedulerKind::MqDeadline,
        Some(SchedulerArg::Kyber) => SchedulerKind::Kyber,
        Some(SchedulerArg::Bfq) => SchedulerKind::Bfq,
    };
    let refused = |what: String, help: &str| {
        let mut problems = Problems::whole("--scheduler", what);
        problems.0[0].help = Some(help.into());
        problems
    };
    if let Some(pool) = drives.iter().find(|drive| drive.pool_config().is_some()) {
        let what = format!("{} is a pool, which has no I/O scheduler", pool.id);
        return Err(refused(what, "--scheduler none, or a single drive"));
    }
    let Some(costs) = host.config.scheduler_costs else {
        let what = format!("the host {} has no [scheduler]", host.id);
        return Err(refused(what, "a host with schedulers, such as linux"));
    };
    host.config.scheduler.kind = kind;
    host.config.scheduler.cost = costs[kind as usize];
    Ok(host)
}
