//! `drivelab life`: lifetime of drives at a load.

use std::io::{self, Write};
use std::path::PathBuf;

use report::csv;
use report::decide;
use study::ask::{Life, defaults};
use study::decide::fleet::UserRating;
use study::decide::life;
use study::decide::memory_need::MachineMemory;
use study::decide::named;
use study::decide::rate::OfferedRate;
use study::decide::table_of_s3::table_of_s3;
use study::decide::writing::WriteAmount;
use text::problem::Problems;

use crate::answer::{Output, all, written};
use crate::drive::DriveArgs;
use crate::failure::{Failure, on_command_line};
use crate::fleet;
use crate::idle::note_on_power_states;
use crate::load::LoadArgs;
use crate::output::{self, remark, write_whole};
use crate::state::{name_of, note_on_heat};

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
    #[arg(long, value_name = "RATE", value_parser = |text: &str| written(text, OfferedRate::read), conflicts_with_all = ["trace", "users", "writes"])]
    rate: Option<String>,

    /// Write rate: bytes per second or per day (100MB/s, 2TB/day), or drive writes per day (1DWPD)
    #[arg(long, value_name = "RATE", value_parser = |text: &str| written(text, WriteAmount::read), conflicts_with_all = ["job", "trace", "load"])]
    writes: Option<String>,

    /// Pattern of --writes, as in fio: write or randwrite
    #[arg(long, value_name = "RW", default_value = defaults::WRITES_RW, value_parser = ["write", "randwrite"])]
    rw: String,

    /// Block size of --writes, as in fio
    #[arg(long, value_name = "SIZE", default_value = defaults::BS)]
    bs: String,

    /// Required lifetime in years [default: 5; none with --smart]
    #[arg(long, value_name = "YEARS", value_parser = life::years)]
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
    if !args.tbw.is_empty() {
        let what = "--tbw is for real drives, whose SMART data --smart reads";
        let problem = on_command_line(what, "name their files with --smart");
        return Err(Problems(vec![problem]).into());
    }
    let output = Output {
        json: args.json,
        csv: &args.csv,
        page: &args.output,
    };
    let inputs = [args.load.job.as_deref(), args.load.trace.as_deref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let resolved = output.resolve(&Life::from(args), &inputs)?;
    args.drives.note_on(&args.arguments, &resolved.drives);
    for warning in &resolved.warnings {
        remark("warning", warning);
    }
    note_on_power_states(&resolved.drives, &resolved.conditions.host);
    note_on_heat(&args.drives.settings());
    if resolved.loads.iter().any(Option::is_some) {
        args.load.state.answered(|_| resolved.conditions.state);
    }
    args.drives.note_on_years();
    let runs = resolved.drives.iter().zip(&resolved.loads);
    let runs = runs.filter(|(_, load)| load.is_some());
    let (memory, seeds) = (MachineMemory::read(), resolved.conditions.seeds);
    all(runs.map(|(drive, _)| (&*drive.id, memory.check(drive, seeds))))?;
    output.answer::<Life>(&resolved)
}

impl From<&Args> for Life {
    fn from(args: &Args) -> Life {
        let load = args.load.spec();
        Life {
            drives: args.drives.specs(&args.arguments),
            load: load.load,
            job: load.job,
            trace: load.trace,
            users: load.users,
            rate: args.rate.clone(),
            writes: args.writes.clone(),
            rw: args.rw.clone(),
            bs: args.bs.clone(),
            years: args.years.unwrap_or(defaults::YEARS),
            runtime: args.load.runtime.clone(),
            host: args.load.host.clone(),
            state: name_of(args.load.state),
            seed: args.load.seed.seed,
            seeds: args.load.seeds,
        }
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
        false => writeln!(
            out,
            "{}",
            decide::published_table::table_of_s3(&rows, output::width())
        )?,
    }
    Ok(())
}
