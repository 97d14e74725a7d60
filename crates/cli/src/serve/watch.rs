//! Status lines of a server, one per drive: rates of the last second, lateness since the start. They are truncated to
//! the width of the terminal, and log lines appear above them.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use live::{Counters, Lateness, ServedDevice, Wall};
use model::Span;
use statistics::Histogram;

/// The lines, and the counters of the previous ones.
pub(super) struct Watch {
    screen: MultiProgress,
    lines: Vec<ProgressBar>,
    at: Wall,
    before: Vec<Counters>,
}

impl Watch {
    /// Returns lines at the end of this screen.
    pub(super) fn new(screen: MultiProgress) -> Watch {
        Watch {
            screen,
            lines: Vec::new(),
            at: Wall::default(),
            before: Vec::new(),
        }
    }

    /// Replaces the previous lines.
    pub(super) fn show(&mut self, now: Wall, drives: &[ServedDevice], lateness: &Lateness) {
        let seconds = now.since(self.at).seconds();
        self.at = now;
        self.before.resize(drives.len(), Counters::default());
        let mut texts = Vec::new();
        for (drive, before) in drives.iter().zip(&mut self.before) {
            let counters = *drive.counters();
            if seconds > 0.0 {
                texts.push(rates(drive, &counters, before, seconds));
            }
            *before = counters;
        }
        texts.extend(late(lateness));
        while self.lines.len() < texts.len() {
            // The template has no parts that could be invalid.
            let style = ProgressStyle::with_template("{wide_msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let line = ProgressBar::new_spinner().with_style(style);
            self.lines.push(self.screen.add(line));
        }
        for (line, text) in self.lines.iter().zip(texts) {
            line.set_message(text);
        }
    }
}

/// Returns the rates of one drive.
fn rates(drive: &ServedDevice, now: &Counters, before: &Counters, seconds: f64) -> String {
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

/// Returns the lateness of replies; `None` before the first.
fn late(lateness: &Lateness) -> Option<String> {
    let histogram = lateness.histogram();
    let percentile = |percent| histogram.percentile(percent).map(Span::us);
    match (percentile(50.0), percentile(99.0)) {
        (Some(half), Some(most)) => Some(format!(
            "late {half:.1} us, p99 {most:.1}, longest {:.1}, over 10 %: {:.1} %",
            histogram.max().map_or(0.0, Span::us),
            lateness.share_over_a_tenth() * 100.0
        )),
        _ => None,
    }
}

/// Returns the final summary: latencies of the model, failures, and the distribution of lateness.
pub(super) fn summary(drives: &[ServedDevice], lateness: &Lateness) -> Vec<String> {
    let mut lines = Vec::new();
    for drive in drives {
        for (kind, histogram) in drive.latencies().by_kind() {
            if let Some(percentiles) = percentiles(histogram) {
                let (name, count) = (drive.name(), histogram.count());
                lines.push(format!(
                    "{name}: {kind} latency by the model, {count}: {percentiles}"
                ));
            }
        }
        let failed = drive.counters().errors;
        if failed > 0 {
            let commands = if failed == 1 { "command" } else { "commands" };
            lines.push(format!("{}: {failed} {commands} failed", drive.name()));
        }
    }
    let histogram = lateness.histogram();
    if let Some(percentiles) = percentiles(histogram) {
        let share = lateness.share_over_a_tenth() * 100.0;
        lines.push(format!(
            "lateness of {} replies: {percentiles}, {share:.2} % late by more than a tenth",
            histogram.count()
        ));
    }
    lines
}

/// Returns the percentiles with enough samples, and the maximum; `None` without samples.
fn percentiles(histogram: &Histogram) -> Option<String> {
    let mut text = String::new();
    for percent in [50.0, 90.0, 99.0, 99.9, 99.99] {
        if let Some(span) = histogram.percentile(percent) {
            text.push_str(&format!("p{percent} {:.1} us ", span.us()));
        }
    }
    let longest = histogram.max()?;
    Some(format!("{text}longest {:.1} us", longest.us()))
}
