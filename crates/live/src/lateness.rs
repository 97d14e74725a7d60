//! Lateness of replies: the delay after the completion time in the model.

use model::Span;
use statistics::Histogram;

/// Lateness of the replies so far.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    histogram: Histogram,
    over_a_tenth: u64,
}

impl Lateness {
    /// Records a reply that was sent this late, for a command of this latency (both in wall-clock time).
    #[inline]
    pub fn record(&mut self, late: Span, latency: Span) {
        self.histogram.record(late);
        self.over_a_tenth += u64::from(late.ns() * 10 > latency.ns());
    }

    /// Returns the histogram of lateness.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Returns the share of replies that were late by more than a tenth of their latency; 0 without replies.
    pub fn share_over_a_tenth(&self) -> f64 {
        self.over_a_tenth as f64 / (self.histogram.count().max(1)) as f64
    }
}
