//! 4 KiB random reads and writes at the 29 queue depths from one thread: the limit of a single core (S4).

use super::queue_depth;
use crate::review::chapter::Chapter;
use crate::review::chart::{ChapterSection, Chart};
use crate::review::results::PointSettings;
use crate::review::shape::Shape;
use crate::review::suite::{Effort, PointSpec, Suite};

const ID: &str = "one-thread";

/// The chapter.
pub(crate) struct OneThread;

impl Chapter for OneThread {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Single-thread scaling: 4 KiB by queue depth"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Single-thread scaling",
            about: "4 KiB random I/O from one thread, which uses one core. With fast drives, that core is the bottleneck.",
            charts: &CHARTS,
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        let mut points = Vec::new();
        if suite != Suite::Anandtech2017 {
            return points;
        }
        for direction in ["read", "write"] {
            points.extend(queue_depth::depths().map(|depth| point(direction, depth)));
        }
        points
    }

    fn shows(&self, shape: &Shape) -> Option<PointSettings> {
        let fits = shape.is_one_way() && shape.is_small() && shape.threads == 1;
        fits.then(|| shape.settings())?
    }
}

const CHARTS: [Chart; 1] = [Chart::by_depth(
    ID,
    "4 KiB random I/O from one thread",
    "iops",
)];

fn point(direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("{ID}/{direction}/{depth}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(depth),
            threads: Some(1),
            ..PointSettings::default()
        },
        options: vec![("rw", format!("rand{direction}")), ("bs", "4k".into())],
        threads: vec![(1, depth)],
        ..PointSpec::default()
    }
}
