//! `drivelab max`: the highest load of drives within limits.

use std::path::PathBuf;

use study::ask::{Max, defaults};

use crate::answer::{Output, key_value};
use crate::drive::DriveArgs;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::seed::SeedArg;
use crate::state::{Begin, name_of, note_on_heat};

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
    #[arg(long, value_name = "RW", default_value = defaults::RW)]
    rw: String,

    /// Percentage of reads in rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = defaults::READ_PERCENT, value_parser = clap::value_parser!(u32).range(defaults::PERCENT_RANGE))]
    rwmixread: u32,

    /// Block size, as in fio
    #[arg(long, value_name = "SIZE", default_value = defaults::BS)]
    bs: String,

    /// Maximum number of threads that issue I/O; sequential threads each have their own range [default: the number of
    /// cores of the host; sequential: one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(defaults::THREADS_RANGE))]
    numjobs: Option<u32>,

    /// Another fio job option, such as size=20% or ioengine=io_uring; may be given several times
    #[arg(long = "fio", value_name = "KEY=VALUE", value_parser = key_value)]
    options: Vec<(String, String)>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value = defaults::AUTO)]
    state: Begin,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed; the drive must meet the limits with each
    #[arg(long, value_name = "N", default_value_t = defaults::SEEDS, value_parser = clap::value_parser!(u32).range(defaults::SEEDS_RANGE))]
    seeds: u32,

    /// I/Os per run [default: enough for a hundred beyond the highest percentile]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(defaults::IOS_RANGE))]
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

impl From<&Args> for Max {
    fn from(args: &Args) -> Max {
        Max {
            drives: args.drives.specs(&args.arguments),
            slo: args.slo.clone(),
            rw: args.rw.clone(),
            rwmixread: args.rwmixread,
            bs: args.bs.clone(),
            numjobs: args.numjobs,
            fio: args.options.clone(),
            ios: args.ios,
            host: args.host.clone(),
            state: name_of(args.state),
            seed: args.seed.seed,
            seeds: args.seeds,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let output = Output {
        json: args.json,
        csv: &args.csv,
        page: &args.output,
    };
    let resolved = output.resolve(&Max::from(args), &[])?;
    let request = &resolved.request;
    args.drives.note_on(&args.arguments, &resolved.drives);
    note_on_heat(&args.drives.settings());
    note_on_power_states(&resolved.drives, &request.host);
    args.state.answered(|_| request.state);
    output.answer::<Max>(&resolved)
}
