//! The line that shows how serving goes: rates of the last second, lateness since the start.

use std::io::Write;

use live::{Counters, Lateness, Served, Wall};
use model::Span;

/// What the line before was made from.
#[derive(Default)]
pub(super) struct Watch {
    at: Wall,
    before: Vec<Counters>,
}

impl Watch {
    /// Shows a line in place of the one before.
    pub(super) fn show(&mut self, now: Wall, drives: &[Served], lateness: &Lateness) {
        let seconds = now.since(self.at).seconds();
        self.at = now;
        self.before.resize(drives.len(), Counters::default());
        let mut parts = Vec::new();
        for (drive, before) in drives.iter().zip(&mut self.before) {
            let counters = *drive.counters();
            if seconds > 0.0 {
                parts.push(rates(drive, &counters, before, seconds));
            }
            *before = counters;
        }
        let line = format!("{}{}", parts.join(" | "), late(lateness));
        // A terminal that has gone is no reason to stop serving.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }
}

/// Rates of one drive.
fn rates(drive: &Served, now: &Counters, before: &Counters, seconds: f64) -> String {
    let ios = (now.reads + now.writes) - (before.reads + before.writes);
    let bytes = (now.bytes_read + now.bytes_written) - (before.bytes_read + before.bytes_written);
    let latency_us = (now.latency_ns - before.latency_ns) as f64 * 1e-3 / ios.max(1) as f64;
    let used = drive.gauge(model::Gauge::PercentageUsed);
    format!(
        "{}: {:.0} IOPS {:.1} MB/s {latency_us:.1} us depth {} used {used:.2} % WA {:.2}",
        drive.name(),
        ios as f64 / seconds,
        bytes as f64 * 1e-6 / seconds,
        drive.in_flight(),
        drive.write_amplification(),
    )
}

/// How late replies are; nothing before the first.
fn late(lateness: &Lateness) -> String {
    let histogram = lateness.histogram();
    let percentile = |percent| histogram.percentile(percent).map(Span::us);
    match (percentile(50.0), percentile(99.0)) {
        (Some(half), Some(most)) => format!(
            " | late {half:.1} us, p99 {most:.1}, over 10 %: {:.1} %",
            lateness.share_over_a_tenth() * 100.0
        ),
        _ => String::new(),
    }
}

/// What is said at the end: lateness in full.
pub(super) fn summary(lateness: &Lateness) -> Option<String> {
    let histogram = lateness.histogram();
    let mut text = format!("lateness of {} replies:", histogram.count());
    let mut any = false;
    for percent in [50.0, 90.0, 99.0, 99.9, 99.99] {
        if let Some(span) = histogram.percentile(percent) {
            text.push_str(&format!(" p{percent} {:.1} us", span.us()));
            any = true;
        }
    }
    let share = lateness.share_over_a_tenth() * 100.0;
    text.push_str(&format!(", {share:.2} % late by more than a tenth"));
    any.then_some(text)
}
