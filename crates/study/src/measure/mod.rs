//! Measurement of a real drive with fio: the next job, the detection of steady state, and the single document of all
//! results.
//!
//! This module does not run fio, access a device or read the clock. [`PlanProgress`] returns the next step and takes fio's
//! result, so that a measurement can be replayed from recorded results. A [`Plan`] is a file of fio jobs. The command
//! line starts fio and inspects devices.
//!
//! Source: SNIA Solid State Storage Performance Test Specification 2.0.2 (fills, rounds, steady state). Not included:
//! purging, which differs by drive and is left to the user; tests of the specification other than IOPS, throughput and
//! latency.

mod beside;
mod command;
mod course;
mod document;
mod plan;

pub(crate) use beside::{DEPTH, PACED_DEPTH, PART, THREADS};
pub use beside::{StepFigures, paced};
pub use command::{FioTarget, MeasureSettings, arguments};
pub use course::{NextStep, PlanProgress, RemainingTime, RoundsVerdict, TrackedRounds};
pub use document::{
    Document, FORMAT, MeasureOptions, MeasuredDevice, MeasuredHost, StepRecord, StepResult,
    is_ours, measured,
};
pub use plan::{HOST_JOBS, Plan, PlanStep, STANDARD_JOBS, StepPhase, names};
