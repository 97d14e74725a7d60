//! Consecutive read errors of children: a child that can no longer read leaves its mirror or array.
//!
//! Data that a child cannot read is read from the others, and a mirror writes it back to the child. A child that fails
//! every read would still count as a complete copy. It leaves after more than [`READ_ERRORS`] failed reads with no
//! successful one between them. This is the rule of md's RAID 5 (`raid5_end_read_request` in `drivers/md/raid5.c`), whose
//! limit is `stripe_cache_size`, by default 256 (`Documentation/admin-guide/md.rst`). Assumed: the rule also holds for
//! RAID 6 and mirrors. md's RAID 1 counts the errors of an hour instead.

use alloc::vec;
use alloc::vec::Vec;

use super::Child;

/// Default limit of consecutive read errors.
pub const READ_ERRORS: u16 = 256;

/// Consecutive read errors of each child.
#[derive(Clone, Debug)]
pub(super) struct ReadErrors {
    counts: Vec<u16>,
    /// Where each child failed to read last, in arrays.
    places: Vec<u64>,
    limit: u16,
}

impl ReadErrors {
    pub(super) fn new(children: usize, limit: u16) -> ReadErrors {
        ReadErrors {
            counts: vec![0; children],
            places: vec![u64::MAX; children],
            limit,
        }
    }

    /// A child has read, or responds again.
    #[inline]
    pub(super) fn reset(&mut self, child: Child) {
        self.counts[usize::from(child)] = 0;
    }

    /// A read of a child at this place has failed, and an array does not write the data back: a client that reads one bad
    /// sector again and again counts once. Returns whether the child has failed too many.
    #[cold]
    pub(super) fn add_at(&mut self, child: Child, at: u64) -> bool {
        let last = core::mem::replace(&mut self.places[usize::from(child)], at);
        last != at && self.add(child)
    }

    /// A read of a child has failed. Returns whether the child has failed too many.
    #[cold]
    pub(super) fn add(&mut self, child: Child) -> bool {
        let count = &mut self.counts[usize::from(child)];
        *count = count.saturating_add(1);
        *count > self.limit
    }
}
