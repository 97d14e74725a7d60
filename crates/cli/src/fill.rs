//! `drivelab fill`: how long writes stay fast.

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::decide::view;
use study::decide::fill::{self, FillRequest};
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::each::in_turn;
use crate::failure::Failure;
use crate::limit;
use crate::output;
use crate::seed::SeedArg;
use crate::stop::ImmediateStop;

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
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = fill::USED, value_parser = clap::value_parser!(u32).range(0..=100))]
    used: Vec<u32>,

    /// Random instead of sequential writes
    #[arg(long)]
    random: bool,

    /// Block size, as in fio [default: 1m; 4k with --random]
    #[arg(long, value_name = "SIZE")]
    bs: Option<String>,

    /// Writes in flight [default: 8; 32 with --random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    iodepth: Option<u32>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
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

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, request) = read(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let answers = in_turn(&drives, |drive, tell| {
        fill::measure(&request, drive, &lab, tell)
    })?;
    stop.results(|| {
        limit::show(
            &view::fill(&request, &answers),
            args.json,
            &args.csv,
            &args.output,
        )
    })
}

fn read(args: &Args) -> Result<(Vec<DriveSheet>, FillRequest), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    let host = limit::collect_problems(catalogue::host(&args.host), &mut problems);
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    let writes = fill::writes(args.random, args.bs.as_deref(), args.iodepth);
    let (block, depth) = limit::collect_problems(writes, &mut problems).unwrap_or((4096, 1));
    problems.0.extend(fill::problem_of(&args.drives.settings()));
    let request = FillRequest {
        random: args.random,
        block,
        depth,
        used: args.used.clone(),
        // If it could not be read there is a problem, and nothing runs.
        host: host.unwrap_or_default(),
        seed: args.seed.seed,
        seeds: args.seeds,
    };
    let of_each = drives
        .iter()
        .filter_map(|drive| fill::check(&request, drive).err());
    problems.0.extend(of_each.flat_map(|more| more.0));
    problems.or((drives, request))
}
