//! A channel between the controller and its dies.
//!
//! Data of reads go first, in the order in which they were sensed. Whole pages on their way to be programmed, and those
//! that collection has sensed, move in pieces of a map unit, one page after the other; a read waits for the piece under
//! way and no longer. Where reads never leave a gap, a page still gets a piece after each few of them.
//!
//! A read's time is known when it joins, as nothing that comes later goes before it. A page's is not: the event at the
//! end of the first one is set again as long as reads have come between.
//!
//! Leaves out: status polling, and that dies behind one chip enable share more than the channel.
//! Source: ONFI's change row address and change write column, which go on with a page after another die's cycles.

use alloc::collections::VecDeque;

use crate::ftl::{Die, UNIT};
use crate::time::{Span, Time};

/// Transfers of reads in a row after which a page that waits gets a piece, so that writes do not starve.
const READS_IN_A_ROW: u32 = 4;

/// How long transfers take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Command and address cycles of each, and of going on after a read.
    pub(crate) command: Span,
    /// Picoseconds a byte takes.
    pub(crate) ps_per_byte: u64,
}

impl Rate {
    /// A transfer of so many units by itself.
    #[inline]
    fn units(self, units: u32) -> Span {
        self.command + Span::per_bytes(self.ps_per_byte, u64::from(units) * u64::from(UNIT))
    }
}

/// Which way a page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Into the registers of a die, to be programmed.
    In,
    /// Out of them, for collection.
    Out,
}

/// Data of a page that reads may interrupt.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    die: Die,
    way: Way,
    rest: Span,
    /// When the last piece has moved, once that is known.
    ends: Time,
}

/// What the event of a channel has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// Reads came between: look again then.
    Later(Time),
    /// The first page has moved; look again for the next one, if there is one.
    Moved(Die, Way, Option<Time>),
}

/// The number of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChannelId(pub(crate) u32);

/// A channel.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    rate: Rate,
    /// When the last read that has joined leaves.
    reads_until: Time,
    /// Up to when the first page's progress is in its `rest`.
    accounted: Time,
    bulks: VecDeque<Bulk>,
    /// Reads since the last piece of a page.
    in_a_row: u32,
}

impl Channel {
    /// A channel at this rate, with room for pages of so many dies.
    pub(crate) fn new(rate: Rate, dies: u32) -> Channel {
        Channel {
            rate,
            reads_until: Time::ZERO,
            accounted: Time::ZERO,
            // A die has at most a page on its way in and, reading on, two on their way out.
            bulks: VecDeque::with_capacity(4 * dies as usize),
            in_a_row: 0,
        }
    }

    /// Data of a read join at `now`; returns when they have moved.
    #[inline]
    pub(crate) fn read(&mut self, now: Time, units: u32) -> Time {
        let mut start = now.max(self.reads_until);
        if !self.bulks.is_empty() {
            self.account(now);
            start = self.between_pieces(now, start);
        }
        self.reads_until = start + self.rate.units(units);
        self.reads_until
    }

    /// When a read that could go at `start` goes, given the page that moves or waits.
    fn between_pieces(&mut self, now: Time, start: Time) -> Time {
        let piece = Span::per_bytes(self.rate.ps_per_byte, u64::from(UNIT));
        let Some(first) = self.bulks.front_mut() else {
            return start;
        };
        let moving = self.reads_until <= now;
        self.in_a_row = if moving { 1 } else { self.in_a_row + 1 };
        let turn = self.in_a_row > READS_IN_A_ROW;
        if first.rest == Span::ZERO || !(moving || turn) {
            return start;
        }
        let goes_first = if turn {
            self.in_a_row = 1;
            piece.min(first.rest)
        } else {
            // What is left of the piece under way.
            Span::from_ns(first.rest.ns() % piece.ns().max(1))
        };
        first.rest = first.rest - goes_first;
        let start = start + goes_first;
        if first.rest == Span::ZERO {
            first.ends = start;
        } else {
            first.rest += self.rate.command;
        }
        self.accounted = start;
        start
    }

    /// A page joins at `now`; returns when to look again, if no other is before it.
    pub(crate) fn page(&mut self, now: Time, die: Die, way: Way, units: u32) -> Option<Time> {
        self.bulks.push_back(Bulk {
            die,
            way,
            rest: self.rate.units(units),
            ends: now,
        });
        (self.bulks.len() == 1).then(|| self.begin_next(now))
    }

    fn begin_next(&mut self, now: Time) -> Time {
        self.accounted = now;
        let rest = self.bulks.front().map_or(Span::ZERO, |first| first.rest);
        now.max(self.reads_until) + rest
    }

    /// The time that was to be looked at has come.
    pub(crate) fn due(&mut self, now: Time) -> Due {
        self.account(now);
        let Some(first) = self.bulks.front() else {
            debug_assert!(false, "a channel's event without a page");
            return Due::Later(Time::NEVER);
        };
        if first.rest > Span::ZERO {
            return Due::Later(now.max(self.reads_until) + first.rest);
        }
        if first.ends > now {
            return Due::Later(first.ends);
        }
        let (die, way) = (first.die, first.way);
        self.bulks.pop_front();
        let next = (!self.bulks.is_empty()).then(|| self.begin_next(now));
        Due::Moved(die, way, next)
    }

    /// Takes what the first page has moved up to `now` off its rest.
    fn account(&mut self, now: Time) {
        let from = self.accounted.max(self.reads_until);
        if let Some(first) = self.bulks.front_mut()
            && now > from
        {
            let moved = first.rest.min(now.since(from));
            if moved > Span::ZERO {
                first.rest = first.rest - moved;
                first.ends = from + moved;
            }
            self.accounted = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// 4.096 us a unit, 100 ns for commands.
    fn channel() -> Channel {
        let rate = Rate {
            command: Span::from_ns(100),
            ps_per_byte: 1000,
        };
        Channel::new(rate, 4)
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// When the page that is due then has moved, without anything else coming.
    fn moved(channel: &mut Channel, mut due: Time) -> Time {
        loop {
            match channel.due(due) {
                Due::Later(at) => {
                    assert!(at > due);
                    due = at;
                }
                Due::Moved(..) => return due,
            }
        }
    }

    #[test]
    fn a_read_waits_for_a_piece_and_a_page_for_the_read() {
        let unit = Span::per_bytes(1000, 4096).ns();
        let mut channel = channel();
        let due = channel.page(at(0), Die(0), Way::In, 8).expect("alone");
        let alone = 100 + Span::per_bytes(1000, 8 * 4096).ns();
        assert_eq!(due, at(alone));
        // In the middle of a piece: the rest of it goes first.
        let read = channel.read(at(10_000), 1);
        assert!(read > at(10_000 + 100 + unit));
        assert!(read <= at(10_000 + 100 + 2 * unit));
        // It takes as much longer as the read took, and the cycles of going on.
        assert_eq!(moved(&mut channel, due), at(alone + unit + 200));
        assert_eq!(
            channel.page(at(100_000), Die(1), Way::In, 1),
            Some(at(100_100 + unit))
        );
    }

    #[test]
    fn pages_move_in_order_and_reads_never_shut_them_out() {
        let unit = Span::per_bytes(1000, 4096).ns();
        let mut channel = channel();
        let mut due = channel.page(at(0), Die(0), Way::In, 8).expect("alone");
        assert_eq!(channel.page(at(0), Die(1), Way::Out, 8), None);
        let mut order = Vec::new();
        // Twice as many reads as the channel could carry by itself.
        let mut now = 0;
        while order.len() < 2 {
            channel.read(at(now), 1);
            now += unit / 2;
            while due <= at(now) && order.len() < 2 {
                match channel.due(due) {
                    Due::Later(at) => due = at,
                    Due::Moved(die, way, next) => {
                        order.push((die, way));
                        due = next.unwrap_or(Time::NEVER);
                    }
                }
            }
            assert!(now < 1000 * unit, "shut out");
        }
        assert_eq!(order, [(Die(0), Way::In), (Die(1), Way::Out)]);
    }
}
