//! The controller's data path between groups of dies and the host: one server that moves one unit at a time.
//!
//! It takes units from one queue for each group and direction in turn (round robin), because each group has its own
//! buffer to fill or drain. Where many commands are outstanding the queues are not equally long: this is why the 99th
//! percentile is about twice the median at high queue depth (S1-020) although every unit takes the same time.
//! All reads come before all writes in a round, so the path turns around at most twice in it.

use std::collections::VecDeque;

use super::group::{Role, Transit};
use crate::time::{Span, Time};

/// The data path.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Reads by group, then writes by group.
    queues: Vec<VecDeque<Transit>>,
    /// Bit by queue: not empty.
    ready: u64,
    /// The queue after the one served last.
    cursor: u32,
    /// When the unit being moved has arrived; never if there is none.
    next: Time,
    /// The unit being moved. Not an option: that would be copied in pieces.
    serving: Transit,
    last_was_write: bool,
    read: Span,
    write: Span,
    turnaround: Span,
    busy: Span,
    groups: u32,
}

impl Path {
    pub(super) fn new(groups: u32, read: Span, write: Span, turnaround: Span) -> Path {
        Path {
            queues: vec![VecDeque::with_capacity(64); 2 * groups as usize],
            ready: 0,
            cursor: 0,
            next: Time::NEVER,
            serving: Transit::NONE,
            last_was_write: false,
            read,
            write,
            turnaround,
            busy: Span::ZERO,
            groups,
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
        if transit.role == Role::Write {
            self.groups + u32::from(transit.group)
        } else {
            u32::from(transit.group)
        }
    }

    #[inline]
    fn serve(&mut self, now: Time, mut transit: Transit) {
        let write = transit.role == Role::Write;
        let mut service = if write { self.write } else { self.read };
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
