//! `drivelab sweep`: thousands of scenarios from one file into one Parquet file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use study::sweep::{Parts, Sweep, SweepError, Watch, run as run_all};
use text::digits::{duration, grouped, significant};
use text::problem::Problems;

use crate::failure::{Failure, on_command_line, write_stderr};
use crate::output;
use crate::progress::Progress;
use crate::stop::Stop;

/// Maximum number of commands that `--dry-run` shows.
const SHOWN: usize = 10;

/// Run thousands of scenarios into a Parquet file
///
/// The TOML file names drives, changed figures, hosts, states, seeds and fio's options. A list runs with every value;
/// [[point]] and [latin_hypercube] select combinations (docs/sweep.md). A stopped or killed sweep resumes when the
/// same command is given again, and the result is the same.
// The paragraph above is help text; its brackets are TOML's.
#[allow(rustdoc::broken_intra_doc_links)]
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab sweep sweep.toml
  drivelab sweep sweep.toml --dry-run
  drivelab sweep sweep.toml --output /results/depths.parquet --threads 16

A sweep.toml of 2 x 3 scenarios:
  drive = [\"p4800x-375\", \"p3700-1600\"]
  [job]
  ioengine = \"libaio\"
  direct = 1
  rw = \"randread\"
  bs = \"4k\"
  iodepth = [1, 8, 64]
  number_ios = 20000

Until all rows are complete, they are kept in parts in a folder next to the file (FILE.parts).

Exit codes: 0 done, 1 it failed, 2 bad usage or input, or some scenarios are invalid (column `problem`), 130 stopped.")]
pub(crate) struct Args {
    /// Sweep file
    #[arg(value_name = "SWEEP.toml")]
    sweep: PathBuf,

    /// Result [default: the name of the sweep file, with .parquet, in the current folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the number of scenarios and the first of them, as commands, and exit
    #[arg(long)]
    dry_run: bool,

    /// Scenarios run in parallel [default: one per core]; the result does not change
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl From<SweepError> for Failure {
    fn from(trouble: SweepError) -> Failure {
        match trouble {
            SweepError::Input(problems) => problems.into(),
            SweepError::Failed(what) => Failure::Failed(what),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let sweep = Sweep::read(&args.sweep);
    let output = args.output.clone().unwrap_or_else(|| {
        let name = args.sweep.with_extension("parquet");
        name.file_name().map_or(name.clone(), PathBuf::from)
    });
    let unwritable = output::problems(&[("--output", &output)], &[&args.sweep]);
    let sweep = match sweep {
        Ok(sweep) => unwritable.or(sweep)?,
        Err(mut problems) => {
            problems.0.extend(unwritable.0);
            return Err(problems.into());
        }
    };
    for warning in sweep.warnings() {
        output::remark("warning", warning);
    }
    if args.dry_run {
        return Ok(show(&sweep)?);
    }
    let threads = args
        .threads
        .map_or_else(rayon::current_num_threads, usize::from);
    fill(&sweep, &output, threads)
}

/// Prints the number of scenarios, and the first of them.
fn show(sweep: &Sweep) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let axes = sweep.axes().into_iter();
    let axes: Vec<String> = axes
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let of = match axes.is_empty() {
        true => String::new(),
        false => format!(": {}", axes.join(" x ")),
    };
    writeln!(out, "{}{of}", scenarios(sweep.scenarios()))?;
    for index in 0..sweep.scenarios().min(SHOWN) {
        writeln!(out, "{}", sweep.command(index))?;
    }
    match sweep.scenarios().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "... and {} more", grouped(&more.to_string(), ',')),
    }
}

fn scenarios(count: usize) -> String {
    match count {
        1 => "1 scenario".into(),
        count => format!("{} scenarios", grouped(&count.to_string(), ',')),
    }
}

/// Runs the missing scenarios, and writes the result.
fn fill(sweep: &Sweep, output: &Path, threads: usize) -> Result<(), Failure> {
    let parts = Parts::open(sweep, output)?;
    if parts.is_complete() {
        parts.finish()?;
        write_stderr(&format!(
            "{} is complete: {}",
            output.display(),
            scenarios(sweep.scenarios())
        ));
        return verdict(sweep, output);
    }
    let missing: usize = parts
        .missing()?
        .into_iter()
        .map(|part| sweep.part(part).len())
        .sum();
    let there = sweep.scenarios() - missing;
    if there > 0 {
        let there = grouped(&there.to_string(), ',');
        write_stderr(&format!(
            "{there} of {} are there",
            scenarios(sweep.scenarios())
        ));
    }
    let stop = Stop::on_signals()?;
    let bar = Progress::new("{elapsed_precise} [{bar:16}] {pos}/{len} scenarios, {left}");
    bar.planned(missing);
    let (begun, done) = (Instant::now(), AtomicUsize::new(0));
    let watch = Watch {
        go_on: &|| stop.check(),
        done: &|| {
            done.fetch_add(1, Ordering::Relaxed);
            bar.one_done();
        },
    };
    let ran = run_all(sweep, &parts, threads, &watch);
    bar.finish();
    ran?;
    let seconds = begun.elapsed().as_secs_f64();
    let done = done.into_inner();
    if done > 0 {
        let rate = significant(done as f64 / seconds.max(1e-9), 3);
        write_stderr(&format!(
            "{} in {}: {rate} a second",
            scenarios(done),
            duration(seconds)
        ));
    }
    let left: usize = parts
        .missing()?
        .into_iter()
        .map(|part| sweep.part(part).len())
        .sum();
    if left > 0 {
        write_stderr(&format!(
            "stopped: {} are left; run the same command again to continue",
            scenarios(left)
        ));
        return stop.finish();
    }
    parts.finish()?;
    verdict(sweep, output)
}

/// Reports the scenarios that could not be run.
fn verdict(sweep: &Sweep, output: &Path) -> Result<(), Failure> {
    let (count, first) = study::sweep::problems(output)?;
    let Some((scenario, first)) = first else {
        return Ok(());
    };
    let what = format!(
        "{count} of {} could not be run, the first is scenario {scenario}: {first}",
        sweep.scenarios(),
    );
    let help = "the column `problem` says why; the others are in the file";
    Err(Problems(vec![on_command_line(what, help)]).into())
}
