//! `drivelab size`: size of a log, a write buffer or a read cache.

use std::path::PathBuf;

use catalogue::DriveSheet;
use clap::ValueEnum;
use lab::Lab;
use model::Span;
use report::decide::view;
use study::decide::choose::of_clients;
use study::decide::profile::Profile;
use study::decide::size::{self as sizes, Busy, SizeRequest};
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load, OF_A_LOG};
use study::review::Workload;
use text::problem::Problems;
use text::quantity::{Rate, quantity};

use crate::answer::{self, collect_problems};
use crate::choose::no_log;
use crate::drive::{DriveArgs, load as load_drive};
use crate::each::map_drives;
use crate::failure::{Failure, on_command_line};
use crate::load::LoadArgs;
use crate::output;
use crate::profile::profile;
use crate::size::size;
use crate::stop::ImmediateStop;
use crate::zil;

/// Size of a pool's log, write buffer or read cache: by a rule, and simulated at several sizes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab size slog p4801x-100 --main 'raidz(6*exos-x18-16tb; parity=2)' \\
      --inbound 10GbE --load nfs-sync
  drivelab size slog p4801x-100 p1600x-58 --main exos-x18-16tb --load wal --slo 'p99<5ms'
  drivelab size vsan-cache p5800x-400 d7-p5600-1600 --capacity '3*d7-p5510-3840' \\
      --profile 4k70r --working-set 100GB --lasts '30 min' --failed-node-of 4
  drivelab size read-cache p4800x-375 --main exos-x18-16tb --trace vm.vscsi.xz --csv hits.csv

Exit codes: 0 done, 2 bad usage or bad input, 3 no size of some drive is within all limits.")]
pub(crate) struct Args {
    /// Part of the pool to size
    #[arg(value_enum, value_name = "PLACE")]
    place: PoolPlace,

    /// Drives for this part: names, paths of TOML files; a log may be a mirror, such as 'mirror(2*p4801x-100)'
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Main pool (for slog and read-cache), such as 'raidz(6*exos-x18-16tb; parity=2)'
    #[arg(long, value_name = "EXPR")]
    main: Option<String>,

    /// Capacity tier (for vsan-cache), such as '3*d7-p5510-3840'
    #[arg(long, value_name = "EXPR")]
    capacity: Option<String>,

    /// Load in HCIBench's notation (for vsan-cache): 4k70r is random 4 KiB with 70 % reads
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["job", "trace", "load"], value_parser = profile)]
    profile: Option<Profile>,

    /// Working set (for vsan-cache): the data that is read and overwritten, such as 100GB
    #[arg(long, value_name = "SIZE", value_parser = working_set)]
    working_set: Option<WorkingSet>,

    /// Duration of the load (for vsan-cache) [default: 30 min]
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    lasts: Option<Span>,

    /// Maximum write rate (for vsan-cache), such as 200MB/s [default: unlimited, at queue depth 32]
    #[arg(long, value_name = "RATE", value_parser = inbound)]
    writes: Option<Rate>,

    /// One of this number of nodes has failed (for vsan-cache): each other node has N/(N-1) of its working set and
    /// writes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    failed_node_of: Option<u32>,

    /// The load overwrites existing files (for slog); by default clients write new files
    #[arg(long)]
    overwrite: bool,

    /// Maximum incoming rate (for slog), as a network (10GbE) or a rate (800MB/s), for the rule
    #[arg(long, value_name = "RATE", value_parser = inbound)]
    inbound: Option<Rate>,

    /// slog: text of `zilstat -i 1` or of `zpool iostat -w`, `-r` or `-q` of your pool. If nothing was logged, you
    /// need no log. Otherwise the busiest interval of zilstat is the incoming rate for the rule
    #[arg(long, value_name = "FILE", conflicts_with = "inbound")]
    zilstat: Option<PathBuf>,

    #[command(flatten)]
    load: LoadArgs,

    /// Limits, such as p99<1ms (see `drivelab max --help`)
    #[arg(long, value_name = "LIMITS")]
    slo: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per drive and size
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: each figure by size, with the limits
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Default duration of a load on a write buffer: HCIBench's warm-up.
const LASTS: Span = Span::from_ms(1_800_000);

/// Part of a pool to size.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PoolPlace {
    /// Log of a ZFS pool, for synchronous writes
    Slog,
    /// Write buffer of a vSAN disk group
    #[value(alias = "cache")]
    VsanCache,
    /// Read cache, for a trace
    ReadCache,
}

impl PoolPlace {
    const fn name(self) -> &'static str {
        match self {
            PoolPlace::Slog => "slog",
            PoolPlace::VsanCache => "vsan-cache",
            PoolPlace::ReadCache => "read-cache",
        }
    }
}

/// A size with its text.
#[derive(Clone)]
struct WorkingSet {
    bytes: u64,
    asked: String,
}

fn working_set(text: &str) -> Result<WorkingSet, String> {
    Ok(WorkingSet {
        bytes: size(text)?,
        asked: text.to_owned(),
    })
}

/// Parses a network's rate, or a rate in bytes.
fn inbound(text: &str) -> Result<Rate, String> {
    let network = text
        .strip_suffix("GbE")
        .and_then(|it| it.parse::<f64>().ok());
    let rate = match network {
        Some(gigabits) => Rate(gigabits * 125e6),
        None => quantity::<Rate>(text)
            .map_err(|what| format!("{what}; a network is written as 1GbE or 10GbE"))?,
    };
    match (1e6..=1e12).contains(&rate.0) {
        true => Ok(rate),
        false => Err(String::from(
            "from 1MB/s to 1TB/s, such as 10GbE or 800MB/s",
        )),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let zil = zil::read(args.zilstat.as_deref(), args.place == PoolPlace::Slog)?;
    let (pools, mut request, busy) = read(args)?;
    if zil::is_answer(
        zil.as_ref(),
        args.json,
        &[("--csv", &args.csv), ("--output", &args.output)],
    )? {
        return Ok(());
    }
    let files = [("--csv", &args.csv), ("--output", &args.output)];
    let sheets = pools.iter().map(|(_, sheet)| sheet);
    // With a rate for the rule, the rule is asked for too.
    let is_log_alone = args.place == PoolPlace::Slog && args.inbound.is_none();
    let syncs = is_log_alone
        .then(|| no_log::of_load(&request.load, sheets))
        .flatten();
    if no_log::is_answer(&request.load, syncs, args.json, &files)? {
        return Ok(());
    }
    request.inbound = zil.and_then(|zil| zil.rate()).or(request.inbound);
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let results = map_drives(
        &pools,
        |(name, _)| name,
        |(name, pool), go_on| match (&busy, &request.load.user_workload().workload) {
            (Some(busy), _) => sizes::write_buffer(name, pool, (&request, busy), &lab, go_on),
            (None, _) if args.place == PoolPlace::Slog => {
                sizes::log(name, pool, &request, &lab, go_on)
            }
            (None, Workload::Trace(trace)) => {
                sizes::read_cache(name, pool, (&request, trace), &lab, go_on)
            }
            (None, Workload::Jobs(_)) => Err(no_trace()),
        },
    );
    let answers = answer::all(pools.iter().map(|(name, _)| &**name).zip(results))?;
    stop.results(|| {
        answer::show(
            &view::size(&request, &answers),
            args.json,
            &args.csv,
            &args.output,
        )
    })?;
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
        "use --trace FILE: only a trace shows which data is read again",
    )])
}

/// The pools, each by the drive in that place, the request, and the load of a write buffer.
type SizingInputs = (Vec<(String, DriveSheet)>, SizeRequest, Option<Busy>);

/// Returns the rest of the pool.
fn backing_pool<'a>(args: &'a Args, problems: &mut Problems) -> &'a str {
    let of_vsan = args.place == PoolPlace::VsanCache;
    let (option, given, other, stray) = match of_vsan {
        true => ("--capacity", &args.capacity, "--main", args.main.is_some()),
        false => ("--main", &args.main, "--capacity", args.capacity.is_some()),
    };
    let place = args.place.name();
    if stray {
        problems.0.push(on_command_line(
            format!("size {place}: {other} does not apply"),
            format!("{option} names the drives below it"),
        ));
    }
    if given.is_none() {
        problems.0.push(on_command_line(
            format!("size {place}: {option} is missing"),
            format!("{option} 'raidz(6*exos-x18-16tb; parity=2)' or another pool or drive"),
        ));
    }
    // The missing option has been reported; the expression is then not used.
    given.as_deref().unwrap_or("ram-disk")
}

/// Returns the load of a write buffer; `None` for other places, which have none.
fn busy(args: &Args, problems: &mut Problems) -> Option<Busy> {
    let of_vsan = args.place == PoolPlace::VsanCache;
    let given = [
        ("--profile", args.profile.is_some()),
        ("--working-set", args.working_set.is_some()),
        ("--lasts", args.lasts.is_some()),
        ("--writes", args.writes.is_some()),
        ("--failed-node-of", args.failed_node_of.is_some()),
    ];
    let others = [
        ("--inbound", args.inbound.is_some()),
        ("--job", args.load.job.is_some()),
        ("--trace", args.load.trace.is_some()),
        ("--load", args.load.load.is_some()),
        ("--users", args.load.users.is_some()),
        ("--runtime", args.load.runtime.is_some()),
    ];
    let strays: &[(&str, bool)] = if of_vsan { &others } else { &given };
    for (option, _) in strays.iter().filter(|(_, is_given)| *is_given) {
        let what = format!("size {}: {option} does not apply", args.place.name());
        problems.0.push(on_command_line(what, "leave it out"));
    }
    if !of_vsan {
        return None;
    }
    for (option, help, is_given) in [
        (
            "--profile",
            "4k70r: a block size, and the share of reads",
            args.profile.is_some(),
        ),
        (
            "--working-set",
            "100GB: the data that is read and overwritten",
            args.working_set.is_some(),
        ),
    ] {
        if !is_given {
            let what = format!("size vsan-cache: there is no {option}");
            problems
                .0
                .push(on_command_line(what, format!("{option} {help}")));
        }
    }
    let lasts = args.lasts.unwrap_or(LASTS);
    if lasts < Span::from_ms(10_000) {
        let what = "--lasts: too short to fill a buffer";
        problems.0.push(on_command_line(
            what,
            "ten seconds at least, such as '30 min'",
        ));
    }
    let working_set = args.working_set.clone()?;
    let busy = Busy {
        profile: args.profile.clone()?,
        working_set: working_set.bytes,
        asked: working_set.asked,
        lasts,
        written: args.writes.map(|rate| rate.0),
        failed_node_of: None,
    };
    Some(match args.failed_node_of {
        Some(nodes) => busy.with_failed_node(nodes),
        None => busy,
    })
}

fn read(args: &Args) -> Result<SizingInputs, Problems> {
    let mut problems = Problems::default();
    let settings = args.drives.settings();
    let names = args.drives.named(&args.arguments, &mut problems);
    let mut pools = Vec::new();
    let behind = backing_pool(args, &mut problems);
    for name in names {
        let expression = of_clients(args.place.name(), &name, behind, args.overwrite);
        if let Some(sheet) = collect_problems(load_drive(&expression, &settings), &mut problems) {
            pools.push((name, sheet));
        }
    }
    let busy = busy(args, &mut problems);
    let (load, mut conditions) = args.load.read(OF_A_LOG, &mut problems);
    let load = match &busy {
        Some(busy) => collect_problems(busy.load(), &mut problems),
        None => load,
    };
    args.load.state.check(&settings, &mut problems);
    let slo = match &args.slo {
        None => Slo::default(),
        Some(text) => collect_problems(Slo::read(text), &mut problems).unwrap_or_default(),
    };
    let load = wanted(args, load, &mut problems);
    let inputs = [args.load.job.as_deref(), args.load.trace.as_deref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    match load {
        Some(load) if problems.0.is_empty() => {
            conditions.state = args.load.state_before(&load);
            Ok((pools, request(args, load, slo, conditions), busy))
        }
        _ => Err(problems),
    }
}

/// Returns the load, if it is of the kind that the place needs.
fn wanted(args: &Args, load: Option<Load>, problems: &mut Problems) -> Option<Load> {
    if args.place == PoolPlace::ReadCache && args.load.trace.is_none() {
        problems.0.extend(no_trace().0);
    }
    if args.place != PoolPlace::Slog && args.overwrite {
        problems.0.push(on_command_line(
            "--overwrite is for the load of a log only",
            "use it with `size slog DRIVE...`",
        ));
    }
    if args.place == PoolPlace::ReadCache && args.inbound.is_some() {
        problems.0.push(on_command_line(
            "--inbound applies to a slog only: the size of a read cache depends on repeated reads",
            "leave it out",
        ));
    }
    let none = [&args.load.job, &args.load.trace]
        .iter()
        .all(|it| it.is_none());
    if args.place == PoolPlace::Slog && none && args.load.load.is_none() {
        problems.0.push(on_command_line(
            "size slog: there is no load",
            "--load nfs-sync (or wal), --job FILE or --trace FILE",
        ));
    }
    load
}

fn request(args: &Args, load: Load, slo: Slo, conditions: Conditions) -> SizeRequest {
    SizeRequest {
        load,
        slo,
        inbound: args.inbound.map(|rate| rate.0),
        conditions,
    }
}
