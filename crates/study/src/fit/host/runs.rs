//! A user's measurements on null devices: fio's JSON as runs that determine the costs of a host.
//!
//! No figure of fio contains the device's time per command, so the description of each job states it. Not used: fio's
//! percentiles, because at a few microseconds they show fio's clock and timer ticks. Source: fio's JSON; Linux,
//! Documentation/admin-guide/devices.txt, for names of block devices.

use std::path::Path;

use model::Span;
use model::host::Engine;
use serde_json::Value;
use workload::job::Job;

use super::super::measured::{Group, entries, figures, jobs_of};
use super::super::{MeasuredFigure, MeasuredRun, Quantity};
use crate::ledger::largest_block;
use text::problem::{Place, Problem, Problems};
use text::quantity::quantity;

/// Prefix, in a job's description, of the device's time per command.
const DEVICE_TIME: &str = "device_time=";
/// Name prefixes of block devices that hold data. Their time would be taken for the host's.
const DRIVES: [&str; 9] = [
    "nvme", "sd", "hd", "vd", "xvd", "mmcblk", "md", "dm-", "nbd",
];
/// Name prefixes of memory devices, which copy data.
const COPYING: [&str; 3] = ["ram", "pmem", "zram"];
/// An upper bound of the host's time for one I/O at QD1, in microseconds.
const SLOW: f64 = 50.0;

/// A run on a device whose only known property is its time per command.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    /// The jobs and the measured figures.
    pub run: MeasuredRun,
    /// Time of the device for each command.
    pub device_time: Span,
}

impl HostRun {
    /// Returns the I/O engine of the run.
    pub(super) fn engine(&self) -> Engine {
        self.run
            .jobs
            .first()
            .map_or(Engine::default(), |job| job.engine)
    }

    /// Checks whether the device completes at once, so that the core never sleeps.
    pub(super) fn at_once(&self) -> bool {
        self.device_time == Span::ZERO
    }

    /// Checks whether any job requests polled completions.
    pub(super) fn polls(&self) -> bool {
        self.run.jobs.iter().any(|job| job.high_priority)
    }

    /// Checks whether `holds` is true for any job of the run.
    pub(super) fn any(&self, holds: impl Fn(&Job) -> bool) -> bool {
        self.run.jobs.iter().any(holds)
    }
}

/// Reads fio's JSON of runs on null devices; `origin` names the file in messages.
///
/// # Errors
/// The text is not fio's JSON, a device is a drive, or a job does not state its device's time.
pub fn read_host(origin: &str, text: &str) -> Result<Vec<HostRun>, Problems> {
    let mut problems = Problems::default();
    let mut runs = Vec::new();
    for group in &entries(origin, text)?.groups {
        match run(origin, group) {
            Ok(run) => runs.push(run),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(runs)
}

fn refused(origin: &str, run: &str, what: &str, help: &str) -> Problems {
    Problems(vec![Problem {
        origin: origin.into(),
        place: Place::Whole,
        what: format!("job {run}: {what}"),
        help: Some(help.into()),
    }])
}

fn run(origin: &str, group: &Group) -> Result<HostRun, Problems> {
    let (jobs, mut unlike, name) = jobs_of(origin, group)?;
    let mut targets = figures(origin, &name, &group.members)?;
    for (key, read) in [("read", true), ("write", false)] {
        if targets.iter().any(|target| target.read == read) {
            targets.extend(submission(&group.members, key, read));
        }
    }
    // A percentile of a few microseconds shows fio's clock and timer ticks. The means contain the same information,
    // more precisely.
    targets.retain(|target| !matches!(target.quantity, Quantity::Percentile(_)));
    unlike.extend(of_devices(origin, &name, group)?);
    one_engine(origin, &name, &jobs)?;
    if jobs.iter().any(|job| job.sq_poll) {
        let what = "sqthread_poll: the CPU time of a polling kernel thread is not fitted";
        let help = "remove the run; [sq_poll] of the base is not changed";
        return Err(refused(origin, &name, what, help));
    }
    let device_time = device_time(origin, &name, &jobs)?;
    let depth = depth(&jobs);
    if device_time > Span::ZERO && depth > 1 {
        let what = format!(
            "{depth} I/Os at once on a device that takes time: it is modelled for one at a time"
        );
        let help = "take out the run, or run it on a device that completes at once";
        return Err(refused(origin, &name, &what, help));
    }
    unlike.extend(slow(&jobs, &targets, device_time));
    Ok(HostRun {
        run: MeasuredRun {
            name,
            jobs,
            targets,
            unlike,
        },
        device_time,
    })
}

/// Returns the ways in which the devices of a group differ from null devices, one sentence each.
///
/// # Errors
/// A device is a drive.
fn of_devices(origin: &str, name: &str, group: &Group) -> Result<Vec<String>, Problems> {
    let mut unlike = Vec::new();
    for device in devices(group) {
        let base = Path::new(&device).file_name().unwrap_or_default();
        let base = base.to_string_lossy();
        let is = |name: &str| {
            let after = base.strip_prefix(name);
            after.is_some_and(|after| after.chars().next().is_some_and(char::is_alphanumeric))
        };
        if device.starts_with("/dev/") && DRIVES.iter().any(|name| is(name)) {
            return Err(refused(
                origin,
                name,
                &format!("{device} is a drive, and its latency would count as the host's"),
                "run the jobs of `drivelab fit --jobs host` on a null device; a drive is fitted with --measured",
            ));
        }
        if COPYING.iter().any(|name| is(name)) || device.starts_with("/dev/shm/") {
            unlike.push(format!(
                "{device} copies its data, which is in `per_page` of the host and is not with a drive"
            ));
        } else if !is("nullb") {
            unlike.push(format!(
                "{device} is not known to be a null device: its time would count as the host's"
            ));
        }
    }
    Ok(unlike)
}

/// Checks that all jobs of a group use one I/O engine of the system, because their costs are fitted to the group.
fn one_engine(origin: &str, name: &str, jobs: &[Job]) -> Result<(), Problems> {
    let alike = |job: &Job| (job.engine, job.high_priority);
    if jobs
        .iter()
        .any(|job| Some(alike(job)) != jobs.first().map(alike))
    {
        let help = "begin each with a stonewall";
        return Err(refused(
            origin,
            name,
            "several engines ran at the same time",
            help,
        ));
    }
    let bypasses = |job: &Job| matches!(job.engine, Engine::UserSpace | Engine::IoUringCmd);
    if jobs.iter().any(bypasses) {
        let what = "a null device of Linux accepts neither user-space drivers nor NVMe commands";
        return Err(refused(
            origin,
            name,
            what,
            "remove the run: the CPU times of the base are not changed",
        ));
    }
    Ok(())
}

/// Returns the number of outstanding I/Os of all jobs together.
fn depth(jobs: &[Job]) -> u64 {
    let of = |job: &Job| u64::from(job.iodepth) * u64::from(job.numjobs);
    jobs.iter().map(of).sum()
}

/// Returns a warning if small I/Os at QD1 take longer than a host does.
fn slow(jobs: &[Job], targets: &[MeasuredFigure], device_time: Span) -> Option<String> {
    let mean = targets
        .iter()
        .filter(|target| target.quantity == Quantity::Mean)
        .map(|target| target.value - device_time.ns() as f64 / 1e3);
    let small = jobs.iter().all(|job| largest_block(job) <= 4096);
    if let (1, true, Some(mean)) = (depth(jobs), small, mean.reduce(f64::max))
        && mean > SLOW
    {
        return Some(format!(
            "an I/O of 4 KiB or less alone takes {mean:.0} us more than its device should: is it a drive, or was the machine busy?"
        ));
    }
    None
}

/// Returns the mean submission latency, if fio reports it. Engines that wait in the system call have none.
fn submission(members: &[Value], key: &str, read: bool) -> Option<MeasuredFigure> {
    let number = |member: &Value, name: &str| member[key]["slat_ns"][name].as_f64();
    let (mut sum, mut ios) = (0.0, 0.0);
    for member in members {
        let of = number(member, "N")?;
        sum += number(member, "mean")? * of;
        ios += of;
    }
    (sum > 0.0).then(|| MeasuredFigure {
        read,
        quantity: Quantity::Submission,
        value: sum / ios / 1e3,
        weight: 1.0,
    })
}

/// Returns the files or devices of a group's jobs, as their options name them.
fn devices(group: &Group) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for member in &group.members {
        let own = &member["job options"]["filename"];
        let named = own.as_str().or(group.globals["filename"].as_str());
        for one in named.unwrap_or("an unnamed file").split(':') {
            if !all.iter().any(|known| known == one) {
                all.push(one.to_owned());
            }
        }
    }
    all
}

/// Returns the device's time per command, as the descriptions of the jobs state it.
fn device_time(origin: &str, name: &str, jobs: &[Job]) -> Result<Span, Problems> {
    let help = "add description=device_time=0us, or what the device takes (null_blk's completion_nsec), to the job; \
                those of `drivelab fit --jobs host` have it";
    let mut found = None;
    for job in jobs {
        let words = job.reporting.description.as_deref().unwrap_or_default();
        let Some(time) = words.strip_prefix(DEVICE_TIME) else {
            let what = "the latency of its device is unknown";
            return Err(refused(origin, name, what, help));
        };
        let time: Span = quantity(time).map_err(|wrong| {
            refused(origin, name, &format!("device_time={time}: {wrong}"), help)
        })?;
        if found.is_some_and(|known| known != time) {
            let what = "its jobs name different times of one device";
            return Err(refused(origin, name, what, help));
        }
        found = Some(time);
    }
    Ok(found.unwrap_or(Span::ZERO))
}
