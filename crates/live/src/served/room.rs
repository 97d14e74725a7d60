//! A pool whose stores cannot grow: the host's disk is full, or a quota or a limit of the process is reached.
//!
//! This is not a fault of a member, so no tier is informed of it. An informed mirror would continue without a member
//! whose store rejected a write, and its members would differ. After the first write that does not fit, no member's
//! store changes: the members' writes stay in memory, in their order over all members. So the stores are as a power
//! cut at that moment would have left them, which pools can recover from, and no later acknowledgement may depend on
//! later writes. `pool.state` takes part in this: while it cannot be written, for whatever reason, the stores do not change,
//! and its contents have places in the same order. When there is space, the waiting writes are written in their order, and a kill during that is again
//! equivalent to a power cut.
//!
//! Not supported: a pool that writes more than [`MOST`] by itself meanwhile (its service ends), and overwriting in
//! place while the stores are full, which only a single drive can do.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;

/// Maximum bytes that are kept in memory for stores that cannot grow.
pub(super) const MOST: u64 = 256 << 20;

/// State that all stores of a pool share: whether they can grow.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolSpace(Rc<RefCell<SpaceState>>);

#[derive(Debug, Default)]
struct SpaceState {
    /// The host's error, while there is no space.
    lacks: Option<(ErrorKind, String)>,
    /// Name of the store with the newest error.
    store: String,
    /// Whether nothing may be written any more, even with space.
    stays: bool,
    /// Whether more than [`MOST`] would have been kept.
    overflowed: bool,
    /// Number of writes that have been kept since space ran out.
    writes: u64,
    /// Bytes of the kept writes.
    bytes: u64,
}

impl PoolSpace {
    /// Checks whether stores must not be changed.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let state = self.0.borrow();
        state.lacks.is_some() || state.stays
    }

    /// Records that the host has no space for a write.
    pub(super) fn fill(&self, store: &str, error: &io::Error) {
        let mut state = self.0.borrow_mut();
        state.lacks = Some((error.kind(), format!("{store}: {error}")));
        state.store = store.into();
    }

    /// Returns the name of the store with the host's newest error.
    pub(super) fn store(&self) -> String {
        self.0.borrow().store.clone()
    }

    /// Stops all writing, even if there is space.
    pub(super) fn stay(&self) {
        self.0.borrow_mut().stays = true;
    }

    /// Checks whether writing has been stopped permanently.
    pub(super) fn stays(&self) -> bool {
        self.0.borrow().stays
    }

    /// Records that all waiting writes have been written.
    pub(super) fn clear(&self) {
        let mut state = self.0.borrow_mut();
        (state.lacks, state.writes, state.bytes) = (None, 0, 0);
    }

    /// Returns the position of a write that must be kept in the order of writes; `None` if it would exceed [`MOST`].
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

    /// Checks whether writes were rejected because too much is kept.
    pub(super) fn overflowed(&self) -> bool {
        self.0.borrow().overflowed
    }

    /// Returns the host's error.
    pub(super) fn error(&self) -> io::Error {
        match &self.0.borrow().lacks {
            Some((kind, what)) => io::Error::new(*kind, what.clone()),
            None => ErrorKind::StorageFull.into(),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Bytes that the stores of this thread's pools may still write, for tests.
    static LEFT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Limits the bytes that stores can still write, for tests; `None` removes the limit.
#[cfg(test)]
pub(super) fn limit(bytes: Option<u64>) {
    LEFT.set(bytes);
}

/// Uses this number of bytes of the limit.
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
