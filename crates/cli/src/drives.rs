//! `drivelab drives`: the drives of the catalogue as a table.

use std::io::{self, Write};

use crate::failure::Failure;
use crate::output;

/// List the drives of the catalogue
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab drives
  drivelab drives --names | xargs drivelab review
  drivelab drives --json | jq -r '.drives[] | select(.maker == \"Intel\") | .id'")]
pub(crate) struct Args {
    /// Print only the names, one per line
    #[arg(long)]
    names: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "names")]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let drives = catalogue::drives()?;
    let mut out = io::stdout().lock();
    if args.names {
        for drive in &drives {
            writeln!(out, "{}", drive.id)?;
        }
        return Ok(());
    }
    if args.json {
        let json = report::sheets::json(&drives, false);
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    writeln!(out, "{}", report::sheets::table(&drives, output::width()))?;
    Ok(())
}
