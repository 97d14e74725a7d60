//! `drivelab drives`: the drives of the catalogue as a table.

use std::io::{self, Write};

use crate::failure::Failure;
use crate::output;

/// List the drives of the catalogue
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab drives
  drivelab drives --names | xargs drivelab review")]
pub(crate) struct Args {
    /// Print only the names, one per line
    #[arg(long)]
    names: bool,
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
    writeln!(out, "{}", report::sheets::table(&drives, output::width()))?;
    Ok(())
}
