//! Anatomy by band of latency: what the slowest 0.001 % waited for.
//!
//! Sums of each part are kept by coarse bucket of latency (8 to a power of two), so any band of percentiles can be
//! asked for afterwards, to the width of a bucket, and bands of several threads merge.

use model::{Anatomy, Part, Span};

const BITS: u32 = 3;
const BUCKETS: usize = (40 - BITS as usize + 1) << BITS;

/// Counts and sums of parts by bucket of latency.
#[derive(Clone, Debug, PartialEq)]
pub struct AnatomyBands {
    counts: Box<[u64]>,
    sums: Box<[[u64; Part::COUNT]]>,
}

impl Default for AnatomyBands {
    fn default() -> AnatomyBands {
        AnatomyBands {
            counts: vec![0; BUCKETS].into(),
            sums: vec![[0; Part::COUNT]; BUCKETS].into(),
        }
    }
}

/// Mean parts of the I/Os in one band of percentiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Lower end, percent.
    pub from: f64,
    /// Upper end, percent.
    pub to: f64,
    /// I/Os in it.
    pub count: u64,
    /// Mean of each part in nanoseconds, in the order of [`Part::ALL`].
    pub mean_ns: [f64; Part::COUNT],
}

impl AnatomyBands {
    /// Counts one I/O; `latency` chooses the bucket.
    #[inline]
    pub fn record(&mut self, latency: Span, anatomy: &Anatomy) {
        let ns = latency.ns();
        let bucket = if ns < 1 << BITS {
            ns as usize
        } else {
            let shift = 63 - ns.leading_zeros() - BITS;
            (((shift as usize) << BITS) + (ns >> shift) as usize).min(BUCKETS - 1)
        };
        self.counts[bucket] += 1;
        for (sum, span) in self.sums[bucket].iter_mut().zip(anatomy.parts()) {
            *sum += span.ns();
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &AnatomyBands) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        for (mine, theirs) in self.sums.iter_mut().zip(&other.sums) {
            for (sum, other) in mine.iter_mut().zip(theirs) {
                *sum += other;
            }
        }
    }

    /// Mean parts between each pair of neighbouring `edges` (percentiles, rising, such as `[0, 50, 90, 100]`). A bucket
    /// belongs to the band in which its middle sample lies; a band without samples has a count of 0.
    pub fn between(&self, edges: &[f64]) -> Vec<Band> {
        let total: u64 = self.counts.iter().sum();
        let mut bands: Vec<Band> = edges
            .windows(2)
            .map(|pair| Band {
                from: pair[0],
                to: pair[1],
                count: 0,
                mean_ns: [0.0; Part::COUNT],
            })
            .collect();
        let mut below = 0u64;
        for (&count, sums) in self.counts.iter().zip(&self.sums) {
            if count == 0 {
                continue;
            }
            let middle = (below as f64 + count as f64 / 2.0) / total as f64 * 100.0;
            below += count;
            if let Some(band) = bands
                .iter_mut()
                .find(|band| middle >= band.from && middle <= band.to)
            {
                band.count += count;
                for (mean, &sum) in band.mean_ns.iter_mut().zip(sums) {
                    *mean += sum as f64;
                }
            }
        }
        for band in &mut bands {
            for mean in &mut band.mean_ns {
                *mean /= band.count.max(1) as f64;
            }
        }
        bands
    }
}
