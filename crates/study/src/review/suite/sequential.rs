//! 128 KiB sequential reads and writes by queue depth, one thread; on drives that were overwritten at random before, as
//! all others of a review, and on drives that were filled in order, which is what data sheets mean.

use model::media::Precondition;

use super::PointSpec;
use crate::review::results::Settings;

/// Enough to see a drive saturate.
pub(super) const DEPTHS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// The same with fewer: the shape is known from there.
const FILLED_DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

pub(super) fn points(depths: impl IntoIterator<Item = u32> + Clone) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        let depths = depths.clone().into_iter();
        points.extend(
            depths.map(|depth| point("sequential", Precondition::Steady, direction, depth)),
        );
    }
    points
}

pub(super) fn filled_points() -> Vec<PointSpec> {
    let mut points = Vec::new();
    for direction in ["read", "write"] {
        let at = |depth| point("sequential-filled", Precondition::Filled, direction, depth);
        points.extend(FILLED_DEPTHS.map(at));
    }
    points
}

fn point(
    chapter: &'static str,
    state: Precondition,
    direction: &'static str,
    depth: u32,
) -> PointSpec {
    PointSpec {
        name: format!("{chapter}/{direction}/{depth}"),
        chapter,
        settings: Settings {
            direction: Some(direction),
            pattern: Some("sequential"),
            block_bytes: Some(128 << 10),
            queue_depth: Some(depth),
            threads: Some(1),
            ..Settings::default()
        },
        state,
        options: vec![("rw", direction.into()), ("bs", "128k".into())],
        threads: vec![(1, depth)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}
