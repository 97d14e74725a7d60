//! Ranking criteria of candidates, with a candidate's figure and its range over seeds.

use serde::Serialize;

use super::Candidate;
use crate::review::results::rounded;

/// Ranking criterion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Lowest cost over the years: all drives bought, and their power and place if these have a price.
    Usd,
    /// Most IOPS per watt.
    Watt,
    /// Most IOPS.
    Iops,
    /// Lowest p99 (of the slowest direction).
    P99,
    /// Most years to the rated endurance of its weakest part.
    Years,
}

impl Measure {
    /// All criteria, in the order of tables.
    pub const ALL: [Measure; 5] = [
        Measure::Usd,
        Measure::Watt,
        Measure::Iops,
        Measure::P99,
        Measure::Years,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Usd => "usd",
            Measure::Watt => "watt",
            Measure::Iops => "iops",
            Measure::P99 => "p99",
            Measure::Years => "years",
        }
    }

    /// Returns the name for sentences: "cost".
    pub const fn words(self) -> &'static str {
        match self {
            Measure::Usd => "cost",
            Measure::Watt => "IOPS for a watt",
            Measure::Iops => "IOPS",
            Measure::P99 => "p99",
            Measure::Years => "years",
        }
    }

    /// Returns a candidate's figure.
    pub fn value(self, candidate: &Candidate) -> Option<f64> {
        match self {
            Measure::Usd => candidate.usd_in_all,
            Measure::Watt => candidate.iops_per_watt,
            Measure::Iops => Some(candidate.most().0),
            Measure::P99 => candidate.p99_us,
            Measure::Years => candidate.years,
        }
    }

    /// Returns the range over seeds. Cost does not depend on the seed; years and IOPS per watt scale with IOPS.
    pub(super) fn by_seed(self, candidate: &Candidate) -> Option<[f64; 2]> {
        let value = self.value(candidate)?;
        let [least, most] = candidate.iops_by_seed;
        let rate = candidate.iops.max(1e-9);
        let ends = match self {
            Measure::Usd => [value; 2],
            Measure::Iops => candidate.most().1,
            Measure::Watt => [value * least / rate, value * most / rate],
            Measure::P99 => candidate.p99_us_by_seed.unwrap_or([value; 2]),
            Measure::Years => [
                value * rate / most.max(1e-9),
                value * rate / least.max(1e-9),
            ],
        };
        Some(ends.map(rounded))
    }

    pub(super) const fn least_is_best(self) -> bool {
        matches!(self, Measure::Usd | Measure::P99)
    }
}
