//! Decisions: questions of buyers and operators, each answered from runs.
//!
//! [`max`]: the highest load within limits. [`mix`]: mixed reads and writes. [`fill`]: how long writes stay fast.
//! [`life`]: lifetime of drives at a load. [`fleet`]: end of life of real drives, from their SMART data. [`choose`]:
//! the recommended drive. [`explain`]: analysis of a measured run. [`check`]: comparison with an application's
//! published minimum. [`size`]: size of a log, a write buffer or a read cache. [`slo`] parses limits, and [`tally`]
//! compares figures with them. A load is a user's own, a named one ([`named`], [`profile`], [`work`]), or of a given
//! height ([`load`]), or writes at a rate ([`writing`]). Costs are the user's ([`prices`]), over a term ([`cost`]).

mod arrivals;
pub mod binds;
mod buffer;
pub mod check;
pub mod choose;
pub mod cost;
pub mod explain;
pub mod failure_rates;
pub mod feasibility;
pub mod few_writes;
pub mod fill;
pub mod fleet;
pub mod half_rate;
pub mod life;
pub mod life_part;
pub mod likeness;
pub mod load;
pub mod max;
pub mod memory_need;
pub mod mix;
pub mod named;
pub mod odds;
pub mod pauses;
mod place;
pub mod price_list;
pub mod prices;
pub mod profile;
pub mod ranges;
pub mod rate;
pub mod read_only;
pub mod screening;
pub mod size;
pub mod slc;
pub mod slo;
pub mod slot;
mod smaller;
pub mod syncs;
pub mod table_of_s3;
pub mod tally;
pub mod work;
pub mod writing;
pub mod zilstat;
pub mod zpool_iostat;

use lab::Outcome;

use crate::review::results::rounded;

/// Returns the IOPS over all threads and directions.
pub(crate) fn rate_of(outcome: &Outcome) -> f64 {
    crate::review::rate_of(outcome)
}

/// Returns mean, least and greatest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> [f64; 3] {
    let count = values.clone().count().max(1) as f64;
    let sum: f64 = values.clone().sum();
    let least = values.clone().fold(f64::INFINITY, f64::min);
    [sum / count, least, values.fold(0.0, f64::max)].map(rounded)
}
