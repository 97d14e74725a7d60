//! How well a percentile is known: the interval between two order statistics.
//!
//! Of `n` independent samples the number beyond the true percentile is binomial, so the interval from the sample with
//! `upper` beyond it to the one with `lower` beyond it holds the true percentile with the wanted probability, whatever
//! the distribution. Latencies of one queue are not independent (a burst of slow ones counts as one event), so the true
//! interval is wider; runs from several seeds show by how much.

use model::Span;

use super::Histogram;

/// A percentile and the interval in which it lies with 95 % probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PercentileInterval {
    /// The percentile of the samples.
    pub value: Span,
    /// Lower end.
    pub low: Span,
    /// Upper end; the largest sample where too few lie beyond.
    pub high: Span,
}

/// Probability left out on each side.
const TAIL: f64 = 0.025;

impl Histogram {
    /// A percentile that may be printed, with its interval; `None` with fewer than ten samples beyond it. To be shown
    /// when fewer than a hundred lie beyond; above that the interval is narrower than a tenth of what lies beyond.
    pub fn percentile_interval(&self, percent: f64) -> Option<PercentileInterval> {
        let value = self.percentile(percent)?;
        let beyond = 1.0 - percent / 100.0;
        let (fewest, most) = binomial_interval(self.count(), beyond);
        let at = |count: u64| self.quantile((1.0 - count as f64 / self.count() as f64) * 100.0);
        Some(PercentileInterval {
            value,
            low: at(most)?.min(value),
            high: at(fewest)?.max(value),
        })
    }
}

/// The counts between which a binomial number (of `n` with probability `p`) lies with 95 % probability: at most `TAIL`
/// below the first and above the second.
fn binomial_interval(n: u64, p: f64) -> (u64, u64) {
    if p > 0.5 {
        let (fewest, most) = binomial_interval(n, 1.0 - p);
        return (n - most, n - fewest);
    }
    let mean = n as f64 * p;
    if mean > 500.0 {
        // The normal is exact to a fraction of a sample here.
        let spread = 1.959_964 * libm::sqrt(mean * (1.0 - p));
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
    use model::Stream;

    #[test]
    fn the_interval_holds_the_truth_nineteen_times_in_twenty() {
        let mut stream = Stream::new(3, "test");
        let mean = Span::from_us(100);
        for percent in [90.0, 99.0] {
            // Exponential: the percentile is known.
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
            // 95 %, a little more because counts are whole, less three standard errors of the trials.
            assert!((930..=985).contains(&held), "{percent}: {held} of {trials}");
        }
    }

    #[test]
    fn the_binomial_interval_has_its_probability() {
        // Poisson with mean 10, from tables: P(X <= 3) = 0.0103, P(X <= 4) = 0.0293, P(X <= 16) = 0.9730, 17: 0.9857.
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
