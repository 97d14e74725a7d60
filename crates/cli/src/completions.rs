//! `drivelab completions`: completions for a shell, generated from the program's argument definitions.
//!
//! Not included: fio's options in `run`, which are not in those definitions, and names of drives.

use std::io::{self, Write};

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;

/// Completions for your shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab completions bash > ~/.local/share/bash-completion/completions/drivelab
  drivelab completions zsh > ~/.zfunc/_drivelab
  drivelab completions fish > ~/.config/fish/completions/drivelab.fish

For zsh, the folder must be in `fpath` before `compinit` runs.")]
pub(crate) struct Args {
    /// Shell to write completions for
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "drivelab", &mut script);
    Ok(io::stdout().lock().write_all(&script)?)
}
