//! `drivelab show`: one drive, with the source of every figure.

use std::io::{self, Write};

use crate::failure::Failure;

/// Print one drive with the source of every figure
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab show p4800x-375
  drivelab show ./my-drive.toml        a drive of your own, by its path")]
pub(crate) struct Args {
    /// Name of a drive (see `drivelab drives`) or path of a drive's TOML file
    drive: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let drive = study::catalogue::drive(&args.drive)?;
    writeln!(
        io::stdout().lock(),
        "{}",
        study::report::sheets::sheet(&drive, crate::output::width())
    )?;
    Ok(())
}
