//! Uncertainty of a percentile: the interval between two order statistics.
//!
//! For `n` independent samples, the number of samples beyond the true percentile is binomial. Two order statistics
//! therefore enclose the true percentile with the required probability, for any distribution: the sample with `upper`
//! samples beyond it, and the one with `lower` beyond it. Latencies of one queue are not independent (a burst of slow
//! I/Os counts as one event). `n` is therefore divided by the design effect, which the slices of the run show (see
//! [`super::slices`]), if completion times are known. The interval does not include variation between runs that no
//! single run shows (a pause too rare to occur in it): runs with several seeds show this variation.

use model::Span;

use super::Histogram;

/// A percentile with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PercentileInterval {
    /// The percentile of the samples.
    pub value: Span,
    /// Lower end.
    pub low: Span,
    /// Upper end; the largest sample if too few samples lie beyond.
    pub high: Span,
}

/// Quantile of the normal distribution for a two-sided 95 % interval.
pub(super) const NORMAL: f64 = 1.959_964;

/// Probability excluded on each side.
const TAIL: f64 = 0.025;

impl Histogram {
    /// Returns a percentile that may be printed, with its interval; `None` with fewer than ten samples beyond it. The
    /// interval is worth showing if fewer than a hundred samples lie beyond; with more, it is narrower than a tenth
    /// of the samples beyond.
    pub fn percentile_interval(&self, percent: f64) -> Option<PercentileInterval> {
        let value = self.percentile(percent)?;
        let beyond = 1.0 - percent / 100.0;
        let independent = (self.count() as f64 / self.design_effect(percent))
            .round()
            .max(1.0);
        let (fewest, most) = binomial_interval(independent as u64, beyond);
        let at = |count: u64| self.quantile((1.0 - count as f64 / independent) * 100.0);
        Some(PercentileInterval {
            value,
            low: at(most)?.min(value),
            high: at(fewest)?.max(value),
        })
    }
}

/// Returns the 95 % range of a binomial number (of `n` with probability `p`): at most `TAIL` below the first value
/// and above the second.
fn binomial_interval(n: u64, p: f64) -> (u64, u64) {
    if p > 0.5 {
        let (fewest, most) = binomial_interval(n, 1.0 - p);
        return (n - most, n - fewest);
    }
    let mean = n as f64 * p;
    if mean > 500.0 {
        // The normal approximation is exact to a fraction of a sample here.
        let spread = NORMAL * libm::sqrt(mean * (1.0 - p));
        return ((mean - spread) as u64, (mean + spread) as u64 + 1);
    }
    let mut probability = libm::exp(n as f64 * libm::log1p(-p));
    let mut below = 0.0;
    let mut fewest = 0;
    for count in 0..=n {
        if below + probability <= TAIL {
            fewest = count + 1;
        }
        below += probability;
        if below >= 1.0 - TAIL {
            return (fewest.min(count), count + 1);
        }
        probability *= (n - count) as f64 / (count + 1) as f64 * p / (1.0 - p);
    }
    (fewest, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Stream, Time};

    #[test]
    fn the_interval_holds_the_truth_nineteen_times_in_twenty() {
        let mut stream = Stream::new(3, "test");
        let mean = Span::from_us(100);
        for percent in [90.0, 99.0] {
            // Exponential distribution: the true percentile is known.
            let truth = -libm::log(1.0 - percent / 100.0) * mean.ns() as f64;
            let mut held = 0;
            let trials = 1000;
            for _ in 0..trials {
                let mut histogram = Histogram::default();
                for _ in 0..3000 {
                    histogram.record(stream.exponential(mean));
                }
                let interval = histogram
                    .percentile_interval(percent)
                    .expect("thirty lie beyond");
                let within =
                    (interval.low.ns() as f64) <= truth && truth <= interval.high.ns() as f64;
                held += u32::from(within);
            }
            // 95 %, slightly more because counts are whole numbers, minus three standard errors of the trials.
            assert!((930..=985).contains(&held), "{percent}: {held} of {trials}");
        }
    }

    /// Simulates samples of 10 us. `clusters` clusters start per thousand samples; each has `length` samples of 100
    /// us and more. Returns how many of 400 intervals contain the 99th percentile, and their total length.
    fn clustered(clusters: f64, length: u32, told: bool) -> (u32, f64) {
        let mut stream = Stream::new(5, "clusters");
        let draw = |stream: &mut Stream, into: &mut Histogram, samples: u64| {
            let mut left = 0;
            for index in 0..samples {
                if left == 0 && stream.chance(clusters / 1000.0) {
                    left = length;
                }
                let slow = left > 0;
                left = left.saturating_sub(1);
                let mean = Span::from_us(if slow { 100 } else { 10 });
                let latency = mean + stream.exponential(mean);
                match told {
                    true => into.record_at(latency, Time::from_ns(index * 10_000)),
                    false => into.record(latency),
                }
            }
        };
        let mut all = Histogram::default();
        draw(&mut stream, &mut all, 2_000_000);
        let truth = all.quantile(99.0).expect("samples");
        let (mut held, mut width) = (0, 0.0);
        for _ in 0..400 {
            let mut run = Histogram::default();
            draw(&mut stream, &mut run, 6_000);
            let known = run.percentile_interval(99.0).expect("sixty lie beyond");
            held += u32::from(known.low <= truth && truth <= known.high);
            width += known.high.us() - known.low.us();
        }
        (held, width)
    }

    #[test]
    fn samples_in_clusters_count_as_fewer() {
        let (held, _) = clustered(1.0, 30, true);
        assert!(held >= 368, "{held} of 400");
        let (held, _) = clustered(1.0, 30, false);
        assert!(held < 300, "taken to be independent: {held} of 400");
    }

    #[test]
    fn independent_samples_lose_little_by_being_timed() {
        let (held, width) = clustered(30.0, 1, true);
        let (_, plain) = clustered(30.0, 1, false);
        assert!((368..400).contains(&held), "{held} of 400");
        assert!(width < 1.35 * plain, "{width} against {plain} us");
    }

    #[test]
    fn the_binomial_interval_has_its_probability() {
        // Poisson with mean 10, from tables: P(X <= 3) = 0.0103, P(X <= 4) = 0.0293, P(X <= 16) = 0.9730, P(X <= 17)
        // = 0.9857.
        assert_eq!(binomial_interval(10_000_000, 1e-6), (4, 18));
        let (few, many) = binomial_interval(1_000_000, 1e-3);
        assert_eq!(binomial_interval(40, 1.0), (39, 40));
        assert!((936..=940).contains(&few) && (1061..=1064).contains(&many));
    }

    #[test]
    fn few_samples_have_no_interval() {
        let mut histogram = Histogram::default();
        for ns in 0..999 {
            histogram.record(Span::from_ns(ns));
        }
        assert!(
            histogram.percentile_interval(99.0).is_some(),
            "ten lie beyond"
        );
        assert_eq!(histogram.percentile_interval(99.9), None);
    }
}
