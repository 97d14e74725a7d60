//! Values over time, from the intervals of a run.

use model::Span;

use crate::Interval;

/// Rates in one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesInterval {
    /// Seconds from the start of the run to the middle of the interval.
    pub at_seconds: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Transfer rate in bytes per second.
    pub bytes_per_second: f64,
    /// Mean latency in nanoseconds; `None` if nothing completed.
    pub mean_ns: Option<f64>,
    /// Longest latency; `None` if nothing completed.
    pub longest: Option<Span>,
}

/// Returns the sum of several series (threads, or directions), interval by interval.
pub fn merged<'a>(series: impl IntoIterator<Item = &'a [Interval]>) -> Vec<Interval> {
    let mut sum: Vec<Interval> = Vec::new();
    for one in series {
        if sum.len() < one.len() {
            sum.resize(one.len(), Interval::default());
        }
        for (sum, interval) in sum.iter_mut().zip(one) {
            sum.merge(interval);
        }
    }
    sum
}

/// Returns rates over time; `every` is the length of an interval and not zero.
pub fn moments(series: &[Interval], every: Span) -> Vec<SeriesInterval> {
    let seconds = every.seconds();
    series
        .iter()
        .enumerate()
        .map(|(index, interval)| SeriesInterval {
            at_seconds: (index as f64 + 0.5) * seconds,
            iops: interval.ios as f64 / seconds,
            bytes_per_second: interval.bytes as f64 / seconds,
            mean_ns: (interval.ios > 0).then(|| interval.latency_ns as f64 / interval.ios as f64),
            longest: (interval.ios > 0).then(|| Span::from_ns(interval.max_ns)),
        })
        .collect()
}

/// Returns the I/Os per second in rounds of `per_round` intervals, for [`super::steady_state`]. An incomplete round
/// at the end is omitted.
pub fn rounds(series: &[Interval], every: Span, per_round: usize) -> Vec<f64> {
    series
        .chunks_exact(per_round.max(1))
        .map(|round| {
            let ios: u64 = round.iter().map(|interval| interval.ios).sum();
            ios as f64 / (every.seconds() * round.len() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ios: u64) -> Interval {
        Interval {
            ios,
            bytes: ios * 4096,
            latency_ns: ios * 10_000,
            max_ns: 20_000,
        }
    }

    #[test]
    fn series_of_different_length_add_up() {
        let (a, b) = ([interval(1), interval(2)], [interval(10)]);
        let sum = merged([&a[..], &b[..]]);
        assert_eq!(sum.iter().map(|one| one.ios).collect::<Vec<_>>(), [11, 2]);
    }

    #[test]
    fn rates_are_per_second() {
        let moments = moments(&[interval(50), Interval::default()], Span::from_ms(100));
        assert_eq!(moments[0].iops, 500.0);
        assert_eq!(moments[0].mean_ns, Some(10_000.0));
        assert_eq!(moments[1].mean_ns, None);
        assert!((moments[1].at_seconds - 0.15).abs() < 1e-12);
        let five: Vec<Interval> = (1..=5).map(interval).collect();
        assert_eq!(rounds(&five, Span::from_ms(500), 2), [3.0, 7.0]);
    }
}
