//! The chapters of a review. Each is a file with its points, the results that are kept, its charts and its sentences,
//! and a line of the list below. No other code depends on which chapters exist.

mod block_size;
mod hcibench;
mod heat;
mod latency;
mod mix;
mod one_thread;
mod paced;
mod perftest;
mod queue_depth;
mod rebuild;
mod sequential;
mod slog;
mod snia;
mod sustained;
pub(crate) mod under_load;
mod virten;
mod warmup;
mod yours;

use super::chapter::{Chapter, spreads_of};
use super::chart::{ChapterSection, LoadCurve, Spread};
use super::results::{ChapterResults, Finding, Point, Review};
use super::run::{PartialResults, Runner};
use super::suite::{PointSpec, SEEDS};
use super::verdict::{Seeds, convergence};
use text::problem::Problems;

/// All chapters, in the order of the review and its page.
pub(crate) const CHAPTERS: &[&dyn Chapter] = &[
    &block_size::BlockSize,
    &queue_depth::QueueDepth,
    &latency::TailLatency,
    &one_thread::OneThread,
    &sequential::Sequential,
    &sequential::SequentialFilled,
    &mix::MixChapter,
    &paced::FixedArrivalRate,
    &sustained::SteadyStateWrite,
    &virten::Virten,
    &perftest::Perftest,
    &hcibench::WritePressure,
    &hcibench::HciBench,
    &slog::Slog,
    &slog::SlogLoads,
    &warmup::Warmup,
    &under_load::MaximumWriteRate,
    &under_load::UnderLoad,
    &snia::Steady,
    &snia::Iops,
    &snia::Throughput,
    &snia::LatencyTest,
    &snia::WriteSaturation,
    &heat::HeatChapter,
    &rebuild::RebuildChapter,
    &yours::UserWorkloads,
];

/// Id used instead of a chapter's in findings about the method.
pub const METHOD: &str = "method";

/// Runs all chapters and returns those with points.
pub(super) fn run(runner: &Runner<'_>) -> Result<Vec<ChapterResults>, Problems> {
    let (suite, effort) = (runner.request.suite, runner.effort);
    let mut points = Vec::new();
    if !runner.request.only_yours {
        let specs: Vec<PointSpec> = CHAPTERS
            .iter()
            .flat_map(|chapter| chapter.points(suite, effort))
            .collect();
        points = runner.run_all(&specs)?;
        let found = PartialResults {
            drives: runner.request.drives.len(),
            points: &points,
        };
        let specs: Vec<PointSpec> = CHAPTERS
            .iter()
            .flat_map(|chapter| chapter.points_after(suite, effort, &found))
            .collect();
        let after = runner.run_all(&specs)?;
        points.extend(after);
    }
    let mut all = Vec::new();
    for chapter in CHAPTERS {
        let mine = points.iter().filter(|(id, _)| *id == chapter.id());
        let mut mine: Vec<Point> = mine.map(|(_, point)| point.clone()).collect();
        mine.extend(chapter.other_points(runner)?);
        if !mine.is_empty() {
            all.push(ChapterResults {
                id: chapter.id(),
                title: chapter.title(),
                points: mine,
            });
        }
    }
    Ok(all)
}

/// Returns the sentences of the verdict, in the order of the page.
pub(super) fn findings(review: &Review) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut say = |chapter: &'static str, sentences: Vec<String>| {
        all.extend(sentences.into_iter().map(|text| Finding { chapter, text }));
    };
    if review.seeds >= SEEDS {
        let seeds = Seeds::from_review(review);
        for chapter in CHAPTERS {
            say(chapter.id(), chapter.sentences(&seeds));
        }
    }
    say(METHOD, convergence::unknown_means(review));
    all
}

/// Returns the chapters that the page of a review shows.
pub fn sections(review: &Review) -> Vec<ChapterSection> {
    let shown = CHAPTERS.iter().filter(|chapter| chapter.is_shown(review));
    shown.map(|chapter| chapter.section()).collect()
}

/// Returns the sweeps of the page's first chart.
pub fn sweeps(review: &Review) -> Vec<LoadCurve> {
    let shown = CHAPTERS.iter().filter(|chapter| chapter.is_shown(review));
    shown
        .flat_map(|chapter| chapter.sweeps())
        .copied()
        .collect()
}

/// Returns the workloads whose whole distribution of latency can be shown.
pub fn spreads(review: &Review) -> Vec<Spread> {
    let of = |chapter: &&dyn Chapter| {
        let found = review.chapter(chapter.id());
        found.map_or(Vec::new(), |found| spreads_of(*chapter, &found.points))
    };
    CHAPTERS.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::paced::SaturationRates;
    use super::*;
    use crate::review::suite::{Effort, Suite};
    use model::Span;

    fn all(suite: Suite) -> Vec<PointSpec> {
        let saturation = SaturationRates {
            read: Some(5e5),
            mix: Some(4e5),
            write: Some(3e5),
        };
        let effort = suite.effort();
        let chapters = CHAPTERS.iter();
        let mut all: Vec<PointSpec> = chapters
            .flat_map(|chapter| chapter.points(suite, effort))
            .collect();
        all.extend(paced::points(effort, &[saturation]));
        all
    }

    #[test]
    fn the_full_suite_has_ten_samples_beyond_five_nines_of_4_kib_in_each_direction_shown() {
        let effort = Suite::Full.effort();
        let (stops, counts): (Vec<_>, Vec<_>) = all(Suite::Full)
            .into_iter()
            .partition(|spec| spec.stops_when_known(effort));
        assert!(counts.len() > 40, "{} of 4 KiB", counts.len());
        for spec in stops {
            let bytes = spec.settings.block_bytes.expect("it has a size");
            let first = 3 * spec.ios_of_seed(effort);
            // Points between others have results by seed where the page shows tails; otherwise only over all seeds.
            let each = spec.is_between && spec.fewest > 0;
            let most = if each { 105_000 } else { 35_001 };
            assert!((5_000..=most).contains(&first), "{}: {first}", spec.name);
            assert!(first * bytes < 6 << 30, "{}: {first}", spec.name);
        }
        for spec in counts {
            let rarer = match spec.settings.read_percent {
                Some(percent @ 1..=99) if spec.shows_reads => percent,
                Some(percent @ 1..=99) => percent.min(100 - percent),
                _ => 100,
            };
            // Runs end when 97 % of the requested number of I/Os has been counted.
            let counted = spec.ios(Suite::Full.effort()) as f64 * 0.97 * f64::from(rarer) / 100.0;
            assert!(counted >= 1e6, "{}: {counted}", spec.name);
        }
    }

    #[test]
    fn points_that_write_have_a_ramp_that_outlasts_a_buffer() {
        let effort = Suite::Quick.effort();
        let ramp = |direction, ms| {
            let all = all(Suite::Quick);
            let mut found = all
                .iter()
                .filter(|one| one.settings.direction == Some(direction));
            let spec = found.next().expect(direction);
            spec.ramp(effort, Span::from_ms(ms))
        };
        assert_eq!(ramp("read", 500), Span::from_ms(20));
        assert_eq!(ramp("write", 500), Span::from_ms(100));
        assert_eq!(ramp("mix", 200), Span::from_ms(50));
        let dropped = Effort {
            dropped: 1.0 / 3.0,
            ..effort
        };
        let spec = &all(Suite::Quick)[0];
        assert_eq!(spec.ramp(dropped, Span::from_ms(300)), Span::from_ms(100));
        let all = all(Suite::Quick);
        let mut writing = all
            .iter()
            .filter(|one| one.settings.direction == Some("write"));
        let spec = writing.next().expect("quick writes");
        let after =
            |effort, ms, ran| spec.ramp_after(effort, Span::from_ms(ms), Span::from_ms(ran));
        assert_eq!(after(effort, 500, 0), Span::from_ms(100));
        assert_eq!(after(effort, 500, 60), Span::from_ms(40), "the rest of it");
        assert_eq!(after(effort, 500, 900), Span::from_ms(20), "queues fill");
        assert_eq!(after(effort, 40, 900), Span::from_ms(10));
        assert_eq!(
            after(dropped, 300, 900),
            Span::from_ms(100),
            "as its source"
        );
    }

    #[test]
    fn tails_have_enough_of_each_seed_and_the_rest_shares() {
        let effort = Suite::Quick.effort();
        let all = all(Suite::Quick);
        let each = |name: &str| {
            let spec = all.iter().find(|spec| spec.name == name).expect("a point");
            spec.ios_of_seed(effort)
        };
        assert_eq!(each("queue-depth/read/16"), 1_050_000);
        assert_eq!(each("queue-depth/read/64"), 350_000);
        assert_eq!(each("queue-depth/write/7"), 105_000);
        assert_eq!(each("mix/70"), 350_000);
        assert_eq!(each("mix/50"), 35_000);
        let few = effort.with_ios(300);
        let spec = |name: &str| all.iter().find(|spec| spec.name == name).expect("a point");
        assert_eq!(spec("queue-depth/read/16").ios_of_seed(few), 300);
        assert_eq!(spec("mix/50").ios_of_seed(few), 100);
        // Altogether at most twice the I/Os of a single seed.
        let sum = |seeds| -> u64 {
            let effort = Effort { seeds, ..effort };
            let of = |spec: &PointSpec| u64::from(seeds) * spec.ios_of_seed(effort);
            all.iter().map(of).sum::<u64>() + u64::from(seeds) * effort.sustained_writes
        };
        assert!(sum(3) < 2 * sum(1), "{} of {}", sum(3), sum(1));
    }

    #[test]
    fn seeds_together_have_five_nines_where_the_page_shows_them() {
        for suite in [Suite::Quick, Suite::Full, Suite::Anandtech2017] {
            let effort = suite.effort();
            let all = all(suite);
            let mut depths: Vec<u32> = Vec::new();
            for spec in all.iter().filter(|spec| spec.is_deep) {
                let together = u64::from(effort.seeds) * spec.ios_of_seed(effort);
                // A run may end with 3 % fewer I/Os than requested.
                assert!(together * 97 / 100 >= 1_000_000, "{}", spec.name);
                depths.extend(spec.settings.queue_depth);
            }
            for depth in [1, 16, 64] {
                assert!(depths.contains(&depth), "{suite:?}: QD{depth}");
            }
        }
    }

    #[test]
    fn runs_in_order_begin_elsewhere_with_each_seed() {
        let all = all(Suite::Quick);
        let named = |name: &str| all.iter().find(|spec| spec.name == name).expect("a point");
        let offset = |name: &str, seed| {
            let text = named(name).text(seed, Span::ZERO, Span::from_ms(5));
            let line = text.lines().find_map(|line| line.strip_prefix("offset="));
            line.map(str::to_owned)
        };
        let percent = |percent: &str| Some(percent.to_owned());
        assert_eq!(offset("sequential/read/8", 97), percent("7%"));
        assert_eq!(offset("sequential-filled/write/1", 98), percent("8%"));
        assert_eq!(
            offset("block-size/sequential-read/block/4k", 5),
            percent("5%")
        );
        assert_eq!(
            offset("block-size/sequential-read/sector/4k", 5),
            percent("512")
        );
        assert_eq!(offset("queue-depth/read/8", 5), None);
    }

    #[test]
    fn jobs_read_as_fio_would() {
        let spec = &all(Suite::Quick)[0];
        insta::assert_snapshot!(spec.text(7, Span::from_ms(20), Span::from_ms(900)), @r"
        [global]
        ioengine=libaio
        direct=1
        norandommap=1
        rw=randread
        bs=512
        time_based=1
        ramp_time=20000us
        runtime=900000us
        group_reporting=1

        [depth-1]
        iodepth=1
        numjobs=1
        randseed=7
        ");
    }
}
