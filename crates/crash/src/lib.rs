//! Crash-consistency tests on recorded writes: the images that a power cut can leave, and which of them a check
//! rejects.
//!
//! [`log`] is the recording of one drive. [`moments`] walks through it and stops where a power cut can leave a new
//! image; there, any subset of the undecided [`Piece`]s may be lost. [`choice`] lists subsets, [`image`] applies them,
//! and [`name`] names them. [`search`] calls a [`check`] for each image, [`shrink`] reduces failures, and [`needs`]
//! determines which kind of loss a failure needs. [`ext4`] and [`xfs`] name the files and structures that lost [`places`] belong to, and
//! [`context`] the acknowledgements and flushes around them.
//!
//! There are no files, clocks or threads: the same log and seed give the same images, names, order and verdicts. Not
//! modelled: sectors that become unreadable, pieces that read as garbage, a second power cut during recovery.

pub mod check;
pub mod choice;
pub mod context;
pub mod ext4;
pub mod image;
#[cfg(test)]
mod law;
pub mod log;
pub mod log_writes;
pub mod lost;
pub mod moments;
pub mod name;
pub mod needs;
pub mod places;
mod reduce;
pub mod search;
pub mod shrink;
pub mod xfs;

pub use image::{Fork, Image};
pub use log::{EventKind, Head, Log};
pub use lost::Lost;
pub use moments::{Assumptions, Moment, Piece, Walk};
pub use needs::{Loss, Needs};
