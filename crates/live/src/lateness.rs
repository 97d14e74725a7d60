//! How late replies leave, against the time at which the model says that the command is complete.

use model::Span;
use statistics::Histogram;

/// Lateness of the replies so far.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    histogram: Histogram,
    over_a_tenth: u64,
}

impl Lateness {
    /// Counts a reply that left this much later than it should have, to a command of this latency (both wall time).
    #[inline]
    pub fn record(&mut self, late: Span, latency: Span) {
        self.histogram.record(late);
        self.over_a_tenth += u64::from(late.ns() * 10 > latency.ns());
    }

    /// All of them.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Share of replies that were late by more than a tenth of their latency; 0 without any.
    pub fn share_over_a_tenth(&self) -> f64 {
        self.over_a_tenth as f64 / (self.histogram.count().max(1)) as f64
    }
}
