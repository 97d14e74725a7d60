//! 4 KiB random mixes from reads only to writes only, by tens, with 16 threads that each have one I/O in flight.

use model::media::Precondition;

use super::PointSpec;
use crate::review::results::Settings;

pub(super) fn points() -> Vec<PointSpec> {
    (0..=10).rev().map(|tens| point(tens * 10)).collect()
}

fn point(read_percent: u32) -> PointSpec {
    PointSpec {
        name: format!("mix/{read_percent}"),
        chapter: "mix",
        settings: Settings {
            direction: Some("mix"),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(16),
            threads: Some(16),
            read_percent: Some(read_percent),
            ..Settings::default()
        },
        state: Precondition::Steady,
        options: vec![
            ("rw", "randrw".into()),
            ("rwmixread", read_percent.to_string()),
            ("bs", "4k".into()),
        ],
        threads: vec![(16, 1)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}
