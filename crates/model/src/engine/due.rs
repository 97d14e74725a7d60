//! Timed events of one type, which [`Events`] keeps in 32 bits each.

use core::marker::PhantomData;

use super::Events;
use crate::time::Time;

/// What fits into 32 bits, and comes out as it went in.
pub trait Packed: Sized {
    /// As a number.
    fn pack(self) -> u32;
    /// What was packed into this number.
    fn unpack(packed: u32) -> Self;
}

/// Events in order of time and, at one time, of insertion.
#[derive(Clone, Debug)]
pub struct Due<E> {
    events: Events,
    of: PhantomData<E>,
}

impl<E> Default for Due<E> {
    fn default() -> Due<E> {
        Due {
            events: Events::default(),
            of: PhantomData,
        }
    }
}

impl<E: Packed> Due<E> {
    /// When the first is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.events.next()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        self.events.push(at, event.pack());
    }

    /// Takes the first if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<E> {
        self.events.pop_due(now).map(E::unpack)
    }
}
