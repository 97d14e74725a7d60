//! A catalogue file for a host: fio's results on a device that does nothing, and a base host with its costs fitted.
//!
//! The device is [`model::media::ram`] with a time that each run says (`device_time` in its job's description) and no
//! transfer. What is left of an I/O is the host's. Costs are fitted in stages, an engine at a time, since no run depends on
//! another engine's own costs; those that all engines share are fitted with the first, and the wake last, alone, to runs on
//! a device that takes time. Only sums show in fio's figures, so of parts that always come together one is free and the others stay the base's: `after`, `interrupt_each`, `poll`,
//! and `switch` where cores sleep; `interrupt` is told from `reap` only by runs that poll.
//!
//! Left out: files (`[files]`), noise, lock, a monitor, a device's own interrupts over PCIe, engines that were not run.
//! Source: Linux, Documentation/block/null_blk.rst, for the device that [`crate::measure::HOST_JOBS`] runs on.

use std::cell::Cell;
use std::path::Path;

use model::Span;
use model::host::{CompletionMode, Engine};
use model::media::ram::RamConfig;
use model::media::{DriveConfig, Precondition};
use serde_json::Value;
use toml_edit::DocumentMut;
use workload::job::Job;

use super::drive::{AT_BOUND, bounded, intervals};
use super::measured::{Group, entries, figures, jobs_of};
use super::{
    FURTHEST, Fitted, Freed, MeasuredRun, Parameter, Quantity, Residual, Target, loss_of,
    median_error, minimise,
};
use crate::ledger::figure::RunFigure;
use crate::ledger::largest_block;
use catalogue::change::{self, Stated};
use catalogue::{Change, HostSheet};
use lab::{Lab, Machine, Scenario, in_parallel, to_the_end};
use text::problem::{Place, Problem, Problems};
use text::quantity::quantity;

/// What a job's description says before the time that its device takes for a command.
const DEVICE_TIME: &str = "device_time=";
/// Names of block devices that hold data: their time would be taken for the host's.
const DRIVES: [&str; 9] = [
    "nvme", "sd", "hd", "vd", "xvd", "mmcblk", "md", "dm-", "nbd",
];
/// Names of devices in memory, which copy.
const COPYING: [&str; 3] = ["ram", "pmem", "zram"];
/// More than a host takes for an I/O alone, in microseconds.
const SLOW: f64 = 50.0;
/// Bytes of a block from which the cost of a page shows.
const LARGE: u32 = 32_768;
/// The device's size: no job's offsets matter.
const BYTES: u64 = 1 << 40;

/// One run on a device of which only the time is known.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    /// What ran and what came out.
    pub run: MeasuredRun,
    /// What the device takes for each command.
    pub device_time: Span,
}

impl HostRun {
    /// Its interface.
    fn engine(&self) -> Engine {
        self.run
            .jobs
            .first()
            .map_or(Engine::default(), |job| job.engine)
    }

    /// Whether its device completes at once, so that the core never sleeps.
    fn at_once(&self) -> bool {
        self.device_time == Span::ZERO
    }

    fn polls(&self) -> bool {
        self.run.jobs.iter().any(|job| job.high_priority)
    }

    fn any(&self, holds: impl Fn(&Job) -> bool) -> bool {
        self.run.jobs.iter().any(holds)
    }
}

/// What is to be fitted.
#[derive(Clone, Debug)]
pub struct HostRequest {
    /// Name or path of the host to begin from.
    pub base: String,
    /// What was measured.
    pub measured: Vec<HostRun>,
    /// Every so many-th run is held out of the fit to judge it; 0 for none.
    pub hold_out: usize,
    /// Iterations of the search for each engine.
    pub iterations: u64,
    /// The host's name in the file.
    pub name: String,
}

/// Reads fio's JSON of runs on null devices; `origin` names the file in messages.
///
/// # Errors
/// It is not fio's JSON, a device is a drive, or a job does not say what its device takes.
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
    // A percentile of a few microseconds is one of fio's clock and of ticks: the means say the same, and better.
    targets.retain(|target| !matches!(target.quantity, Quantity::Percentile(_)));
    for device in devices(group) {
        let base = Path::new(&device).file_name().unwrap_or_default();
        let base = base.to_string_lossy();
        let is = |name: &&str| {
            let after = base.strip_prefix(name);
            after.is_some_and(|after| after.chars().next().is_some_and(char::is_alphanumeric))
        };
        if device.starts_with("/dev/") && DRIVES.iter().any(|name| is(&name)) {
            return Err(refused(
                origin,
                &name,
                &format!("{device} is a drive, and its time would be taken for the host's"),
                "run the jobs of `drivelab fit --jobs host` on a null device; a drive is fitted with --measured",
            ));
        }
        if COPYING.iter().any(|name| is(&name)) || device.starts_with("/dev/shm/") {
            unlike.push(format!(
                "{device} copies its data, which is in `per_page` of the host and is not with a drive"
            ));
        } else if !is(&"nullb") {
            unlike.push(format!(
                "{device} is not known to be a null device: whatever it takes is in the host"
            ));
        }
    }
    let alike = |job: &Job| (job.engine, job.high_priority);
    if jobs
        .iter()
        .any(|job| Some(alike(job)) != jobs.first().map(alike))
    {
        let help = "begin each with a stonewall";
        return Err(refused(
            origin,
            &name,
            "engines ran beside each other",
            help,
        ));
    }
    if jobs.iter().any(|job| job.engine == Engine::UserSpace) {
        let what = "a driver in user space drives no null device of Linux";
        return Err(refused(
            origin,
            &name,
            what,
            "take it out: its costs stay the base's",
        ));
    }
    let device_time = device_time(origin, &name, &jobs)?;
    let depth = |job: &Job| u64::from(job.iodepth) * u64::from(job.numjobs);
    let depth: u64 = jobs.iter().map(depth).sum();
    if device_time > Span::ZERO && depth > 1 {
        let what = format!(
            "{depth} I/Os at once on a device that takes time: it is modelled for one at a time"
        );
        let help = "take out the run, or run it on a device that completes at once";
        return Err(refused(origin, &name, &what, help));
    }
    let mean = targets
        .iter()
        .filter(|target| target.quantity == Quantity::Mean)
        .map(|target| target.value - device_time.ns() as f64 / 1e3);
    let small = jobs.iter().all(|job| largest_block(job) <= 4096);
    if let (1, true, Some(mean)) = (depth, small, mean.reduce(f64::max))
        && mean > SLOW
    {
        unlike.push(format!(
            "an I/O of 4 KiB or less alone takes {mean:.0} us more than its device should: is it a drive, or was the machine busy?"
        ));
    }
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

/// The mean time to submit, where fio has it: engines that wait in the call have none.
fn submission(members: &[Value], key: &str, read: bool) -> Option<Target> {
    let number = |member: &Value, name: &str| member[key]["slat_ns"][name].as_f64();
    let (mut sum, mut ios) = (0.0, 0.0);
    for member in members {
        let of = number(member, "N")?;
        sum += number(member, "mean")? * of;
        ios += of;
    }
    (sum > 0.0).then(|| Target {
        read,
        quantity: Quantity::Submission,
        value: sum / ios / 1e3,
        weight: 1.0,
    })
}

/// Files or devices that the jobs of a group used, as their options name them.
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

/// What the device takes for a command, as the descriptions of its jobs say.
fn device_time(origin: &str, name: &str, jobs: &[Job]) -> Result<Span, Problems> {
    let help = "add description=device_time=0us, or what the device takes (null_blk's completion_nsec), to the job; \
                those of `drivelab fit --jobs host` have it";
    let mut found = None;
    for job in jobs {
        let words = job.reporting.description.as_deref().unwrap_or_default();
        let Some(time) = words.strip_prefix(DEVICE_TIME) else {
            let what = "nothing says what its device takes for a command";
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

/// The section of an engine in a host's file.
const fn section(engine: Engine) -> &'static str {
    match engine {
        Engine::Sync => "sync",
        Engine::Pvsync2 => "pvsync2",
        Engine::Libaio => "libaio",
        Engine::PosixAio => "posixaio",
        Engine::IoUring => "io_uring",
        Engine::UserSpace => "user-space",
    }
}

/// The model's figures of these runs on a host; NaN for what it does not have.
fn modelled(
    lab: &Lab,
    host: &HostSheet,
    request: &HostRequest,
    runs: &[usize],
) -> Result<Vec<Vec<f64>>, Problems> {
    let results = in_parallel(runs, &to_the_end, |index, _| {
        let HostRun { run, device_time } = &request.measured[*index];
        let device = DriveConfig::Ram(RamConfig {
            bytes: BYTES,
            // The model's least time.
            per_command: (*device_time).max(Span::from_ns(1)),
            picoseconds_per_byte: 0,
        });
        let machine = Machine::of("a null device", device, host.config.clone());
        let scenario = Scenario::jobs(machine, Precondition::Fresh, bounded(run, 1), 1);
        let outcome = lab.run(&scenario)?;
        let figure = |target: &Target| {
            let figure = RunFigure::named(&target.figure()).ok();
            let value = figure.and_then(|figure| figure.of(&outcome).ok());
            value.unwrap_or(f64::NAN)
        };
        Ok(run.targets.iter().map(figure).collect())
    });
    results.into_iter().collect()
}

/// One search: what is free in it, the runs that it is fitted to.
struct Stage {
    keys: Vec<String>,
    runs: Vec<usize>,
}

/// An engine after the other, the one that tells most of what they share first, and last the wake; and what stays the base's, each with the reason.
fn stages(request: &HostRequest, base: &HostSheet, fitted: &[usize]) -> (Vec<Stage>, Vec<String>) {
    let of = |engine: Engine| -> Vec<usize> {
        let runs = fitted.iter().copied();
        runs.filter(|&run| {
            request.measured[run].engine() == engine && request.measured[run].at_once()
        })
        .collect()
    };
    let polls = |runs: &[usize]| runs.iter().any(|&run| request.measured[run].polls());
    let mut engines: Vec<(Engine, Vec<usize>)> = Engine::ALL
        .map(|engine| (engine, of(engine)))
        .into_iter()
        .filter(|(_, runs)| !runs.is_empty())
        .collect();
    engines.sort_by_key(|(engine, runs)| (!polls(runs), *engine != Engine::Libaio));
    let mut left_out: Vec<String> = Engine::ALL
        .into_iter()
        .filter(|engine| !engines.iter().any(|(one, _)| one == engine))
        .map(|engine| {
            format!(
                "`engine.{}`, of which there is no run to fit to on a device that completes at once",
                section(engine)
            )
        })
        .collect();
    let mut stages = Vec::new();
    for (index, (engine, runs)) in engines.into_iter().enumerate() {
        let any = |holds: &dyn Fn(&HostRun) -> bool| {
            runs.iter().any(|&run| holds(&request.measured[run]))
        };
        let mut free = |key: &str, shows: bool, without: &str| match shows {
            true => Some(format!("host.{key}")),
            false => {
                left_out.push(format!("`{key}`: {without}"));
                None
            }
        };
        let own = |part: &str| format!("engine.{}.{part}", section(engine));
        let mut keys = vec![
            free(&own("application"), true, ""),
            free(&own("submit"), true, ""),
            free(&own("reap"), true, ""),
            free(
                &own("system_call"),
                any(&|run| run.any(|job| job.iodepth_batch > 1)),
                "no run submits several at once, so it is not told from `submit`",
            ),
        ];
        if index == 0 {
            let large = |run: &HostRun| run.any(|job| largest_block(job) >= LARGE);
            let small = |run: &HostRun| run.any(|job| largest_block(job) < LARGE);
            keys.extend([
                free(
                    "per_page",
                    any(&large) && any(&small),
                    "no runs of large and of small blocks",
                ),
                free(
                    "interrupt",
                    polls(&runs) && any(&|run| !run.polls()),
                    "no run polls, so it is not told from `reap`",
                ),
            ]);
        }
        stages.push(Stage {
            keys: keys.into_iter().flatten().collect(),
            runs,
        });
    }
    // Only what wakes a core differs between the devices, and all engines share it.
    let wakes = |run: &&usize| {
        let run = &request.measured[**run];
        !run.at_once() && !run.polls()
    };
    let wake = match base.config.idle_states.is_empty() {
        true => "switch",
        false => "sleep.exit",
    };
    let runs: Vec<usize> = fitted.iter().filter(wakes).copied().collect();
    if runs.is_empty() {
        left_out.push(format!(
            "`{wake}`: no run on a device that takes time, for which the core sleeps"
        ));
    } else {
        stages.push(Stage {
            keys: vec![format!("host.{wake}")],
            runs,
        });
    }
    (stages, left_out)
}

/// Fits the costs of the base host to what was measured on null devices.
///
/// # Errors
/// The base does not exist; nothing is left to fit to; the measured jobs do not fit; the search fails.
pub fn host(request: &HostRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<Fitted, Problems> {
    let all: Vec<usize> = (0..request.measured.len()).collect();
    let held = |run: &usize| request.hold_out > 0 && (run + 1) % request.hold_out == 0;
    let fitted: Vec<usize> = all.iter().copied().filter(|run| !held(run)).collect();
    let tells = |run: &usize| {
        let run = &request.measured[*run];
        run.at_once() && run.engine().asynchronous()
    };
    if !fitted.iter().any(tells) {
        return Err(Problems::whole(
            "command line",
            "no run to fit to went through libaio or io_uring to a device that completes at once (device_time=0us): \
             submission and completion cannot be told apart",
        ));
    }
    let base = catalogue::host(&request.base)?;
    let lab = Lab::new();
    let (stages, mut left_out) = stages(request, &base, &fitted);
    let before = modelled(&lab, &base, request, &all)?;
    let mut fixed: Vec<Change> = Vec::new();
    let polls = |run: &usize| request.measured[*run].polls();
    let polling = fitted.iter().any(polls) && base.config.completion == CompletionMode::Interrupt;
    if polling {
        fixed.push(("completion".into(), "polling".into()));
    }
    let tried = Cell::new(0);
    let mut parameters: Vec<Freed> = Vec::new();
    for stage in &stages {
        let begun = catalogue::host_with(&request.base, &fixed)?;
        let mut free: Vec<Parameter> = Vec::new();
        for key in &stage.keys {
            match Parameter::named(key, &[], &begun.figures) {
                Ok(one) => free.push(one),
                Err(problem) => left_out.push(problem.what),
            }
        }
        let loss = |at: &[f64]| {
            tried.set(tried.get() + 1);
            progress(tried.get());
            loss(&lab, request, stage, &fixed, &free, at)
        };
        let best = minimise(free.len(), request.iterations, &loss)
            .map_err(|what| Problems::whole("fit", what))?;
        let figures = stage.runs.iter();
        let figures = figures.map(|&run| request.measured[run].run.targets.len());
        let ends = intervals(&best, figures.sum(), &loss);
        for ((one, log), (low, high)) in free.iter().zip(&best).zip(ends) {
            parameters.push(Freed {
                parameter: one.clone(),
                fitted: one.moved(*log),
                interval: (one.moved(low), one.moved(high)),
                at_bound: log.abs() > AT_BOUND * FURTHEST,
            });
        }
        fixed.extend(changes(&free, &best));
    }
    let after = catalogue::host_with(&request.base, &fixed)?;
    let after = modelled(&lab, &after, request, &all)?;
    let mut residuals = Vec::new();
    for index in all {
        let run = &request.measured[index].run;
        let figures = before[index].iter().zip(&after[index]);
        for (target, (before, after)) in run.targets.iter().zip(figures) {
            residuals.push(Residual {
                run: run.name.clone(),
                figure: target.figure(),
                measured: target.value,
                before: *before,
                after: *after,
                held_out: held(&index),
            });
        }
    }
    Ok(Fitted {
        toml: toml(request, &base, polling, &parameters, &residuals, &left_out)?,
        parameters,
        left_out,
        residuals,
    })
}

/// The changes of free parameters at a point of the search.
fn changes(free: &[Parameter], at: &[f64]) -> Vec<Change> {
    super::parameter::changes(free, at).1
}

fn loss(
    lab: &Lab,
    request: &HostRequest,
    stage: &Stage,
    fixed: &[Change],
    free: &[Parameter],
    at: &[f64],
) -> f64 {
    let here = [fixed, &changes(free, at)].concat();
    let figures = catalogue::host_with(&request.base, &here)
        .and_then(|host| modelled(lab, &host, request, &stage.runs));
    let Ok(figures) = figures else {
        // Values out of the range of a host.
        return 9.0;
    };
    let (mut sum, mut weights) = (0.0, 0.0);
    for (run, figures) in stage.runs.iter().zip(figures) {
        let targets = &request.measured[*run].run.targets;
        for (target, model) in targets.iter().zip(figures) {
            sum += target.weight * loss_of(model, target.value);
            weights += target.weight;
        }
    }
    sum / weights
}

/// The base host's file with the fitted figures in it.
fn toml(
    request: &HostRequest,
    base: &HostSheet,
    polling: bool,
    freed: &[Freed],
    residuals: &[Residual],
    left_out: &[String],
) -> Result<String, Problems> {
    let text = change::host_text(&request.base, &[])?;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| Problems::whole(&*request.base, format!("not TOML: {error}")))?;
    document["name"] = toml_edit::value(&*request.name);
    let source = "fio's results on null devices, see the head of this file";
    if polling {
        let figure = Stated {
            value: change::as_value("polling"),
            kind: "measured",
            source,
            note: Some("runs with hipri were made"),
        };
        change::set_as(document.as_table_mut(), "completion", &figure);
    }
    for one in freed {
        let key = one.parameter.key.trim_start_matches("host.");
        let value = match key {
            // A list of one.
            "sleep.exit" => format!("[\"{}\"]", one.fitted),
            _ => one.fitted.clone(),
        };
        let figure = Stated {
            value: change::as_value(&value),
            kind: "fitted",
            source,
            note: Some(&format!("95 %: {} to {}", one.interval.0, one.interval.1)),
        };
        change::set_as(document.as_table_mut(), key, &figure);
    }
    let text = format!("{}{document}", head(request, &base.id, residuals, left_out));
    catalogue::host_from_text(&request.name, &text)?;
    Ok(text)
}

/// What the file says of itself first.
fn head(request: &HostRequest, base: &str, residuals: &[Residual], left_out: &[String]) -> String {
    let mut head = format!(
        "# Made by drivelab fit from the host {base}. Of kind fitted from fio's results are the figures that were free; all \
         others, and the remarks below, are that host's.\n"
    );
    for (held_out, what) in [(false, "Fitted to the runs"), (true, "Held out")] {
        let of = residuals.iter().filter(|one| one.held_out == held_out);
        let mut names: Vec<&str> = of.map(|one| &*one.run).collect();
        names.dedup();
        if let Some(error) = median_error(residuals, held_out) {
            let (names, error) = (names.join(", "), error * 100.0);
            head.push_str(&format!(
                "# {what}: {names}; half of the figures within {error:.1} %.\n"
            ));
        }
    }
    for one in left_out {
        head.push_str(&format!("# Not fitted: {one}.\n"));
    }
    let mut told: Vec<&str> = Vec::new();
    for what in request.measured.iter().flat_map(|one| &one.run.unlike) {
        if !told.contains(&&**what) {
            told.push(what);
            head.push_str(&format!("# As measured: {what}.\n"));
        }
    }
    head.push('\n');
    head
}
