//! `drivelab fit`: a catalogue file for a drive somebody has measured, and the catalogue's own fits run again.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use study::catalogue;
use study::fit::{self, Choice, MeasuredRun, Request, STANDARD_JOBS, Step};
use study::ledger;
use study::problem::Problems;
use study::report::{csv, fit as report};

use crate::failure::{self, Failure};
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::state::State;

/// Fit a drive's parameters to fio's results, or the catalogue's own to the ledger
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab fit --jobs > standard.fio                          fio jobs to measure a drive with
  fio standard.fio --filename=/dev/nvme1n1 --output-format=json --output=results.json
  drivelab fit --base p4800x-375 --measured results.json --output mine.toml
  drivelab review ./mine.toml p4800x-375
  drivelab fit --base p3700-1600 --measured a.json b.json --free nand.medium.read --output p.toml
  drivelab fit --ledger                                       all of the catalogue's fits again
  drivelab fit --ledger --drive p4800x-375                    those of one drive and its family
  drivelab fit --ledger --only nand/950pro-256                those of one file of the catalogue
  drivelab fit --ledger --check                               exit code 3 if one is off
  drivelab fit --ledger --free host.monitor.noise.mean --write catalogue
  drivelab fit --ledger --sensitivity                         which row a figure moves most

The jobs write to the drive they measure. Each group of jobs in fio's results is a run; every fourth is held out of \
the fit, and its error tells how far the model can be trusted elsewhere.")]
pub(crate) struct Args {
    /// Print the standard fio jobs and stop
    #[arg(long, exclusive = true)]
    jobs: bool,

    /// Make the catalogue's own fits again, from the rows of the ledger that ledger/fits names, and print old and new
    #[arg(long, conflicts_with_all = ["base", "measured", "output", "name"])]
    ledger: bool,

    /// With --ledger: only the fits of this drive's file and its family's; may be given several times
    #[arg(long = "drive", value_name = "DRIVE", requires = "ledger")]
    drives: Vec<String>,

    /// With --ledger: only the fits of this file of the catalogue, such as host/esxi-nuc; may be given several times
    #[arg(long = "only", value_name = "FILE", requires = "ledger")]
    files: Vec<String>,

    /// With --ledger: search only where a value of the catalogue is off its rows by more than a tolerance, and exit
    /// with code 3 if one is not within the interval of its fit
    #[arg(long, requires = "ledger")]
    check: bool,

    /// With --ledger: print how much the figure of each row that a parameter could be set from depends on it
    #[arg(long, requires = "ledger", conflicts_with_all = ["check", "write"])]
    sensitivity: bool,

    /// With --ledger: write the values that are off into the files of this folder, the catalogue of a checkout
    #[arg(long, value_name = "FOLDER", requires = "ledger")]
    write: Option<PathBuf>,

    /// With --write: write the values that stand too, each as the fit finds it
    #[arg(long, requires = "write", conflicts_with = "check")]
    all: bool,

    /// The drive to begin from: a name of the catalogue, or the path of a TOML file
    #[arg(long, required_unless_present_any = ["jobs", "ledger"])]
    base: Option<String>,

    /// fio's JSON output, one file or several
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present_any = ["jobs", "ledger"])]
    measured: Vec<PathBuf>,

    /// A parameter to fit, by its key; may be given several times [default: those of the medium, or all of --ledger]
    #[arg(long, value_name = "KEY")]
    free: Vec<String>,

    /// The host it was measured in: a name, or the path of a TOML file
    #[arg(long, default_value = "xeon-2017")]
    host: String,

    /// The drive's state when it was measured
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    /// Hold every N-th run out of the fit; 0 for none
    #[arg(long, value_name = "N", default_value_t = 4)]
    hold_out: usize,

    /// Iterations of the search
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    iterations: u64,

    /// The drive's name in the file [default: the file's]
    #[arg(long)]
    name: Option<String>,

    /// Write every measured figure beside the model's as a table for pandas to this file too
    #[arg(long, value_name = "FILE", conflicts_with = "ledger")]
    csv: Option<PathBuf>,

    /// Where the catalogue file goes
    #[arg(long, value_name = "FILE", required_unless_present_any = ["jobs", "ledger"])]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.jobs {
        return Ok(io::stdout().lock().write_all(STANDARD_JOBS.as_bytes())?);
    }
    if args.ledger {
        return ledger(args);
    }
    let (Some(base), Some(output)) = (&args.base, &args.output) else {
        return Err(Problems::whole("command line", "give --base, --measured and --output").into());
    };
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let request = Request {
        base: base.clone(),
        host: args.host.clone(),
        state: args.state.into(),
        free: args.free.clone(),
        measured: measured(args, output)?,
        hold_out: args.hold_out,
        iterations: args.iterations,
        name: args.name.clone().unwrap_or_else(|| stem.into_owned()),
    };
    warn(&request.measured);
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let fitted = fit::drive(&request, &|evaluations| {
        bar.message(format!("{evaluations} points tried"));
    });
    bar.finish();
    let fitted = fitted?;
    write_whole(output, fitted.toml.as_bytes())?;
    if let Some(path) = &args.csv {
        write_whole(path, csv::fit(&fitted).as_bytes())?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n", report::drive(&fitted))?;
    writeln!(out, "The drive is {}.", output.display())?;
    Ok(())
}

/// What was measured, if base drive and host are there too; no file that is read is where the fit goes.
fn measured(args: &Args, output: &Path) -> Result<Vec<MeasuredRun>, Problems> {
    let base = args.base.as_deref().map(Path::new);
    let measured = args.measured.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = measured.chain(base).collect();
    let mut outputs = vec![("--output", output)];
    outputs.extend(output::asked([("--csv", &args.csv)]));
    let mut problems = output::problems(&outputs, &inputs);
    let base = args
        .base
        .as_deref()
        .and_then(|base| catalogue::drive(base).err());
    let host = catalogue::host(&args.host).err();
    let wrong = [base, host].into_iter().flatten();
    problems.0.extend(wrong.flat_map(|one| one.0));
    let mut runs = Vec::new();
    for path in &args.measured {
        match one(path) {
            Ok(found) => runs.extend(found),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(runs)
}

/// Tells in what the runs were measured otherwise than the model does them: the fit takes it for the drive's own.
fn warn(measured: &[MeasuredRun]) {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in measured {
        for what in &run.unlike {
            match all.iter_mut().find(|(known, _)| known == what) {
                Some((_, runs)) => runs.push(&run.name),
                None => all.push((what, vec![&run.name])),
            }
        }
    }
    for (what, runs) in all {
        let which = match runs.len() == measured.len() {
            true => String::new(),
            false => format!(" ({})", runs.join(", ")),
        };
        failure::tell(&format!("warning: {what}{which}"));
    }
}

fn one(path: &Path) -> Result<Vec<MeasuredRun>, Problems> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    fit::read(&origin, &text)
}

fn ledger(args: &Args) -> Result<(), Failure> {
    let files = ledger::built_in()?;
    let recipes = fit::recipes()?;
    let choice = Choice {
        free: args.free.clone(),
        drives: args.drives.clone(),
        files: args.files.clone(),
        check: args.check,
    };
    if let Some(folder) = args.write.as_ref().filter(|folder| !folder.is_dir()) {
        let what = format!("--write: there is no folder {}", folder.display());
        return Err(Problems::whole("command line", what).into());
    }
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let progress = |step: Step<'_>| {
        bar.message(format!(
            "{} of {} fits; {} of {}: {} values tried",
            step.done, step.of, step.at.key, step.at.file, step.tried
        ));
    };
    // Each as it comes: all of them take a while.
    let mut told = Ok(());
    if args.sensitivity {
        let mut done = |rows: &[fit::Sensitivity]| {
            if told.is_ok() {
                let rows = report::sensitivity(rows);
                told = bar.aside(|| writeln!(io::stdout().lock(), "{rows}\n"));
            }
        };
        let rows = fit::sensitivity(&files, &recipes, &choice, &progress, &mut done);
        bar.finish();
        return told.map_err(Failure::from).and(Ok(rows.map(drop)?));
    }
    let mut done = |refit: &fit::Refit| {
        let rows = report::rows(refit);
        let tell = bar.aside(|| writeln!(io::stdout().lock(), "{rows}\n"));
        if told.is_ok() {
            told = tell;
        }
    };
    let refits = fit::ledger(&files, &recipes, &choice, &progress, &mut done);
    bar.finish();
    told?;
    let refits = refits?;
    writeln!(io::stdout().lock(), "{}", report::ledger(&refits))?;
    if let Some(folder) = &args.write {
        write_values(&refits, args.all, folder)?;
    }
    match refits.iter().filter(|refit| !refit.stands).count() {
        off if args.check && off > 0 => Err(Failure::Verdict(format!(
            "{off} of {} fits are off",
            refits.len()
        ))),
        _ => Ok(()),
    }
}

/// Puts the values that are off, or all of them, into the files of a catalogue.
fn write_values(refits: &[fit::Refit], all: bool, folder: &Path) -> Result<(), Failure> {
    let mut by_file: BTreeMap<&str, Vec<&fit::Moved>> = BTreeMap::new();
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
