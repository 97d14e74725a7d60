//! Scheduled events of a NAND drive.

use super::array::channel::ChannelId;
use super::array::senses::SenseId;
use crate::engine::Wheel;
use crate::ftl::Die;
use crate::time::Time;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
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

impl Event {
    #[inline]
    fn pack(self) -> u32 {
        let (kind, number) = match self {
            Event::DieDone(die) => (0, die.0),
            Event::Transferred(sense) => (1, sense.number()),
            Event::Issue(sense) => (2, sense.number()),
            Event::Channel(channel) => (3, channel.0),
            Event::ReadAhead => (4, 0),
            Event::Moved(die) => (5, die.0),
            Event::TablesSaved => (6, 0),
            Event::IdleTimer => (7, 0),
        };
        debug_assert!(number <= NUMBER_MASK);
        kind << KIND_SHIFT | number
    }

    #[inline]
    fn unpack(payload: u32) -> Event {
        let number = payload & NUMBER_MASK;
        match payload >> KIND_SHIFT {
            0 => Event::DieDone(Die(number)),
            1 => Event::Transferred(SenseId::of(number)),
            2 => Event::Issue(SenseId::of(number)),
            3 => Event::Channel(ChannelId(number)),
            4 => Event::ReadAhead,
            5 => Event::Moved(Die(number)),
            6 => Event::TablesSaved,
            // Three bits have no other value.
            _ => Event::IdleTimer,
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
    pub(super) fn push(&mut self, at: Time, event: Event) {
        self.0.push(at, event.pack());
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<Event> {
        self.0.pop_due(now).map(Event::unpack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_comes_out_as_it_went_in() {
        let all = [
            Event::DieDone(Die(3)),
            Event::Transferred(SenseId::of(0)),
            Event::Issue(SenseId::of(NUMBER_MASK)),
            Event::Channel(ChannelId(17)),
            Event::ReadAhead,
            Event::Moved(Die(255)),
            Event::TablesSaved,
            Event::IdleTimer,
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
