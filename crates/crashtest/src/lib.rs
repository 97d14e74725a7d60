//! Crash-consistency tests of code that writes to a block device or to one large file: a disk in memory, for
//! `cargo test`.
//!
//! A [`Disk`] names a drive of the catalogue and records a program: a function that writes to a [`Device`], and
//! acknowledges operations with [`Acks`]. [`Recording::check`] then calls a check for every image that a power cut can
//! leave on this drive. [`Checks::assert`] panics with the smallest failure, and with the variable that repeats it.
//!
//! ```
//! use drivelab_crashtest::{Violation, Disk};
//!
//! let recording = Disk::new("950pro-256").size(1 << 20).record(|disk, acks| {
//!     for number in 1..=20_u64 {
//!         disk.write_at(4096 * number, &number.to_le_bytes())?;
//!         disk.flush()?;
//!         acks.ack(number);
//!     }
//!     Ok(())
//! })?;
//! recording
//!     .check(|disk, acks| {
//!         for number in acks.numbers() {
//!             let mut found = [0; 8];
//!             disk.read_at(4096 * number, &mut found)?;
//!             if u64::from_le_bytes(found) != number {
//!                 return Err(Violation::lost(number));
//!             }
//!         }
//!         Ok(())
//!     })
//!     .assert();
//! # Ok::<(), drivelab_crashtest::TestError>(())
//! ```
//!
//! Commands complete at once: what a drive keeps does not depend on its speed. [`Device::begin_write`] keeps a write in
//! flight. Not supported: checks that do not end; file systems, for which `drivelab crashtest` has a guest.

mod check;
mod device;
pub mod drives;
mod recording;
pub mod report;

pub use check::{Checks, VARIABLE, Verdict, Violation};
pub use crash::search::Class;
pub use device::{Device, DiskFile, PendingWrite};
pub use recording::{Acks, Disk, Recording, TestError, Tokens};
