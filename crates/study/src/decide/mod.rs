//! Decisions: a buyer's and an operator's questions, each answered from runs.
//!
//! [`max`]: the highest load within limits; [`life`]: how long drives last at a load; [`choose`]: which to take; [`explain`]: why a
//! run came out as it did; [`check`]: whether one is good enough for a piece of software; [`size`]: how
//! large a log or a read cache should be. Limits are read by
//! [`slo`], and figures are held against them in [`tally`]. A load is a user's own, one with a name ([`named`], [`work`]), or of a given
//! height ([`load`]). Costs are the user's ([`prices`]).

pub mod check;
pub mod choose;
pub mod explain;
pub mod life;
pub mod load;
pub mod max;
pub mod named;
pub mod prices;
pub mod size;
pub mod slo;
pub mod tally;
pub mod work;

use lab::Outcome;

/// I/Os a second over all threads and directions.
pub(crate) fn rate_of(outcome: &Outcome) -> f64 {
    crate::review::rate_of(outcome)
}
