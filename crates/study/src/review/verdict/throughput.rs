//! Sentences about throughput: crossings, saturation, mixes and the write cliff.

use super::crossing::{CLEAR, overtakes, saturates};
use super::latency::percent;
use super::range::{Range, ends, span};
use super::{Facts, Seeds, listed, sentence};
use crate::review::run::total_iops;
use crate::review::summary::ends_of_cliff;
use text::digits::{bytes_binary, count, megabytes_a_second};

/// A drive counts as saturated where it does this share of its most.
const SATURATED: f64 = 0.97;

/// Rising x and what a drive does there.
type Curve = Vec<(u64, f64)>;

/// Where one overtakes others: least and greatest place over the seeds, the drive, and those that it overtakes.
type Overtaking = ((u64, u64), usize, Vec<String>);

/// `the A overtakes the B and the C from 64 KiB`: a clause for each drive and place, in order of place; only where each
/// seed shows it.
fn overtakings<'a>(
    seeds: &Seeds<'a>,
    curve: impl Fn(&Facts<'a>, usize) -> Curve,
    place: impl Fn((u64, u64)) -> String,
) -> Vec<String> {
    let facts = &seeds.all;
    let of_seed = |facts: &Facts<'a>| -> Vec<Curve> {
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

/// Where one drive overtakes another as blocks grow.
pub(super) fn block_sizes(seeds: &Seeds<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (pattern, direction) in [
        ("random", "read"),
        ("random", "write"),
        ("sequential", "read"),
        ("sequential", "write"),
    ] {
        let curve = |facts: &Facts<'_>, drive| {
            facts.curve(
                ("block-size", drive, direction),
                |point| {
                    point.settings.pattern == Some(pattern)
                        && point.settings.alignment == Some("block")
                },
                |point| point.settings.block_bytes,
                |figures| figures.mb_s,
            )
        };
        let from = |x| format!("from {}", span(x, |bytes| bytes_binary(bytes as f64)));
        let clauses = overtakings(seeds, curve, from);
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

/// What is left of the rate of 4 KiB I/O when it is aligned to 512 B only, where much is lost.
pub(super) fn unaligned(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let at = |facts: &Facts<'_>, drive: usize, alignment: &str, direction: &str| {
        let point = facts.find("block-size", |point| {
            point.settings.pattern == Some("random")
                && point.settings.direction == Some(direction)
                && point.settings.alignment == Some(alignment)
                && point.settings.block_bytes == Some(4096)
        })?;
        Some(facts.figures(point, drive, direction)?.iops)
    };
    let of_drive = |drive| {
        let left = |direction| {
            let share = seeds.range(|facts| {
                Some(at(facts, drive, "sector", direction)? / at(facts, drive, "block", direction)?)
            })?;
            (share.high < 0.95).then(|| format!("{direction}s at {}", percent(share)))
        };
        let left: Vec<String> = ["read", "write"].into_iter().filter_map(left).collect();
        (!left.is_empty()).then(|| format!("{} does {}", facts.the(drive), listed(&left)))
    };
    let all: Vec<String> = (0..facts.drives()).filter_map(of_drive).collect();
    if all.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Aligned to 512 B instead of 4 KiB, {} of the aligned rate (4 KiB random, QD1).",
        all.join("; ")
    )]
}

fn by_depth(facts: &Facts<'_>, drive: usize, direction: &str) -> Curve {
    facts.curve(
        ("queue-depth", drive, direction),
        |_| true,
        |point| point.settings.queue_depth.map(u64::from),
        |figures| figures.iops,
    )
}

/// The most of a curve.
fn peak(curve: &Curve) -> Option<f64> {
    curve.iter().map(|&(_, y)| y).max_by(f64::total_cmp)
}

fn at_depth(ends: (u64, u64)) -> String {
    span(ends, |depth| format!("QD{depth}"))
}

/// Where each drive saturates.
pub(super) fn saturation(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let of_drive = |drive: usize, direction: &str| {
        let most = seeds.range(|facts| peak(&by_depth(facts, drive, direction)))?;
        let curves: Vec<Curve> = seeds
            .each
            .iter()
            .map(|facts| by_depth(facts, drive, direction))
            .collect();
        let (name, most) = (facts.the(drive), most.words(count));
        let found = || curves.iter().map(|curve| saturates(curve, SATURATED));
        if let Some(at) = ends(found().map(|at| at.map(|(depth, _)| depth))) {
            return Some(format!(
                "{name} saturates at {} with {most} IOPS",
                at_depth(at)
            ));
        }
        let deepest = curves.first()?.last()?.0;
        // Where seeds do not agree, neither is said.
        let grows = found().all(|at| at.is_none());
        grows.then(|| format!("{name} still grows at QD{deepest}, with {most} IOPS"))
    };
    let one = |direction| {
        let clauses: Vec<String> = (0..facts.drives())
            .filter_map(|drive| of_drive(drive, direction))
            .collect();
        (!clauses.is_empty()).then(|| format!("Random {direction}s: {}.", clauses.join("; ")))
    };
    ["read", "write"].into_iter().filter_map(one).collect()
}

/// Where one drive overtakes another as queues deepen, and from where the leader beats all others at any depth.
pub(super) fn depths(seeds: &Seeds<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for direction in ["read", "write"] {
        sentences.extend(leader(seeds, direction));
        let curve = |facts: &Facts<'_>, drive| by_depth(facts, drive, direction);
        let at = |x| match x {
            (low, high) if low == high => format!("at QD{low}"),
            x => format!("between {}", at_depth(x).replace(" to ", " and ")),
        };
        let clauses = overtakings(seeds, curve, at);
        if !clauses.is_empty() {
            sentences.push(sentence(&format!(
                "in random {direction}s {}.",
                clauses.join("; ")
            )));
        }
    }
    sentences
}

/// From which depth the drive with the most beats what the others do at any.
fn leader(seeds: &Seeds<'_>, direction: &str) -> Option<String> {
    let facts = &seeds.all;
    let most = |facts: &Facts<'_>, drive| peak(&by_depth(facts, drive, direction));
    let order = seeds.ranked(most)?;
    let [.., (second, _), (leader, _)] = order[..] else {
        return None;
    };
    let from = seeds.each.iter().map(|facts| {
        let others = order.iter().filter(|(drive, _)| *drive != leader);
        let runner_up = others
            .filter_map(|&(drive, _)| most(facts, drive))
            .max_by(f64::total_cmp)?;
        let curve = by_depth(facts, leader, direction);
        let beats = curve
            .iter()
            .find(|&&(_, iops)| iops > runner_up * (1.0 + CLEAR));
        beats.map(|&(depth, _)| depth)
    });
    let from = ends(from).filter(|&(_, last)| last <= 32)?;
    let best = match order.len() {
        2 => format!("{} does", facts.the(second)),
        _ => "the others do".to_owned(),
    };
    Some(format!(
        "From {} {} does more random {direction}s than {best} at any depth.",
        at_depth(from),
        facts.the(leader)
    ))
}

/// The most that each drive moves in order, on drives overwritten at random and filled in order.
pub(super) fn sequential(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let most = |facts: &Facts<'_>, chapter: &str, drive: usize, direction: &str| {
        peak(&facts.curve(
            (chapter, drive, direction),
            |_| true,
            |point| point.settings.queue_depth.map(u64::from),
            |figures| figures.mb_s,
        ))
    };
    let clause = |direction: &str| {
        let mut order = seeds.ranked(|facts, drive| most(facts, "sequential", drive, direction))?;
        order.reverse();
        let one = |&(drive, scattered): &(usize, Range)| {
            let filled = seeds.range(|facts| most(facts, "sequential-filled", drive, direction));
            let in_order =
                filled.filter(|filled| (filled.value / scattered.value - 1.0).abs() > CLEAR);
            let in_order = in_order.map_or(String::new(), |filled| {
                format!(" ({} filled in order)", megabytes_a_second(filled.value))
            });
            let rate = scattered.words(megabytes_a_second);
            format!("{} {rate}{in_order}", facts.the(drive))
        };
        let drives: Vec<String> = order.iter().map(one).collect();
        Some(format!("{direction}s {}", listed(&drives)))
    };
    let clauses: Vec<String> = ["read", "write"].into_iter().filter_map(clause).collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "In order, 128 KiB at a time, on drives overwritten at random before: {}.",
        clauses.join("; ")
    )]
}

/// How a 70/30 mix compares with reads alone.
pub(super) fn mixes(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let total = |facts: &Facts<'_>, drive: usize, percent: u32| {
        let point = facts.find("mix", |point| point.settings.read_percent == Some(percent))?;
        Some(total_iops(facts.result(point, drive)?))
    };
    let share =
        |facts: &Facts<'_>, drive| Some(total(facts, drive, 70)? / total(facts, drive, 100)?);
    let Some(mut order) = seeds.ranked(share) else {
        return Vec::new();
    };
    order.reverse();
    let clauses: Vec<String> = order
        .iter()
        .map(|&(drive, share)| format!("{} {}", facts.the(drive), percent(share)))
        .collect();
    vec![format!(
        "A 70/30 mix runs at this share of the read-only IOPS: {}.",
        listed(&clauses)
    )]
}

/// What sustained random writes do to each drive.
pub(super) fn cliff(seeds: &Seeds<'_>) -> Vec<String> {
    let facts = &seeds.all;
    let mut falls = Vec::new();
    let mut steady = Vec::new();
    for drive in 0..facts.drives() {
        let ends = |facts: &Facts<'_>| {
            let point = facts.find("sustained", |_| true)?;
            ends_of_cliff(facts.result(point, drive)?)
        };
        let first = seeds.range(|facts| Some(ends(facts)?.0));
        let last = seeds.range(|facts| Some(ends(facts)?.1));
        let lost = seeds.range(|facts| ends(facts).map(|(first, last)| 1.0 - last / first));
        let (Some(first), Some(last), Some(lost)) = (first, last, lost) else {
            continue;
        };
        let name = facts.the(drive);
        if lost.low > 0.1 {
            falls.push(format!(
                "{name} drops by {}, from {} to {} IOPS",
                percent(lost),
                first.words(count),
                last.words(count)
            ));
        } else if lost.high <= 0.1 {
            steady.push(format!("{name} keeps its {} IOPS", last.words(count)));
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
