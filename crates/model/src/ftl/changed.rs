//! Tracks which pieces of a table may have changed since it was saved, so that only those are restored.

use alloc::vec;
use alloc::vec::Vec;

/// One bit per piece. A tracker of no pieces records nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeTracker(Vec<u64>);

impl ChangeTracker {
    /// Creates a tracker of `pieces` pieces without changes.
    pub(super) fn none_of(pieces: usize) -> ChangeTracker {
        ChangeTracker(vec![0; pieces.div_ceil(64)])
    }

    /// Marks a piece as possibly changed. Pieces beyond the range are ignored.
    #[inline]
    pub(super) fn mark(&mut self, piece: usize) {
        if let Some(word) = self.0.get_mut(piece / 64) {
            *word |= 1 << (piece % 64);
        }
    }

    /// Calls `put_back` for each piece that may have changed, in order, and clears the marks.
    pub(super) fn drain(&mut self, mut put_back: impl FnMut(usize)) {
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut left = core::mem::take(word);
            while left != 0 {
                put_back(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}
