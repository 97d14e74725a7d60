//! End of a drive's life within a run: when Percentage Used passes 100 % and the drive's own limit, and the rate of
//! host writes before and after that limit.
//!
//! Times are ends of intervals of the series, so they are at most one interval late. Not included: pools, whose members
//! reach their ends at different times.

use ::text::digits::{duration, megabytes_a_second, significant};
use ::text::quantity::Quantity;
use catalogue::DriveSheet;
use lab::Outcome;
use model::Gauge;
use model::media::Medium;
use study::decide::read_only::exceeded_limit;
use tier::DriveConfig;

/// Interval of the series in which a value is first reached, and the time of its end in seconds.
#[derive(Clone, Copy)]
struct Crossing {
    interval: usize,
    seconds: f64,
}

/// Returns sentences about a drive that passes 100 % of its rated endurance, or its own limit, in this run, or whose
/// writes fail because it was read-only before; empty for other runs.
pub fn end_of_life(drive: &DriveSheet, outcome: &Outcome) -> Vec<String> {
    if let Some(limit) = exceeded_limit(drive)
        && outcome.threads.iter().any(|it| it.write.errors > 0)
    {
        let used = significant(drive.config.percentage_used(), 4);
        return vec![format!(
            "Percentage Used: {used} % at the start; the medium is read-only at and above {limit} %, and writes fail"
        )];
    }
    let series = |gauge| outcome.over_time.series(gauge);
    let (Some(used), Some(written), None) = (
        series(Gauge::PercentageUsed),
        series(Gauge::HostBytesWritten),
        &drive.pool,
    ) else {
        return Vec::new();
    };
    let every = outcome.over_time.every.seconds();
    let end = outcome.end.seconds();
    let start = drive.config.percentage_used();
    let crossing = |percent: f64| {
        let interval = used.iter().position(|&value| value >= percent)?;
        let seconds = ((interval + 1) as f64 * every).min(end);
        (start < percent).then_some(Crossing { interval, seconds })
    };
    let limit = drive
        .config
        .write_protect_percent()
        .or(drive.config.read_only_percent());
    let rated = crossing(100.0);
    let limited = limit.and_then(|percent| Some((percent, crossing(percent)?)));
    if rated.is_none() && limited.is_none() {
        return unchanged(drive, start, used, written).into_iter().collect();
    }
    let mut passed = vec![format!("{} % at the start", significant(start, 4))];
    let by = |percent: f64, at: Crossing| format!("{percent} % by {}", duration(at.seconds));
    passed.extend(rated.map(|at| by(100.0, at)));
    passed.extend(limited.map(|(percent, at)| by(percent, at)));
    passed.extend(
        used.last()
            .map(|last| format!("{} % at the end", significant(*last, 4))),
    );
    let mut said = vec![format!("Percentage Used: {}", passed.join(", "))];
    said.extend(limited.map(|(percent, at)| rates_around(drive, percent, at, written, every, end)));
    if let (Some(_), Some(kept)) = (rated, drive.management.retention) {
        said.push(format!(
            "data retention without power at and above 100 %: {}; after a longer time without power, data may be lost (the model keeps all data)",
            kept.show()
        ));
    }
    said
}

/// Returns why a drive whose wear is multiplied did not wear, if it was written to.
fn unchanged(drive: &DriveSheet, start: f64, used: &[f64], written: &[f64]) -> Option<String> {
    let DriveConfig::Nand(config) = &drive.config else {
        return None;
    };
    let is_same = used.last().is_some_and(|last| *last <= start);
    let wrote = written.iter().sum::<f64>() > 0.0;
    (config.wear_factor != 1.0 && is_same && wrote).then(|| {
        String::from(
            "no block was erased in this run, so Percentage Used did not rise: start with --state steady, or write more",
        )
    })
}

/// Returns the rates of host writes before and after the drive's limit.
fn rates_around(
    drive: &DriveSheet,
    percent: f64,
    at: Crossing,
    written: &[f64],
    every: f64,
    end: f64,
) -> String {
    let what = match drive.config.write_protect_percent() {
        Some(_) => "from then on, the drive throttles writes",
        None => "from then on, the medium is read-only and writes fail",
    };
    let rate = |bytes: &[f64], seconds: f64| {
        (!bytes.is_empty() && seconds > 0.0)
            .then(|| megabytes_a_second(bytes.iter().sum::<f64>() / seconds * 1e-6))
    };
    let before = rate(&written[..at.interval], at.interval as f64 * every);
    let after = rate(&written[at.interval + 1..], end - at.seconds);
    let rates = match (before, after) {
        (Some(before), Some(after)) => format!("{before} before, {after} after"),
        (None, Some(after)) => format!("{after} after"),
        (Some(before), None) => format!("{before} before"),
        (None, None) => String::from("no whole interval before or after, set a shorter --every"),
    };
    format!("Percentage Used passes {percent} %; {what}: {rates}")
}

#[cfg(test)]
mod tests {
    use lab::{Lab, Machine, Scenario};
    use model::media::Precondition;
    use workload::job::{Job, Mix};

    use super::*;

    #[test]
    fn failed_writes_of_a_read_only_drive_are_explained() {
        let notes = |percent: f64, mix: Mix| {
            let mut sheet = catalogue::drive("p4610-1600").expect("built in");
            sheet.config = sheet.config.shrunk(1 << 30);
            sheet.capacity = sheet.config.capacity_bytes();
            sheet.config.set_percentage_used(percent).expect("it wears");
            let host = catalogue::host(catalogue::TYPICAL_HOST).expect("built in");
            let job = Job {
                mix,
                random: true,
                number_ios: Some(100),
                ..Job::default()
            };
            let machine = Machine::new(&sheet, &host);
            let scenario = Scenario::jobs(machine, Precondition::Filled, vec![job], 1);
            let outcome = Lab::new().run(&scenario).expect("it runs");
            end_of_life(&sheet, &outcome)
        };
        let said = notes(106.0, Mix::Write).join("");
        assert!(
            said.contains("106 % at the start") && said.contains("read-only at and above 105 %"),
            "{said}"
        );
        assert!(notes(106.0, Mix::Read).is_empty());
        assert!(notes(99.0, Mix::Write).is_empty());
    }
}
