//! Request for the lifetime of drives at a load ([`crate::decide::life`]).

use std::path::PathBuf;

use catalogue::DriveSheet;
use lab::Lab;
use model::Span;
use text::problem::Problems;
use text::quantity::quantity;

use super::conditions::{self, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::load::{LoadSpec, NamedLoad};
use super::problems::{collect_problems, of_option};
use super::{AnswerListener, Ask, ResolvedRequest, defaults};
use crate::decide::life::{self, LifeAnswer};
use crate::decide::rate::OfferedRate;
use crate::decide::work::{Conditions, Load, counted_for};
use crate::decide::writing::WriteAmount;

request! {
    /// Lifetime of drives at a load.
    Life {
        /// Names, with settings.
        drives: Vec<DriveSpec> = Vec::new(),
        /// A built-in load, or jobs.
        load: Option<NamedLoad> = None,
        /// Path of a job file.
        job: Option<PathBuf> = None,
        /// Path of a trace.
        trace: Option<PathBuf> = None,
        /// Number of users of a load.
        users: Option<u32> = None,
        /// Total rate of the load, such as `50k` or `300MB/s`; `None`: the load's own.
        rate: Option<String> = None,
        /// Writes instead of a load: `100MB/s`, `2TB/day` or `1DWPD`.
        writes: Option<String> = None,
        /// Access pattern of `writes`, as in fio.
        rw: String = defaults::WRITES_RW.into(),
        /// Block size of `writes`, as in fio.
        bs: String = defaults::BS.into(),
        /// Required lifetime.
        years: f64 = defaults::YEARS,
        /// Maximum counted time of a job; `None`: the default for the drives.
        runtime: Option<String> = None,
        /// Host of the drives.
        host: String = catalogue::TYPICAL_HOST.into(),
        /// Initial state of the drives.
        state: String = defaults::AUTO.into(),
        /// First seed.
        seed: u64 = defaults::SEED,
        /// Number of seeds.
        seeds: u32 = defaults::SEEDS,
    }
}

/// A checked request.
#[derive(Debug)]
pub struct ResolvedLife {
    /// Loaded drives.
    pub drives: Vec<DriveSheet>,
    /// Load of each drive: drive writes per day are another rate on each.
    pub loads: Vec<Option<Load>>,
    /// Required lifetime in years.
    pub years: f64,
    /// Conditions of the runs.
    pub conditions: Conditions,
    /// Warnings on options of a job file.
    pub warnings: Vec<String>,
}

impl Life {
    /// Adds problems of arguments that exclude each other.
    fn check_one_load(&self, problems: &mut Problems) {
        let loads = [
            ("--load", self.load.is_some()),
            ("--job", self.job.is_some()),
            ("--trace", self.trace.is_some()),
            ("--writes", self.writes.is_some()),
        ];
        let mut given = loads.iter().filter(|(_, is_given)| *is_given).skip(1);
        if let Some((option, _)) = given.next() {
            problems.0.push(of_option(
                format!("{option}: there is more than one load"),
                "give one load: --load, --job, --trace or --writes",
            ));
        }
        let with_rate = [
            ("--trace", self.trace.is_some()),
            ("--users", self.users.is_some()),
            ("--writes", self.writes.is_some()),
        ];
        let with_rate = with_rate.iter().find(|(_, is_given)| *is_given);
        if let (Some(_), Some((option, _))) = (&self.rate, with_rate) {
            problems.0.push(of_option(
                format!("--rate: {option} is given too"),
                "give one of them",
            ));
        }
    }

    /// Returns the load of each drive.
    fn loads(
        &self,
        drives: &[DriveSheet],
        load: Option<Load>,
        runtime: Option<Span>,
        problems: &mut Problems,
    ) -> Vec<Option<Load>> {
        let rate = read_option("rate", self.rate.as_deref(), OfferedRate::read, problems);
        let load = match (load, rate) {
            (Some(load), Some(rate)) => collect_problems(load.at_rate(rate), problems),
            (None, Some(_)) => {
                if problems.0.is_empty() {
                    let help = "name a load: --load oltp or --job FILE; for writes alone, --writes 100MB/s";
                    let what = "--rate: there is no load";
                    problems.0.push(of_option(what, help));
                }
                None
            }
            (load, None) => load,
        };
        let writes = read_option(
            "writes",
            self.writes.as_deref(),
            WriteAmount::read,
            problems,
        );
        let Some(writes) = writes else {
            return vec![load; drives.len()];
        };
        if !["write", "randwrite"].contains(&&*self.rw) {
            let what = format!("--rw: {} is not a pattern of writes", self.rw);
            problems.0.push(of_option(what, "write or randwrite"));
            return Vec::new();
        }
        let of_drive = |drive| {
            let load = writes.load(drive, &self.rw, &self.bs, runtime);
            collect_problems(load, problems)
        };
        drives.iter().map(of_drive).collect()
    }
}

/// Returns the value of an option that is given; otherwise, and if its text is invalid, `None`.
fn read_option<T>(
    option: &str,
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, String>,
    problems: &mut Problems,
) -> Option<T> {
    let text = text?;
    let read = read(text).map_err(|help| {
        let what = format!("--{option}: {text}");
        problems.0.push(of_option(what, help));
    });
    read.ok()
}

impl Ask for Life {
    const NAME: &'static str = "life";
    type Resolved = ResolvedLife;

    fn resolve(&self) -> Result<ResolvedLife, Problems> {
        let mut problems = Problems::default();
        self.check_one_load(&mut problems);
        let drives = load_all(&self.drives, &mut problems);
        let start = conditions::start(&self.state, &self.drives, &mut problems);
        let host = conditions::host(&self.host, &mut problems);
        check_seeds(self.seed, self.seeds, &mut problems);
        let years = self.years.to_string();
        read_option("years", Some(&years), life::years, &mut problems);
        let runtime = self.runtime.as_deref();
        let runtime = read_option("runtime", runtime, quantity::<Span>, &mut problems);
        let spec = LoadSpec {
            load: self.load.clone(),
            job: self.job.clone(),
            trace: self.trace.clone(),
            users: self.users,
            runtime,
        };
        let read = spec.read(&host, counted_for(drives.iter()), &mut problems);
        let loads = self.loads(&drives, read.load, runtime, &mut problems);
        // The loads of all drives have one pattern.
        let load = loads.iter().flatten().next();
        let conditions = Conditions {
            state: load.map_or(start.before(false), |load| load.begins(start)),
            host,
            seed: self.seed,
            seeds: self.seeds,
        };
        problems.or(ResolvedLife {
            drives,
            loads,
            years: self.years,
            conditions,
            warnings: read.warnings,
        })
    }
}

impl ResolvedRequest for ResolvedLife {
    type Answer = LifeAnswer;

    fn drives(&self) -> &[DriveSheet] {
        &self.drives
    }

    fn answer(
        &self,
        index: usize,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<LifeAnswer, Problems> {
        let (drive, load) = (&self.drives[index], self.loads[index].as_ref());
        let (years, conditions) = (self.years, &self.conditions);
        life::life(drive, load, years, conditions, lab, listener.share)
    }
}
