//! Measuring a real drive with fio: which job comes next, when its rounds are steady, and the one document that holds all of it.
//!
//! Nothing here runs fio, looks at a device or knows the time: [`Course`] says what is next and takes fio's answer, so that a
//! measurement can be played with answers that were written down. A [`Plan`] is a file of fio's jobs. Spawning fio and looking
//! at devices is the command line's.
//!
//! Source: SNIA Solid State Storage Performance Test Specification 2.0.2 (fills, rounds, steady state). Left out: purging, which
//! differs by drive and is the user's; tests of the specification other than IOPS, throughput and latency.

mod beside;
mod command;
mod course;
mod document;
mod plan;

pub(crate) use beside::{DEPTH, PACED_DEPTH, PART, THREADS};
pub use beside::{Paced, paced};
pub use command::{Settings, Target, arguments};
pub use course::{Course, Left, Tracked, Turn, Verdict};
pub use document::{Asked, Device, Document, FORMAT, Host, Measured, Taken, is_ours, measured};
pub use plan::{HOST_JOBS, Phase, Plan, STANDARD_JOBS, Step, names};
