//! `drivelab lab`: a page on which a user composes drives and pools, writes a job, and runs it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use catalogue::Settings;
use report::page::{LabChoice, engine_bytes, lab_html};
use text::problem::{Place, Problem, Problems};

use crate::drive::{DriveArgs, load};
use crate::failure::{Failure, on_command_line};
use crate::output::{self, write_whole};

/// Interactive page with drives and pools: it runs fio job files by itself
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab lab                                      lab.html, to be opened in a browser
  drivelab lab p4800x-375 'mirror(2*p4801x-100)'    begins with these
  drivelab lab ./mine.toml --job database.fio --output mine.html
  drivelab lab p4800x-375 --set xpoint.power.limit=12W --lba-format 4096

The page is one file and needs no network. Drives can be added on the page by name, as an expression or as TOML. \
The page shows figures, latencies to the 99.999th percentile, the latency breakdown and costs. It exports the TOML, \
the job file and the command that gives the same figures.")]
pub(crate) struct Args {
    /// Initial drives and pools, at most six: names (see `drivelab drives`), paths of TOML files, or expressions
    /// [default: p4800x-375 p3700-1600]
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Initial fio job file
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,

    /// Page to write
    #[arg(long, short, default_value = "lab.html", value_name = "FILE")]
    output: PathBuf,

    /// Replace an existing page
    #[arg(long)]
    force: bool,
}

/// Maximum number of drives on the page; `lab.js` has the same value.
const MOST: usize = 6;

/// Default drives of the page; `lab.js` has the same list.
const FIRST: [&str; 2] = ["p4800x-375", "p3700-1600"];

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut names = args.drives.names(&args.arguments);
    if names.is_empty() {
        names.extend(FIRST.map(String::from));
    }
    let settings = args.drives.settings();
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
    let benches: Vec<Option<LabChoice>> = names
        .iter()
        .map(|name| bench(name, &settings).map_err(&mut wrong).ok())
        .collect();
    let job = args.job.as_deref().map(read).transpose();
    let job = job.map_err(&mut wrong).ok().flatten();
    let mut inputs: Vec<&Path> = names.iter().map(Path::new).collect();
    inputs.extend(args.job.as_deref());
    let unwritable = output::problems(&[("--output", &args.output)], &inputs);
    if unwritable.0.is_empty() && args.output.is_file() && !args.force {
        let what = format!("--output {}: exists already", args.output.display());
        let help = "add --force to replace it, or name another file";
        problems.0.push(on_command_line(what, help));
    }
    problems.0.extend(unwritable.0);
    problems.or(())?;
    let benches: Vec<LabChoice> = benches.into_iter().flatten().collect();
    let page = lab_html(&benches, &settings.options(), job.as_deref());
    write_whole(&args.output, page.as_bytes())?;
    writeln!(
        io::stdout().lock(),
        "The page is {}.",
        args.output.display()
    )?;
    Ok(())
}

/// Returns a drive for the page: by its name, or with the text of its file. The page applies the settings; they are
/// tried here so that unsupported settings are reported now.
fn bench(name: &str, settings: &Settings) -> Result<LabChoice, Problems> {
    if catalogue::is_expression(name) || !name.ends_with(".toml") {
        load(name, settings)?;
        if catalogue::is_expression(name) && name.contains(".toml") {
            return Err(without_files(name));
        }
        return Ok(LabChoice {
            drive: name.to_owned(),
            toml: None,
        });
    }
    let path = Path::new(name);
    let text = read(path)?;
    let whole = load(name, settings)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    // Reads the text without the files next to it, as the page will.
    let alone = catalogue::drive_from_text_as(&file, &text, settings);
    match alone.is_ok_and(|alone| alone.config == whole.config) {
        true => Ok(LabChoice {
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
        what: String::from("names other files on this machine, which a page cannot read"),
        help: Some(String::from(
            "use a file whose members and family are in the catalogue",
        )),
    }])
}

fn read(path: &Path) -> Result<String, Problems> {
    text::bounded::text(path, text::bounded::WRITTEN).map_err(|error| {
        Problems::whole(
            path.display().to_string(),
            format!("cannot be read: {error}"),
        )
    })
}
