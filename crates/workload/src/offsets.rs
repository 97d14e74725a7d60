//! Offset generation: sequential positions, random blocks, and fio's combinations of both.
//!
//! With several block sizes, fio's random map marks every covered block. Here one draw uses one block of the smallest
//! size.

use core::hint::cold_path;

use model::Stream;

use super::distributions::Sampler;
use super::job::{Direction, Job, Sequencer};
use super::permutation::Permutation;

/// Offset generator of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    /// First byte of the range.
    start: u64,
    /// Length of the range.
    len: u64,
    random: bool,
    percentage_random: [u32; 3],
    sequence: u32,
    sequencer: Sequencer,
    skip: i64,
    /// By direction: alignment of random offsets, and their number.
    align: [u64; 3],
    blocks: [u64; 3],
    samplers: [Sampler; 3],
    map: Permutation,
    /// By direction: next sequential offset, relative to the start of the range.
    position: [u64; 3],
    /// By direction: I/Os before the sequencer draws again.
    left: [u32; 3],
    stream: Stream,
}

impl Offsets {
    /// Creates a generator of offsets in `start..start + len`; `smallest` is the smallest block by direction and fits
    /// in `len`.
    pub(crate) fn new(
        job: &Job,
        start: u64,
        len: u64,
        smallest: [u32; 3],
        mut stream: Stream,
    ) -> Offsets {
        let align = job.block_align.map(|align| u64::from(align.max(1)));
        let blocks = std::array::from_fn(|d| {
            (len.saturating_sub(u64::from(smallest[d])) / align[d] + 1).max(1)
        });
        let samplers = std::array::from_fn(|d| {
            Sampler::new(
                &job.distribution[d],
                !job.norandommap,
                blocks[d],
                align[d],
                &mut stream,
            )
        });
        // fio has one map per file, in units of the smallest block of all directions.
        let map = Permutation::new(blocks[0].max(blocks[1]).max(blocks[2]), &mut stream);
        let mut offsets = Offsets {
            start,
            len,
            random: job.random,
            percentage_random: job.percentage_random,
            sequence: job.sequence.max(1),
            sequencer: job.sequencer,
            skip: job.skip,
            align,
            blocks,
            samplers,
            map,
            position: [0; 3],
            left: [0; 3],
            stream,
        };
        offsets.rewind(smallest.map(u64::from));
        offsets
    }

    /// Starts another pass over the range.
    pub(crate) fn rewind(&mut self, smallest: [u64; 3]) {
        for (position, smallest) in self.position.iter_mut().zip(smallest) {
            *position = if self.skip < 0 {
                self.len.saturating_sub(smallest)
            } else {
                0
            };
        }
        self.left = [0; 3];
    }

    /// Returns the offset and length of the next I/O: `bytes`, or less at the end of the range.
    #[inline(always)]
    pub(crate) fn next(&mut self, direction: Direction, bytes: u32) -> (u64, u32) {
        let d = direction as usize;
        let relative = if self.random && self.draws(d) {
            let block = loop {
                let block = self.samplers[d].draw(self.blocks[d], &mut self.map, &mut self.stream);
                // The map is as long as that of the direction with the most blocks.
                if block < self.blocks[d] {
                    break block;
                }
            };
            block * self.align[d]
        } else {
            self.sequential(d, bytes)
        };
        let fits = (self.len - relative).min(u64::from(bytes));
        let fits = if fits < u64::from(bytes) {
            cold_path();
            (fits & !511).max(512)
        } else {
            fits
        };
        self.advance(d, relative, fits, bytes);
        (self.start + relative, fits as u32)
    }

    /// Checks whether this I/O of a random job draws a new offset.
    #[inline]
    fn draws(&mut self, d: usize) -> bool {
        if self.left[d] > 0 {
            self.left[d] -= 1;
            return false;
        }
        self.left[d] = self.sequence - 1;
        let percent = self.percentage_random[d];
        percent >= 100 || self.stream.uniform_below(100) < u64::from(percent)
    }

    #[inline]
    fn sequential(&mut self, d: usize, bytes: u32) -> u64 {
        if self.position[d] + u64::from(bytes) > self.len {
            if self.position[d] >= self.len || self.skip == 0 {
                self.position[d] = 0;
            } else if self.skip < 0 {
                self.position[d] = self.len.saturating_sub(u64::from(bytes));
            }
        }
        self.position[d]
    }

    #[inline]
    fn advance(&mut self, d: usize, relative: u64, moved: u64, asked: u32) {
        if self.sequencer == Sequencer::Identical && self.left[d] > 0 {
            self.position[d] = relative;
            return;
        }
        let next = relative + moved;
        self.position[d] = if self.skip == 0 {
            next
        } else {
            match next.checked_add_signed(self.skip) {
                Some(next) if next < self.len => next,
                Some(_) => 0,
                None => self.len.saturating_sub(u64::from(asked)),
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offsets_stay_in_the_range_and_keep_their_alignment(
            start in 0u64..100,
            len in 2u64..5000,
            blocks in 1u32..4,
            random: bool,
            percent in 0u32..=100,
            skip in -20i64..20,
            seed: u64,
        ) {
            let bytes = 512 * blocks.min(len as u32);
            let job = Job {
                random,
                percentage_random: [percent; 3],
                skip: skip * 512,
                block_align: [512; 3],
                ..Job::default()
            };
            let mut offsets =
                Offsets::new(&job, start * 512, len * 512, [bytes; 3], Stream::new(seed, "test"));
            for _ in 0..200 {
                let (offset, moved) = offsets.next(Direction::Read, bytes);
                prop_assert!(offset >= start * 512);
                prop_assert!(offset + u64::from(moved) <= (start + len) * 512);
                prop_assert_eq!(offset % 512, 0);
                prop_assert!(moved > 0 && moved <= bytes);
            }
        }
    }

    fn offsets(job: &Job, len: u64) -> Offsets {
        Offsets::new(job, 0, len, [4096; 3], Stream::new(1, "test"))
    }

    fn take(offsets: &mut Offsets, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| offsets.next(Direction::Read, 4096).0 / 4096)
            .collect()
    }

    #[test]
    fn sequential_goes_round() {
        let mut offsets = offsets(&Job::default(), 4 * 4096);
        assert_eq!(take(&mut offsets, 6), [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn a_skip_leaves_holes_and_a_negative_one_goes_back() {
        let holes = Job {
            skip: 4096,
            ..Job::default()
        };
        assert_eq!(take(&mut offsets(&holes, 6 * 4096), 4), [0, 2, 4, 0]);
        let back = Job {
            skip: -8192,
            ..Job::default()
        };
        assert_eq!(take(&mut offsets(&back, 4 * 4096), 6), [3, 2, 1, 0, 3, 2]);
    }

    #[test]
    fn the_sequencer_draws_every_so_many() {
        let sequential = Job {
            random: true,
            sequence: 4,
            ..Job::default()
        };
        let got = take(&mut offsets(&sequential, 1 << 30), 8);
        for run in got.chunks(4) {
            assert_eq!(run[1..], [run[0] + 1, run[0] + 2, run[0] + 3]);
        }
        assert_ne!(got[4], got[3] + 1);
        let identical = Job {
            random: true,
            sequence: 3,
            sequencer: Sequencer::Identical,
            ..Job::default()
        };
        let got = take(&mut offsets(&identical, 1 << 30), 6);
        assert_eq!(got[..3], [got[0]; 3]);
        assert_eq!(got[3..], [got[3]; 3]);
    }
}
