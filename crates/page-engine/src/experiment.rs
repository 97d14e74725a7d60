//! An experiment of the laboratory's page: a drive by its name or its text, a job file, a host, a state, a seed. The
//! results are the drive's facts, figures up to p99.999, the latency breakdown by band, and everything needed to
//! repeat the run with `drivelab run`.
//!
//! A NAND drive is run at a smaller size (`DriveSheet::smaller`) unless the full size is requested. Not supported:
//! faults, traces, and files that job files include.

use catalogue::{Change, DriveSheet, HostSheet, Settings, change, drive_as, drive_from_text_as};
use lab::{Lab, Machine, Measured, Outcome, Scenario, Start, ThreadOutcome};
use model::Gauge;
use model::media::Medium;
use serde::{Deserialize, Serialize};
use statistics::{AnatomyBands, BAND_EDGES, Total};
use text::problem::{Place, Problem, Problems};
use workload::fio::{JobSet, read_text};

use crate::figures::Direction;
use crate::question::{state_named, without_files};

/// Minimum number of I/Os of a band whose mean is shown.
const FEWEST: u64 = 10;

/// Name of the job file in messages; the page saves it under this name.
pub const JOB_FILE: &str = "job.fio";

/// One run of a job file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of a drive or pool of the catalogue, or a pool's expression; with `toml`, the name of the file.
    pub drive: String,
    /// TOML text of a drive or pool that is not in the catalogue.
    pub toml: Option<String>,
    /// Settings of the drive: options of the command line with their values, such as (`overprovision`, `20%`).
    pub settings: Vec<(String, String)>,
    /// Whether a NAND drive is run at its full size, which takes more memory.
    pub whole: bool,
    /// Text of the job file.
    pub job: String,
    /// Name of a host of the catalogue.
    pub host: String,
    /// Initial state: `fresh`, `filled` or `steady`.
    pub state: String,
    /// Seed of every random stream; below 2^53.
    pub seed: u64,
}

/// Results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Facts about the drive.
    pub about: DriveDescription,
    /// Warnings for the user on how the job file was read.
    pub warnings: Vec<String>,
    /// Counted time in virtual seconds.
    pub seconds: f64,
    /// Results of reads; null if there were none.
    pub read: Option<DirectionDetail>,
    /// Results of writes; null if there were none.
    pub write: Option<DirectionDetail>,
    /// Mean power in watts; null if the model has no power for the drive.
    pub watts: Option<f64>,
    /// Bytes programmed for each byte that the host wrote; null without writes.
    pub write_amplification: Option<f64>,
    /// Number of busy cores of the host.
    pub host_cores: Option<f64>,
}

/// Facts about a drive, and its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveDescription {
    /// Full name of the drive.
    pub name: String,
    /// Bytes that a host can address on the whole drive with its settings.
    pub capacity_bytes: u64,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in US dollars, if published.
    pub price_usd: Option<f64>,
    /// Date of the price.
    pub price_date: Option<String>,
    /// Changed figures that turn the requested drive into the simulated one: arguments of `--set`.
    pub set: Vec<Change>,
    /// Note on settings that have no effect on the drive.
    pub note: Option<String>,
    /// Factor by which the simulated drive is smaller than the whole one; 1 if it is not.
    pub smaller: f64,
    /// Text of the drive's or pool's file.
    pub toml: String,
}

/// Results of one direction, with details.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionDetail {
    /// Figures that every page shows.
    #[serde(flatten)]
    pub direction: Direction,
    /// 99.99th percentile; null if fewer than ten I/Os were slower.
    pub p99_99_us: Option<f64>,
    /// 99.999th percentile; null as above.
    pub p99_999_us: Option<f64>,
    /// Latency breakdown by band of percentiles ([`BAND_EDGES`]); null where there are fewer than ten I/Os.
    pub bands: Vec<Option<BandParts>>,
}

/// The I/Os of one band of percentiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BandParts {
    /// Number of I/Os.
    pub ios: u64,
    /// Mean of each part in microseconds, in the order of [`model::Part::ALL`].
    pub parts_us: Vec<f64>,
}

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// All problems of drive, host, state and job file, or of the job on that drive.
    pub fn run(&self, lab: &Lab) -> Result<Results, Problems> {
        let (sheet, about, host, set, start) = self.read()?;
        let machine = Machine::new(&sheet, &host);
        let together = together(&set);
        let state = start.before_jobs(&set.jobs);
        let scenario = Scenario::jobs(machine, state, set.jobs, self.seed);
        let outcome = lab.run_among(&scenario, &lab::to_the_end)?;
        let begins = start.words(state).map(String::from);
        let warnings = together.into_iter().chain(set.warnings).chain(begins);
        let warnings = warnings.collect();
        Ok(Results::from_outcome(about, warnings, &outcome))
    }

    /// Reads all parts of the experiment, or returns all problems.
    fn read(&self) -> Result<Read, Problems> {
        let mut problems = Problems::default();
        let mut wrong = |more: Problems| problems.0.extend(more.0);
        let options = self.settings.iter();
        let settings = Settings::read(options.map(|(option, value)| (&**option, &**value)));
        let settings = settings.map_err(&mut wrong).unwrap_or_default();
        let drive = self.drive_to_run(&settings).map_err(&mut wrong).ok();
        let host = catalogue::host(&self.host).map_err(&mut wrong).ok();
        let state = state_named(&self.state).map_err(&mut wrong).ok();
        wrong(Problems(
            state
                .and_then(Start::given)
                .and_then(|it| settings.problem_from(it))
                .into_iter()
                .collect(),
        ));
        let processors = host.as_ref().map_or(1, |host| host.config.cores.into());
        let surroundings = without_files(processors);
        let set = read_text(JOB_FILE, &self.job, &surroundings);
        let set = set.and_then(without_traces).map_err(&mut wrong).ok();
        match (drive, host, state, set) {
            (Some((sheet, about)), Some(host), Some(state), Some(set)) => {
                problems.or((sheet, about, host, set, state))
            }
            _ => Err(problems),
        }
    }

    /// Returns the drive to simulate, and the facts of the whole one.
    fn drive_to_run(
        &self,
        settings: &Settings,
    ) -> Result<(DriveSheet, DriveDescription), Problems> {
        let whole = self.drive_as(settings)?;
        let mut about = DriveDescription {
            name: whole.name.clone(),
            capacity_bytes: whole.capacity,
            endurance_bytes: whole.endurance_bytes,
            warranty_years: whole.warranty_years,
            price_usd: whole.price_usd,
            price_date: whole.price_date.clone(),
            set: Vec::new(),
            note: whole.note_on(settings),
            smaller: 1.0,
            toml: self.text()?,
        };
        let smaller = match self.whole {
            true => None,
            false => self.smaller(settings)?,
        };
        let Some((small, set)) = smaller else {
            return Ok((whole, about));
        };
        about.smaller = whole.capacity as f64 / small.config.capacity_bytes() as f64;
        about.set = set;
        Ok((small, about))
    }

    /// Returns the smaller drive in the requested condition, and the changes that make it from the whole drive. These
    /// changes refer to the whole drive with its changed figures and without the condition, because spare area, data
    /// and wear are shares of the drive. `None` if there is no smaller drive, or if figures of the file cannot express
    /// it, so that the command line could not run it.
    fn smaller(&self, settings: &Settings) -> Result<Option<(DriveSheet, Vec<Change>)>, Problems> {
        let rested = Settings {
            figures: settings.figures_alone(),
            ..Settings::default()
        };
        let smaller = self.drive_as(&rested)?.smaller();
        let Some((config, set)) = smaller.filter(|(_, set)| !set.is_empty()) else {
            return Ok(None);
        };
        // Of two values for one figure, the last counts, as on the command line.
        let with = |settings: &Settings| {
            let mut with = settings.clone();
            with.figures.extend(set.iter().cloned());
            self.drive_as(&with)
        };
        match with(&rested) {
            Ok(small) if small.config == config => Ok(Some((with(settings)?, set))),
            _ => Ok(None),
        }
    }

    fn drive_as(&self, settings: &Settings) -> Result<DriveSheet, Problems> {
        match &self.toml {
            Some(text) => drive_from_text_as(&self.drive, text, settings),
            None => drive_as(&self.drive, settings),
        }
    }

    /// Returns the text of the drive's file.
    fn text(&self) -> Result<String, Problems> {
        match &self.toml {
            Some(text) => Ok(text.clone()),
            None if catalogue::is_expression(&self.drive) => {
                catalogue::text_of_expression(&self.drive)
            }
            None => change::text_of(&self.drive, &[]),
        }
    }
}

/// The parsed parts of an experiment.
type Read = (DriveSheet, DriveDescription, HostSheet, JobSet, Start);

impl Results {
    fn from_outcome(about: DriveDescription, warnings: Vec<String>, outcome: &Outcome) -> Results {
        let detailed = |of: fn(&ThreadOutcome) -> &Measured| {
            DirectionDetail::from_total(&Total::from_threads(outcome.threads.iter().map(of)))
        };
        Results {
            about,
            warnings,
            seconds: outcome.counted.seconds(),
            read: detailed(|thread| &thread.read),
            write: detailed(|thread| &thread.write),
            watts: outcome.watts(),
            write_amplification: outcome.write_amplification(),
            host_cores: outcome.utilisation(Gauge::HostCpuSeconds),
        }
    }
}

impl DirectionDetail {
    fn from_total(total: &Total) -> Option<DirectionDetail> {
        let at = |percent| total.latency.percentile(percent).map(|span| span.us());
        Some(DirectionDetail {
            direction: Direction::from_total(total)?,
            p99_99_us: at(99.99),
            p99_999_us: at(99.999),
            bands: bands(&total.bands),
        })
    }
}

fn bands(bands: &AnatomyBands) -> Vec<Option<BandParts>> {
    let all = bands.percentile_bands(&BAND_EDGES).into_iter();
    let told = all.map(|band| {
        (band.count >= FEWEST).then(|| BandParts {
            ios: band.count,
            parts_us: band.mean_ns.iter().map(|ns| ns / 1e3).collect(),
        })
    });
    told.collect()
}

/// Returns the note that the figures cover all jobs of the file, if it has several.
fn together(set: &JobSet) -> Option<String> {
    let names: Vec<&str> = set.jobs.iter().map(|job| job.name.as_str()).collect();
    (names.len() > 1).then(|| {
        let names = names.join(", ");
        format!("figures are of all jobs of the file together ({names}); `drivelab run` reports each job")
    })
}

/// Returns the jobs; an error if one replays a recorded trace, which is a file that a page cannot read.
fn without_traces(set: JobSet) -> Result<JobSet, Problems> {
    let playing = set.jobs.iter().filter(|job| job.iolog.is_some());
    let wrong = playing.map(|job| Problem {
        origin: JOB_FILE.into(),
        place: Place::Whole,
        what: format!(
            "job `{}`: `read_iolog` replays a file, and a page cannot read files",
            job.name
        ),
        help: Some(String::from(
            "take it out, or save the job file and run it by `drivelab run`",
        )),
    });
    Problems(wrong.collect()).or(set)
}

/// Returns problems as a terminal shows them, without colours.
pub(crate) fn render_problems(problems: &Problems) -> Vec<String> {
    let one = |problem: &Problem| Problems(vec![problem.clone()]).render(false);
    problems.0.iter().map(one).collect()
}
