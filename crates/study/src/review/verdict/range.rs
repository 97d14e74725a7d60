//! A figure with its range over the seeds.

use text::digits::fixed;

/// If the ends are closer than this share of the figure, the range is not printed.
const SAME: f64 = 0.01;

/// A figure with its range over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeedRange {
    /// The figure over all seeds.
    pub(crate) value: f64,
    /// The least of it and of each seed.
    pub(crate) low: f64,
    /// The greatest of it and of each seed.
    pub(crate) high: f64,
}

impl SeedRange {
    /// Returns the range of a figure and of the figures of each seed.
    pub(crate) fn new(value: f64, each: &[f64]) -> SeedRange {
        SeedRange {
            value,
            // The maximum over all seeds need not lie within the range of the seeds.
            low: each.iter().copied().fold(value, f64::min),
            high: each.iter().copied().fold(value, f64::max),
        }
    }

    /// Checks whether the range is too narrow to be printed.
    fn is_one(&self) -> bool {
        let off = |end: f64| (end - self.value).abs() > SAME * self.value.abs();
        !off(self.low) && !off(self.high)
    }

    /// Returns text such as `80 us`, or `862 us (401 us to 1.3 ms)`.
    pub(crate) fn words(&self, write: impl Fn(f64) -> String) -> String {
        let [value, low, high] = [self.value, self.low, self.high].map(write);
        if self.is_one() || low == high {
            return value;
        }
        format!("{value} ({low} to {high})")
    }

    /// Returns text such as `11 times`, `7 to 22 times`.
    pub(crate) fn times(&self) -> String {
        let (low, high) = (digits(self.low), digits(self.high));
        match self.is_one() || low == high {
            true => format!("{} times", digits(self.value)),
            false => format!("{low} to {high} times"),
        }
    }
}

fn digits(factor: f64) -> String {
    fixed(factor, 2, 1)
}

/// Returns text such as `60 %`, `60 % (55 to 66 %)`.
pub(crate) fn percent(share: SeedRange) -> String {
    let [value, low, high] =
        [share.value, share.low, share.high].map(|share| format!("{:.0}", share * 100.0));
    match low == high {
        true => format!("{value} %"),
        false => format!("{value} % ({low} to {high} %)"),
    }
}

/// Returns the ends of a setting: `QD5`, or `QD5 to QD7`.
pub(crate) fn span(ends: (u64, u64), write: impl Fn(u64) -> String) -> String {
    match ends {
        (from, to) if from == to => write(from),
        (from, to) => format!("{} to {}", write(from), write(to)),
    }
}

/// Returns the least and the greatest value; `None` if one is missing.
pub(crate) fn ends(all: impl Iterator<Item = Option<u64>>) -> Option<(u64, u64)> {
    let all: Vec<u64> = all.collect::<Option<_>>()?;
    Some((*all.iter().min()?, *all.iter().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_told_where_seeds_differ() {
        let us = |us: f64| format!("{us} us");
        let chance = SeedRange::new(862.0, &[862.0, 401.0, 1300.0]);
        assert_eq!(chance.words(us), "862 us (401 us to 1300 us)");
        assert_eq!(SeedRange::new(80.0, &[80.0, 80.3, 79.8]).words(us), "80 us");
        assert_eq!(
            SeedRange::new(11.0, &[7.0, 22.0]).times(),
            "7.0 to 22 times"
        );
        assert_eq!(SeedRange::new(157.0, &[158.6, 160.0]).low, 157.0);
        assert_eq!(SeedRange::new(3.2, &[3.2, 3.21]).times(), "3.2 times");
        let depth = |depth| format!("QD{depth}");
        assert_eq!(span((5, 7), depth), "QD5 to QD7");
        assert_eq!(span((5, 5), depth), "QD5");
        assert_eq!(ends([Some(4), None].into_iter()), None);
    }
}
