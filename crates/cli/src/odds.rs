//! `drivelab odds`: how often a pool loses data.

use std::path::PathBuf;

use study::ask::Odds;
use study::decide::odds;

use crate::answer::{Output, written};
use crate::drive::DriveArgs;
use crate::failure::Failure;
use crate::seed::SeedArg;

/// Odds of data loss: how often drives fail, how long a rebuild takes, and how often a pool then loses data
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab odds 'mirror(2*p4801x-100)' 'stripe(2*p4801x-100)' p4801x-100
  drivelab odds 'raid5(6*exos-x18-16tb)' 'raid6(6*exos-x18-16tb)' --replace-after 72h
  drivelab odds 'raidz(6*exos-x18-16tb; parity=2)' 'mirror(2*exos-x18-16tb)' --years 5
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
    #[arg(long, value_name = "TIME", default_value = odds::REPLACED_AFTER, value_parser = |text: &str| written(text, odds::hours))]
    replace_after: String,

    /// Annual failure rate of all drives or of one: 0.5%, or p4801x-100=0.2%; may be given several times
    #[arg(long, value_name = "[DRIVE=]PERCENT", value_parser = |text: &str| written(text, odds::share_of_drives))]
    afr: Vec<String>,

    /// Power failures and crashes of the machine per year
    #[arg(long, value_name = "N", default_value_t = odds::CRASHES, value_parser = odds::crashes)]
    crashes: f64,

    /// Also print the probability of a loss within this number of years
    #[arg(long, value_name = "YEARS", value_parser = odds::years)]
    years: Option<f64>,

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

    /// Also write a page: time between losses by usable capacity
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl From<&Args> for Odds {
    fn from(args: &Args) -> Odds {
        Odds {
            drives: args.drives.specs(&args.arguments),
            replace_after: args.replace_after.clone(),
            afr: args.afr.clone(),
            crashes: args.crashes,
            years: args.years,
            host: args.host.clone(),
            seed: args.seed.seed,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let output = Output {
        json: args.json,
        csv: &args.csv,
        page: &args.output,
    };
    let resolved = output.resolve(&Odds::from(args), &[])?;
    args.drives.note_on(&args.arguments, &resolved.drives);
    output.answer::<Odds>(&resolved)
}
