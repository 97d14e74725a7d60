//! `drivelab check`: whether drives meet an application's published minimum.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use study::ask::{CheckRequest, defaults};
use study::decide::check;

use crate::answer::Output;
use crate::drive::DriveArgs;
use crate::failure::Failure;
use crate::idle::note_on_power_states;
use crate::seed::SeedArg;
use crate::state::{State, name_of, note_on_heat};

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
    #[arg(value_name = "SOFTWARE", value_parser = SoftwareParser)]
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
    #[arg(long, value_enum, default_value = defaults::STEADY)]
    state: State,

    #[command(flatten)]
    seed: SeedArg,

    /// Number of seeds, starting at --seed; the drive must pass with each
    #[arg(long, value_name = "N", default_value_t = defaults::SEEDS, value_parser = clap::value_parser!(u32).range(defaults::SEEDS_RANGE))]
    seeds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per drive and figure
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: each figure of each drive, with the minimum
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Accepts the names of checks; for others, the error says how to ask about that software.
#[derive(Clone)]
struct SoftwareParser;

impl TypedValueParser for SoftwareParser {
    type Value = String;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let name = value.to_string_lossy().into_owned();
        if check::text(&name).is_some() {
            return Ok(name);
        }
        let names: Vec<&str> = check::names().collect();
        let what = format!(
            "there is no check `{name}`; there are {}\n  help: {}\n",
            names.join(", "),
            check::without_check(&name)
        );
        Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, what))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(check::names().map(PossibleValue::new)))
    }
}

impl From<&Args> for CheckRequest {
    fn from(args: &Args) -> CheckRequest {
        CheckRequest {
            software: args.software.clone(),
            drives: args.drives.specs(&args.arguments),
            host: args.host.clone(),
            state: name_of(args.state),
            seed: args.seed.seed,
            seeds: args.seeds,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.print {
        let text = check::text(&args.software).unwrap_or_default();
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    let output = Output {
        json: args.json,
        csv: &args.csv,
        page: &args.output,
    };
    let resolved = output.resolve(&CheckRequest::from(args), &[])?;
    args.drives.note_on(&args.arguments, &resolved.drives);
    note_on_heat(&args.drives.settings());
    note_on_power_states(&resolved.drives, &resolved.conditions.host);
    output.answer::<CheckRequest>(&resolved)
}
