//! `drivelab replay`: a block trace on one or several drives.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalogue::HostSheet;
use clap::ValueEnum;
use lab::faults::RunFault;
use lab::{Lab, Machine, SPEEDS, Scenario, Start, TraceReplay, Work};
use report::csv;
use text::problem::{Problem, Problems, nearest};
use workload::replay::{OutOfRangePolicy, Pace};
use workload::trace::{self, Columns, FORMATS, Options, Trace};

use crate::drive::{DriveArgs, sort};
use crate::failure::{Failure, on_command_line};
use crate::fault::FaultArgs;
use crate::idle::note_on_power_states;
use crate::output::{self, Format, write_whole};
use crate::progress::Progress;
use crate::seed::SeedArg;
use crate::state::Begin;
use crate::stop::Stop;

/// Text after the options, before and after the formats.
const EXAMPLES: &str = "\
Examples:
  drivelab replay sda.blktrace.0 p4800x-375 p3700-1600
  drivelab replay hm_0.csv.gz p3700-1600 --speed 4           four times as fast
  drivelab replay hm_0.csv.gz p3700-1600 --depth 32          as fast as a queue depth of 32 allows
  drivelab replay vm.vscsi.xz p4800x-375 --beyond wrap       a larger disk's trace
  drivelab replay io.csv p3700-1600 --columns time=1,op=3,offset=4,size=5 --time-unit us
  drivelab replay tpcc.trace p4800x-375 --format mqsim --volume 4
  drivelab replay log p4800x-375 --output-format json | jq .drives[0].read

Formats, recognised by content unless --format names one; plain, gzip or xz:
";

const NOTES: &str = "
Latency counts from the recorded arrival of a request, so it includes the queueing of a drive that cannot keep up. \
Several volumes of a trace are concatenated on the drive. Lengths are rounded up to whole blocks; requests of length \
zero are left out. A percentile is shown if at least ten samples exceed it.";

/// Replay a block trace on drives: as recorded, faster or slower, or as fast as a queue depth allows
#[derive(clap::Args)]
#[command(override_usage = "drivelab replay <TRACE> <DRIVE>... [OPTIONS]")]
#[command(after_help = after_help())]
pub(crate) struct Args {
    /// The trace, plain or compressed with gzip or xz, and drives: names (see `drivelab drives`) or paths of TOML
    /// files
    #[arg(value_name = "TRACE|DRIVE")]
    arguments: Vec<PathBuf>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Format of the trace [default: detected from its content]
    #[arg(long)]
    format: Option<String>,

    /// Columns of a text, counted from 1: time, op, offset, size, and sector, sectors, volume, latency
    #[arg(long, value_name = "LIST")]
    columns: Option<String>,

    /// Unit of the times in --columns: s, ms, us or ns
    #[arg(long, value_name = "UNIT", requires = "columns")]
    time_unit: Option<String>,

    /// Replay at recorded times, this many times as fast
    #[arg(long, value_name = "X", conflicts_with = "depth", value_parser = speed)]
    speed: Option<f64>,

    /// Ignore recorded times and keep this many requests outstanding
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    depth: Option<u32>,

    /// Requests beyond the end of the drive: refuse the trace, or wrap their addresses around
    #[arg(long, value_enum, default_value_t = BeyondArg::Refuse)]
    beyond: BeyondArg,

    /// Replay only this volume (device, disk, LUN, file) of the trace
    #[arg(long)]
    volume: Option<String>,

    /// Replay only the first N requests of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,

    /// Threads that issue the requests in turn [default: one per core, at most one per unit of --depth]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = Begin::Auto)]
    state: Begin,

    #[command(flatten)]
    faults: FaultArgs,

    #[command(flatten)]
    seed: SeedArg,

    /// Format of the results
    #[arg(long, value_enum, default_value_t = Format::Normal)]
    output_format: Format,

    /// Also write a CSV file with one line per drive and kind of request
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn after_help() -> String {
    let formats: String = FORMATS
        .iter()
        .map(|format| format!("  {:<8}  {}\n", format.name, format.about))
        .collect();
    format!("{EXAMPLES}{formats}{NOTES}")
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BeyondArg {
    Refuse,
    Wrap,
}

impl From<BeyondArg> for OutOfRangePolicy {
    fn from(arg: BeyondArg) -> OutOfRangePolicy {
        match arg {
            BeyondArg::Refuse => OutOfRangePolicy::Refuse,
            BeyondArg::Wrap => OutOfRangePolicy::Wrap,
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().map_err(|_| String::from("not a number"))?;
    if SPEEDS.contains(&speed) {
        Ok(speed)
    } else {
        Err(format!(
            "must be from {:e} to {:e}",
            SPEEDS.start(),
            SPEEDS.end()
        ))
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let ReplayInputs {
        trace,
        format,
        columns,
        host,
        machines,
        faults,
    } = prepare(args)?;
    let options = Options {
        format,
        columns,
        volume: args.volume.clone(),
        first: args.first,
        ..Options::default()
    };
    let bar = Progress::new("{msg:10} [{wide_bar}] {percent:>3} % {elapsed}");
    bar.message("reading".into());
    let trace = Arc::new(trace::read(&trace, &options)?);
    let pace = pace(args, &trace)?;
    let state = args.state.chosen(|start| start.before(false));
    let scenario = |(machine, faults): (&Machine, Vec<RunFault>)| {
        let replay = TraceReplay {
            threads: args.threads,
            pace,
            beyond: args.beyond.into(),
            ..TraceReplay::new(Arc::clone(&trace))
        };
        Scenario {
            faults,
            ..Scenario::new(machine.clone(), state, Work::Trace(replay), args.seed.seed)
        }
    };
    let scenarios: Vec<Scenario> = machines.iter().zip(faults).map(scenario).collect();
    bar.message("replaying".into());
    let stop = Stop::on_signals()?;
    let results = Lab::new().run_all(&scenarios, &|share| {
        bar.share(share);
        stop.check()
    });
    bar.finish();
    stop.announce();
    let mut rows = Vec::new();
    let mut problems = Problems::default();
    for (machine, result) in machines.iter().zip(results) {
        match result {
            Ok(outcome) => rows.extend(report::replay::ReplayRow::new(machine.name(), outcome)),
            Err(more) => problems.0.extend(more.0),
        }
    }
    if !rows.is_empty() {
        show(args, &trace, &host, pace, &rows)?;
    }
    // Drives that could not replay it are reported after the results of the others.
    problems.or(())?;
    stop.finish()
}

/// Returns the pace by the arguments; a trace without times has no pace of its own.
fn pace(args: &Args, trace: &Trace) -> Result<Pace, Problems> {
    match (args.depth, args.speed) {
        (Some(depth), _) => Ok(Pace::Depth(depth)),
        (None, Some(_)) if !trace.timed => Err(Problems::whole(
            "command line",
            "--speed: the trace has no times; use --depth to set how fast it is replayed",
        )),
        (None, Some(speed)) => Ok(Pace::Recorded(speed)),
        (None, None) => Ok(Pace::for_trace(trace)),
    }
}

/// Prints the results, and writes the CSV table.
fn show(
    args: &Args,
    trace: &Trace,
    host: &str,
    pace: Pace,
    rows: &[report::replay::ReplayRow],
) -> Result<(), Failure> {
    if let Some(path) = &args.csv {
        let replay = csv::ReplayTable {
            rows,
            source: &trace.origin,
            host,
            state: Start::from(args.state).before(false),
            pace,
            seed: args.seed.seed,
        };
        write_whole(path, csv::replay(&replay).as_bytes())?;
    }
    let mut out = io::stdout().lock();
    if args.output_format == Format::Json {
        let json = report::replay::json(rows, trace, pace, args.seed.seed);
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    writeln!(out, "{}\n", report::replay::trace_lines(trace))?;
    let width = output::width();
    writeln!(out, "{}\n", report::replay::table(rows, width))?;
    let singles = report::replay::single_latencies(rows, width);
    if !singles.is_empty() {
        writeln!(out, "{singles}")?;
    }
    writeln!(out, "{}", report::replay::drives_table(rows, width))?;
    write!(out, "{}", report::replay::anatomy(rows, width))?;
    write!(out, "{}", report::replay::between_faults(rows, width))?;
    for note in report::replay::notes(rows, trace) {
        writeln!(out, "\nnote: {note}")?;
    }
    Ok(())
}

/// The parsed arguments.
struct ReplayInputs {
    trace: PathBuf,
    /// Format and columns, if given.
    format: Option<&'static trace::Format>,
    columns: Option<Columns>,
    /// Name of the host.
    host: String,
    /// Each drive in the host.
    machines: Vec<Machine>,
    /// Faults of each drive.
    faults: Vec<Vec<RunFault>>,
}

/// Reads the arguments, or returns all their problems at once.
fn prepare(args: &Args) -> Result<ReplayInputs, Problems> {
    let mut problems = Problems::default();
    let sorted = sort(&args.arguments, "a trace", &mut problems);
    let unknown = problems.0.len();
    let drives = args.drives.read(&sorted.drives, &mut problems);
    let faults = args.faults.read(&drives, &mut problems);
    args.state.check(&args.drives.settings(), &mut problems);
    let files: Vec<&Path> = sorted.files.iter().map(PathBuf::as_path).collect();
    if let Some(what) = not_one(&files).filter(|_| unknown == 0) {
        let help = "give one trace, and the drives to replay it on";
        problems.0.push(on_command_line(what, help));
    }
    let format = args.format.as_deref().and_then(|name| {
        let format = trace::Format::named(name);
        if format.is_none() {
            problems.0.push(unknown_format(name));
        }
        format
    });
    let columns = columns(args, format).unwrap_or_else(|more| {
        problems.0.extend(more.0);
        None
    });
    let outputs = output::requested_files([("--csv", &args.csv)]);
    problems.0.extend(output::problems(&outputs, &files).0);
    let host = catalogue::host(&args.host).unwrap_or_else(|more| {
        problems.0.extend(more.0);
        HostSheet::default()
    });
    note_on_power_states(&drives, &host);
    let machines = drives
        .iter()
        .map(|sheet| Machine::new(sheet, &host))
        .collect();
    problems.or(ReplayInputs {
        trace: files.first().map(PathBuf::from).unwrap_or_default(),
        format,
        columns,
        host: host.id,
        machines,
        faults,
    })
}

/// Returns why this is not one trace.
fn not_one(files: &[&Path]) -> Option<String> {
    match files {
        [_] => None,
        [] => Some(String::from("no trace is named")),
        several => {
            let names: Vec<String> = several.iter().map(|it| it.display().to_string()).collect();
            Some(format!("{} traces: {}", names.len(), names.join(", ")))
        }
    }
}

/// Parses `--columns`.
fn columns(args: &Args, format: Option<&trace::Format>) -> Result<Option<Columns>, Problems> {
    let Some(list) = &args.columns else {
        return Ok(None);
    };
    if let Some(other) = format.filter(|format| format.name != "csv") {
        let what = format!("--columns: the format {} has fixed columns", other.name);
        return Err(Problems::whole("command line", what));
    }
    Columns::new(list, args.time_unit.as_deref()).map(Some)
}

fn unknown_format(name: &str) -> Problem {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let near = nearest(name, names.iter().copied());
    on_command_line(
        format!("--format: there is no trace format `{name}`"),
        near.map_or_else(
            || format!("the formats are {}", names.join(", ")),
            |near| format!("did you mean `{near}`?"),
        ),
    )
}
