//! `drivelab run`: fio's job files and command lines on a simulated drive, with fio's output.
//!
//! fio's options are passed through by name: [`separate`] separates them from this subcommand's own before clap parses
//! them, so that both can be in any order.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

use clap::{CommandFactory, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use catalogue::{DriveSheet, HostSheet, Settings};
use lab::faults::RunFault;
use lab::{Lab, Machine, Outcome, Scenario, Start, Work};
use model::Span;
use model::host::Filesystem;
use report::csv;
use report::fio::{self, Formats, Report, print, print_drives, spread_starts};
use text::bounded;
use text::problem::{Problem, Problems, nearest};
use workload::fio::{
    Dd, JobSet, Surroundings, dd, in_filesystem, option_names, read_overridden, takes_value,
};
use workload::job::{Job, Mix};
use workload::replay::read_iologs;

use crate::drive::{DriveArgs, is_drive, sort};
use crate::failure::Failure;
use crate::fault::FaultArgs;
use crate::guests::GuestArgs;
use crate::heat::HeatArgs;
use crate::idle::note_on_power_states_of_jobs;
use crate::interval::part_of_a_second;
use crate::memory::with_memory;
use crate::output::{self, remark, write_whole};
use crate::scheduler::{SchedulerArg, with_scheduler};
use crate::seed::SeedArg;
use crate::state::Begin;
use crate::stop::Stop;

/// Run fio jobs on a simulated drive
///
/// Reads fio's job files unchanged and accepts every option of fio's jobs (see `man fio`); prints fio's output.
/// Options without meaning for a model are ignored with a warning. Options after a job file override its values.
#[derive(clap::Args)]
#[command(override_usage = "drivelab run [JOBFILE]... <DRIVE>... [OPTIONS] [FIO OPTIONS]")]
#[command(after_help = "\
Examples:
  drivelab run job.fio p4800x-375
  drivelab run p3700-1600 --name=mix --ioengine=libaio --direct=1 --rw=randrw \\
      --rwmixread=70 --bs=4k --iodepth=16 --runtime=10 --time_based
  drivelab run job.fio p4800x-375 --output-format=json+ --output=result.json
  drivelab run job.fio p4800x-375 --csv result.csv
  drivelab run job.fio p4800x-375 p3700-1600 --runtime=5
  drivelab run --dd 'if=/dev/zero of=/dev/x bs=1M count=1024 conv=fdatasync' p3700-1600
  drivelab run job.fio 'mirror(2*p4801x-100)'
  drivelab run job.fio s2-slog --volume optavar
  drivelab run job.fio group --over-time pressure.csv --every 100ms
  drivelab run job.fio 'mirror(2*p4801x-100)' --fault script
  drivelab run job.fio 9100max-2400 --state fresh --host xeon-2017 --seed 7
  drivelab run job.fio p4800x-750 --power-limit 12W --lba-format 4096 --uptime 10min
  drivelab run job.fio p3700-1600 --runtime 10m --ambient 55C --airflow 200LFM
  drivelab run job.fio 'mirror(2*p4610-1600)' --guests 8 --host esxi-nuc")]
pub(crate) struct Args {
    /// fio job files, and drives: names (see `drivelab drives`) or paths of TOML files; several drives give one table
    #[arg(value_name = "JOBFILE|DRIVE")]
    arguments: Vec<PathBuf>,
    #[command(flatten)]
    drives: DriveArgs,
    /// Only this volume of a pool; without this option, the volumes are concatenated
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,
    /// File system of the jobs' files: ext4 or xfs, or none for the drive itself without a page cache [default: ext4
    /// for buffered I/O, otherwise none]
    #[arg(long, value_name = "NAME", value_enum)]
    filesystem: Option<FileSystemChoice>,
    /// Memory of the host for its page cache, such as 16GiB [default: that of the host]
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::memory)]
    memory: Option<u64>,
    /// I/O scheduler of the host [default: none]
    #[arg(long, value_name = "NAME", value_enum)]
    scheduler: Option<SchedulerArg>,
    #[command(flatten)]
    heat: HeatArgs,
    #[command(flatten)]
    guests: GuestArgs,
    /// Run the dd command with these operands instead of fio jobs, such as 'if=/dev/zero of=/dev/x bs=1M count=1024'
    #[arg(long, value_name = "OPERANDS")]
    dd: Option<String>,
    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = Begin::Auto)]
    state: Begin,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    seed: SeedArg,
    /// Seed for preconditioning [default: that of --seed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    warm_seed: Option<u64>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// normal, json or json+, or several separated by commas
    #[arg(long, value_name = "LIST", default_value = "normal")]
    output_format: Formats,
    /// Also write a CSV file with one line per drive, job and direction
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Also write a CSV file of the run over time: I/Os, and the gauges of drives and tiers
    #[arg(long, value_name = "FILE")]
    over_time: Option<PathBuf>,
    /// Interval of --over-time; must divide one second evenly
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = part_of_a_second)]
    every: Span,
    /// Run only this section of the job files (with the global ones); may be given several times
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Check the jobs and exit
    #[arg(long)]
    parse_only: bool,
    /// Refuse jobs that write or trim
    #[arg(long)]
    readonly: bool,
    /// Treat warnings as errors
    #[arg(long)]
    warnings_fatal: bool,
    /// When to show progress
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Eta::Auto)]
    eta: Eta,
    /// Other options of the fio program that have no effect here
    #[command(flatten)]
    ignored: IgnoredOptions,
    /// fio job options that take precedence over those of the job files
    #[arg(long = "override", hide = true, allow_hyphen_values = true)]
    overriding: Vec<String>,
    /// fio job options, as `--option=value`
    #[arg(last = true, hide = true)]
    fio: Vec<String>,
}

#[derive(clap::Args)]
struct IgnoredOptions {
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

/// File system of the jobs' files.
#[derive(Clone, Copy, ValueEnum)]
enum FileSystemChoice {
    /// ext4, with its journal in ordered mode
    Ext4,
    /// XFS with its log
    Xfs,
    /// The drive itself
    None,
}

impl FileSystemChoice {
    const fn filesystem(self) -> Option<Filesystem> {
        match self {
            FileSystemChoice::Ext4 => Some(Filesystem::Ext4),
            FileSystemChoice::Xfs => Some(Filesystem::Xfs),
            FileSystemChoice::None => None,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Eta {
    Auto,
    Always,
    Never,
}

impl IgnoredOptions {
    /// Returns the names of the given options.
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

/// Moves options of fio's jobs after a `--`, with their values joined by `=`, if the subcommand is `run`. Options
/// after a job file and before any `--name` become `--override`s.
pub(crate) fn separate(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    #[derive(clap::Parser)]
    struct RunOptions {
        #[command(flatten)]
        args: Args,
    }
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_none_or(|verb| verb != "run") {
        return arguments;
    }
    let command = RunOptions::command();
    let names = command.get_opts().filter_map(clap::Arg::get_long);
    let own: Vec<&str> = names.chain(["help", "version"]).collect();
    let valued = |name: &str| {
        let mut options = command.get_opts();
        options.any(|option| option.get_long() == Some(name) && option.get_action().takes_values())
    };
    let mut known: Vec<&str> = option_names().collect();
    known.extend(&own);
    let mut kept: Vec<OsString> = arguments.drain(..2).collect();
    let (mut fio, mut file, mut section) = (Vec::<OsString>::new(), false, false);
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
        // fio accepts one dash for two, so `-rw=read` is one of its options; `-h` and a single `-` are not.
        if option.len() == text.len() || name.len() < 2 {
            file |= text == "-" || option.len() == text.len() && !is_drive(&text);
            kept.push(argument);
            continue;
        }
        let takes = takes_value(name);
        let near = || nearest(name, known.iter().copied());
        if own.contains(&name) || takes.is_none() && near().is_some_and(|near| own.contains(&near))
        {
            kept.push(argument);
            if value.is_none() && valued(name) {
                kept.extend(rest.next());
            }
            continue;
        }
        let mut written = format!("--{option}");
        if takes == Some(true) && value.is_none() {
            let value = rest.next().unwrap_or_default();
            written = format!("--{name}={}", value.to_string_lossy());
        }
        section |= name == "name";
        if file && !section {
            kept.push(format!("--override={written}").into());
        } else {
            fio.push(written.into());
        }
    }
    if !fio.is_empty() {
        kept.push("--".into());
        kept.extend(fio);
    }
    kept
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, host, set, faults) = inputs(args)?;
    if args.parse_only {
        return Ok(());
    }
    let state = args.state.chosen(|start| start.before_jobs(&set.jobs));
    note_on_power_states_of_jobs(&drives, &host, &set.jobs);
    let scenario = |(drive, faults): (&DriveSheet, Vec<RunFault>)| Scenario {
        machine: Machine::new(drive, &host),
        state,
        work: Work::Jobs(set.jobs.clone()),
        seed: args.seed.seed,
        warm_seed: args.warm_seed,
        series_every: args.every,
        faults,
        heat: args.heat.thermal_of(drive),
    };
    let scenarios: Vec<Scenario> = drives.iter().zip(faults).map(scenario).collect();
    let bar = progress(args.eta);
    let begun = Once::new();
    let stop = Stop::on_signals()?;
    let outcomes = Lab::new().run_all(&scenarios, &|share| {
        // Preconditioning the drive does not indicate how long the jobs take.
        begun.call_once(|| bar.reset_eta());
        bar.set_position((share * 1000.0) as u64);
        stop.check()
    });
    bar.finish_and_clear();
    stop.announce();
    let mut problems = Problems::default();
    let mut done = Vec::new();
    for ((drive, scenario), outcome) in drives.iter().zip(&scenarios).zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                let several = drives.len() > 1;
                args.heat.note(drive, several, (scenario, &outcome), &stop);
                done.push((drive, outcome));
            }
            Err(more) if drives.len() == 1 => problems.0.extend(more.0),
            Err(more) => problems.0.extend(more.0.into_iter().map(|problem| Problem {
                origin: format!("{} on {}", problem.origin, drive.id),
                ..problem
            })),
        }
    }
    if !done.is_empty() {
        show(args, &host, &set, &done, drives.len() > 1)?;
    }
    // Drives that could not run the jobs are reported after the results of the others.
    problems.or(())?;
    stop.finish()
}

/// Prints remarks about a run, and what `dd` prints.
fn notes(args: &Args, set: &JobSet, drive: &DriveSheet, outcome: &Outcome, several: bool) {
    let on = match several {
        false => String::new(),
        true => format!(" on {}", drive.id),
    };
    let cluster = drive.pool_config().and_then(|it| it.cluster());
    if let Some(folded) = cluster.and_then(|it| it.fold_words()) {
        remark(&format!("note{on}"), &folded);
    }
    for name in within_ramp(&set.jobs, outcome) {
        let what =
            format!("job {name} ended within its ramp_time{on}: none of its I/Os was measured");
        remark("warning", &what);
    }
    if several {
        for what in fio::page_cache(outcome) {
            remark(&format!("note{on}"), &what);
        }
    }
    let block = args.dd.as_deref().and_then(|text| dd(text).ok());
    for what in block.iter().flat_map(|dd| fio::dd(outcome, dd.block)) {
        remark(&format!("dd{on}"), &what);
    }
    for what in fio::end_of_life(drive, outcome) {
        remark(&format!("note{on}"), &what);
    }
    let unmet = fio::unmet_latency_targets(&set.jobs, outcome);
    for what in spread_starts(&set.jobs, outcome).iter().chain(&unmet) {
        remark(&format!("note{on}"), what);
    }
}

/// Prints the results, and writes the CSV table; of `several` named drives, only one may be left.
fn show(
    args: &Args,
    host: &HostSheet,
    set: &JobSet,
    done: &[(&DriveSheet, Outcome)],
    several: bool,
) -> Result<(), Failure> {
    for (drive, outcome) in done.iter().filter(|(_, outcome)| !outcome.stopped) {
        notes(args, set, drive, outcome, several);
    }
    let names = |drive: &DriveSheet| -> Vec<String> {
        let members = drive.named_members().into_iter();
        let of_pool = members.filter(|_| drive.pool.is_some());
        of_pool.map(|(name, _)| name.to_owned()).collect()
    };
    let members: Vec<Vec<String>> = done.iter().map(|(drive, _)| names(drive)).collect();
    let reports = done
        .iter()
        .zip(&members)
        .map(|((drive, outcome), members)| Report {
            members,
            jobs: &set.jobs,
            globals: &set.globals,
            outcome,
            drive: &drive.id,
            series_every: args.every,
        });
    let reports: Vec<Report> = reports.collect();
    let text = match &reports[..] {
        [one] if !several => print(one, args.output_format),
        reports => {
            let width = output::width().filter(|_| args.output.is_none());
            print_drives(reports, args.output_format, width)
        }
    };
    let runs = done.iter().map(|(drive, outcome)| csv::Run {
        drive: &drive.id,
        host: &host.id,
        state: Start::from(args.state).before_jobs(&set.jobs),
        seed: args.seed.seed,
        jobs: &set.jobs,
        outcome,
    });
    let runs: Vec<csv::Run> = runs.collect();
    if let Some(path) = &args.csv {
        write_whole(path, csv::run(&runs).as_bytes())?;
    }
    if let Some(path) = &args.over_time {
        write_whole(path, csv::over_time(&runs).as_bytes())?;
    }
    match &args.output {
        Some(path) => write_whole(path, text.as_bytes()),
        None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
    }
}

/// The input of a run: drives, host, jobs, and the faults of each drive.
type Inputs = (Vec<DriveSheet>, HostSheet, JobSet, Vec<Vec<RunFault>>);

/// Returns the input of the run, or all its problems.
fn inputs(args: &Args) -> Result<Inputs, Problems> {
    let mut wrong = Problems::default();
    let arguments = sort(&args.arguments, "a job file", &mut wrong);
    let all_known = wrong.0.is_empty();
    let settings = Settings {
        volume: args.volume.clone(),
        ..args.drives.settings()
    };
    args.state
        .check(&args.heat.settings_without_heat(&settings), &mut wrong);
    let settings = args.heat.settings_with_air(settings);
    let drives = args
        .drives
        .read_as(&arguments.drives, &settings, &mut wrong);
    let faults = args.faults.read(&drives, &mut wrong);
    let host = catalogue::host(&args.host)
        .and_then(|host| with_memory(args.memory, host))
        .and_then(|host| with_scheduler(args.scheduler, &drives, host));
    let cores = host.as_ref().map_or(1, |host| host.config.cores);
    let set = match all_known {
        true => jobs(args, &arguments.files, cores),
        // The unknown argument may be the jobs.
        false => Err(Problems::default()),
    };
    let set = set.and_then(|mut set| read_iologs(&mut set.jobs).map(|()| set));
    let set = set.map(|mut set| {
        if let Some(place) = args.filesystem {
            in_filesystem(&mut set, place.filesystem());
        }
        set
    });
    let set = set.and_then(|set| args.guests.split(set, &drives));
    let outputs = output::requested_files([
        ("--output", &args.output),
        ("--csv", &args.csv),
        ("--over-time", &args.over_time),
    ]);
    let files: Vec<&Path> = arguments.files.iter().map(PathBuf::as_path).collect();
    match (host, set) {
        (Ok(host), Ok(set)) if wrong.0.is_empty() => {
            output::problems(&outputs, &files).or(())?;
            tell_cut(args, &drives, &set)?;
            Ok((drives, host, set, faults))
        }
        (host, set) => {
            let more = [
                host.err(),
                set.err(),
                Some(output::problems(&outputs, &files)),
            ];
            wrong
                .0
                .extend(more.into_iter().flatten().flat_map(|one| one.0));
            Err(wrong)
        }
    }
}

/// Returns the options of the `dd` command, if there is one.
fn dd_of(args: &Args, files: &[PathBuf]) -> Result<Option<Dd>, Problems> {
    let Some(operands) = &args.dd else {
        return Ok(None);
    };
    if !args.fio.is_empty() || !files.is_empty() || !args.overriding.is_empty() {
        let mut problems = Problems::whole("--dd", "dd and fio jobs exclude each other");
        problems.0[0].help = Some("one of the two".into());
        return Err(problems);
    }
    dd(operands).map(Some)
}

/// Warns about jobs whose range a drive truncates, and about those that take more than 10^9 I/Os.
fn tell_cut(args: &Args, drives: &[DriveSheet], set: &JobSet) -> Result<(), Problems> {
    let mut wrong = Problems::default();
    for drive in drives {
        for what in workload::long_passes(&set.jobs, drive.capacity) {
            remark("note", &format!("{}: {what}", drive.id));
        }
        for what in workload::cut(&set.jobs, drive.capacity) {
            remark("warning", &format!("{}: {what}", drive.id));
            if args.warnings_fatal {
                wrong.0.extend(Problems::whole(&drive.id, what).0);
            }
        }
    }
    wrong.or(())
}

/// Returns the jobs of the arguments; warnings are written to standard error.
fn jobs(args: &Args, files: &[PathBuf], cores: u16) -> Result<JobSet, Problems> {
    let dd = dd_of(args, files)?;
    for what in dd.iter().flat_map(|dd| &dd.notes) {
        remark("warning", what);
    }
    let options = dd.map_or_else(|| args.fio.clone(), |dd| dd.options);
    if options.is_empty() && files.is_empty() {
        let what =
            "there is no job: give a job file, or options such as --rw=randread --bs=4k --size=1g";
        return Err(Problems::whole("command line", what));
    }
    let surroundings = Surroundings {
        environment: &|name| std::env::var(name).ok(),
        read: &|path| {
            let path = match path == Path::new("-") {
                true => Path::new("/dev/stdin"),
                false => path,
            };
            bounded::bytes(path, bounded::WRITTEN)
        },
        processors: cores.into(),
    };
    let mut set = read_overridden(
        &options,
        files,
        &args.overriding,
        &args.section,
        &surroundings,
    )?;
    let ignored = args.ignored.given();
    if !ignored.is_empty() {
        let warning = format!(
            "ignored (no effect in a simulation): {}",
            ignored.join(", ")
        );
        set.warnings.insert(0, warning);
    }
    for warning in &set.warnings {
        remark("warning", warning);
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

/// Returns the names of jobs that counted nothing because their ramp was longer than the job.
fn within_ramp<'a>(jobs: &'a [Job], outcome: &'a Outcome) -> impl Iterator<Item = &'a str> {
    let jobs = jobs.iter().enumerate();
    let ramped = jobs.filter(|(_, job)| job.ramp_time > Span::ZERO);
    let uncounted = ramped.filter(|(index, _)| {
        let threads = outcome.threads.iter().filter(|thread| thread.job == *index);
        let mut ios = threads.map(|it| it.read.ios + it.write.ios + it.trim.ios);
        ios.all(|ios| ios == 0)
    });
    uncounted.map(|(_, job)| job.name.as_str())
}

/// Shows progress on standard error, if it is visible to a user.
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
