//! What falls due in a cluster: cores or ports have done with a command or with a piece of one.

use crate::engine;
use crate::time::Time;

/// Something that falls due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The client's node has worked for this request.
    Request(u32),
    /// This piece goes on.
    Piece(u32),
}

/// Set in the payload of a request's.
const REQUEST: u32 = 1 << 31;

/// Events in order of time and, at one time, of coming.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(engine::Events);

impl Events {
    /// When the first is due; [`Time::NEVER`] if there is none.
    pub(super) fn next(&self) -> Time {
        self.0.next()
    }

    pub(super) fn push(&mut self, at: Time, event: Event) {
        let (kind, number) = match event {
            Event::Request(request) => (REQUEST, request),
            Event::Piece(piece) => (0, piece),
        };
        debug_assert!(number < REQUEST);
        self.0.push(at, kind | number);
    }

    /// Takes the first if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<Event> {
        let packed = self.0.pop_due(now)?;
        Some(match packed & REQUEST {
            0 => Event::Piece(packed),
            _ => Event::Request(packed & !REQUEST),
        })
    }
}
