//! Decisions: a buyer's and an operator's questions, each answered from runs.
//!
//! [`max`]: the highest load within limits; [`mix`]: reads and writes mixed, from reads alone to writes alone; [`fill`]: how long writes
//! stay fast; [`life`]: how long drives last at a load; [`fleet`]: when real drives end, from
//! their SMART data; [`choose`]: which to take; [`explain`]: why a
//! run came out as it did; [`check`]: whether one is good enough for a piece of software; [`size`]: how
//! large a log, a write buffer or a read cache should be. Limits are read by
//! [`slo`], and figures are held against them in [`tally`]. A load is a user's own, one with a name ([`named`], [`profile`], [`work`]),
//! or of a given height ([`load`]). Costs are the user's ([`prices`]), over a term ([`cost`]).

pub mod binds;
mod buffer;
pub mod check;
pub mod choose;
pub mod cost;
pub mod explain;
pub mod fill;
pub mod fleet;
pub mod life;
pub mod likeness;
pub mod load;
pub mod max;
pub mod mix;
pub mod named;
mod place;
pub mod prices;
pub mod profile;
pub mod ranges;
pub mod rate;
pub mod size;
pub mod slo;
pub mod syncs;
pub mod table_of_s3;
pub mod tally;
pub mod work;

use lab::Outcome;

use crate::review::results::rounded;

/// I/Os a second over all threads and directions.
pub(crate) fn rate_of(outcome: &Outcome) -> f64 {
    crate::review::rate_of(outcome)
}

/// Mean, least and greatest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> [f64; 3] {
    let count = values.clone().count().max(1) as f64;
    let sum: f64 = values.clone().sum();
    let least = values.clone().fold(f64::INFINITY, f64::min);
    [sum / count, least, values.fold(0.0, f64::max)].map(rounded)
}
