//! Statistics: histograms that can be merged, percentiles with the ten-sample rule and confidence intervals, latency
//! breakdown by percentile band, values over time, steady state by the SNIA rule.

mod bands;
mod buckets;
mod confidence;
mod histogram;
mod measured;
pub mod series;
mod slices;
mod steady;
mod total;
mod window;

#[cfg(test)]
mod laws;

pub use bands::{AnatomyBands, BAND_EDGES, Band};
pub use confidence::PercentileInterval;
pub use histogram::Histogram;
pub use measured::{Interval, Measured, ThreadOutcome};
pub use steady::{EXCURSION, ROUNDS, SLOPE, SteadyWindow, steady_state};
pub use total::Total;
pub use window::{Window, spread_starts};
