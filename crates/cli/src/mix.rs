//! `drivelab mix`: mixed reads and writes, from reads only to writes only.

use std::path::PathBuf;

use study::ask::{Mix, defaults};
use study::decide::mix;

use crate::answer::{Output, key_value};
use crate::drive::DriveArgs;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::seed::SeedArg;
use crate::state::{Begin, name_of, note_on_heat};

/// Mixes of reads and writes: IOPS and latency from reads alone to writes alone, and where drives fall off
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab mix p4800x-375 p3700-1600
  drivelab mix 950pro-256 --bs 16k --iodepth 8 --step 25
  drivelab mix 'mirror(2*p4801x-100)' --rw rw --bs 128k --csv mix.csv -o mix.html

Each mix runs with --iodepth I/Os in flight (closed loop), from the same initial state. `drivelab max` finds the highest load of one mix \
within a limit.

Exit codes: 0 done, 2 bad usage or bad input.")]
pub(crate) struct Args {
    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Access pattern, as in fio: randrw, or rw for a sequential mix
    #[arg(long, value_name = "RW", default_value = defaults::MIXED_RW)]
    rw: String,

    /// Step between mixes, in percent of reads
    #[arg(long, value_name = "PERCENT", default_value_t = mix::STEP, value_parser = clap::value_parser!(u32).range(defaults::STEP_RANGE))]
    step: u32,

    /// Block size, as in fio
    #[arg(long, value_name = "SIZE", default_value = defaults::BS)]
    bs: String,

    /// Queue depth, over all threads
    #[arg(long, value_name = "N", default_value_t = mix::DEPTH, value_parser = clap::value_parser!(u32).range(defaults::MIX_DEPTH_RANGE))]
    iodepth: u32,

    /// Maximum number of threads that issue I/O [default: the number of cores of the host; sequential: one]
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

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = defaults::SEEDS, value_parser = clap::value_parser!(u32).range(defaults::SEEDS_RANGE))]
    seeds: u32,

    /// I/Os per run [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(defaults::IOS_RANGE))]
    ios: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per mix
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: IOPS by share of reads
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl From<&Args> for Mix {
    fn from(args: &Args) -> Mix {
        Mix {
            drives: args.drives.specs(&args.arguments),
            rw: args.rw.clone(),
            step: args.step,
            bs: args.bs.clone(),
            iodepth: args.iodepth,
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
    let resolved = output.resolve(&Mix::from(args), &[])?;
    let request = &resolved.request;
    args.drives.note_on(&args.arguments, &resolved.drives);
    note_on_heat(&args.drives.settings());
    note_on_power_states(&resolved.drives, &request.host);
    args.state.answered(|_| request.state);
    output.answer::<Mix>(&resolved)
}
