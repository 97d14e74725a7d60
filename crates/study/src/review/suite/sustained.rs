//! 4 KiB random writes from fresh until steady: the write cliff.
//!
//! A large drive takes an hour of virtual time and hundreds of millions of writes to get there, so this chapter runs
//! on a smaller drive ([`model::media::DriveConfig::shrunk`]: same channels, dies, planes and over-provisioning, smaller
//! blocks). Under uniform random writes what happens depends on the share of the drive that has been written, so the
//! time axis is stretched by the same factor; the page says by how much.

use model::media::Precondition;

use super::PointSpec;
use crate::review::results::Settings;

const THREADS: u32 = 4;
const DEPTH: u32 = 8;

/// Capacities written until the end: a drive with much spare area needs four to be steady.
pub(crate) const FILLS: f64 = 5.0;

/// The chapter's only point.
pub(crate) fn point() -> PointSpec {
    PointSpec {
        name: "sustained/random-write".into(),
        chapter: "sustained",
        settings: Settings {
            direction: Some("write"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(THREADS * DEPTH),
            threads: Some(THREADS),
            ..Settings::default()
        },
        state: Precondition::Fresh,
        options: vec![("rw", "randwrite".into()), ("bs", "4k".into())],
        threads: vec![(THREADS, DEPTH)],
        rate_iops: None,
        only: None,
    }
}
