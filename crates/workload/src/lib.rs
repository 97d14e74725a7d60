//! Workloads for a drive: fio jobs, traces, and ACT.

pub mod act;
mod blocks;
mod commands;
mod direction;
mod distributions;
pub mod faults;
pub mod fio;
pub mod guests;
mod in_flight;
pub mod job;
mod jobs;
mod offsets;
mod pacing;
mod passes;
mod pauses;
mod permutation;
mod places;
pub mod replay;
mod settings;
mod steady;
pub mod strided;
mod thread;
pub mod trace;
mod watch;
mod zoned;

pub use jobs::Jobs;
pub use settings::{check, cut, long_passes};
