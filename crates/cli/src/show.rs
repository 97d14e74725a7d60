//! `drivelab show`: drives, with the source of every figure.

use std::io::{self, Write};

use catalogue::DriveSheet;
use report::sheets;
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::failure::Failure;

/// Print drives with the source of every figure
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab show p4800x-375
  drivelab show ./my-drive.toml        your own drive, by its path
  drivelab show s2-slog                a pool: tiers, durability guarantee, drives
  drivelab show 'mirror(2*p4801x-100)'
  drivelab show p4800x-375 --set xpoint.power.limit=12W
  drivelab show p3700-1600 --json | jq -r '.drives[0].figures[] | [.key, .value, .kind] | @tsv'")]
pub(crate) struct Args {
    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    let drives = problems.or(drives)?;
    if args.json {
        let json = sheets::json(&drives, true);
        writeln!(io::stdout().lock(), "{json:#}")?;
        return Ok(());
    }
    let sheet = |drive: &DriveSheet| sheets::sheet(drive, crate::output::width());
    let sheets: Vec<String> = drives.iter().map(sheet).collect();
    writeln!(io::stdout().lock(), "{}", sheets.join("\n\n"))?;
    Ok(())
}
