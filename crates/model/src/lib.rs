//! Drives, host paths and tiers as state machines without clocks, threads or bytes.
//!
//! A [`Device`] takes [`Command`]s and gives back [`Completion`]s; [`engine::run`] drives one in virtual time from an
//! [`engine::Workload`]. Nothing in this crate reads a clock, a file or an environment variable, starts a thread, or
//! depends on the order of a hash map: the same configuration and seed give the same bytes on every machine
//! (floating-point functions come from `libm` for that reason). It has no standard library, so that the compiler holds
//! this; it allocates.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod anatomy;
pub mod command;
pub mod conformance;
pub mod data;
pub mod device;
pub mod engine;
pub mod ftl;
pub mod host;
pub mod management;
pub mod media;
pub mod random;
pub mod tier;
pub mod time;

pub use anatomy::{Anatomy, Part};
pub use command::{Command, CommandId, Completion, Op, Payload, Status};
pub use device::{Capacity, Device, Gauge, Gauges, Range};
pub use media::Drive;
pub use random::Stream;
pub use time::{Span, Time};
