//! Drives and host paths as state machines without clocks, threads or payload data.
//!
//! A [`Device`] takes [`Command`]s and returns [`Completion`]s; [`engine::run`] drives one in virtual time from an
//! [`engine::Workload`]. Nothing in this crate reads a clock, a file or an environment variable. Nothing starts a
//! thread or depends on the order of a hash map. The same configuration and seed therefore give the same bytes on every
//! machine; for this reason, floating-point functions come from `libm`. The crate is `no_std`, so that the compiler
//! enforces these rules; it uses `alloc`.

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
pub mod time;

pub use anatomy::{Anatomy, Part};
pub use command::{Command, CommandId, Completion, Op, Payload, Status};
pub use device::{Capacity, Device, Gauge, Gauges, Range};
pub use random::Stream;
pub use time::{Span, Time};
