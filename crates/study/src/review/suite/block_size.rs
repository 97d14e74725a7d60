//! Block sizes from 512 B to 1 MiB at queue depth 1: random and sequential, reads and writes, aligned to the block
//! and to 512 B (where a read-modify-write or a second unit of the medium shows).

use model::media::Precondition;

use super::{Effort, PointSpec, size};
use crate::review::results::Settings;

pub(super) fn points(_: Effort) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for pattern in ["random", "sequential"] {
        for direction in ["read", "write"] {
            for alignment in ["block", "sector"] {
                for power in 9..=20 {
                    points.push(point(pattern, direction, alignment, 1 << power));
                }
            }
        }
    }
    points
}

fn point(
    pattern: &'static str,
    direction: &'static str,
    alignment: &'static str,
    bytes: u64,
) -> PointSpec {
    let random = pattern == "random";
    let sector = alignment == "sector";
    let rw = if random {
        format!("rand{direction}")
    } else {
        direction.to_owned()
    };
    let mut options = vec![("rw", rw), ("bs", size(bytes))];
    if sector && random {
        options.push(("blockalign", "512".into()));
    } else if sector {
        // Sequential blocks keep the misalignment they begin with.
        options.push(("blockalign", "512".into()));
        options.push(("offset", "512".into()));
    }
    PointSpec {
        name: format!(
            "block-size/{pattern}-{direction}/{alignment}/{}",
            size(bytes)
        ),
        chapter: "block-size",
        settings: Settings {
            direction: Some(direction),
            pattern: Some(pattern),
            block_bytes: Some(bytes),
            align_bytes: Some(if sector { 512 } else { bytes }),
            alignment: Some(alignment),
            queue_depth: Some(1),
            threads: Some(1),
            ..Settings::default()
        },
        state: Precondition::Steady,
        options,
        threads: vec![(1, 1)],
        rate_iops: None,
        longest: None,
        only: None,
    }
}
