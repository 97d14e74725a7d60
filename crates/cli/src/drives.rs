//! `drivelab drives`: the drives, pools and hosts of the catalogue as tables.

use std::io::{self, Write};

use crate::failure::Failure;
use crate::output;

/// List the drives of the catalogue, the pools and the hosts
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
    let pools = catalogue::pools()?;
    let mut out = io::stdout().lock();
    if args.names {
        for drive in &drives {
            writeln!(out, "{}", drive.id)?;
        }
        return Ok(());
    }
    if args.json {
        let mut json = report::sheets::json(&drives, false);
        json["pools"] = report::sheets::json(&pools, false)["drives"].take();
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    let width = output::width();
    writeln!(out, "{}", report::sheets::table(&drives, width))?;
    writeln!(out, "\nPools of drives:")?;
    writeln!(out, "{}", report::sheets::pools(&pools, width))?;
    let hosts: Result<Vec<_>, _> = { catalogue::host_names().into_iter() }
        .map(catalogue::host)
        .collect();
    writeln!(out, "\nHosts to put them in:")?;
    writeln!(out, "{}", report::sheets::hosts(&hosts?, width))?;
    Ok(())
}
