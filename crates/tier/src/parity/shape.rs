//! Layout of data and parity in RAID 5 and RAID 6: md's default, `left-symmetric`.
//!
//! A stripe has one chunk on each child. Parity moves from the last child to the first, stripe by stripe. The second
//! parity follows the first, and data begins after them and wraps around.

use core::ops::Range;

use crate::Child;

/// Unit in which parity is computed, and to which commands are rounded.
pub(super) const PAGE: u64 = 4096;

/// Layout of chunks over the children. Data columns come first, then parity columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ParityLayout {
    pub(super) children: u64,
    pub(super) parity: u64,
    pub(super) chunk: u64,
}

impl ParityLayout {
    /// Returns the number of data columns.
    pub(super) fn data(&self) -> u64 {
        self.children - self.parity
    }

    /// Returns the bytes of data in a stripe.
    pub(super) fn stripe(&self) -> u64 {
        self.data() * self.chunk
    }

    /// Returns the child of a column of a stripe.
    pub(super) fn child(&self, stripe: u64, column: u64) -> Child {
        let parity = self.children - 1 - stripe % self.children;
        let behind = match column.checked_sub(self.data()) {
            Some(parity) => parity,
            None => self.parity + column,
        };
        ((parity + behind) % self.children) as Child
    }

    /// Returns the column of a child in a stripe.
    pub(super) fn column(&self, stripe: u64, child: Child) -> u64 {
        let parity = self.children - 1 - stripe % self.children;
        let behind = (u64::from(child) + self.children - parity) % self.children;
        match behind.checked_sub(self.parity) {
            Some(column) => column,
            None => self.data() + behind,
        }
    }

    /// Returns the part of a range of a stripe's data (counted from its beginning) that is in a data column, as bytes
    /// of its chunk.
    pub(super) fn covered(&self, range: &Range<u64>, column: u64) -> Range<u64> {
        let begin = column * self.chunk;
        let within = |at: u64| at.saturating_sub(begin).min(self.chunk);
        within(range.start)..within(range.end)
    }

    /// Splits the chunks into pieces, in whole pages of all columns, so that a range of a stripe's data covers the same
    /// columns throughout a piece. Returns each piece as a range of bytes in the chunk; at most five.
    pub(super) fn bands(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (first, last) = (range.start / self.chunk, (range.end - 1) / self.chunk);
        let (from, until) = (range.start % self.chunk, (range.end - 1) % self.chunk + 1);
        let down = |at: u64| at / PAGE * PAGE;
        let up = |at: u64| at.next_multiple_of(PAGE);
        let ends = match first == last {
            true => [down(from), down(from), self.chunk, self.chunk],
            false => [0, 0, self.chunk, self.chunk],
        };
        let mut cuts = [
            ends[0],
            down(from),
            up(from),
            down(until),
            up(until),
            ends[3],
        ];
        if first == last {
            (cuts[0], cuts[5]) = (down(from), up(until));
        }
        cuts.sort_unstable();
        let between = (0..5).map(move |index| cuts[index]..cuts[index + 1]);
        between.filter(|band| !band.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const FIVE: ParityLayout = ParityLayout {
        children: 4,
        parity: 1,
        chunk: 16384,
    };

    /// The rows of md's documentation of `left-symmetric`: by stripe, the number of the data chunk on each child, -1
    /// for parity.
    #[test]
    fn chunks_lie_as_in_left_symmetric() {
        let rows: Vec<Vec<i64>> = (0..4)
            .map(|stripe| {
                let of = |child| match FIVE.column(stripe, child) {
                    3 => -1,
                    column => (stripe * 3 + column) as i64,
                };
                (0..4).map(of).collect()
            })
            .collect();
        assert_eq!(
            rows,
            [[0, 1, 2, -1], [4, 5, -1, 3], [8, -1, 6, 7], [-1, 9, 10, 11]]
        );
        let six = ParityLayout {
            parity: 2,
            children: 5,
            ..FIVE
        };
        let row = |stripe| [0, 1, 2, 3, 4].map(|child| six.column(stripe, child));
        // 3 is P, 4 is Q.
        assert_eq!(row(0), [4, 0, 1, 2, 3]);
        assert_eq!(row(1), [0, 1, 2, 3, 4]);
        for (stripe, column) in (0..7).flat_map(|stripe| (0..5).map(move |it| (stripe, it))) {
            assert_eq!(six.column(stripe, six.child(stripe, column)), column);
        }
    }

    #[test]
    fn bands_cover_what_is_covered_and_each_the_same_columns() {
        for from in (0..3 * 16384).step_by(1536) {
            for bytes in [512, 4096, 6144, 16384, 20480, 49152] {
                let range = from..(from + bytes).min(49152);
                let bands: Vec<_> = FIVE.bands(&range).collect();
                assert!(bands.len() <= 5);
                for column in 0..3 {
                    let covered = FIVE.covered(&range, column);
                    let inside = |band: &Range<u64>| {
                        covered.start.max(band.start)..covered.end.min(band.end)
                    };
                    let sum: u64 = bands
                        .iter()
                        .map(|it| {
                            let inside = inside(it);
                            inside.end.saturating_sub(inside.start)
                        })
                        .sum();
                    assert_eq!(sum, covered.end - covered.start, "{range:?} {column}");
                }
                assert!(
                    bands
                        .iter()
                        .all(|it| it.start % PAGE == 0 && it.end % PAGE == 0)
                );
            }
        }
    }
}
