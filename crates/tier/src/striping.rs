//! Address computation for stripes: addresses distributed over several drives in turn, one chunk each.

use alloc::vec::Vec;

use model::device::Range;

/// Number of drives, and bytes on one drive before the next one follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Striping {
    pub(super) count: u64,
    /// Bytes per chunk: a multiple of 512, not zero.
    pub(super) chunk: u64,
}

impl Striping {
    /// Returns the addressable bytes over drives of these sizes: whole chunks of the smallest, on all drives.
    pub(super) fn capacity(sizes: impl ExactSizeIterator<Item = u64>, chunk: u64) -> u64 {
        let count = sizes.len() as u64;
        let smallest = sizes.min().unwrap_or(0);
        smallest / chunk * chunk * count
    }

    /// Returns the drive of the byte at `offset`, and the offset there.
    pub(super) fn place(&self, offset: u64) -> (usize, u64) {
        let (chunk, within) = (offset / self.chunk, offset % self.chunk);
        let index = (chunk % self.count) as usize;
        (index, chunk / self.count * self.chunk + within)
    }

    /// Returns the end of the chunk that contains the byte at `offset`.
    pub(super) fn border(&self, offset: u64) -> u64 {
        (offset / self.chunk + 1) * self.chunk
    }

    /// Returns the part of the range from `offset` to `end` on one of the drives: always contiguous, if not empty.
    pub(super) fn run(&self, index: usize, offset: u64, end: u64) -> Option<Range> {
        let first = self.bytes_before(index, offset);
        let last = self.bytes_before(index, end);
        (last > first).then(|| Range {
            offset: first,
            bytes: last - first,
        })
    }

    /// Returns the bytes of one drive that are before `offset`.
    fn bytes_before(&self, index: usize, offset: u64) -> u64 {
        let row = self.chunk * self.count;
        let into = (offset % row).saturating_sub(index as u64 * self.chunk);
        offset / row * self.chunk + into.min(self.chunk)
    }

    /// Appends the ranges of the stripe that correspond to ranges of one drive.
    pub(super) fn whole(&self, index: usize, ranges: &[Range], whole: &mut Vec<Range>) {
        for range in ranges {
            let (mut at, end) = (range.offset, range.offset + range.bytes);
            while at < end {
                let (row, within) = (at / self.chunk, at % self.chunk);
                let until = end.min(self.border(at));
                whole.push(Range {
                    offset: (row * self.count + index as u64) * self.chunk + within,
                    bytes: until - at,
                });
                at = until;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_lose_is_told_where_it_is_in_the_whole() {
        let mut whole = Vec::new();
        let range = |offset, bytes| Range { offset, bytes };
        let striping = Striping {
            count: 3,
            chunk: 8192,
        };
        striping.whole(1, &[range(4096, 8192)], &mut whole);
        assert_eq!(whole, [range(8192 + 4096, 4096), range(32768, 4096)]);
    }
}
