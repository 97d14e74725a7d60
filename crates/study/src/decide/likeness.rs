//! Replacement of a drive that is no longer available: candidates in the order of their deficit in rate, latencies,
//! rated endurance and capacity at the same load. A better figure does not increase the deficit. Candidates that miss
//! a limit come last, after those that do not fit the slot ([`super::slot`]). Before these come candidates that do not
//! hold the data of the drive (less than nine tenths of its capacity), or lack its power-loss protection.
//!
//! Without a given rate, all run at half of the maximum of the drive that is replaced ([`super::half_rate`]): a drive is
//! used below its maximum, and at each drive's own maximum queues hide latency. Not compared: properties that the load
//! does not use, and figures that are unknown for either drive.

use serde::Serialize;
use text::problem::{Place, Problem, Problems};

use super::choose::{CLOSE, Candidate, Unfit};
use super::life::CyclesEnd;
use crate::review::results::rounded;

/// Possible replacements of a drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replacements {
    /// Name of the drive that is replaced.
    pub drive: String,
    /// Whether all ran at half of its maximum, as neither the user nor a limit gives a rate.
    pub at_half_of_its_maximum: bool,
    /// Replacements, the best first.
    pub others: Vec<Likeness>,
}

/// Comparison of a candidate with the drive that it replaces; ratios are candidate divided by that drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Likeness {
    /// Name of the candidate.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// Whether it meets all limits and completes a given rate.
    pub meets: bool,
    /// Mean factor by which it is worse, 1 if it is worse in nothing: over rate, latencies, rated endurance and
    /// capacity.
    pub lacks: f64,
    /// Mean factor of difference, 1 if equal: over rates and latencies, in either direction.
    pub factor: f64,
    /// Ratio of IOPS.
    pub iops: f64,
    /// Ratio of the 99th percentile.
    pub p99: Option<f64>,
    /// Ratio of the mean latency of the slower direction.
    pub mean: Option<f64>,
    /// Ratio of watts.
    pub watts: Option<f64>,
    /// Ratio of rated bytes.
    pub endurance: Option<f64>,
    /// Ratio of capacity.
    pub capacity: Option<f64>,
    /// Why it does not fit the slot of the drive; null if it does, and for pools.
    pub does_not_fit: Option<String>,
    /// Whether it lacks the power-loss protection of the drive.
    pub lacks_power_loss_protection: bool,
    /// Losses as text: the slot, power-loss protection, a capacity that does not hold the data, and figures that are worse
    /// by a fifth or more.
    pub lost: Vec<String>,
    /// If it is no longer made: since when; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_longer_made: Option<String>,
    /// Years after which it wears out, if that is within the requested years and the drive that it replaces lasts
    /// longer by a fifth or more.
    pub ends_after_years: Option<f64>,
    /// The cycles that cause this end, if they are used up much earlier than the rating; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CyclesEnd>,
}

/// Factor by which a figure must be worse to count as a loss.
const LOST: f64 = 1.2;

/// Share of the capacity of a drive below which another one does not hold its data. 960 GB replace 1,000 or 1,024 GB.
const HOLDS: f64 = 0.9;

/// Factors of the deficit of a candidate that lacks something that no figure makes good: a slot that it fits, and
/// capacity or power-loss protection.
const UNFIT: f64 = 1e9;
const UNSAFE: f64 = 1e3;

impl Likeness {
    /// Returns the deficit, by which candidates are ordered: [`Likeness::lacks`], multiplied for each thing that no figure
    /// makes good.
    fn deficit(&self) -> f64 {
        let holds = self.capacity.is_none_or(|ratio| ratio >= HOLDS);
        [
            (self.does_not_fit.is_some(), UNFIT),
            (self.lacks_power_loss_protection, UNSAFE),
            (!holds, UNSAFE),
        ]
        .into_iter()
        .filter(|(lacks, _)| *lacks)
        .fold(self.lacks, |deficit, (_, factor)| deficit * factor)
    }

    /// Checks whether it lacks as little as another within [`CLOSE`].
    pub fn is_close_to(&self, best: &Likeness) -> bool {
        self.meets == best.meets && self.deficit() <= best.deficit() * (1.0 + CLOSE)
    }
}

/// Checks whether a drive meets all limits: a replacement, if there are some, otherwise any candidate.
pub fn is_met(candidates: &[Candidate], like: Option<&Replacements>) -> bool {
    match like.filter(|like| !like.others.is_empty()) {
        Some(like) => like.others.iter().any(|one| one.meets),
        None => candidates.iter().any(Candidate::is_met),
    }
}

/// Checks that the drive that is replaced, if there is one, runs the load.
///
/// # Errors
/// Why it does not.
pub fn check_replaced(wanted: Option<&str>, unfit: &[Unfit]) -> Result<(), Problems> {
    let Some(one) = unfit.iter().find(|one| Some(&*one.drive) == wanted) else {
        return Ok(());
    };
    Err(Problems(vec![Problem {
        origin: String::from("--like"),
        place: Place::Whole,
        what: format!("{} does not run this load: {}", one.drive, one.why),
        help: Some(String::from("a load that it runs, or no --like")),
    }]))
}

impl Replacements {
    /// Ranks the candidates that can replace the drive with this name; `None` if it did not run. `years` is the term
    /// within which wear counts.
    pub fn from_candidates(
        drive: &str,
        at_half_of_its_maximum: bool,
        candidates: &[Candidate],
        years: f64,
    ) -> Option<Replacements> {
        let wanted = candidates.iter().find(|one| one.drive == drive)?;
        Some(Replacements {
            drive: drive.to_owned(),
            at_half_of_its_maximum,
            others: rank_replacements(wanted, candidates, years),
        })
    }
}

/// Returns how candidates that ran in full replace a drive: those that meet the limits first, then by deficit; of equal
/// ones, the one with the fewest losses, and the closest. `years` is the term within which wear counts.
fn rank_replacements(wanted: &Candidate, others: &[Candidate], years: f64) -> Vec<Likeness> {
    let others = others.iter().filter(|other| other.drive != wanted.drive);
    let full = others.filter(|other| !other.screened);
    let mut all: Vec<Likeness> = full.map(|other| compared(wanted, other, years)).collect();
    all.sort_by(|a, b| {
        let order = b.meets.cmp(&a.meets);
        let order = order.then(a.deficit().total_cmp(&b.deficit()));
        order
            .then(a.lost.len().cmp(&b.lost.len()))
            .then(a.factor.total_cmp(&b.factor))
            .then(a.drive.cmp(&b.drive))
    });
    all
}

/// Returns the mean latency of the slower direction.
fn mean(one: &Candidate) -> Option<f64> {
    let both = [&one.measurement.read, &one.measurement.write];
    let known = both.into_iter().flatten();
    let means = known.map(|figures| figures.latency.mean_us);
    means.max_by(f64::total_cmp)
}

/// Returns the rated bytes; for a pool, the least of its members' ratings.
fn rated(one: &Candidate) -> Option<f64> {
    let ratings = one.parts.iter().map(|part| Some(part.rating.as_ref()?.tbw));
    let ratings: Option<Vec<f64>> = ratings.collect();
    ratings?.into_iter().min_by(f64::total_cmp)
}

/// Returns the capacity; for a pool, that of all its members.
fn room(one: &Candidate) -> Option<f64> {
    let bytes = one.parts.iter().map(|part| part.capacity_bytes as f64);
    Some(bytes.sum::<f64>()).filter(|bytes| *bytes > 0.0)
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(rounded(a? / b.filter(|b| *b > 0.0)?))
}

/// Returns the factor by which a figure is worse, 1 if equal.
fn worse_by(ratio: f64, more_is_worse: bool) -> f64 {
    match more_is_worse {
        true => ratio,
        false => 1.0 / ratio.max(1e-9),
    }
}

/// Returns the deficit by which a candidate is ordered ([`Likeness::deficit`]).
pub(super) fn deficit(wanted: &Candidate, other: &Candidate) -> f64 {
    compared(wanted, other, 0.0).deficit()
}

/// Returns when a candidate ends: by its rating, or by its cycles if these are used up much earlier.
fn end(one: &Candidate, cycles: Option<&CyclesEnd>) -> Option<f64> {
    let cycles = cycles.map(|cycles| cycles.years);
    let both = one.ends_after_years.into_iter().chain(cycles);
    both.min_by(f64::total_cmp)
}

/// Returns the end of a candidate within a term, unless the drive that it replaces ends at about that time; with the
/// cycles, if they cause it.
fn early_end(
    wanted: &Candidate,
    other: &Candidate,
    years: f64,
) -> (Option<f64>, Option<CyclesEnd>) {
    let cycles = CyclesEnd::from_parts(&other.parts, years);
    let its = CyclesEnd::from_parts(&wanted.parts, f64::INFINITY);
    let its = end(wanted, its.as_ref());
    let ends = end(other, cycles.as_ref()).filter(|ends| *ends < years);
    let ends = ends.filter(|ends| its.is_none_or(|its| its >= ends * LOST));
    let cycles = cycles.filter(|cycles| ends == Some(cycles.years));
    (ends, cycles)
}

fn compared(wanted: &Candidate, other: &Candidate, years: f64) -> Likeness {
    let iops = rounded(other.iops / wanted.iops.max(1e-9));
    let p99 = ratio(other.p99_us, wanted.p99_us);
    let mean = ratio(mean(other), mean(wanted));
    let ratios = [Some(iops), p99, mean].into_iter().flatten();
    let logs: Vec<f64> = ratios
        .map(|ratio| libm::log(ratio.max(1e-9)).abs())
        .collect();
    let factor = libm::exp(logs.iter().sum::<f64>() / logs.len().max(1) as f64);
    let watts = ratio(other.watts, wanted.watts);
    let endurance = ratio(rated(other), rated(wanted));
    let capacity = ratio(room(other), room(wanted));
    let lacks = lacks([
        Some(worse_by(iops, false)),
        p99,
        mean,
        endurance.map(|ratio| worse_by(ratio, false)),
        capacity.map(|ratio| worse_by(ratio, false)),
    ]);
    let worse = |name: &str, ratio: Option<f64>, more_is_worse: bool| {
        let ratio = ratio?;
        let shown = text::digits::digits(ratio);
        (worse_by(ratio, more_is_worse) >= LOST).then(|| format!("{name} {shown} times"))
    };
    let slots = wanted.slot.as_ref().zip(other.slot.as_ref());
    let does_not_fit = slots.and_then(|(slot, drive)| slot.refuses(drive));
    let protected = [wanted, other].map(|one| one.power_loss_protection);
    let lacks_protection = protected == [Some(true), Some(false)];
    let smaller = capacity.filter(|ratio| *ratio < HOLDS);
    let lost = [
        does_not_fit.clone(),
        lacks_protection.then(|| String::from("no power-loss protection")),
        smaller.map(|ratio| format!("capacity {} times", text::digits::digits(ratio))),
        worse("IOPS", Some(iops), false),
        worse("p99", p99, true),
        worse("mean", mean, true),
        worse("watts", watts, true),
        worse("rated endurance", endurance, false),
    ];
    let (ends_after_years, cycles) = early_end(wanted, other, years);
    Likeness {
        drive: other.drive.clone(),
        model: other.model,
        meets: other.is_met(),
        lacks: rounded(lacks),
        factor: rounded(factor),
        iops,
        p99,
        mean,
        watts,
        endurance,
        capacity,
        does_not_fit,
        lacks_power_loss_protection: lacks_protection,
        lost: lost.into_iter().flatten().collect(),
        no_longer_made: other.no_longer_made.as_ref().map(|it| it.until.clone()),
        ends_after_years,
        cycles,
    }
}

/// Returns the mean of the known factors by which figures are worse; 1 for a better figure.
fn lacks(worse: [Option<f64>; 5]) -> f64 {
    let known: Vec<f64> = worse.into_iter().flatten().collect();
    let logs = known.iter().map(|factor| libm::log(factor.max(1.0)));
    libm::exp(logs.sum::<f64>() / known.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::of;
    use super::super::life;
    use super::super::slot::Slot;
    use super::*;

    #[test]
    fn the_nearest_stands_first_and_says_what_is_lost() {
        let wanted = of("gone", true, 1_000.0, 100.0, None);
        let others = [
            of("far", true, 200.0, 900.0, None),
            of("near", true, 900.0, 130.0, None),
            wanted.clone(),
        ];
        let found = rank_replacements(&wanted, &others, 5.0);
        let names: Vec<&str> = found.iter().map(|one| &*one.drive).collect();
        assert_eq!(names, ["near", "far"]);
        assert_eq!(found[0].lost, ["p99 1.3 times"]);
        assert_eq!(found[1].lost, ["IOPS 0.2 times", "p99 9 times"]);
    }

    #[test]
    fn a_better_drive_lacks_nothing() {
        let wanted = of("gone", true, 1_000.0, 100.0, None);
        let others = [
            of("a little slower", true, 950.0, 110.0, None),
            of("four times as fast", true, 4_000.0, 25.0, None),
            of("three times as fast", true, 3_000.0, 30.0, None),
        ];
        let found = rank_replacements(&wanted, &others, 5.0);
        let names: Vec<&str> = found.iter().map(|one| &*one.drive).collect();
        assert_eq!(
            names,
            [
                "three times as fast",
                "four times as fast",
                "a little slower"
            ]
        );
        assert_eq!((found[0].lacks, found[1].lacks), (1.0, 1.0));
        assert!(found[2].lacks > 1.0);
    }

    #[test]
    fn a_replaced_drive_that_does_not_run_the_load_is_a_problem() {
        let unfit = [Unfit {
            drive: String::from("gone"),
            why: String::from("it is read-only"),
        }];
        let said = check_replaced(Some("gone"), &unfit).expect_err("it does not run");
        let said = said.to_string();
        assert!(
            said.contains("gone does not run this load: it is read-only"),
            "{said}"
        );
        assert!(said.contains("--like"), "{said}");
        for wanted in [Some("other"), None] {
            assert!(check_replaced(wanted, &unfit).is_ok());
        }
    }

    /// The drive that is replaced meets the limits, and that is no answer.
    #[test]
    fn limits_are_met_by_a_replacement() {
        let candidates = [
            of("gone", true, 1_000.0, 100.0, None),
            of("other", false, 900.0, 900.0, None),
        ];
        for (count, like, met) in [(2, true, false), (2, false, true), (1, true, true)] {
            let candidates = &candidates[..count];
            let found = Replacements::from_candidates("gone", false, candidates, 5.0);
            let found = found.filter(|_| like);
            assert_eq!(is_met(candidates, found.as_ref()), met, "{count} {like}");
        }
    }

    /// Watts are no deficit, but of two that lack nothing, the one that does not need more comes first.
    #[test]
    fn of_equal_ones_that_with_fewer_losses_comes_first() {
        let with_watts = |drive, p99_us, watts| Candidate {
            watts: Some(watts),
            ..of(drive, true, 1_000.0, p99_us, None)
        };
        let wanted = with_watts("gone", 100.0, 5.0);
        let others = [
            with_watts("same, hotter", 100.0, 8.0),
            with_watts("quicker", 50.0, 5.0),
        ];
        let found = rank_replacements(&wanted, &others, 5.0);
        let names: Vec<&str> = found.iter().map(|one| &*one.drive).collect();
        assert_eq!(names, ["quicker", "same, hotter"]);
        assert_eq!(found[1].lost, ["watts 1.6 times"]);
    }

    /// A module does not replace a drive in a bay, whatever its figures; nor does a smaller drive, or one without the
    /// power-loss protection of the drive.
    #[test]
    fn slot_capacity_and_protection_come_before_figures() {
        let slot = |interface: &str, form: &str| {
            Some(Slot {
                interface: String::from(interface),
                form_factor: String::from(form),
                is_form_assumed: false,
            })
        };
        let sata = || slot("SATA 6 Gb/s", "2.5 inch");
        let part = |drive: &str, bytes: u64| {
            let mut part = life::worn(drive, 1e6, 1e6);
            part.capacity_bytes = bytes;
            part.rating = None;
            vec![part]
        };
        let one = |name: &str, p99_us: f64, gb: u64, protected: bool| Candidate {
            slot: sata(),
            power_loss_protection: Some(protected),
            parts: part("s4510-960", gb * 1_000_000_000),
            ..of(name, true, 1_000.0, p99_us, None)
        };
        let wanted = one("gone", 100.0, 1_000, true);
        let module = Candidate {
            slot: slot("PCIe 4.0 x4, NVMe", "M.2 2280"),
            ..one("module", 10.0, 1_000, true)
        };
        let others = [
            module,
            one("smaller", 50.0, 480, true),
            one("unprotected", 40.0, 1_000, false),
            one("slower", 250.0, 960, true),
        ];
        let found = rank_replacements(&wanted, &others, 5.0);
        let names: Vec<&str> = found.iter().map(|one| &*one.drive).collect();
        assert_eq!(names, ["slower", "unprotected", "smaller", "module"]);
        assert_eq!(found[1].lost, ["no power-loss protection"]);
        assert_eq!(found[2].lost, ["capacity 0.48 times"]);
        assert_eq!(found[3].lost, ["is NVMe, M.2 2280, not SATA, 2.5 inch"]);
        assert!(!found[1].is_close_to(&found[0]));
        // A candidate may have what the drive lacks.
        let bare = one("gone", 100.0, 1_000, false);
        let found = rank_replacements(&bare, &others[2..], 5.0);
        assert!(found.iter().all(|one| !one.lacks_power_loss_protection));
    }

    /// A candidate that misses a limit comes after worse ones that meet it, and one that wears out says so.
    #[test]
    fn limits_come_first_and_an_early_end_counts() {
        let wanted = of("gone", true, 1_000.0, 100.0, None);
        let short_lived = Candidate {
            ends_after_years: Some(0.2),
            ..of("short-lived", true, 900.0, 300.0, None)
        };
        let others = [of("misses", false, 1_000.0, 100.0, None), short_lived];
        let found = rank_replacements(&wanted, &others, 5.0);
        let names: Vec<&str> = found.iter().map(|one| &*one.drive).collect();
        assert_eq!(names, ["short-lived", "misses"]);
        assert_eq!(found[0].ends_after_years, Some(0.2));
        let ending = Candidate {
            ends_after_years: Some(0.21),
            ..wanted
        };
        let found = rank_replacements(&ending, &others, 5.0);
        assert_eq!(found[0].ends_after_years, None);
    }
}
