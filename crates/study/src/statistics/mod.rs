//! Statistics that can be trusted: histograms that merge, percentiles with the ten-sample rule, anatomy by band of
//! percentiles, figures over time, steady state by the SNIA rule.

mod histogram;

pub use bands::{AnatomyBands, Band};
pub use histogram::Histogram;

mod bands;
