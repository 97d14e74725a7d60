//! `drivelab lab`: a page on which drives and pools are put together, given a job, and run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use report::page::{Choice, engine_bytes, lab_html};
use text::problem::{Place, Problem, Problems};

use crate::failure::{Failure, on_command_line};
use crate::output::{self, write_whole};

/// Drives and pools on a bench: a page that runs job files on them by itself
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab lab                                      lab.html, to be opened in a browser
  drivelab lab p4800x-375 'mirror(2*p4801x-100)'    begins with these
  drivelab lab ./mine.toml --job database.fio --output mine.html

The page is one file and needs no network. Drives are added in it by name, as an expression or as TOML; \
it shows figures, latencies to the 99.999th percentile, where the time goes and what it costs, and it exports \
the TOML, the job file and the command that gives the same figures.")]
pub(crate) struct Args {
    /// Drives and pools to begin with, at most six: names (see `drivelab drives`), paths of TOML files, or expressions
    /// [default: p4800x-375 p3700-1600]
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    /// The same as an argument DRIVE; may be given several times
    #[arg(long = "drive", value_name = "DRIVE")]
    drives: Vec<String>,

    /// The fio job file to begin with
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,

    /// The page to write
    #[arg(long, short, default_value = "lab.html", value_name = "FILE")]
    output: PathBuf,

    /// Replace a page that is there
    #[arg(long)]
    force: bool,
}

/// Most drives side by side; `lab.js` has the same.
const MOST: usize = 6;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let names = [args.arguments.as_slice(), &args.drives].concat();
    let mut problems = Problems::default();
    if engine_bytes() == 0 {
        problems.0.push(on_command_line(
            "this build of drivelab has no engine for pages",
            "`rustup target add wasm32-unknown-unknown`, then build with `cargo build --release` (or with \
             DRIVELAB_PAGE_ENGINE=1)",
        ));
    }
    if names.len() > MOST {
        let what = format!("{} drives: the page shows at most {MOST}", names.len());
        problems.0.push(on_command_line(what, "name fewer"));
    }
    let mut wrong = |more: Problems| problems.0.extend(more.0);
    let benches: Vec<Option<Choice>> = names
        .iter()
        .map(|name| bench(name).map_err(&mut wrong).ok())
        .collect();
    let job = args.job.as_deref().map(read).transpose();
    let job = job.map_err(&mut wrong).ok().flatten();
    let mut inputs: Vec<&Path> = names.iter().map(Path::new).collect();
    inputs.extend(args.job.as_deref());
    let unwritable = output::problems(&[("--output", &args.output)], &inputs);
    if unwritable.0.is_empty() && args.output.is_file() && !args.force {
        let what = format!("--output {}: is there already", args.output.display());
        let help = "add --force to replace it, or name another file";
        problems.0.push(on_command_line(what, help));
    }
    problems.0.extend(unwritable.0);
    problems.or(())?;
    let benches: Vec<Choice> = benches.into_iter().flatten().collect();
    write_whole(&args.output, lab_html(&benches, job.as_deref()).as_bytes())?;
    writeln!(
        io::stdout().lock(),
        "The page is {}.",
        args.output.display()
    )?;
    Ok(())
}

/// A drive as the page has it: by its name, or with the text of its file.
fn bench(name: &str) -> Result<Choice, Problems> {
    if catalogue::is_expression(name) || !name.ends_with(".toml") {
        catalogue::drive(name)?;
        if catalogue::is_expression(name) && name.contains(".toml") {
            return Err(without_files(name));
        }
        return Ok(Choice {
            drive: name.to_owned(),
            toml: None,
        });
    }
    let path = Path::new(name);
    let text = read(path)?;
    let whole = catalogue::drive(name)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    // What the text means without the files beside it.
    let alone = catalogue::drive_from_text(&file, &text);
    match alone.is_ok_and(|alone| alone.config == whole.config) {
        true => Ok(Choice {
            drive: file.into_owned(),
            toml: Some(text),
        }),
        false => Err(without_files(name)),
    }
}

fn without_files(name: &str) -> Problems {
    Problems(vec![Problem {
        origin: name.to_owned(),
        place: Place::Whole,
        what: String::from("names other files of yours, which a page cannot read"),
        help: Some(String::from(
            "a file whose members and family are of the catalogue",
        )),
    }])
}

fn read(path: &Path) -> Result<String, Problems> {
    std::fs::read_to_string(path).map_err(|error| {
        Problems::whole(
            path.display().to_string(),
            format!("cannot be read: {error}"),
        )
    })
}
