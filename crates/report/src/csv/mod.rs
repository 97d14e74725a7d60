//! Results as one flat table for pandas, R, DuckDB or a spreadsheet; `pandas.read_csv(FILE)` is sufficient to read it.
//!
//! A line is a drive, a workload and a direction; `docs/csv.md` describes each column. The unit is the ending of a
//! column's name, a cell without a figure is empty, and figures have six significant digits. [`review`], [`run`] and
//! [`replay`] have the same columns, so their files can be concatenated. [`act()`], [`reproduction()`], [`fit()`],
//! [`fleet()`] and [`decide`] have columns of their own, as has the table of a run over time ([`over_time()`]).
//! Latency breakdowns are only in the JSON.

mod act;
pub mod decide;
mod fit;
mod fleet;
mod over_time;
mod reproduction;
mod table;
mod workload;

pub use act::act;
pub use fit::fit;
pub use fleet::fleet;
pub use over_time::over_time;
pub use reproduction::reproduction;
pub use table::{CsvColumn, Table};
pub use workload::{ReplayTable, Run, replay, review, run};

use serde::Serialize;

use study::review::results::LatencySummary;

/// The columns of a latency distribution, in microseconds.
///
/// The low and high of a percentile are the ends of its 95 % confidence interval.
#[derive(Clone, Debug, Default, Serialize)]
struct LatencyColumns {
    mean_us: Option<f64>,
    min_us: Option<f64>,
    p50_us: Option<f64>,
    p50_low_us: Option<f64>,
    p50_high_us: Option<f64>,
    p99_us: Option<f64>,
    p99_low_us: Option<f64>,
    p99_high_us: Option<f64>,
    p99_9_us: Option<f64>,
    p99_9_low_us: Option<f64>,
    p99_9_high_us: Option<f64>,
    p99_99_us: Option<f64>,
    p99_99_low_us: Option<f64>,
    p99_99_high_us: Option<f64>,
    p99_999_us: Option<f64>,
    p99_999_low_us: Option<f64>,
    p99_999_high_us: Option<f64>,
    max_us: Option<f64>,
}

impl From<&LatencySummary> for LatencyColumns {
    fn from(latency: &LatencySummary) -> LatencyColumns {
        let [p50, p99, p99_9, p99_99, p99_999] = latency.intervals_us;
        let low = |ends: Option<[f64; 2]>| ends.map(|[low, _]| low);
        let high = |ends: Option<[f64; 2]>| ends.map(|[_, high]| high);
        LatencyColumns {
            mean_us: Some(latency.mean_us),
            min_us: Some(latency.min_us),
            p50_us: latency.p50_us,
            p50_low_us: low(p50),
            p50_high_us: high(p50),
            p99_us: latency.p99_us,
            p99_low_us: low(p99),
            p99_high_us: high(p99),
            p99_9_us: latency.p99_9_us,
            p99_9_low_us: low(p99_9),
            p99_9_high_us: high(p99_9),
            p99_99_us: latency.p99_99_us,
            p99_99_low_us: low(p99_99),
            p99_99_high_us: high(p99_99),
            p99_999_us: latency.p99_999_us,
            p99_999_low_us: low(p99_999),
            p99_999_high_us: high(p99_999),
            max_us: Some(latency.max_us),
        }
    }
}
