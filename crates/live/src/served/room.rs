//! A pool whose stores cannot grow: the host's disk is full, or a quota or a limit of the process is reached.
//!
//! That is no fault of a member, so no tier hears of it: a mirror that did would go on without a leg whose store did not
//! take a write, and its legs would differ. From the first write that does not fit on, no member's store changes: what
//! members write stays in memory, in its order over all of them. So the stores are as a power cut at that moment would
//! have left them, which is what pools recover from, and whatever a client is told afterwards must not count on later
//! writes. Once there is room, what waits is written in its order, and a kill in the middle of that is again a power cut.
//!
//! Left out: a pool that writes more by itself than [`MOST`] meanwhile (it ends), and overwriting in place while the
//! stores are full, which a drive alone can.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;

/// Most bytes that are kept in memory for stores that cannot grow.
pub(super) const MOST: u64 = 256 << 20;

/// What all stores of a pool share: whether they can grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    /// What the host said, while there is no room.
    lacks: Option<(ErrorKind, String)>,
    /// Nothing is to be written any more, with room or without.
    stays: bool,
    /// More was to be kept than [`MOST`].
    overflowed: bool,
    /// Writes that were kept since there is no room.
    writes: u64,
    /// Bytes of them.
    bytes: u64,
}

impl Room {
    /// Whether stores must not be changed.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let state = self.0.borrow();
        state.lacks.is_some() || state.stays
    }

    /// The host has no room for a write.
    pub(super) fn fill(&self, store: &str, error: &io::Error) {
        self.0.borrow_mut().lacks = Some((error.kind(), format!("{store}: {error}")));
    }

    /// From now on nothing is written, whether there is room or not.
    pub(super) fn stay(&self) {
        self.0.borrow_mut().stays = true;
    }

    /// Whether it stays as it is even with room.
    pub(super) fn stays(&self) -> bool {
        self.0.borrow().stays
    }

    /// Everything that waited is written.
    pub(super) fn clear(&self) {
        let mut state = self.0.borrow_mut();
        (state.lacks, state.writes, state.bytes) = (None, 0, 0);
    }

    /// A place in the order of writes for one that is to be kept; none if that would be more than [`MOST`].
    pub(super) fn keep(&self, bytes: u64) -> Option<u64> {
        let mut state = self.0.borrow_mut();
        if state.bytes + bytes > MOST {
            state.overflowed = true;
            return None;
        }
        state.bytes += bytes;
        state.writes += 1;
        Some(state.writes)
    }

    /// Whether writes were refused because too much is kept.
    pub(super) fn overflowed(&self) -> bool {
        self.0.borrow().overflowed
    }

    /// What the host said.
    pub(super) fn error(&self) -> io::Error {
        match &self.0.borrow().lacks {
            Some((kind, what)) => io::Error::new(*kind, what.clone()),
            None => ErrorKind::StorageFull.into(),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Bytes that the stores of this thread's pools may still take, for tests.
    static LEFT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Stores that can take only so many bytes, for tests; none for as many as there are.
#[cfg(test)]
pub(super) fn limit(bytes: Option<u64>) {
    LEFT.set(bytes);
}

/// Takes so many bytes of them.
#[cfg(test)]
pub(super) fn spend(bytes: u64) -> io::Result<()> {
    match LEFT.get().map(|left| left.checked_sub(bytes)) {
        None => Ok(()),
        Some(None) => Err(ErrorKind::StorageFull.into()),
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
    }
}
