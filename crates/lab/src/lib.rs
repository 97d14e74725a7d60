//! The laboratory: the only way to run a simulation.
//!
//! A [`Scenario`] (a [`Machine`], the state of its drive, [`Work`], a seed) is a value. A [`Lab`] runs one scenario,
//! many, or several in turn on a [`Bench`], and returns an [`Outcome`] for each. To add a kind of work, add a variant
//! to [`Work`] and to [`OutcomeDetail`], and a file in `work/`.

pub mod act;
mod bench;
pub mod faults;
mod gauges;
mod heat;
mod in_host;
mod lab;
mod large_pages;
mod machine;
mod member;
mod outcome;
mod phases;
mod play;
mod progress;
mod scenario;
pub mod scripted;
mod start;
mod work;

pub use bench::Bench;
pub use faults::Rebuild;
pub use gauges::OverTime;
pub use lab::{Lab, StandIn};
pub use machine::Machine;
pub use member::MemberOutcome;
pub use outcome::{Outcome, OutcomeDetail, ReplayResult};
pub use phases::{Phase, PhaseWay};
pub use progress::{ProgressCallback, in_parallel, to_the_end};
pub use scenario::{Key, Scenario, TraceReplay, Work};
pub use start::Start;
pub use work::SPEEDS;

pub use statistics::{Interval, Measured, ThreadOutcome};
