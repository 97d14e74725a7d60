//! Sentences about latency.

use model::Part;

use super::range::Range;
use super::{Facts, Seeds, crossing::CLEAR, listed, sentence};
use text::digits::microseconds;

/// Who answers first, alone.
pub(super) fn alone(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let one = |direction| {
        let order = seeds
            .ranked(|facts, drive| Some(facts.at_depth(drive, direction, 1)?.latency.mean_us))?;
        let (&(best, least), others) = order.split_first()?;
        let compared: Vec<String> = others
            .iter()
            .map(|&(drive, us)| format!("{} takes {}", facts.the(drive), us.words(microseconds)))
            .collect();
        let mut text = format!(
            "Alone, {} answers a 4 KiB random {direction} in {}",
            facts.the(best),
            least.words(microseconds)
        );
        if !compared.is_empty() {
            text.push_str(&format!("; {}", listed(&compared)));
        }
        Some(text + ".")
    };
    ["read", "write"].into_iter().filter_map(one).collect()
}

/// Percentiles that a sentence on the tail may be about: index among those with a name, and in words.
const TAILS: [(usize, &str); 3] = [(4, "100,000"), (3, "10,000"), (2, "1,000")];

/// The deepest percentile at QD16 that each seed knows of each drive, and how far it is between the drives.
pub(super) fn tail(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let at = |facts: &Facts<'_>, drive, direction: &str, index: usize| {
        facts.at_depth(drive, direction, 16)?.latency.named()[index]
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

/// What the slowest band of reads among writes waited for.
pub(super) fn waits(seeds: &Seeds<'_>) -> Vec<String> {
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
        let same = |facts: &Facts<'_>| {
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

/// `60 %`, `60 % (55 to 66 %)`.
pub(super) fn percent(share: Range) -> String {
    let [value, low, high] =
        [share.value, share.low, share.high].map(|share| format!("{:.0}", share * 100.0));
    match low == high {
        true => format!("{value} %"),
        false => format!("{value} % ({low} to {high} %)"),
    }
}

/// Mean parts of the reads of a 70/30 mix in a band; fio's latency does not count the time before the thread issues.
fn parts(facts: &Facts<'_>, drive: usize, band: usize) -> Option<[f64; Part::COUNT]> {
    let point = facts.find("mix", |point| point.settings.read_percent == Some(70))?;
    let bands = facts.figures(point, drive, "read")?.bands.as_ref()?;
    let mut parts = bands[band].as_ref()?.parts_us;
    parts[Part::ThreadBusy as usize] = 0.0;
    Some(parts)
}

/// The longest part and its time.
fn longest(parts: &[f64; Part::COUNT]) -> Option<(usize, f64)> {
    let all = parts.iter().copied().enumerate();
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A part as the end of "so much of the time ...".
fn spent(part: &str) -> String {
    match part {
        "medium" => "reading the medium".to_owned(),
        "write buffer full" => "waiting for room in the write buffer".to_owned(),
        part if part.starts_with("behind") => format!("waiting {part}"),
        "collision" => "waiting for the same unit".to_owned(),
        "controller" => "in or before the controller".to_owned(),
        part => format!("on {part}"),
    }
}
