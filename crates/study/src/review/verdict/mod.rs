//! What the data say in words: who leads, by how much, and where that changes.
//!
//! Every sentence is computed from the points of the review; nothing is said where the points are missing or the
//! difference is within [`crossing::CLEAR`].

mod crossing;
mod latency;
mod throughput;

use super::results::{Figures, Finding, Measurement, Point, Review};

/// The sentences, in the order of the page.
pub(super) fn findings(review: &Review) -> Vec<Finding> {
    let facts = Facts { review };
    let mut all = Vec::new();
    let mut say = |chapter: &'static str, sentences: Vec<String>| {
        all.extend(sentences.into_iter().map(|text| Finding { chapter, text }));
    };
    say("block-size", latency::alone(&facts));
    say("block-size", throughput::block_sizes(&facts));
    say("block-size", throughput::unaligned(&facts));
    say("queue-depth", throughput::saturation(&facts));
    say("queue-depth", throughput::depths(&facts));
    say("latency", latency::tail(&facts));
    say("latency", latency::waits(&facts));
    say("sequential", throughput::sequential(&facts));
    say("mix", throughput::mixes(&facts));
    say("sustained", throughput::cliff(&facts));
    all
}

/// The review, and short ways to ask it.
struct Facts<'a> {
    review: &'a Review,
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
        super::summary::figures(point.results[drive].as_ref()?, direction)
    }

    /// 4 KiB random I/O at a depth.
    fn at_depth(&self, drive: usize, direction: &str, depth: u32) -> Option<&'a Figures> {
        super::summary::depth(self.review, drive, direction, depth)
    }

    fn result(&self, point: &'a Point, drive: usize) -> Option<&'a Measurement> {
        point.results[drive].as_ref()
    }

    /// A figure of a chapter's points by one setting, rising: one list a drive.
    fn curves(
        &self,
        chapter: &str,
        wanted: impl Fn(&Point) -> bool,
        x: impl Fn(&Point) -> Option<u64>,
        direction: &str,
        y: impl Fn(&Figures) -> f64,
    ) -> Vec<Vec<(u64, f64)>> {
        (0..self.drives())
            .map(|drive| {
                self.points(chapter)
                    .filter(|point| wanted(point))
                    .filter_map(|point| {
                        Some((x(point)?, y(self.figures(point, drive, direction)?)))
                    })
                    .collect()
            })
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

/// `3.2 times`, `12 times`.
fn times(factor: f64) -> String {
    if factor < 9.95 {
        format!("{factor:.1} times")
    } else {
        format!("{factor:.0} times")
    }
}

/// Drives by a figure, the smallest first; those without it are left out.
fn ranked(drives: usize, figure: impl Fn(usize) -> Option<f64>) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, f64)> = (0..drives)
        .filter_map(|drive| Some((drive, figure(drive)?)))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}
