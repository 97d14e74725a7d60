//! Which units are in use: a command that writes a unit excludes all others on it.
//!
//! A filter of counters by the low bits of the unit's number says "certainly free" for almost all commands; only where
//! it cannot are the pieces in flight compared one by one.

use alloc::boxed::Box;
use alloc::vec;

use super::piece::Piece;

const BUCKETS: usize = 1024;

/// Counts of pieces in flight by bucket of units.
#[derive(Clone, Debug)]
pub(super) struct Locks {
    readers: Box<[u32]>,
    writers: Box<[u32]>,
    writing: u32,
}

impl Locks {
    pub(super) fn new() -> Locks {
        Locks {
            readers: vec![0; BUCKETS].into(),
            writers: vec![0; BUCKETS].into(),
            writing: 0,
        }
    }

    /// Whether `piece` may share a unit with one that was added earlier. False means that it surely does not.
    #[inline]
    pub(super) fn may_conflict(&self, piece: &Piece) -> bool {
        if !piece.writes() && self.writing == 0 {
            return false;
        }
        buckets(piece)
            .any(|bucket| self.writers[bucket] > 0 || (piece.writes() && self.readers[bucket] > 0))
    }

    /// `piece` is in flight (or waits for its units) from now on.
    #[inline]
    pub(super) fn add(&mut self, piece: &Piece) {
        let counts = if piece.writes() {
            self.writing += 1;
            &mut self.writers
        } else {
            &mut self.readers
        };
        for bucket in buckets(piece) {
            counts[bucket] += 1;
        }
    }

    /// `piece` has completed.
    #[inline]
    pub(super) fn remove(&mut self, piece: &Piece) {
        let counts = if piece.writes() {
            self.writing -= 1;
            &mut self.writers
        } else {
            &mut self.readers
        };
        for bucket in buckets(piece) {
            counts[bucket] -= 1;
        }
    }
}

#[inline]
fn buckets(piece: &Piece) -> impl Iterator<Item = usize> {
    let first = piece.first_unit as usize;
    (first..first + piece.units as usize).map(|unit| unit % BUCKETS)
}
