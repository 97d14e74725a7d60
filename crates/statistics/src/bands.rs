//! Latency breakdown by band of latency: what the slowest 0.001 % of I/Os waited for.
//!
//! Sums of each part are kept per coarse latency bucket (8 per power of two). Any band of percentiles can therefore
//! be queried later, to the width of a bucket, and bands of several threads can be merged.

use model::{Anatomy, Part, Span};

use super::buckets::{Buckets, Fine, all_of};

const BITS: u32 = 3;
type Coarse = Buckets<BITS>;

/// Default percentile edges of the latency breakdown.
pub const BAND_EDGES: [f64; 8] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// Counts and sums of parts, by latency bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct AnatomyBands {
    counts: Box<[u64; Coarse::COUNT]>,
    sums: Box<[[u64; Part::COUNT]; Coarse::COUNT]>,
}

impl Default for AnatomyBands {
    fn default() -> AnatomyBands {
        AnatomyBands {
            counts: all_of(0),
            sums: all_of([0; Part::COUNT]),
        }
    }
}

/// Mean parts of the I/Os in one percentile band.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Lower end, percent.
    pub from: f64,
    /// Upper end, percent.
    pub to: f64,
    /// Number of I/Os in the band.
    pub count: u64,
    /// Mean of each part in nanoseconds, in the order of [`Part::ALL`].
    pub mean_ns: [f64; Part::COUNT],
}

impl AnatomyBands {
    /// Counts one I/O in the bucket of its latency.
    pub fn record(&mut self, latency: Span, anatomy: &Anatomy) {
        self.count(Fine::index(latency.ns()), anatomy);
    }

    /// As [`Self::record`], with the bucket of a histogram in place of the latency.
    #[inline(always)]
    pub(super) fn count(&mut self, bucket: usize, anatomy: &Anatomy) {
        let bucket = Fine::coarse_index::<BITS>(bucket);
        self.counts[bucket] += 1;
        for (sum, span) in self.sums[bucket].iter_mut().zip(anatomy.parts()) {
            *sum += span.ns();
        }
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &AnatomyBands) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts[..]) {
            *mine += theirs;
        }
        for (mine, theirs) in self.sums.iter_mut().zip(&other.sums[..]) {
            for (sum, other) in mine.iter_mut().zip(theirs) {
                *sum += other;
            }
        }
    }

    /// Returns the mean parts between each pair of neighbouring `edges` (ascending percentiles, such as `[0, 50, 90,
    /// 100]`). If an edge divides a bucket, both sides get their share of its samples, with the means of the whole
    /// bucket, because the order of samples within a bucket is unknown. A band without samples has a count of 0.
    pub fn percentile_bands(&self, edges: &[f64]) -> Vec<Band> {
        let total: u64 = self.counts.iter().sum();
        let rank = |percent: f64| percent / 100.0 * total as f64;
        let band = |pair: &[f64]| {
            let (from, to) = (rank(pair[0]), rank(pair[1]));
            let (mut samples, mut mean_ns) = (0.0, [0.0; Part::COUNT]);
            let mut below = 0u64;
            for (&count, sums) in self.counts.iter().zip(&self.sums[..]) {
                if count == 0 {
                    continue;
                }
                let inside = to.min((below + count) as f64) - from.max(below as f64);
                below += count;
                if inside <= 0.0 {
                    continue;
                }
                samples += inside;
                for (mean, &sum) in mean_ns.iter_mut().zip(sums) {
                    *mean += sum as f64 * (inside / count as f64);
                }
            }
            for mean in &mut mean_ns {
                *mean /= f64::max(samples, 1e-9);
            }
            Band {
                from: pair[0],
                to: pair[1],
                count: samples.round() as u64,
                mean_ns,
            }
        };
        edges.windows(2).map(band).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_share_out_all_samples_and_all_time() {
        let mut bands = AnatomyBands::default();
        let mut sum = 0;
        for index in 0..1_000u64 {
            let mut anatomy = Anatomy::ZERO;
            anatomy.add(Part::Medium, Span::from_ns(10_000 + index % 7));
            let slow = if index % 100 == 0 { 90_000 } else { 0 };
            anatomy.add(Part::BehindRead, Span::from_ns(slow));
            sum += anatomy.total().ns();
            bands.record(anatomy.total(), &anatomy);
        }
        let found = bands.percentile_bands(&[0.0, 50.0, 90.0, 99.0, 100.0]);
        let counts: Vec<u64> = found.iter().map(|band| band.count).collect();
        assert_eq!(counts, [500, 400, 90, 10]);
        let all: f64 = found
            .iter()
            .map(|band| band.count as f64 * band.mean_ns.iter().sum::<f64>())
            .sum();
        assert!((all / sum as f64 - 1.0).abs() < 1e-9);
        let slowest = &found[3].mean_ns;
        assert!((slowest[Part::BehindRead as usize] - 90_000.0).abs() < 1e-6);
        assert!(found[0].mean_ns[Part::BehindRead as usize] < 1e-6);
    }

    #[test]
    fn an_empty_histogram_has_empty_bands() {
        let found = AnatomyBands::default().percentile_bands(&[0.0, 50.0, 100.0]);
        assert!(found.iter().all(|band| band.count == 0));
    }
}
