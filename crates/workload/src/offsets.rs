//! Offset generation: sequential positions, random blocks, and fio's combinations of both.
//!
//! With several block sizes, fio's random map marks every covered block. Here one draw uses one block of the smallest
//! size.

use core::hint::cold_path;

use model::Stream;

use super::distributions::Sampler;
use super::job::{Direction, Extent, Job, Sequencer};
use super::permutation::Permutation;
use super::strided::ZoneWalk;
use super::zoned::ZonedWalk;

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
    /// Zones of a job with a `zonemode`.
    zones: Option<Zones>,
}

/// Zones by `zonemode`.
#[derive(Clone, Debug)]
enum Zones {
    Strided(ZoneWalk),
    /// `zbd`, with the smallest block by direction.
    Zoned(Box<(ZonedWalk, [u32; 3])>),
}

impl Offsets {
    /// Creates a generator of offsets in `start..start + len`; `smallest` is the smallest block by direction and fits
    /// in `len`. `reach` is the length from `start` to the end of the file or drive, for strided zones.
    pub(crate) fn new(
        job: &Job,
        start: u64,
        len: u64,
        reach: u64,
        smallest: [u32; 3],
        mut stream: Stream,
    ) -> Offsets {
        let align = job.block_align.map(|align| u64::from(align.max(1)));
        let zones = job.strided.map(|zones| ZoneWalk::new(zones, reach));
        let part = zones.as_ref().map_or(len, ZoneWalk::range);
        let blocks = std::array::from_fn(|d| {
            (part.saturating_sub(u64::from(smallest[d])) / align[d] + 1).max(1)
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
            zones: zones.map(Zones::Strided),
        };
        offsets.rewind(smallest.map(u64::from));
        offsets
    }

    /// Adds the zones of a job with `zonemode=zbd`, for this copy of it.
    pub(crate) fn with_zones(mut self, job: &Job, copy: u32, smallest: [u32; 3]) -> Offsets {
        if let Some(mode) = job.zoned {
            // Copies with one range share its zones.
            let apart = job.offset_increment != Extent::Bytes(0);
            let (copy, copies) = if apart { (0, 1) } else { (copy, job.numjobs) };
            let walk = ZonedWalk::new(mode, self.start, self.len, copy, copies);
            self.zones = Some(Zones::Zoned(Box::new((walk, smallest))));
        }
        self
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
        if let Some(Zones::Zoned(zoned)) = &mut self.zones {
            zoned.0.rewind();
        }
    }

    /// Returns the offset and length of the next I/O: `bytes`, or less at the end of the range.
    #[inline(always)]
    pub(crate) fn next(&mut self, direction: Direction, bytes: u32) -> (u64, u32) {
        let d = direction as usize;
        if self.zones.is_some() {
            return self.next_in_zone(direction, bytes);
        }
        let relative = if self.random && self.draws(d) {
            self.random(d)
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

    /// Returns a random offset, relative to the start of the range or zone.
    #[inline(always)]
    fn random(&mut self, d: usize) -> u64 {
        let block = loop {
            let block = self.samplers[d].draw(self.blocks[d], &mut self.map, &mut self.stream);
            // The map is as long as that of the direction with the most blocks.
            if block < self.blocks[d] {
                break block;
            }
        };
        block * self.align[d]
    }

    /// Returns the next I/O of a job with zones.
    #[cold]
    fn next_in_zone(&mut self, direction: Direction, bytes: u32) -> (u64, u32) {
        let d = direction as usize;
        match self.zones.take() {
            Some(Zones::Strided(zones)) => self.next_strided(zones, d, bytes),
            Some(Zones::Zoned(mut zoned)) => {
                let drawn = (self.random && self.draws(d)).then(|| self.random(d));
                let (walk, smallest) = &mut *zoned;
                let smallest = u64::from(smallest[d].max(1));
                let (relative, moved) = walk.next(direction, drawn, u64::from(bytes), smallest);
                self.zones = Some(Zones::Zoned(zoned));
                let longest = u64::from(!0xfffu32);
                (self.start + relative, moved.min(longest) as u32)
            }
            None => (self.start, bytes),
        }
    }

    /// Returns the next I/O of a job with strided zones.
    fn next_strided(&mut self, mut zones: ZoneWalk, d: usize, bytes: u32) -> (u64, u32) {
        if zones.next_io(self.random) {
            self.position = [0; 3];
            self.map.restart(&mut self.stream);
        }
        let mut relative = if self.random && self.draws(d) {
            self.random(d)
        } else if self.position[d] >= zones.range() {
            0
        } else {
            self.position[d]
        };
        if !zones.fits(relative, u64::from(bytes)) {
            self.position = [0; 3];
            relative = 0;
        }
        self.advance(d, relative, u64::from(bytes), bytes);
        let offset = self.start + zones.start() + relative;
        zones.count(u64::from(bytes));
        self.zones = Some(Zones::Strided(zones));
        (offset, bytes)
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
    use crate::strided::StridedZones;
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
                Offsets::new(&job, start * 512, len * 512, len * 512, [bytes; 3], Stream::new(seed, "test"));
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
        Offsets::new(job, 0, len, len, [4096; 3], Stream::new(1, "test"))
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

    /// Offsets of 16 KiB blocks, as fio 3.33 writes them to `write_iolog` for these options.
    #[test]
    fn strided_zones_are_those_of_fio() {
        const KIB: u64 = 1024;
        let zones = |range: u64, size: u64, skip: u64| {
            Some(StridedZones {
                size: size * KIB,
                range: range * KIB,
                skip: skip * KIB,
            })
        };
        let blocks = |job: &Job, offset: u64, len: u64, reach: u64, count: usize| {
            let (len, reach) = (len * KIB, reach * KIB);
            let smallest = [16 << 10; 3];
            let stream = Stream::new(1, "test");
            let mut offsets = Offsets::new(job, offset * KIB, len, reach, smallest, stream);
            let next = || offsets.next(Direction::Read, 16 << 10).0 / (16 << 10);
            std::iter::repeat_with(next).take(count).collect::<Vec<_>>()
        };
        let job = |strided| Job {
            strided,
            block_align: [16 << 10; 3],
            ..Job::default()
        };
        // size=8m zonesize=64k zoneskip=192k
        let skips = blocks(&job(zones(64, 64, 192)), 0, 8192, 8192, 9);
        assert_eq!(skips, [0, 1, 2, 3, 16, 17, 18, 19, 32]);
        // zonesize=256k zonerange=64k: each zone four times.
        let again = blocks(&job(zones(64, 256, 192)), 0, 8192, 8192, 18);
        assert_eq!(
            again,
            [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 16, 17]
        );
        // filesize=1m size=256k zonesize=64k zoneskip=448k: zones beyond size, to the end of the file.
        let beyond = blocks(&job(zones(64, 64, 448)), 0, 256, 1024, 10);
        assert_eq!(beyond, [0, 1, 2, 3, 32, 33, 34, 35, 0, 1]);
        // filesize=1m offset=512k size=384k zonesize=64k zoneskip=64k
        let offset = blocks(&job(zones(64, 64, 64)), 512, 384, 512, 17);
        let zone = |first: u64| first..first + 4;
        let wanted = [32, 40, 48, 56].into_iter().flat_map(zone).chain([32]);
        assert_eq!(offset, wanted.collect::<Vec<_>>());
        // zonesize=40k zoneskip=24k: the last block of a zone ends beyond it.
        let across = blocks(&job(zones(40, 40, 24)), 0, 1024, 1024, 7);
        assert_eq!(across, [0, 1, 2, 4, 5, 6, 8]);
        // A random job: every block of a zone once for each time that the zone is covered.
        let random = Job {
            random: true,
            ..job(zones(64, 128, 64))
        };
        let order = blocks(&random, 0, 8192, 8192, 24);
        for (index, part) in order.chunks(4).enumerate() {
            let mut part = part.to_vec();
            part.sort_unstable();
            let first = index as u64 / 2 * 8;
            assert_eq!(part, zone(first).collect::<Vec<_>>(), "{order:?}");
        }
    }

    /// fio 3.33 transfers 416 KiB of a file of 1 MiB with zonesize=64k and zoneskip=100k in blocks of 16 KiB.
    #[test]
    fn a_zone_beyond_the_end_ends_a_sequential_job() {
        let zones = |skip: u64| StridedZones {
            size: 64 << 10,
            range: 64 << 10,
            skip,
        };
        let end = |skip| zones(skip).bytes_before_end(1 << 20, 16 << 10);
        assert_eq!(end(100 << 10), Some(416 << 10));
        assert_eq!(end(64 << 10), None);
    }
}
