//! A catalogue file for a host: fio results on a null device, and a base host with its costs fitted.
//!
//! The device is [`model::media::ram`] with no transfer time and with the service time that each run states
//! (`device_time` in the description of its job). The rest of the latency of an I/O is the host's. Costs are fitted in
//! stages, one engine at a time, since no run depends on another engine's own costs. Costs that all engines share are
//! fitted with the first engine. The wake-up is fitted last, alone, to runs on a device that takes time. fio's figures
//! show only sums. So of parts that always occur together, one is free and the others keep the base host's values:
//! `after`, `interrupt_each`, `poll`, and `switch` where cores sleep. Only runs that poll distinguish `interrupt` from
//! `reap`.
//!
//! Not fitted: files (`[files]`), noise, lock, a monitor, a device's own interrupts over PCIe, and engines that were
//! not run. Source: Linux, Documentation/block/null_blk.rst, for the device that [`crate::measure::HOST_JOBS`] runs
//! on.

mod runs;

use std::cell::Cell;

use model::Span;
use model::host::{CompletionMode, Engine};
use model::media::Precondition;
use model::media::ram::RamConfig;
use tier::DriveConfig;
use toml_edit::DocumentMut;

use super::drive::{AT_BOUND, bounded, intervals};
use super::{
    FURTHEST, FitResult, FittedParameter, MeasuredFigure, Parameter, Residual, STARTS, loss_of,
    median_error, minimise, starts_in_words,
};
use crate::ledger::figure::RunFigure;
use crate::ledger::largest_block;
use catalogue::change::{self, NewFigure};
use catalogue::{Change, HostSheet};
use lab::{Lab, Machine, Scenario, in_parallel, to_the_end};
use text::problem::Problems;

pub use runs::{HostRun, read_host};

/// Block size in bytes at and above which the cost of a page shows.
const LARGE: u32 = 32_768;
/// Size of the device in bytes. It is large enough that the offsets of jobs do not matter.
const BYTES: u64 = 1 << 40;

/// Input of a fit of a host.
#[derive(Clone, Debug)]
pub struct HostRequest {
    /// Name or path of the base host.
    pub base: String,
    /// The measured runs.
    pub measured: Vec<HostRun>,
    /// Every n-th run is held out of the fit to judge it; 0 for none.
    pub hold_out: usize,
    /// Maximum number of iterations of the search for each engine.
    pub iterations: u64,
    /// Name of the host in the file.
    pub name: String,
}

/// Returns the section of an engine in a host's file.
const fn section(engine: Engine) -> &'static str {
    match engine {
        Engine::Sync => "sync",
        Engine::Pvsync2 => "pvsync2",
        Engine::Libaio => "libaio",
        Engine::PosixAio => "posixaio",
        Engine::IoUring => "io_uring",
        Engine::UserSpace => "user-space",
        Engine::IoUringCmd => "io_uring_cmd",
    }
}

/// Returns the model's figures of these runs on a host; NaN where the model has none.
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
            // The shortest time that the model can represent.
            per_command: (*device_time).max(Span::from_ns(1)),
            picoseconds_per_byte: 0,
            memory_bus: None,
            spread: 0.0,
        });
        let machine = Machine::from_configs("a null device", device, host.config.clone());
        let scenario = Scenario::jobs(machine, Precondition::Fresh, bounded(run, 1), 1);
        let outcome = lab.run(&scenario)?;
        let figure = |target: &MeasuredFigure| {
            let figure = RunFigure::named(&target.figure()).ok();
            let value = figure.and_then(|figure| figure.value(&outcome).ok());
            value.unwrap_or(f64::NAN)
        };
        Ok(run.targets.iter().map(figure).collect())
    });
    results.into_iter().collect()
}

/// One search: its free parameters, and the runs that they are fitted to.
struct Stage {
    keys: Vec<String>,
    runs: Vec<usize>,
}

/// Parameters that keep the base host's value, each with the reason.
type LeftOut = Vec<String>;

/// Returns the stages, one per engine. The engine that determines most of the shared costs is first; the wake-up is
/// last.
fn stages(request: &HostRequest, base: &HostSheet, fitted: &[usize]) -> (Vec<Stage>, LeftOut) {
    let of = |engine: Engine| -> Vec<usize> {
        let told = |run: &HostRun| run.engine() == engine && run.at_once();
        let runs = fitted.iter().copied();
        runs.filter(|&run| told(&request.measured[run])).collect()
    };
    let polls = |runs: &[usize]| runs.iter().any(|&run| request.measured[run].polls());
    let mut left_out = LeftOut::new();
    let mut engines: Vec<(Engine, Vec<usize>)> = Vec::new();
    for engine in Engine::ALL {
        match of(engine) {
            runs if runs.is_empty() => left_out.push(format!(
                "`engine.{}`: no run for the fit uses it on a device that completes at once",
                section(engine)
            )),
            runs => engines.push((engine, runs)),
        }
    }
    engines.sort_by_key(|(engine, runs)| (!polls(runs), *engine != Engine::Libaio));
    let mut stages = Vec::new();
    for (index, (engine, runs)) in engines.into_iter().enumerate() {
        let mut keys = own(request, engine, &runs, &mut left_out);
        if index == 0 {
            keys.extend(shared(request, &runs, &mut left_out));
        }
        stages.push(Stage { keys, runs });
    }
    stages.extend(wake(request, base, fitted, &mut left_out));
    (stages, left_out)
}

/// Checks whether `holds` is true for any of these runs.
fn any(request: &HostRequest, runs: &[usize], holds: impl Fn(&HostRun) -> bool) -> bool {
    runs.iter().any(|&run| holds(&request.measured[run]))
}

/// Returns the engine's own costs that these runs determine.
fn own(
    request: &HostRequest,
    engine: Engine,
    runs: &[usize],
    left_out: &mut LeftOut,
) -> Vec<String> {
    let key = |part: &str| format!("engine.{}.{part}", section(engine));
    let mut keys = ["application", "submit", "reap"]
        .map(|part| format!("host.{}", key(part)))
        .to_vec();
    let batches = |run: &HostRun| run.any(|job| job.iodepth_batch > 1);
    match any(request, runs, batches) {
        true => keys.push(format!("host.{}", key("system_call"))),
        false => left_out.push(format!(
            "`{}`: no run submits several at once, so it cannot be distinguished from `submit`",
            key("system_call")
        )),
    }
    keys
}

/// Returns the costs shared by all engines that these runs of one engine determine.
fn shared(request: &HostRequest, runs: &[usize], left_out: &mut LeftOut) -> Vec<String> {
    let any = |holds: &dyn Fn(&HostRun) -> bool| any(request, runs, holds);
    let large = any(&|run| run.any(|job| largest_block(job) >= LARGE));
    let small = any(&|run| run.any(|job| largest_block(job) < LARGE));
    let told = any(&HostRun::polls) && any(&|run| !run.polls());
    let mut keys = Vec::new();
    for (key, shows, without) in [
        (
            "per_page",
            large && small,
            "no runs of large and of small blocks",
        ),
        (
            "interrupt",
            told,
            "no run polls, so it cannot be distinguished from `reap`",
        ),
    ] {
        match shows {
            true => keys.push(format!("host.{key}")),
            false => left_out.push(format!("`{key}`: {without}")),
        }
    }
    keys
}

/// Only the wake-up of a core differs between the devices, and all engines share it.
fn wake(
    request: &HostRequest,
    base: &HostSheet,
    fitted: &[usize],
    left_out: &mut LeftOut,
) -> Option<Stage> {
    let wake = match base.config.idle_states.is_empty() {
        true => "switch",
        false => "sleep.exit",
    };
    let wakes = |run: &HostRun| !run.at_once() && !run.polls();
    let runs = fitted.iter().copied();
    let runs: Vec<usize> = runs.filter(|&run| wakes(&request.measured[run])).collect();
    if runs.is_empty() {
        left_out.push(format!(
            "`{wake}`: no run on a device that takes time, for which the core sleeps"
        ));
        return None;
    }
    Some(Stage {
        keys: vec![format!("host.{wake}")],
        runs,
    })
}

/// Fits the costs of the base host to measurements on null devices.
///
/// # Errors
/// The base host does not exist; no run is left to fit to; the measured jobs do not fit; the search fails.
pub fn host(request: &HostRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<FitResult, Problems> {
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
            "no run for the fit used libaio or io_uring on a device that completes at once (device_time=0us): \
             submission and completion cannot be distinguished",
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
    let mut parameters: Vec<FittedParameter> = Vec::new();
    let mut local_optima = Vec::new();
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
        let found = minimise(free.len(), STARTS, request.iterations, &loss)
            .map_err(|what| Problems::whole("fit", what))?;
        local_optima.extend(starts_in_words(&found));
        let best = found.best.clone();
        let figures = stage.runs.iter();
        let figures = figures.map(|&run| request.measured[run].run.targets.len());
        let ends = intervals(&best, figures.sum(), &loss);
        for ((one, log), (low, high)) in free.iter().zip(&best).zip(ends) {
            parameters.push(FittedParameter {
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
    let residuals = residuals(request, &before, &after, &held);
    Ok(FitResult {
        toml: toml(request, &base, polling, &parameters, &residuals, &left_out)?,
        parameters,
        left_out,
        local_optima,
        residuals,
    })
}

/// Returns every measured figure with the figures of the base host and of the fitted host.
fn residuals(
    request: &HostRequest,
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    held: &dyn Fn(&usize) -> bool,
) -> Vec<Residual> {
    let mut residuals = Vec::new();
    for (index, HostRun { run, .. }) in request.measured.iter().enumerate() {
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
    residuals
}

/// Returns the changes of the free parameters at a point of the search.
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
        // The values are out of range for a host.
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

/// Returns the base host's file with the fitted figures.
fn toml(
    request: &HostRequest,
    base: &HostSheet,
    polling: bool,
    freed: &[FittedParameter],
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
        let figure = NewFigure {
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
            // A list with one element.
            "sleep.exit" => format!("[\"{}\"]", one.fitted),
            _ => one.fitted.clone(),
        };
        let figure = NewFigure {
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

/// Returns the comment at the start of the file.
fn head(request: &HostRequest, base: &str, residuals: &[Residual], left_out: &[String]) -> String {
    let mut head = format!(
        "# Made by drivelab fit from the host {base}. The free figures have the kind fitted, from fio's results; all \
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
