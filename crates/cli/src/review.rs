//! `drivelab review`: comparison of drives, as a page, as JSON and as a table.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use lab::Lab;
use report::{csv, page};
use study::ask::load::{job_file, trace_file};
use study::fit::MeasuredRun;
use study::measure::StepFigures;
use study::review::sensitivity::sensitivity;
use study::review::{self, Event, Review, ReviewRequest, Suite, summary};
use text::problem::{Problem, Problems};
use text::terminal::paragraph;
use text::words::listed;

use crate::answer::collect_problems;
use crate::drive::DriveArgs;
use crate::failure::{Failure, on_command_line};
use crate::fit;
use crate::heat::HeatArgs;
use crate::output::{self, remark, write_whole};
use crate::progress::Progress;
use crate::seed::SeedArg;
use crate::stop::ImmediateStop;

/// Compare drives side by side: an HTML page, its data, and a summary
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab review p4800x-375 p3700-1600 9100max-2400
  drivelab review p4800x-375 ./my-drive.toml --job database.fio --job log.fio
  drivelab review p4800x-375 --trace vm.vscsi.xz --output vm.html
  drivelab review ./mine.toml p4800x-375 --measured measured.json          measured beside modelled
  drivelab review p4800x-375 p3700-1600 --job database.fio --only-jobs
  drivelab review p4800x-375 p3700-1600 --suite full --seed 7
  drivelab review optane-memory-16 950pro-256 --suite virten-2017
  drivelab review s2-slog 'mirror(2*p4800x-375)' --suite slog
  drivelab review group --suite hcibench --jobs-out jobs
  drivelab review p4800x-375 p4800x-750 --power-limit 12W --uptime 10min
  drivelab review p4800x-750 p3700-1600 --suite heat --ambient 55C --airflow 100LFM
  drivelab review 'mirror(2*p4610-1600)' 'raid5(4*p4610-1600)' --suite rebuild

Writes three files: review.html (self-contained), review.json (the same data), and review.csv (a table for pandas, with \
a line for each drive, point and direction). Progress is printed on standard error, the summary table on standard output.")]
pub(crate) struct Args {
    /// Names of drives (see `drivelab drives`) or paths of their TOML files
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// A fio job file to run on each drive; may be given several times
    #[arg(long = "job", value_name = "FILE")]
    jobs: Vec<PathBuf>,

    /// A block trace to replay on each drive, as recorded; may be given several times
    #[arg(long = "trace", value_name = "FILE")]
    traces: Vec<PathBuf>,

    /// Measurement of the first named drive (`drivelab measure`, or fio's JSON): shown next to its model in the
    /// charts, and as a table; may be given several times
    #[arg(long = "measured", value_name = "FILE")]
    measured: Vec<PathBuf>,

    /// Run only the jobs and traces, not the suite
    #[arg(long)]
    only_jobs: bool,

    /// quick takes minutes for three drives. full takes longer and has percentiles to 99.999 at 4 KiB.
    /// anandtech-2017, virten-2017 and perftest are tests of published articles. slog (synchronous writes), hcibench
    /// (a write buffer) and cache-warmup (warm-up of a cache) are for pools. under-load shows rate-limited reads and
    /// writes under a competing random write load of 0 to 100 % of each drive's maximum, as a database sees it. snia
    /// has the tests of SNIA's PTS 2.0.2, in rounds until steady state. heat has ten minutes of writes without and with
    /// heat (--ambient, --airflow). rebuild has I/O while a pool member is rebuilt
    #[arg(long, default_value = "quick", value_parser = Suite::ALL.map(Suite::name))]
    suite: String,

    /// I/Os per point instead of the suite's number: faster, with fewer percentiles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    ios: Option<u64>,

    /// Host of the drives: a name or the path of a TOML file [default: linux; xeon-2017 with anandtech-2017 and the
    /// suites for pools, esxi-nuc with virten-2017, freebsd-perftest with perftest]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Also report which assumed figures of each drive affect its headline results: each is divided and multiplied by
    /// 1.5
    #[arg(long)]
    sensitivity: bool,

    #[command(flatten)]
    heat: HeatArgs,

    #[command(flatten)]
    seed: SeedArg,

    /// Also write each job that ran, as a fio job file, into a new folder
    #[arg(long, value_name = "FOLDER")]
    jobs_out: Option<PathBuf>,

    /// Page to write; its data are written next to it, with the extensions .json and .csv
    #[arg(long, short, default_value = "review.html", value_name = "FILE")]
    output: PathBuf,

    /// Replace existing files that no review wrote
    #[arg(long)]
    force: bool,
}

impl Args {
    /// Page, data and table.
    fn files(&self) -> [PathBuf; 3] {
        let page = &self.output;
        [
            page.clone(),
            page.with_extension("json"),
            page.with_extension("csv"),
        ]
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (request, measured) = match (read(args), measured(args)) {
        (Ok(request), Ok(measured)) => (request, measured),
        (request, measured) => {
            let wrong = [request.err(), measured.err()].into_iter().flatten();
            return Err(Problems(wrong.flat_map(|it| it.0).collect()).into());
        }
    };
    review::check(&request)?;
    let stop = ImmediateStop::on_signals()?;
    let bar =
        Progress::new("{elapsed_precise} [{bar:16}] {pos}/{len} measurements, {left}  {wide_msg}");
    let lab = Lab::new();
    let result = review::review(&request, &lab, &|event| update_progress(&bar, event));
    let moved = match args.sensitivity {
        true => {
            let names = args.drives.names(&args.arguments);
            Some(sensitivity(&request, &names, &lab, &|event| {
                update_progress(&bar, event)
            }))
        }
        false => None,
    };
    bar.finish();
    let mut review = result?;
    if let Some(moved) = moved {
        review.tell_sensitivity(moved?);
    }
    for MeasuredFile {
        origin,
        runs,
        paced,
    } in &measured
    {
        review.tell_paced(0, origin, paced);
        let nowhere = review.tell_measured(0, origin, runs);
        if nowhere > 0 {
            let what = format!(
                "{origin}: the suite does not run {nowhere} of {} runs, or on so little of the drive",
                runs.len()
            );
            output::remark(
                "note",
                &format!("{what}; drivelab explain compares each of them"),
            );
        }
    }
    stop.results(|| write(args, &review))
}

/// Measurements from a file.
struct MeasuredFile {
    origin: String,
    runs: Vec<MeasuredRun>,
    paced: Vec<StepFigures>,
}

/// Returns the measurements, by file.
fn measured(args: &Args) -> Result<Vec<MeasuredFile>, Problems> {
    let mut problems = Problems::default();
    let mut all = Vec::new();
    for path in &args.measured {
        if let Some((runs, paced)) = collect_problems(fit::with_paced(path), &mut problems) {
            fit::warn(&runs);
            all.push(MeasuredFile {
                origin: path.display().to_string(),
                runs,
                paced,
            });
        }
    }
    problems.or(all)
}

/// Writes page, data and table, and prints the results.
fn write(args: &Args, review: &Review) -> Result<(), Failure> {
    let [page, data, lines] = args.files();
    let is_replaced = page.is_file();
    write_whole(&page, page::html(review).as_bytes())?;
    write_whole(&data, review.to_json().as_bytes())?;
    write_whole(&lines, csv::review(review).as_bytes())?;
    if let Some(folder) = &args.jobs_out {
        write_jobs(folder, review)?;
    }
    let width = output::width();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", summary::table(review, width))?;
    for finding in &review.verdict {
        writeln!(out, "{}", paragraph("• ", &finding.text, width))?;
    }
    if let Some(table) = review::measured::table(review, width) {
        writeln!(out, "\n{table}")?;
    }
    writeln!(
        out,
        "\nThe page is {}, its data {}, a table for pandas {}.{}",
        page.display(),
        data.display(),
        lines.display(),
        if is_replaced {
            " They replace those of an earlier review."
        } else {
            ""
        }
    )?;
    Ok(())
}

/// Writes a file for each job that ran: `DRIVE/CHAPTER/NAME.fio`.
fn write_jobs(folder: &Path, review: &Review) -> Result<(), Failure> {
    // The name of a pool is its expression, which is not a valid file name.
    let plain = |name: &str| name.replace(|it: char| !it.is_alphanumeric() && it != '-', "-");
    for point in review.chapters.iter().flat_map(|it| &it.points) {
        for (drive, result) in review.drives.iter().zip(&point.results) {
            let Some(result) = result else { continue };
            let (chapter, name) = point.name.split_once('/').unwrap_or(("", &point.name));
            let file = folder.join(plain(&drive.id)).join(plain(chapter));
            let file = file.join(format!("{}.fio", plain(name)));
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            write_whole(&file, result.job.as_bytes())?;
        }
    }
    Ok(())
}

/// Reads and checks the whole request before anything runs.
fn read(args: &Args) -> Result<ReviewRequest, Problems> {
    let mut problems = Problems::default();
    let suite = Suite::named(&args.suite).unwrap_or_default();
    let settings = args.heat.settings_with_air(args.drives.settings());
    let drives = args
        .drives
        .read_as(&args.arguments, &settings, &mut problems);
    if args.heat.is_given() && suite != Suite::Heat {
        let what = "--heat, --ambient, --airflow: only the suite heat simulates temperatures";
        let help = "add --suite heat, or use `drivelab run`";
        problems.0.push(on_command_line(what, help));
    }
    let host = match catalogue::host(args.host.as_deref().unwrap_or(suite.host())) {
        Ok(host) => Some(host),
        Err(all) => {
            problems.0.extend(all.0);
            None
        }
    };
    let mut yours = Vec::new();
    let processors = host.as_ref().map_or(1, |host| host.config.cores);
    for path in &args.jobs {
        match job_file(path, processors) {
            Ok((jobs, warnings)) => {
                for warning in &warnings {
                    remark("warning", warning);
                }
                yours.push(jobs);
            }
            Err(all) => problems.0.extend(all.0),
        }
    }
    let traces = args.traces.iter();
    yours.extend(traces.filter_map(|path| collect_problems(trace_file(path), &mut problems)));
    if args.only_jobs && args.jobs.is_empty() && args.traces.is_empty() {
        let what = "--only-jobs: there is no job";
        let help = "--job FILE or --trace FILE";
        problems.0.push(on_command_line(what, help));
    }
    if let Some(folder) = args.jobs_out.as_deref().filter(|it| it.exists()) {
        let what = format!("--jobs-out {}: exists already", folder.display());
        let help = "name a folder that is not";
        problems.0.push(on_command_line(what, help));
    }
    problems.0.extend(unwritable(args).0);
    let mut seen = BTreeSet::new();
    for drive in &drives {
        if !seen.insert(&drive.id) {
            let what = format!("{}: named twice", drive.id);
            problems
                .0
                .push(on_command_line(what, "name each drive once"));
        }
    }
    match (problems.0.is_empty(), host) {
        (true, Some(host)) => Ok(ReviewRequest {
            drives,
            settings,
            host,
            suite,
            effort: match args.ios {
                Some(ios) => suite.effort().with_ios(ios),
                None => suite.effort(),
            },
            seed: args.seed.seed,
            yours,
            only_yours: args.only_jobs,
        }),
        _ => Err(problems),
    }
}

/// Returns problems that would prevent writing the page, or the data next to it.
fn unwritable(args: &Args) -> Problems {
    let page = &args.output;
    let taken = page
        .extension()
        .filter(|ending| *ending == "json" || *ending == "csv");
    if let Some(ending) = taken {
        return Problems(vec![on_command_line(
            format!(
                "--output {}: the ending .{} is reserved for the data file of the page",
                page.display(),
                ending.display()
            ),
            "give a name such as review.html",
        )]);
    }
    let [_, data, lines] = args.files();
    let files = args.jobs.iter().chain(&args.traces).chain(&args.measured);
    let inputs: Vec<&Path> = files.map(PathBuf::as_path).collect();
    let mut problems = output::problems(
        &[
            ("--output", page),
            ("the data next to it,", &data),
            ("the table next to it,", &lines),
        ],
        &inputs,
    );
    if problems.0.is_empty() && !args.force {
        problems.0.extend(of_others(args));
    }
    problems
}

/// Marks near the beginning of the page, the data and the table.
const OURS: [&str; 3] = [
    "class=\"brand\">drivelab<",
    "\"schema\": \"drivelab review\"",
    "drive,host,chapter,point,direction,",
];

/// Files that a review would replace and that no review wrote: results of an earlier review may be replaced.
fn of_others(args: &Args) -> Option<Problem> {
    let files = args.files();
    let of_others: Vec<String> = files
        .iter()
        .zip(OURS)
        .filter(|(file, mark)| file.is_file() && !begins_with(file, mark))
        .map(|(file, _)| file.display().to_string())
        .collect();
    (!of_others.is_empty()).then(|| {
        on_command_line(
            format!(
                "--output {}: no review wrote {}, which would be replaced",
                args.output.display(),
                listed(&of_others)
            ),
            "name another file, or use --force",
        )
    })
}

/// Checks whether a file has this text in its first 64 KiB; an empty file may be replaced.
fn begins_with(file: &Path, mark: &str) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(1 << 16).read_to_end(&mut bytes));
    read.is_ok()
        && (bytes.is_empty()
            || bytes
                .windows(mark.len())
                .any(|window| window == mark.as_bytes()))
}

fn update_progress(bar: &Progress, event: Event<'_>) {
    match event {
        Event::Planned(more) => bar.planned(more),
        Event::Begun(name) => bar.message(name.to_owned()),
        Event::Done(_) => bar.one_done(),
    }
}
