//! The thread that processes I/Os: the duration of its work, given that other work uses its processor and its caches.
//!
//! Its pace is drawn again after a certain time of work, and it is paused occasionally. Both depend on work time and
//! not on wall-clock time: an idle thread experiences neither.

use super::config::{IoPath, Pause};
use crate::engine::Station;
use crate::random::Stream;
use crate::time::{Span, Time};

/// A thread with a varying pace.
#[derive(Clone, Debug)]
pub(super) struct PacedThread {
    station: Station,
    spread: f64,
    lasts: Span,
    pause: Option<Pause>,
    /// Factor of the current pace relative to the median, and how much longer this pace lasts.
    pace: f64,
    pace_left: Span,
    /// Work time until the next pause.
    until_pause: Span,
    paces: Stream,
    pauses: Stream,
}

impl PacedThread {
    pub(super) fn new(path: &IoPath, seed: u64) -> PacedThread {
        let mut pauses = Stream::new(seed, "volume pauses");
        PacedThread {
            station: Station::default(),
            spread: path.spread,
            lasts: path.pace,
            pause: path.pause,
            pace: 1.0,
            pace_left: Span::ZERO,
            until_pause: path
                .pause
                .map_or(Span::ZERO, |pause| pauses.exponential(pause.every)),
            paces: Stream::new(seed, "volume paces"),
            pauses,
        }
    }

    /// An idle thread starts work that takes `median` at the median pace; returns when it is done.
    pub(super) fn work(&mut self, now: Time, median: Span) -> Time {
        let time = self.paced(median);
        let paused = self.paused(time);
        self.station.book(now, time + paused).1
    }

    /// Returns the duration of work at the paces that it spans.
    fn paced(&mut self, median: Span) -> Span {
        if self.spread == 0.0 {
            return median;
        }
        let (mut left, mut time) = (median.ns() as f64, Span::ZERO);
        loop {
            let needs = Span::from_ns((left * self.pace) as u64);
            if needs <= self.pace_left {
                self.pace_left = self.pace_left - needs;
                return time + needs;
            }
            time += self.pace_left;
            left = (left - self.pace_left.ns() as f64 / self.pace).max(0.0);
            self.pace = self.paces.lognormal(self.spread);
            self.pace_left = self.lasts;
        }
    }

    /// Returns the pauses during this time of work.
    fn paused(&mut self, time: Span) -> Span {
        let Some(pause) = self.pause else {
            return Span::ZERO;
        };
        let (mut left, mut paused) = (time, Span::ZERO);
        while left > self.until_pause {
            left = left - self.until_pause;
            paused += self.pauses.exponential(pause.mean);
            self.until_pause = self.pauses.exponential(pause.every).max(Span::from_ns(1));
        }
        self.until_pause = self.until_pause - left;
        paused
    }

    /// Returns the time spent up to `now`.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.station.busy(now)
    }

    /// Discards the current work.
    pub(super) fn clear(&mut self, now: Time) {
        self.station.clear(now);
    }
}
