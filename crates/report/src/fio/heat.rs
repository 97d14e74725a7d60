//! Temperature of a drive in a run, and the rates of host I/O before and while it throttled itself.
//!
//! Times are ends of intervals of the series, so they are at most one interval late.

use ::text::digits::{duration, megabytes_a_second};
use lab::Outcome;
use model::Gauge;

/// Returns sentences about the temperature of the drive; empty for a run without heat.
pub fn heat(outcome: &Outcome) -> Vec<String> {
    let series = |gauge| outcome.over_time.series(gauge);
    let (Some(celsius), Some(hot)) = (
        series(Gauge::Celsius),
        series(Gauge::ThermalThrottleSeconds),
    ) else {
        return Vec::new();
    };
    let every = outcome.over_time.every.seconds();
    let end = outcome.end.seconds();
    let highest = celsius.iter().copied().fold(f64::MIN, f64::max);
    let last = celsius.last().copied().unwrap_or_default();
    let head = format!(
        "temperature: at most {highest:.1} C, {last:.1} C at the end of {}",
        duration(end)
    );
    let throttled: f64 = hot.iter().sum();
    let Some(first) = hot.iter().position(|seconds| *seconds > 0.0) else {
        return vec![format!("{head}; the drive did not throttle")];
    };
    // Bytes of the host in an interval.
    let moved = |index: usize| -> f64 {
        let of = |gauge| {
            series(gauge)
                .and_then(|it| it.get(index).copied())
                .unwrap_or(0.0)
        };
        of(Gauge::HostBytesRead) + of(Gauge::HostBytesWritten)
    };
    let rate = |from: usize, to: usize, seconds: f64| {
        let bytes: f64 = (from..to).map(moved).sum();
        (to > from && seconds > 0.0).then(|| megabytes_a_second(bytes / seconds * 1e-6))
    };
    let start = first as f64 * every;
    let before = rate(0, first, start);
    let after = rate(first, celsius.len(), end - start);
    let rates = match (before, after) {
        (Some(before), Some(after)) => format!("; {before} before, {after} since then"),
        (None, Some(after)) => format!("; {after} in all"),
        _ => String::new(),
    };
    vec![format!(
        "{head}; the drive throttled for {}, first by {}{rates}",
        duration(throttled),
        duration(((first + 1) as f64 * every).min(end)),
    )]
}
