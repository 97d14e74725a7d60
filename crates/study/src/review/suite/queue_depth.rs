//! 4 KiB random reads and writes at 29 queue depths, spread over up to four threads, because one thread cannot
//! saturate a fast drive.

use model::media::Precondition;

use super::{Effort, PointSpec, spread};
use crate::review::results::Settings;

/// 1 to 16, 18, 20, then by four to 64.
pub(super) fn depths() -> impl Iterator<Item = u32> + Clone {
    (1..=16).chain([18, 20]).chain((24..=64).step_by(4))
}

pub(super) fn points(_: Effort) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        points.extend(depths().map(|depth| point(direction, depth)));
    }
    points
}

fn point(direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("queue-depth/{direction}/{depth}"),
        chapter: "queue-depth",
        settings: Settings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(depth),
            threads: Some(depth.min(4)),
            ..Settings::default()
        },
        state: Precondition::Steady,
        options: vec![("rw", format!("rand{direction}")), ("bs", "4k".into())],
        threads: spread(depth, 4),
        rate_iops: None,
        longest: None,
        only: None,
    }
}
