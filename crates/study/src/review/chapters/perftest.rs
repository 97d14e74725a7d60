//! `nvmecontrol perftest` of FreeBSD, as S2 ran it: 32 kernel threads, each with one command in flight, which is
//! resubmitted by the interrupt of its completion; here from 512 B to 128 KiB.
//!
//! Each thread always accesses the same place, 2,048 sectors after that of the previous thread (1 MiB, with sectors of
//! 512 B). So only 32 places of a drive are read and written, and a drive with a cache would serve all I/Os from it.
//! The tool prints MiB/s as MB/s.
//!
//! Source: the driver's `nvme_ns_io_test` (FreeBSD, sys/dev/nvme), S2's command lines.

use model::Span;

use crate::review::chapter::Chapter;
use crate::review::chart::ChapterSection;
use crate::review::measure::Keep;
use crate::review::results::PointSettings;
use crate::review::suite::{Effort, PointSpec, Suite, size};

const ID: &str = "perftest";

/// The chapter.
pub(crate) struct Perftest;

impl Chapter for Perftest {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "nvmecontrol perftest: 32 threads"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "nvmecontrol perftest",
            about: "32 threads in FreeBSD's kernel, each with one command in flight, always at the same address. There is \
                    no file system and no system call: the result is the limit of drive and driver.",
            charts: &[],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Perftest => points(),
            _ => Vec::new(),
        }
    }
}

const THREADS: u32 = 32;
const STRIDE: u64 = 2_048 * 512;
const LONGEST: Span = Span::from_ms(30_000);

fn points() -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        points.extend((9..=17).map(|power| point(direction, 1 << power)));
    }
    points
}

fn point(direction: &'static str, bytes: u64) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{direction}, {}", size(bytes)),
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("one place a thread"),
            block_bytes: Some(bytes),
            queue_depth: Some(THREADS),
            threads: Some(THREADS),
            headline: &["iops", "mb_s"],
            ..PointSettings::default()
        },
        options: vec![
            ("rw", direction.into()),
            ("bs", size(bytes)),
            ("size", size(bytes)),
            ("offset_increment", size(STRIDE)),
        ],
        threads: vec![(THREADS, 1)],
        longest: Some(LONGEST),
        keep: Keep { bands: false },
        ..PointSpec::default()
    }
}
