//! Published figures of the ledger compared with a review's figures: which of them a chart can show, where, and with
//! which differences.
//!
//! A chart shows a published figure of the same quantity and workload, whatever the drive's state and the host;
//! differences of these are listed. Figures of many threads are not mixed with figures of one thread. The greatest
//! value of a whole sweep, and the point at which it is reached, are on the chart that has most of the sweep's points.
//! A ratio of two figures is shown only if the review has both. Not shown: claims about several drives at once.

use model::media::Precondition;
use tier::DriveConfig;

use super::ReviewRequest;
use super::chapter::Chapter;
use super::chapters::CHAPTERS;
use super::results::{ChapterResults, PointSettings, PublishedFigure, rounded};
use super::shape::Shape;
use crate::ledger::figure::{FigureDirection, FigureQuantity, LatencyKind, RunFigure, Statistic};
use crate::ledger::published::{FigureSource, Place, PublishedPoint};
use crate::ledger::{self, SOURCES, source_of};
use catalogue::DriveSheet;
use text::problem::Problems;
use workload::job::{Job, Mix};

/// Returns all published figures of the request's drives.
///
/// # Errors
/// The ledger cannot be read (a test ensures that it can).
pub(super) fn published(
    request: &ReviewRequest,
    chapters: &[ChapterResults],
) -> Result<Vec<PublishedFigure>, Problems> {
    let ledger = ledger::built_in()?;
    let mut found = Vec::new();
    for (drive, sheet) in request.drives.iter().enumerate() {
        // A user's own drive may have the name of a catalogue drive.
        if !ledger::support::is_built_in(sheet) {
            continue;
        }
        for point in ledger::published::points(&ledger, &sheet.id)? {
            found.extend(on_charts(&point, request, drive, chapters));
        }
    }
    Ok(found)
}

/// Returns the point on each chart that shows the quantity of a figure.
fn on_charts(
    point: &PublishedPoint,
    request: &ReviewRequest,
    drive: usize,
    chapters: &[ChapterResults],
) -> Vec<PublishedFigure> {
    let Some((of, metric, scale)) = quantity(point.of.figure) else {
        return Vec::new();
    };
    let source = source_of(&point.row);
    let source = SOURCES.iter().find(|(id, _)| Some(*id) == source);
    let (form, scale) = match (point.of.place, &point.over) {
        (_, Some(_)) => ("ratio", 1.0),
        (Place::One(_), None) => ("figure", scale),
        (Place::Greatest, None) => ("greatest", scale),
        (Place::Knee(_), None) => ("knee", 1.0),
    };
    let ends = point.ends.map(|end| end.map(|end| rounded(end * scale)));
    let number = if ends[0] == ends[1] { ends[0] } else { None };
    let end = |end: Option<f64>| if number.is_none() { end } else { None };
    let one = |(chapter, settings): (&dyn Chapter, PointSettings)| PublishedFigure {
        drive,
        row: point.row.clone(),
        source: source.map_or_else(String::new, |(id, about)| format!("{id}: {about}")),
        what: point.what.clone(),
        conditions: point.conditions.clone(),
        stands: point.evidence.name(),
        chapter: chapter.id(),
        of,
        metric,
        form,
        value: number,
        least: end(ends[0]),
        most: end(ends[1]),
        here: here(point, (chapter, &settings), request, drive, chapters).map(rounded),
        differs: differences(&point.of, chapter.state(), request, drive),
        settings,
    };
    let mut told: Vec<PublishedFigure> = charts_of_all(&point.of, chapters)
        .into_iter()
        .map(one)
        .collect();
    // A ratio is dropped if the review lacks the other drive or its points.
    told.retain(|one| form != "ratio" || one.here.is_some());
    told
}

/// Returns the chapters whose charts show the runs of a figure, and the common settings of all runs.
fn charts_of_all(
    of: &FigureSource,
    chapters: &[ChapterResults],
) -> Vec<(&'static dyn Chapter, PointSettings)> {
    let has = |id: &str| chapters.iter().any(|chapter| chapter.id == id);
    let shown =
        |run: &Vec<Job>| Shape::from_jobs(run).map(|shape| charts_of(&shape, of.state, &has));
    let mut all: Vec<(&'static dyn Chapter, PointSettings, usize)> = Vec::new();
    for (chapter, settings) in of.runs.iter().filter_map(shown).flatten() {
        match all.iter_mut().find(|(one, ..)| one.id() == chapter.id()) {
            Some((_, common, runs)) => {
                *common = common.common(&settings);
                *runs += 1;
            }
            None => all.push((chapter, settings, 1)),
        }
    }
    // A chart must have most points of a sweep; otherwise it shows something else.
    all.retain(|(_, _, runs)| 2 * runs > of.runs.len());
    all.into_iter()
        .map(|(chapter, settings, _)| (chapter, settings))
        .collect()
}

/// Returns the review's own value for a published figure.
fn here(
    point: &PublishedPoint,
    (chapter, settings): (&dyn Chapter, &PointSettings),
    request: &ReviewRequest,
    drive: usize,
    chapters: &[ChapterResults],
) -> Option<f64> {
    let own = level(&point.of, (chapter.id(), settings), drive, chapters)?;
    let Some(over) = &point.over else {
        return Some(own);
    };
    let is_built_in = |sheet: &&DriveSheet| ledger::support::is_built_in(sheet);
    let mut drives = request.drives.iter().enumerate();
    let (other, _) = drives.find(|(_, sheet)| is_built_in(sheet) && sheet.id == over.drive)?;
    let charts = charts_of_all(over, chapters);
    let beside = |(chapter, settings): &(&dyn Chapter, PointSettings)| {
        level(over, (chapter.id(), settings), other, chapters)
    };
    // On the same chart, if both figures are there.
    let same = charts.iter().find(|(one, _)| one.id() == chapter.id());
    Some(own / same.or(charts.first()).and_then(beside)?)
}

/// Returns a figure of a drive in this review: of one point, the greatest of several points, or the point that reaches
/// it.
fn level(
    of: &FigureSource,
    (chapter, settings): (&str, &PointSettings),
    drive: usize,
    chapters: &[ChapterResults],
) -> Option<f64> {
    let (direction, metric, _) = quantity(of.figure)?;
    let chapter = chapters.iter().find(|one| one.id == chapter)?;
    let points = chapter
        .points
        .iter()
        .filter(|point| point.settings.runs(settings));
    let mut values = points.filter_map(|point| {
        let value = point
            .results
            .get(drive)?
            .as_ref()?
            .named(direction, metric)?;
        Some((&point.settings, value))
    });
    let greatest = |values: &[(&PointSettings, f64)]| {
        values
            .iter()
            .map(|(_, value)| *value)
            .max_by(f64::total_cmp)
    };
    match of.place {
        Place::One(_) => values.next().map(|(_, value)| value),
        Place::Greatest => greatest(&values.collect::<Vec<_>>()),
        Place::Knee(share) => {
            let values: Vec<_> = values.collect();
            let enough = greatest(&values)? * share;
            let swept = |at: &PointSettings| match (settings.queue_depth, settings.block_bytes) {
                (None, Some(_)) => at.queue_depth.map(f64::from),
                (Some(_), None) => at.block_bytes.map(|bytes| bytes as f64),
                _ => None,
            };
            let reached = values.iter().filter(|(_, value)| *value >= enough);
            reached
                .filter_map(|(at, _)| swept(at))
                .min_by(f64::total_cmp)
        }
    }
}

/// Returns the chapters whose charts show a workload, and its settings there. Among chapters that run the workload in
/// different states, the one with the closest state is chosen.
pub(super) fn charts_of(
    shape: &Shape,
    state: Precondition,
    has: &dyn Fn(&str) -> bool,
) -> Vec<(&'static dyn Chapter, PointSettings)> {
    let all = CHAPTERS.iter().filter(|chapter| has(chapter.id()));
    let all: Vec<(&dyn Chapter, PointSettings)> = all
        .filter_map(|&chapter| Some((chapter, chapter.shows(shape)?)))
        .collect();
    let nearer = |(chapter, settings): &(&dyn Chapter, PointSettings)| {
        let fits = |own| are_equivalent(own, state);
        fits(chapter.state())
            || !all
                .iter()
                .any(|(other, same)| same == settings && fits(other.state()))
    };
    all.iter().filter(|one| nearer(one)).cloned().collect()
}

/// Checks whether two states are equivalent where sequential data placement matters: a new drive and one filled
/// sequentially.
fn are_equivalent(here: Precondition, there: Precondition) -> bool {
    let in_order = |state| matches!(state, Precondition::Filled | Precondition::Fresh);
    in_order(here) == in_order(there)
}

/// Returns the differences from the review, as text.
fn differences(
    of: &FigureSource,
    here: Precondition,
    request: &ReviewRequest,
    drive: usize,
) -> Vec<String> {
    let mut all = Vec::new();
    // A medium that is written in place is the same drive in any state. For random reads the placement of data does
    // not matter.
    let config = &request.drives[drive].config;
    let in_place = matches!(config, DriveConfig::XPoint(_) | DriveConfig::Hdd(_));
    let scattered = of.state == Precondition::Filled
        && of
            .runs
            .iter()
            .flatten()
            .all(|job| job.mix == Mix::Read && job.random);
    if of.state != here && !in_place && !scattered {
        all.push(match of.state {
            Precondition::Fresh => "a new drive".to_owned(),
            Precondition::Filled => "a drive filled in order".to_owned(),
            _ => "a drive overwritten at random".to_owned(),
        });
    }
    if of.host != request.host.id {
        all.push(format!("in another host, {}", of.host));
    }
    all.extend(
        request
            .settings
            .words()
            .iter()
            .map(|set| format!("without {set}")),
    );
    all
}

/// Returns the direction, the name on the page, and the factor that converts to the page's unit.
fn quantity(figure: RunFigure) -> Option<(&'static str, &'static str, f64)> {
    let RunFigure::Of(direction, what) = figure else {
        return None;
    };
    let of = match direction {
        FigureDirection::Read => "read",
        FigureDirection::Write => "write",
        FigureDirection::Total => "total",
        FigureDirection::Trim => return None,
    };
    let (metric, scale) = match what {
        FigureQuantity::Iops => ("iops", 1.0),
        FigureQuantity::MbPerSecond => ("mb_s", 1.0),
        FigureQuantity::MibPerSecond => ("mb_s", 1.048_576),
        FigureQuantity::Latency(LatencyKind::Total, Statistic::Mean) => ("mean", 1.0),
        FigureQuantity::Latency(LatencyKind::Total, Statistic::Percentile(percent)) => {
            let known = [
                (50.0, "p50"),
                (99.0, "p99"),
                (99.99, "p99_99"),
                (99.999, "p99_999"),
            ];
            let (_, name) = known.iter().find(|(one, _)| *one == percent)?;
            (*name, 1.0)
        }
        _ => return None,
    };
    Some((of, metric, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Suite;
    use catalogue;

    const FILLED: &str = "sequential-filled";

    fn of(drive: &str) -> Vec<PublishedFigure> {
        of_all(&[drive])
    }

    fn of_all(drives: &[&str]) -> Vec<PublishedFigure> {
        let drive = |name: &&str| catalogue::drive(name).unwrap();
        let request = ReviewRequest {
            drives: drives.iter().map(drive).collect(),
            settings: Default::default(),
            host: catalogue::host("xeon-2017").unwrap(),
            suite: Suite::Quick,
            effort: Suite::Quick.effort(),
            seed: 1,
            yours: Vec::new(),
            only_yours: false,
        };
        let chapters: Vec<ChapterResults> = [
            "block-size",
            "queue-depth",
            "one-thread",
            "sequential",
            FILLED,
            "mix",
        ]
        .map(|id| ChapterResults {
            id,
            title: "",
            points: Vec::new(),
        })
        .into();
        published(&request, &chapters).unwrap()
    }

    fn row<'a>(all: &'a [PublishedFigure], id: &str, chapter: &str) -> Option<&'a PublishedFigure> {
        all.iter()
            .find(|one| one.row == id && one.chapter == chapter)
    }

    #[test]
    fn a_rating_stands_at_its_depth() {
        let all = of("p4800x-375");
        let reads = row(&all, "S4-002", "queue-depth").unwrap();
        assert_eq!(
            (
                reads.of,
                reads.metric,
                reads.value,
                reads.settings.queue_depth,
                reads.settings.direction
            ),
            ("read", "iops", Some(550_000.0), Some(16), Some("read"))
        );
        assert_eq!(reads.differs, Vec::<String>::new());
        assert!(reads.source.starts_with("S4: "), "{}", reads.source);
        let mix = row(&all, "S4-008", "mix").unwrap();
        assert_eq!((mix.of, mix.settings.read_percent), ("total", Some(70)));
        // Data sheets assume a drive that was filled sequentially, or a new one.
        let other = of("950pro-256");
        let written = row(&other, "S0-060", FILLED).unwrap();
        assert_eq!(
            (written.of, written.metric, written.value),
            ("write", "mb_s", Some(900.0))
        );
        assert_eq!(row(&other, "S0-060", "sequential"), None);
        // 64 KiB is not the chapter's 128 KiB.
        assert_eq!(row(&all, "S4-009", "sequential"), None);
        let tail = row(&all, "S1-041", "queue-depth").unwrap();
        assert_eq!((tail.metric, tail.value), ("p99_999", Some(333.0)));
    }

    #[test]
    fn what_was_otherwise_is_said() {
        let all = of("950pro-256");
        // Rated on a new drive, measured in a guest.
        let rated = row(&all, "S0-015", "queue-depth").unwrap();
        assert_eq!(
            (rated.settings.queue_depth, &rated.differs[..]),
            (Some(128), &["a new drive".to_owned()][..])
        );
        let guest = row(&all, "S0-070", "queue-depth").unwrap();
        assert_eq!(
            guest.differs,
            ["a drive filled in order", "in another host, esxi-nuc"]
        );
        // One thread at QD32 does not belong to points of four threads, and the drive's own latency is not the total
        // latency.
        assert_eq!(row(&all, "S0-072", "queue-depth"), None);
        assert!(row(&all, "S0-072", "one-thread").is_some());
        assert!(
            of("960pro-512")
                .iter()
                .any(|one| one.row == "S0-056" && one.metric == "mean")
        );
        assert!(of("optane-memory-32").iter().all(|one| one.row != "S0-051"));
    }

    #[test]
    fn ranges_sweeps_and_knees_have_their_own_form() {
        let all = of("p4800x-375");
        let knee = row(&all, "S1-013", "queue-depth").unwrap();
        assert_eq!((knee.form, knee.value), ("knee", Some(8.0)));
        assert_eq!(
            (knee.settings.queue_depth, knee.settings.block_bytes),
            (None, Some(4096))
        );
        let one = of("p3700-800");
        assert!(
            one.iter().all(|one| one.form != "ratio"),
            "nothing to compare with ran"
        );
    }

    #[test]
    fn every_point_names_a_row_of_the_ledger_once_a_chapter() {
        let all = of_all(&catalogue::drive_names());
        assert!(all.len() > 100, "{}", all.len());
        for (at, one) in all.iter().enumerate() {
            let again = all[at + 1..].iter().any(|other| {
                let same = |of: &PublishedFigure| (of.drive, of.row.clone(), of.chapter);
                same(other) == same(one)
            });
            assert!(
                !again && one.value.or(one.least).or(one.most) > Some(0.0),
                "{one:?}"
            );
        }
    }
}
