//! `drivelab mix`: mixed reads and writes, from reads only to writes only.

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::decide::view;
use study::decide::load::Pattern;
use study::decide::mix::{self, MixRequest};
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::each::map_drives;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::limit::{self, key_value};
use crate::output;
use crate::seed::SeedArg;
use crate::state::Begin;
use crate::stop::ImmediateStop;

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
    #[arg(long, value_name = "RW", default_value = "randrw")]
    rw: String,

    /// Step between mixes, in percent of reads
    #[arg(long, value_name = "PERCENT", default_value_t = mix::STEP, value_parser = clap::value_parser!(u32).range(1..=100))]
    step: u32,

    /// Block size, as in fio
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    bs: String,

    /// Queue depth, over all threads
    #[arg(long, value_name = "N", default_value_t = mix::DEPTH, value_parser = clap::value_parser!(u32).range(2..=1024))]
    iodepth: u32,

    /// Maximum number of threads that issue I/O [default: the number of cores of the host; sequential: one]
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

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: u32,

    /// I/Os per run [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
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

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, request) = read(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let results = map_drives(
        &drives,
        |drive| &drive.id,
        |drive, go_on| mix::measure(&request, drive, &lab, go_on),
    );
    let answers = limit::all(drives.iter().map(|drive| &*drive.id).zip(results))?;
    stop.results(|| {
        limit::show(
            &view::mix(&request, &answers),
            args.json,
            &args.csv,
            &args.output,
        )
    })
}

fn read(args: &Args) -> Result<(Vec<DriveSheet>, MixRequest), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    args.state.check(&args.drives.settings(), &mut problems);
    let host = limit::collect_problems(catalogue::host(&args.host), &mut problems);
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    // If it could not be read there is a problem, and nothing runs.
    let host = host.unwrap_or_default();
    note_on_power_states(&drives, &host);
    let pattern = Pattern::new((&args.rw, 50), &args.bs, &args.options, args.numjobs, &host);
    let in_order = pattern.is_in_order();
    let request = MixRequest {
        pattern,
        depth: args.iodepth,
        percents: mix::percents(args.step),
        host,
        state: args.state.answered(|start| start.before(in_order)),
        ios: args.ios,
        seed: args.seed.seed,
        seeds: args.seeds,
    };
    problems
        .0
        .extend(mix::check(&request).err().unwrap_or_default().0);
    problems.or((drives, request))
}
