//! 4 KiB random reads and writes at the 29 queue depths from one thread: what one core can drive (S4).

use model::media::Precondition;

use super::{PointSpec, queue_depth};
use crate::review::results::Settings;

pub(super) fn points() -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        points.extend(queue_depth::depths().map(|depth| point(direction, depth)));
    }
    points
}

fn point(direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("one-thread/{direction}/{depth}"),
        chapter: "one-thread",
        settings: Settings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(depth),
            threads: Some(1),
            ..Settings::default()
        },
        state: Precondition::Steady,
        options: vec![("rw", format!("rand{direction}")), ("bs", "4k".into())],
        threads: vec![(1, depth)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}
