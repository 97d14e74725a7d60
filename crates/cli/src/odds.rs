//! `drivelab odds`: how often a pool loses data.

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::decide::view;
use study::decide::odds::{self, OddsRequest};
use text::problem::Problems;
use text::terminal::Width;

use crate::drive::DriveArgs;
use crate::each::in_turn;
use crate::failure::Failure;
use crate::limit;
use crate::output;
use crate::seed::SeedArg;
use crate::stop::ImmediateStop;

/// The width where there is no terminal.
const COLUMNS: Width = Some(80);

/// Odds of data loss: how often drives fail, how long a rebuild takes, and how often a pool then loses data
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab odds 'mirror(2*p4801x-100)' 'stripe(2*p4801x-100)' p4801x-100
  drivelab odds 'raid5(6*exos-x18-16tb)' 'raid6(6*exos-x18-16tb)' --replace-after 72h
  drivelab odds s2-slog --afr 1% --afr p4801x-100=0.2%

The loss rule of a pool (`drivelab show POOL`) lists the sets of drives whose joint failure loses data. Annual failure \
rates are published values by class of drive, each with its source and range; --afr replaces them. Rebuilds are simulated.

Exit codes: 0 done, 2 bad usage or bad input.")]
pub(crate) struct Args {
    /// Names of pools or drives (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "POOL")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Time until a failed drive is replaced; 0h with a hot spare
    #[arg(long, value_name = "TIME", default_value = odds::REPLACED_AFTER, value_parser = odds::hours)]
    replace_after: f64,

    /// Annual failure rate of all drives or of one: 0.5%, or p4801x-100=0.2%; may be given several times
    #[arg(long, value_name = "[DRIVE=]PERCENT", value_parser = odds::share_of_drives)]
    afr: Vec<(Option<String>, f64)>,

    /// Power failures and crashes of the machine per year
    #[arg(long, value_name = "N", default_value_t = odds::CRASHES, value_parser = odds::crashes)]
    crashes: f64,

    /// Host on which a rebuild runs: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    #[command(flatten)]
    seed: SeedArg,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per kind of drive in each pool
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, request) = read(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let answers = in_turn(&drives, |drive, tell| {
        odds::measure(&request, drive, &lab, tell)
    })?;
    let view = view::odds(&request, &answers, COLUMNS);
    stop.results(|| limit::show(&view, args.json, &args.csv, &None))
}

fn read(args: &Args) -> Result<(Vec<DriveSheet>, OddsRequest), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    let host = limit::collect_problems(catalogue::host(&args.host), &mut problems);
    let outputs = output::requested_files([("--csv", &args.csv)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    let request = OddsRequest {
        replace_hours: args.replace_after,
        crashes: args.crashes,
        failures: args.afr.clone(),
        // Where it could not be read there is a problem, and nothing runs.
        host: host.unwrap_or_default(),
        seed: args.seed.seed,
    };
    problems
        .0
        .extend(odds::check(&request, &drives).err().unwrap_or_default().0);
    problems.or((drives, request))
}
