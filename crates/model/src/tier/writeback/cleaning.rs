//! Who destages while the buffer is not too full: nobody, a controller of a rate, or a cleaner that wakes.
//!
//! [`Cleaning::Rate`] is bcache's: the rate of destaging follows how far dirty data are from a target, by a proportional
//! and an integral term, each a few seconds, and has no limit once no client has come for six of these updates.
//! [`Cleaning::Idle`] is Open CAS's ALRU: what is old is cleaned where nobody has come for a while.
//! [`Cleaning::Steady`] is its ACP: a round each so often. Above [`Destage::from`](super::Destage) all of them give way to
//! rounds without pause, because a ring that is full of what was overwritten has to be freed, too.
//!
//! Sources: bcache's `writeback.c` and `Documentation/admin-guide/bcache.rst` of Linux 6.12; Open CAS Linux's admin guide
//! and OCF's `inc/cleaning`. Left out: the order of addresses (here the oldest segments go first), chunks of ACP, hits of
//! reads that make a line young, bcache's answer to fragments. What is in the segment that is being written stays there.

use super::{WriteBack, ring::UNIT};
use crate::time::{Span, Time};

/// Who destages below [`Destage::from`](super::Destage).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cleaning {
    /// Nobody.
    #[default]
    Fill,
    /// A rate that is controlled.
    Rate(Rate),
    /// A cleaner that wakes and cleans what is old if no client has come for a while.
    Idle(Idle),
    /// A round, and the next begins so much later.
    Steady(Span),
}

impl Cleaning {
    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self {
            Cleaning::Fill => None,
            Cleaning::Steady(every) => {
                (*every == Span::ZERO).then_some("rounds without a time between them never end")
            }
            Cleaning::Idle(law) => {
                (law.wake == Span::ZERO).then_some("a cleaner that wakes all the time never sleeps")
            }
            Cleaning::Rate(law) => {
                let right = (0.0..=1.0).contains(&law.target)
                    && law.proportional > Span::ZERO
                    && law.integral_s2 > 0.0
                    && law.update > Span::ZERO
                    && law.least > 0;
                (!right).then_some(
                    "a rate of destaging has a target, terms, an update and a least above nothing",
                )
            }
        }
    }
}

/// A controlled rate of destaging.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate {
    /// The share of the buffer that should be dirty, 0 to 1.
    pub target: f64,
    /// What is above the target goes within this time: bcache's inverse of the proportional term.
    pub proportional: Span,
    /// Of the sum of what was above it, in byte-seconds, each second this part goes: its inverse, in seconds squared.
    pub integral_s2: f64,
    /// Between two updates of the rate.
    pub update: Span,
    /// Fewest bytes a second.
    pub least: u64,
}

/// A cleaner that wakes.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Idle {
    /// Between two times that it wakes.
    pub wake: Span,
    /// No client must have come for so long.
    pub quiet: Span,
    /// So long ago a segment must have been written.
    pub stale: Span,
}

/// Updates without a client after which there is no limit.
const IDLE_UPDATES: f64 = 6.0;
/// What was not used of the rate may be made up for, from so long ago.
const CREDIT: Span = Span::from_ms(2000);
/// A device keeps up that is late by no more than this.
const LATE: Span = Span::from_ms(1);

/// The state of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleaner {
    /// When a client came last.
    asked: Time,
    /// The cleaner has woken and not yet found that there is nothing to do.
    awake: bool,
    /// When the last round began.
    begun: Time,
    /// Bytes a second.
    rate: f64,
    /// Byte-seconds above the target.
    integral: f64,
    /// When the rate is set again.
    update: Time,
    /// What has begun is paid for from then on.
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
    /// When the rate is set again.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.update
    }

    /// A client comes.
    #[inline]
    pub(super) fn asked(&mut self, now: Time, law: &Cleaning) {
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

    /// A round begins that moves so many bytes.
    pub(super) fn begins(&mut self, now: Time, bytes: u64) {
        self.begun = now;
        self.paid = later(self.paid, back(now, CREDIT));
        if self.rate > 0.0 {
            self.paid += Span::from_seconds(bytes as f64 / self.rate);
        }
    }

    /// The rate is set anew, with so many bytes dirty and so many wanted.
    fn set(&mut self, now: Time, law: &Rate, dirty: f64, target: f64) {
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
            // What is still owed is paid at the new rate.
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
    /// When the next round may begin, as far as is known now.
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

    /// Most segments of the round that begins now.
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
            // What a second takes.
            Cleaning::Rate(_) => self.cleaner.rate / f64::from(self.config.segment),
            _ => 1.0,
        };
        (wanted.min(most.into()) as u32).max(1).min(complete)
    }

    /// The rate is due.
    pub(super) fn set_rate(&mut self, now: Time) {
        let Cleaning::Rate(law) = self.config.destage.cleaning else {
            return;
        };
        // With nothing to move it rests.
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
