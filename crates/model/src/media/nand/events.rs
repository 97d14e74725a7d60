//! Scheduled events of a NAND drive.

use super::array::channel::ChannelId;
use super::array::senses::SenseId;
use crate::engine::Wheel;
use crate::ftl::Die;
use crate::time::Time;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NandEvent {
    /// The work of a die ends, unless it has been interrupted.
    DieDone(Die),
    /// Data of a sense has crossed the channel.
    Transferred(SenseId),
    /// A sense goes to its die; a read-ahead sense without a share of controller time goes to the controller.
    Issue(SenseId),
    /// The first page on a channel has been transferred, unless reads have come in between.
    Channel(ChannelId),
    /// The controller may be free for read-ahead.
    ReadAhead,
    /// The firmware has processed the units that a die has sensed for GC.
    Moved(Die),
    /// The tables are on the medium.
    TablesSaved,
    /// The drive may have been idle for long enough.
    IdleTimer,
}

/// The kind is in the upper bits of a [`Wheel`] payload, the number in the others.
const KIND_SHIFT: u32 = 29;
const NUMBER_MASK: u32 = (1 << KIND_SHIFT) - 1;

impl NandEvent {
    #[inline]
    fn pack(self) -> u32 {
        let (kind, number) = match self {
            NandEvent::DieDone(die) => (0, die.0),
            NandEvent::Transferred(sense) => (1, sense.number()),
            NandEvent::Issue(sense) => (2, sense.number()),
            NandEvent::Channel(channel) => (3, channel.0),
            NandEvent::ReadAhead => (4, 0),
            NandEvent::Moved(die) => (5, die.0),
            NandEvent::TablesSaved => (6, 0),
            NandEvent::IdleTimer => (7, 0),
        };
        debug_assert!(number <= NUMBER_MASK);
        kind << KIND_SHIFT | number
    }

    #[inline]
    fn unpack(payload: u32) -> NandEvent {
        let number = payload & NUMBER_MASK;
        match payload >> KIND_SHIFT {
            0 => NandEvent::DieDone(Die(number)),
            1 => NandEvent::Transferred(SenseId::from_number(number)),
            2 => NandEvent::Issue(SenseId::from_number(number)),
            3 => NandEvent::Channel(ChannelId(number)),
            4 => NandEvent::ReadAhead,
            5 => NandEvent::Moved(Die(number)),
            6 => NandEvent::TablesSaved,
            // Three bits have no other value.
            _ => NandEvent::IdleTimer,
        }
    }
}

/// Events in order of time; events of one time are in order of insertion.
#[derive(Clone, Debug)]
pub(super) struct Events(Wheel);

impl Events {
    pub(super) fn with_capacity(capacity: usize) -> Events {
        Events(Wheel::with_capacity(capacity))
    }

    /// Returns the time at which the first event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.0.next()
    }

    #[inline]
    pub(super) fn push(&mut self, at: Time, event: NandEvent) {
        self.0.push(at, event.pack());
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<NandEvent> {
        self.0.pop_due(now).map(NandEvent::unpack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_comes_out_as_it_went_in() {
        let all = [
            NandEvent::DieDone(Die(3)),
            NandEvent::Transferred(SenseId::from_number(0)),
            NandEvent::Issue(SenseId::from_number(NUMBER_MASK)),
            NandEvent::Channel(ChannelId(17)),
            NandEvent::ReadAhead,
            NandEvent::Moved(Die(255)),
            NandEvent::TablesSaved,
            NandEvent::IdleTimer,
        ];
        let mut events = Events::with_capacity(8);
        for event in all {
            events.push(Time::from_ns(5), event);
        }
        for event in all {
            assert_eq!(events.pop_due(Time::from_ns(5)), Some(event));
        }
        assert_eq!(events.pop_due(Time::from_ns(5)), None);
    }
}
