//! `drivelab explain`: analysis of a user's fio run.

use std::io;
use std::path::{Path, PathBuf};

use catalogue::{DriveSheet, Settings};
use lab::Lab;
use report::decide::view;
use study::decide::explain::answer::{ExplainRequest, explain};
use study::decide::explain::file::{self, ReportingGroup};
use study::decide::explain::steadiness;
use text::problem::Problems;
use text::{bounded, foreign};

use crate::answer::{self, collect_problems};
use crate::drive::{DriveArgs, DrivesAndFiles, load, sort};
use crate::failure::{Failure, on_command_line};
use crate::idle::note_on_power_states;
use crate::output;
use crate::progress::Progress;
use crate::seed::SeedArg;
use crate::state::State;
use crate::stop::ImmediateStop;

/// Analysis of a fio run: the bottleneck, the distance from the rating with its reasons, and possible changes
#[derive(clap::Args)]
#[command(override_usage = "drivelab explain <RESULTS.JSON> [DRIVE] [OPTIONS]")]
#[command(after_help = "\
Examples:
  drivelab explain results.json
  drivelab explain results.json p4800x-375
  drivelab explain results.json p3700-1600 --host xeon-2017 --output why.html
  drivelab explain results.json 980pro-1000 --log run_iops.1.log
  fio job.fio --output-format=json | drivelab explain - ./my-drive.toml --json

RESULTS.JSON is the output of fio (fio 3, --output-format=json or json+) for one or several jobs. From the file alone, \
explain reports the commands in flight and whether threads were busy. If a drive is given, the run is simulated with \
the options in the file. The simulation is repeated under conditions that the file does not record (the drive's \
state, its link, alignment, the host), and with each option changed that may limit the run.

A condition explains a difference if its rates and latencies are nearest to the measured ones. Such a condition is a \
likely cause; check it on the machine.")]
pub(crate) struct Args {
    /// fio's results as JSON (- for standard input), and the measured drive: a name (see `drivelab drives`), a TOML
    /// file or a pool expression
    #[arg(value_name = "RESULTS.JSON|DRIVE")]
    arguments: Vec<PathBuf>,

    #[command(flatten)]
    drives: DriveArgs,

    /// fio's log of rates over time (write_iops_log or write_bw_log) of one thread; may be given several times
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,

    /// Host of the drive: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    /// Assumed state of the drive at the start of the run
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per run and per simulated case
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: measured and simulated rates of all cases, and the latency breakdown
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (runs, request) = read(args)?;
    for run in &runs {
        for wrong in &run.contradictions {
            let what = format!(
                "{}: the results contradict their options: {wrong}",
                run.name
            );
            output::remark("warning", &what);
        }
    }
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let lab = Lab::new();
    let mut answers = Vec::new();
    let mut problems = Problems::default();
    for run in &runs {
        let tell = |what: &str| bar.message(format!("{}: {what}", run.name));
        match explain(run, request.as_ref(), &lab, &tell) {
            Ok(answer) => answers.push(answer),
            Err(more) => problems.0.extend(more.0),
        }
    }
    bar.finish();
    problems.or(())?;
    stop.results(|| {
        answer::show(
            &view::explain(request.as_ref(), &answers),
            args.json,
            &args.csv,
            &args.output,
        )
    })
}

fn read(args: &Args) -> Result<(Vec<ReportingGroup>, Option<ExplainRequest>), Problems> {
    let mut problems = Problems::default();
    let sorted = sort(&args.arguments, "fio's results", &mut problems);
    let all_known = problems.0.is_empty();
    let mut runs = runs(&sorted, all_known, &mut problems);
    with_logs(args, &mut runs, &mut problems);
    let host = collect_problems(catalogue::host(&args.host), &mut problems);
    let drive = drive(args, &sorted, all_known, &mut problems);
    let inputs = sorted.files.iter().chain(&args.log);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    let request = drive.zip(host);
    if let (Some((drive, host)), true) = (&request, problems.0.is_empty()) {
        note_on_power_states([drive], host);
    }
    let request = request.map(|(drive, host)| ExplainRequest {
        drive,
        host,
        state: args.state.into(),
        seed: args.seed.seed,
        seeds: args.seeds,
    });
    problems.or((runs, request))
}

/// Returns the runs in the file; an unknown argument may have been meant as the file.
fn runs(sorted: &DrivesAndFiles, all_known: bool, problems: &mut Problems) -> Vec<ReportingGroup> {
    let path = match (sorted.files.as_slice(), all_known) {
        ([path], _) => path,
        ([], false) => return Vec::new(),
        (files, _) => {
            let what = match files.len() {
                0 => String::from("no results of fio are named"),
                count => format!("{count} files of results: {}", shown(files)),
            };
            let help = "give one file, and the drive that was measured if it is known";
            problems.0.push(on_command_line(what, help));
            return Vec::new();
        }
    };
    let text = collect_problems(text_of(path), problems);
    let runs = text.and_then(|text| {
        let origin = path.display().to_string();
        collect_problems(file::read(&origin, &text), problems)
    });
    runs.unwrap_or_default()
}

fn shown(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    names.join(", ")
}

/// Returns the drive, if one is named; an unknown argument may have been meant as the drive.
fn drive(
    args: &Args,
    sorted: &DrivesAndFiles,
    all_known: bool,
    problems: &mut Problems,
) -> Option<DriveSheet> {
    let settings = args.drives.settings();
    args.state.check(&settings, problems);
    let names = args.drives.names(&sorted.drives);
    match names.as_slice() {
        [name] => return collect_problems(load(name, &settings), problems),
        [] if all_known && settings != Settings::default() => problems.0.push(on_command_line(
            "drive settings require a drive",
            "name the drive, or leave them out",
        )),
        [] => {}
        several => problems.0.push(on_command_line(
            format!("{} drives: {}", several.len(), several.join(", ")),
            "a fio run uses one drive: name one drive",
        )),
    }
    None
}

/// Adds the logs. They belong to one run, but do not name it.
fn with_logs(args: &Args, runs: &mut [ReportingGroup], problems: &mut Problems) {
    if args.log.is_empty() {
        return;
    }
    let texts = args.log.iter().map(|path| {
        let text = text_of(path)?;
        Ok((path.display().to_string(), text))
    });
    let texts: Vec<Option<_>> = texts.map(|read| collect_problems(read, problems)).collect();
    let Some(texts) = texts.into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let judged = collect_problems(steadiness::of_logs(&texts), problems);
    match (runs, judged) {
        ([one], Some(judged)) => one.facts.steadiness = judged,
        ([] | [_], _) => {}
        (many, _) => problems.0.push(on_command_line(
            format!(
                "--log: the file has {} runs, and a log is of one",
                many.len()
            ),
            "explain the results of one run (fio's jobs between two stonewalls) at a time",
        )),
    }
}

fn text_of(path: &Path) -> Result<String, Problems> {
    let read = match path == Path::new("-") {
        true => bounded::from(io::stdin().lock(), bounded::RESULTS),
        false => bounded::bytes(path, bounded::RESULTS),
    };
    let origin = path.display().to_string();
    let bytes =
        read.map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
    if let Some(encoding) = foreign::utf16(&bytes) {
        let mut problems = Problems::whole(origin, format!("is {encoding}, not UTF-8"));
        problems.0[0].help = Some(String::from(foreign::UTF16_HELP));
        return Err(problems);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problems::whole(origin, format!("is not text in UTF-8: byte {at}"))
    })
}
