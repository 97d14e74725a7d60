//! `drivelab act`: Aerospike's certification test on drives.

use std::io::{self, Write};
use std::path::PathBuf;

use catalogue::{DriveSheet, HostSheet};
use lab::act::{ActResult, Score};
use lab::{Lab, Scenario, to_the_end};
use model::Span;
use rayon::prelude::*;
use report::csv;
use study::act::{
    ActOptions, CORES, DURATIONS, HOST, LOADS, QUEUES, SERVICE_THREADS, SLICES, THREADS_PER_QUEUE,
    Version, WARM_UPS,
};
use text::problem::Problems;
use text::terminal::paragraph;

use crate::drive::DriveArgs;
use crate::failure::{Failure, on_command_line};
use crate::output::{self, Format, write_whole};
use crate::progress::Progress;
use crate::seed::SeedArg;
use crate::state::{State, note_on_heat};
use crate::stop::ImmediateStop;

/// Aerospike's certification test (ACT): the highest load that a drive passes, or the verdict at one load
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab act p4800x-375 p3700-1600 9100max-2400      the score of each: the highest load passed
  drivelab act p3700-1600 --load 30                    one load; exit code 3 if it fails
  drivelab act p4800x-750 --act-version 3              as of 2017: queues, latency from the queue
  drivelab act p3700-1600 --config act_storage.conf    a configuration file of ACT
  drivelab act p3700-1600 --load 30 --log act.log      a log that ACT's act_latency.py reads
  drivelab act p3700-1600 --json | jq '.drives[0].score'

A load of 1x is, per second, 2,000 reads of 1,536 B, 23.53 reads of 128 KiB and 23.53 writes of 128 KiB. A run passes \
if two conditions are met. In every slice, fewer than 5 % of its reads exceed 1 ms, fewer than 1 % exceed 8 ms and \
fewer than 0.1 % exceed 64 ms. The large reads and writes keep their rates. The score is found by bisection, to 1x.

Exit codes: 0 done or passed, 2 bad usage or bad input, 3 a given load failed.")]
pub(crate) struct Args {
    /// Names of drives (see `drivelab drives`) or paths of their TOML files
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Run only this load, a multiple of 1x, instead of searching for the score
    #[arg(long, value_name = "X", conflicts_with = "config", value_parser = load)]
    load: Option<f64>,

    /// Run only this configuration file of ACT (`act_storage.conf`, or version 3's `actconfig.txt`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// 3: queues and threads, latency from the queue, as in 2017; 6: service threads, latency from issue, O_DSYNC
    /// [default: 6, or determined by the keys of the configuration file]
    #[arg(long, value_name = "VERSION", value_parser = ["3", "6"])]
    act_version: Option<String>,

    /// Number of transaction queues in version 3 [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "config", value_parser = clap::value_parser!(u16).range(QUEUES))]
    queues: Option<u16>,

    /// Threads per queue in version 3 [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "config", value_parser = clap::value_parser!(u16).range(THREADS_PER_QUEUE))]
    threads_per_queue: Option<u16>,

    /// Number of service threads in version 6 [default: five per core]
    #[arg(long, value_name = "N", conflicts_with = "config", value_parser = clap::value_parser!(u16).range(SERVICE_THREADS))]
    service_threads: Option<u16>,

    /// Seconds to simulate at each load [default: 10, or the configuration file's test-duration-sec]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(DURATIONS))]
    duration: Option<u32>,

    /// Seconds at the start that are excluded from the results
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(WARM_UPS))]
    warm_up: u32,

    /// Length of a slice of the verdict, in seconds; the whole run if it is shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u32).range(SLICES))]
    slice: u32,

    /// Judge only latency, as version 3.0 of 2017 did, which did not check the rate of large blocks
    #[arg(long)]
    latency_only: bool,

    /// Host of the drives: a name or the path of a TOML file with an `[act]` section
    #[arg(long, default_value = HOST)]
    host: String,

    /// Number of cores for ACT's threads [default: all cores of the host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(CORES))]
    cores: Option<u16>,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    #[command(flatten)]
    seed: SeedArg,

    /// Format of the results
    #[arg(long, alias = "format", value_enum, default_value_t = Format::Normal)]
    output_format: Format,

    /// Print JSON: equivalent to --output-format json
    #[arg(long, conflicts_with = "output_format")]
    json: bool,

    /// Also write a CSV file with one line per drive and kind of request
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write the run, or the run of the score, as a log in ACT's format; for one drive
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn load(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(load) if LOADS.contains(&load) => Ok(load),
        _ => Err(String::from("a number from 0.001 to 10000, such as 30")),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let plans = prepare(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let one = test_parameters(args).is_one_run();
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let results: Vec<Result<(ActResult, Option<Score>), Problems>> = plans
        .par_iter()
        .with_max_len(1)
        .map(|plan| {
            let told = |passes: u32, fails: Option<u32>| {
                bar.message(match fails {
                    None => format!("{}: passes {passes}x", plan.machine.name()),
                    Some(fails) => {
                        format!("{}: between {passes}x and {fails}x", plan.machine.name())
                    }
                });
            };
            study::act::run(&lab, plan, one, &told, &to_the_end)
        })
        .collect();
    bar.finish();
    let mut rows = Vec::new();
    let mut problems = Problems::default();
    for (plan, result) in plans.into_iter().zip(results) {
        match result {
            Ok((tested, score)) => rows.push(report::act::ActRow {
                scenario: plan,
                tested,
                score,
            }),
            Err(more) => problems.0.extend(more.0),
        }
    }
    problems.or(())?;
    stop.results(|| {
        if let (Some(path), Some(row)) = (&args.log, rows.first()) {
            write_whole(
                path,
                report::act::log(&row.scenario, &row.tested).as_bytes(),
            )?;
        }
        if let Some(path) = &args.csv {
            write_whole(path, csv::act(&rows).as_bytes())?;
        }
        print(args, &rows)
    })?;
    let failed: Vec<&str> = rows
        .iter()
        .filter(|row| row.failed())
        .map(|row| row.scenario.machine.name())
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Verdict(format!("{} failed", failed.join(", "))))
    }
}

fn print(args: &Args, rows: &[report::act::ActRow]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if args.json || args.output_format == Format::Json {
        writeln!(out, "{:#}", report::act::json(rows))?;
        return Ok(());
    }
    let width = output::width();
    if let Some(first) = rows.first() {
        let conditions = report::act::conditions(first);
        writeln!(out, "{}\n", paragraph("", &conditions, width))?;
    }
    writeln!(out, "{}\n", report::act::table(rows, width))?;
    writeln!(out, "{}", report::act::verdicts(rows, width))?;
    write!(out, "{}", report::act::anatomy(rows, width))?;
    Ok(())
}

/// Returns a plan for each drive, or all problems of the arguments at once.
fn prepare(args: &Args) -> Result<Vec<Scenario>, Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    args.state.check(&args.drives.settings(), &mut problems);
    note_on_heat(&args.drives.settings());
    let mut wrong = |what: String, help: &str| problems.0.push(on_command_line(what, help));
    let named = args.drives.names(&args.arguments).len();
    if args.log.is_some() && named > 1 {
        wrong(
            format!("--log with {named} drives"),
            "a log is of one run: give one drive",
        );
    }
    let version = args.act_version.as_deref();
    if version == Some("3") && args.service_threads.is_some() {
        wrong(
            "--service-threads with version 3".into(),
            "--queues and --threads-per-queue",
        );
    }
    if version != Some("3") && (args.queues.is_some() || args.threads_per_queue.is_some()) {
        wrong(
            "--queues and --threads-per-queue without --act-version 3".into(),
            "add --act-version 3",
        );
    }
    let outputs = output::requested_files([("--log", &args.log), ("--csv", &args.csv)]);
    let read = args.config.as_deref();
    problems
        .0
        .extend(output::problems(&outputs, read.as_slice()).0);
    let asked = test_parameters(args);
    let host = asked.host(&args.host).unwrap_or_else(|more| {
        problems.0.extend(more.0);
        HostSheet::default()
    });
    let config = match asked.config(host.config.cores) {
        Ok(config) => Some(config),
        Err(more) => {
            problems.0.extend(more.0);
            None
        }
    };
    let plans = config.iter().flat_map(|config| {
        let (asked, host) = (&asked, &host);
        let plan = move |sheet: &DriveSheet| {
            asked.plan(sheet, host, config, args.state.into(), args.seed.seed)
        };
        drives.iter().map(plan)
    });
    let plans = plans.collect();
    problems.or(plans)
}

/// Returns the parameters of the test.
fn test_parameters(args: &Args) -> ActOptions {
    ActOptions {
        load: args.load,
        config: args.config.clone(),
        version: args.act_version.as_deref().map(|version| match version {
            "3" => Version::Three,
            _ => Version::Six,
        }),
        queues: args.queues,
        threads_per_queue: args.threads_per_queue,
        service_threads: args.service_threads,
        duration: args.duration.map(seconds),
        warm_up: seconds(args.warm_up),
        slice: seconds(args.slice),
        latency_only: args.latency_only,
        cores: args.cores,
    }
}

fn seconds(count: u32) -> Span {
    Span::from_ms(u64::from(count) * 1_000)
}
