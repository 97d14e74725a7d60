//! `drivelab measure`: measures a real drive with fio.

mod fio;
mod ready;
mod refusal;
mod sysfs;
mod target;

use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lab::Lab;
use model::Span;
use report::decide;
use study::decide::explain::answer::explain;
use study::decide::explain::file;
use study::measure::{
    Document, NextStep, PlanProgress, RoundsVerdict, StepPhase, StepRecord, arguments, names,
};
use text::digits::duration;
use text::problem::{Place, Problem, Problems};
use text::quantity::quantity;
use text::terminal::paragraph;

use crate::answer::quoted;
use crate::failure::{Failure, write_stderr};
use crate::output::{self, write_whole};
use crate::progress::Progress;
use crate::size;
use crate::stop::Stop;
use fio::FioResult;
use ready::CheckedMeasurement;

/// Measure a real drive with fio until it is in steady state, and write one file
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab measure /dev/nvme1n1 --output measured.json                     reads alone, 3 minutes
  drivelab measure /dev/nvme1n1 --plan snia --dry-run                      each fio command
  drivelab measure /dev/nvme1n1 --plan fit --output measured.json
  drivelab measure /dev/nvme1n1 --plan fit --output measured.json --destroy-data S3EVNX0J
  drivelab measure nbd://localhost/disk --output measured.json
  drivelab measure ./image --size 1G --runtime 2s --output measured.json
  drivelab fit p4800x-375 --measured measured.json --output mine.toml
  drivelab explain measured.json ./mine.toml

Plans (fio's jobs; docs/measure.md):
  quick  reads only, about three minutes
  fit    fills the drive twice, random writes until steady, then what `drivelab fit` needs
  snia   the IOPS test of the SNIA's PTS 2.0.2: two fills, rounds of 56 minutes until steady
  snia-throughput-128k, snia-throughput-1m, snia-latency   its other tests, in rounds of 2, 2 and 9 minutes
  under-load   two fills, writes until steady, then rate-limited I/O under competing writes at 0 to 100 % of the maximum rate

A plan that writes destroys the data of its target. Such a plan never writes to the root disk, or to a device that is \
mounted, in use as swap, or held by another device (LVM, MD, ZFS). Some targets are written only if --destroy-data \
names them: devices with partitions, a file system or other signatures, regular files, and NBD exports. The name is \
the serial number of a device, the path of a file, or the URI of an export. A device without a serial number is named \
by the backing file of a loop device, its WWID or its path. A partition has -partN after the name. If a plan only \
reads, fio runs with --readonly.

The file is written after each step. After Ctrl-C or a restart, the same command continues the plan.

Exit codes: 0 done, 1 it failed, 2 bad usage or refused, 3 never steady (the file is complete), 130 stopped.")]
pub(crate) struct Args {
    /// A block device, a regular file, or an NBD server's URI (nbd://, nbd+unix://)
    #[arg(value_name = "DEVICE")]
    device: String,

    /// Plan of jobs
    #[arg(long, default_value = "quick", value_parser = names().collect::<Vec<_>>())]
    plan: String,

    /// Run only jobs that read (as the plan quick does)
    #[arg(long)]
    read_only: bool,

    /// Device whose data may be lost, by its serial number, path or URI (see below)
    #[arg(long, value_name = "NAME")]
    destroy_data: Option<String>,

    /// Duration of each timed step instead of the plan's, such as 2s; warm-ups are shortened in proportion
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    runtime: Option<Span>,

    /// Use only this much of the device, from its beginning: 8G and 8GiB are 8 x 2^30 bytes, 8GB is 8 x 10^9
    #[arg(long, value_name = "SIZE", value_parser = size::size)]
    size: Option<u64>,

    /// fio's engine [default: io_uring, or libaio if fio or the kernel does not support it; nbd for a URI]
    #[arg(long, value_name = "NAME")]
    ioengine: Option<String>,

    /// Print each fio command, and the reasons for which the plan would be refused, and exit
    #[arg(long)]
    dry_run: bool,

    /// File to write; an existing measurement is continued
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let ready = CheckedMeasurement::read(args)?;
    let Some(output) = args.output.as_deref().filter(|_| !args.dry_run) else {
        show(&ready)?;
        return Ok(ready.refused.or(())?);
    };
    let (mut document, course) = there(output, &ready)?;
    let claim = ready.target.claim(ready.plan.writes())?;
    for note in &document.notes {
        output::remark("note", note);
    }
    let stop = Stop::on_signals()?;
    let verdict = go_through(&ready, &mut document, course, output, &stop)?;
    drop(claim);
    if !verdict.is_complete {
        write_stderr("stopped: run the same command again to continue");
        return stop.finish();
    }
    finish(output, &document)
}

/// Prints each command, in order.
fn show(ready: &CheckedMeasurement) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut before = None;
    for (index, step) in ready.plan.steps.iter().enumerate() {
        if before != Some(step.phase) {
            before = Some(step.phase);
            match step.phase {
                StepPhase::Prepare => writeln!(out, "# once, to prepare")?,
                StepPhase::Round => writeln!(
                    out,
                    "# a round, again with other seeds until five are steady, {} times at most",
                    ready.plan.rounds
                )?,
                StepPhase::Measure => writeln!(out, "# once, measured")?,
            }
        }
        let words = arguments(step, &ready.settings, index as u32 + 1, None);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        writeln!(out, "fio {}", words.join(" "))?;
    }
    Ok(())
}

/// Returns the existing measurement, and where it resumes.
fn there<'r>(
    output: &Path,
    ready: &'r CheckedMeasurement,
) -> Result<(Document, PlanProgress<'r>), Failure> {
    if !output.exists() {
        return Ok((ready.fresh.clone(), ready.fresh.course(&ready.plan)));
    }
    let origin = output.display().to_string();
    let text = std::fs::read_to_string(output)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    let document = Document::read(&origin, &text)?;
    let course = document.resume(&origin, &ready.fresh, &ready.plan)?;
    write_stderr(&format!(
        "{origin}: continues after {} steps",
        document.steps.len()
    ));
    Ok((document, course))
}

/// Runs the remaining steps, and writes the file after each.
fn go_through(
    ready: &CheckedMeasurement,
    document: &mut Document,
    mut course: PlanProgress<'_>,
    output: &Path,
    stop: &Stop,
) -> Result<RoundsVerdict, Failure> {
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let scratch = {
        let mut name = output.as_os_str().to_owned();
        name.push(format!(".{}.fio", std::process::id()));
        PathBuf::from(name)
    };
    let result = loop {
        let Some(turn) = course.next() else {
            break Ok(());
        };
        let words = arguments(turn.step, &ready.settings, turn.number, course.round_iops());
        let share = Cell::new(0.0);
        let watch = |told: Option<f64>, seconds: f64| {
            let timed = turn.step.seconds().map(|all| (seconds / all).min(1.0));
            share.set(timed.or(told).unwrap_or(share.get()));
            bar.message(progress(&turn, &course, share.get(), seconds));
        };
        let fio = match ready.fio.call(&words, &scratch, stop, &watch) {
            Ok(FioResult::Answer(fio)) => fio,
            Ok(FioResult::Stopped) => break Ok(()),
            Err(failure) => break Err(failure),
        };
        let step = StepRecord {
            step: turn.step.name.clone(),
            phase: turn.step.phase,
            round: turn.round,
            arguments: words,
            fio,
        };
        if let Err(why) = course.take(&step.fio) {
            break Err(Failure::failed(&step.step, why));
        }
        document.steps.push(step);
        document.verdict = course.verdict();
        if let Err(failure) = write_whole(output, document.text().as_bytes()) {
            break Err(failure);
        }
    };
    bar.finish();
    // It exists only if fio was killed; nothing is lost with it.
    let _ = std::fs::remove_file(&scratch);
    result.map(|()| document.verdict.clone())
}

/// Returns the progress text: the step, its share, and the remaining time.
fn progress(turn: &NextStep<'_>, course: &PlanProgress<'_>, share: f64, seconds: f64) -> String {
    let round = turn
        .round
        .map_or_else(String::new, |round| format!("round {round}, "));
    let left = course.left(share);
    // A step that ends after a number of bytes continues at its initial rate.
    let sized = match turn.step.seconds() {
        None if share > 0.0 => seconds * (1.0 - share) / share,
        _ => 0.0,
    };
    let or_more = if left.is_at_least { " or more" } else { "" };
    format!(
        "{round}{} {:.0} %, {}{or_more} left",
        turn.step.name,
        share * 100.0,
        duration((left.seconds + sized).ceil()),
    )
}

/// Prints the result, and the next steps for the user.
fn finish(output: &Path, document: &Document) -> Result<(), Failure> {
    let origin = output.display().to_string();
    let width = output::width();
    let mut out = io::stdout().lock();
    match file::read(&origin, &document.text()) {
        Ok(runs) => {
            let lab = Lab::new();
            let answers: Result<Vec<_>, Problems> = runs
                .iter()
                .map(|run| explain(run, None, &lab, &|_| ()))
                .collect();
            writeln!(
                out,
                "{}\n",
                decide::table::text_of(&decide::explain::tables(&answers?), width)
            )?;
        }
        // The file holds fio's results; insufficient figures are not a failure of the measurement.
        Err(problems) => write_stderr(&problems.to_string().replace("error: ", "note: ")),
    }
    let verdict = &document.verdict;
    if verdict.is_steady.is_some() {
        writeln!(
            out,
            "{}",
            paragraph("", &format!("The drive was {}.", verdict.text), width)
        )?;
    }
    writeln!(
        out,
        "The measurement is {origin}. A model of it: drivelab fit DRIVE --measured {}",
        quoted(&origin)
    )?;
    match verdict.is_steady {
        Some(false) => Err(Failure::Verdict(format!("never steady: {}", verdict.text))),
        _ => Ok(()),
    }
}

/// Returns a problem of the measured device.
fn of_device(path: &str, what: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem {
        origin: path.to_owned(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}
