//! Aerospike's certification test as it is asked for: load or configuration file, version, threads, times.
//!
//! [`Asked`] is what the command line and Python read; [`Asked::plan`] makes a scenario of it for a drive in a host, and
//! [`run`] runs it: once, or as often as the score takes. The test itself is `workload::act`, its verdict and score are
//! `lab::act` (docs/act.md).

use std::ops::RangeInclusive;
use std::path::PathBuf;

use catalogue::{DriveSheet, HostSheet};
use lab::act::{ActTest, Score, Tested, score, tested_until};
use lab::{GoOn, Lab, Machine, Scenario, Work};
use model::Span;
use model::media::Precondition;
use text::problem::{Problem, Problems};
use workload::act::{Config, Generation, from_text};

/// The host of the test where none is named: the newest that is known to have run it.
pub const HOST: &str = "xeon-2017";

/// Loads that can be asked for, in multiples of 1x.
pub const LOADS: RangeInclusive<f64> = 0.001..=10_000.0;
/// Queues of version 3.
pub const QUEUES: RangeInclusive<i64> = 1..=256;
/// Threads of each of them.
pub const THREADS_PER_QUEUE: RangeInclusive<i64> = 1..=128;
/// Service threads of version 6.
pub const SERVICE_THREADS: RangeInclusive<i64> = 1..=4_096;
/// Seconds of a run: a year.
pub const DURATIONS: RangeInclusive<i64> = 1..=31_536_000;
/// Seconds that are not counted: a day.
pub const WARM_UPS: RangeInclusive<i64> = 0..=86_400;
/// Seconds of a slice.
pub const SLICES: RangeInclusive<i64> = 1..=u32::MAX as i64;
/// Cores that the threads run on.
pub const CORES: RangeInclusive<i64> = 1..=1_024;

/// Which of the program's two generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// Queues and threads, latency from the queue, as in 2017.
    Three,
    /// Service threads, latency from issue.
    Six,
}

/// What is asked; what is none has the default of the version or the configuration file.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Only this multiple of 1x; none looks for the score.
    pub load: Option<f64>,
    /// Only this configuration file of the program's.
    pub config: Option<PathBuf>,
    /// The version; 6 if neither this nor a file says which.
    pub version: Option<Version>,
    /// Queues of version 3.
    pub queues: Option<u16>,
    /// Threads of each of its queues.
    pub threads_per_queue: Option<u16>,
    /// Service threads of version 6.
    pub service_threads: Option<u16>,
    /// How long each load is simulated; 10 s.
    pub duration: Option<Span>,
    /// What at the start is not counted.
    pub warm_up: Span,
    /// Length of a slice of the verdict.
    pub slice: Span,
    /// Whether latency alone is judged.
    pub latency_only: bool,
    /// Cores that the threads run on; all of the host.
    pub cores: Option<u16>,
}

impl Asked {
    /// Whether one run is asked for, not the score.
    pub fn is_one_run(&self) -> bool {
        self.load.is_some() || self.config.is_some()
    }

    /// The host of this name or file, with as many cores as asked for.
    ///
    /// # Errors
    /// All that is wrong with it; it does not say what the test costs there.
    pub fn host(&self, name: &str) -> Result<HostSheet, Problems> {
        let mut sheet = catalogue::host(name)?;
        if sheet.act.is_none() {
            let whole = Problems::whole(name, "the host does not say what ACT costs there");
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

    /// The test's configuration on so many cores.
    ///
    /// # Errors
    /// The file cannot be read, or all that is wrong in it.
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
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")))?;
        let mut config = from_text(&origin, &text, asked, cores)?;
        if let Some(duration) = self.duration {
            config.duration = duration;
        }
        Ok(config)
    }

    /// The test on a drive.
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

/// Runs a plan: once, or, if `one_run` is not asked for, until the score is known; then that run and the score. `told` hears
/// the bounds of the score that are left, `go_on` whether to go on with one run.
///
/// # Errors
/// As [`score`].
pub fn run(
    lab: &Lab,
    plan: &Scenario,
    one_run: bool,
    told: &(dyn Fn(u32, Option<u32>) + Sync),
    go_on: GoOn<'_>,
) -> Result<(Tested, Option<Score>), Problems> {
    if one_run {
        return tested_until(lab, plan, go_on).map(|tested| (tested, None));
    }
    let found = score(lab, plan, told)?;
    Ok((found.tested.clone(), Some(found)))
}
