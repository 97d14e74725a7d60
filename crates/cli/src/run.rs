//! `drivelab run`: fio's job files and command lines on a simulated drive, with fio's output.
//!
//! fio's options are passed through by name: [`separate`] parts them from this verb's own before clap sees them, so that
//! both can stand in any order.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

use clap::{CommandFactory, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use model::Span;
use model::host::HostConfig;
use study::catalogue::{DriveSheet, HostSheet};
use study::problem::{Problems, nearest};
use study::report::csv;
use study::report::fio::{Formats, Report, print};
use study::run::{Outcome, Plan, simulate};
use study::workload::fio::{JobSet, Surroundings, option_names, read, takes_value};
use study::workload::job::{Job, Mix};
use study::workload::replay::read_iologs;

use crate::failure::{Failure, tell};
use crate::output::{self, write_whole};
use crate::setting::SettingArgs;
use crate::state::State;

/// Run fio jobs on a simulated drive
///
/// Takes fio's job files as they are and every option of fio's command line; prints what fio would print.
/// Options of fio: see `man fio`; those that mean nothing to a model are ignored with a warning.
#[derive(clap::Args)]
#[command(override_usage = "drivelab run [JOBFILE]... --drive <DRIVE> [OPTIONS] [FIO OPTIONS]")]
#[command(after_help = "\
Examples:
  drivelab run job.fio --drive p4800x-375
  drivelab run --drive p3700-1600 --name=mix --ioengine=libaio --direct=1 --rw=randrw \\
      --rwmixread=70 --bs=4k --iodepth=16 --runtime=10 --time_based
  drivelab run job.fio --drive p4800x-375 --output-format=json+ --output=result.json
  drivelab run job.fio --drive p4800x-375 --csv result.csv
  drivelab run job.fio --drive 9100max-2400 --state fresh --host xeon-2017 --seed 7
  drivelab run job.fio --drive p4800x-750 --power-limit 12W --lba-format 4096 --uptime 10min")]
pub(crate) struct Args {
    /// fio job files
    #[arg(value_name = "JOBFILE")]
    files: Vec<PathBuf>,
    /// Name of a drive (see `drivelab drives`) or path of a drive's TOML file
    #[arg(long)]
    drive: String,
    /// Name of a host or path of a host's TOML file
    #[arg(long, default_value = "xeon-2017")]
    host: String,
    /// What was written to the drive before
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,
    #[command(flatten)]
    setting: SettingArgs,
    /// Seed of every random stream; the same seed gives the same output
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// normal, json or json+, or several with commas
    #[arg(long, value_name = "LIST", default_value = "normal")]
    output_format: Formats,
    /// Write a table for pandas to this file too: a line for each job and direction
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Read only this section of the job files (besides global ones); can be repeated
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Read the jobs and stop
    #[arg(long)]
    parse_only: bool,
    /// Refuse jobs that write or trim
    #[arg(long)]
    readonly: bool,
    /// Take warnings for errors
    #[arg(long)]
    warnings_fatal: bool,
    /// Whether to show progress
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Eta::Auto)]
    eta: Eta,
    /// Other options of fio's program that mean nothing here
    #[command(flatten)]
    ignored: Ignored,
    /// Options of fio's jobs, as `--option=value`
    #[arg(last = true, hide = true)]
    fio: Vec<String>,
}

#[derive(clap::Args)]
struct Ignored {
    #[arg(long, hide = true)]
    alloc_size: Option<String>,
    #[arg(long, hide = true)]
    max_jobs: Option<String>,
    #[arg(long, hide = true)]
    status_interval: Option<String>,
    #[arg(long, hide = true)]
    eta_interval: Option<String>,
    #[arg(long, hide = true)]
    eta_newline: Option<String>,
    #[arg(long, hide = true)]
    idle_prof: Option<String>,
    #[arg(long, hide = true)]
    terse_version: Option<String>,
    #[arg(long, hide = true)]
    debug: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Eta {
    Auto,
    Always,
    Never,
}

impl Ignored {
    /// Names of those that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--alloc-size", &self.alloc_size),
            ("--max-jobs", &self.max_jobs),
            ("--status-interval", &self.status_interval),
            ("--eta-interval", &self.eta_interval),
            ("--eta-newline", &self.eta_newline),
            ("--idle-prof", &self.idle_prof),
            ("--terse-version", &self.terse_version),
            ("--debug", &self.debug),
        ];
        let given = all.into_iter().filter(|(_, value)| value.is_some());
        given.map(|(name, _)| name).collect()
    }
}

/// Moves options of fio's jobs behind a `--`, with their values joined by `=`, if the verb is `run`.
pub(crate) fn separate(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    #[derive(clap::Parser)]
    struct Own {
        #[command(flatten)]
        args: Args,
    }
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_none_or(|verb| verb != "run") {
        return arguments;
    }
    let command = Own::command();
    let mut own: Vec<&str> = command.get_opts().filter_map(clap::Arg::get_long).collect();
    own.extend(["help", "version"]);
    let mut known: Vec<&str> = option_names().collect();
    known.extend(&own);
    let mut kept: Vec<OsString> = arguments.drain(..2).collect();
    let mut fio = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy().into_owned();
        if text == "--" {
            fio.extend(rest.by_ref());
            break;
        }
        let option = text.trim_start_matches('-');
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        // fio takes one dash for two, so `-rw=read` is an option of its; `-h` and `-` alone are not.
        if option.len() == text.len() || name.len() < 2 || own.contains(&name) {
            kept.push(argument);
            continue;
        }
        match takes_value(name) {
            Some(true) if value.is_none() => {
                let value = rest.next().unwrap_or_default();
                fio.push(format!("--{name}={}", value.to_string_lossy()).into());
            }
            None if nearest(name, known.iter().copied())
                .is_some_and(|near| own.contains(&near)) =>
            {
                kept.push(argument);
            }
            _ => fio.push(format!("--{option}").into()),
        }
    }
    if !fio.is_empty() {
        kept.push("--".into());
        kept.extend(fio);
    }
    kept
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drive, host, set) = inputs(args)?;
    if args.parse_only {
        return Ok(());
    }
    let plan = Plan {
        drive: drive.config,
        state: args.state.into(),
        host: HostConfig {
            io_queues: drive.io_queues,
            ..host.config
        },
        jobs: set.jobs,
        seed: args.seed,
        series_every: Span::from_ms(500),
    };
    let bar = progress(args.eta);
    let begun = Once::new();
    let outcome = simulate(&plan, &|share| {
        // Preparing the drive says nothing about how long the jobs take.
        begun.call_once(|| bar.reset_eta());
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    let outcome = outcome?;
    for name in within_ramp(&plan.jobs, &outcome) {
        tell(&format!(
            "warning: job {name} ended within its ramp_time: nothing of it was counted"
        ));
    }
    let report = Report {
        jobs: &plan.jobs,
        globals: &set.globals,
        outcome: &outcome,
        drive: &drive.id,
        series_every: plan.series_every,
    };
    let text = print(&report, args.output_format);
    if let Some(path) = &args.csv {
        let run = csv::Run {
            drive: &drive.id,
            host: &host.id,
            state: plan.state,
            seed: plan.seed,
            jobs: &plan.jobs,
            outcome: &outcome,
        };
        write_whole(path, csv::run(&run).as_bytes())?;
    }
    match &args.output {
        Some(path) => write_whole(path, text.as_bytes()),
        None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
    }
}

/// Drive, host and jobs, or all that is wrong with any of them.
fn inputs(args: &Args) -> Result<(DriveSheet, HostSheet, JobSet), Problems> {
    let drive = study::catalogue::drive(&args.drive)
        .and_then(|mut drive| drive.set(&args.setting.into()).map(|()| drive));
    let host = study::catalogue::host(&args.host);
    let cores = host.as_ref().map_or(1, |host| host.config.cores);
    let set = jobs(args, cores).and_then(|mut set| read_iologs(&mut set.jobs).map(|()| set));
    let outputs = output::asked([("--output", &args.output), ("--csv", &args.csv)]);
    let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    let unwritable = output::problems(&outputs, &files);
    match (drive, host, set) {
        (Ok(drive), Ok(host), Ok(set)) if unwritable.0.is_empty() => Ok((drive, host, set)),
        (drive, host, set) => {
            let wrong = [drive.err(), host.err(), set.err(), Some(unwritable)];
            Err(Problems(
                wrong.into_iter().flatten().flat_map(|one| one.0).collect(),
            ))
        }
    }
}

/// The jobs that the arguments ask for; warnings go to standard error.
fn jobs(args: &Args, cores: u16) -> Result<JobSet, Problems> {
    if args.fio.is_empty() && args.files.is_empty() {
        let what =
            "there is no job: give a job file, or options such as --rw=randread --bs=4k --size=1g";
        return Err(Problems::whole("command line", what));
    }
    let surroundings = Surroundings {
        environment: &|name| std::env::var(name).ok(),
        read: &|path| {
            fs::read(if path == Path::new("-") {
                Path::new("/dev/stdin")
            } else {
                path
            })
        },
        processors: cores.into(),
    };
    let mut set = read(&args.fio, &args.files, &args.section, &surroundings)?;
    let ignored = args.ignored.given();
    if !ignored.is_empty() {
        let warning = format!(
            "ignored, as it means nothing to a simulation: {}",
            ignored.join(", ")
        );
        set.warnings.insert(0, warning);
    }
    for warning in &set.warnings {
        tell(&format!("warning: {warning}"));
    }
    if args.warnings_fatal && !set.warnings.is_empty() {
        return Err(Problems::whole(
            "jobs",
            "there are warnings, and --warnings-fatal was given",
        ));
    }
    let writer = set.jobs.iter().find(|job| job.mix != Mix::Read);
    if let Some(job) = writer.filter(|_| args.readonly) {
        let what = format!("job {} writes or trims, and --readonly was given", job.name);
        return Err(Problems::whole("jobs", what));
    }
    Ok(set)
}

/// Names of the jobs of which nothing was counted because their ramp outlasted them.
fn within_ramp<'a>(jobs: &'a [Job], outcome: &'a Outcome) -> impl Iterator<Item = &'a str> {
    let ramped = jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.ramp_time > Span::ZERO);
    let uncounted = ramped.filter(|(index, _)| {
        let threads = outcome.threads.iter().filter(|thread| thread.job == *index);
        threads
            .map(|thread| thread.read.ios + thread.write.ios + thread.trim.ios)
            .sum::<u64>()
            == 0
    });
    uncounted.map(|(_, job)| job.name.as_str())
}

/// Progress on standard error, where somebody can see it.
fn progress(eta: Eta) -> ProgressBar {
    let shown = match eta {
        Eta::Auto => io::stderr().is_terminal(),
        Eta::Always => true,
        Eta::Never => false,
    };
    if !shown {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent:>3}% {elapsed}, {eta} to go");
    ProgressBar::new(1000).with_style(style.expect("a template that indicatif knows"))
}
