//! Timed events of one type, stored by [`EventQueue`] in 32 bits each.

use core::marker::PhantomData;

use super::EventQueue;
use crate::time::Time;

/// A value that packs into 32 bits and unpacks unchanged.
pub trait EventPayload: Sized {
    /// Packs the value into a number.
    fn pack(self) -> u32;
    /// Returns the value that was packed into this number.
    fn unpack(packed: u32) -> Self;
}

/// Events in order of time; events of one time are in order of insertion.
#[derive(Clone, Debug)]
pub struct TypedEventQueue<E> {
    events: EventQueue,
    of: PhantomData<E>,
}

impl<E> Default for TypedEventQueue<E> {
    fn default() -> TypedEventQueue<E> {
        TypedEventQueue {
            events: EventQueue::default(),
            of: PhantomData,
        }
    }
}

impl<E: EventPayload> TypedEventQueue<E> {
    /// Returns the time at which the first event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.events.next()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        self.events.push(at, event.pack());
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<E> {
        self.events.pop_due(now).map(E::unpack)
    }
}
