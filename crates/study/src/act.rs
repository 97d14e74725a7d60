//! Parameters of Aerospike's certification test (ACT): load or configuration file, version, threads, times.
//!
//! The command line and Python read [`ActOptions`]. [`ActOptions::plan`] makes a scenario from it for a drive in a host, and
//! [`run`] runs it: once, or as often as the search for the score needs. The test itself is in `workload::act`, its
//! verdict and score in `lab::act` (docs/act.md).

use std::ops::RangeInclusive;
use std::path::PathBuf;

use catalogue::{DriveSheet, HostSheet};
use lab::act::{ActResult, ActTest, Score, score, tested_until};
use lab::{Lab, Machine, ProgressCallback, Scenario, Work};
use model::Span;
use model::media::Precondition;
use text::problem::{Problem, Problems};
use workload::act::{Config, Generation, from_text};

/// Default host of the test: the newest host that is known to have run it.
pub const HOST: &str = "xeon-2017";

/// Allowed loads, in multiples of 1x.
pub const LOADS: RangeInclusive<f64> = 0.001..=10_000.0;
/// Allowed numbers of queues in version 3.
pub const QUEUES: RangeInclusive<i64> = 1..=256;
/// Allowed numbers of threads per queue.
pub const THREADS_PER_QUEUE: RangeInclusive<i64> = 1..=128;
/// Allowed numbers of service threads in version 6.
pub const SERVICE_THREADS: RangeInclusive<i64> = 1..=4_096;
/// Allowed seconds of a run, up to a year.
pub const DURATIONS: RangeInclusive<i64> = 1..=31_536_000;
/// Allowed seconds of warm-up, up to a day.
pub const WARM_UPS: RangeInclusive<i64> = 0..=86_400;
/// Allowed seconds of a slice.
pub const SLICES: RangeInclusive<i64> = 1..=u32::MAX as i64;
/// Allowed numbers of cores for the threads.
pub const CORES: RangeInclusive<i64> = 1..=1_024;

/// Generation of the ACT program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// Version of 2017: queues with threads; latency is measured from entry into the queue.
    Three,
    /// Service threads; latency is measured from issue.
    Six,
}

/// Requested parameters. For `None`, the default of the version or of the configuration file is used.
#[derive(Clone, Debug, Default)]
pub struct ActOptions {
    /// The load to run, as a multiple of 1x; `None` searches for the score.
    pub load: Option<f64>,
    /// The configuration file of the ACT program to run.
    pub config: Option<PathBuf>,
    /// Version of the test; 6 if neither this nor a file states it.
    pub version: Option<Version>,
    /// Number of queues in version 3.
    pub queues: Option<u16>,
    /// Number of threads per queue.
    pub threads_per_queue: Option<u16>,
    /// Number of service threads in version 6.
    pub service_threads: Option<u16>,
    /// Simulated time of each load; 10 s by default.
    pub duration: Option<Span>,
    /// Warm-up time, which is not counted.
    pub warm_up: Span,
    /// Length of a slice of the verdict.
    pub slice: Span,
    /// Whether only latency is judged.
    pub latency_only: bool,
    /// Cores that the threads run on; all cores of the host by default.
    pub cores: Option<u16>,
}

impl ActOptions {
    /// Checks whether a single run is requested instead of the score.
    pub fn is_one_run(&self) -> bool {
        self.load.is_some() || self.config.is_some()
    }

    /// Returns the host with this name or file, with the requested number of cores.
    ///
    /// # Errors
    /// All problems of the host; it does not state the cost of the test.
    pub fn host(&self, name: &str) -> Result<HostSheet, Problems> {
        let mut sheet = catalogue::host(name)?;
        if sheet.act.is_none() {
            let whole = Problems::whole(
                name,
                "the host has no [act] section with the CPU time of ACT",
            );
            let help = format!("a host with an [act] section, such as {HOST}");
            let with_help = whole.0.into_iter().map(|problem| Problem {
                help: Some(help.clone()),
                ..problem
            });
            return Err(Problems(with_help.collect()));
        }
        let cores = sheet.config.cores * sheet.sockets;
        sheet.config.cores = self.cores.unwrap_or(cores);
        Ok(sheet)
    }

    /// Returns the test's configuration on this number of cores.
    ///
    /// # Errors
    /// The file cannot be read, or all problems in it.
    pub fn config(&self, cores: u16) -> Result<Config, Problems> {
        let asked = match self.version {
            Some(Version::Three) => Some(Generation::Queues {
                queues: self.queues.unwrap_or(8),
                threads_per_queue: self.threads_per_queue.unwrap_or(8),
            }),
            Some(Version::Six) => Some(Generation::version_6(cores)),
            None => None,
        };
        let asked = match self.service_threads {
            Some(threads) => Some(Generation::Service { threads }),
            None => asked,
        };
        let Some(path) = &self.config else {
            let generation = asked.unwrap_or(Generation::version_6(cores));
            let duration = self.duration.unwrap_or(Span::from_ms(10_000));
            return Ok(Config::load(self.load.unwrap_or(1.0), generation, duration));
        };
        let origin = path.display().to_string();
        let text = text::bounded::text(path, text::bounded::WRITTEN)
            .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
        let mut config = from_text(&origin, &text, asked, cores)?;
        if let Some(duration) = self.duration {
            config.duration = duration;
        }
        Ok(config)
    }

    /// Returns the plan of the test on a drive.
    pub fn plan(
        &self,
        drive: &DriveSheet,
        host: &HostSheet,
        config: &Config,
        state: Precondition,
        seed: u64,
    ) -> Scenario {
        let test = ActTest {
            config: Config {
                device: drive.id.clone(),
                ..config.clone()
            },
            warm_up: self.warm_up,
            slice: self.slice,
            latency_only: self.latency_only,
        };
        Scenario::new(Machine::new(drive, host), state, Work::Act(test), seed)
    }
}

/// Runs a plan. If one run is requested, runs it once; otherwise runs until the score is known, and returns the run at
/// the score, and the score. `told` is called with the remaining bounds of the score, `go_on` decides whether to
/// continue one run.
///
/// # Errors
/// As [`score`].
pub fn run(
    lab: &Lab,
    plan: &Scenario,
    one_run: bool,
    told: &(dyn Fn(u32, Option<u32>) + Sync),
    go_on: ProgressCallback<'_>,
) -> Result<(ActResult, Option<Score>), Problems> {
    if one_run {
        return tested_until(lab, plan, go_on).map(|tested| (tested, None));
    }
    let found = score(lab, plan, told)?;
    Ok((found.tested.clone(), Some(found)))
}
