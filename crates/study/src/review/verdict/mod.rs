//! What the data say in words: who leads, by how much, and where that changes.
//!
//! Every sentence is computed from the points of the review, once from all seeds together and once from each alone. It
//! stands only if each seed says the same; figures that differ between them by more than a hundredth have their range.
//! Nothing is said where points are missing, with fewer than three seeds, or where the difference is within
//! [`crossing::CLEAR`]. What the three seeds do not meet (a pause rarer than their runs) may still be otherwise.

mod convergence;
mod crossing;
mod latency;
mod range;
mod throughput;

use super::results::{Figures, Finding, Measurement, Point, Review};
use super::suite::SEEDS;
use range::Range;

/// The sentences, in the order of the page.
pub(super) fn findings(review: &Review) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut say = |chapter: &'static str, sentences: Vec<String>| {
        all.extend(sentences.into_iter().map(|text| Finding { chapter, text }));
    };
    if review.seeds >= SEEDS {
        let seeds = Seeds::of(review);
        say("block-size", latency::alone(&seeds));
        say("block-size", throughput::block_sizes(&seeds));
        say("block-size", throughput::unaligned(&seeds));
        say("queue-depth", throughput::saturation(&seeds));
        say("queue-depth", throughput::depths(&seeds));
        say("latency", latency::tail(&seeds));
        say("latency", latency::waits(&seeds));
        say("sequential", throughput::sequential(&seeds));
        say("mix", throughput::mixes(&seeds));
        say("sustained", throughput::cliff(&seeds));
    }
    say("method", convergence::unknown_means(review));
    all
}

/// The review as all seeds together show it, and as each does alone.
struct Seeds<'a> {
    all: Facts<'a>,
    each: Vec<Facts<'a>>,
}

impl<'a> Seeds<'a> {
    fn of(review: &'a Review) -> Seeds<'a> {
        let seed = |seed| Facts {
            review,
            seed: Some(seed),
        };
        Seeds {
            all: Facts { review, seed: None },
            each: (0..review.seeds as usize).map(seed).collect(),
        }
    }

    /// A figure with its range; `None` where all together or one alone has none.
    fn range(&self, figure: impl Fn(&Facts<'a>) -> Option<f64>) -> Option<Range> {
        let value = figure(&self.all)?;
        let each: Vec<f64> = self.each.iter().map(&figure).collect::<Option<_>>()?;
        Some(Range::of(value, &each))
    }

    /// Drives by a figure, the smallest first, with its range; those without it are left out. `None` where seeds do not
    /// agree which is the smallest and which the largest, but for differences that are none.
    fn ranked(
        &self,
        figure: impl Fn(&Facts<'a>, usize) -> Option<f64>,
    ) -> Option<Vec<(usize, Range)>> {
        let of = |drive| Some((drive, self.range(|facts| figure(facts, drive))?));
        let mut all: Vec<(usize, Range)> = (0..self.all.drives()).filter_map(of).collect();
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

/// The review as one seed shows it (or all), and short ways to ask it.
struct Facts<'a> {
    review: &'a Review,
    seed: Option<usize>,
}

impl<'a> Facts<'a> {
    fn drives(&self) -> usize {
        self.review.drives.len()
    }

    /// A drive's short name.
    fn name(&self, drive: usize) -> &'a str {
        &self.review.drives[drive].label
    }

    /// `the A`; only `mine` of a drive that its user has named.
    fn the(&self, drive: usize) -> String {
        let article = match self.review.drives[drive].catalogued {
            true => "the ",
            false => "",
        };
        format!("{article}{}", self.name(drive))
    }

    fn points(&self, chapter: &str) -> impl Iterator<Item = &'a Point> {
        let points = self.review.chapter(chapter).into_iter();
        points.flat_map(|chapter| &chapter.points)
    }

    fn find(&self, chapter: &str, wanted: impl Fn(&Point) -> bool) -> Option<&'a Point> {
        self.points(chapter).find(|point| wanted(point))
    }

    fn figures(&self, point: &'a Point, drive: usize, direction: &str) -> Option<&'a Figures> {
        super::summary::figures(self.result(point, drive)?, direction)
    }

    /// 4 KiB random I/O at a depth.
    fn at_depth(&self, drive: usize, direction: &str, depth: u32) -> Option<&'a Figures> {
        let point = self.find("queue-depth", |point| {
            point.settings.direction == Some(direction) && point.settings.queue_depth == Some(depth)
        })?;
        self.figures(point, drive, direction)
    }

    fn result(&self, point: &'a Point, drive: usize) -> Option<&'a Measurement> {
        let all = point.results[drive].as_ref()?;
        self.seed.map_or(Some(all), |seed| all.each.get(seed))
    }

    /// A figure of a chapter's points by one setting, rising.
    fn curve(
        &self,
        (chapter, drive, direction): (&str, usize, &str),
        wanted: impl Fn(&Point) -> bool,
        x: impl Fn(&Point) -> Option<u64>,
        y: impl Fn(&Figures) -> f64,
    ) -> Vec<(u64, f64)> {
        self.points(chapter)
            .filter(|point| point.settings.direction == Some(direction) && wanted(point))
            .filter_map(|point| Some((x(point)?, y(self.figures(point, drive, direction)?))))
            .collect()
    }
}

/// `A, B and C`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// The first letter in upper case.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().collect::<String>() + characters.as_str(),
        None => String::new(),
    }
}
