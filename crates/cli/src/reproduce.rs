//! `drivelab reproduce`: the published figures and claims, recomputed and judged.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use catalogue::DriveSheet;
use lab::to_the_end;
use report::csv;
use study::ledger::support::{Supports, measured_drives};
use study::ledger::{
    self, AgainstSheet, COLLECTIONS, LedgerFile, Reproduction, SOURCES, Selection, Summary,
    is_source, qos,
};
use text::problem::{Place, Problem, Problems};

use crate::failure::Failure;
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::stop::ImmediateStop;

/// Compare the models with published figures and claims (the ledger)
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab reproduce                                  every source, in minutes
  drivelab reproduce S4                               one source
  drivelab reproduce P                                published figures: syncs, pools, hard disks
  drivelab reproduce --row S0-073 --row S0-086        some rows
  drivelab reproduce --ledger mine.toml               your own rows (see docs/ledger.md)
  drivelab reproduce --csv rows.csv --html reproduction.html
  drivelab reproduce LOAD --support support.json      one source's drives; keeps the others
  drivelab reproduce M --against-sheet                comparison with a data-sheet formula

A row is fitted (a parameter of the model was set from it), predicted, or taken from the catalogue without a run.
Exit code 3: a row is out of its tolerance, or a claim does not hold. With --against-sheet, no row is judged, and the \
exit code is 0.")]
pub(crate) struct Args {
    /// Sources, such as S4 [default: all]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,

    /// A row by its id; may be given several times
    #[arg(long = "row", value_name = "ID")]
    rows: Vec<String>,

    /// Your own ledger file instead of the built-in ledger; may be given several times
    #[arg(long = "ledger", value_name = "FILE")]
    ledgers: Vec<PathBuf>,

    /// Instead of the rows, compare the errors of the predictions with the errors of the data-sheet values (latency,
    /// IOPS and bandwidth), and the models with the percentiles that data sheets guarantee
    #[arg(long)]
    against_sheet: bool,

    /// Also write everything to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also write the rows to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page with published and modelled values side by side
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the support level of each drive's model to this JSON file; with SOURCE, replace the entries in this file
    /// whose every row was run; ledger/support.json is built into the program
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    support: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    unwritable(args).or(())?;
    if let (Some(path), false) = (&args.support, args.sources.is_empty()) {
        earlier(path)?;
    }
    let files = match args.ledgers.is_empty() {
        true => ledger::built_in()?,
        false => ledger::from_disk(&args.ledgers)?,
    };
    let selection = selection(args)?;
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("reproducing [{wide_bar}] {percent:>3} % {elapsed}, {left}");
    let reproduction = ledger::reproduce(&files, &selection, &|share| {
        bar.share(share);
        ControlFlow::Continue(())
    });
    bar.finish();
    let reproduction = reproduction?;
    stop.results(|| write(args, &files, &reproduction))?;
    if args.against_sheet {
        return Ok(());
    }
    let all = reproduction.results.len();
    match Summary::from_results(reproduction.results.iter()).missed {
        0 => Ok(()),
        1 => Err(Failure::Verdict(format!(
            "1 row of {all} is out of its tolerance"
        ))),
        missed => Err(Failure::Verdict(format!(
            "{missed} of {all} rows are out of their tolerances"
        ))),
    }
}

/// Writes the requested files, and the table.
fn write(args: &Args, files: &[LedgerFile], reproduction: &Reproduction) -> Result<(), Failure> {
    if let Some(path) = &args.json {
        let json = format!("{:#}\n", report::reproduce::json(reproduction));
        write_whole(path, json.as_bytes())?;
    }
    if let Some(path) = &args.csv {
        write_whole(path, csv::reproduction(reproduction).as_bytes())?;
    }
    if let Some(path) = &args.html {
        write_whole(path, report::reproduce::page::html(reproduction).as_bytes())?;
    }
    if let Some(path) = &args.support {
        let supports = match args.sources.is_empty() {
            true => Supports::from_reproduction(files, reproduction)?,
            false => earlier(path)?.updated(files, reproduction)?,
        };
        let json = supports.json_lines().map_err(io::Error::other)?;
        write_whole(path, json.as_bytes())?;
    }
    let width = output::width();
    let text = match args.against_sheet {
        true => {
            let found = AgainstSheet::from_reproduction(files, reproduction)?;
            let bounds = qos::against_sheets(&drives_of(args, files, reproduction)?, &to_the_end)?;
            let found = report::reproduce::against_sheet(&found, width);
            format!("{found}\n\n{}", report::reproduce::qos(&bounds, width))
        }
        false => report::reproduce::text(reproduction, width),
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Returns the support in a file, which a run of some sources updates.
fn earlier(path: &Path) -> Result<Supports, Problems> {
    let problem = |what: String, help: &str| {
        let mut problems = Problems::whole(path.display().to_string(), what);
        problems.0[0].help = Some(help.into());
        problems
    };
    let text = fs::read_to_string(path).map_err(|why| {
        let help = "a run of some sources updates a file that a run of the whole ledger has written; begin with a copy \
                    of ledger/support.json";
        problem(why.to_string(), help)
    })?;
    serde_json::from_str(&text).map_err(|why| {
        problem(
            why.to_string(),
            "it must be a file that `reproduce --support` has written",
        )
    })
}

/// Returns the drives that the selected rows measure; without a selection, all drives of the catalogue.
fn drives_of(
    args: &Args,
    files: &[LedgerFile],
    reproduction: &Reproduction,
) -> Result<Vec<DriveSheet>, Problems> {
    if args.sources.is_empty() && args.rows.is_empty() && args.ledgers.is_empty() {
        return catalogue::drives();
    }
    let rows: BTreeSet<&str> = reproduction
        .results
        .iter()
        .map(|result| &*result.row.id)
        .collect();
    let measured = measured_drives(files).into_iter();
    let selected = measured.filter(|(id, _)| rows.contains(id));
    let drives: BTreeSet<&str> = selected.flat_map(|(_, drives)| drives).collect();
    drives.into_iter().map(catalogue::drive).collect()
}

/// Returns problems that would prevent writing the requested files.
fn unwritable(args: &Args) -> Problems {
    let outputs = output::requested_files([
        ("--json", &args.json),
        ("--csv", &args.csv),
        ("--html", &args.html),
        ("--support", &args.support),
    ]);
    let ledgers: Vec<&Path> = args.ledgers.iter().map(PathBuf::as_path).collect();
    output::problems(&outputs, &ledgers)
}

fn selection(args: &Args) -> Result<Selection, Problems> {
    let known = SOURCES.map(|(source, _)| source);
    let unknown = args.sources.iter().filter(|source| !is_source(source));
    let collections = COLLECTIONS.each_ref();
    let collections =
        collections.map(|one| format!("{} stands for those of {}", one.prefix, one.what));
    let problems = unknown.map(|source| Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: format!("there is no source `{source}`"),
        help: Some(format!(
            "the sources are {}; {}",
            known.join(", "),
            collections.join(", ")
        )),
    });
    Problems(problems.collect()).or(Selection {
        sources: args.sources.clone(),
        rows: args.rows.clone(),
    })
}
