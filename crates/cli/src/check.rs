//! `drivelab check`: whether drives meet an application's published minimum.

use std::io::{self, Write};
use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::decide::view;
use study::decide::check::{self, Check};
use study::decide::work::Conditions;
use text::problem::Problems;

use crate::drive::DriveArgs;
use crate::each::map_drives;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::limit::{self, collect_problems};
use crate::output;
use crate::seed::SeedArg;
use crate::state::{State, note_on_heat};
use crate::stop::ImmediateStop;

/// Check whether drives meet the minimum that a software vendor publishes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab check etcd p4800x-375 950pro-256
  drivelab check vsan p5800x-400 d7-p5600-1600 --csv vsan.csv
  drivelab check aerospike p3700-1600 --json
  drivelab check postgres 980pro-1000 'mirror(2*p4801x-100)'
  drivelab check etcd --print > etcd.fio

If the vendor publishes no minimum, the figures are printed without a verdict.

Exit codes: 0 done or passed, 2 bad usage or bad input, 3 some drive does not pass.")]
pub(crate) struct Args {
    /// Software with published minimum requirements
    #[arg(value_name = "SOFTWARE", value_parser = clap::builder::PossibleValuesParser::new(check::names()))]
    software: String,

    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Print the load and exit: a job file whose first lines state the requirement and its source
    #[arg(long)]
    print: bool,

    /// Host of the drives: a name or the path of a TOML file [default: linux; xeon-2017 for aerospike]
    #[arg(long)]
    host: Option<String>,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed; the drive must pass with each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per drive and figure
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.print {
        let text = check::text(&args.software).unwrap_or_default();
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    let (check, drives, conditions) = read(args)?;
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let results = map_drives(
        &drives,
        |drive| &drive.id,
        |drive, go_on| check.answer(drive, &conditions, &lab, go_on),
    );
    let answers = limit::all(drives.iter().map(|drive| &*drive.id).zip(results))?;
    let view = view::check(&check, &conditions, &answers);
    stop.results(|| limit::show(&view, args.json, &args.csv, &None))?;
    let failed = answers.iter().filter(|answer| answer.passes == Some(false));
    let failed: Vec<&str> = failed.map(|answer| &*answer.drive).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Verdict(format!(
            "{}: not what {} asks for",
            failed.join(", "),
            check.software
        ))),
    }
}

fn read(args: &Args) -> Result<(Check, Vec<DriveSheet>, Conditions), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    args.state.check(&args.drives.settings(), &mut problems);
    note_on_heat(&args.drives.settings());
    let check = collect_problems(Check::named(&args.software), &mut problems);
    let of_check = check
        .as_ref()
        .map_or(catalogue::TYPICAL_HOST, |check| &check.host);
    let host = collect_problems(
        catalogue::host(args.host.as_deref().unwrap_or(of_check)),
        &mut problems,
    );
    let outputs = output::requested_files([("--csv", &args.csv)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    match (check, host) {
        (Some(check), Some(host)) if problems.0.is_empty() => {
            note_on_power_states(&drives, &host);
            let conditions = Conditions {
                host,
                state: args.state.into(),
                seed: args.seed.seed,
                seeds: args.seeds,
            };
            Ok((check, drives, conditions))
        }
        _ => Err(problems),
    }
}
