//! `drivelab fit`: a catalogue file for a drive that a user has measured, or for the host of the measurement.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use catalogue::{DataSheet, DriveSheet, Settings};
use report::csv;
use study::fit::{self, BaseFit, FitRequest, HostRequest, MeasuredRun};
use study::measure::{HOST_JOBS, STANDARD_JOBS, StepFigures};
use text::problem::Problems;
use tier::DriveConfig;

use crate::drive::load;
use crate::failure::{Failure, on_command_line};
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::setting::SettingArgs;
use crate::state::State;
use crate::stop::ImmediateStop;

/// Target of the measurement jobs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum JobsOf {
    /// A drive: the jobs write to it
    Drive,
    /// A host: the jobs use null devices
    Host,
}

/// Fit a model to a drive that you have measured with fio
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab fit --jobs > standard.fio                          fio jobs to measure a drive with
  fio standard.fio --filename=/dev/nvme1n1 --output-format=json --output=results.json
  drivelab fit --measured results.json --output mine.toml     begins from the nearest drives
  drivelab fit p4800x-375 --measured results.json --output mine.toml
  drivelab review ./mine.toml p4800x-375
  drivelab fit p3700-1600 --measured a.json b.json --free nand.medium.read --output p.toml
  drivelab fit --jobs host > host.fio                         fio jobs to measure a host with
  drivelab fit --host-measured host.json --host linux --output my-host.toml
  drivelab fit p4800x-375 --measured results.json --host ./my-host.toml --output mine.toml
  drivelab fit --sheet sheet.toml --family client-tlc --output mine.toml   from a data sheet

Jobs of a drive write to it. Each group of jobs in fio's results is a run; every fourth run is held out of \
the fit. The error of the held-out runs shows how accurate the model is for other loads.")]
pub(crate) struct Args {
    /// Print the fio jobs for measuring a drive, or those for measuring a host, and exit
    #[arg(long, exclusive = true, value_name = "OF", num_args = 0..=1, default_missing_value = "drive")]
    jobs: Option<JobsOf>,

    /// Base drive: a name (see `drivelab drives`), the path of a TOML file, or auto, which tries one drive of each
    /// similar medium and family and prints the held-out error of each [default: auto]
    #[arg(value_name = "DRIVE")]
    argument: Option<String>,

    /// Base drive, as an alternative to the argument DRIVE
    #[arg(
        long,
        visible_alias = "base",
        value_name = "DRIVE",
        conflicts_with = "argument"
    )]
    drive: Option<String>,

    #[command(flatten)]
    setting: SettingArgs,

    /// Build the drive from a maker's data sheet, a TOML file with its ratings (docs/sheets.md), instead of
    /// measurements
    #[arg(long, value_name = "FILE", conflicts_with_all = ["argument", "drive", "measured", "free", "csv"])]
    sheet: Option<String>,

    /// Family of a drive from a data sheet, if the sheet names none: from the catalogue, or from the sheet's folder
    #[arg(long, value_name = "FAMILY", requires = "sheet")]
    family: Option<String>,

    /// fio's JSON output, in one or several files
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present_any = ["jobs", "sheet", "host_measured"])]
    measured: Vec<PathBuf>,

    /// Build a host instead of a drive, from fio's JSON output of the jobs of `--jobs host`; the base is the host of
    /// --host (docs/hosts.md)
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "output",
        conflicts_with_all = ["argument", "drive", "sheet", "measured", "free", "state", "SettingArgs"])]
    host_measured: Vec<PathBuf>,

    /// Parameter to fit, by its key; may be given several times [default: those of the medium]
    #[arg(long, value_name = "KEY")]
    free: Vec<String>,

    /// Host of the measurement: a name or the path of a TOML file [default: linux; virtual-machine for a volume;
    /// xeon-2017 with --sheet]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// State of the drive at the start of the measurement
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    /// Hold out every N-th run from the fit, and evaluate the fit with it; 0 for none
    #[arg(long, value_name = "N", default_value_t = 4)]
    hold_out: usize,

    /// Maximum iterations of the search
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    iterations: u64,

    /// Name of the drive in the file [default: the file's name]
    #[arg(long)]
    name: Option<String>,

    /// Also write measured values and the model's values to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// TOML file to write; with --sheet, the drive is only printed without this option
    #[arg(long, value_name = "FILE", required_unless_present_any = ["jobs", "sheet"])]
    output: Option<PathBuf>,

    /// Replace existing output files
    #[arg(long)]
    force: bool,
}

/// Argument for a base drive that is chosen automatically.
const AUTO: &str = "auto";

impl Args {
    fn host(&self) -> &str {
        let otherwise = match self.sheet {
            Some(_) => catalogue::RATING_HOST,
            None if self.begins_with_a_volume() => catalogue::GUEST_HOST,
            None => catalogue::TYPICAL_HOST,
        };
        self.host.as_deref().unwrap_or(otherwise)
    }

    /// Checks whether the base is a volume; problems of the base are reported where it is read.
    fn begins_with_a_volume(&self) -> bool {
        let base = self.argument.as_ref().or(self.drive.as_ref());
        let base = base.and_then(|base| load(base, &Settings::from(&self.setting)).ok());
        base.is_some_and(|base| matches!(base.config, DriveConfig::Volume(_)))
    }

    /// Returns problems that would prevent writing these files, which must not include any of `inputs`.
    fn problems_of_outputs(&self, outputs: &[(&str, &Path)], inputs: &[&Path]) -> Problems {
        let mut problems = output::problems(outputs, inputs);
        if problems.0.is_empty() && !self.force {
            let there = outputs.iter().filter(|(_, path)| path.is_file());
            problems.0.extend(there.map(|(option, path)| {
                let what = format!("{option} {}: exists already", path.display());
                on_command_line(what, "add --force to replace it, or name another file")
            }));
        }
        problems
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(of) = args.jobs {
        let jobs = match of {
            JobsOf::Drive => STANDARD_JOBS,
            JobsOf::Host => HOST_JOBS,
        };
        return Ok(io::stdout().lock().write_all(jobs.as_bytes())?);
    }
    if let (false, Some(output)) = (args.host_measured.is_empty(), &args.output) {
        return of_host(args, output);
    }
    if let Some(sheet) = &args.sheet {
        return from_sheet(args, sheet);
    }
    let base = args.argument.as_ref().or(args.drive.as_ref());
    let base = base.map_or(AUTO, |base| base);
    let Some(output) = &args.output else {
        let help = "--output mine.toml";
        return Err(Problems(vec![on_command_line("no file to write is named", help)]).into());
    };
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let request = FitRequest {
        base: base.to_owned(),
        settings: Settings::from(&args.setting),
        host: args.host().to_owned(),
        state: args.state.into(),
        free: args.free.clone(),
        measured: measured(args, base, output)?,
        hold_out: args.hold_out,
        iterations: args.iterations,
        name: args.name.clone().unwrap_or_else(|| stem.into_owned()),
    };
    warn(&request.measured);
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let tried = fit_bases(args, &request, &bar);
    bar.finish();
    let tried = tried?;
    let fitted = &tried[0].fitted;
    stop.results(|| {
        write_whole(output, fitted.toml.as_bytes())?;
        if let Some(path) = &args.csv {
            write_whole(path, csv::fit(fitted).as_bytes())?;
        }
        let mut out = io::stdout().lock();
        if base == AUTO {
            writeln!(out, "{}\n", report::fit::bases(&tried, output::width()))?;
        }
        writeln!(out, "{}\n", report::fit::drive(fitted, output::width()))?;
        writeln!(out, "The drive is {}.", output.display())?;
        Ok(())
    })
}

/// Fits the host on which null devices were measured.
fn of_host(args: &Args, output: &Path) -> Result<(), Failure> {
    let base = args.host();
    let inputs = args.host_measured.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = inputs.chain([Path::new(base)]).collect();
    let mut outputs = vec![("--output", output)];
    outputs.extend(output::requested_files([("--csv", &args.csv)]));
    let mut problems = args.problems_of_outputs(&outputs, &inputs);
    problems
        .0
        .extend(catalogue::host(base).err().into_iter().flat_map(|it| it.0));
    let mut runs = Vec::new();
    for path in &args.host_measured {
        let origin = path.display().to_string();
        match read(path).and_then(|text| fit::read_host(&origin, &text)) {
            Ok(found) => runs.extend(found),
            Err(found) => problems.0.extend(found.0),
        }
    }
    let measured = problems.or(runs)?;
    let told: Vec<MeasuredRun> = measured.iter().map(|one| one.run.clone()).collect();
    warn(&told);
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let request = HostRequest {
        base: base.to_owned(),
        measured,
        hold_out: args.hold_out,
        iterations: args.iterations,
        name: args.name.clone().unwrap_or_else(|| stem.into_owned()),
    };
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let fitted = fit::host(&request, &|points| {
        bar.message(format!("{points} points tried"));
    });
    bar.finish();
    let fitted = fitted?;
    stop.results(|| {
        write_whole(output, fitted.toml.as_bytes())?;
        if let Some(path) = &args.csv {
            write_whole(path, csv::fit(&fitted).as_bytes())?;
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{}\n", report::fit::drive(&fitted, output::width()))?;
        writeln!(
            out,
            "The host is {0}: use it with --host {0}.",
            output.display()
        )?;
        Ok(())
    })
}

/// Returns the fit of the named base, or those of all tried bases, the recommended one first.
fn fit_bases(args: &Args, request: &FitRequest, bar: &Progress) -> Result<Vec<BaseFit>, Problems> {
    if request.base == AUTO {
        let host = |base: &DriveSheet| match base.config {
            _ if args.host.is_some() => args.host().to_owned(),
            DriveConfig::Volume(_) => catalogue::GUEST_HOST.to_owned(),
            _ => catalogue::TYPICAL_HOST.to_owned(),
        };
        fit::from_any(request, &host, &|base, evaluations| {
            bar.message(match evaluations {
                0 => format!("{base} as it is"),
                _ => format!("{base}: {evaluations} points tried"),
            });
        })
    } else {
        let fitted = fit::drive(request, &|evaluations| {
            bar.message(format!("{evaluations} points tried"));
        });
        fitted.map(|fitted| {
            vec![BaseFit {
                base: request.base.clone(),
                kind: String::new(),
                host: request.host.clone(),
                fitted,
            }]
        })
    }
}

/// Makes the drive of a maker's data sheet.
fn from_sheet(args: &Args, path: &str) -> Result<(), Failure> {
    let outputs = output::requested_files([("--output", &args.output)]);
    let mut problems = args.problems_of_outputs(&outputs, &[Path::new(path)]);
    let sheet = DataSheet::open(path, args.family.as_deref());
    let host = catalogue::host(args.host());
    let wrong = [sheet.as_ref().err(), host.as_ref().err()];
    let wrong = wrong.into_iter().flatten();
    problems
        .0
        .extend(wrong.flat_map(|one| one.0.iter().cloned()));
    let (sheet, host) = match (sheet, host) {
        (Ok(sheet), Ok(host)) if problems.0.is_empty() => (sheet, host),
        _ => return Err(problems.into()),
    };
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("{spinner} {elapsed} {wide_msg}");
    let made = fit::from_sheet(&sheet, &host, &|runs| {
        bar.message(format!("{runs} values tried"));
    });
    bar.finish();
    let made = made?;
    stop.results(|| {
        if let Some(output) = &args.output {
            write_whole(output, made.toml.as_bytes())?;
        }
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "{}",
            report::fit::sheet(&sheet, &made, output::width())
        )?;
        if let Some(output) = &args.output {
            writeln!(out, "\nThe drive is {}.", output.display())?;
        }
        Ok(())
    })
}

/// Returns the measurements if base drive and host exist too; the output must not replace a file that is read.
fn measured(args: &Args, base: &str, output: &Path) -> Result<Vec<MeasuredRun>, Problems> {
    let measured = args.measured.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = measured.chain([Path::new(base)]).collect();
    let mut outputs = vec![("--output", output)];
    outputs.extend(output::requested_files([("--csv", &args.csv)]));
    let mut problems = args.problems_of_outputs(&outputs, &inputs);
    let base = match load(base, &Settings::from(&args.setting)) {
        _ if base == AUTO => None,
        Ok(base) if base.pool.is_some() => Some(Problems(vec![on_command_line(
            format!("{}: a pool has no parameters of its own to fit", base.id),
            "fit one of its drives",
        )])),
        base => base.err(),
    };
    let host = catalogue::host(args.host()).err();
    let wrong = [base, host].into_iter().flatten();
    problems.0.extend(wrong.flat_map(|one| one.0));
    let mut runs = Vec::new();
    for path in &args.measured {
        match read_runs(path) {
            Ok(found) => runs.extend(found),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(runs)
}

/// Warns about differences between the measurement and the model's run, which the fit attributes to the drive.
pub(crate) fn warn(measured: &[MeasuredRun]) {
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
        output::remark("warning", &format!("{what}{which}"));
    }
}

/// Returns the runs in a file of fio's results, or in a measurement.
fn read_runs(path: &Path) -> Result<Vec<MeasuredRun>, Problems> {
    fit::read(&path.display().to_string(), &read(path)?)
}

/// Returns the runs in a file, and its rate-limited reads and writes.
pub(crate) fn with_paced(path: &Path) -> Result<(Vec<MeasuredRun>, Vec<StepFigures>), Problems> {
    let origin = path.display().to_string();
    let text = read(path)?;
    let runs = fit::read(&origin, &text)?;
    Ok((runs, study::measure::paced(&origin, &text)?))
}

fn read(path: &Path) -> Result<String, Problems> {
    let origin = path.display().to_string();
    text::bounded::text(path, text::bounded::RESULTS)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))
}
