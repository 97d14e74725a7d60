//! `drivelab fill`: how long writes stay fast.

use std::path::PathBuf;

use study::ask::{Fill, defaults};
use study::decide::fill;

use crate::answer::Output;
use crate::drive::DriveArgs;
use crate::failure::Failure;
use crate::seed::SeedArg;

/// How long writes stay fast: GB and seconds until a drive slows down, the rate after it, how it recovers
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab fill 990pro-2000 t500-1000
  drivelab fill p3plus-1000 --used 0,80 --csv fill.csv -o fill.html
  drivelab fill 9100max-2400 --random --used 50

Sequential writes show the size of a desktop drive's SLC cache; --random shows how long the erased blocks last. \
`drivelab run --over-time` gives rates over time for any job and initial state.

Exit codes: 0 done, 2 bad usage or bad input.")]
pub(crate) struct Args {
    /// Names of drives (see `drivelab drives`) or paths of their TOML files
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Percent of the drive in use at the start
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = fill::USED, value_parser = clap::value_parser!(u32).range(defaults::PERCENT_RANGE))]
    used: Vec<u32>,

    /// Random instead of sequential writes
    #[arg(long)]
    random: bool,

    /// Block size, as in fio [default: 1m; 4k with --random]
    #[arg(long, value_name = "SIZE")]
    bs: Option<String>,

    /// Writes in flight [default: 8; 32 with --random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(defaults::DEPTH_RANGE))]
    iodepth: Option<u32>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = defaults::SEEDS, value_parser = clap::value_parser!(u32).range(defaults::SEEDS_RANGE))]
    seeds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file: the rate by written volume
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: the rate by written volume
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl From<&Args> for Fill {
    fn from(args: &Args) -> Fill {
        Fill {
            drives: args.drives.specs(&args.arguments),
            used: args.used.clone(),
            random: args.random,
            bs: args.bs.clone(),
            iodepth: args.iodepth,
            host: args.host.clone(),
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
    let resolved = output.resolve(&Fill::from(args), &[])?;
    args.drives.note_on(&args.arguments, &resolved.drives);
    output.answer::<Fill>(&resolved)
}
