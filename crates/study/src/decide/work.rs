//! A load of fixed work: a job file, a trace, or writes at a rate, run with several seeds from one state.
//!
//! A decision needs the steady behaviour of a load, not its full length. So each job runs for a limited time
//! ([`Load::at_most`], longer on slow drives), and answers state that. At a low arrival rate each job runs until enough
//! I/Os of its rarest direction arrived for the percentile that is read ([`Load::extended`]): time without I/Os costs
//! little. Traces run whole, since their load changes over
//! time. Writes that are not synchronous first fill the memory of a pool with an intent log: their time is then counted
//! from when it is full.

use catalogue::{DriveSheet, HostSheet};
use lab::{
    Lab, Machine, Outcome, ProgressCallback, Scenario, Start, TraceReplay, Work, to_the_end,
};
use model::Span;
use model::media::Precondition;
use serde::Serialize;
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::{Job, Mix};
use workload::replay::OutOfRangePolicy;

use super::rate::{self, OfferedRate};
use super::slo::{LimitMetric, Slo};
use super::smaller;
use super::syncs::Syncs;
use super::tally::Tally;
use crate::review::{UserWorkload, Workload};

mod memory;
mod offered;
mod reach;

use memory::dirty_max;
pub(super) use memory::dirty_max_of;
pub use memory::{IN_MEMORY, stays_in_memory};
use reach::longer;

/// Jobs of a load that have a rate or pauses of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnPace {
    /// No job: the drive or a requested rate sets the rate.
    NoJob,
    /// Some jobs; the drive sets the rate of the others.
    SomeJobs,
    /// All jobs; also a trace.
    AllJobs,
}

/// Default maximum of the counted time of a job.
const USUAL: Span = Span::from_ms(500);
/// Default maximum of the counted time for a log: three transaction groups.
pub const OF_A_LOG: Span = Span::from_ms(15_000);

/// Returns the maximum counted time of a job on these drives: for pools with an intent log, long enough for main to
/// receive transaction groups.
pub fn counted_for<'a>(mut drives: impl Iterator<Item = &'a DriveSheet>) -> Span {
    match drives.any(|sheet| dirty_max(sheet).is_some()) {
        true => OF_A_LOG,
        false => USUAL,
    }
}

/// Maximum time until the memory of a pool is full, which is not counted.
const FILLING: Span = Span::from_ms(60_000);
/// Interval at which the bytes in memory are read.
const READ_EVERY: Span = Span::from_ms(100);

/// Seeds, the state and the host of runs.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Host of the drives.
    pub host: HostSheet,
    /// Initial state of the drives.
    pub state: Precondition,
    /// First seed.
    pub seed: u64,
    /// Number of seeds; at least 1.
    pub seeds: u32,
}

/// Description of a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadFacts {
    /// Name of the file, or the user's request.
    pub source: String,
    /// Text of the job file, or the parameters of a trace's replay.
    pub text: String,
    /// Maximum run time of a job in seconds; null if no job was shortened.
    pub at_most_seconds: Option<f64>,
    /// Requested write rate in 10^6 bytes per second; null if none was requested.
    pub asked_mb_s: Option<f64>,
    /// Pattern of the requested writes, such as `random 4k`; left out if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_pattern: Option<String>,
    /// Whether the pool would begin without files and ran with them, because the load reads; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_files_to_read: bool,
    /// Whether the load only writes sequentially, as checkpoints and backups do in bursts, and no mean rate of writes was
    /// requested; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_burst: bool,
    /// Total arrival rate in IOPS (open loop); null if none was requested.
    pub offered_iops: Option<f64>,
    /// Counted time in seconds of every job, if it was extended because few I/Os arrive; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_seconds: Option<f64>,
}

/// A load with its limits.
#[derive(Clone, Debug)]
pub struct Load {
    yours: UserWorkload,
    /// Maximum counted time of a job, if it shortened one.
    cut: Option<Span>,
    asked_mb_s: Option<f64>,
    asked_pattern: Option<String>,
    offered_iops: Option<f64>,
    /// The requested rate that gives `offered_iops`.
    asked_rate: Option<OfferedRate>,
    /// Initial state of the drives, if the file of a named load gives one.
    state: Option<Precondition>,
    /// Whether a job runs once for its counted time, whatever it completes.
    is_brief: bool,
    /// Treatment of a trace's addresses beyond the end of a drive.
    beyond: OutOfRangePolicy,
    /// Highest percentile that is read from the runs.
    percentile: f64,
}

/// Maximum warm-up time, as a divisor of the counted time.
const RAMP: u64 = 4;

/// I/Os of a direction beyond the highest percentile, over all seeds, below which a shortened job runs longer.
const BEYOND: f64 = 40.0;
/// As [`BEYOND`], at a low rate, where more I/Os take hours of virtual time. A percentile is known with ten.
const BEYOND_SLOW: f64 = 16.0;
/// Percentile that every answer shows.
const SHOWN: f64 = 99.0;
/// Maximum number of arriving I/Os of a run that is extended.
const MOST_IOS: f64 = 1_500_000.0;
/// Maximum bytes of a run that is extended or runs longer, unless twice the usual time has more. The cost of a large I/O
/// is that of its 4 KiB pages, and its figure is a bandwidth.
const MOST_BYTES: f64 = 100e9;
/// Maximum factor by which a job runs longer, and the share by which its I/Os may vary between two runs.
const LONGER: u64 = 20;
const VARIES: f64 = 1.25;

/// Arriving I/Os of a brief run: fewer show no clear miss of a limit.
pub(super) const BRIEF_IOS: f64 = 1_000.0;

/// Length of the runs.
#[derive(Clone, Copy, Default)]
struct Length {
    /// Maximum counted time of a job.
    most: Option<Span>,
    /// Minimum counted time of a job.
    least: Span,
    /// Minimum time before the counted one.
    ramp: Span,
}

impl Load {
    /// Returns a user's job file or trace, with its own length.
    pub fn new(yours: UserWorkload) -> Load {
        Load {
            yours,
            cut: None,
            asked_mb_s: None,
            asked_pattern: None,
            offered_iops: None,
            asked_rate: None,
            state: None,
            is_brief: false,
            beyond: OutOfRangePolicy::Wrap,
            percentile: SHOWN,
        }
    }

    /// Returns the load with runs that are long enough for the highest percentile of these limits.
    #[must_use]
    pub(super) fn judged_by(&self, slo: &Slo) -> Load {
        let percentiles = slo.limits.iter().filter_map(|limit| match limit.figure {
            LimitMetric::Percentile(percent) => Some(percent),
            _ => None,
        });
        Load {
            percentile: percentiles.fold(self.percentile, f64::max),
            ..self.clone()
        }
    }

    /// Returns the number of I/Os of which this number is beyond the highest percentile.
    fn fewest(&self, beyond: f64) -> f64 {
        beyond / (1.0 - self.percentile / 100.0).max(1e-6)
    }

    /// Returns the counted time in which enough I/Os of the rarest direction arrive; `None` if a run of the usual length
    /// has enough, or no rate was requested.
    fn extended(&self, seeds: u32) -> Option<Span> {
        let offered = self.offered_iops?;
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return None;
        };
        let reached = reach::longest(jobs, self.cut)?.seconds();
        let rarest = rate::rarest(jobs)?;
        let wanted = VARIES * self.fewest(BEYOND_SLOW) / f64::from(seeds.max(1)) / rarest;
        let bytes = offered * rate::mean_bytes_of(jobs);
        let seconds = wanted
            .min(MOST_IOS / offered)
            .min(MOST_BYTES / bytes.max(1.0));
        (seconds > reached).then(|| Span::from_seconds(libm::ceil(seconds)))
    }

    /// Returns the load with this initial state, unless the user gives one; without it, the jobs select the state.
    #[must_use]
    pub fn with_state(mut self, state: Option<Precondition>) -> Load {
        self.state = state;
        self
    }

    /// Returns the load with this treatment of a trace's addresses beyond a drive; the default wraps them.
    #[must_use]
    pub fn with_out_of_range(mut self, beyond: OutOfRangePolicy) -> Load {
        self.beyond = beyond;
        self
    }

    /// Returns the state before the load.
    pub fn begins(&self, start: Start) -> Precondition {
        match (&self.yours.workload, self.state) {
            (_, Some(state)) => start.given().unwrap_or(state),
            (Workload::Jobs(jobs), None) => start.before_jobs(jobs),
            (Workload::Trace(_), None) => start.before(false),
        }
    }

    /// Returns the jobs in the text of a job file.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn of_text(source: &str, text: String) -> Result<Load, Problems> {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
            processors: 1,
        };
        let set = fio::read_text(source, &text, &surroundings)?;
        Ok(Load::new(UserWorkload {
            source: source.to_owned(),
            text,
            workload: Workload::Jobs(set.jobs),
        }))
    }

    /// Returns the load with no job counted for longer than this.
    #[must_use]
    pub fn at_most(mut self, most: Span) -> Load {
        if let Workload::Jobs(jobs) = &self.yours.workload {
            let cut = |job: &Job| job.runtime.is_none_or(|runtime| runtime > most);
            self.cut = jobs.iter().any(cut).then_some(most);
        }
        self
    }

    /// Returns the load with no job counted for longer than this and its own maximum, even if a run completes few I/Os;
    /// at a given rate, long enough for [`BRIEF_IOS`] to arrive. `None` for a trace.
    pub(super) fn briefly(&self, most: Span) -> Option<Load> {
        let most = self.cut.map_or(most, |cut| cut.min(most));
        let brief = Load {
            is_brief: true,
            ..self.clone()
        };
        let arriving = self
            .offered_iops
            .map(|rate| Span::from_seconds(BRIEF_IOS / rate));
        let brief = match arriving.filter(|enough| *enough > most) {
            Some(enough) => brief.counted_longer(enough).at_most(enough),
            None => brief.at_most(most),
        };
        (!self.is_trace()).then_some(brief)
    }

    /// Checks whether a job runs once for its counted time.
    pub(super) fn is_brief(&self) -> bool {
        self.is_brief
    }

    /// Returns the load with every job counted for this time, if that is longer than its own.
    #[must_use]
    pub fn counted_longer(mut self, runtime: Span) -> Load {
        if let Workload::Jobs(jobs) = &mut self.yours.workload {
            for job in jobs {
                job.runtime = job.runtime.map(|its| its.max(runtime));
            }
        }
        self
    }

    /// Returns the load with a requested write rate in 10^6 bytes per second, of writes with this pattern.
    #[must_use]
    pub fn writing(self, mb_s: f64, pattern: String) -> Load {
        Load {
            asked_mb_s: Some(mb_s),
            asked_pattern: Some(pattern),
            ..self
        }
    }

    /// Returns the load with its I/Os arriving at this rate (open loop).
    ///
    /// # Errors
    /// It is a trace, or a job cannot have a rate.
    pub fn at_rate(self, offered: OfferedRate) -> Result<Load, Problems> {
        self.at_rate_by("--rate", offered)
    }

    /// As [`Load::at_rate`]; errors name `option`, by which the user requests the rate.
    ///
    /// # Errors
    /// It is a trace, or a job cannot have a rate.
    pub fn at_rate_by(mut self, option: &str, offered: OfferedRate) -> Result<Load, Problems> {
        let Workload::Jobs(jobs) = &mut self.yours.workload else {
            let what = format!("{option}: a trace is replayed at its recorded times");
            return Err(Problems::whole("command line", what));
        };
        let (paced, total) = rate::paced_jobs(jobs, offered, option)?;
        *jobs = paced;
        self.offered_iops = Some(total);
        self.asked_rate = Some(offered);
        Ok(self)
    }

    /// Returns the load at the highest total rate that limits require, if any, and if it has no pace of its own.
    #[must_use]
    pub fn at_rate_of(self, slo: &Slo) -> Load {
        let asked = OfferedRate::asked_by(slo).into_iter();
        let paced = asked.filter_map(|rate| self.clone().at_rate(rate).ok());
        let highest = paced.max_by(|a, b| {
            let rate = |load: &Load| load.offered_iops.unwrap_or(0.0);
            rate(a).total_cmp(&rate(b))
        });
        highest.unwrap_or(self)
    }

    /// Returns the total arrival rate in IOPS, if one was requested.
    pub fn offered_iops(&self) -> Option<f64> {
        self.offered_iops
    }

    /// Returns which jobs of the load have a rate or pauses of their own, if no rate was requested. Not covered: the
    /// recorded times of a log of I/Os (`read_iolog`).
    pub fn own_pace(&self) -> OwnPace {
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return OwnPace::AllJobs;
        };
        let has = |job: &&Job| job.think.is_some() || job.rate.iter().any(Option::is_some);
        match jobs.iter().filter(has).count() {
            _ if self.offered_iops.is_some() => OwnPace::NoJob,
            0 => OwnPace::NoJob,
            some if some < jobs.len() => OwnPace::SomeJobs,
            _ => OwnPace::AllJobs,
        }
    }

    /// Returns the mean bytes of the arriving I/Os, if a rate was requested.
    pub fn mean_bytes(&self) -> Option<f64> {
        match &self.yours.workload {
            Workload::Jobs(jobs) => self.offered_iops.map(|_| rate::mean_bytes_of(jobs)),
            Workload::Trace(_) => None,
        }
    }

    /// Returns the jobs of a load that only writes sequentially.
    pub fn sequential_writes(&self) -> Option<&[Job]> {
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return None;
        };
        let is_write = |job: &Job| job.mix == Mix::Write && !job.random;
        jobs.iter().all(is_write).then_some(&jobs[..])
    }

    /// Checks whether it is a trace, which has its own pace.
    pub fn is_trace(&self) -> bool {
        matches!(self.yours.workload, Workload::Trace(_))
    }

    /// Returns the description of the load, as run with this number of seeds.
    pub fn facts(&self, seeds: u32) -> LoadFacts {
        LoadFacts {
            source: self.yours.source.clone(),
            text: self.yours.text.clone(),
            at_most_seconds: self.cut.map(Span::seconds),
            asked_mb_s: self.asked_mb_s,
            asked_pattern: self.asked_pattern.clone(),
            has_files_to_read: false,
            is_burst: self.asked_mb_s.is_none() && self.sequential_writes().is_some(),
            offered_iops: self.offered_iops,
            extended_seconds: self.extended(seeds).map(Span::seconds),
        }
    }

    /// Returns the user's workload, for [`crate::review::check`].
    pub fn user_workload(&self) -> &UserWorkload {
        &self.yours
    }

    /// Returns the work, with no job counted for longer than `most` or shorter than `least`.
    fn work(&self, Length { most, least, ramp }: Length) -> Work {
        match (&self.yours.workload, most) {
            (Workload::Jobs(jobs), None) => {
                let longer = |job: &Job| Job {
                    ramp_time: job.ramp_time.max(ramp),
                    ..job.clone()
                };
                Work::Jobs(jobs.iter().map(longer).collect())
            }
            (Workload::Jobs(jobs), Some(most)) => {
                let cut = |job: &Job| Job {
                    runtime: Some(job.runtime.map_or(most, |its| its.min(most)).max(least)),
                    ramp_time: job.ramp_time.min(Span::from_ns(most.ns() / RAMP)).max(ramp),
                    ..job.clone()
                };
                Work::Jobs(jobs.iter().map(cut).collect())
            }
            (Workload::Trace(trace), _) => Work::Trace(TraceReplay {
                beyond: self.beyond,
                ..TraceReplay::new(trace.clone())
            }),
        }
    }

    /// Runs the load with every seed on a drive and returns the outcomes. `go_on` is called with the completed share,
    /// assuming that a job that may run again does. It must not stop runs that will be judged.
    ///
    /// # Errors
    /// The load does not fit the drive.
    pub fn run(
        &self,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: ProgressCallback<'_>,
    ) -> Result<Vec<Outcome>, Problems> {
        self.run_after(Span::ZERO, drive, conditions, lab, go_on)
    }

    /// Runs the load as [`Load::run`] does, with at least this time before the counted one.
    pub(super) fn run_after(
        &self,
        ramp: Span,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: ProgressCallback<'_>,
    ) -> Result<Vec<Outcome>, Problems> {
        let extended = self.extended(conditions.seeds).filter(|_| !self.is_brief);
        // No pool with files is small, so at most one of the two changes the drive.
        let other = self.smaller(drive, extended);
        let other = other.or_else(|| super::place::with_files(drive, &self.yours.workload));
        let drive = other.as_ref().unwrap_or(drive);
        if let Some(most) = extended {
            let once = Length {
                most: Some(most),
                least: most,
                ramp,
            };
            return self.run_for(once, drive, conditions, lab, go_on);
        }
        let Some(most) = self.cut else {
            let once = Length {
                ramp,
                ..Length::default()
            };
            let outcomes = self.run_for(once, drive, conditions, lab, go_on)?;
            return self.out_of_memory((once, outcomes), drive, conditions, lab);
        };
        let once = Length {
            most: Some(most),
            ramp,
            ..Length::default()
        };
        // It may run again, and then most of the work is still to come.
        let first = |share| go_on(share / (1 + LONGER) as f64);
        let outcomes = self.run_for(once, drive, conditions, lab, &first)?;
        if self.is_brief {
            return Ok(outcomes);
        }
        let Some(factor) = longer(&outcomes, self.fewest(BEYOND)) else {
            return self.out_of_memory((once, outcomes), drive, conditions, lab);
        };
        let again = |share| go_on((1.0 + share * LONGER as f64) / (1 + LONGER) as f64);
        let longer = Length {
            most: Some(most * factor),
            ..once
        };
        self.run_for(longer, drive, conditions, lab, &again)
    }

    /// Returns the counted seconds of these runs if they are at a low rate: they are extended, or a smaller drive ran in the
    /// place of this one. Most of the wear is then that of idle time.
    pub(super) fn seconds_at_low_rate(
        &self,
        drive: &DriveSheet,
        conditions: &Conditions,
        outcomes: &[Outcome],
    ) -> Option<f64> {
        let extended = self.extended(conditions.seeds);
        let extended = extended.filter(|it| !self.is_brief && self.is_mostly_idle(*it));
        if extended.is_none() && self.smaller(drive, extended).is_none() {
            return None;
        }
        let counted = outcomes.iter().map(|one| one.counted.seconds());
        counted.max_by(f64::total_cmp)
    }

    /// Returns a smaller drive for a run at a low arrival rate, which writes little in this time.
    fn smaller(&self, drive: &DriveSheet, extended: Option<Span>) -> Option<DriveSheet> {
        let (Workload::Jobs(jobs), Some(_)) = (&self.yours.workload, self.offered_iops) else {
            return None;
        };
        let brief = self.cut.filter(|cut| self.is_brief && *cut > USUAL);
        let extended = extended.filter(|it| self.is_mostly_idle(*it));
        let seconds = extended.or(brief)?.seconds();
        smaller::for_few_writes(drive, jobs, seconds)
    }

    /// Returns these outcomes, or those of longer runs that count only after memory is full. The runs are longer if much
    /// of the written data stayed in memory and no write waits for a log.
    fn out_of_memory(
        &self,
        (length, outcomes): (Length, Vec<Outcome>),
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
    ) -> Result<Vec<Outcome>, Problems> {
        let stays = stays_in_memory(drive, &outcomes).filter(|share| *share > IN_MEMORY);
        let (Some(share), Some(dirty)) = (stays, dirty_max(drive)) else {
            return Ok(outcomes);
        };
        if self.is_trace() || !Syncs::count(&self.yours.workload).needs_no_log() {
            return Ok(outcomes);
        }
        let rates = outcomes
            .iter()
            .map(|one| Tally::from_runs(&[one]).written_bytes_a_second());
        let fills = share * rates.fold(0.0, f64::max);
        let ramp = Span::from_seconds(dirty as f64 / fills.max(1.0)).min(FILLING);
        let longer = Length { ramp, ..length };
        let counted = self.run_for(longer, drive, conditions, lab, &to_the_end)?;
        // Jobs of a given size may end before memory is full: their first runs count.
        Ok(match counted.iter().any(|one| super::rate_of(one) == 0.0) {
            true => outcomes,
            false => counted,
        })
    }

    fn run_for(
        &self,
        length: Length,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: ProgressCallback<'_>,
    ) -> Result<Vec<Outcome>, Problems> {
        let machine = Machine::new(drive, &conditions.host);
        let scenario = |seed: u64| {
            let work = self.work(length);
            let mut scenario = Scenario::new(machine.clone(), conditions.state, work, seed);
            scenario.warm_seed = Some(conditions.seed);
            if dirty_max(drive).is_some() && !self.is_trace() {
                // A long run has as many values as one of 1,000 s.
                let coarse = length.least.ns() / 10_000;
                scenario.series_every = READ_EVERY.max(Span::from_ns(coarse));
            }
            scenario
        };
        let seeds = conditions.seed..conditions.seed + u64::from(conditions.seeds);
        let scenarios: Vec<Scenario> = seeds.map(scenario).collect();
        lab.run_all(&scenarios, go_on).into_iter().collect()
    }
}
