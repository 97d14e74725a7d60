//! The interface of a chapter of a review: everything that the review, its page and its tables need from it.

use model::media::Precondition;

use super::chart::{ChapterSection, LoadCurve, Spread};
use super::results::{Point, PointSettings, Review};
use super::run::{PartialResults, Runner};
use super::shape::Shape;
use super::suite::{Effort, PointSpec, Suite};
use super::verdict::Seeds;
use text::problem::Problems;

/// A chapter; each is a file of [`super::chapters`]. A default method means that the chapter does not have the item.
pub(crate) trait Chapter: Sync {
    /// Returns the short name. It is unique in the review and the anchor in the page.
    fn id(&self) -> &'static str;

    /// Returns the heading in `review.json` and above the chapter's jobs.
    fn title(&self) -> &'static str;

    /// Returns the chapter's place on the page.
    fn section(&self) -> ChapterSection;

    /// Returns the points that need no result of another point.
    fn points(&self, _: Suite, _: Effort) -> Vec<PointSpec> {
        Vec::new()
    }

    /// Returns the points that depend on earlier results.
    fn points_after(&self, _: Suite, _: Effort, _: &PartialResults<'_>) -> Vec<PointSpec> {
        Vec::new()
    }

    /// Runs the points that are not part of a suite.
    ///
    /// # Errors
    /// A workload does not fit a drive.
    fn other_points(&self, _: &Runner<'_>) -> Result<Vec<Point>, Problems> {
        Ok(Vec::new())
    }

    /// Checks whether the page shows the chapter.
    fn is_shown(&self, review: &Review) -> bool {
        review.chapter(self.id()).is_some()
    }

    /// Returns the chapter's sentences of the verdict.
    fn sentences(&self, _: &Seeds<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Returns the chapter's rows of the table on the terminal.
    fn rows(&self) -> &'static [SummaryRow] {
        &[]
    }

    /// Returns the chapter's figures on a drive's card: the name, and the value if it was measured.
    fn card(&self, _: &Review, _drive: usize) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// Returns the sweeps that the first chart of the page can show.
    fn sweeps(&self) -> &'static [LoadCurve] {
        &[]
    }

    /// Returns the directions of one of the chapter's points whose whole distribution can be shown, each with its
    /// label.
    fn spreads(&self, _: &Point) -> Vec<(String, &'static str)> {
        Vec::new()
    }

    /// Returns the settings of the chapter's point that runs this workload, if there is one.
    fn shows(&self, _: &Shape) -> Option<PointSettings> {
        None
    }

    /// Returns the initial state of drives for this workload, for the comparison with published figures.
    fn state(&self) -> Precondition {
        Precondition::Steady
    }
}

/// Returns all spreads of a chapter's points.
pub(crate) fn spreads_of(chapter: &dyn Chapter, points: &[Point]) -> Vec<Spread> {
    let of_point = |point: &Point| {
        let spreads = chapter.spreads(point).into_iter();
        let named = spreads.map(|(name, way)| Spread {
            name,
            point: point.name.clone(),
            way,
        });
        named.collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

/// A row of the table on the terminal: its label, and the figure for the measurement of one drive.
pub(crate) struct SummaryRow {
    /// Place of the row in the table.
    pub(crate) topic: Topic,
    /// Label of the row.
    pub(crate) name: &'static str,
    /// Returns the figure of a drive.
    pub(crate) value: fn(&Review, usize) -> Option<String>,
}

/// Topic of a row. The table is ordered by topic, and within a topic by chapter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Topic {
    /// I/O at queue depth 1.
    Alone,
    /// Maximum IOPS.
    Most,
    /// Tail latency.
    Tails,
    /// Mixed reads and writes.
    Mixes,
    /// Bandwidth of large reads.
    LargeReads,
    /// Bandwidth of large writes.
    LargeWrites,
    /// Behaviour over time.
    OverTime,
    /// Endurance of the medium.
    Wear,
}
