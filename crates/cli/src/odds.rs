//! `drivelab odds`: how often a pool loses data.

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use report::{csv, decide};
use study::decide::odds::{self, Request};
use text::problem::Problems;
use text::terminal::Width;

use crate::drive::DriveArgs;
use crate::each::in_turn;
use crate::failure::Failure;
use crate::limit;
use crate::output::{self, write_whole};
use crate::seed::SeedArg;
use crate::stop::AtOnce;

/// The width where there is no terminal.
const COLUMNS: Width = Some(80);

/// Odds of data loss: how often drives fail, how long a rebuild takes, and how often a pool then loses data
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab odds 'mirror(2*p4801x-100)' 'stripe(2*p4801x-100)' p4801x-100
  drivelab odds 'raid5(6*exos-x18-16tb)' 'raid6(6*exos-x18-16tb)' --replace-after 72h
  drivelab odds s2-slog --afr 1% --afr p4801x-100=0.2%

The pool's own loss rule (`drivelab show POOL`) says which drives have to fail together. Failure rates are by class of drive, each \
with its source and range; --afr replaces them. Rebuilds are simulated.

Exit codes: 0 done, 2 bad usage or bad input.")]
pub(crate) struct Args {
    /// Names of pools or drives (see `drivelab drives`), paths of their TOML files, or expressions of pools
    #[arg(value_name = "POOL")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// Time until a failed drive is replaced; 0h with a hot spare
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = hours)]
    replace_after: f64,

    /// Share of drives that fail in a year, of all drives or of one: 0.5%, or p4801x-100=0.2%; may be given several times
    #[arg(long, value_name = "[DRIVE=]PERCENT", value_parser = share_of_drives)]
    afr: Vec<(Option<String>, f64)>,

    /// How often the machine itself fails in a year, by power or a crash
    #[arg(long, value_name = "N", default_value = "1", value_parser = times)]
    crashes: f64,

    /// The host on which a rebuild runs: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    host: String,

    #[command(flatten)]
    seed: SeedArg,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file: a line for each kind of drive in each pool
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Hours of a time such as `24h`, `90min` or `3d`.
fn hours(text: &str) -> Result<f64, String> {
    let units = [
        ("min", 1.0 / 60.0),
        ("h", 1.0),
        ("d", 24.0),
        ("s", 1.0 / 3600.0),
    ];
    let found = units.into_iter().find_map(|(unit, hours)| {
        let number = text.trim().strip_suffix(unit)?.trim_end();
        Some(number.parse::<f64>().ok()? * hours)
    });
    found
        .filter(|hours| hours.is_finite() && (0.0..=8766.0).contains(hours))
        .ok_or_else(|| String::from("write a time up to a year, such as 24h, 90min or 3d"))
}

fn share_of_drives(text: &str) -> Result<(Option<String>, f64), String> {
    let (drive, percent) = match text.rsplit_once('=') {
        Some((drive, percent)) => (Some(drive.trim().to_owned()), percent),
        None => (None, text),
    };
    let number = percent.trim().strip_suffix('%');
    let number = number.and_then(|number| number.trim_end().parse::<f64>().ok());
    match number.filter(|number| *number > 0.0 && *number <= 100.0) {
        Some(number) if drive.as_ref().is_none_or(|drive| !drive.is_empty()) => {
            Ok((drive, number / 100.0))
        }
        _ => Err(String::from(
            "write a percentage above 0 and at most 100, such as 0.5% or p4801x-100=0.5%",
        )),
    }
}

fn times(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|number| (0.0..=1000.0).contains(number))
        .ok_or_else(|| String::from("write a number of 0 to 1000"))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (drives, request) = read(args)?;
    let stop = AtOnce::on_signals()?;
    let lab = Lab::new();
    let answers = in_turn(&drives, |drive, tell| {
        odds::measure(&request, drive, &lab, tell)
    })?;
    stop.results(|| {
        let command = limit::command();
        if let Some(path) = &args.csv {
            write_whole(path, csv::decide::odds(&answers).as_bytes())?;
        }
        let sentences: Vec<String> = answers.iter().flat_map(decide::odds::answer).collect();
        limit::tell(
            args.json
                .then(|| decide::odds::json(&request, &answers, &command)),
            &sentences,
            |width| decide::odds::table(&answers, width.or(COLUMNS)),
            |width| decide::odds::method(&request, &answers, &command, width.or(COLUMNS)),
        )
    })
}

fn read(args: &Args) -> Result<(Vec<DriveSheet>, Request), Problems> {
    let mut problems = Problems::default();
    let drives = args.drives.read(&args.arguments, &mut problems);
    let host = limit::taken(catalogue::host(&args.host), &mut problems);
    let outputs = output::asked([("--csv", &args.csv)]);
    problems.0.extend(output::problems(&outputs, &[]).0);
    let request = Request {
        replace_hours: args.replace_after,
        crashes: args.crashes,
        failures: args.afr.clone(),
        // Where it could not be read there is a problem, and nothing runs.
        host: host.unwrap_or_default(),
        seed: args.seed.seed,
    };
    let of_each = drives
        .iter()
        .filter_map(|drive| odds::check(&request, drive).err());
    problems.0.extend(of_each.flat_map(|more| more.0));
    problems
        .0
        .extend(odds::unused(&request, &drives).err().unwrap_or_default().0);
    problems.or((drives, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_have_units() {
        assert_eq!(hours("24h"), Ok(24.0));
        assert_eq!(hours("90min"), Ok(1.5));
        assert_eq!(hours("3 d"), Ok(72.0));
        for wrong in ["24", "h", "-1h", "9e9d", "nanh", ""] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share_of_drives("0.5%"), Ok((None, 0.005)));
        assert_eq!(
            share_of_drives("p4801x-100 = 2 %"),
            Ok((Some(String::from("p4801x-100")), 0.02))
        );
        for wrong in ["0.5", "0%", "101%", "=1%", "a=b%"] {
            assert!(share_of_drives(wrong).is_err(), "{wrong}");
        }
    }
}
