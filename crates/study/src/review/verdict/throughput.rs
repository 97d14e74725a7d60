//! Sentences about throughput: crossings, saturation, mixes and the write cliff.

use super::crossing::{CLEAR, overtakes, saturates};
use super::{Facts, listed, ranked, sentence, times};
use crate::report::quantity::{bytes_binary, count, megabytes_a_second};
use crate::review::summary::ends_of_cliff;

/// A drive counts as saturated where it does this share of its most.
const SATURATED: f64 = 0.97;

/// `the A overtakes the B and the C from 64 KiB`: a clause for each drive and place, in order of place.
fn overtakings(
    facts: &Facts<'_>,
    curves: &[Vec<(u64, f64)>],
    place: impl Fn(u64) -> String,
) -> Vec<String> {
    let mut found: Vec<(u64, usize, Vec<String>)> = Vec::new();
    for (b, rising) in curves.iter().enumerate() {
        for (a, passed) in curves.iter().enumerate() {
            let Some(x) = overtakes(passed, rising) else {
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
    found
        .into_iter()
        .map(|(x, b, others)| {
            format!(
                "{} overtakes {} {}",
                facts.the(b),
                listed(&others),
                place(x)
            )
        })
        .collect()
}

/// Where one drive overtakes another as blocks grow.
pub(super) fn block_sizes(facts: &Facts<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (pattern, direction) in [
        ("random", "read"),
        ("random", "write"),
        ("sequential", "read"),
        ("sequential", "write"),
    ] {
        let curves = facts.curves(
            "block-size",
            |point| {
                point.settings.pattern == Some(pattern)
                    && point.settings.direction == Some(direction)
                    && point.settings.alignment == Some("block")
            },
            |point| point.settings.block_bytes,
            direction,
            |figures| figures.mb_s,
        );
        let from = |bytes: u64| format!("from {}", bytes_binary(bytes as f64));
        let clauses = overtakings(facts, &curves, from);
        if !clauses.is_empty() {
            let clauses = clauses.join("; ");
            sentences.push(format!(
                "{} {direction}s at QD1: {clauses}.",
                sentence(pattern)
            ));
        }
    }
    sentences
}

/// What 4 KiB I/O loses when it is aligned to 512 B only, where that is much.
pub(super) fn unaligned(facts: &Facts<'_>) -> Vec<String> {
    let at = |drive: usize, alignment: &str, direction: &str| {
        let point = facts.find("block-size", |point| {
            point.settings.pattern == Some("random")
                && point.settings.direction == Some(direction)
                && point.settings.alignment == Some(alignment)
                && point.settings.block_bytes == Some(4096)
        })?;
        Some(facts.figures(point, drive, direction)?.iops)
    };
    let losses: Vec<String> = (0..facts.drives())
        .filter_map(|drive| {
            let loss = |direction| {
                let lost = 1.0 - at(drive, "sector", direction)? / at(drive, "block", direction)?;
                (lost > 0.05).then(|| format!("{:.0} % of its {direction}s", lost * 100.0))
            };
            let lost: Vec<String> = ["read", "write"].into_iter().filter_map(loss).collect();
            (!lost.is_empty()).then(|| format!("{} loses {}", facts.the(drive), listed(&lost)))
        })
        .collect();
    if losses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "With 4 KiB random I/O aligned to no more than 512 B, {}.",
        losses.join("; ")
    )]
}

fn by_depth(facts: &Facts<'_>, direction: &str) -> Vec<Vec<(u64, f64)>> {
    facts.curves(
        "queue-depth",
        |point| point.settings.direction == Some(direction),
        |point| point.settings.queue_depth.map(u64::from),
        direction,
        |figures| figures.iops,
    )
}

/// Where each drive saturates.
pub(super) fn saturation(facts: &Facts<'_>) -> Vec<String> {
    ["read", "write"]
        .into_iter()
        .filter_map(|direction| {
            let curves = by_depth(facts, direction);
            let clauses: Vec<String> = curves
                .iter()
                .enumerate()
                .filter_map(|(drive, curve)| {
                    let &(deepest, last) = curve.last()?;
                    Some(match saturates(curve, SATURATED) {
                        Some((depth, most)) => format!(
                            "{} saturates at QD{depth} with {} IOPS",
                            facts.the(drive),
                            count(most)
                        ),
                        None => format!(
                            "{} still grows at QD{deepest}, with {} IOPS",
                            facts.the(drive),
                            count(last)
                        ),
                    })
                })
                .collect();
            (!clauses.is_empty()).then(|| format!("Random {direction}s: {}.", clauses.join("; ")))
        })
        .collect()
}

/// Where one drive overtakes another as queues deepen, and from where the leader beats all others at any depth.
pub(super) fn depths(facts: &Facts<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for direction in ["read", "write"] {
        let curves = by_depth(facts, direction);
        let most = |drive: usize| {
            let all = curves[drive].iter().map(|&(_, iops)| iops);
            all.max_by(f64::total_cmp)
        };
        let order = ranked(facts.drives(), most);
        if let [.., (second, runner_up), (leader, _)] = order[..] {
            let from = curves[leader]
                .iter()
                .find(|&&(_, iops)| iops > runner_up * (1.0 + CLEAR));
            if let Some(&(depth, _)) = from.filter(|&&(depth, _)| depth <= 32) {
                let others = if order.len() > 2 {
                    "any other".to_owned()
                } else {
                    facts.the(second)
                };
                sentences.push(format!(
                    "From QD{depth} on {} does more random {direction}s than {others} at any depth.",
                    facts.the(leader)
                ));
            }
        }
        let clauses = overtakings(facts, &curves, |depth| format!("at QD{depth}"));
        if !clauses.is_empty() {
            sentences.push(sentence(&format!(
                "in random {direction}s {}.",
                clauses.join("; ")
            )));
        }
    }
    sentences
}

/// The most that each drive moves in order.
pub(super) fn sequential(facts: &Facts<'_>) -> Vec<String> {
    let most = |direction: &'static str| {
        let curves = facts.curves(
            "sequential",
            |point| point.settings.direction == Some(direction),
            |point| point.settings.queue_depth.map(u64::from),
            direction,
            |figures| figures.mb_s,
        );
        ranked(facts.drives(), |drive| {
            let all = curves[drive].iter().map(|&(_, mb_s)| mb_s);
            all.max_by(f64::total_cmp)
        })
    };
    let clause = |direction| {
        let mut order = most(direction);
        order.reverse();
        let drives: Vec<String> = order
            .iter()
            .map(|&(drive, mb_s)| format!("{} {}", facts.the(drive), megabytes_a_second(mb_s)))
            .collect();
        (!drives.is_empty()).then(|| format!("{direction}s {}", listed(&drives)))
    };
    let clauses: Vec<String> = ["read", "write"].into_iter().filter_map(clause).collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "In order, 128 KiB at a time: {}.",
        clauses.join("; ")
    )]
}

/// How a 70/30 mix compares with reads alone.
pub(super) fn mixes(facts: &Facts<'_>) -> Vec<String> {
    let total = |drive: usize, percent: u32| {
        let point = facts.find("mix", |point| point.settings.read_percent == Some(percent))?;
        Some(crate::review::run::total_iops(facts.result(point, drive)?))
    };
    let mut order = ranked(facts.drives(), |drive| {
        Some(total(drive, 70)? / total(drive, 100)?)
    });
    order.reverse();
    let clauses: Vec<String> = order
        .iter()
        .map(|&(drive, share)| format!("{} {:.0} %", facts.the(drive), share * 100.0))
        .collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Of the pace of reads alone, three writes among ten I/Os leave {}.",
        listed(&clauses)
    )]
}

/// What sustained random writes do to each drive.
pub(super) fn cliff(facts: &Facts<'_>) -> Vec<String> {
    let mut falls = Vec::new();
    let mut steady = Vec::new();
    for drive in 0..facts.drives() {
        match ends_of_cliff(facts.review, drive) {
            Some((first, last)) if first / last > 1.1 => falls.push(format!(
                "{} falls {}, from {} to {} IOPS",
                facts.the(drive),
                times(first / last).replace("times", "fold"),
                count(first),
                count(last)
            )),
            Some((_, last)) => steady.push(format!(
                "{} keeps its {} IOPS",
                facts.the(drive),
                count(last)
            )),
            None => {}
        }
    }
    falls.extend(steady);
    if falls.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Written at random from fresh: {}.",
        falls.join("; ")
    )]
}
