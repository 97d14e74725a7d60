//! A review: drives compared on standard workloads and on the user's own, with a verdict in sentences.
//!
//! [`review`] runs everything and returns a [`Review`]. The crate `report` makes a page from it, and [`summary`] a
//! table for the terminal. To add a chapter: a file in `chapters/` and its line there.

pub mod again;
mod cache;
mod chapter;
mod chapters;
pub mod chart;
mod cliff;
mod course;
mod long;
pub mod measure;
pub mod measured;
pub mod member;
mod moved;
mod point;
mod pressure;
mod published;
pub mod results;
mod rounding;
mod rounds;
mod run;
mod scaled;
mod seeds;
pub mod sensitivity;
pub mod series;
mod settings;
pub(crate) mod shape;
mod slowest;
mod suite;
pub mod summary;
mod verdict;

pub use chapters::{METHOD, sections, spreads, sweeps};
pub use moved::SensitiveFigure;
pub use results::Review;
pub(crate) use run::rate_of;
pub use run::{Event, Listener, seed_of};
pub(crate) use scaled::ScaledDrive;
pub(crate) use suite::spread as point_threads;
pub use suite::{Effort, Suite};

use std::sync::Arc;

use again::DriveArguments;
use catalogue::{DriveSheet, Figure, FigureKind, HostSheet, Settings};
use lab::{Lab, Machine};
use results::{DriveFacts, HostFacts, VERSION, percentile_grid, rounded};
use statistics::BAND_EDGES;
use text::problem::{Problem, Problems};
use workload::job::Job;
use workload::replay::{Layout, OutOfRangePolicy};
use workload::trace::Trace;

/// Input of a review.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// The drives, in the order of the page, with the settings applied.
    pub drives: Vec<DriveSheet>,
    /// Settings of every drive, for the page.
    pub settings: Settings,
    /// Host of the drives.
    pub host: HostSheet,
    /// Name of the suite, for the page.
    pub suite: Suite,
    /// Number of I/Os and runs of each point; [`Suite::effort`], except in tests.
    pub effort: Effort,
    /// Seed of every random stream.
    pub seed: u64,
    /// The user's own workloads.
    pub yours: Vec<UserWorkload>,
    /// Whether only the user's own workloads are run, without the suite.
    pub only_yours: bool,
}

/// A workload of the user: a job file or a trace.
#[derive(Clone, Debug)]
pub struct UserWorkload {
    /// Name of the file as given.
    pub source: String,
    /// Text of the job file, or the parameters of the trace replay.
    pub text: String,
    /// The work to run.
    pub workload: Workload,
}

/// The work of a user's file.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Jobs of a job file.
    Jobs(Vec<Job>),
    /// A trace, replayed as recorded; addresses beyond the end of a drive are wrapped into it.
    Trace(Arc<Trace>),
}

impl ReviewRequest {
    /// Returns the bytes in a logical block of this drive with its settings.
    fn block_of(&self, drive: usize) -> u32 {
        let formats = &self.drives[drive].management.lba_formats;
        let format = self.settings.lba_format.as_ref().or(formats.first());
        format.map_or(512, |format| format.data)
    }

    /// Returns the drive in its host.
    fn machine_of(&self, drive: usize) -> Machine {
        Machine::new(&self.drives[drive], &self.host)
    }
}

/// Checks that every workload of the user fits every drive.
///
/// # Errors
/// All that do not fit, before anything runs.
pub fn check(request: &ReviewRequest) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for (drive, sheet) in request.drives.iter().enumerate() {
        let asked = request.suite == Suite::CacheWarmup && !request.only_yours;
        if asked && cache::cache_of(&sheet.config).is_none() {
            let what = format!(
                "{}: the suite cache-warmup needs a pool with a cache",
                sheet.id
            );
            let help = "such as 'read-cache(cache=p4800x-375, main=exos-x18-16tb)'";
            problems.0.extend(
                Problems::whole("command line", what)
                    .0
                    .into_iter()
                    .map(|it| Problem {
                        help: Some(help.into()),
                        ..it
                    }),
            );
        }
        let rebuilds = request.suite == Suite::Rebuild && !request.only_yours;
        if rebuilds && lab::faults::rebuilt_member(&sheet.config).is_none() {
            let what = format!(
                "{}: the suite rebuild needs a pool whose members others can rebuild",
                sheet.id
            );
            let mut found = Problems::whole("command line", what);
            found.0[0].help =
                Some("such as 'mirror(2*p4610-1600)' or 'raid5(4*p4610-1600)'".into());
            problems.0.extend(found.0);
        }
        let single =
            sheet.pool_config().is_none() && !matches!(sheet.config, tier::DriveConfig::Raid0(_));
        if request.suite == Suite::Heat && !request.only_yours && !single {
            let what = format!(
                "{}: the suite heat needs a single drive, not a pool",
                sheet.id
            );
            let mut found = Problems::whole("command line", what);
            found.0[0].help = Some("such as p4800x-750".into());
            problems.0.extend(found.0);
        }
        let capacity = model::Capacity {
            bytes: sheet.capacity,
            block: request.block_of(drive),
        };
        for yours in &request.yours {
            let fits = match &yours.workload {
                Workload::Jobs(jobs) => workload::check(jobs, capacity),
                Workload::Trace(trace) => {
                    Layout::new(trace, &sheet.id, capacity, OutOfRangePolicy::Wrap).map(|_| ())
                }
            };
            if let Err(found) = fits {
                problems.0.extend(found.0.into_iter().map(|problem| {
                    // Names the job if the file has several.
                    let job = match &yours.workload {
                        Workload::Jobs(_) => format!("{}: ", problem.origin),
                        Workload::Trace(_) => String::new(),
                    };
                    Problem {
                        what: format!("on {}: {job}{}", sheet.id, problem.what),
                        origin: yours.source.clone(),
                        ..problem
                    }
                }));
            }
        }
    }
    problems.or(())
}

/// Runs the review in a laboratory, on all cores.
///
/// # Errors
/// As [`check`], which is called first.
pub fn review(
    request: &ReviewRequest,
    lab: &Lab,
    listener: Listener<'_>,
) -> Result<Review, Problems> {
    check(request)?;
    let runner = run::Runner {
        request,
        effort: request.effort,
        lab,
        listener,
    };
    let chapters = chapters::run(&runner)?;
    let mut review = Review {
        schema: "drivelab review",
        version: VERSION,
        program: version::PROGRAM.to_owned(),
        suite: request.suite.name().to_owned(),
        seed: request.seed,
        seeds: request.effort.seeds,
        host: HostFacts {
            id: request.host.id.clone(),
            name: request.host.name.clone(),
            figures: request.host.figures.iter().map(figure).collect(),
        },
        settings: request.settings.words(),
        drives: drive_facts(&request.drives, &request.settings),
        percentiles: percentile_grid(),
        band_edges: BAND_EDGES.to_vec(),
        parts: model::Part::ALL.map(model::Part::name).to_vec(),
        verdict: Vec::new(),
        published: published::published(request, &chapters)?,
        chapters,
    };
    review.verdict = chapters::findings(&review);
    Ok(review)
}

fn figure(figure: &Figure) -> results::SheetFigure {
    results::SheetFigure {
        key: figure.key.clone(),
        value: figure.value.clone(),
        kind: figure.kind.name(),
        source: figure.source.clone(),
    }
}

fn drive_facts(sheets: &[DriveSheet], settings: &Settings) -> Vec<DriveFacts> {
    let labels = labels(sheets);
    sheets
        .iter()
        .zip(labels)
        .map(|(sheet, label)| DriveFacts {
            again: DriveArguments::from_sheet(sheet, settings),
            ..facts(sheet, label)
        })
        .collect()
}

/// Words of a full name that are omitted from a label.
const COMMON: [&str; 5] = ["Optane", "SSD", "DC", "(M.2)", "M.2"];

/// Maximum length of a label: a longer one does not fit next to a chart.
const LONGEST_LABEL: usize = 20;

/// Returns short names. They are unique and omit the words that makers share; the id is used where that fails.
fn labels(sheets: &[DriveSheet]) -> Vec<String> {
    let words = |sheet: &DriveSheet| -> Vec<String> {
        let words = sheet.name.split_whitespace();
        let words = words.filter(|word| !COMMON.contains(word) && *word != sheet.maker);
        words.map(str::to_owned).collect()
    };
    let long: Vec<String> = sheets.iter().map(|sheet| words(sheet).join(" ")).collect();
    // The capacity is included only where it distinguishes drives.
    let bare: Vec<String> = sheets
        .iter()
        .map(|sheet| match words(sheet).as_slice() {
            [model @ .., _, unit] if unit == "GB" || unit == "TB" => model.join(" "),
            all => all.join(" "),
        })
        .collect();
    let distinct = |names: &[String]| {
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        sorted.len() == names.len() && sorted.iter().all(|name| !name.is_empty())
    };
    let short = if distinct(&bare) { bare } else { long };
    // A pool that has no name but its expression is labelled by its kind, if there is only one pool of this kind.
    let kind = |sheet: &DriveSheet| sheet.id.split_once('(').map(|(kind, _)| kind.to_owned());
    let label = |(sheet, label): (&DriveSheet, &String)| {
        let twice = short.iter().filter(|other| *other == label).count() > 1;
        if label.is_empty() || twice || label.chars().count() > LONGEST_LABEL {
            let alike = sheets.iter().filter(|it| kind(it) == kind(sheet)).count();
            kind(sheet)
                .filter(|_| alike == 1)
                .unwrap_or_else(|| sheet.id.clone())
        } else {
            label.clone()
        }
    };
    sheets.iter().zip(&short).map(label).collect()
}

fn facts(sheet: &DriveSheet, label: String) -> DriveFacts {
    let capacity = sheet.capacity;
    let all = all_figures(sheet);
    let days = sheet.warranty_years.map(|years| years * 365.0);
    DriveFacts {
        id: sheet.id.clone(),
        name: sheet.name.clone(),
        label,
        catalogued: catalogue::drive_names().contains(&&*sheet.id),
        again: None,
        clustered: sheet.pool_config().is_some_and(|it| it.cluster().is_some()),
        medium: sheet.medium.clone(),
        form_factor: sheet.form_factor.clone(),
        interface: sheet.interface.clone(),
        promise: promise(sheet),
        capacity_bytes: capacity,
        io_queues: sheet.io_queues,
        endurance_bytes: sheet.endurance_bytes,
        warranty_years: sheet.warranty_years,
        drive_writes_per_day: sheet
            .endurance_bytes
            .zip(days)
            .map(|(bytes, days)| rounded(bytes as f64 / capacity as f64 / days)),
        price_usd: sheet.price_usd,
        price_date: sheet.price_date.clone(),
        usd_per_gb: sheet
            .price_usd
            .map(|price| rounded(price / (capacity as f64 / 1e9))),
        support: support(sheet),
        kinds: kinds(&all),
        sensitivity: None,
        figures: all.iter().map(figure).collect(),
    }
}

/// Returns every figure of a drive; for a pool also those of its drives, each with the key by which it is changed.
fn all_figures(sheet: &DriveSheet) -> Vec<Figure> {
    let mut all = sheet.figures.clone();
    let mut told: Vec<&DriveSheet> = Vec::new();
    let pool = sheet.pool.is_some();
    for (name, member) in sheet.named_members().into_iter().filter(|_| pool) {
        // For equal drives, the first is enough.
        if told.iter().any(|it| std::ptr::eq(*it, member)) {
            continue;
        }
        told.push(member);
        all.extend(member.figures.iter().map(|figure| Figure {
            key: format!("members.{name}.{}", figure.key),
            ..figure.clone()
        }));
    }
    all
}

/// Returns the durability guarantee of a pool.
fn promise(sheet: &DriveSheet) -> Option<String> {
    Some(sheet.pool_config()?.words())
}

fn kinds(figures: &[Figure]) -> results::Kinds {
    let of = |kind: FigureKind| figures.iter().filter(|figure| figure.kind == kind).count();
    results::Kinds {
        spec: of(FigureKind::Spec),
        measured: of(FigureKind::Measured),
        fitted: of(FigureKind::Fitted),
        assumed: of(FigureKind::Assumed),
    }
}

fn support(sheet: &DriveSheet) -> results::ModelSupport {
    let known = crate::ledger::support::statement(sheet);
    results::ModelSupport {
        grade: known.grade.name(),
        text: known.text,
        rows: known.support,
    }
}
