//! `drivelab max`: the highest load of drives within limits.

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::decide::view;
use study::decide::load::Pattern;
use study::decide::max::{self, MaxRequest};
use study::decide::slo::Slo;
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::each::in_turn;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::limit::{self, key_value};
use crate::output;
use crate::seed::SeedArg;
use crate::state::Begin;
use crate::stop::ImmediateStop;

/// Highest load within limits: open loop (arrival rate) and closed loop (queue depth)
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab max p4800x-375 --slo p99=1ms --rw=randrw --rwmixread=70 --bs=4k
  drivelab max p3700-1600 9100max-2400 --slo 'read.p99.9<2ms,iops>50k' --rw=randrw
  drivelab max 'mirror(2*p4801x-100)' --slo 'p99<200us' --rw=randwrite --bs=16k
  drivelab max p4800x-375 --slo p99=100us --rw=randread --csv tried.csv
  drivelab max p4800x-375 --slo p99=1ms --fio random_distribution=zipf:1.1

A limit is FIGURE<VALUE or FIGURE>VALUE. Figures are mean, p99 (p1 to p99.999), iops, bw and watts. The prefix read., \
write. or sync. limits a figure to one direction. A latency limit without a prefix must hold for each direction.

The open loop has Poisson arrivals (fio's rate_process=poisson). The closed loop keeps a fixed number of I/Os in \
flight. Each is searched with three seeds. The JSON contains the job of each answer, as a job file for fio.

Exit codes: 0 done, 2 bad usage or bad input, 3 no load of some drive is within all limits.")]
pub(crate) struct Args {
    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Limits, such as p99<1ms or p99=1ms,p99.9<5ms,iops>50k
    #[arg(long, value_name = "LIMITS")]
    slo: String,

    /// Access pattern, as in fio: read, write, randread, randwrite, rw, randrw
    #[arg(long, value_name = "RW", default_value = "randread")]
    rw: String,

    /// Percentage of reads in rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    rwmixread: u32,

    /// Block size, as in fio
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    bs: String,

    /// Maximum number of threads that issue I/O; sequential threads each have their own range [default: the number of
    /// cores of the host; sequential: one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    numjobs: Option<u32>,

    /// Another fio job option, such as size=20% or ioengine=io_uring; may be given several times
    #[arg(long = "fio", value_name = "KEY=VALUE", value_parser = key_value)]
    options: Vec<(String, String)>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = Begin::Auto)]
    state: Begin,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed; the drive must meet the limits with each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: u32,

    /// I/Os per run [default: enough for a hundred beyond the highest percentile]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    ios: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per tested load and limit
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: latency over load, with the limit
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, request) = read(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let answers = in_turn(&drives, |drive, tell| {
        max::highest(&request, drive, &lab, tell)
    })?;
    stop.results(|| {
        limit::show(
            &view::max(&request, &answers),
            args.json,
            &args.csv,
            &args.output,
        )
    })?;
    let failed = answers.iter().filter(|answer| !answer.is_met());
    let failed: Vec<&str> = failed.map(|answer| &*answer.drive).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Verdict(format!(
            "{}: no load within all limits",
            failed.join(", ")
        ))),
    }
}

fn read(args: &Args) -> Result<(Vec<DriveSheet>, MaxRequest), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    args.state.check(&args.drives.settings(), &mut problems);
    let slo = limit::collect_problems(Slo::read(&args.slo), &mut problems);
    let host = limit::collect_problems(catalogue::host(&args.host), &mut problems);
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    // If they could not be read there is a problem, and nothing runs.
    let host = host.unwrap_or_default();
    note_on_power_states(&drives, &host);
    let pattern = Pattern::new(
        (&args.rw, args.rwmixread),
        &args.bs,
        &args.options,
        args.numjobs,
        &host,
    );
    let in_order = pattern.is_in_order();
    let request = MaxRequest {
        pattern,
        slo: slo.clone().unwrap_or_default(),
        host,
        state: args.state.answered(|start| start.before(in_order)),
        ios: args.ios,
        seed: args.seed.seed,
        seeds: args.seeds,
    };
    let checked = match slo {
        Some(_) => max::check(&request),
        None => request.pattern.check(),
    };
    problems.0.extend(checked.err().unwrap_or_default().0);
    problems.or((drives, request))
}
