//! 128 KiB sequential reads and writes by queue depth, one thread.

use model::media::Precondition;

use super::PointSpec;
use crate::review::results::Settings;

/// Enough to see a drive saturate.
pub(super) const DEPTHS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

pub(super) fn points(depths: impl IntoIterator<Item = u32> + Clone) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        let depths = depths.clone().into_iter();
        points.extend(depths.map(|depth| point(direction, depth)));
    }
    points
}

fn point(direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("sequential/{direction}/{depth}"),
        chapter: "sequential",
        settings: Settings {
            direction: Some(direction),
            pattern: Some("sequential"),
            block_bytes: Some(128 << 10),
            queue_depth: Some(depth),
            threads: Some(1),
            ..Settings::default()
        },
        state: Precondition::Steady,
        options: vec![("rw", direction.into()), ("bs", "128k".into())],
        threads: vec![(1, depth)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}
