//! Destaging while the buffer is below its upper mark: none, at a controlled rate, or by a cleaner that wakes.
//!
//! [`Cleaning::Rate`] is that of bcache: the destage rate follows the distance of dirty data from a target, with a
//! proportional and an integral term, and is updated every few seconds. It is unlimited if no client command has
//! arrived for six of these updates. [`Cleaning::Idle`] is Open CAS's ALRU: old data is cleaned if no client command
//! has arrived for a while. [`Cleaning::Steady`] is Open CAS's ACP: one round per interval. Above
//! [`Destage::from`](super::Destage), all of them are replaced by rounds without pause, because a ring that is full of
//! overwritten data must be freed, too.
//!
//! Sources: bcache's `writeback.c` and `Documentation/admin-guide/bcache.rst` of Linux 6.12; Open CAS Linux's admin
//! guide and OCF's `inc/cleaning`. Not modelled: the order of addresses (here the oldest segments come first), chunks
//! of ACP, read hits that rejuvenate a line, bcache's reaction to fragmentation. Data in the segment that is being
//! written stays there.

use model::time::{Span, Time};

use super::{WriteBack, ring::UNIT};

/// Destaging policy below [`Destage::from`](super::Destage).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cleaning {
    /// No destaging.
    #[default]
    Fill,
    /// A controlled rate.
    Rate(RateControl),
    /// A cleaner that wakes, and cleans old data if no client command has arrived for a while.
    Idle(IdleCleaning),
    /// One round per interval.
    Steady(Span),
}

impl Cleaning {
    /// Returns the problem of the settings, if any.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self {
            Cleaning::Fill => None,
            Cleaning::Steady(every) => {
                (*every == Span::ZERO).then_some("the time between rounds must be above zero")
            }
            Cleaning::Idle(law) => (law.wake == Span::ZERO)
                .then_some("the interval at which the cleaner wakes must be above zero"),
            Cleaning::Rate(law) => {
                let right = (0.0..=1.0).contains(&law.target)
                    && law.proportional > Span::ZERO
                    && law.integral_s2 > 0.0
                    && law.update > Span::ZERO
                    && law.least > 0;
                (!right).then_some(
                    "the target, terms, update interval and minimum of the destaging rate must be above zero",
                )
            }
        }
    }
}

/// A controlled destage rate.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RateControl {
    /// Target share of the buffer that is dirty, 0 to 1.
    pub target: f64,
    /// Time in which data above the target is destaged: the inverse of bcache's proportional term.
    pub proportional: Span,
    /// Inverse of the integral term, in seconds squared: the sum of data above the target, in byte-seconds, divided by
    /// this is a rate.
    pub integral_s2: f64,
    /// Time between two updates of the rate.
    pub update: Span,
    /// Minimum rate in bytes per second.
    pub least: u64,
}

/// A cleaner that wakes periodically.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdleCleaning {
    /// Time between two wake-ups.
    pub wake: Span,
    /// Minimum time without client commands.
    pub quiet: Span,
    /// Minimum age of a segment since it was written.
    pub stale: Span,
}

/// Number of updates without a client command after which the rate is unlimited.
const IDLE_UPDATES: f64 = 6.0;
/// Unused rate of at most this time may be used later.
const CREDIT: Span = Span::from_ms(2000);
/// A device keeps up if it is late by at most this time.
const LATE: Span = Span::from_ms(1);

/// State of the destaging policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleaner {
    /// When the last client command arrived.
    asked: Time,
    /// Whether the cleaner has woken and still has work.
    awake: bool,
    /// When the last round began.
    begun: Time,
    /// Bytes per second.
    rate: f64,
    /// Byte-seconds above the target.
    integral: f64,
    /// When the rate is updated next.
    update: Time,
    /// When the rate has paid for all rounds begun so far.
    paid: Time,
}

impl Default for Cleaner {
    fn default() -> Cleaner {
        Cleaner {
            asked: Time::ZERO,
            awake: false,
            begun: Time::ZERO,
            rate: 0.0,
            integral: 0.0,
            update: Time::NEVER,
            paid: Time::ZERO,
        }
    }
}

impl Cleaner {
    /// Returns when the rate is updated next.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.update
    }

    /// Records a client command.
    #[inline]
    pub(super) fn record_command(&mut self, now: Time, law: &Cleaning) {
        self.asked = now;
        if let Cleaning::Rate(law) = law
            && self.rate == f64::INFINITY
        {
            self.rate = law.least as f64;
        }
    }

    pub(super) fn wake(&mut self) {
        self.awake = true;
    }

    /// Records the start of a round that destages `bytes` bytes.
    pub(super) fn begins(&mut self, now: Time, bytes: u64) {
        self.begun = now;
        self.paid = later(self.paid, back(now, CREDIT));
        if self.rate > 0.0 {
            self.paid += Span::from_seconds(bytes as f64 / self.rate);
        }
    }

    /// Updates the rate, with `dirty` dirty bytes and a target of `target` bytes.
    fn set(&mut self, now: Time, law: &RateControl, dirty: f64, target: f64) {
        let before = self.rate.max(law.least as f64);
        let seconds = law.update.seconds();
        if now.since(self.asked).seconds() >= IDLE_UPDATES * seconds {
            self.rate = f64::INFINITY;
        } else {
            let above = dirty - target;
            let keeps_up = now < self.paid + LATE;
            if (above < 0.0 && self.integral > 0.0) || (above > 0.0 && keeps_up) {
                self.integral += above * seconds;
            }
            let wanted = above / law.proportional.seconds() + self.integral / law.integral_s2;
            self.rate = wanted.max(law.least as f64);
        }
        if self.paid > now {
            // The outstanding part is paid at the new rate.
            self.paid = now + self.paid.since(now).scale(before / self.rate);
        }
    }
}

fn back(now: Time, span: Span) -> Time {
    Time::from_ns(now.ns().saturating_sub(span.ns()))
}

fn later(one: Time, other: Time) -> Time {
    if one > other { one } else { other }
}

impl WriteBack {
    /// Returns when the next round may begin, as currently known.
    pub(super) fn next_round(&mut self, now: Time) -> Time {
        if self.must_destage() {
            return now;
        }
        if self.failed.is_some() || self.ring.complete() == 0 {
            return Time::NEVER;
        }
        let cleaner = &mut self.cleaner;
        match self.config.destage.cleaning {
            Cleaning::Fill => Time::NEVER,
            Cleaning::Steady(every) => later(now, cleaner.begun + every),
            Cleaning::Rate(law) => {
                if cleaner.update == Time::NEVER {
                    cleaner.update = now + law.update;
                    cleaner.rate = cleaner.rate.max(law.least as f64);
                }
                later(now, cleaner.paid)
            }
            Cleaning::Idle(law) => {
                let written = self.ring.written();
                let quiet = now.since(cleaner.asked) >= law.quiet;
                if cleaner.awake && quiet && now.since(written) >= law.stale {
                    return now;
                }
                cleaner.awake = false;
                let every = law.wake.ns();
                Time::from_ns((now.ns() / every + 1) * every)
            }
        }
    }

    /// Returns the maximum number of segments of the round that begins now.
    pub(super) fn segments_of_round(&mut self) -> u32 {
        let law = &self.config.destage;
        let most = (law.round / self.config.segment).max(1);
        let complete = self.ring.complete();
        if self.must_destage() {
            let stay = libm::floor(self.stays() * self.ring.segments.len() as f64) as u32;
            let over = self.ring.used().saturating_sub(stay).max(1);
            return over.min(most).min(complete);
        }
        let wanted = match self.config.destage.cleaning {
            // Segments per second.
            Cleaning::Rate(_) => self.cleaner.rate / f64::from(self.config.segment),
            _ => 1.0,
        };
        (wanted.min(most.into()) as u32).max(1).min(complete)
    }

    /// Updates the rate, at the time when it is due.
    pub(super) fn set_rate(&mut self, now: Time) {
        let Cleaning::Rate(law) = self.config.destage.cleaning else {
            return;
        };
        // Without data to destage, updates stop.
        let rests = self.ring.complete() == 0;
        self.cleaner.update = match rests {
            true => Time::NEVER,
            false => now + law.update,
        };
        let target = law.target * (self.ring.slots() * u64::from(UNIT)) as f64;
        self.cleaner.set(now, &law, self.dirty as f64, target);
        if self.destaging.due() < Time::NEVER {
            let at = self.next_round(now);
            self.destaging.begin_at(at);
        }
    }
}
