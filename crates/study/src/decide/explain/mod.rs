//! A user's fio run taken apart: whether it was steady, what bound it, how far from the rating it was and why, and what to change.
//!
//! [`mod@file`]: what fio's JSON says by itself. [`causes`]: changes of the run that may explain a difference, each simulated.
//! [`pairs`]: two of them at once; [`change`]: what became slower while it ran, from a log; [`heat`]: how warm the drive becomes. [`answer`]: both together, with the drive's model. [`depth`]: what reaches the rating; [`rating`]: where that comes from;
//! [`syncs`]: syncs as a bound; [`runs`]: how a case is run and compared. The method: decision 0070.

pub mod answer;
pub mod causes;
pub mod change;
pub mod depth;
pub mod file;
pub mod heat;
pub mod pairs;
pub mod rating;
pub mod runs;
pub mod steadiness;
pub mod syncs;
