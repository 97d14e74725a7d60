//! Tail latency up to p99.999, and the latency breakdown of the slowest I/Os. The chapter has no points of its own; it
//! uses those of other chapters.

use model::Part;

use super::{mix, queue_depth};
use crate::review::chapter::Chapter;
use crate::review::chart::{ChapterSection, Chart, Draws};
use crate::review::results::Review;
use crate::review::verdict::crossing::CLEAR;
use crate::review::verdict::range::percent;
use crate::review::verdict::{ReviewView, Seeds, sentence};
use text::digits::microseconds;

const ID: &str = "latency";

/// The chapter.
pub(crate) struct TailLatency;

impl Chapter for TailLatency {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        self.section().title
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Tail latency",
            about: "A mean hides the rare slow I/Os that users notice. On this axis, each further nine is ten times rarer. The \
                    second chart divides the latency of each percentile band into the parts in which its I/Os spent their \
                    time. A model can report these parts; a real drive cannot.",
            charts: &[
                Chart {
                    id: "distribution",
                    title: "Latency by percentile",
                    draws: Draws::Distribution,
                },
                Chart {
                    id: "anatomy",
                    title: "Latency breakdown by percentile",
                    draws: Draws::Anatomy,
                },
            ],
        }
    }

    fn is_shown(&self, review: &Review) -> bool {
        queue_depth::is_in(review) || review.is_of_own_work()
    }

    fn sentences(&self, seeds: &Seeds<'_>) -> Vec<String> {
        [tail(seeds), waits(seeds)].concat()
    }
}

/// Percentiles for a sentence on the tail: the index among the named percentiles, and its text.
const TAILS: [(usize, &str); 3] = [(4, "100,000"), (3, "10,000"), (2, "1,000")];

/// States the deepest percentile at QD16 that every seed has for every drive, and the ratio between the drives.
fn tail(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let at = |facts: &ReviewView<'_>, drive, direction: &str, index: usize| {
        queue_depth::figures_at_depth(facts, drive, direction, 16)?
            .latency
            .named()[index]
    };
    let one = |direction| {
        let (index, nines, order) = TAILS.into_iter().find_map(|(index, nines)| {
            let order = seeds.ranked(|facts, drive| at(facts, drive, direction, index))?;
            (order.len() == facts.drives()).then_some((index, nines, order))
        })?;
        let (&(best, least), others) = order.split_first()?;
        let &(worst, most) = others.last()?;
        let ratio = seeds.range(|facts| {
            Some(at(facts, worst, direction, index)? / at(facts, best, direction, index)?)
        })?;
        (ratio.low > 1.0 + CLEAR).then(|| {
            format!(
                "At QD16 one random {direction} in {nines} takes longer than {} on {}, and {} on {}, {} as long.",
                least.words(microseconds),
                facts.the(best),
                most.words(microseconds),
                facts.the(worst),
                ratio.times()
            )
        })
    };
    ["read", "write"].into_iter().filter_map(one).collect()
}

/// States the largest latency part of the slowest band of reads in the mix.
fn waits(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let bands = facts.review.band_edges.len() - 1;
    let sentences = (0..facts.drives()).filter_map(|drive| {
        // The slowest band that every seed has.
        let (band, part) = (0..bands).rev().find_map(|band| {
            let known = seeds
                .each
                .iter()
                .all(|facts| parts(facts, drive, band).is_some());
            let (part, _) = longest(&parts(&seeds.all, drive, band)?)?;
            known.then_some((band, part))
        })?;
        let same = |facts: &ReviewView<'_>| {
            let found = parts(facts, drive, band).and_then(|parts| longest(&parts));
            found.is_some_and(|(longest, _)| longest == part)
        };
        if !seeds.each.iter().all(same) {
            return None;
        }
        let share = seeds.range(|facts| {
            let parts = parts(facts, drive, band)?;
            Some(parts[part] / parts.iter().sum::<f64>())
        })?;
        (share.low >= 0.3).then(|| {
            let slow = ((100.0 - facts.review.band_edges[band]) * 1e6).round() / 1e6;
            format!(
                "on {} the slowest {slow} % spend {} of their time {}",
                facts.the(drive),
                percent(share),
                spent(facts.review.parts[part])
            )
        })
    });
    let all: Vec<String> = sentences.collect();
    if all.is_empty() {
        return Vec::new();
    }
    vec![sentence(&format!(
        "reads of a 70/30 mix: {}.",
        all.join("; ")
    ))]
}

/// Returns the mean parts of the reads of a 70/30 mix in a band. fio's latency excludes the time before the thread
/// issues.
fn parts(facts: &ReviewView<'_>, drive: usize, band: usize) -> Option<[f64; Part::COUNT]> {
    let point = mix::of_70(facts.review)?;
    let bands = facts.figures(point, drive, "read")?.bands.as_ref()?;
    let mut parts = bands[band].as_ref()?.parts_us;
    parts[Part::ThreadBusy as usize] = 0.0;
    Some(parts)
}

/// Returns the longest part with its time.
fn longest(parts: &[f64; Part::COUNT]) -> Option<(usize, f64)> {
    let all = parts.iter().copied().enumerate();
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns a part as the end of a sentence on its share of the time.
fn spent(part: &str) -> String {
    match part {
        "medium" => "reading the medium".to_owned(),
        "write buffer full" => "waiting for space in the write buffer".to_owned(),
        part if part.starts_with("behind") => format!("waiting {part}"),
        "tier" => "in the tier itself".to_owned(),
        "congestion" => "throttled by a tier that is nearly full".to_owned(),
        "collision" => "waiting for the same unit".to_owned(),
        "controller" => "in or before the controller".to_owned(),
        part => format!("on {part}"),
    }
}
