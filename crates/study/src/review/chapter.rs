//! What a chapter of a review is: everything that the review, its page and its tables ask of one.

use model::media::Precondition;

use super::chart::{Section, Spread, Sweep};
use super::results::{Point, Review, Settings};
use super::run::{Found, Runner};
use super::shape::Shape;
use super::suite::{Effort, PointSpec, Suite};
use super::verdict::Seeds;
use text::problem::Problems;

/// A chapter; each is a file of [`super::chapters`]. What it does not say it does not have.
pub(crate) trait Chapter: Sync {
    /// Short name, unique in the review, also the anchor in the page.
    fn id(&self) -> &'static str;

    /// Heading in `review.json` and above its jobs.
    fn title(&self) -> &'static str;

    /// Its place on the page.
    fn section(&self) -> Section;

    /// Its points that need no result of another.
    fn points(&self, _: Suite, _: Effort) -> Vec<PointSpec> {
        Vec::new()
    }

    /// Points that follow from what was found before.
    fn points_after(&self, _: Suite, _: Effort, _: &Found<'_>) -> Vec<PointSpec> {
        Vec::new()
    }

    /// Points that no suite has.
    ///
    /// # Errors
    /// A workload does not fit a drive.
    fn other_points(&self, _: &Runner<'_>) -> Result<Vec<Point>, Problems> {
        Ok(Vec::new())
    }

    /// Whether the page has it.
    fn is_shown(&self, review: &Review) -> bool {
        review.chapter(self.id()).is_some()
    }

    /// Its sentences of the verdict.
    fn sentences(&self, _: &Seeds<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Its rows of the table on the terminal.
    fn rows(&self) -> &'static [Row] {
        &[]
    }

    /// Its figures on a drive's card: name and value, if it was measured.
    fn card(&self, _: &Review, _drive: usize) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// What the page's first chart can go along.
    fn sweeps(&self) -> &'static [Sweep] {
        &[]
    }

    /// Directions of a point of its own whose whole distribution can be looked at, each in words.
    fn spreads(&self, _: &Point) -> Vec<(String, &'static str)> {
        Vec::new()
    }

    /// The settings of its point that runs this workload, if there is one.
    fn shows(&self, _: &Shape) -> Option<Settings> {
        None
    }

    /// The state in which drives meet such a workload, where published figures stand beside its points.
    fn state(&self) -> Precondition {
        Precondition::Steady
    }
}

/// All spreads of a chapter's points.
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

/// A row of the table on the terminal: what it is, and the figure of one drive's measurement.
pub(crate) struct Row {
    /// Where it stands.
    pub(crate) topic: Topic,
    /// What it is.
    pub(crate) name: &'static str,
    /// Of a drive.
    pub(crate) value: fn(&Review, usize) -> Option<String>,
}

/// What rows are about: the table goes by topic, and within one by chapter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Topic {
    /// One I/O alone.
    Alone,
    /// The most I/Os a second.
    Most,
    /// Rare long latencies.
    Tails,
    /// Reads among writes.
    Mixes,
    /// Large reads.
    LargeReads,
    /// Large writes.
    LargeWrites,
    /// What lasts.
    OverTime,
    /// What the medium bears.
    Wear,
}
