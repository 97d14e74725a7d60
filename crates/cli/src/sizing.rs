//! `drivelab size`: how large a log or a read cache should be.

use std::path::PathBuf;

use catalogue::DriveSheet;
use clap::ValueEnum;
use lab::Lab;
use report::{csv, decide};
use study::decide::size::{self, Answer, Request};
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load};
use study::review::Workload;
use text::problem::Problems;
use text::quantity::{Rate, quantity};

use crate::drive::{DriveArgs, load as load_drive};
use crate::failure::{Failure, on_command_line};
use crate::limit::{self, taken};
use crate::load::{LoadArgs, OF_A_LOG};
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::stop::AtOnce;

/// How large a pool's log or read cache should be: by the rule, and simulated at several sizes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab size slog p4801x-100 --main 'raidz(6*exos-x18-16tb; parity=2)' \\
      --inbound 10GbE --load nfs-sync
  drivelab size slog p4801x-100 p1600x-58 --main exos-x18-16tb --load wal --slo 'p99<5ms'
  drivelab size read-cache p4800x-375 --main exos-x18-16tb --trace vm.vscsi.xz --csv hits.csv

Exit codes: 0 done, 2 bad usage or bad input, 3 no size of some drive is within all limits.")]
pub(crate) struct Args {
    /// What is to be sized
    #[arg(value_enum, value_name = "PLACE")]
    place: Place,

    /// The drives in that place: names, paths of TOML files; a log may be a mirror, such as 'mirror(2*p4801x-100)'
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// The drives behind, such as 'raidz(6*exos-x18-16tb; parity=2)'
    #[arg(long, value_name = "EXPR")]
    main: String,

    /// Of a slog: what comes in at most, as a network (10GbE) or a rate (800MB/s), for the rule
    #[arg(long, value_name = "RATE", value_parser = inbound)]
    inbound: Option<Rate>,

    #[command(flatten)]
    load: LoadArgs,

    /// Limits, such as p99<1ms (see `drivelab max --help`)
    #[arg(long, value_name = "LIMITS")]
    slo: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file: a line for each drive and size
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// What is to be sized.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// The log of a pool that ZFS keeps, for synchronous writes
    Slog,
    /// A cache of what is read, over a trace
    ReadCache,
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Place::Slog => "slog",
            Place::ReadCache => "read-cache",
        }
    }
}

/// A network's rate, or one of bytes.
fn inbound(text: &str) -> Result<Rate, String> {
    let network = text
        .strip_suffix("GbE")
        .and_then(|it| it.parse::<f64>().ok());
    let rate = match network {
        Some(gigabits) => Rate(gigabits * 125e6),
        None => quantity::<Rate>(text)?,
    };
    match (1e6..=1e12).contains(&rate.0) {
        true => Ok(rate),
        false => Err(String::from(
            "from 1MB/s to 1TB/s, such as 10GbE or 800MB/s",
        )),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (pools, request) = read(args)?;
    let stop = AtOnce::on_signals()?;
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let lab = Lab::new();
    let (mut answers, mut problems) = (Vec::new(), Problems::default());
    for (name, pool) in &pools {
        bar.message(name.clone());
        let answer = match (&args.place, &request.load.yours().workload) {
            (Place::Slog, _) => size::log(name, pool, &request, &lab),
            (Place::ReadCache, Workload::Trace(trace)) => {
                size::read_cache(name, pool, (&request, trace), &lab)
            }
            (Place::ReadCache, Workload::Jobs(_)) => Err(no_trace()),
        };
        match answer {
            Ok(answer) => answers.push(answer),
            Err(more) => problems.0.extend(limit::of_drive(more, name)),
        }
    }
    bar.finish();
    problems.or(())?;
    stop.results(|| print(args, &request, &answers))?;
    let limited = !request.slo.limits.is_empty();
    let missed = answers
        .iter()
        .filter(|one| limited && one.meets_bytes.is_none());
    let missed: Vec<&str> = missed.map(|one| &*one.drive).collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Verdict(format!(
            "{}: no size within all limits",
            missed.join(", ")
        ))),
    }
}

fn no_trace() -> Problems {
    Problems(vec![on_command_line(
        "size read-cache: there is no trace",
        "--trace FILE: what is read again is in it, and in no job file",
    )])
}

fn print(args: &Args, request: &Request, answers: &[Answer]) -> Result<(), Failure> {
    let command = limit::command();
    if let Some(path) = &args.csv {
        write_whole(path, csv::decide::size(answers).as_bytes())?;
    }
    let sentences = answers.iter().map(|one| decide::size::answer(request, one));
    limit::tell(
        args.json
            .then(|| decide::size::json(request, answers, &command)),
        &sentences.collect::<Vec<_>>(),
        |width| decide::size::table(answers, width),
        |width| decide::size::method(request, answers, &command, width),
    )
}

/// The pools, each by the drive that is in that place of it, and what is asked.
fn read(args: &Args) -> Result<(Vec<(String, DriveSheet)>, Request), Problems> {
    let mut problems = Problems::default();
    let settings = args.drives.settings();
    let names = args.drives.named(&args.arguments, &mut problems);
    let mut pools = Vec::new();
    for name in names {
        let expression = study::decide::choose::in_place(args.place.name(), &name, &args.main);
        if let Some(sheet) = taken(load_drive(&expression, &settings), &mut problems) {
            pools.push((name, sheet));
        }
    }
    let (load, conditions) = args.load.read(OF_A_LOG, &mut problems);
    args.load.state.check(&settings, &mut problems);
    let slo = match &args.slo {
        None => Slo::default(),
        Some(text) => taken(Slo::read(text), &mut problems).unwrap_or_default(),
    };
    let load = wanted(args, load, &mut problems);
    let inputs = [args.load.job.as_deref(), args.load.trace.as_deref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let outputs = output::asked([("--csv", &args.csv)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    match load {
        Some(load) if problems.0.is_empty() => Ok((pools, request(args, load, slo, conditions))),
        _ => Err(problems),
    }
}

/// The load, if it is of the kind that the place needs.
fn wanted(args: &Args, load: Option<Load>, problems: &mut Problems) -> Option<Load> {
    if args.place == Place::ReadCache && args.load.trace.is_none() {
        problems.0.extend(no_trace().0);
    }
    if args.place == Place::ReadCache && args.inbound.is_some() {
        problems.0.push(on_command_line(
            "--inbound is of a slog: a read cache is sized by what is read again",
            "leave it out",
        ));
    }
    let none = [&args.load.job, &args.load.trace]
        .iter()
        .all(|it| it.is_none());
    if args.place == Place::Slog && none && args.load.load.is_none() {
        problems.0.push(on_command_line(
            "size slog: there is no load",
            "--load nfs-sync (or wal), --job FILE or --trace FILE",
        ));
    }
    load
}

fn request(args: &Args, load: Load, slo: Slo, conditions: Conditions) -> Request {
    Request {
        load,
        slo,
        inbound: args.inbound.map(|rate| rate.0),
        conditions,
    }
}
