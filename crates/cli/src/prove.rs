//! `drivelab prove`: crash-consistency tests for pools, with power cuts and faults.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use catalogue::DriveSheet;
use study::prove::proved::{self, ProofRecord};
use study::prove::{self, FaultVerdict, ProveSettings, Report};
use text::problem::Problems;
use tier::{DriveConfig, PoolConfig};

use crate::drive::DriveArgs;
use crate::failure::{Failure, on_command_line};
use crate::output;
use crate::progress::Progress;
use crate::seed::SeedArg;
use crate::stop::ImmediateStop;

/// Crash-consistency tests for pools: power cuts at every crash point, failed members, faults
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab prove 'mirror(2*950pro-256)'                    every fault, 10,000 points each
  drivelab prove 'stripe(2*p4801x-100)' mine.toml --points 1e6
  drivelab prove 'mirror(2*950pro-256)' --fault returns    some faults
  drivelab prove 'write-back-cache(cache=950pro-256, capacity=2*exos-x18-16tb; durability=flush)'
  drivelab prove pools/slog-mirror.toml --points 1000
  drivelab prove 'mirror(2*950pro-256)' --replay 0100...   repeat a reported violation
  drivelab prove 'mirror(2*950pro-256)' --record proved.toml

A point is one power cut with one choice of the data that had reached the media. docs/prove.md lists the faults and \
choices that are tried. Exit code 3: a durability guarantee is violated, or weaker than necessary.")]
pub(crate) struct Args {
    /// Pools: expressions, names or files
    #[arg(value_name = "POOL")]
    pools: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Minimum number of crash points per fault
    #[arg(long, value_name = "N", default_value = "1e4", value_parser = points)]
    points: u64,

    /// Only faults whose description contains these words
    #[arg(long, value_name = "WORDS", default_value = "")]
    fault: String,

    /// Run one case that an earlier run reported
    #[arg(long, value_name = "HEX", conflicts_with = "fault")]
    replay: Option<String>,

    /// Record each pool's result in this file, identified by the pool's structure
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fault", "replay"])]
    record: Option<PathBuf>,

    #[command(flatten)]
    seed: SeedArg,
}

/// Parses `1000000` or `1e6`.
fn points(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(points) if (1.0..=1e12).contains(&points) => Ok(points as u64),
        _ => Err("a number from 1 to 1e12 is right".into()),
    }
}

fn pool(sheet: &DriveSheet) -> Option<&PoolConfig<DriveConfig>> {
    match &sheet.config {
        DriveConfig::Pool(config) => Some(config),
        _ => None,
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut problems = Problems(Vec::new());
    let sheets = args.drives.read(&args.pools, &mut problems);
    for sheet in sheets.iter().filter(|sheet| pool(sheet).is_none()) {
        problems.0.push(on_command_line(
            format!("{}: is a single drive, not a pool", sheet.id),
            "name a pool, such as 'mirror(2*950pro-256)'",
        ));
    }
    problems.or(())?;
    let pools: Vec<(&str, &PoolConfig<DriveConfig>)> = sheets
        .iter()
        .filter_map(|sheet| Some((&*sheet.id, pool(sheet)?)))
        .collect();
    match &args.replay {
        Some(digits) => replay(&pools, digits),
        None => prove(args, &pools),
    }
}

/// Returns the records in a file; empty if it does not exist yet.
fn read_records(file: &Path) -> Result<Vec<ProofRecord>, Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(bad_records(file, &why.to_string())),
    };
    proved::records(&text).map_err(|why| bad_records(file, &why))
}

fn bad_records(file: &Path, why: &str) -> Failure {
    let problem = on_command_line(
        format!("--record {}: {why}", file.display()),
        "name a file that --record has written, or one that does not exist",
    );
    Failure::BadInput(Problems(vec![problem]))
}

fn unwritten(file: &Path, why: &io::Error) -> Failure {
    Failure::Failed(format!("--record {}: {why}", file.display()))
}

fn refused(name: &str, why: &str) -> Failure {
    let help = "mirrors, stripes, concatenations, write-back caches and intent logs over them can be tried, under the faults that the table lists";
    let problem = on_command_line(format!("{name}: {why}"), help);
    Failure::BadInput(Problems(vec![problem]))
}

fn replay(pools: &[(&str, &PoolConfig<DriveConfig>)], digits: &str) -> Result<(), Failure> {
    let [(name, config)] = pools else {
        let problem = on_command_line(
            "--replay requires exactly one pool",
            "name the pool that the case was reported for",
        );
        return Err(Failure::BadInput(Problems(vec![problem])));
    };
    match prove::replay(config, digits).map_err(|why| refused(name, &why))? {
        Some(broken) => {
            report::prove::broken(name, &broken, &mut io::stdout().lock())?;
            Err(Failure::Verdict(
                "the durability guarantee is violated".into(),
            ))
        }
        None => {
            writeln!(io::stdout().lock(), "nothing is wrong in this case")?;
            Ok(())
        }
    }
}

fn prove(args: &Args, pools: &[(&str, &PoolConfig<DriveConfig>)]) -> Result<(), Failure> {
    let settings = ProveSettings {
        points: args.points,
        seed: args.seed.seed,
        only: args.fault.clone(),
        to_the_first: false,
    };
    let mut records = match &args.record {
        Some(file) => read_records(file)?,
        None => Vec::new(),
    };
    let stop = ImmediateStop::on_signals()?;
    let bar = Progress::new("proving [{wide_bar}] {percent:>3} % {elapsed}, {left}");
    let mut reports: Vec<(String, Report)> = Vec::new();
    for (index, (name, config)) in pools.iter().enumerate() {
        let hear = |points: u64, all: u64| {
            let of_this = points as f64 / all.max(1) as f64;
            bar.share((index as f64 + of_this) / pools.len() as f64);
            true
        };
        let report = prove::prove(config, &settings, &hear);
        let report = report.map_err(|why| refused(name, &why))?;
        proved::enter(
            &mut records,
            ProofRecord::new(name, config, &settings, &report),
        );
        reports.push(((*name).to_owned(), report));
    }
    bar.finish();
    if let Some(file) = &args.record {
        std::fs::write(file, proved::write(&records)).map_err(|why| unwritten(file, &why))?;
    }
    stop.results(|| -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        report::prove::table(&reports, output::width(), &mut out)?;
        for (name, report) in &reports {
            if let Some(broken) = &report.broken {
                report::prove::broken(name, broken, &mut out)?;
            }
        }
        Ok(())
    })?;
    let rows = reports.iter().flat_map(|(_, report)| &report.rows);
    let bad =
        rows.filter(|it| matches!(it.verdict, FaultVerdict::Broken | FaultVerdict::NoLossFound));
    match bad.count() {
        0 => Ok(()),
        count => Err(Failure::Verdict(format!(
            "{count} durability guarantees do not hold"
        ))),
    }
}
