//! A load as it is: a job file, a trace, or writes at a rate, run with several seeds from one state.
//!
//! A decision needs what a load does once it is under way, not all of its hours: each job runs for at most so long
//! ([`Load::at_most`], longer on slow drives), and answers say so. Traces run whole, since what they ask for changes as they go.

use catalogue::{DriveSheet, HostSheet};
use lab::{GoOn, Lab, Machine, Outcome, Scenario, Start, TraceReplay, Work};
use model::Span;
use model::media::Precondition;
use serde::Serialize;
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::Job;
use workload::replay::Beyond;

use super::rate::{self, Offered};
use super::slo::Slo;
use crate::review::{Workload, Yours};

/// Seeds, the state and the host of runs.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The host.
    pub host: HostSheet,
    /// The state drives begin in.
    pub state: Precondition,
    /// The first seed.
    pub seed: u64,
    /// How many; at least 1.
    pub seeds: u32,
}

/// A load in words.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadFacts {
    /// The file's name, or what was asked for.
    pub source: String,
    /// The job file, or how a trace is replayed.
    pub text: String,
    /// The longest that a job runs, in seconds; null where nothing was cut.
    pub at_most_seconds: Option<f64>,
    /// 10^6 bytes a second that were to be written; null where no rate was asked for.
    pub asked_mb_s: Option<f64>,
    /// I/Os a second that arrive in all (open loop); null where no rate was asked for.
    pub offered_iops: Option<f64>,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    yours: Yours,
    /// The longest that a job is counted for, if that cut one.
    cut: Option<Span>,
    asked_mb_s: Option<f64>,
    offered_iops: Option<f64>,
    /// What is done with a trace's addresses beyond a drive.
    beyond: Beyond,
}

/// The longest run before counting begins, as a share of the counted time.
const RAMP: u64 = 4;

/// I/Os of a direction, all seeds together, below which a job that was cut runs longer, and by how much: as many as leave some beyond
/// the 99th percentile.
const FEWEST: u64 = 4_000;
const LONGER: u64 = 20;

/// Whether reads, writes or syncs are too few.
fn is_short(outcomes: &[Outcome]) -> bool {
    let threads = || outcomes.iter().flat_map(|one| &one.threads);
    let counts: [u64; 3] = [
        threads().map(|it| it.read.ios).sum(),
        threads().map(|it| it.write.ios).sum(),
        threads().map(|it| it.sync.ios).sum(),
    ];
    let some = counts.into_iter().filter(|count| *count > 0);
    some.min().is_none_or(|least| least < FEWEST)
}

impl Load {
    /// A job file or trace of a user's, as long as it says.
    pub fn new(yours: Yours) -> Load {
        Load {
            yours,
            cut: None,
            asked_mb_s: None,
            offered_iops: None,
            beyond: Beyond::Wrap,
        }
    }

    /// The same, with this done with a trace's addresses beyond a drive; else they are folded into it.
    #[must_use]
    pub fn beyond(mut self, beyond: Beyond) -> Load {
        self.beyond = beyond;
        self
    }

    /// The state before it.
    pub fn begins(&self, start: Start) -> Precondition {
        match &self.yours.workload {
            Workload::Jobs(jobs) => start.before_jobs(jobs),
            _ => start.before(false),
        }
    }

    /// Jobs in the text of a job file.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn of_text(source: &str, text: String) -> Result<Load, Problems> {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
            processors: 1,
        };
        let set = fio::read_text(source, &text, &surroundings)?;
        Ok(Load::new(Yours {
            source: source.to_owned(),
            text,
            workload: Workload::Jobs(set.jobs),
        }))
    }

    /// The same with no job that is counted for longer than this.
    #[must_use]
    pub fn at_most(mut self, most: Span) -> Load {
        if let Workload::Jobs(jobs) = &self.yours.workload {
            let cut = |job: &Job| job.runtime.is_none_or(|runtime| runtime > most);
            self.cut = jobs.iter().any(cut).then_some(most);
        }
        self
    }

    /// The same with every job counted for so long, if that is longer than it says.
    #[must_use]
    pub fn counted_longer(mut self, runtime: Span) -> Load {
        if let Workload::Jobs(jobs) = &mut self.yours.workload {
            for job in jobs {
                job.runtime = job.runtime.map(|its| its.max(runtime));
            }
        }
        self
    }

    /// The same, which is to write so many 10^6 bytes a second.
    #[must_use]
    pub fn writing(mut self, mb_s: f64) -> Load {
        self.asked_mb_s = Some(mb_s);
        self
    }

    /// The same, with its I/Os arriving at this rate (open loop).
    ///
    /// # Errors
    /// It is a trace, or a job cannot be given a rate.
    pub fn at_rate(mut self, offered: Offered) -> Result<Load, Problems> {
        let Workload::Jobs(jobs) = &mut self.yours.workload else {
            let what = "--rate: a trace is replayed at its own pace";
            return Err(Problems::whole("command line", what));
        };
        let (paced, total) = rate::at(jobs, offered)?;
        *jobs = paced;
        self.offered_iops = Some(total);
        Ok(self)
    }

    /// The same at the rate that limits ask for in all, if they do and it has no pace of its own.
    #[must_use]
    pub fn at_rate_of(self, slo: &Slo) -> Load {
        match Offered::asked_by(slo) {
            Some(rate) => self.clone().at_rate(rate).unwrap_or(self),
            None => self,
        }
    }

    /// I/Os a second that arrive in all, where a rate was asked for.
    pub fn offered_iops(&self) -> Option<f64> {
        self.offered_iops
    }

    /// Mean bytes of the I/Os that arrive, where a rate was asked for.
    pub fn mean_bytes(&self) -> Option<f64> {
        match &self.yours.workload {
            Workload::Jobs(jobs) => self.offered_iops.map(|_| rate::mean_bytes_of(jobs)),
            Workload::Trace(_) => None,
        }
    }

    /// Whether it sets its own pace, as recorded.
    pub fn is_trace(&self) -> bool {
        matches!(self.yours.workload, Workload::Trace(_))
    }

    /// What it is.
    pub fn facts(&self) -> LoadFacts {
        LoadFacts {
            source: self.yours.source.clone(),
            text: self.yours.text.clone(),
            at_most_seconds: self.cut.map(Span::seconds),
            asked_mb_s: self.asked_mb_s,
            offered_iops: self.offered_iops,
        }
    }

    /// What was asked for, for [`crate::review::check`].
    pub fn yours(&self) -> &Yours {
        &self.yours
    }

    /// What runs, with no job that is counted for longer than `most`.
    fn work(&self, most: Option<Span>) -> Work {
        match (&self.yours.workload, most) {
            (Workload::Jobs(jobs), None) => Work::Jobs(jobs.clone()),
            (Workload::Jobs(jobs), Some(most)) => {
                let cut = |job: &Job| Job {
                    runtime: Some(job.runtime.map_or(most, |runtime| runtime.min(most))),
                    ramp_time: job.ramp_time.min(Span::from_ns(most.ns() / RAMP)),
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

    /// Outcomes with every seed on a drive. `go_on` is told the share that is done, as if a job that may run again does; it must not
    /// stop what is to be judged.
    ///
    /// # Errors
    /// The load does not fit the drive.
    pub fn run(
        &self,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Outcome>, Problems> {
        let Some(most) = self.cut else {
            return self.run_for(None, drive, conditions, lab, go_on);
        };
        // It may run again, and then most of the work is still to come.
        let first = |share| go_on(share / (1 + LONGER) as f64);
        let outcomes = self.run_for(Some(most), drive, conditions, lab, &first)?;
        if !is_short(&outcomes) {
            return Ok(outcomes);
        }
        let again = |share| go_on((1.0 + share * LONGER as f64) / (1 + LONGER) as f64);
        self.run_for(Some(most * LONGER), drive, conditions, lab, &again)
    }

    fn run_for(
        &self,
        most: Option<Span>,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Outcome>, Problems> {
        let machine = Machine::new(drive, &conditions.host);
        let scenario = |seed: u64| {
            let work = self.work(most);
            let mut scenario = Scenario::new(machine.clone(), conditions.state, work, seed);
            scenario.warm_seed = Some(conditions.seed);
            scenario
        };
        let seeds = conditions.seed..conditions.seed + u64::from(conditions.seeds);
        let scenarios: Vec<Scenario> = seeds.map(scenario).collect();
        lab.run_all(&scenarios, go_on).into_iter().collect()
    }
}
