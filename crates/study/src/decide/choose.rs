//! Which drives and pools meet a load and its limits, and which one to take by each measure.
//!
//! Each candidate runs the load with every seed from the same state; its figures are held against the limits, and the room that is
//! left is told, not only yes or no. Measures: least cost, most I/Os for a watt, most I/Os, the least slow percentile, most years to
//! the rated endurance. What is not known (a price that was not given, a rating nobody published, power without a model) wins nothing.
//!
//! `super::likeness` puts candidates in the order of how near they come to a drive, by the mean ratio of rates and latencies at the same load.

use catalogue::DriveSheet;
use lab::{GoOn, Lab, Outcome};
use serde::Serialize;
use text::problem::Problems;

use super::binds::{self, Binds};
use super::cost;
use super::life::{self, Part};
pub use super::place::{PLACES, in_place, of_new_files};
use super::prices::Prices;
use super::rate::{self, Offered};
use super::slo::{Figure, Limit, Of, Slo};
use super::syncs::Syncs;
use super::tally::{Reading, Tally};
use super::work::{Conditions, Load};
use crate::ledger::support;
use crate::review::results::{Measurement, rounded};

/// By what one is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Least cost over the years: all drives bought, and their power and place where these have a price.
    Usd,
    /// Most I/Os a second for a watt.
    Watt,
    /// Most I/Os a second.
    Iops,
    /// The least 99th percentile (of the slowest direction).
    P99,
    /// Most years to the rated endurance of its weakest part.
    Years,
}

impl Measure {
    /// All of them, in the order of tables.
    pub const ALL: [Measure; 5] = [
        Measure::Usd,
        Measure::Watt,
        Measure::Iops,
        Measure::P99,
        Measure::Years,
    ];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Usd => "usd",
            Measure::Watt => "watt",
            Measure::Iops => "iops",
            Measure::P99 => "p99",
            Measure::Years => "years",
        }
    }

    /// In words: "cost".
    pub const fn words(self) -> &'static str {
        match self {
            Measure::Usd => "cost",
            Measure::Watt => "IOPS for a watt",
            Measure::Iops => "IOPS",
            Measure::P99 => "p99",
            Measure::Years => "years",
        }
    }

    /// A candidate's figure.
    pub fn of(self, candidate: &Candidate) -> Option<f64> {
        match self {
            Measure::Usd => candidate.usd_in_all,
            Measure::Watt => candidate.iops_per_watt,
            Measure::Iops => Some(candidate.most().0),
            Measure::P99 => candidate.p99_us,
            Measure::Years => candidate.years,
        }
    }

    /// The same with each seed: least and greatest. Cost has no seed; years and IOPS for a watt go with the rate of I/Os.
    fn by_seed(self, candidate: &Candidate) -> Option<[f64; 2]> {
        let value = self.of(candidate)?;
        let [least, most] = candidate.iops_by_seed;
        let rate = candidate.iops.max(1e-9);
        let ends = match self {
            Measure::Usd => [value; 2],
            Measure::Iops => candidate.most().1,
            Measure::Watt => [value * least / rate, value * most / rate],
            Measure::P99 => candidate.p99_us_by_seed.unwrap_or([value; 2]),
            Measure::Years => [
                value * rate / most.max(1e-9),
                value * rate / least.max(1e-9),
            ],
        };
        Some(ends.map(rounded))
    }

    const fn least_is_best(self) -> bool {
        matches!(self, Measure::Usd | Measure::P99)
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load.
    pub load: Load,
    /// The limits; none if empty.
    pub slo: Slo,
    /// How long a drive is to last and to be paid for.
    pub years: f64,
    /// What drives cost, if the user says so.
    pub prices: Option<Prices>,
    /// Host, state and seeds.
    pub conditions: Conditions,
}

/// One drive or pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// Its name.
    pub drive: String,
    /// How well its model is known.
    pub model: &'static str,
    /// The rows behind that.
    pub model_text: String,
    /// Whether it is within all limits.
    pub meets: bool,
    /// The figures of the limits.
    pub readings: Vec<Reading>,
    /// The least room of all limits, as a share of the bound; negative where one is missed. Null without limits.
    pub room: Option<f64>,
    /// I/Os a second.
    pub iops: f64,
    /// The same with each seed: least and greatest.
    pub iops_by_seed: [f64; 2],
    /// 99th percentile of the slowest direction.
    pub p99_us: Option<f64>,
    /// The same with each seed: least and greatest; null if one seed has too few I/Os to tell.
    pub p99_us_by_seed: Option<[f64; 2]>,
    /// Mean power.
    pub watts: Option<f64>,
    /// I/Os a second for a watt.
    pub iops_per_watt: Option<f64>,
    /// Years to the rated endurance of its weakest part.
    pub years: Option<f64>,
    /// Years to the end of the part that ends first: by its rating, or, where no part is rated, by the model's Percentage Used.
    pub ends_after_years: Option<f64>,
    /// Drives bought over the years that were asked for: one for each place, and one more each time that one wears out.
    pub drives_bought: u64,
    /// Cost of the first drives.
    pub usd: Option<f64>,
    /// Cost over the years: all drives bought, and their power and place where these have a price.
    pub usd_in_all: Option<f64>,
    /// Of a pool with one write buffer: seconds of this load until it is full, if nothing were destaged, where no seed ran for so
    /// long: what comes then is in no figure.
    pub buffer_full_seconds: Option<f64>,
    /// Of a pool: what it promises and what loses it.
    pub promise: Option<String>,
    /// Wear, by part.
    pub parts: Vec<Part>,
    /// At a given rate: the share of what arrives that it completes, of the seed with the least. Null at its own maximum.
    pub completes: Option<f64>,
    /// What it does at its own maximum (closed loop), where the other figures are those at a given rate.
    pub own_maximum: Option<Maximum>,
    /// Of a pool with an intent log: what limits its rate; at its own maximum where that was run.
    pub binds: Option<Binds>,
    /// All figures.
    pub measurement: Measurement,
}

/// What a candidate does at its own maximum.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Maximum {
    /// I/Os a second.
    pub iops: f64,
    /// The same with each seed: least and greatest.
    pub iops_by_seed: [f64; 2],
}

/// A candidate that cannot run the load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Unfit {
    /// Its name.
    pub drive: String,
    /// Why not.
    pub why: String,
}

/// The one to take by a measure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Best {
    /// By what.
    pub by: Measure,
    /// Which.
    pub drive: String,
    /// Its figure.
    pub value: f64,
    /// The same with each seed: least and greatest.
    pub by_seed: [f64; 2],
    /// Others that are not told apart from it, the better first.
    pub ties: Vec<Tie>,
}

/// One that is not told apart from the best: some seed of it is as good as some seed of the best, or they differ by less than
/// [`CLOSE`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tie {
    /// Which.
    pub drive: String,
    /// Its figure.
    pub value: f64,
    /// The same with each seed: least and greatest.
    pub by_seed: [f64; 2],
}

/// Two figures that differ by a smaller share are not told apart, whatever the seeds say: half of what a well known model predicts
/// may be further off (docs/fidelity.md).
pub const CLOSE: f64 = 0.05;

/// So many that are not told apart from the best are named in an answer; of more, which all keep up with a trace, it has the number.
pub const NAMED: usize = 4;

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// All that ran, those that meet the limits first, each group by the measure that was asked for.
    pub candidates: Vec<Candidate>,
    /// Those that could not.
    pub unfit: Vec<Unfit>,
    /// By each measure that is known.
    pub best: Vec<Best>,
    /// Of a log: how much of the load is synchronous; null where that was not asked.
    pub syncs: Option<Syncs>,
}

impl Candidate {
    /// The most I/Os a second that are known of it, and with each seed.
    fn most(&self) -> (f64, [f64; 2]) {
        match &self.own_maximum {
            Some(most) => (most.iops, most.iops_by_seed),
            None => (self.iops, self.iops_by_seed),
        }
    }

    /// The same, with its own maximum from another run.
    #[must_use]
    pub fn with_own_maximum(self, at_its_own: &Candidate) -> Candidate {
        Candidate {
            own_maximum: Some(Maximum {
                iops: at_its_own.iops,
                iops_by_seed: at_its_own.iops_by_seed,
            }),
            binds: at_its_own.binds,
            ..self
        }
    }

    /// Years after which it ends, if that is before the end of so many.
    pub fn ends_within(&self, years: f64) -> Option<f64> {
        self.ends_after_years.filter(|ends| *ends < years)
    }
}

impl Answer {
    /// The candidate of this name.
    pub fn candidate(&self, drive: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|one| one.drive == drive)
    }

    /// The one to take by a measure.
    pub fn best_by(&self, by: Measure) -> Option<&Best> {
        self.best.iter().find(|best| best.by == by)
    }

    /// Candidates that an answer names: those to take by some measure, and those not told apart from them where these are few
    /// ([`NAMED`]); if none meets the limits, the nearest to them.
    pub fn named(&self) -> impl Iterator<Item = &Candidate> {
        let is_named = |one: &Candidate| {
            let mut best = self.best.iter();
            best.any(|best| {
                let mut ties = best.ties.iter().filter(|_| best.ties.len() <= NAMED);
                best.drive == one.drive || ties.any(|tie| tie.drive == one.drive)
            })
        };
        let nearest = self.nearest().map(|one| one.drive.as_str());
        let all = self.candidates.iter();
        all.filter(move |one| match self.best.is_empty() {
            true => nearest == Some(one.drive.as_str()),
            false => is_named(one),
        })
    }

    /// The one with the most room to its limits, or the least beyond them.
    pub fn nearest(&self) -> Option<&Candidate> {
        let known = self.candidates.iter().filter(|one| one.room.is_some());
        known.max_by(|a, b| a.room.unwrap_or(-1.0).total_cmp(&b.room.unwrap_or(-1.0)))
    }
}

/// A limit that only reads a figure.
fn p99() -> Limit {
    Limit {
        text: String::from("p99"),
        of: Of::All,
        figure: Figure::Percentile(99.0),
        bound: f64::INFINITY,
        unit: Figure::Percentile(99.0).unit(),
    }
}

/// Runs the load on one candidate; `go_on` is told the share that is done.
///
/// # Errors
/// The load does not fit it.
pub fn candidate(
    request: &Request,
    drive: &DriveSheet,
    lab: &Lab,
    go_on: GoOn<'_>,
) -> Result<Candidate, Problems> {
    let outcomes = request.load.run(drive, &request.conditions, lab, go_on)?;
    let all: Vec<_> = outcomes.iter().collect();
    let tally = Tally::of(&all);
    let life = life::of_outcomes(drive, None, request.years, Some(&outcomes));
    let rated = life.parts.iter().filter_map(|part| part.years_to_rating());
    let years = rated.min_by(f64::total_cmp);
    let each: Vec<Tally> = outcomes.iter().map(|one| Tally::of(&[one])).collect();
    let limits = request.slo.limits.iter();
    let reading = |limit| {
        let seeds = each.iter().map(|seed| seed.reading(limit, years));
        of_all_seeds(tally.reading(limit, years), seeds)
    };
    let mut readings: Vec<Reading> = limits.map(reading).collect();
    let completes = completes(&request.load, &outcomes);
    let keeps_up = completes.is_none_or(|it| it.keeps_up);
    offered_rates(request, keeps_up, &mut readings);
    let rates = outcomes.iter().map(super::rate_of);
    let (least, most) = rates.fold((f64::INFINITY, 0.0), |(least, most), rate| {
        (f64::min(least, rate), f64::max(most, rate))
    });
    let watts = tally.measurement.watts;
    let prices = request.prices.as_ref();
    let cost = prices.and_then(|prices| cost::of(prices, drive, &life));
    let bought = life.parts.iter().map(|part| cost::bought(part, life.years));
    let keeping = match prices {
        Some(prices) => prices.of_keeping(drive, watts, request.years),
        None => Some(0.0),
    };
    let known = support::statement(drive);
    Ok(Candidate {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        meets: keeps_up && readings.iter().all(|reading| reading.met == Some(true)),
        room: readings
            .iter()
            .filter_map(|reading| reading.room)
            .min_by(f64::total_cmp),
        readings,
        iops: rounded(tally.iops()),
        iops_by_seed: [least, most].map(rounded),
        p99_us: tally.reading(&p99(), None).value,
        p99_us_by_seed: p99_by_seed(&outcomes),
        watts,
        iops_per_watt: watts
            .filter(|watts| *watts > 0.0)
            .map(|watts| rounded(tally.iops() / watts)),
        years,
        ends_after_years: life.weakest().map(|(_, years)| years),
        drives_bought: bought.sum(),
        usd: cost.map(|cost| cost.first),
        usd_in_all: cost
            .zip(keeping)
            .map(|(cost, keeping)| rounded(cost.drives + keeping)),
        buffer_full_seconds: life.buffer_full_seconds,
        promise: drive.pool_config().map(|it| it.words()),
        parts: life.parts,
        completes: completes.map(|it| it.share),
        own_maximum: None,
        // Nothing does where a drive keeps up with a given rate.
        binds: binds::of(drive, &tally).filter(|_| completes.is_none() || !keeps_up),
        measurement: tally.measurement,
    })
}

/// The share of what arrives that is completed, and whether that is all but chance.
#[derive(Clone, Copy)]
struct Completes {
    share: f64,
    keeps_up: bool,
}

/// Of the seed that completes least; `None` at no given rate.
fn completes(load: &Load, outcomes: &[Outcome]) -> Option<Completes> {
    let offered = load.offered_iops()?;
    let of = |outcome: &Outcome| {
        let arrive = offered * outcome.counted.seconds();
        let share = super::rate_of(outcome) / offered;
        // Arrivals are a Poisson process: three of its standard deviations are chance.
        let chance = 3.0 / libm::sqrt(arrive.max(1.0));
        Completes {
            share: rounded(share),
            keeps_up: share >= rate::KEPT_UP - chance.min(0.2),
        }
    };
    let all = outcomes.iter().map(of);
    all.min_by(|a, b| a.share.total_cmp(&b.share))
}

/// A limit on the rate that arrives is met if the drive keeps up: by chance a few I/Os fewer arrive.
fn offered_rates(request: &Request, keeps_up: bool, readings: &mut [Reading]) {
    let Some(offered) = request.load.offered_iops() else {
        return;
    };
    let mean = request.load.mean_bytes().unwrap_or(0.0);
    for (limit, reading) in request.slo.limits.iter().zip(readings) {
        let arrives = match limit.figure {
            Figure::Iops => offered,
            Figure::Bandwidth => offered * mean * 1e-6,
            _ => continue,
        };
        // Rates are whole for each thread.
        if limit.of == Of::All && limit.bound <= arrives * 1.01 && limit.bound >= arrives * 0.99 {
            reading.met = Some(keeps_up);
            reading.room = reading.room.filter(|_| !keeps_up);
        }
    }
}

/// The figure of all seeds together, or, if that is within the limit and some seed is not, that of the seed which is furthest outside:
/// a drive is within its limits if it is with every seed. A seed that has too few I/Os by itself says nothing.
fn of_all_seeds(together: Reading, seeds: impl Iterator<Item = Reading>) -> Reading {
    if together.met != Some(true) {
        return together;
    }
    let outside = seeds.filter(|seed| seed.met == Some(false));
    let room = |seed: &Reading| seed.room.unwrap_or(0.0);
    let furthest = outside.min_by(|a, b| room(a).total_cmp(&room(b)));
    furthest.unwrap_or(together)
}

/// The least and the greatest 99th percentile of the slowest direction with each seed.
fn p99_by_seed(outcomes: &[Outcome]) -> Option<[f64; 2]> {
    let of = |outcome| Tally::of(&[outcome]).reading(&p99(), None).value;
    let all: Option<Vec<f64>> = outcomes.iter().map(of).collect();
    let all = all?;
    let least = all.iter().copied().min_by(f64::total_cmp)?;
    Some([least, all.iter().copied().max_by(f64::total_cmp)?])
}

/// Those of `others` that are not told apart from the best, the better first.
fn ties<'a>(
    by: Measure,
    best: &Candidate,
    others: impl Iterator<Item = &'a Candidate>,
) -> Vec<Tie> {
    let Some((value, ends)) = by.of(best).zip(by.by_seed(best)) else {
        return Vec::new();
    };
    let tie = |other: &Candidate| {
        let (theirs, their_ends) = by.of(other).zip(by.by_seed(other))?;
        let overlap = ends[0] <= their_ends[1] && their_ends[0] <= ends[1];
        let close = (theirs - value).abs() <= CLOSE * value.abs().max(theirs.abs());
        // Prices are as the user says: only equal ones are equal.
        let same = match by {
            Measure::Usd => overlap,
            _ => overlap || close,
        };
        same.then(|| Tie {
            drive: other.drive.clone(),
            value: theirs,
            by_seed: their_ends,
        })
    };
    let others = others.filter(|other| other.drive != best.drive);
    let mut ties: Vec<Tie> = others.filter_map(tie).collect();
    ties.sort_by(|a, b| {
        let order = (a.value - value).abs().total_cmp(&(b.value - value).abs());
        order.then(a.drive.cmp(&b.drive))
    });
    ties
}

/// A rate at which candidates that ran at their own maximum compare: half of what the fastest does with every seed, of two digits.
pub fn common_rate(candidates: &[Candidate]) -> Option<Offered> {
    let rates = candidates.iter().map(|one| one.iops_by_seed[0]);
    let half = rates.max_by(f64::total_cmp)? / 2.0;
    let digit = libm::pow(10.0, libm::floor(libm::log10(half.max(1.0))) - 1.0).max(1.0);
    let rate = libm::round(half / digit) * digit;
    (rate >= 1.0).then_some(Offered::Iops(rate))
}

/// Puts candidates in order, and says which one to take.
pub fn answer(mut candidates: Vec<Candidate>, unfit: Vec<Unfit>, by: Measure) -> Answer {
    let key = |candidate: &Candidate, by: Measure| {
        let value = by.of(candidate).map(|value| match by.least_is_best() {
            true => value,
            false => -value,
        });
        value.unwrap_or(f64::INFINITY)
    };
    candidates.sort_by(|a, b| {
        let order = b.meets.cmp(&a.meets);
        order
            .then(key(a, by).total_cmp(&key(b, by)))
            .then(a.drive.cmp(&b.drive))
    });
    let best = Measure::ALL.into_iter().filter_map(|by| {
        let meets = candidates
            .iter()
            .filter(|one| one.meets && by.of(one).is_some());
        let best = meets
            .clone()
            .min_by(|a, b| key(a, by).total_cmp(&key(b, by)))?;
        Some(Best {
            by,
            drive: best.drive.clone(),
            value: by.of(best)?,
            by_seed: by.by_seed(best)?,
            ties: ties(by, best, meets),
        })
    });
    Answer {
        best: best.collect(),
        candidates,
        unfit,
        syncs: None,
    }
}

#[cfg(test)]
pub(super) mod tests;
