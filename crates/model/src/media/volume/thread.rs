//! The thread that carries I/Os: how long work takes it, as others have its processor and its caches besides.
//!
//! Its pace is drawn anew after some time of work, and now and then it is paused. Both go by work and not by the clock: an
//! idle thread meets neither.

use super::config::{IoPath, Pause};
use crate::engine::Station;
use crate::random::Stream;
use crate::time::{Span, Time};

/// A thread with a pace.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    station: Station,
    spread: f64,
    lasts: Span,
    pause: Option<Pause>,
    /// How much longer than the median work takes, and how much longer this pace lasts.
    pace: f64,
    pace_left: Span,
    /// Until the next pause.
    until_pause: Span,
    paces: Stream,
    pauses: Stream,
}

impl Thread {
    pub(super) fn new(path: &IoPath, seed: u64) -> Thread {
        let mut pauses = Stream::new(seed, "volume pauses");
        Thread {
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

    /// Begins with work that takes so long at the median pace, now that it is idle; returns when it is done.
    pub(super) fn work(&mut self, now: Time, median: Span) -> Time {
        let time = self.paced(median);
        let paused = self.paused(time);
        self.station.book(now, time + paused).1
    }

    /// How long it takes at the paces that it meets.
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

    /// Pauses that fall into so much of its time.
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

    /// Time spent up to `now`.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.station.busy(now)
    }

    /// What it is at is gone.
    pub(super) fn clear(&mut self, now: Time) {
        self.station.clear(now);
    }
}
