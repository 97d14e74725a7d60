//! `nvmecontrol perftest` of FreeBSD, as S2 ran it: 32 threads in the kernel, each with one command in flight that its
//! completion's interrupt sends again; here from 512 B to 128 KiB.
//!
//! Each thread keeps to one place: 2,048 sectors (1 MiB, with sectors of 512 B) after that of the one before. So a drive
//! is read and written at 32 places only, and one with a cache would never leave it. What the tool prints as MB/s are
//! MiB/s.
//!
//! Source: the driver's `nvme_ns_io_test` (FreeBSD, sys/dev/nvme), S2's command lines.

use model::Span;
use model::media::Precondition;

use super::{PointSpec, size};
use crate::review::results::Settings;

const THREADS: u32 = 32;
const STRIDE: u64 = 2_048 * 512;
const LONGEST: Span = Span::from_ms(30_000);

pub(super) fn points() -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        points.extend((9..=17).map(|power| point(direction, 1 << power)));
    }
    points
}

fn point(direction: &'static str, bytes: u64) -> PointSpec {
    PointSpec {
        name: format!("perftest/{direction}, {}", size(bytes)),
        chapter: "perftest",
        settings: Settings {
            direction: Some(direction),
            pattern: Some("one place a thread"),
            block_bytes: Some(bytes),
            queue_depth: Some(THREADS),
            threads: Some(THREADS),
            headline: &["iops", "mb_s"],
            ..Settings::default()
        },
        state: Precondition::Steady,
        options: vec![
            ("rw", direction.into()),
            ("bs", size(bytes)),
            ("size", size(bytes)),
            ("offset_increment", size(STRIDE)),
        ],
        threads: vec![(THREADS, 1)],
        rate_iops: None,
        longest: Some(LONGEST),
        only: None,
    }
}
