//! Which pieces of a table may have changed since it was as it was saved, so that only those are put back.

use alloc::vec;
use alloc::vec::Vec;

/// One bit for each piece. One of no pieces takes note of nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed(Vec<u64>);

impl Changed {
    /// Nothing has changed in so many pieces.
    pub(super) fn none_of(pieces: usize) -> Changed {
        Changed(vec![0; pieces.div_ceil(64)])
    }

    /// Something in a piece may have changed. Pieces beyond those that there are mean nothing.
    #[inline]
    pub(super) fn mark(&mut self, piece: usize) {
        if let Some(word) = self.0.get_mut(piece / 64) {
            *word |= 1 << (piece % 64);
        }
    }

    /// Calls `put_back` for each piece that may have changed, in order, and forgets that it has.
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
