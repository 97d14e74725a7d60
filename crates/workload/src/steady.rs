//! Criterion of fio's `steadystate`.

use model::Span;
use serde::{Deserialize, Serialize};

/// Metric of a `steadystate` criterion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SteadyMetric {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency.
    Latency,
}

fn one_second() -> Span {
    Span::from_seconds(1.0)
}

/// `steadystate` and its companions: end the job when it is in steady state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SteadyState {
    /// Metric, sampled once per interval.
    pub metric: SteadyMetric,
    /// Whether the slope of a least-squares fit is tested instead of the largest deviation from the mean.
    pub slope: bool,
    /// Maximum deviation or slope.
    pub limit: f64,
    /// Whether `limit` is a percentage of the mean.
    pub percent: bool,
    /// Length of the window.
    pub duration: Span,
    /// Time before the window begins.
    pub ramp: Span,
    /// Duration of one sample (`steadystate_check_interval`).
    #[serde(default = "one_second")]
    pub interval: Span,
}
