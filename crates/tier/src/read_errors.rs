//! Consecutive read errors of children: a child that can no longer read leaves its mirror or array.
//!
//! Data that a child cannot read is read or computed from the others, and written back to the child. An array then reads
//! it again, and only a failure of that read counts. A child that fails every read would still count as a complete
//! copy. It leaves after more than [`READ_ERRORS`] counted errors with no successful read between them. This is the rule
//! of md's RAID 5 (`raid5_end_read_request` in `drivers/md/raid5.c`), whose limit is `stripe_cache_size`, by default 256
//! (`Documentation/admin-guide/md.rst`). Assumed: an array does not count reads before the data is written back. md
//! counts each failed read, and puts a child out, or records a bad block, at the first failure after a rewrite. Also
//! assumed: the rule holds for RAID 6 and mirrors. md's RAID 1 counts the errors of an hour instead.

use alloc::vec;
use alloc::vec::Vec;

use super::Child;

/// Default limit of consecutive read errors.
pub const READ_ERRORS: u16 = 256;

/// Consecutive read errors of each child.
#[derive(Clone, Debug)]
pub(super) struct ReadErrors {
    counts: Vec<u16>,
    limit: u16,
}

impl ReadErrors {
    pub(super) fn new(children: usize, limit: u16) -> ReadErrors {
        ReadErrors {
            counts: vec![0; children],
            limit,
        }
    }

    /// A child has read, or responds again.
    #[inline]
    pub(super) fn reset(&mut self, child: Child) {
        self.counts[usize::from(child)] = 0;
    }

    /// A read of a child has failed. Returns whether the child has failed too many.
    #[cold]
    pub(super) fn add(&mut self, child: Child) -> bool {
        let count = &mut self.counts[usize::from(child)];
        *count = count.saturating_add(1);
        *count > self.limit
    }
}
