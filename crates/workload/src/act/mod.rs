//! Aerospike's certification test (ACT) as a workload: the actions of its threads and their times, against a drive
//! behind a host path.
//!
//! ACT imitates the load of a database on a drive. Small reads at a fixed rate represent the requests of its clients.
//! Large reads and writes represent writing and defragmentation. One thread makes the large reads, one the large
//! writes, each at a fixed rate that follows from the write rate. A load of 1x is 2,000 reads and 1,000 writes per
//! second (S4-138, S4-139). With records of 1,536 B and blocks of 128 KiB, 1x has 23.53 large reads and 23.53 large
//! writes per second.
//!
//! The two generations differ in their reads:
//! - Version 3 (2014 to 2018, used by S4): one thread puts requests into queues at the given rate, independent of the
//!   drive. Other threads take requests out of the queues and read. Latency counts from the time when a request
//!   enters its queue.
//! - Version 6 (since 2020): each service thread reads at its share of the rate, one read at a time. Latency counts
//!   from the time when a thread issues the read, and writes are `O_DSYNC`.
//!
//! Timing follows the program. A thread that is early sleeps until its next I/O is due, in whole microseconds, and
//! wakes up later by the kernel's timer slack. A thread that is late continues at once. Requests therefore come in
//! small bursts, as with the real program.
//!
//! Not modelled: several devices, tomb raiding, and lock contention between threads beyond
//! [`model::host::ProgramCosts`]. The generating thread and the filling of buffers have their own cores and are never
//! delayed. Pauses of milliseconds, which seem to cause the tail latency of version 3 on the fastest drives, have an
//! unknown cause (decision 0018).
//!
//! Source: the documentation and configuration of ACT (github.com/aerospike/act), versions 3.0 and 6.x; S4's page
//! about it.

mod config;
mod counts;
mod program;
mod read;

pub use config::{Config, Generation, LARGEST_RATE};
pub use counts::{BUCKETS, Buckets, Interval, KINDS, RequestKind};
pub use program::{Act, StopReason};
pub use read::from_text;
