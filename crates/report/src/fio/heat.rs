//! Temperature of a drive in a run, and the rates of host I/O with and without heat if it throttled itself.
//!
//! Times are ends of intervals of the series, so they are at most one interval late. A rate before throttling says
//! nothing about heat, because an SLC cache may have become full; the rate of a run without heat does.

use ::text::digits::{duration, megabytes_a_second};
use catalogue::administration::STILL_AIR;
use catalogue::{DriveSheet, FigureKind};
use lab::Outcome;
use model::Gauge;
use model::media::Medium;

/// Returns a sentence about the temperature of the drive; `None` for a run without heat. `without` is the outcome of
/// the run without heat.
pub fn heat(outcome: &Outcome, drive: &DriveSheet, without: Option<&Outcome>) -> Option<String> {
    let celsius = outcome.over_time.series(Gauge::Celsius)?;
    let hot = outcome.over_time.series(Gauge::ThermalThrottleSeconds)?;
    let every = outcome.over_time.every.seconds();
    let end = outcome.end.seconds();
    let thermal = &drive.management.thermal;
    let start = thermal.equilibrium(drive.config.idle_watts());
    let highest = celsius.iter().copied().fold(start, f64::max);
    let last = celsius.last().copied().unwrap_or(start);
    let head = format!(
        "temperature: at most {highest:.1} C, from {start:.1} C after a long idle time to {last:.1} C at the end of {}; air of {:.0} C, {}",
        duration(end),
        thermal.ambient_celsius,
        airflow(drive),
    );
    let throttled: f64 = hot.iter().sum();
    let Some(first) = hot.iter().position(|seconds| *seconds > 0.0) else {
        return Some(format!("{head}; the drive did not throttle"));
    };
    let rates = match (rate(outcome), without.and_then(rate)) {
        (Some(with), Some(without)) => format!("; {with} on average, {without} without heat"),
        (Some(with), None) => format!("; {with} on average"),
        (None, _) => String::new(),
    };
    Some(format!(
        "{head}; the drive throttled for {}, first by {}{rates}",
        duration(throttled),
        duration(((first + 1) as f64 * every).min(end)),
    ))
}

/// Returns the mean rate of host I/O.
fn rate(outcome: &Outcome) -> Option<String> {
    let bytes = |gauge| -> f64 { outcome.over_time.series(gauge).into_iter().flatten().sum() };
    let bytes = bytes(Gauge::HostBytesRead) + bytes(Gauge::HostBytesWritten);
    let seconds = outcome.end.seconds();
    (seconds > 0.0).then(|| megabytes_a_second(bytes / seconds * 1e-6))
}

/// Returns the airflow of a drive, and whether it is assumed.
fn airflow(drive: &DriveSheet) -> String {
    let figures = &drive.figures;
    let Some(figure) = figures.iter().find(|it| it.key == "thermal.airflow") else {
        return "airflow as rated".into();
    };
    let lfm = figure.value.split(' ').next().unwrap_or_default();
    let still = lfm.parse().is_ok_and(|lfm: f64| lfm < STILL_AIR.0);
    match (figure.kind, still) {
        (_, true) => format!(
            "{} (as still air: {:.0} LFM, assumed)",
            figure.value, STILL_AIR.0
        ),
        (FigureKind::Assumed, false) => format!("{} (assumed)", figure.value),
        (_, false) => figure.value.clone(),
    }
}
