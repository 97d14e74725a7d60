//! `drivelab man`: manual pages of the program and of each subcommand, generated from the argument definitions.

use std::fs;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use crate::failure::{Failure, write_stderr};
use crate::output::write_whole;

/// Write manual pages, one file per subcommand
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab man --output ~/.local/share/man/man1
  drivelab man --output /tmp/pages && man /tmp/pages/drivelab-run.1")]
pub(crate) struct Args {
    /// Folder for the pages; it is created if it does not exist
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args, command: Command) -> Result<(), Failure> {
    let folder = &args.output;
    let making = || format!("making {}", folder.display());
    fs::create_dir_all(folder).map_err(|error| Failure::failed(making(), error))?;
    // Without the subcommand `help`, which manual pages omit.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let verbs: Vec<Command> = command.get_subcommands().cloned().collect();
    let mut count = 0;
    for page in [command].into_iter().chain(verbs) {
        // The name after building: `drivelab-run`.
        let name = page.get_display_name().unwrap_or("drivelab").to_owned();
        let mut text = Vec::new();
        let written = Man::new(page).render(&mut text);
        written.map_err(|error| Failure::failed(format!("writing {name}.1"), error))?;
        let text = with_examples_as_written(&String::from_utf8_lossy(&text));
        write_whole(&folder.join(format!("{name}.1")), text.as_bytes())?;
        count += 1;
    }
    write_stderr(&format!("{count} pages in {}", folder.display()));
    Ok(())
}

/// Returns a page in which indented lines after the options are kept as they are, because they are examples.
fn with_examples_as_written(page: &str) -> String {
    let mut text = String::new();
    let (mut behind, mut indented) = (false, false);
    for line in page.lines() {
        behind = match line {
            ".SH EXTRA" => true,
            _ => behind && !line.starts_with(".SH "),
        };
        let is_example = behind && line.starts_with(' ');
        if is_example != indented {
            text.push_str(if is_example { ".nf\n" } else { ".fi\n" });
            indented = is_example;
        }
        text.push_str(match line {
            ".SH EXTRA" => ".SH EXAMPLES",
            line => line,
        });
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_as_they_are_and_paragraphs_are_filled() {
        let page = ".SH OPTIONS\n  a\n.SH EXTRA\nExamples:\n  b  c\n  d\n\nMore.\n.SH VERSION\n";
        let expected = ".SH OPTIONS\n  a\n.SH EXAMPLES\nExamples:\n.nf\n  b  c\n  d\n.fi\n\nMore.\n.SH VERSION\n";
        assert_eq!(with_examples_as_written(page), expected);
    }
}
