//! What can fall due inside a NAND drive, and when.

use super::array::channel::ChannelId;
use super::array::senses::SenseId;
use crate::engine::Wheel;
use crate::ftl::Die;
use crate::time::Time;

/// Something that falls due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The work of a die ends, unless it has been interrupted.
    DieDone(Die),
    /// Data of a sense have crossed the channel.
    Transferred(SenseId),
    /// A sense goes to its die or, if it is ahead and has had no share of the controller, to that.
    Issue(SenseId),
    /// The first page on a channel has moved, unless reads have come between.
    Channel(ChannelId),
    /// The controller may be free for what is read ahead.
    ReadAhead,
    /// The firmware has dealt with what the collection of a die has sensed.
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

/// Events in order of time and, at one time, of insertion.
#[derive(Clone, Debug)]
pub(super) struct Events(Wheel);

impl Events {
    pub(super) fn with_capacity(capacity: usize) -> Events {
        Events(Wheel::with_capacity(capacity))
    }

    /// When the first is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.0.next()
    }

    #[inline]
    pub(super) fn push(&mut self, at: Time, event: Event) {
        self.0.push(at, event.pack());
    }

    /// Takes the first if it is due at `now`.
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
