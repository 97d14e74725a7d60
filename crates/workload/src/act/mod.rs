//! Aerospike's certification test (ACT), as a workload: what its threads do and when, against a drive behind a host
//! path.
//!
//! ACT imitates what a database does to a drive. Small reads at a fixed rate stand for its clients' requests; large
//! reads and writes, each from one thread and each at a fixed rate that follows from the rate of writes, stand for
//! writing and defragmentation. A load of 1x is 2,000 reads and 1,000 writes a second (S4-138, S4-139); with records of
//! 1,536 B and blocks of 128 KiB that is 23.53 large reads and as many large writes a second.
//!
//! Two generations differ in what reads:
//! - version 3 (2014 to 2018, S4's): one thread puts requests into queues at the given rate, whatever the drive does;
//!   threads take them out and read. Latency counts from the moment a request is put into its queue.
//! - version 6 (since 2020): service threads each read at their share of the rate, one read at a time. Latency counts
//!   from the moment a thread issues the read, and writes are `O_DSYNC`.
//!
//! Time is kept as the program keeps it: a thread that is early sleeps until its next I/O is due, in whole microseconds,
//! and wakes late by the kernel's timer slack; one that is late goes on at once. So requests come in small bursts, as
//! they do from the real program.
//!
//! Left out: several devices, tomb raiding, and the contention of threads for the program's own locks beyond what
//! [`model::host::ProgramCosts`] says. The generating thread and the filling of buffers are given cores of their own, and nothing holds them
//! up: pauses of milliseconds, which seem to make the tails of version 3 on the fastest drives, are unknown (decision
//! 0018).
//!
//! Source: the documentation and configuration of ACT (github.com/aerospike/act), versions 3.0 and 6.x; S4's page on it.

mod config;
mod counts;
mod program;
mod read;

pub use config::{Config, Generation, LARGEST_RATE};
pub use counts::{BUCKETS, Buckets, Interval, KINDS, Kind};
pub use program::{Act, Stop};
pub use read::from_text;
