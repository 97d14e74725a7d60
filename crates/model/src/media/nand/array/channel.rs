//! A channel between the controller and its dies.
//!
//! Data of reads has priority, in the order in which it was sensed. Whole pages, on their way to be programmed or
//! sensed by garbage collection (GC), are transferred in pieces of a map unit, one page after another; a read waits
//! only for the piece in progress. If reads never leave a gap, a page still gets a piece after a few of them.
//!
//! The end of a read is known when it joins, because no later transfer comes before it. The end of a page is not: the
//! event at the end of the first page is rescheduled as long as reads have come in between.
//!
//! Not modelled: status polling, and that dies on one chip enable share more than the channel. Source: ONFI's change
//! row address and change write column, which continue a page after another die's cycles.

use alloc::collections::VecDeque;

use crate::ftl::{Die, UNIT};
use crate::time::{Span, Time};

/// Consecutive read transfers after which a waiting page gets a piece, so that writes do not starve.
const READS_IN_A_ROW: u32 = 4;

/// Transfer times of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelTiming {
    /// Command and address cycles of each transfer, and of continuing a page after a read.
    pub(crate) command: Span,
    /// Picoseconds per byte.
    pub(crate) ps_per_byte: u64,
}

impl ChannelTiming {
    /// Returns the time of a separate transfer of `units` units.
    #[inline]
    fn units(self, units: u32) -> Span {
        self.command + Span::per_bytes(self.ps_per_byte, u64::from(units) * u64::from(UNIT))
    }
}

/// Direction of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferDirection {
    /// Into the registers of a die, to be programmed.
    In,
    /// Out of the registers, for GC.
    Out,
}

/// Data of a page that reads may interrupt.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    die: Die,
    way: TransferDirection,
    rest: Span,
    /// When the last piece has been transferred, once that is known.
    ends: Time,
}

/// Result of a channel's event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChannelResult {
    /// Reads came in between: check again at this time.
    Later(Time),
    /// The first page has been transferred; check again at this time for the next one, if there is one.
    Moved(Die, TransferDirection, Option<Time>),
}

/// The number of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChannelId(pub(crate) u32);

/// State of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    rate: ChannelTiming,
    /// When the last read that has joined leaves.
    reads_until: Time,
    /// Time up to which the first page's progress is included in its `rest`.
    accounted: Time,
    bulks: VecDeque<Bulk>,
    /// Number of reads since the last piece of a page.
    in_a_row: u32,
}

impl Channel {
    /// Creates a channel with this rate, with space for pages of `dies` dies.
    pub(crate) fn new(rate: ChannelTiming, dies: u32) -> Channel {
        Channel {
            rate,
            reads_until: Time::ZERO,
            accounted: Time::ZERO,
            // A die has at most one page on its way in and, with cache read, two on their way out.
            bulks: VecDeque::with_capacity(4 * dies as usize),
            in_a_row: 0,
        }
    }

    /// Data of a read joins at `now`; returns when it has been transferred.
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

    /// Returns when a read that could start at `start` does start, given the page that is being transferred or waiting.
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
            // The rest of the piece in progress.
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

    /// A page joins at `now`; returns when to check again, if no other page is before it.
    pub(crate) fn page(
        &mut self,
        now: Time,
        die: Die,
        way: TransferDirection,
        units: u32,
    ) -> Option<Time> {
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

    /// Processes the event of the channel at its time.
    pub(crate) fn due(&mut self, now: Time) -> ChannelResult {
        self.account(now);
        let Some(first) = self.bulks.front() else {
            debug_assert!(false, "a channel's event without a page");
            return ChannelResult::Later(Time::NEVER);
        };
        if first.rest > Span::ZERO {
            return ChannelResult::Later(now.max(self.reads_until) + first.rest);
        }
        if first.ends > now {
            return ChannelResult::Later(first.ends);
        }
        let (die, way) = (first.die, first.way);
        self.bulks.pop_front();
        let next = (!self.bulks.is_empty()).then(|| self.begin_next(now));
        ChannelResult::Moved(die, way, next)
    }

    /// Subtracts the progress of the first page up to `now` from its rest.
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

    /// 4.096 us per unit, 100 ns for commands.
    fn channel() -> Channel {
        let rate = ChannelTiming {
            command: Span::from_ns(100),
            ps_per_byte: 1000,
        };
        Channel::new(rate, 4)
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Returns when the page that is due at `due` has been transferred, if nothing else arrives.
    fn moved(channel: &mut Channel, mut due: Time) -> Time {
        loop {
            match channel.due(due) {
                ChannelResult::Later(at) => {
                    assert!(at > due);
                    due = at;
                }
                ChannelResult::Moved(..) => return due,
            }
        }
    }

    #[test]
    fn a_read_waits_for_a_piece_and_a_page_for_the_read() {
        let unit = Span::per_bytes(1000, 4096).ns();
        let mut channel = channel();
        let due = channel
            .page(at(0), Die(0), TransferDirection::In, 8)
            .expect("alone");
        let alone = 100 + Span::per_bytes(1000, 8 * 4096).ns();
        assert_eq!(due, at(alone));
        // In the middle of a piece: the rest of it is transferred first.
        let read = channel.read(at(10_000), 1);
        assert!(read > at(10_000 + 100 + unit));
        assert!(read <= at(10_000 + 100 + 2 * unit));
        // It takes longer by the time of the read, and by the cycles for continuing.
        assert_eq!(moved(&mut channel, due), at(alone + unit + 200));
        assert_eq!(
            channel.page(at(100_000), Die(1), TransferDirection::In, 1),
            Some(at(100_100 + unit))
        );
    }

    #[test]
    fn pages_move_in_order_and_reads_never_shut_them_out() {
        let unit = Span::per_bytes(1000, 4096).ns();
        let mut channel = channel();
        let mut due = channel
            .page(at(0), Die(0), TransferDirection::In, 8)
            .expect("alone");
        assert_eq!(channel.page(at(0), Die(1), TransferDirection::Out, 8), None);
        let mut order = Vec::new();
        // Twice as many reads as the channel could transfer alone.
        let mut now = 0;
        while order.len() < 2 {
            channel.read(at(now), 1);
            now += unit / 2;
            while due <= at(now) && order.len() < 2 {
                match channel.due(due) {
                    ChannelResult::Later(at) => due = at,
                    ChannelResult::Moved(die, way, next) => {
                        order.push((die, way));
                        due = next.unwrap_or(Time::NEVER);
                    }
                }
            }
            assert!(now < 1000 * unit, "shut out");
        }
        assert_eq!(
            order,
            [
                (Die(0), TransferDirection::In),
                (Die(1), TransferDirection::Out)
            ]
        );
    }
}
