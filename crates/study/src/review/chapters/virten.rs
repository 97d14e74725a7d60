//! The eight tests of S0: large sequential writes and reads, random writes and reads by depth, and latency at a fixed
//! arrival rate. Each runs for the time that the source states, or 30 seconds if it states none.
//!
//! Errors of the source are corrected: test 6 reads (the text says write), test 7 runs at 5,000 IOPS (the text says
//! 500), and tests without `--runtime` end. Test 1 is `dd` through the page cache, whose write-back keeps many
//! requests in flight: it is run as 1 MiB writes at QD32.
//!
//! The source wrote to a virtual disk of unknown size. On the 950 PRO the disk left free space: on a full drive, 30
//! seconds at each depth would use up the spare blocks before the last test. But the last test was the fastest
//! (S0-070 to S0-072). So writes begin on a new drive; reads find data everywhere.
//!
//! Latencies begin with the submission, as in all chapters. The source's fio excludes the submission, which takes 8 us
//! in this guest.

use model::Span;
use model::media::Precondition;

use crate::review::chapter::Chapter;
use crate::review::chart::ChapterSection;
use crate::review::results::PointSettings;
use crate::review::suite::{Effort, PointSpec, Suite, size};

const ID: &str = "virten";

/// The chapter.
pub(crate) struct Virten;

impl Chapter for Virten {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Eight tests in a virtual machine"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Eight tests in a virtual machine",
            about: "Large sequential writes and reads, random writes and reads at three depths, and latency at a fixed \
                    rate, each with the duration of the published test. Test 1 of the article is dd through the page cache. \
                    Writes begin on a new drive. Latency includes the submission, which the article's fio leaves out: 8 µs in its guest.",
            charts: &[],
        }
    }

    fn points(&self, suite: Suite, _: Effort) -> Vec<PointSpec> {
        match suite {
            Suite::Virten2017 => points(),
            _ => Vec::new(),
        }
    }
}

const USUAL: Span = Span::from_ms(30_000);
const PACED: Span = Span::from_ms(60_000);
const PERCENTILES: &[&str] = &["p99_us", "p99_99_us"];

fn points() -> Vec<PointSpec> {
    let mut points = vec![
        large(1, "write", 1 << 20, 32, "dd of 1 MiB blocks"),
        large(2, "write", 4 << 20, 1, "4 MiB sequential write, QD1"),
        large(3, "write", 4 << 20, 32, "4 MiB sequential write, QD32"),
    ];
    points.extend([1, 4, 32].map(|depth| random(4, "write", depth)));
    points.extend([1, 4, 32].map(|depth| {
        let name = format!("4 MiB sequential read, QD{depth}");
        large(5, "read", 4 << 20, depth, &name)
    }));
    points.extend([1, 4, 32].map(|depth| random(6, "read", depth)));
    points.push(paced(7, "read", 5_000));
    points.push(paced(8, "write", 1_000));
    points
}

fn large(test: u32, direction: &'static str, bytes: u64, depth: u32, name: &str) -> PointSpec {
    let mut point = point(test, name, direction, depth);
    point.settings.pattern = Some("sequential");
    point.settings.block_bytes = Some(bytes);
    point.settings.headline = &["mb_s"];
    point.options = vec![("rw", direction.into()), ("bs", size(bytes))];
    point
}

fn random(test: u32, direction: &'static str, depth: u32) -> PointSpec {
    let name = format!("4 KiB random {direction}, QD{depth}");
    point(test, &name, direction, depth)
}

fn paced(test: u32, direction: &'static str, rate: u64) -> PointSpec {
    let name = format!("4 KiB random {direction}, {rate} a second");
    let mut point = point(test, &name, direction, 1);
    point.settings.offered_iops = Some(rate);
    point.settings.headline = PERCENTILES;
    // Evenly spaced, as is fio's default.
    point.options.push(("rate_iops", rate.to_string()));
    point.longest = Some(PACED);
    point
}

/// Returns a point with 4 KiB random I/O from one thread.
fn point(test: u32, name: &str, direction: &'static str, depth: u32) -> PointSpec {
    PointSpec {
        name: format!("{ID}/test {test}, {name}"),
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            queue_depth: Some(depth),
            threads: Some(1),
            headline: &["iops"],
            ..PointSettings::default()
        },
        state: match direction {
            "write" => Precondition::Fresh,
            _ => Precondition::Filled,
        },
        options: vec![("rw", format!("rand{direction}")), ("bs", "4k".into())],
        threads: vec![(1, depth)],
        longest: Some(USUAL),
        ..PointSpec::default()
    }
}
