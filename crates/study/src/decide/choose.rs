//! Drives and pools that meet a load and its limits, and the recommended one by each criterion.
//!
//! Each candidate runs the load with every seed from the same state. Its figures are compared with the limits, and the
//! margin is reported in addition to the verdict. Criteria: lowest cost, most IOPS per watt, most IOPS, lowest p99,
//! most years to the rated endurance. A candidate with an unknown figure (no given price, no published rating, no
//! power model) cannot win by it.
//!
//! `super::likeness` orders candidates by their distance from a drive: the mean ratio of rates and latencies at the
//! same load.

use catalogue::DriveSheet;
use lab::{Lab, Outcome, ProgressCallback};
use serde::Serialize;
use text::problem::Problems;

use super::arrivals;
use super::binds::{self, Binds};
use super::cost;
use super::few_writes;
use super::life::{self, LifeAnswer, LifePart};
use super::pauses;
use super::place;
pub use super::place::{PLACES, of_clients, reads};
use super::prices::Prices;
use super::rate::OfferedRate;
use super::read_only;
use super::slc::{self, SlcUse};
use super::slo::{Limit, LimitMetric, LimitScope, Slo};
use super::slot::Slot;
use super::syncs::Syncs;
use super::tally::{Reading, Tally};
use super::work::{self, Conditions, Load, LoadFacts};
use crate::review::results::{Measurement, rounded};

mod ample;
mod measure;
mod rank;
mod readings;

pub use ample::AmpleRoom;
pub use measure::Measure;
pub use rank::{answer, answer_by_default};
use readings::{known_before, of_all_seeds};

/// Input of a choice.
#[derive(Clone, Debug)]
pub struct ChooseRequest {
    /// Load of the candidates.
    pub load: Load,
    /// The limits; empty if there are none.
    pub slo: Slo,
    /// Required lifetime, and term of the costs, in years.
    pub years: f64,
    /// Prices of the drives, if the user gives them.
    pub prices: Option<Prices>,
    /// Host, state and seeds.
    pub conditions: Conditions,
}

impl ChooseRequest {
    /// Returns the description of the load, as run for these limits and seeds.
    pub fn facts(&self) -> LoadFacts {
        self.load.judged_by(&self.slo).facts(self.conditions.seeds)
    }
}

/// Results of one drive or pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// Name of the candidate.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Whether it meets all limits; null if it was not run in full, so this is not known.
    pub meets: Option<bool>,
    /// For a drive that is no longer made, or a pool with one: its name and the date; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_longer_made: Option<NoLongerMade>,
    /// Whether its figures are those of one short run, because that run showed that it cannot be the best
    /// ([`super::screening`]).
    pub screened: bool,
    /// Figures of the limits.
    pub readings: Vec<Reading>,
    /// The smallest margin of all limits, as a share of the bound; negative if a limit is missed. Null without limits.
    pub room: Option<f64>,
    /// I/Os per second.
    pub iops: f64,
    /// Range of `iops` over seeds.
    pub iops_by_seed: [f64; 2],
    /// 99th percentile of the slowest direction.
    pub p99_us: Option<f64>,
    /// Range of `p99_us` over seeds; null if a seed has too few I/Os.
    pub p99_us_by_seed: Option<[f64; 2]>,
    /// As `p99_us` and its range over seeds, of what a log serves: of syncs if there are some, otherwise of writes.
    #[serde(skip)]
    pub p99_us_of_log: Option<(f64, Option<[f64; 2]>)>,
    /// Mean latency of the slowest of reads, writes and syncs, for screening.
    #[serde(skip)]
    pub mean_us: Option<f64>,
    /// Mean power in watts.
    pub watts: Option<f64>,
    /// I/Os per second and watt.
    pub iops_per_watt: Option<f64>,
    /// Years to the rated endurance of its weakest part.
    pub years: Option<f64>,
    /// Years to the end of the part that ends first: by its rating, or, if no part is rated, by the model's Percentage
    /// Used.
    pub ends_after_years: Option<f64>,
    /// For a pool: catalogue name of the member that ends first, as in `ends_after_years`; left out for a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_first: Option<String>,
    /// Drives bought over the requested years: one for each place, and one more each time a drive wears out.
    pub drives_bought: u64,
    /// Cost of the first drives.
    pub usd: Option<f64>,
    /// Cost over the years: all drives bought, and their power and place if these have a price.
    pub usd_in_all: Option<f64>,
    /// [`Candidate::usd_in_all`] divided by the years.
    pub usd_per_year: Option<f64>,
    /// As `drives_bought`, if cycles decide that end much earlier than the rating; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives_bought_by_cycles: Option<u64>,
    /// As `usd_in_all`, if cycles decide that end much earlier than the rating; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_in_all_by_cycles: Option<f64>,
    /// For a pool with one write buffer: seconds of this load until it is full without destaging, if no seed ran for
    /// that long. No figure covers the time after that.
    pub buffer_full_seconds: Option<f64>,
    /// For a pool with an intent log: the share of the writes that stayed in memory during the counted time. Above a
    /// tenth, its drives take less than the shown rate.
    pub stays_in_memory: Option<f64>,
    /// Whether it is a pool that would begin without files and ran with them, because the load reads; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_files_to_read: bool,
    /// Whether it is a pool with a read cache, which is empty at the start of a run, and the load is not a trace; left out
    /// if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub starts_cold: bool,
    /// For sequential writes to a drive with an SLC cache: the cache, if the run began in it.
    pub slc_cache: Option<SlcUse>,
    /// For a pool: its durability guarantee, and the failures that lose data.
    pub promise: Option<String>,
    /// Interface and form; null for a pool.
    pub slot: Option<Slot>,
    /// Whether acknowledged data survives a power loss; null if not published, and for a pool.
    pub power_loss_protection: Option<bool>,
    /// Wear by part.
    pub parts: Vec<LifePart>,
    /// At a given rate: the completed share of the arriving I/Os, for the seed with the least. Null at its own
    /// maximum.
    pub completes: Option<f64>,
    /// At a given rate: whether the rest of the arriving I/Os is within random variation.
    #[serde(skip)]
    pub keeps_up: Option<bool>,
    /// Results at its own maximum (closed loop), if the other figures are those at a given rate.
    pub own_maximum: Option<Maximum>,
    /// For a pool with an intent log: its bottleneck; at its own maximum if that was run.
    pub binds: Option<Binds>,
    /// All figures of the runs.
    pub measurement: Measurement,
}

/// Reason of a candidate that `--in-production` leaves out.
pub const NO_LONGER_MADE: &str = "it, or a drive of it, is no longer made (--in-production)";

/// A drive that is no longer made.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NoLongerMade {
    /// Catalogue name of the drive.
    pub drive: String,
    /// Date, such as `2022`.
    pub until: String,
}

impl NoLongerMade {
    /// Returns the candidate, or the first drive of it, that is no longer made.
    fn from_sheet(drive: &DriveSheet) -> Option<NoLongerMade> {
        let (one, until) = drive.no_longer_made(&drive.id)?;
        Some(NoLongerMade {
            drive: one.id.clone(),
            until: until.to_owned(),
        })
    }
}

/// Results of a candidate at its own maximum.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Maximum {
    /// I/Os per second.
    pub iops: f64,
    /// Range of `iops` over seeds.
    pub iops_by_seed: [f64; 2],
}

/// A candidate that cannot run the load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Unfit {
    /// Name of the candidate.
    pub drive: String,
    /// Reason why not.
    pub why: String,
}

/// The recommended candidate by a criterion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BestCandidate {
    /// Ranking criterion.
    pub by: Measure,
    /// Name of the candidate.
    pub drive: String,
    /// Figure of the candidate.
    pub value: f64,
    /// Range of `value` over seeds.
    pub by_seed: [f64; 2],
    /// Candidates that are tied with it, the better first.
    pub ties: Vec<Tie>,
}

impl BestCandidate {
    /// Returns the names that an answer gives: of the candidate, and of its ties if these are few ([`NAMED`]).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ties = self.ties.iter().filter(|_| self.ties.len() <= NAMED);
        std::iter::once(&*self.drive).chain(ties.map(|tie| &*tie.drive))
    }
}

/// A candidate that is tied with the best: one of its seeds is as good as one of the best's, or the two differ by less
/// than [`CLOSE`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tie {
    /// Name of the candidate.
    pub drive: String,
    /// Figure of the candidate.
    pub value: f64,
    /// Range of `value` over seeds.
    pub by_seed: [f64; 2],
}

/// Two figures that differ by a smaller share are tied, whatever the seeds show: half of the predictions of a well
/// known model may be further off (docs/fidelity.md).
pub const CLOSE: f64 = 0.05;

/// Maximum number of ties that an answer names. If more are tied, because all keep up with a trace, it states their
/// number.
pub const NAMED: usize = 4;

/// Result of a choice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChooseAnswer {
    /// All candidates that ran, those that meet the limits first, each group by the requested criterion.
    pub candidates: Vec<Candidate>,
    /// Candidates that could not run.
    pub unfit: Vec<Unfit>,
    /// The recommended candidate by each known criterion.
    pub best: Vec<BestCandidate>,
    /// For a log: the synchronous share of the load; null if it was not requested.
    pub syncs: Option<Syncs>,
    /// Drives among which p99 does not decide, if there are some and the user requests no criterion; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ample_room: Option<AmpleRoom>,
}

impl Candidate {
    /// Returns the highest known IOPS, and the range over seeds.
    fn most(&self) -> (f64, [f64; 2]) {
        match &self.own_maximum {
            Some(most) => (most.iops, most.iops_by_seed),
            None => (self.iops, self.iops_by_seed),
        }
    }

    /// Returns the candidate with its own maximum from another run.
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

    /// Returns the candidate with the p99 of what a log serves, for a load that also reads: no log changes reads of the
    /// main pool, which are the slowest.
    #[must_use]
    pub fn judged_as_log(self) -> Candidate {
        Candidate {
            p99_us: self.p99_us_of_log.map(|it| it.0),
            p99_us_by_seed: self.p99_us_of_log.and_then(|it| it.1),
            ..self
        }
    }

    /// Checks whether it is known to meet all limits.
    pub fn is_met(&self) -> bool {
        self.meets == Some(true)
    }

    /// Returns the years after which it ends, if that is before `years`.
    pub fn ends_within(&self, years: f64) -> Option<f64> {
        self.ends_after_years.filter(|ends| *ends < years)
    }
}

impl ChooseAnswer {
    /// Returns the candidate with this name.
    pub fn candidate(&self, drive: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|one| one.drive == drive)
    }

    /// Returns the recommended candidate by a criterion.
    pub fn best_by(&self, by: Measure) -> Option<&BestCandidate> {
        self.best.iter().find(|best| best.by == by)
    }

    /// Returns the candidates that an answer names: those recommended by some criterion, and their ties if these are
    /// few ([`NAMED`]). If none meets the limits, the closest to them.
    pub fn named(&self) -> impl Iterator<Item = &Candidate> {
        let is_named = |one: &Candidate| {
            let mut best = self.best.iter();
            best.any(|best| best.names().any(|name| name == one.drive))
        };
        let nearest = self.nearest().map(|one| one.drive.as_str());
        let all = self.candidates.iter();
        all.filter(move |one| match self.best.is_empty() {
            true => nearest == Some(one.drive.as_str()),
            false => is_named(one),
        })
    }

    /// Returns the candidate with the largest margin, or the one that misses its limits by least.
    pub fn nearest(&self) -> Option<&Candidate> {
        let known = self.candidates.iter();
        let known = known.filter(|one| one.room.is_some() && !one.screened);
        known.max_by(|a, b| a.room.unwrap_or(-1.0).total_cmp(&b.room.unwrap_or(-1.0)))
    }
}

/// Returns a limit without a bound, which only reads p99.
fn p99(of: LimitScope) -> Limit {
    Limit {
        text: String::from("p99"),
        of,
        figure: LimitMetric::Percentile(99.0),
        bound: f64::INFINITY,
        unit: LimitMetric::Percentile(99.0).unit(),
    }
}

/// Runs the load on one candidate; `go_on` is called with the completed share.
///
/// # Errors
/// The load does not fit the candidate, or the load writes and the candidate is read-only.
pub fn candidate(
    request: &ChooseRequest,
    drive: &DriveSheet,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<Candidate, Problems> {
    read_only::check(drive, &request.load)?;
    measured(request, drive, lab, go_on)
}

/// Returns I/Os per second and watt; `None` if the power is unknown or zero.
fn per_watt(iops: f64, watts: Option<f64>) -> Option<f64> {
    let watts = watts.filter(|watts| *watts > 0.0);
    watts.map(|watts| rounded(iops / watts))
}

/// Returns the drive of a pool that ends first; `None` for one drive.
fn first_of_several(life: &LifeAnswer) -> Option<String> {
    let weakest = life.weakest().filter(|_| life.parts.len() > 1);
    weakest.map(|(part, _)| part.drive.clone())
}

/// Runs the load on one candidate that accepts its writes.
fn measured(
    request: &ChooseRequest,
    drive: &DriveSheet,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<Candidate, Problems> {
    let load = request.load.judged_by(&request.slo);
    let (outcomes, slc_cache) = slc::run(&load, drive, &request.conditions, lab, go_on)?;
    let all: Vec<_> = outcomes.iter().collect();
    let tally = Tally::from_runs(&all);
    let offered = request.load.offered_iops();
    let completes = offered.and_then(|_| arrivals::completes(&outcomes));
    let keeps_up = completes.is_none_or(|it| it.keeps_up);
    let writes = request.load.offered_writes().filter(|_| keeps_up);
    let mut life = life::of_outcomes(drive, None, request.years, Some(&outcomes), writes);
    let seconds = load.seconds_at_low_rate(drive, &request.conditions, &outcomes);
    few_writes::leave_out_wear(drive, seconds, &mut life.parts);
    let rated = life.parts.iter().filter_map(|part| part.years_to_rating());
    let years = rated.min_by(f64::total_cmp);
    let each: Vec<Tally> = outcomes
        .iter()
        .map(|one| Tally::from_runs(&[one]))
        .collect();
    let reading = |limit| {
        let seeds = each.iter().map(|seed| seed.reading(limit, years));
        of_all_seeds(tally.reading(limit, years), seeds)
    };
    let mut readings: Vec<Reading> = request.slo.limits.iter().map(reading).collect();
    known_before(request, drive, keeps_up, &mut readings);
    let watts = tally.measurement.watts;
    let costs = cost::of_candidate(request.prices.as_ref(), drive, &life, watts);
    // Every answer shows p99.
    let known = pauses::statement(drive, pauses::writes(&outcomes));
    Ok(Candidate {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        meets: meets(request, keeps_up, &readings),
        no_longer_made: NoLongerMade::from_sheet(drive),
        screened: request.load.is_brief(),
        room: least_room(&readings),
        readings,
        iops: rounded(tally.iops()),
        iops_by_seed: iops_by_seed(&outcomes, &each, keeps_up),
        p99_us: tally.reading(&p99(LimitScope::All), None).value,
        p99_us_by_seed: p99_by_seed(&outcomes, LimitScope::All),
        p99_us_of_log: p99_of_log(&tally, &outcomes),
        mean_us: slowest_mean_us(&tally),
        watts,
        iops_per_watt: per_watt(tally.iops(), watts),
        years,
        ends_after_years: life.weakest().map(|(_, years)| years),
        ends_first: first_of_several(&life),
        drives_bought: costs.drives,
        usd: costs.first,
        usd_in_all: costs.in_all,
        usd_per_year: costs.in_all.map(|usd| rounded(usd / request.years)),
        drives_bought_by_cycles: costs.drives_by_cycles,
        usd_in_all_by_cycles: costs.in_all_by_cycles,
        buffer_full_seconds: life.buffer_full_seconds,
        has_files_to_read: place::with_files(drive, &request.load.user_workload().workload)
            .is_some(),
        starts_cold: !request.load.is_trace() && place::has_read_cache(drive),
        stays_in_memory: work::stays_in_memory(drive, &outcomes).map(rounded),
        slc_cache,
        promise: drive.pool_config().map(|it| it.words()),
        slot: Slot::from_drive(drive),
        power_loss_protection: drive
            .power_loss_protection
            .filter(|_| drive.pool_config().is_none()),
        parts: life.parts,
        completes: completes.map(|it| it.share),
        keeps_up: completes.map(|it| it.keeps_up),
        own_maximum: None,
        // A drive that keeps up with a given rate has no bottleneck.
        binds: binds::bottleneck(drive, &tally).filter(|_| completes.is_none() || !keeps_up),
        measurement: tally.measurement,
    })
}

/// Returns the smallest margin of all limits.
fn least_room(readings: &[Reading]) -> Option<f64> {
    let rooms = readings.iter().filter_map(|reading| reading.room);
    rooms.min_by(f64::total_cmp)
}

/// Returns the lowest and the highest rate of a seed.
fn iops_by_seed(outcomes: &[Outcome], each: &[Tally], keeps_up: bool) -> [f64; 2] {
    // Threads of a drive that is late end at different times, so their rates are of their own times.
    let rates = outcomes
        .iter()
        .zip(each)
        .map(|(outcome, seed)| match keeps_up {
            true => super::rate_of(outcome),
            false => seed.iops(),
        });
    let (least, most) = rates.fold((f64::INFINITY, 0.0), |ends: (f64, f64), rate| {
        (ends.0.min(rate), ends.1.max(rate))
    });
    [least, most].map(rounded)
}

/// Returns whether all limits are met; `None` after a short run.
fn meets(request: &ChooseRequest, keeps_up: bool, readings: &[Reading]) -> Option<bool> {
    let all = readings.iter().all(|reading| reading.met == Some(true));
    (!request.load.is_brief()).then_some(keeps_up && all)
}

/// Returns the largest mean latency of reads, writes and syncs.
fn slowest_mean_us(tally: &Tally) -> Option<f64> {
    let all = [LimitScope::Read, LimitScope::Write, LimitScope::Sync];
    let means = all.map(|of| tally.latency_us(of, LimitMetric::Mean));
    means.into_iter().flatten().max_by(f64::total_cmp)
}

/// Returns the range over seeds of p99 of the slowest direction.
fn p99_by_seed(outcomes: &[Outcome], of: LimitScope) -> Option<[f64; 2]> {
    let one = |outcome| Tally::from_runs(&[outcome]).reading(&p99(of), None).value;
    let all: Option<Vec<f64>> = outcomes.iter().map(one).collect();
    let all = all?;
    let least = all.iter().copied().min_by(f64::total_cmp)?;
    Some([least, all.iter().copied().max_by(f64::total_cmp)?])
}

/// Returns p99 of what a log serves, and its range over seeds: of syncs, or of writes if the load has no syncs.
fn p99_of_log(tally: &Tally, outcomes: &[Outcome]) -> Option<(f64, Option<[f64; 2]>)> {
    let has_syncs = tally
        .latency_us(LimitScope::Sync, LimitMetric::Mean)
        .is_some();
    let of = match has_syncs {
        true => LimitScope::Sync,
        false => LimitScope::Write,
    };
    let value = tally.reading(&p99(of), None).value?;
    Some((value, p99_by_seed(outcomes, of)))
}

/// Returns a rate for comparing candidates that ran at their own maximum: half of what the fastest reaches with every
/// seed, rounded to two digits.
pub fn common_rate(candidates: &[Candidate]) -> Option<OfferedRate> {
    let rates = candidates.iter().map(|one| one.iops_by_seed[0]);
    let half = rates.max_by(f64::total_cmp)? / 2.0;
    let digit = libm::pow(10.0, libm::floor(libm::log10(half.max(1.0))) - 1.0).max(1.0);
    let rate = libm::round(half / digit) * digit;
    (rate >= 1.0).then_some(OfferedRate::Iops(rate))
}

#[cfg(test)]
pub(super) mod tests;
