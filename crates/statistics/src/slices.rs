//! Latencies by slice of the run. They show how much smaller the number of independent samples is than the number of
//! I/Os.
//!
//! Slow I/Os come in clusters (a pause, an erase, a queue that drains), so their number per slice varies more than
//! for independent samples. The ratio of the variances is the design effect (L. Kish, *Survey Sampling*, 1965). The
//! number of samples divided by the design effect is the number of equivalent independent samples. Slices must be
//! longer than a cluster. Slices of twice and four times the length are therefore also evaluated, and the largest
//! effect counts (batch means, as in A. Law, *Simulation Modeling and Analysis*).
//!
//! The length of a slice is a power of two of nanoseconds of virtual time. It is equal for all threads of a run,
//! because a delay of one thread can delay the others. There are never more than [`MOST`] slices: before that,
//! neighbours are merged. Latencies are kept in 16 buckets per power of two. Not covered: clusters longer than an
//! eighth of the run.

use model::Time;

use super::buckets::Fine;

/// Maximum number of slices.
const MOST: usize = 64;
/// Minimum number of slices for an evaluation.
const FEWEST: usize = 8;
/// log2 of the initial slice length in nanoseconds.
const FIRST: u32 = 14;
/// Buckets per slice.
const WIDTH: usize = Fine::COUNT >> COARSER;
/// log2 of the number of histogram buckets per bucket of a slice.
pub(super) const COARSER: u32 = 3;

/// Counts by slice of time and bucket of latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Slices {
    /// log2 of the slice length in nanoseconds.
    shift: u32,
    /// Number of the first slice, counted from time zero.
    first: u64,
    /// All slices in order, `WIDTH` counts each.
    counts: Vec<u32>,
}

impl Slices {
    /// Counts a latency in this bucket at this time.
    #[inline]
    pub(super) fn record(&mut self, at: Time, bucket: usize) {
        let slice = (at.ns() >> self.shift).wrapping_sub(self.first) as usize;
        let index = slice.wrapping_mul(WIDTH).wrapping_add(bucket);
        // For a slice before the first, the index wraps to a huge number, which is also out of range.
        match self.counts.get_mut(index) {
            Some(count) if slice < MOST => *count += 1,
            _ => self.record_beyond(at, bucket),
        }
    }

    /// As [`Slices::record`], for a slice that does not exist yet: called once per slice.
    #[cold]
    fn record_beyond(&mut self, at: Time, bucket: usize) {
        if self.counts.is_empty() {
            self.shift = self.shift.max(FIRST);
            self.first = at.ns() >> self.shift;
            self.counts.reserve_exact(MOST * WIDTH);
        }
        let slice = self.make_room(at.ns() >> self.shift);
        self.counts[slice * WIDTH + bucket] += 1;
    }

    /// Adds a slice, and all slices between it and the others; returns its index. Slices become longer until all fit.
    fn make_room(&mut self, mut number: u64) -> usize {
        loop {
            let first = self.first.min(number);
            let last = (self.first + (self.slices() as u64).max(1) - 1).max(number);
            if last - first < MOST as u64 {
                let before = (self.first - first) as usize * WIDTH;
                self.counts.splice(..0, std::iter::repeat_n(0, before));
                self.first = first;
                self.counts.resize((last - first + 1) as usize * WIDTH, 0);
                return (number - first) as usize;
            }
            self.lengthen();
            number >>= 1;
        }
    }

    /// Merges neighbouring slices, so that slices are twice as long.
    fn lengthen(&mut self) {
        let (slices, odd) = (self.slices(), (self.first & 1) as usize);
        for slice in 0..slices {
            let into = (slice + odd) / 2;
            if into == slice {
                continue;
            }
            for bucket in 0..WIDTH {
                let count = std::mem::take(&mut self.counts[slice * WIDTH + bucket]);
                self.counts[into * WIDTH + bucket] += count;
            }
        }
        self.counts.truncate((slices + odd).div_ceil(2) * WIDTH);
        self.first >>= 1;
        self.shift += 1;
    }

    fn slices(&self) -> usize {
        self.counts.len() / WIDTH
    }

    /// Adds counts from the same time.
    pub(super) fn merge(&mut self, other: &Slices) {
        self.add(other, |number| number);
    }

    /// Adds counts as if they had happened afterwards.
    pub(super) fn follow(&mut self, other: &Slices) {
        let shift = self.shift.max(other.shift);
        while self.shift < shift {
            self.lengthen();
        }
        let end = self.first + self.slices() as u64;
        let start = other.first >> (shift - other.shift);
        // In slices of the common length; slices may become longer while others are added.
        let later = move |number: u64| number - start + end;
        self.add(other, later);
    }

    fn add(&mut self, other: &Slices, place: impl Fn(u64) -> u64) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            self.shift = self.shift.max(other.shift);
        }
        while self.shift < other.shift {
            self.lengthen();
        }
        let common = self.shift;
        for (index, counts) in other.counts.chunks_exact(WIDTH).enumerate() {
            let number = place((other.first + index as u64) >> (common - other.shift));
            if self.counts.is_empty() {
                self.first = number;
            }
            let slice = self.make_room(number >> (self.shift - common));
            let mine = &mut self.counts[slice * WIDTH..][..WIDTH];
            for (mine, theirs) in mine.iter_mut().zip(counts) {
                *mine += theirs;
            }
        }
    }

    /// Returns the design effect: the factor by which the number of I/Os beyond a latency varies more than for
    /// independent samples. At least 1, and 1 if there are too few slices. The latency is in `bucket`; `share` of the
    /// samples of this bucket are not beyond it.
    pub(super) fn design_effect(&self, bucket: usize, share: f64) -> f64 {
        let beyond = |counts: &[u32]| {
            let above: u64 = counts[bucket + 1..]
                .iter()
                .map(|&count| u64::from(count))
                .sum();
            above as f64 + f64::from(counts[bucket]) * (1.0 - share)
        };
        let slices = self.each(beyond);
        let all: f64 = slices.iter().map(|slice| slice.1).sum();
        let p = slices.iter().map(|slice| slice.0).sum::<f64>() / all;
        let independent = p * (1.0 - p) / all;
        match variance(slices) {
            Some(variance) if independent > 0.0 => f64::max(1.0, variance / independent),
            _ => 1.0,
        }
    }

    /// Returns half the 95 % interval of the mean latency, as a share of the mean; `None` if there are too few
    /// slices. `middle` returns the latency that represents a bucket.
    pub(super) fn mean_error(&self, middle: impl Fn(usize) -> f64) -> Option<f64> {
        let middles: Vec<f64> = (0..WIDTH).map(middle).collect();
        let sum = |counts: &[u32]| {
            let each = counts.iter().zip(&middles);
            each.map(|(&count, middle)| f64::from(count) * middle).sum()
        };
        let slices = self.each(sum);
        let (sum, all) = slices
            .iter()
            .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        Some(super::confidence::NORMAL * libm::sqrt(variance(slices)?) * all / sum)
    }

    /// Returns a value of each slice with its number of I/Os.
    fn each(&self, figure: impl Fn(&[u32]) -> f64) -> Vec<(f64, f64)> {
        let one = |counts: &[u32]| {
            let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
            (figure(counts), all as f64)
        };
        self.counts.chunks_exact(WIDTH).map(one).collect()
    }
}

/// Returns the variance of the ratio between the sums of two values of each slice: the largest for slices of one, two
/// and four times the length. `None` with fewer than [`FEWEST`] slices.
fn variance(mut slices: Vec<(f64, f64)>) -> Option<f64> {
    let mut largest = variance_at(&slices);
    while slices.len() / 2 >= FEWEST {
        let sum = |pair: &[(f64, f64)]| pair.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        slices = slices.chunks(2).map(sum).collect();
        // Fewer slices may give no variance.
        largest = variance_at(&slices).map_or(largest, |one| largest.map(|most| most.max(one)));
    }
    largest
}

/// As [`variance`], for slices of one length.
fn variance_at(slices: &[(f64, f64)]) -> Option<f64> {
    let count = slices.iter().filter(|slice| slice.1 > 0.0).count();
    if count < FEWEST {
        return None;
    }
    let (sum, all) = slices
        .iter()
        .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let ratio = sum / all;
    let apart = |&(one, of): &(f64, f64)| (one - ratio * of) * (one - ratio * of);
    let squares: f64 = slices.iter().map(apart).sum();
    let freedom = (count - 1) as f64;
    // The variance is an estimate itself: Student's t over the normal, squared (accurate to one percent for seven or
    // more degrees of freedom).
    let student = 1.0 + 2.42 / freedom + 4.5 / (freedom * freedom);
    Some(squares * count as f64 / freedom / (all * all) * student)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(slices: &Slices) -> u64 {
        slices.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// One count per microsecond from `from` to `to`.
    fn steady(from: u64, to: u64) -> Slices {
        let mut slices = Slices::default();
        for us in from..to {
            slices.record(Time::from_ns(us * 1_000), 7);
        }
        slices
    }

    #[test]
    fn a_run_of_any_length_has_a_bounded_number_of_slices_and_loses_nothing() {
        for (from, to) in [(0, 10), (0, 5_000), (3, 40_000), (999_999, 1_300_000)] {
            let slices = steady(from, to);
            assert_eq!(total(&slices), to - from);
            assert!(slices.slices() <= MOST);
            assert!(to - from < 5_000 || slices.slices() > MOST / 2);
        }
        // After an hour without I/O.
        let mut late = steady(0, 100);
        late.record(Time::from_ns(3_600_000_000_000), 7);
        assert_eq!(total(&late), 101);
        assert!(late.slices() <= MOST);
    }

    #[test]
    fn threads_of_a_run_share_its_slices_and_other_runs_follow() {
        let whole = steady(0, 40_000);
        let mut threads = steady(0, 25_000);
        threads.merge(&steady(25_000, 40_000));
        assert_eq!(threads, whole);
        let mut early = steady(25_000, 40_000);
        early.merge(&steady(0, 25_000));
        assert_eq!(early, whole);
        let mut runs = steady(0, 25_000);
        runs.follow(&steady(500, 25_500));
        assert_eq!(total(&runs), 50_000);
        let longest = runs.counts.iter().max().copied().unwrap_or_default();
        let each = (1_u64 << runs.shift).div_ceil(1_000);
        assert!(
            u64::from(longest) <= each,
            "two runs beside each other in {longest}"
        );
        let mut empty = Slices::default();
        empty.follow(&whole);
        assert_eq!(total(&empty), total(&whole));
    }

    #[test]
    fn the_mean_of_a_rate_that_drifts_is_not_known() {
        let run = |drift: u64| {
            let mut slices = Slices::default();
            for us in 0..20_000 {
                slices.record(
                    Time::from_ns(us * 1_000),
                    (100 + us * drift / 20_000) as usize,
                );
            }
            slices
                .mean_error(|bucket| bucket as f64)
                .expect("enough slices")
        };
        assert!(run(0) < 1e-9);
        assert!((0.1..0.6).contains(&run(100)), "{}", run(100));
        assert_eq!(steady(0, 50).mean_error(|_| 1.0), None);
    }
}
