//! The controller's data path between groups of dies and the host: one server that moves one unit at a time.
//!
//! Units wait in a queue for each direction and each bank of each group, as a bank has a buffer for what it has read or
//! is to write. The path takes from one queue after the other (round robin). Where many commands are outstanding the queues are not equally long: this is why the 99th percentile is
//! about twice the median at high queue depth, and the 99.999th about twice that (S1-020, S1-021), although a unit
//! takes hardly more or less time than another. All reads come before all writes in a round, so the path turns around
//! at most twice in it.
//!
//! Reads differ a little in length, as their error correction does: the drive does not saturate all at once (S1-013).

use std::collections::VecDeque;

use super::config::{UNIT, XPointConfig};
use super::group::{Role, Transit};
use crate::random::Stream;
use crate::time::{Span, Time};

/// The data path.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Reads by group and bank, then writes by group and bank.
    queues: Vec<VecDeque<Transit>>,
    /// Bit by queue: not empty.
    ready: u128,
    /// The queue after the one served last.
    cursor: u32,
    /// When the unit being moved has arrived; never if there is none.
    next: Time,
    /// The unit being moved. Not an option: that would be copied in pieces.
    serving: Transit,
    last_was_write: bool,
    /// The shortest read, and how much longer the longest is.
    read: Span,
    read_spread: Span,
    write: Span,
    turnaround: Span,
    busy: Span,
    banks: u32,
    all_banks: u32,
    stream: Stream,
}

impl Path {
    pub(super) fn new(config: &XPointConfig, seed: u64) -> Path {
        let unit = |ps| Span::per_bytes(ps, u64::from(UNIT));
        let timing = &config.timing;
        let all_banks = config.groups() * config.banks;
        Path {
            queues: vec![VecDeque::with_capacity(32); 2 * all_banks as usize],
            ready: 0,
            cursor: 0,
            next: Time::NEVER,
            serving: Transit::NONE,
            last_was_write: false,
            read: unit(timing.read_path_ps_per_byte).saturating_sub(timing.read_spread),
            read_spread: timing.read_spread * 2,
            write: unit(timing.write_path_ps_per_byte),
            turnaround: timing.turnaround,
            busy: Span::ZERO,
            banks: config.banks,
            all_banks,
            stream: Stream::new(seed, "read path"),
        }
    }

    /// When the unit being moved has arrived.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A unit wants to be moved.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, transit: Transit) {
        if self.next == Time::NEVER {
            self.cursor = self.queue_of(&transit) + 1;
            self.serve(now, transit);
            return;
        }
        let queue = self.queue_of(&transit);
        self.queues[queue as usize].push_back(transit);
        self.ready |= 1 << queue;
    }

    #[inline]
    fn queue_of(&self, transit: &Transit) -> u32 {
        let bank = u32::from(transit.group) * self.banks + u32::from(transit.bank);
        if transit.role == Role::Write {
            self.all_banks + bank
        } else {
            bank
        }
    }

    #[inline]
    fn serve(&mut self, now: Time, mut transit: Transit) {
        let write = transit.role == Role::Write;
        let mut service = if write {
            self.write
        } else if self.read_spread == Span::ZERO {
            self.read
        } else {
            self.read + Span::from_ns(self.stream.below(self.read_spread.ns() + 1))
        };
        if write != self.last_was_write {
            service += self.turnaround;
            self.last_was_write = write;
        }
        self.busy += service;
        transit.at = now + service;
        self.next = transit.at;
        self.serving = transit;
    }

    /// Takes the unit that has arrived at `now`, which must be [`Path::next`], and begins with another.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Transit {
        let done = self.serving;
        self.next = Time::NEVER;
        if self.ready != 0 {
            let ahead = self.ready.checked_shr(self.cursor).unwrap_or(0);
            let queue = if ahead != 0 {
                self.cursor + ahead.trailing_zeros()
            } else {
                self.ready.trailing_zeros()
            };
            let waiting = &mut self.queues[queue as usize];
            let next = waiting[0];
            waiting.pop_front();
            if waiting.is_empty() {
                self.ready &= !(1 << queue);
            }
            self.cursor = queue + 1;
            self.serve(now, next);
        }
        done
    }

    /// Time spent moving units up to `now`.
    pub(super) fn busy(&self, now: Time) -> Span {
        if self.next == Time::NEVER {
            return self.busy;
        }
        self.busy.saturating_sub(self.next.since(now))
    }
}
