//! A catalogue drive from its maker's data sheet: each rating sets one figure; all other figures are the family's.
//!
//! [`figure_of`] lists which rating sets which figure. A figure is moved along the line through the last two simulated
//! values, in logarithms, until the model meets the rating. All ratings are then repeated until every one holds,
//! because they interact: a longer sense time also reduces random reads. The simulated drive is shrunk to a sixteenth
//! of its capacity (at least 64 GB); its garbage collection equals that of the whole drive, and it is built in a
//! moment.
//!
//! Conditions are those of `[ratings]`: depth, block and span; sustained writes in steady state, or writes to a new
//! drive, whose reads are of data that has just been written (decision 0010). A host is simulated too, as the maker
//! used one. Source of the method: decision 0067.
//!
//! Not modelled: ratings that no figure is solved for (mixes; for quality of service see `ledger/qos.rs`); folding of a full SLC cache, whose
//! writes are taken to be those of the cells without the cache.

use catalogue::{
    DataSheet, DriveSheet, FigureKind, HostSheet, RatedQuantity, Ratings, SolvedFigure,
};
use lab::{Lab, Machine, Outcome, Scenario};
use model::Span;
use model::media::nand::NandConfig;
use model::media::{Medium, Precondition};
use statistics::Measured;
use text::problem::Problems;
use tier::DriveConfig;
use workload::job::{BlockSizes, Extent, Job, Mix};

use super::Parameter;

/// A rating and the model's value for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatingResult {
    /// The rated quantity.
    pub rated: RatedQuantity,
    /// The maker's rating: bytes per second, I/Os per second, or seconds.
    pub rating: f64,
    /// The model's value.
    pub model: f64,
}

impl RatingResult {
    /// Returns the error of the model as a share of the rating.
    pub fn error(&self) -> f64 {
        self.model / self.rating - 1.0
    }
}

/// A drive made from its data sheet.
#[derive(Clone, Debug)]
pub struct FromSheet {
    /// Figures that were solved, each with the rating that set it, and figures that follow from the capacity.
    pub solved: Vec<SolvedFigure>,
    /// Every rating with the model's value.
    pub met: Vec<RatingResult>,
    /// Name of the host on which the model meets the ratings.
    pub host: String,
    /// Ratings at QD1 with the model's value on the typical host; empty if the ratings hold on that host.
    pub typical: Vec<RatingResult>,
    /// The resulting drive.
    pub drive: DriveSheet,
    /// Catalogue file of the drive.
    pub toml: String,
}

/// Maximum error of the model against a rating, as a share.
pub const TOLERANCE: f64 = 0.05;
/// Maximum error at which a rating counts as met while figures are being solved.
const CLOSE: f64 = 0.01;
/// Maximum number of values of one figure that are tried in one round.
const TRIES: usize = 10;
/// Maximum number of rounds over all figures.
const ROUNDS: usize = 4;
/// Maximum step of a figure, as a logarithm.
const STRIDE: f64 = 1.0;

/// Returns the figure that a rating sets, and the initial exponent with which the rated figure grows with it.
fn figure_of(rated: RatedQuantity, sustained: bool, slc: bool) -> (&'static str, f64) {
    let cached = slc && !sustained;
    match rated {
        RatedQuantity::ReadLatency if cached => ("nand.slc.read", 1.0),
        RatedQuantity::ReadsAtOne if cached => ("nand.slc.read", -1.0),
        RatedQuantity::ReadLatency => ("nand.medium.read", 1.0),
        RatedQuantity::ReadsAtOne => ("nand.medium.read", -1.0),
        RatedQuantity::WriteLatency => ("nand.controller.write_delay", 0.7),
        RatedQuantity::WritesAtOne => ("nand.controller.write_delay", -0.7),
        RatedQuantity::SequentialRead => ("nand.link.rate", 1.0),
        RatedQuantity::RandomRead => ("nand.controller.read_interval", -1.0),
        RatedQuantity::SequentialWrite if slc => ("nand.slc.program", -1.0),
        RatedQuantity::SequentialWrite | RatedQuantity::FullCacheWrite => {
            ("nand.medium.program", -1.0)
        }
        RatedQuantity::RandomWrite if sustained => ("nand.array.blocks_per_plane", 6.0),
        RatedQuantity::RandomWrite => ("nand.controller.write_interval", -1.0),
    }
}

/// Simulates one rating.
struct RatingRun<'a> {
    rated: RatedQuantity,
    ratings: &'a Ratings,
}

/// Returns the number of threads that share a depth: a core serves a few hundred thousand I/Os per second.
fn threads_of(depth: u32) -> u32 {
    (1..=16)
        .rev()
        .find(|threads| depth.is_multiple_of(*threads) && depth / threads >= 16)
        .unwrap_or(1)
}

impl RatingRun<'_> {
    fn writes(&self) -> bool {
        use RatedQuantity::{
            FullCacheWrite, RandomWrite, SequentialWrite, WriteLatency, WritesAtOne,
        };
        matches!(
            self.rated,
            FullCacheWrite | RandomWrite | SequentialWrite | WriteLatency | WritesAtOne
        )
    }

    fn state(&self) -> Precondition {
        let ratings = self.ratings;
        let sequential = matches!(
            self.rated,
            RatedQuantity::SequentialRead
                | RatedQuantity::SequentialWrite
                | RatedQuantity::FullCacheWrite
        );
        match (sequential, self.writes()) {
            (true, true) if !ratings.sustained && self.rated != RatedQuantity::FullCacheWrite => {
                Precondition::Fresh
            }
            (true, _) => Precondition::Filled,
            (false, _) if ratings.sustained => Precondition::Steady,
            (false, _) => Precondition::Fresh,
        }
    }

    /// Returns block size, depth, warm-up time and counted time.
    fn shape(&self) -> (u32, u32, Span, Span) {
        let ratings = self.ratings;
        let ms = Span::from_ms;
        let sequential = (ratings.sequential_block, ratings.sequential_depth);
        match self.rated {
            RatedQuantity::SequentialRead => (sequential.0, sequential.1, ms(50), ms(200)),
            RatedQuantity::SequentialWrite if !ratings.sustained => {
                (sequential.0, sequential.1, ms(20), ms(200))
            }
            RatedQuantity::SequentialWrite | RatedQuantity::FullCacheWrite => {
                (sequential.0, sequential.1, ms(300), ms(700))
            }
            RatedQuantity::RandomRead => (4096, ratings.random_read_depth, ms(5), ms(100)),
            RatedQuantity::RandomWrite => {
                let long = if ratings.sustained { 10 } else { 1 };
                let depth = ratings.random_write_depth;
                (
                    ratings.random_write_block,
                    depth,
                    ms(30 * long),
                    ms(100 * long),
                )
            }
            RatedQuantity::ReadLatency | RatedQuantity::ReadsAtOne => (4096, 1, ms(1), ms(300)),
            RatedQuantity::WriteLatency | RatedQuantity::WritesAtOne => (4096, 1, ms(1), ms(100)),
        }
    }

    fn job(&self, capacity: u64) -> Job {
        let (block, depth, before, counted) = self.shape();
        let random = !matches!(
            self.rated,
            RatedQuantity::SequentialRead
                | RatedQuantity::SequentialWrite
                | RatedQuantity::FullCacheWrite
        );
        let threads = if random { threads_of(depth) } else { 1 };
        // The span is limited to what a new drive writes in a moment before it is read.
        let span = match self.state() {
            Precondition::Fresh => Some(self.ratings.span.unwrap_or(1_000_000_000)),
            _ => self.ratings.span,
        };
        let span = span.filter(|_| random);
        Job {
            mix: match self.writes() {
                true => Mix::Write,
                false => Mix::Read,
            },
            random,
            norandommap: true,
            numjobs: threads,
            iodepth: depth / threads,
            block_sizes: [0; 3].map(|_| BlockSizes::Fixed(block)),
            block_align: [block; 3],
            size: span.map(|bytes| Extent::Bytes(bytes.min(capacity) / 4096 * 4096)),
            ramp_time: before,
            runtime: Some(counted),
            time_based: true,
            ..Job::default()
        }
    }

    /// Returns the jobs to run. Reads of a new drive find the data that has just been written, in the SLC cache if
    /// there is one.
    fn jobs(&self, capacity: u64) -> Vec<Job> {
        let job = self.job(capacity);
        if self.state() != Precondition::Fresh || self.writes() {
            return vec![job];
        }
        let before = Job {
            mix: Mix::Write,
            iodepth: 8,
            block_sizes: [0; 3].map(|_| BlockSizes::Fixed(131_072)),
            size: job.size,
            ..Job::default()
        };
        let after = Job {
            stonewall: true,
            ..job
        };
        vec![before, after]
    }

    fn figure(&self, outcome: &Outcome) -> f64 {
        let measured = outcome.threads.iter().map(|thread| match self.writes() {
            true => &thread.write,
            false => &thread.read,
        });
        let mut threads = measured.filter(|measured| measured.ios > 0);
        match self.rated {
            RatedQuantity::SequentialRead
            | RatedQuantity::SequentialWrite
            | RatedQuantity::FullCacheWrite => threads.map(Measured::bytes_per_second).sum(),
            RatedQuantity::ReadLatency | RatedQuantity::WriteLatency => {
                let mean = threads.next().map(|thread| thread.completion.mean_ns());
                mean.map_or(f64::NAN, |mean| mean * 1e-9)
            }
            _ => threads.map(Measured::iops).sum(),
        }
    }

    /// Returns the model's value for the rating.
    fn model_value(
        &self,
        lab: &Lab,
        drive: &DriveSheet,
        host: &HostSheet,
    ) -> Result<f64, Problems> {
        let mut config = small(&drive.config);
        if self.rated == RatedQuantity::FullCacheWrite
            && let DriveConfig::Nand(nand) = &mut config
        {
            nand.slc = None;
        }
        let jobs = self.jobs(config.capacity_bytes());
        let machine = Machine::new(drive, host).with_drive(config);
        let scenario = Scenario::jobs(machine, self.state(), jobs, 1);
        Ok(self.figure(&lab.run(&scenario)?))
    }
}

/// Returns a small drive that is built in a moment, for runs of a second.
pub(crate) fn small(config: &DriveConfig) -> DriveConfig {
    const LEAST: u64 = 64_000_000_000;
    let mut small = config.shrunk((config.capacity_bytes() / 16).max(LEAST));
    if let (DriveConfig::Nand(whole), DriveConfig::Nand(small)) = (config, &mut small) {
        // The ratings include the cache of the whole drive.
        small.slc.clone_from(&whole.slc);
    }
    small
}

/// Returns the ratings that a drive was made to meet, if any, with the model's values.
///
/// # Errors
/// The conditions of a rating do not fit the drive.
pub fn ratings(drive: &DriveSheet, host: &HostSheet) -> Result<Vec<RatingResult>, Problems> {
    let Some(ratings) = drive.ratings_met() else {
        return Ok(Vec::new());
    };
    met(&Lab::new(), drive, ratings, host)
}

fn met(
    lab: &Lab,
    drive: &DriveSheet,
    ratings: &Ratings,
    host: &HostSheet,
) -> Result<Vec<RatingResult>, Problems> {
    let given = ratings.given.iter();
    given
        .map(|&(rated, rating)| {
            let run = RatingRun { rated, ratings };
            let model = run.model_value(lab, drive, host)?;
            Ok(RatingResult {
                rated,
                rating,
                model,
            })
        })
        .collect()
}

/// Returns the drive of a data sheet; `progress` is called with the number of simulated values.
///
/// # Errors
/// The family's structure cannot reach a rating (each with its place); a figure is out of range.
pub fn from_sheet(
    sheet: &DataSheet,
    host: &HostSheet,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<FromSheet, Problems> {
    let lab = Lab::new();
    let mut solving = SheetSolver {
        sheet,
        host,
        lab: &lab,
        solved: of_capacity(sheet),
        runs: 0,
        progress,
    };
    for _ in 0..ROUNDS {
        let mut moved = false;
        for &(rated, rating) in &sheet.ratings.given {
            moved |= solving.solve(rated, rating)?;
        }
        if !moved {
            break;
        }
    }
    let (drive, toml) = sheet.with_figures(&solving.solved)?;
    let typical = match host.id == catalogue::TYPICAL_HOST {
        true => Vec::new(),
        false => {
            let typical = catalogue::host(catalogue::TYPICAL_HOST)?;
            met(&lab, &drive, &sheet.ratings.at_depth_one(), &typical)?
        }
    };
    let met = met(&lab, &drive, &sheet.ratings, host)?;
    let off = met.iter().filter(|met| met.error().abs() > TOLERANCE);
    let problems = off.map(|met| {
        let key = met.rated.key();
        let what = format!(
            "`ratings.{key}` is {}, and a drive of the family {} does {}",
            met.rated.words(met.rating),
            sheet.family,
            met.rated.words(met.model)
        );
        let (figure, _) = figure_of(met.rated, sheet.ratings.sustained, has_slc(&drive));
        let help = format!(
            "take another family, or say in the sheet what differs ({figure} alone does not reach it: dies, channels, \
             depth)"
        );
        sheet.problem(key, what, help)
    });
    Problems(problems.collect()).or(FromSheet {
        solved: solving.solved,
        met,
        host: host.id.clone(),
        typical,
        drive,
        toml,
    })
}

fn nand_of(drive: &DriveSheet) -> Option<&NandConfig> {
    match &drive.config {
        DriveConfig::Nand(config) => Some(config),
        _ => None,
    }
}

fn has_slc(drive: &DriveSheet) -> bool {
    nand_of(drive).is_some_and(|nand| nand.slc.is_some())
}

/// Returns the dies, channels and SLC blocks for the capacity.
fn of_capacity(sheet: &DataSheet) -> Vec<SolvedFigure> {
    let Some(nand) = nand_of(&sheet.drive) else {
        return Vec::new();
    };
    let geometry = &nand.geometry;
    let dies = u64::from(geometry.channels * geometry.dies_per_channel);
    let gib = geometry.raw_bytes() as f64 / dies as f64 / f64::from(1 << 30);
    let of_dies = format!(
        "the number of dies that the capacity requires, {gib:.1} GiB each as in the family"
    );
    let assumed = |key: &str, value: u32| SolvedFigure {
        key: key.into(),
        value: value.to_string(),
        kind: "assumed",
        source: of_dies.clone(),
    };
    let mut all = vec![
        assumed("nand.array.channels", geometry.channels),
        assumed("nand.array.dies_per_channel", geometry.dies_per_channel),
    ];
    if let (Some(bytes), Some(slc)) = (sheet.ratings.slc_cache, &nand.slc) {
        let block = geometry.raw_bytes() / dies / u64::from(geometry.blocks_per_plane);
        let blocks = bytes.div_ceil(dies * block / u64::from(slc.bits)).max(1);
        all.push(SolvedFigure {
            key: "nand.slc.blocks_per_die".into(),
            value: blocks.to_string(),
            kind: FigureKind::of_document(&sheet.document).name(),
            source: format!(
                "{}: an SLC cache of {} GB",
                sheet.document,
                bytes / 1_000_000_000
            ),
        });
    }
    all
}

/// A sheet whose figures are being solved.
struct SheetSolver<'a> {
    sheet: &'a DataSheet,
    host: &'a HostSheet,
    lab: &'a Lab,
    solved: Vec<SolvedFigure>,
    runs: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl SheetSolver<'_> {
    fn simulate(&mut self, rated: RatedQuantity) -> Result<f64, Problems> {
        self.runs += 1;
        (self.progress)(self.runs);
        let (drive, _) = self.sheet.with_figures(&self.solved)?;
        let ratings = &self.sheet.ratings;
        RatingRun { rated, ratings }.model_value(self.lab, &drive, self.host)
    }

    fn put(&mut self, figure: SolvedFigure) {
        match self.solved.iter_mut().find(|one| one.key == figure.key) {
            Some(one) => *one = figure,
            None => self.solved.push(figure),
        }
    }

    /// Moves the figure of a rating until the model meets it, and returns whether the figure moved. The figure keeps
    /// the value at which the model is closest.
    fn solve(&mut self, rated: RatedQuantity, rating: f64) -> Result<bool, Problems> {
        let off = |model: f64| libm::log(rating / model);
        let began = off(self.simulate(rated)?);
        let (drive, _) = self.sheet.with_figures(&self.solved)?;
        let (key, power) = figure_of(rated, self.sheet.ratings.sustained, has_slc(&drive));
        let is_set = self.solved.iter().any(|one| one.key == key);
        if began.abs() < CLOSE && is_set {
            return Ok(false);
        }
        let parameter = Parameter::named(key, &drive.figures, &[])
            .map_err(|problem| Problems(vec![problem]))?;
        let source = format!("{}: {}", self.sheet.document, rating_text(rated, rating));
        let kind = FigureKind::of_document(&self.sheet.document).name();
        let at = |log: f64| SolvedFigure {
            key: key.into(),
            value: parameter.moved(log),
            kind,
            source: source.clone(),
        };
        let mut search = RootSearch::new(power, began);
        for _ in 0..TRIES {
            let Some(log) = search.next() else { break };
            self.put(at(log));
            // No drive can have this value: the rating is reported as not met, with its place.
            let Ok(model) = self.simulate(rated) else {
                break;
            };
            search.add_trial(log, off(model));
        }
        let best = search.best();
        self.put(at(best));
        Ok(best != 0.0)
    }
}

/// The search for one figure: along the line through the last two values; once there are values on both sides, between
/// the nearest two.
struct RootSearch {
    /// Exponent with which the rated figure grows with the figure; its sign is certain.
    power: f64,
    sign: f64,
    /// Tried values, each with the model's error against the rating.
    tried: Vec<(f64, f64)>,
}

impl RootSearch {
    fn new(power: f64, began: f64) -> RootSearch {
        RootSearch {
            power,
            sign: power.signum(),
            tried: vec![(0.0, began)],
        }
    }

    /// Returns the next value to try; `None` if the last value is good enough, or if no value moves the model.
    fn next(&self) -> Option<f64> {
        let &(log, left) = self.tried.last()?;
        if left.abs() < CLOSE / 2.0 || !left.is_finite() {
            return None;
        }
        let wanted = log + (left / self.power).clamp(-STRIDE, STRIDE);
        // The model grows with `sign * log`: values that are too small are on one side, values that are too large on
        // the other.
        let ordered = |log: f64| log * self.sign;
        let little = self.tried.iter().filter(|one| one.1 > 0.0);
        let little = little.map(|one| ordered(one.0)).reduce(f64::max);
        let much = self.tried.iter().filter(|one| one.1 < 0.0);
        let much = much.map(|one| ordered(one.0)).reduce(f64::min);
        match (little, much) {
            (Some(low), Some(high)) if low < high => {
                let inside = (low..high).contains(&ordered(wanted)) && ordered(wanted) > low;
                Some(match inside {
                    true => wanted,
                    false => (low + high) / 2.0 * self.sign,
                })
            }
            _ => Some(wanted),
        }
    }

    fn add_trial(&mut self, log: f64, left: f64) {
        if let Some(&(before, off)) = self.tried.last() {
            let grown = (off - left) / (log - before);
            // Where the model hardly follows, another figure limits it. Steps are large until this figure is the
            // limit.
            self.power = match grown * self.sign > 0.05 {
                true => grown,
                false => 0.05 * self.sign,
            };
        }
        self.tried.push((log, left));
    }

    /// Returns the value at which the model was closest; the first of several.
    fn best(&self) -> f64 {
        let mut best = (f64::INFINITY, 0.0);
        for &(log, left) in &self.tried {
            // A minimal improvement does not count: a figure that does not move the model keeps its value.
            if left.abs() < best.0 - CLOSE / 10.0 {
                best = (left.abs(), log);
            }
        }
        best.1
    }
}

/// Returns the rating as text.
fn rating_text(rated: RatedQuantity, rating: f64) -> String {
    let what = match rated {
        RatedQuantity::SequentialRead => "sequential reads",
        RatedQuantity::SequentialWrite => "sequential writes",
        RatedQuantity::FullCacheWrite => "sequential writes past the SLC cache",
        RatedQuantity::RandomRead => "random reads",
        RatedQuantity::RandomWrite => "random writes",
        RatedQuantity::ReadLatency | RatedQuantity::ReadsAtOne => "a random read at QD1",
        RatedQuantity::WriteLatency | RatedQuantity::WritesAtOne => "a random write at QD1",
    };
    format!("{what}, {}", rated.words(rating))
}
