//! Analysis of a user's fio run: whether it was steady, its bottleneck, its distance from the rating with the reason,
//! and recommended changes.
//!
//! [`mod@file`]: facts from fio's JSON alone. [`causes`]: changes of the run that may explain a difference, each
//! simulated. [`pairs`]: two of them at once. [`change`]: a change of rate during the run, from a log. [`heat`]:
//! temperature of the drive. [`gap`]: rates that the drive cannot have. [`answer`]: all of these combined, with the drive's model. [`depth`]: settings that reach
//! the rating. [`rating`]: source of the rating. [`syncs`]: syncs as a bottleneck. [`runs`]: running and comparing a
//! case. The method: decision 0066.

pub mod answer;
mod cause;
pub mod causes;
pub mod change;
pub mod depth;
pub mod file;
pub mod gap;
pub mod heat;
pub mod pairs;
pub mod rating;
pub mod runs;
pub mod steadiness;
pub mod syncs;
