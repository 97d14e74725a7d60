//! `drivelab refit`: repeats the catalogue's own fits from the rows of the ledger, for catalogue maintainers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use study::fit::{self, RecipeFilter, RefitProgress};
use study::ledger;
use text::problem::Problems;

use crate::failure::{Failure, on_command_line};
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::stop::ImmediateStop;

/// Refit the catalogue's fitted figures (for catalogue maintainers)
///
/// Uses the rows of the ledger that the recipes in ledger/fits name; prints old and new values.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab refit                                 repeat all fits of the catalogue
  drivelab refit --check                         check that their values hold; exit code 3 if not
  drivelab refit p4800x-375                      those of one drive and its family
  drivelab refit --only nand/950pro-256          those of one file of the catalogue
  drivelab refit --free host.monitor.noise.mean --write catalogue
  drivelab refit --sensitivity                   the row that each figure affects most

To fit a drive that you have measured: drivelab fit.")]
pub(crate) struct Args {
    /// Only the fits in the files of these drives and of their families [default: all]
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    /// Drive, as an alternative to the argument DRIVE; may be given several times
    #[arg(long = "drive", value_name = "DRIVE")]
    drives: Vec<String>,

    /// Only the fits in this file of the catalogue, such as host/esxi-nuc; may be given several times
    #[arg(long = "only", value_name = "FILE")]
    files: Vec<String>,

    /// Only the fits of this figure, by its key; may be given several times
    #[arg(long, value_name = "KEY")]
    free: Vec<String>,

    /// Refit only values whose rows deviate by more than a tolerance; exit with code 3 if a value is outside the
    /// interval of its fit
    #[arg(long)]
    check: bool,

    /// Print the sensitivity of each row to each parameter that could be set from it
    #[arg(long, conflicts_with_all = ["check", "write"])]
    sensitivity: bool,

    /// Write the deviating values into the files of this folder, the catalogue of a checkout
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,

    /// With --write: write all fitted values, including those that do not deviate
    #[arg(long, requires = "write", conflicts_with = "check")]
    all: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let files = ledger::built_in()?;
    let recipes = fit::recipes()?;
    let choice = RecipeFilter {
        free: args.free.clone(),
        drives: [&args.arguments[..], &args.drives].concat(),
        files: args.files.clone(),
        check: args.check,
    };
    if let Some(folder) = args.write.as_ref().filter(|folder| !folder.is_dir()) {
        let what = format!("--write: there is no folder {}", folder.display());
        let help = "the catalogue/ of a checkout";
        return Err(Problems(vec![on_command_line(what, help)]).into());
    }
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let progress = |step: RefitProgress<'_>| {
        bar.message(format!(
            "{} of {} fits; {} of {}: {} values tried",
            step.done, step.of, step.at.key, step.at.file, step.tried
        ));
    };
    // Printed one by one, because all of them take a while.
    let width = output::width();
    let mut told = Ok(());
    if args.sensitivity {
        let mut done = |rows: &[fit::Sensitivity]| {
            if told.is_ok() {
                let rows = report::fit::sensitivity(rows, width);
                told = bar.aside(|| writeln!(io::stdout().lock(), "{rows}\n"));
            }
        };
        let rows = fit::sensitivity(&files, &recipes, &choice, &progress, &mut done);
        bar.finish();
        return told.map_err(Failure::from).and(Ok(rows.map(drop)?));
    }
    let mut done = |refit: &fit::Refit| {
        let rows = report::fit::rows(refit, width);
        let tell = bar.aside(|| writeln!(io::stdout().lock(), "{rows}\n"));
        if told.is_ok() {
            told = tell;
        }
    };
    let refits = fit::ledger(&files, &recipes, &choice, &progress, &mut done);
    bar.finish();
    told?;
    let refits = refits?;
    stop.results(|| {
        writeln!(
            io::stdout().lock(),
            "{}",
            report::fit::ledger(&refits, width)
        )?;
        match &args.write {
            Some(folder) => write_values(&refits, args.all, folder),
            None => Ok(()),
        }
    })?;
    match refits.iter().filter(|refit| !refit.stands).count() {
        off if args.check && off > 0 => Err(Failure::Verdict(format!(
            "{off} of {} fits are off",
            refits.len()
        ))),
        _ => Ok(()),
    }
}

/// Writes the values that are off, or all of them, into the files of a catalogue.
fn write_values(refits: &[fit::Refit], all: bool, folder: &Path) -> Result<(), Failure> {
    let mut by_file: BTreeMap<&str, Vec<&fit::RefittedFigure>> = BTreeMap::new();
    let written = refits.iter().filter(|refit| all || !refit.stands);
    for figure in written.flat_map(|refit| &refit.figures) {
        let file = figure.spot.file.strip_prefix("catalogue/");
        let file = file.unwrap_or(&figure.spot.file);
        by_file.entry(file).or_default().push(figure);
    }
    for (file, figures) in by_file {
        let path = folder.join(file);
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
        write_whole(&path, fit::rewritten(&origin, &text, &figures)?.as_bytes())?;
        writeln!(io::stdout().lock(), "{origin}: {} written", figures.len())?;
    }
    Ok(())
}
