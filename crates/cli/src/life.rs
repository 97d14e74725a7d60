//! `drivelab life`: lifetime of drives at a load.

use std::io::{self, Write};
use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::csv;
use report::decide::{self, view};
use study::decide::fleet::UserRating;
use study::decide::life;
use study::decide::named;
use study::decide::rate::OfferedRate;
use study::decide::table_of_s3::table_of_s3;
use study::decide::work::{Conditions, Load, counted_for};
use study::decide::writing::WriteAmount;
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::each::map_drives;
use crate::failure::{Failure, on_command_line};
use crate::fleet;
use crate::idle::note_on_power_states;
use crate::limit::{self, collect_problems};
use crate::load::LoadArgs;
use crate::memory;
use crate::output::{self, write_whole};
use crate::stop::ImmediateStop;

/// Lifetime of drives at a load: years to the rated endurance, write amplification, Percentage Used
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab life 950pro-256 p4800x-375 --writes 20MB/s
  drivelab life d7-p5600-1600 --writes 100MB/s --rw randwrite --bs 32k --years 5
  drivelab life d7-p5600-1600 980pro-1000 --writes 2TB/day   or 1DWPD: drive writes per day
  drivelab life s2-slog --job db.fio                   each member of a pool
  drivelab life p4800x-375 980pro-1000 --load oltp --rate 20k   your load on all drives
  drivelab life p4800x-375 --trace vm.vscsi.xz --csv life.csv
  drivelab life d7-p5600-1600 p5800x-800               what may be written for five years
  drivelab life --table s3                             a published table, as it should be
  drivelab life --smart smart.json                     a real drive (made by smartctl -a -j)
  drivelab life --smart fleet/*.json --tbw 870=600TB   which of these real drives ends first

Exit codes: 0 done, 2 bad usage or bad input, 3 a drive reaches its rated endurance before --years at this load, or \
according to its own counters (--smart, if --years is given).")]
pub(crate) struct Args {
    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    #[command(flatten)]
    load: LoadArgs,

    /// Total rate of the load on every drive: 50k (IOPS) or 300MB/s [default: each drive's own maximum]
    #[arg(long, value_name = "RATE", value_parser = OfferedRate::read, conflicts_with_all = ["trace", "users", "writes"])]
    rate: Option<OfferedRate>,

    /// Write rate: bytes per second or per day (100MB/s, 2TB/day), or drive writes per day (1DWPD)
    #[arg(long, value_name = "RATE", value_parser = WriteAmount::read, conflicts_with_all = ["job", "trace", "load"])]
    writes: Option<WriteAmount>,

    /// Pattern of --writes, as in fio: write or randwrite
    #[arg(long, value_name = "RW", default_value = "randwrite", value_parser = ["write", "randwrite"])]
    rw: String,

    /// Block size of --writes, as in fio
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    bs: String,

    /// Required lifetime in years [default: 5; none with --smart]
    #[arg(long, value_name = "YEARS", value_parser = years)]
    years: Option<f64>,

    /// SMART data of real drives (JSON or text of smartctl or nvme-cli; - for standard input): lifetime of each at its
    /// own write rate
    #[arg(long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["arguments", "drives", "job", "trace", "load", "writes", "rw", "bs", "runtime", "host", "state",
            "figures", "rate", "power_limit", "lba_format", "percentage_used", "wear_factor", "uptime", "overprovision", "fill", "age", "table"])]
    smart: Vec<PathBuf>,

    /// Rated host writes for --smart, such as 600TB, or 980=600TB for models that contain 980 [default: the catalogue's]
    #[arg(long, value_name = "[MODEL=]BYTES", value_parser = fleet::rating)]
    tbw: Vec<UserRating>,

    /// Print a published endurance table with corrected arithmetic: s3, Table 1 of S3
    #[arg(long, value_name = "NAME", value_parser = ["s3"],
        conflicts_with_all = ["arguments", "job", "trace", "load", "writes", "output"])]
    table: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per drive or member of a pool
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: Percentage Used over the years; with --smart, by power-on hours
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Default of `--years`.
const YEARS: f64 = 5.0;

/// Parses a number of years.
pub(crate) fn years(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('y').parse::<f64>() {
        Ok(years) if years > 0.0 && years <= 100.0 => Ok(years),
        _ => Err(String::from(
            "a number of years above 0, at most 100, such as 5",
        )),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(text) = args.load.print_load.as_deref().and_then(named::text) {
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    if args.table.is_some() {
        return published(args);
    }
    if !args.smart.is_empty() {
        return fleet::run(&fleet::FleetOptions {
            files: &args.smart,
            ratings: &args.tbw,
            years: args.years,
            json: args.json,
            csv: &args.csv,
            page: &args.output,
        });
    }
    let years = args.years.unwrap_or(YEARS);
    let (drives, conditions) = read(args)?;
    args.drives.note_on_years();
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let results = map_drives(
        &drives,
        |(drive, _)| &drive.id,
        |(drive, load), go_on| {
            if load.is_some() {
                memory::check(drive)?;
            }
            life::life(drive, load.as_ref(), years, &conditions, &lab, go_on)
        },
    );
    let answers = limit::all(drives.iter().map(|(drive, _)| &*drive.id).zip(results))?;
    let view = view::life(&answers, &conditions);
    stop.results(|| limit::show(&view, args.json, &args.csv, &args.output))?;
    let short = answers
        .iter()
        .filter(|answer| answer.lasts() == Some(false));
    let short: Vec<&str> = short.map(|answer| &*answer.drive).collect();
    match short.is_empty() {
        true => Ok(()),
        false => Err(Failure::Verdict(format!(
            "{}: not {years} years",
            short.join(", "),
        ))),
    }
}

fn published(args: &Args) -> Result<(), Failure> {
    let rows = table_of_s3()?;
    output::problems(&output::requested_files([("--csv", &args.csv)]), &[]).or(())?;
    if let Some(path) = &args.csv {
        write_whole(path, csv::decide::table_of_s3(&rows).as_bytes())?;
    }
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(
            out,
            "{:#}",
            serde_json::json!({ "schema": "drivelab life table", "version": 1, "rows": rows })
        )?,
        false => writeln!(out, "{}", decide::life::table_of_s3(&rows, output::width()))?,
    }
    Ok(())
}

/// Returns the load at this rate. Without a load there is nothing that could have a rate.
fn at_rate(load: Option<Load>, rate: OfferedRate, problems: &mut Problems) -> Option<Load> {
    let Some(load) = load else {
        if problems.0.is_empty() {
            let help = "name a load: --load oltp or --job FILE; for writes alone, --writes 100MB/s";
            problems
                .0
                .push(on_command_line("--rate: there is no load", help));
        }
        return None;
    };
    collect_problems(load.at_rate(rate), problems)
}

/// Drives, each with its load: drive writes per day are another rate on each.
type DriveLoads = Vec<(DriveSheet, Option<Load>)>;

fn read(args: &Args) -> Result<(DriveLoads, Conditions), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    let (load, mut conditions) = args.load.read(counted_for(drives.iter()), &mut problems);
    note_on_power_states(&drives, &conditions.host);
    if !args.tbw.is_empty() {
        problems.0.push(on_command_line(
            "--tbw is for real drives, whose SMART data --smart reads",
            "name their files with --smart",
        ));
    }
    let state = args.load.state;
    state.check(&args.drives.settings(), &mut problems);
    let load = match args.rate {
        Some(rate) => at_rate(load, rate, &mut problems),
        None => load,
    };
    let with_load = |drive: DriveSheet| {
        let load = match args.writes {
            Some(writes) => {
                let load = writes.load(&drive, &args.rw, &args.bs, args.load.runtime);
                collect_problems(load, &mut problems)
            }
            None => load.clone(),
        };
        (drive, load)
    };
    let drives: DriveLoads = drives.into_iter().map(with_load).collect();
    // All of them are of one pattern.
    if let Some(load) = drives.iter().find_map(|(_, load)| load.as_ref()) {
        conditions.state = args.load.state_before(load);
    }
    let inputs = [args.load.job.as_deref(), args.load.trace.as_deref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    problems.or((drives, conditions))
}
