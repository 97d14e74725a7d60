//! Tools for the chapters' sentences: which drive leads, by how much, and where the lead changes.
//!
//! Every sentence is computed from the points of the review, once from all seeds together and once from each seed. It
//! is printed only if all seeds agree. Figures that differ between seeds by more than 1 % are printed with their
//! range. There is no sentence if points are missing, with fewer than three seeds, or if the difference is within
//! [`crossing::CLEAR`]. Events that are rarer than the runs of the three seeds (such as a rare pause) may still change
//! the result.

pub(crate) mod convergence;
pub(crate) mod crossing;
pub(crate) mod range;

use super::results::{DirectionResult, Measurement, Point, Review};
use crossing::overtakes;
use range::{SeedRange, ends};
use text::words::listed;

/// Ascending x, each with the drive's figure.
pub(crate) type Curve = Vec<(u64, f64)>;

/// The review's results over all seeds, and those of each seed.
pub(crate) struct Seeds<'a> {
    pub(crate) all: ReviewView<'a>,
    pub(crate) each: Vec<ReviewView<'a>>,
}

impl<'a> Seeds<'a> {
    pub(crate) fn from_review(review: &'a Review) -> Seeds<'a> {
        let seed = |seed| ReviewView {
            review,
            seed: Some(seed),
        };
        Seeds {
            all: ReviewView { review, seed: None },
            each: (0..review.seeds as usize).map(seed).collect(),
        }
    }

    /// Returns a figure with its range; `None` if the combined result or a seed has none.
    pub(crate) fn range(
        &self,
        figure: impl Fn(&ReviewView<'a>) -> Option<f64>,
    ) -> Option<SeedRange> {
        let value = figure(&self.all)?;
        let each: Vec<f64> = self.each.iter().map(&figure).collect::<Option<_>>()?;
        Some(SeedRange::new(value, &each))
    }

    /// Returns the drives ordered by a figure, the smallest first, with its range, without drives that lack it. `None`
    /// if the seeds do not agree on the smallest and the largest, except for insignificant differences.
    pub(crate) fn ranked(
        &self,
        figure: impl Fn(&ReviewView<'a>, usize) -> Option<f64>,
    ) -> Option<Vec<(usize, SeedRange)>> {
        let of = |drive| Some((drive, self.range(|facts| figure(facts, drive))?));
        let mut all: Vec<(usize, SeedRange)> = (0..self.all.drives()).filter_map(of).collect();
        all.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let (least, most) = (all.first()?.0, all.last()?.0);
        let agree = self.each.iter().all(|facts| {
            let of = |drive| figure(facts, drive).unwrap_or(f64::NAN);
            all.iter().all(|&(drive, _)| {
                of(drive) >= of(least) * (1.0 - crossing::CLEAR)
                    && of(drive) <= of(most) * (1.0 + crossing::CLEAR)
            })
        });
        agree.then_some(all)
    }
}

/// The review's results for one seed (or all), with short look-up functions.
pub(crate) struct ReviewView<'a> {
    pub(crate) review: &'a Review,
    seed: Option<usize>,
}

impl<'a> ReviewView<'a> {
    pub(crate) fn drives(&self) -> usize {
        self.review.drives.len()
    }

    /// Returns a drive's short name.
    fn name(&self, drive: usize) -> &'a str {
        &self.review.drives[drive].label
    }

    /// Returns `the A`; for a drive that its user has named, only `mine`.
    pub(crate) fn the(&self, drive: usize) -> String {
        let article = match self.review.drives[drive].catalogued {
            true => "the ",
            false => "",
        };
        format!("{article}{}", self.name(drive))
    }

    /// Returns the name for the beginning of a sentence; a user's own name is not capitalised.
    pub(crate) fn opening(&self, drive: usize) -> String {
        match self.review.drives[drive].catalogued {
            true => sentence(&self.the(drive)),
            false => self.name(drive).to_owned(),
        }
    }

    pub(crate) fn figures(
        &self,
        point: &'a Point,
        drive: usize,
        direction: &str,
    ) -> Option<&'a DirectionResult> {
        self.result(point, drive)?.direction(direction)
    }

    pub(crate) fn result(&self, point: &'a Point, drive: usize) -> Option<&'a Measurement> {
        let all = point.results[drive].as_ref()?;
        self.seed.map_or(Some(all), |seed| all.each.get(seed))
    }

    /// Returns a figure of a chapter's points by one setting, ascending.
    pub(crate) fn curve(
        &self,
        (chapter, drive, direction): (&str, usize, &str),
        wanted: impl Fn(&Point) -> bool,
        x: impl Fn(&Point) -> Option<u64>,
        y: impl Fn(&DirectionResult) -> f64,
    ) -> Vec<(u64, f64)> {
        self.review
            .points(chapter)
            .filter(|point| point.settings.direction == Some(direction) && wanted(point))
            .filter_map(|point| Some((x(point)?, y(self.figures(point, drive, direction)?))))
            .collect()
    }
}

/// Where one drive overtakes others: the least and the greatest place over the seeds, the drive, and those that it
/// overtakes.
type Overtaking = ((u64, u64), usize, Vec<String>);

/// Returns clauses such as `the A overtakes the B and the C at 64 KiB and above`: one for each drive and place, in order of
/// place, if all seeds show it.
pub(crate) fn overtakings<'a>(
    seeds: &Seeds<'a>,
    curve: impl Fn(&ReviewView<'a>, usize) -> Curve,
    place: impl Fn((u64, u64)) -> String,
) -> Vec<String> {
    let facts = &seeds.all;
    let of_seed = |facts: &ReviewView<'a>| -> Vec<Curve> {
        (0..facts.drives())
            .map(|drive| curve(facts, drive))
            .collect()
    };
    let curves: Vec<Vec<Curve>> = seeds.each.iter().map(of_seed).collect();
    let mut found: Vec<Overtaking> = Vec::new();
    for b in 0..facts.drives() {
        for a in 0..facts.drives() {
            let crossings = curves.iter().map(|of| overtakes(&of[a], &of[b]));
            let Some(x) = ends(crossings) else {
                continue;
            };
            match found
                .iter_mut()
                .find(|(at, drive, _)| (*at, *drive) == (x, b))
            {
                Some((_, _, others)) => others.push(facts.the(a)),
                None => found.push((x, b, vec![facts.the(a)])),
            }
        }
    }
    found.sort_by_key(|&(x, b, _)| (x, b));
    let clause = |(x, b, others): Overtaking| {
        format!(
            "{} overtakes {} {}",
            facts.the(b),
            listed(&others),
            place(x)
        )
    };
    found.into_iter().map(clause).collect()
}

/// Returns the maximum of a curve.
pub(crate) fn peak(curve: &Curve) -> Option<f64> {
    curve.iter().map(|&(_, y)| y).max_by(f64::total_cmp)
}

/// Returns the text with the first letter in upper case.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().collect::<String>() + characters.as_str(),
        None => String::new(),
    }
}
