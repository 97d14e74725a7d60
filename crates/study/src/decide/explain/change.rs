//! A change of rate during a measured run, with possible causes: a full SLC cache, the start of garbage collection on
//! a new drive, heat.
//!
//! A log of rates shows the time and both levels. The levels are compared with the model's rates in its states; the
//! bytes written until then with its SLC cache and its capacity; the time and the remaining share with the drive's
//! temperature ([`super::heat`]). Reads neither fill a cache nor need free blocks, so a slowdown of reads alone is
//! caused by heat or by another user. A rate that alternates between two levels is caused by heat or by a cache that
//! empties while it is written; the bytes per period distinguish them if the cache is known. If the input is not
//! sufficient, the answer states that, with a run that would be. Not modelled: heat within a run of the model (a
//! served drive has it); more than two levels.

use catalogue::DriveSheet;
use model::media::nand::NandConfig;
use serde::Serialize;
use text::digits::{bytes_decimal, count, duration};
use tier::DriveConfig;

use super::file::ReportingGroup;
use super::heat::{Fall, Heat};
use super::runs::Trial;
use super::steadiness::{LevelShift, Swings};

/// A change of rate, with possible causes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Description of the observation.
    pub text: String,
    /// For a drop that a log shows: its size and time, with the causes that fit. For the first line of an answer.
    #[serde(skip)]
    pub proven: Option<String>,
    /// Causes that fit: `slc`, `emptying` (an SLC cache), `collection`, `heat`, `others` (other users of drive or
    /// host); several if they cannot be distinguished.
    pub causes: Vec<&'static str>,
    /// A run that would distinguish the causes, or confirm one.
    pub to_tell: String,
    /// Conditions under which heat would be the cause, for a drop on a drive with a power model.
    pub as_heat: Option<Fall>,
}

/// Maximum factor between a level and a rate of the model that are equal.
const NEAR: f64 = 1.25;
/// As [`NEAR`], for the run as described.
const VERY_NEAR: f64 = 1.1;
/// Key of the run as described among the results of the model.
const AS_ASKED: &str = "as-asked";
/// Bounds for the bytes written until a cache is full, as multiples of its size.
const FULL: (f64, f64) = (0.4, 3.0);
/// Share of its capacity after which a new drive begins garbage collection.
const WRITTEN: f64 = 0.5;

/// Returns the change in a run; `None` without any sign of one. `drive`: its sheet, and the results of its model as
/// described and under each condition.
pub fn find_change(
    run: &ReportingGroup,
    drive: Option<(&DriveSheet, &[&Trial])>,
) -> Option<Change> {
    let steadiness = &run.facts.steadiness;
    if let Some(swings) = &steadiness.swings {
        return Some(swung(run, swings, drive));
    }
    match (&steadiness.step, steadiness.steady) {
        (Some(step), _) if step.falls() => Some(fell(run, step, drive)),
        (Some(step), _) => Some(rose(step)),
        (None, Some(false)) if steadiness.end_over_mean.is_none() => Some(unseen(run)),
        _ => None,
    }
}

/// Returns the rate of a direction in bytes per second.
fn rate(run: &ReportingGroup, direction: &str) -> f64 {
    let sides = run.facts.sides.iter();
    let of_direction = sides.filter(|side| side.direction == direction);
    of_direction.map(|side| side.mb_s * 1e6).sum()
}

/// Returns the change for an uneven rate without a log, which does not show the time.
fn unseen(run: &ReportingGroup) -> Change {
    let causes = match rate(run, "writes") > 0.0 {
        true => vec!["slc", "collection", "heat", "others"],
        false => vec!["heat", "others"],
    };
    Change {
        text: format!(
            "the rate was uneven, and sums do not show when: {} would fit",
            words(&causes)
        ),
        proven: None,
        causes,
        to_tell: String::from(
            "measure again with write_iops_log=run and log_avg_msec=500, and give --log run_iops.1.log",
        ),
        as_heat: None,
    }
}

fn rose(step: &LevelShift) -> Change {
    Change {
        text: format!(
            "after {1}, the rate rose to {0} of the rate before: an initial cause of slowness ended",
            times(step),
            duration(step.at_seconds)
        ),
        proven: None,
        causes: vec!["others"],
        to_tell: String::from(
            "measure again with ramp_time; a drive also refreshes its data in its first minutes under power",
        ),
        as_heat: None,
    }
}

fn times(step: &LevelShift) -> String {
    let ratio = step.after_over_mean / step.before_over_mean.max(1e-9);
    format!("{:.0} %", ratio * 100.0)
}

fn fell(
    run: &ReportingGroup,
    step: &LevelShift,
    drive: Option<(&DriveSheet, &[&Trial])>,
) -> Change {
    let written = rate(run, "writes") * step.before_over_mean * step.at_seconds;
    let levels = [step.before_over_mean, step.after_over_mean].map(|it| it * run.facts.iops);
    let mut text = format!(
        "the rate fell to {} after {}",
        times(step),
        duration(step.at_seconds)
    );
    let fall = text.clone();
    if written > 0.0 {
        text += &format!(", when {} were written", bytes_decimal(written));
    }
    let mut causes = match written > 0.0 {
        true => vec!["slc", "collection", "heat", "others"],
        false => vec!["heat", "others"],
    };
    let mut as_heat = None;
    if let Some((sheet, rates)) = drive {
        let names = levels.map(|level| nearest(rates, level));
        text += &describe_levels(levels, &names);
        let share = step.after_over_mean / step.before_over_mean.max(1e-9);
        let heat = heat(sheet, rates, names[0]);
        if written > 0.0 {
            let nand = match &sheet.config {
                DriveConfig::Nand(config) => Some(&**config),
                _ => None,
            };
            text += &cache_beside(nand);
            causes = of_writes(sheet, nand, written, &names);
            // Both do occur at the same time.
            let is_due = heat
                .as_ref()
                .is_some_and(|heat| heat.is_due(step.at_seconds));
            if is_due && !causes.contains(&"heat") {
                causes.push("heat");
            }
        }
        if let Some(heat) = heat.filter(|_| causes.contains(&"heat")) {
            text += &heat.words(share);
            as_heat = heat.fall(share);
        }
    }
    Change {
        text: format!("{text}: {}", words(&causes)),
        proven: Some(format!("{fall}: {}", words(&causes))),
        to_tell: telling(&causes),
        causes,
        as_heat,
    }
}

/// Returns the heat at the rate before the drop: of the state with that rate, or as described.
fn heat(sheet: &DriveSheet, rates: &[&Trial], before: Option<&Trial>) -> Option<Heat> {
    let trial = before.or(rates.first().copied())?;
    Heat::from_power(sheet, trial.watts)
}

fn swung(run: &ReportingGroup, swings: &Swings, drive: Option<(&DriveSheet, &[&Trial])>) -> Change {
    let written = rate(run, "writes") * swings.high_over_mean * swings.high_seconds;
    let share = swings.low_over_mean / swings.high_over_mean.max(1e-9);
    let mut text = format!(
        "the rate swings: it fell to {:.0} % after {}, and again every {}, {} times in all",
        share * 100.0,
        duration(swings.at_seconds),
        duration(swings.every_seconds),
        swings.falls
    );
    let fall = format!(
        "the rate fell to {:.0} % after {}, and again every {}",
        share * 100.0,
        duration(swings.at_seconds),
        duration(swings.every_seconds)
    );
    let mut causes = match written > 0.0 {
        true => vec!["emptying", "heat", "others"],
        false => vec!["heat", "others"],
    };
    let mut as_heat = None;
    if let Some((sheet, rates)) = drive {
        let nand = match &sheet.config {
            DriveConfig::Nand(config) => Some(&**config),
            _ => None,
        };
        if written > 0.0 {
            text += &format!(
                "; between two falls it wrote {} at the upper rate",
                bytes_decimal(written)
            );
            text += &cache_beside(nand);
            // A cache cannot be the cause if many times its size is written at the full rate.
            let fits = nand
                .and_then(slc_bytes)
                .is_some_and(|bytes| written <= FULL.1 * bytes);
            causes.retain(|cause| *cause != "emptying" || fits);
        }
        let before = nearest(rates, swings.high_over_mean * run.facts.iops);
        let after = swings.after_over_mean / swings.high_over_mean.max(1e-9);
        if let Some(heat) = heat(sheet, rates, before) {
            text += &heat.words(after);
            as_heat = heat.fall(after);
        }
    }
    Change {
        text: format!("{text}: {}", words(&causes)),
        proven: Some(format!("{fall}: {}", words(&causes))),
        to_tell: telling(&causes),
        causes,
        as_heat,
    }
}

/// Returns the levels together with the model's rates that are close to them.
fn describe_levels(levels: [f64; 2], names: &[Option<&Trial>; 2]) -> String {
    let one = |when: &str, level: f64, trial: &Option<&Trial>| match trial {
        Some(trial) => format!(
            "; {when} it {} IOPS, as the model does {} ({})",
            count(level),
            match trial.key.as_str() {
                AS_ASKED => "as asked".to_owned(),
                _ => format!("with {}", trial.what),
            },
            count(trial.iops)
        ),
        None => format!(
            "; {when} it {} IOPS, which matches no state of the model",
            count(level)
        ),
    };
    one("before", levels[0], &names[0]) + &one("after", levels[1], &names[1])
}

/// Returns the state or limit of the model whose rate is closest to a level, if one is close. The run as described comes
/// first, so that a condition is supposed only if it is needed.
fn nearest<'a>(rates: &[&'a Trial], level: f64) -> Option<&'a Trial> {
    let off = |trial: &&Trial| libm::log(trial.iops.max(1e-9) / level.max(1e-9)).abs();
    let mut as_asked = rates.iter().copied().filter(|it| it.key == AS_ASKED);
    if let Some(as_asked) = as_asked.find(|it| off(it) <= libm::log(VERY_NEAR)) {
        return Some(as_asked);
    }
    let near = rates
        .iter()
        .copied()
        .min_by(|a, b| off(a).total_cmp(&off(b)))?;
    (off(&near) <= libm::log(NEAR)).then_some(near)
}

/// Returns the bytes of an SLC cache.
fn slc_bytes(config: &NandConfig) -> Option<f64> {
    let slc = config.slc.as_ref()?;
    let shape = config.check().ok()?;
    let unit = f64::from(config.geometry.indirection.max(4096));
    let slots = f64::from(shape.block_slots / slc.bits);
    Some(f64::from(shape.dies) * f64::from(slc.blocks_per_die) * slots * unit)
}

fn cache_beside(nand: Option<&NandConfig>) -> String {
    match nand.and_then(slc_bytes) {
        Some(bytes) => format!(
            "; its SLC cache takes {} in the model",
            bytes_decimal(bytes)
        ),
        None => String::new(),
    }
}

/// Returns the causes that fit a drop of writes on a known drive.
fn of_writes(
    sheet: &DriveSheet,
    nand: Option<&NandConfig>,
    written: f64,
    names: &[Option<&Trial>; 2],
) -> Vec<&'static str> {
    let is = |trial: &Option<&Trial>, keys: &[&str]| {
        trial.is_some_and(|it| keys.iter().any(|key| it.key.starts_with(key)))
    };
    // A medium that is written in place has neither such a cache nor garbage collection.
    let Some(config) = nand else {
        return vec!["heat", "others"];
    };
    let mut causes = Vec::new();
    if let Some(bytes) = slc_bytes(config)
        && (FULL.0..=FULL.1).contains(&(written / bytes))
    {
        causes.push("slc");
    }
    let was_new = is(&names[0], &["fresh", "filled"]);
    if written >= WRITTEN * sheet.capacity as f64 || was_new && causes.is_empty() {
        causes.push("collection");
    }
    if causes.is_empty() || is(&names[1], &["power"]) {
        causes.extend(["heat", "others"]);
    }
    causes
}

fn words(causes: &[&str]) -> String {
    let one = |cause: &&str| match *cause {
        "slc" => "an SLC cache that was full",
        "emptying" => "an SLC cache that empties while it is written",
        "collection" => "a new or trimmed drive that began to collect",
        "heat" => "heat",
        _ => "another user of the drive or host",
    };
    let all: Vec<&str> = causes.iter().map(one).collect();
    all.join(", or ")
}

fn telling(causes: &[&str]) -> String {
    let mut said = Vec::new();
    if causes.contains(&"slc") || causes.contains(&"emptying") {
        said.push("if a cache is the cause, it is full after the same number of bytes at half the rate (rate=), and has space again after idle minutes");
    }
    if causes.contains(&"collection") {
        said.push("a drive that was written over twice at random begins at the lower rate");
    }
    if causes.contains(&"heat") {
        said.push("if heat is the cause, `nvme smart-log` shows it during the run (temperature, counts and times of thermal management); it comes after the same time, not the same number of bytes, and a fan removes it");
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_a_drive_is_as_large_as_its_file_says() {
        let sheet = catalogue::drive("960evo-250").expect("built in");
        let DriveConfig::Nand(config) = &sheet.config else {
            panic!("NAND")
        };
        let bytes = slc_bytes(config).expect("it has one");
        assert!((11e9..14e9).contains(&bytes), "{bytes}");
    }
}
