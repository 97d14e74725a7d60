//! End of life of real drives, from their SMART data: `drivelab life --smart`.
//!
//! Two ends of a drive are computed from its own counters: when the host has written the rated bytes, and when
//! Percentage Used reaches 100. Both assume the mean rate since the drive was new, per power-on hour. No model is run.
//! Percentage Used is a whole number and no specification defines its rounding, so it represents one percent in either
//! direction. At 0 and 1 % this gives only a lower bound.
//!
//! A rating is the user's (`--tbw`) or that of the catalogue's drive with the same model number or name; otherwise
//! there is none. Not counted: hours in which a drive was off, and NVMe's non-operational power states, which some
//! drives do not count.
//!
//! A drive that reports a failure (read-only, spare blocks below their threshold, a failed self-assessment) has ended,
//! whatever its counters are. Media errors, heat and few spare blocks are warnings: they do not change the order.

use std::collections::BTreeMap;

use catalogue::DriveSheet;
use serde::Serialize;
use text::problem::{Place, Problem, Problems};

use super::life::{DAYS, is_assumed};
use crate::review::results::rounded;
use crate::smart::{Dump, Health};

const HOURS: f64 = 24.0;
const YEAR_HOURS: f64 = DAYS * HOURS;
/// Bytes per second above the bandwidth of any drive interface: at a higher rate, a counter is broken.
const FASTEST: f64 = 32e9;
/// Factor between the wear by the rating and by Percentage Used at and above which a remark states that they disagree.
const DISAGREE: f64 = 10.0;

/// A rating that the user gives.
#[derive(Clone, PartialEq, Debug)]
pub struct UserRating {
    /// Part of the model's name that it applies to; if `None`, all drives without one of their own.
    pub model: Option<String>,
    /// Rated bytes.
    pub bytes: f64,
}

/// The rating that a drive is compared with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RatedWrites {
    /// Rated host writes, 10^12 bytes.
    pub tb: f64,
    /// Origin: `--tbw`, or the drive of the catalogue.
    pub of: String,
    /// How the rating was found.
    pub how: String,
    /// Kind: `user`, `spec`, `assumed`, ...
    pub kind: String,
}

/// Time to an end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Remaining {
    /// Power-on years; 0 if the end has passed, null if only a lower bound is known.
    pub years: Option<f64>,
    /// Lower bound.
    pub least: f64,
    /// Upper bound; null if there is none.
    pub most: Option<f64>,
}

/// An end that has passed.
const PASSED: Remaining = Remaining {
    years: Some(0.0),
    least: 0.0,
    most: Some(0.0),
};

/// A failure or counter that determines the end of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitingCounter {
    /// A failure that the drive reports.
    Failed,
    /// Rated bytes written.
    Rating,
    /// Percentage Used of the drive.
    PercentageUsed,
}

/// One drive: its state, and its end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FleetDrive {
    /// SMART data of the drive.
    #[serde(flatten)]
    pub health: Health,
    /// Rating of the drive; if null, `no_rating` states why.
    pub rating: Option<RatedWrites>,
    /// Reason why there is no rating.
    pub no_rating: Option<String>,
    /// 10^9 bytes of host writes per 24 power-on hours.
    pub written_gb_a_day: Option<f64>,
    /// Host writes in percent of the rating.
    pub rating_used_percent: Option<f64>,
    /// Time until the rated bytes are written.
    pub to_rating: Option<Remaining>,
    /// Time until Percentage Used is 100.
    pub to_used: Option<Remaining>,
    /// Failure that the drive reports, as a predicate such as `is read-only`; null if it reports none.
    pub failed: Option<String>,
    /// Media errors, heat and few spare blocks that the drive reports, as predicates; empty if none.
    pub warnings: Vec<String>,
    /// The earlier end; null if none is known.
    pub ends_by: Option<LimitingCounter>,
    /// Power-on years until then.
    pub ends_in_years: Option<f64>,
}

impl FleetDrive {
    /// Returns the earliest known end.
    pub fn end(&self) -> Option<(LimitingCounter, Remaining)> {
        if self.failed.is_some() {
            return Some((LimitingCounter::Failed, PASSED));
        }
        let ends = [
            (LimitingCounter::Rating, self.to_rating),
            (LimitingCounter::PercentageUsed, self.to_used),
        ];
        let known = ends.into_iter().filter_map(|(limit, remaining)| {
            let remaining = remaining?;
            Some((limit, remaining, remaining.years?))
        });
        let first = known.min_by(|a, b| a.2.total_cmp(&b.2));
        first.map(|(limit, remaining, _)| (limit, remaining))
    }

    /// Returns the wear in percent, by the indicator with the higher value.
    fn worn(&self) -> f64 {
        let used = self.health.used_percent.as_ref().map_or(0.0, |it| it.value);
        self.rating_used_percent.unwrap_or(0.0).max(used)
    }
}

/// A fleet of drives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FleetAnswer {
    /// Drives by their end, the earliest first; drives without a known end are last.
    pub drives: Vec<FleetDrive>,
    /// Devices without an answer, with reasons.
    pub left_out: Vec<String>,
    /// Files, or parts of files, that could not be read: each with its place and the reason.
    pub unreadable: Vec<Unreadable>,
}

/// A file, or a part of a file, that could not be read.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Unreadable {
    /// File, and line if it is known.
    pub place: String,
    /// Missing key, invalid text, or error of the system.
    pub reason: String,
}

impl Unreadable {
    fn new(problem: &Problem) -> Unreadable {
        let line = match problem.place {
            Place::Line(line) => format!(":{line}"),
            _ => String::new(),
        };
        Unreadable {
            place: format!("{}{line}", problem.origin),
            reason: problem.what.clone(),
        }
    }
}

impl FleetAnswer {
    /// Returns the labels of drives that end before this number of years.
    pub fn shorter_than(&self, years: f64) -> Vec<String> {
        let short = |one: &&FleetDrive| one.ends_in_years.is_some_and(|ends| ends < years);
        self.drives
            .iter()
            .filter(short)
            .map(|one| one.health.label())
            .collect()
    }
}

/// Computes the end of each drive; `unread` are the problems of files, or parts of files, that could not be read.
///
/// # Errors
/// There is no drive, or a user's rating names a model that no drive has although all files were read.
pub fn fleet(
    dumps: Vec<Dump>,
    unread: Problems,
    ratings: &[UserRating],
    catalogue: &[DriveSheet],
) -> Result<FleetAnswer, Problems> {
    let mut left_out = Vec::new();
    let mut drives = Vec::new();
    for dump in dumps {
        left_out.extend(dump.left_out);
        drives.extend(dump.drives);
    }
    if drives.is_empty() && !unread.0.is_empty() {
        return Err(unread);
    }
    let mut problems = Problems::default();
    if drives.is_empty() {
        problems.0.push(on_smart(
            format!(
                "--smart: there is no SSD in the files; {}",
                left_out.join("; ")
            ),
            "the SMART data of SSDs",
        ));
    }
    for rating in ratings {
        let Some(part) = &rating.model else { continue };
        let named = |health: &Health| has_part(health.model.as_deref(), part);
        // The drive may be one that could not be read.
        if unread.0.is_empty() && !drives.iter().any(named) {
            problems.0.push(on_smart(
                format!("--tbw {part}=...: no drive of the files has `{part}` in its model"),
                "a part of the model as the table shows it, such as 980=600TB, or a bare 600TB",
            ));
        }
    }
    let mut drives: Vec<FleetDrive> = drives
        .into_iter()
        .map(|health| standing(health, ratings, catalogue))
        .collect();
    note_duplicates(&mut drives);
    drives.sort_by(|a, b| {
        let years = |one: &FleetDrive| one.ends_in_years.unwrap_or(f64::INFINITY);
        let ends = years(a).total_cmp(&years(b));
        let failed = b.failed.is_some().cmp(&a.failed.is_some());
        ends.then(failed).then(b.worn().total_cmp(&a.worn()))
    });
    problems.or(FleetAnswer {
        drives,
        left_out,
        unreadable: unread.0.iter().map(Unreadable::new).collect(),
    })
}

fn on_smart(what: String, help: &str) -> Problem {
    Problem {
        origin: String::from("command line"),
        place: Place::Whole,
        what,
        help: Some(help.to_owned()),
    }
}

fn has_part(model: Option<&str>, part: &str) -> bool {
    let model = model.unwrap_or_default().to_lowercase();
    model.contains(&part.to_lowercase())
}

fn standing(health: Health, ratings: &[UserRating], catalogue: &[DriveSheet]) -> FleetDrive {
    let (rating, no_rating) = match rating(&health, ratings, catalogue) {
        Ok(rating) => (Some(rating), None),
        Err(why) => (None, Some(why)),
    };
    let mut one = FleetDrive {
        failed: health.failure(),
        warnings: health.warnings(),
        health,
        rating,
        no_rating,
        written_gb_a_day: None,
        rating_used_percent: None,
        to_rating: None,
        to_used: None,
        ends_by: None,
        ends_in_years: None,
    };
    pace(&mut one);
    if let Some((limit, remaining)) = one.end() {
        one.ends_by = Some(limit);
        one.ends_in_years = remaining.years;
    }
    disagreement(&mut one);
    one
}

/// Computes rates since the drive was new, and the ends at these rates.
fn pace(one: &mut FleetDrive) {
    let hours = one.health.power_on_hours.filter(|&hours| hours > 0.0);
    let written = one.health.written.as_ref().map(|written| written.value);
    let used = one.health.used_percent.as_ref().map(|used| used.value);
    let rated = one.rating.as_ref().map(|rating| rating.tb * 1e12);
    one.rating_used_percent = written
        .zip(rated)
        .map(|(written, rated)| rounded(100.0 * written / rated));
    if hours.is_none() {
        one.health
            .remarks
            .push(String::from(match one.health.power_on_hours {
                Some(_) => "power-on hours are 0: there is no rate yet",
                None => "power-on hours are missing: there is no rate",
            }));
    }
    let mut hours_of_writes = hours;
    if let Some((bytes, hours)) = written.zip(hours) {
        if bytes / (hours * 3600.0) > FASTEST {
            one.health.remarks.push(format!(
                "{:.3e} bytes in {hours} h are impossible: one of the two counters has wrapped or has another unit",
                bytes
            ));
            hours_of_writes = None;
        } else {
            one.written_gb_a_day = Some(rounded(bytes * 1e-9 / hours * HOURS));
        }
    }
    one.to_rating = written
        .zip(rated)
        .and_then(|(bytes, rated)| to_rating(bytes, rated, hours_of_writes));
    one.to_used = used.and_then(|used| to_used(used, hours));
}

/// Returns the years until the rated bytes are written; `None` if nothing is written or there is no rate.
fn to_rating(written: f64, rated: f64, hours: Option<f64>) -> Option<Remaining> {
    let years = match written >= rated {
        true => 0.0,
        false if written > 0.0 => rounded((rated - written) / written * hours? / YEAR_HOURS),
        false => return None,
    };
    Some(Remaining {
        years: Some(years),
        least: years,
        most: Some(years),
    })
}

/// Returns the years until Percentage Used is 100. A value represents one percent in either direction.
fn to_used(used: f64, hours: Option<f64>) -> Option<Remaining> {
    if used >= 100.0 {
        return Some(PASSED);
    }
    let years = hours? / YEAR_HOURS;
    let at = |used: f64| rounded((100.0 - used) / used * years);
    Some(Remaining {
        years: (used > 1.0).then(|| at(used)),
        least: at(used + 1.0),
        most: (used > 1.0).then(|| at(used - 1.0)),
    })
}

/// Adds a remark if the wear by the rating and Percentage Used disagree.
fn disagreement(one: &mut FleetDrive) {
    let used = one.health.used_percent.as_ref().map(|used| used.value);
    let Some((rated, used)) = one.rating_used_percent.zip(used) else {
        return;
    };
    let (less, more) = (rated.min(used + 1.0), rated.max(used - 1.0));
    if more >= 5.0 && more > DISAGREE * less {
        one.health.remarks.push(format!(
            "host writes are {rated} % of the rating, but Percentage Used is {used} %: a counter may have wrapped or been \
             reset, write amplification may be unusual, or the rating is another model's"
        ));
    }
}

fn note_duplicates(drives: &mut [FleetDrive]) {
    let key = |one: &FleetDrive| Some((one.health.model.clone()?, one.health.serial.clone()?));
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for one in drives.iter().filter_map(key) {
        *counts.entry(one).or_default() += 1;
    }
    for one in drives {
        let count = key(one).and_then(|key| counts.get(&key)).copied();
        if let Some(count @ 2..) = count {
            one.health
                .remarks
                .push(format!("this drive is in the input {count} times"));
        }
    }
}

/// Returns the rating of a drive: the user's for its model, the user's for all, the catalogue's; or why there is none.
fn rating(
    health: &Health,
    ratings: &[UserRating],
    catalogue: &[DriveSheet],
) -> Result<RatedWrites, String> {
    let model = health.model.as_deref();
    let own = ratings.iter().find(|one| {
        one.model
            .as_deref()
            .is_some_and(|part| has_part(model, part))
    });
    let any = ratings.iter().find(|one| one.model.is_none());
    if let Some(given) = own.or(any) {
        return Ok(RatedWrites {
            tb: given.bytes * 1e-12,
            of: String::from("--tbw"),
            how: String::from("--tbw"),
            kind: String::from("user"),
        });
    }
    let model = model.ok_or("the SMART data does not name the model; give --tbw")?;
    let (sheet, how) = in_catalogue(model, health.capacity_bytes, catalogue)
        .ok_or("this catalogue has no rating of this model; give --tbw")?;
    let id = &sheet.id;
    let bytes = sheet
        .endurance_bytes
        .ok_or_else(|| format!("this catalogue has no rating of {id}; give --tbw"))?;
    // A file may give drive writes per day instead of bytes.
    let keys = ["endurance", "drive_writes_per_day"];
    let figure = keys.iter().find_map(|key| sheet.figure(key));
    let kind = figure.map_or("assumed", |figure| figure.kind.name());
    Ok(RatedWrites {
        tb: bytes as f64 * 1e-12,
        of: id.clone(),
        how: match is_assumed(kind) {
            true => format!("{how}; this rating is {kind}"),
            false => how,
        },
        kind: kind.to_owned(),
    })
}

/// Returns letters and digits in lower case.
fn bare(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the name without words that makers omit or add.
fn bare_name(text: &str) -> String {
    let extra = ["ssd", "nvme", "with", "heatsink", "dc"];
    text.split(|c: char| !(c.is_alphanumeric() || c == '.'))
        .map(str::to_lowercase)
        .filter(|word| !extra.contains(&&**word))
        .collect()
}

/// Minimum characters of a model number that is compared without its maker's name.
const LEAST: usize = 8;
/// Maximum difference of capacities of one model, as a share.
const CAPACITY: f64 = 0.1;

/// Returns the drive of the catalogue with this model number or name, and how it was found.
fn in_catalogue<'a>(
    model: &str,
    capacity: Option<f64>,
    catalogue: &'a [DriveSheet],
) -> Option<(&'a DriveSheet, String)> {
    let fits = |sheet: &&DriveSheet| {
        let own = sheet.capacity as f64;
        capacity.is_none_or(|bytes| (bytes / own - 1.0).abs() <= CAPACITY)
    };
    let wanted = bare(model);
    let number = |sheet: &&DriveSheet| bare(&sheet.nvme.model_number) == wanted;
    let find = |test: &dyn Fn(&&DriveSheet) -> bool| {
        catalogue.iter().find(|sheet| test(sheet) && fits(sheet))
    };
    let words = |sheet: &DriveSheet, what: &str| format!("{} of this catalogue ({what})", sheet.id);
    if let Some(sheet) = find(&number) {
        return Some((sheet, words(sheet, "same model number")));
    }
    // `SSDPED1K375GA` for `INTEL SSDPED1K375GA`.
    let code = |text: &str| {
        text.split_once(' ')
            .map_or_else(|| bare(text), |(_, rest)| bare(rest))
    };
    let codes = |sheet: &&DriveSheet| {
        let own = &sheet.nvme.model_number;
        [code(own), bare(own)]
            .iter()
            .any(|own| own.len() >= LEAST && (*own == wanted || *own == code(model)))
            && own.contains(|c: char| c.is_ascii_digit())
    };
    if let Some(sheet) = find(&codes) {
        return Some((
            sheet,
            words(sheet, "same model number without the maker's name"),
        ));
    }
    let wanted = bare_name(model);
    let named = |sheet: &&DriveSheet| bare_name(&sheet.name) == wanted;
    find(&named).map(|sheet| (sheet, words(sheet, "same name")))
}

#[cfg(test)]
mod tests;
