//! `drivelab man`: a manual page of the program and of each verb, made of the definitions that it parses its arguments by.

use std::fs;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use crate::failure::{Failure, tell};
use crate::output::write_whole;

/// Manual pages, a file for each verb
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab man --output ~/.local/share/man/man1
  drivelab man --output /tmp/pages && man /tmp/pages/drivelab-run.1")]
pub(crate) struct Args {
    /// The folder to write them to; it is made if there is none
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args, command: Command) -> Result<(), Failure> {
    let folder = &args.output;
    let making = || format!("making {}", folder.display());
    fs::create_dir_all(folder).map_err(|error| Failure::failed(making(), error))?;
    // Without the verb `help`, which a manual says nothing of.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let verbs: Vec<Command> = command.get_subcommands().cloned().collect();
    let mut count = 0;
    for page in [command].into_iter().chain(verbs) {
        // What building has called it: `drivelab-run`.
        let name = page.get_display_name().unwrap_or("drivelab").to_owned();
        let mut text = Vec::new();
        let written = Man::new(page).render(&mut text);
        written.map_err(|error| Failure::failed(format!("writing {name}.1"), error))?;
        write_whole(&folder.join(format!("{name}.1")), &text)?;
        count += 1;
    }
    tell(&format!("{count} pages in {}", folder.display()));
    Ok(())
}
