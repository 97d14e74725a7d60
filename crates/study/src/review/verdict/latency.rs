//! Sentences about latency.

use model::Part;

use super::{Facts, listed, ranked, sentence, times};
use crate::report::quantity::microseconds;

/// Who answers first, alone.
pub(super) fn alone(facts: &Facts<'_>) -> Vec<String> {
    ["read", "write"]
        .into_iter()
        .filter_map(|direction| {
            let order = ranked(facts.drives(), |drive| {
                Some(facts.at_depth(drive, direction, 1)?.latency.mean_us)
            });
            let (&(best, least), others) = order.split_first()?;
            let compared: Vec<String> = others
                .iter()
                .map(|&(drive, us)| format!("{} takes {}", facts.the(drive), microseconds(us)))
                .collect();
            let mut text = format!(
                "Alone, {} answers a 4 KiB random {direction} in {}",
                facts.the(best),
                microseconds(least)
            );
            if !compared.is_empty() {
                text.push_str(&format!("; {}", listed(&compared)));
            }
            Some(text + ".")
        })
        .collect()
}

/// The five nines at QD16.
pub(super) fn tail(facts: &Facts<'_>) -> Vec<String> {
    ["read", "write"]
        .into_iter()
        .filter_map(|direction| {
            let order = ranked(facts.drives(), |drive| {
                facts.at_depth(drive, direction, 16)?.latency.p99_999_us
            });
            let (&(best, least), others) = order.split_first()?;
            let &(worst, most) = others.last()?;
            Some(format!(
                "At QD16 one random {direction} in 100,000 takes longer than {} on {}, and longer than {} on {}: {}.",
                microseconds(least),
                facts.the(best),
                microseconds(most),
                facts.the(worst),
                times(most / least)
            ))
        })
        .collect()
}

/// What the slowest band of reads among writes waited for.
pub(super) fn waits(facts: &Facts<'_>) -> Vec<String> {
    let Some(point) = facts.find("mix", |point| point.settings.read_percent == Some(70)) else {
        return Vec::new();
    };
    let edges = &facts.review.band_edges;
    let sentences = (0..facts.drives()).filter_map(|drive| {
        let bands = facts.figures(point, drive, "read")?.bands.as_ref()?;
        let (band, slowest) = bands
            .iter()
            .enumerate()
            .rev()
            .find_map(|(band, found)| Some((band, found.as_ref()?)))?;
        // fio's latency does not count the time before the thread issues.
        let counted = || {
            let parts = slowest.parts_us.iter().enumerate();
            parts.filter(|&(part, _)| part != Part::ThreadBusy as usize)
        };
        let total: f64 = counted().map(|(_, us)| us).sum();
        let (part, longest) = counted().max_by(|a, b| a.1.total_cmp(b.1))?;
        let share = longest / total;
        (share >= 0.3).then(|| {
            let slow = ((100.0 - edges[band]) * 1e6).round() / 1e6;
            format!(
                "on {} the slowest {slow} % spend {:.0} % of their time {}",
                facts.the(drive),
                share * 100.0,
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
