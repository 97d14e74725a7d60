//! Probability that a pool loses data, from its own loss rule, the failure rates of its drives, and their repair times.
//!
//! The rule (`tier::Loss`) gives the smallest sets of members whose joint failure loses data. The annual loss
//! rate of a set is a sum over its members j. Each term is rate(j), times the product over the other members i of
//! rate(i) x repair time(i): all others have failed, and j fails before one of them is replaced. The rates of the sets
//! are added. This sum is the first term of the Markov chain with concurrent repairs. With repairs that last days and
//! failures every few hundred years, the other terms are below a thousandth (tests).
//!
//! The repair time is the time until the drive is replaced (assumed, an option), plus the rebuild. The rebuild takes
//! the longer of two times: writing a new drive of this model once sequentially, and reading a drive in use once. The
//! rebuild is simulated as the only load on the drive, for its whole capacity.
//!
//! In a set that includes memory, a crash of the machine counts if all drives of the set have failed at that time. A
//! failed drive counts until its repair: if a RAID 5 or 6 without one member crashes, its data is in doubt (write
//! hole). For log devices of an intent log, a failed drive counts for [`EXPOSED`] only, because main contains all data
//! after that time.
//!
//! A raidz, which is refused by itself elsewhere, is main of an intent log without log devices here.
//!
//! Not modelled: correlated failures of drives, age and wear, fire, operator errors, software faults, checksum errors
//! that no scrub detects, other load during a rebuild.

use std::collections::BTreeMap;

use catalogue::{DriveSheet, HostSheet};
use lab::{Bench, Lab, Machine, Work};
use model::media::{Medium, Precondition};
use model::{Span, Time};
use serde::Serialize;
use text::problem::{Problem, Problems};
use tier::{DriveConfig, Kind, Loss, PoolConfig, Target};
use workload::job::{BlockSizes, Extent, Job, Mix};

use super::failure_rates::{DriveClass, FailureRate};
use crate::review::results::rounded;

const HOURS: f64 = 8766.0;
/// Seconds for which a crash matters after the last log device of an intent log has failed: two transaction groups of
/// 5 s.
pub const EXPOSED: f64 = 10.0;
/// Bytes of the smaller drive that stands for a flash drive in a rebuild.
const SMALL: u64 = 16 << 30;
/// Pieces of a rebuild that are simulated; of media without a cache of gigabytes, the beginning of each.
const PIECES: u64 = 64;
const BEGINNING: u64 = 64 << 20;

/// Default time until a failed drive is replaced.
pub const REPLACED_AFTER: &str = "24h";
/// Default number of failures of the machine in a year.
pub const CRASHES: f64 = 1.0;

/// Reads hours of a time such as `24h`, `90min` or `3d`.
///
/// # Errors
/// A description of the allowed form.
pub fn hours(text: &str) -> Result<f64, String> {
    let units = [
        ("min", 1.0 / 60.0),
        ("h", 1.0),
        ("d", 24.0),
        ("s", 1.0 / 3600.0),
    ];
    let found = units.into_iter().find_map(|(unit, hours)| {
        let number = text.trim().strip_suffix(unit)?.trim_end();
        Some(number.parse::<f64>().ok()? * hours)
    });
    found
        .filter(|hours| hours.is_finite() && (0.0..=8766.0).contains(hours))
        .ok_or_else(|| String::from("write a time up to a year, such as 24h, 90min or 3d"))
}

/// Reads the share that fails in a year, of all drives (`0.5%`) or of one (`p4801x-100=0.2%`).
///
/// # Errors
/// A description of the allowed form.
pub fn share_of_drives(text: &str) -> Result<(Option<String>, f64), String> {
    let (drive, percent) = match text.rsplit_once('=') {
        Some((drive, percent)) => (Some(drive.trim().to_owned()), percent),
        None => (None, text),
    };
    let number = percent.trim().strip_suffix('%');
    let number = number.and_then(|number| number.trim_end().parse::<f64>().ok());
    match number.filter(|number| *number > 0.0 && *number <= 100.0) {
        Some(number) if drive.as_ref().is_none_or(|drive| !drive.is_empty()) => {
            Ok((drive, number / 100.0))
        }
        _ => Err(String::from(
            "write a percentage above 0 and at most 100, such as 0.5% or p4801x-100=0.5%",
        )),
    }
}

/// Reads the number of failures of the machine in a year.
///
/// # Errors
/// A description of the allowed form.
pub fn crashes(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|number| (0.0..=1000.0).contains(number))
        .ok_or_else(|| String::from("write a number of 0 to 1000"))
}

/// Reads a number of years.
///
/// # Errors
/// A description of the allowed form.
pub fn years(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1000.0)
        .ok_or_else(|| String::from("write a number of years above 0 and at most 1000, such as 5"))
}

/// Options of an analysis of data loss.
#[derive(Clone, Debug)]
pub struct OddsRequest {
    /// Hours until a failed drive is replaced.
    pub replace_hours: f64,
    /// How often the machine fails in a year (power, kernel).
    pub crashes: f64,
    /// Share of drives that fail in a year, by drive; without a name of all others.
    pub failures: Vec<(Option<String>, f64)>,
    /// Years over which the probability of a loss is also computed.
    pub years: Option<f64>,
    /// The host of the rebuild.
    pub host: HostSheet,
    /// The seed of the rebuild.
    pub seed: u64,
}

/// How often something happens in a year: typical, least and greatest.
pub type PerYear = [f64; 3];

/// Loss rates of one pool or drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OddsAnswer {
    /// The pool or drive.
    pub drive: String,
    /// Bytes a host can address.
    pub usable_bytes: u64,
    /// Losses of the pool in a year: of all or much of its data.
    pub losses: PerYear,
    /// Crashes of the machine in a year that lose some blocks, because drives have failed at that time: the write hole
    /// of a RAID 5 or 6, or the last seconds before a log failed. Null if no crash does.
    pub crash_losses: Option<PerYear>,
    /// Rebuilds without redundancy that meet an unreadable sector, in a year: some blocks are lost then. Null if no drive
    /// can fail without data loss.
    pub unreadable: Option<PerYear>,
    /// Probabilities over the requested years; null without them.
    pub over: Option<OddsOver>,
    /// Most frequent cause of data loss.
    pub cause: LossCause,
    /// Each kind of drive in it.
    pub drives: Vec<Repair>,
}

/// Probabilities over a number of years: typical, least and greatest.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct OddsOver {
    /// Number of years.
    pub years: f64,
    /// Probability that the pool is lost, from 0 to 1.
    pub losses: [f64; 3],
    /// Probability that some blocks are lost; null if only the pool can be.
    pub some_blocks: Option<[f64; 3]>,
}

impl OddsOver {
    /// Returns the probabilities of at least one event in these years, at constant rates.
    fn new(years: f64, losses: PerYear, some_blocks: Option<PerYear>) -> OddsOver {
        let of = |rates: PerYear| rates.map(|rate| -libm::expm1(-rate * years));
        OddsOver {
            years,
            losses: of(losses),
            some_blocks: some_blocks.map(of),
        }
    }
}

impl OddsAnswer {
    /// Returns the number of times in a year that some blocks are lost and not the pool; `None` if that cannot happen.
    pub fn some_blocks(&self) -> Option<PerYear> {
        sum([self.crash_losses, self.unreadable])
    }
}

fn sum(rates: [Option<PerYear>; 2]) -> Option<PerYear> {
    let rates = rates.into_iter().flatten();
    rates.reduce(|one, other| [0, 1, 2].map(|end| one[end] + other[end]))
}

/// Most frequent cause of data loss.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LossCause {
    /// Number of drives that must have failed at once.
    pub drives: usize,
    /// Whether the machine crashes then.
    pub crash: bool,
    /// Share of the losses.
    pub share: f64,
}

/// A kind of drive: how often it fails, and how long it then is missing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Repair {
    /// Short name in the catalogue.
    pub drive: String,
    /// Number of these drives in the pool.
    pub count: usize,
    /// Class of the drive; null if the user specified the failure rate and the class is unknown.
    pub class: Option<DriveClass>,
    /// Annual failure rate: share of the drives that fails per year.
    pub failures: PerYear,
    /// Source of the failure rate.
    pub source: String,
    /// Seconds of the rebuild.
    pub rebuild_seconds: f64,
    /// Unreadable sectors for each bit that is read, at most; null where the class is unknown.
    pub unreadable_per_bit: Option<f64>,
}

/// Members that lose data if all of them have failed, and whether the machine has to crash as well.
pub type CutSet = (Vec<u16>, bool);

/// A member in numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MemberRisk {
    failures: PerYear,
    /// Years until it is repaired.
    repair: f64,
    /// Odds that a sector of it cannot be read while all of it is.
    unreadable: f64,
    /// Years for which a crash of the machine loses data while it is failed.
    exposed: f64,
}

/// Everything wrong with what is asked of these drives.
///
/// # Errors
/// All of it at once.
pub fn check<'a>(
    request: &OddsRequest,
    drives: impl IntoIterator<Item = &'a DriveSheet> + Clone,
) -> Result<(), Problems> {
    let of_each = drives.clone().into_iter();
    let of_each = of_each.filter_map(|drive| check_drive(request, drive).err());
    let unused = unused(request, drives).err();
    let all = of_each.chain(unused).flat_map(|more| more.0);
    Problems(all.collect()).or(())
}

fn problem(what: String, help: impl Into<String>) -> Problem {
    Problem {
        origin: String::from("command line"),
        place: text::problem::Place::Whole,
        what,
        help: Some(help.into()),
    }
}

fn check_drive(request: &OddsRequest, drive: &DriveSheet) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let cluster = drive.pool_config().and_then(|config| config.cluster());
    if cluster.is_some_and(|cluster| cluster.fold > 1) {
        let what = "each simulated node represents several, so not all drives are modelled";
        let help = "simulate each node: fold=1";
        problems
            .0
            .push(problem(format!("{}: {what}", drive.id), help));
    }
    for member in kinds(drive) {
        if DriveClass::new(member).is_none() && given(request, member).is_none() {
            let of = match member.id == drive.id {
                true => String::new(),
                false => format!("{}: ", drive.id),
            };
            let what = format!("{of}no failure rate is known of {}", member.id);
            let help = format!("say it: --afr {}=0.2%", member.id);
            problems.0.push(problem(what, help));
        }
    }
    problems.or(())
}

/// A rate for a drive that no pool has.
fn unused<'a>(
    request: &OddsRequest,
    drives: impl IntoIterator<Item = &'a DriveSheet>,
) -> Result<(), Problems> {
    let known: Vec<&str> = drives
        .into_iter()
        .flat_map(kinds)
        .map(|kind| &*kind.id)
        .collect();
    let mut problems = Problems::default();
    for name in request
        .failures
        .iter()
        .filter_map(|(name, _)| name.as_ref())
    {
        if !known.contains(&&**name) {
            let what = format!("--afr {name}=...: no drive of these pools is called {name}");
            let help = format!("their drives: {}", known.join(", "));
            problems.0.push(problem(what, help));
        }
    }
    problems.or(())
}

/// Returns each kind of drive of a pool once; for a single drive, the drive itself.
fn kinds(drive: &DriveSheet) -> Vec<&DriveSheet> {
    match &drive.pool {
        Some(_) => drive.members.iter().collect(),
        None => vec![drive],
    }
}

fn given(request: &OddsRequest, drive: &DriveSheet) -> Option<f64> {
    let named = |one: &&(Option<String>, f64)| one.0.as_ref() == Some(&drive.id);
    let named = request.failures.iter().find(named);
    let all = request.failures.iter().find(|one| one.0.is_none());
    named.or(all).map(|one| one.1)
}

/// The odds of a pool, or of a drive by itself.
///
/// # Errors
/// A drive whose failure rate is neither known nor given.
pub fn measure(
    request: &OddsRequest,
    drive: &DriveSheet,
    lab: &Lab,
    tell: &dyn Fn(String),
) -> Result<OddsAnswer, Problems> {
    check_drive(request, drive)?;
    let of_member = match &drive.pool {
        Some(sheet) => sheet.members.clone(),
        None => vec![0],
    };
    let loss = match drive.pool_config() {
        Some(config) => config.promise().loss,
        None => Loss::Member(0),
    };
    let sets = loss.cut_sets();
    let mut drives = Vec::new();
    let mut numbers = Vec::new();
    for (index, kind) in kinds(drive).into_iter().enumerate() {
        tell(format!("rebuild of {}", kind.id));
        let repair = repair(request, kind, lab)?;
        numbers.push(MemberRisk {
            failures: repair.failures,
            repair: (request.replace_hours + repair.rebuild_seconds / 3600.0) / HOURS,
            unreadable: repair.unreadable_per_bit.unwrap_or(0.0) * 8.0 * kind.capacity as f64,
            exposed: 0.0,
        });
        let count = of_member.iter().filter(|&&one| one == index).count();
        drives.push(Repair { count, ..repair });
    }
    let logs = drive.pool_config().map(log_members).unwrap_or_default();
    let members = of_member
        .iter()
        .enumerate()
        .map(|(member, &kind)| MemberRisk {
            exposed: match logs.contains(&(member as u16)) {
                true => EXPOSED / (HOURS * 3600.0),
                false => numbers[kind].repair,
            },
            ..numbers[kind]
        });
    let members: Vec<MemberRisk> = members.collect();
    let [whole, partial] = sets_of_pool_and_of_blocks(&loss);
    let each = |sets: &[CutSet]| [0, 1, 2].map(|end| losses(sets, &members, request.crashes, end));
    let is_redundant = sets.iter().any(|set| is_redundant(&set));
    let unreadable = is_redundant.then(|| [0, 1, 2].map(|end| unreadable(&sets, &members, end)));
    let losses = each(&whole);
    let crash_losses = (!partial.is_empty()).then(|| each(&partial));
    let some_blocks = sum([crash_losses, unreadable]);
    Ok(OddsAnswer {
        drive: drive.id.clone(),
        usable_bytes: drive.capacity,
        losses,
        crash_losses,
        unreadable,
        over: request
            .years
            .map(|years| OddsOver::new(years, losses, some_blocks)),
        cause: cause(&whole, &members, request.crashes),
        drives,
    })
}

/// Returns the smallest sets of failures that lose the pool, and those that lose only some blocks of it: crashes while
/// drives have failed.
pub fn sets_of_pool_and_of_blocks(loss: &Loss) -> [Vec<CutSet>; 2] {
    let (partial, whole) = loss.cut_sets().into_iter().partition(is_partial);
    [whole, partial]
}

/// How often all members of a set are failed at once, in a year.
fn together(set: &[u16], members: &[MemberRisk], end: usize) -> f64 {
    let of = |member: &u16| members[usize::from(*member)];
    let missing = |one: MemberRisk| one.failures[end] * one.repair;
    let last = set.iter().map(|j| {
        let others = set.iter().filter(|i| *i != j).map(of).map(missing);
        of(j).failures[end] * others.product::<f64>()
    });
    last.sum()
}

/// Losses a year by one set of failed drives, with a crash or without.
fn set_rate(set: &[u16], crash: bool, members: &[MemberRisk], crashes: f64, end: usize) -> f64 {
    let exposed = set.iter().map(|&it| members[usize::from(it)].exposed);
    match (set.is_empty(), crash) {
        (true, _) => crashes,
        (false, false) => together(set, members, end),
        (false, true) => {
            together(set, members, end) * crashes * exposed.fold(f64::INFINITY, f64::min)
        }
    }
}

/// Losses a year by the sets of a rule.
fn losses(sets: &[CutSet], members: &[MemberRisk], crashes: f64, end: usize) -> f64 {
    let rates = sets
        .iter()
        .map(|(set, crash)| set_rate(set, *crash, members, crashes, end));
    rates.sum()
}

/// Whether a crash while drives have failed loses what was being written, and not the pool.
fn is_partial((set, crash): &CutSet) -> bool {
    *crash && !set.is_empty()
}

/// Whether data are lost only if several drives fail, whatever the machine does.
fn is_redundant((set, crash): &&CutSet) -> bool {
    set.len() > 1 && !crash
}

/// Rebuilds a year that read the last copy of something and meet an unreadable sector.
fn unreadable(sets: &[CutSet], members: &[MemberRisk], end: usize) -> f64 {
    let rates = sets.iter().filter(is_redundant).flat_map(|(set, _)| {
        let each = (0..set.len()).map(|last| {
            let mut failed = set.clone();
            let read = failed.remove(last);
            together(&failed, members, end) * members[usize::from(read)].unreadable
        });
        each.collect::<Vec<f64>>()
    });
    rates.sum()
}

/// The number of failed drives, with a crash or without, that loses most often.
fn cause(sets: &[CutSet], members: &[MemberRisk], crashes: f64) -> LossCause {
    let mut rates: BTreeMap<(usize, bool), f64> = BTreeMap::new();
    for (set, crash) in sets {
        let rate = set_rate(set, *crash, members, crashes, 0);
        *rates.entry((set.len(), *crash)).or_default() += rate;
    }
    let all: f64 = rates.values().sum();
    let most = rates
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let ((drives, crash), rate) = most.unwrap_or(((0, false), 0.0));
    LossCause {
        drives,
        crash,
        share: rounded(if all > 0.0 { rate / all } else { 0.0 }),
    }
}

/// The members that only hold the log of an intent log or of log-structured storage.
fn log_members(config: &PoolConfig<DriveConfig>) -> Vec<u16> {
    let mut logs = Vec::new();
    for tier in &config.tiers {
        if let Kind::IntentLog(_) | Kind::LogStructured(_) = tier.kind {
            for log in tier.children.iter().skip(1) {
                collect_members(config, *log, &mut logs);
            }
        }
    }
    logs
}

/// Adds the members below a target.
fn collect_members(config: &PoolConfig<DriveConfig>, target: Target, members: &mut Vec<u16>) {
    match target {
        Target::Slice { member, .. } => members.push(member),
        Target::Tier(tier) => {
            for &child in &config.tiers[usize::from(tier)].children {
                collect_members(config, child, members);
            }
        }
    }
}

/// How often a drive fails, and how long its rebuild takes.
fn repair(request: &OddsRequest, drive: &DriveSheet, lab: &Lab) -> Result<Repair, Problems> {
    let class = DriveClass::new(drive);
    let known: Option<FailureRate> = class.map(DriveClass::rate);
    let said = given(request, drive);
    let (failures, source) = match (said, known) {
        (Some(said), _) => ([said; 3], String::from("given")),
        (None, Some(known)) => (known.per_year, known.source.to_owned()),
        (None, None) => ([0.0; 3], String::from("unknown")),
    };
    let written = pass_seconds(request, drive, lab, Mix::Write)?;
    let read = pass_seconds(request, drive, lab, Mix::Read)?;
    Ok(Repair {
        drive: drive.id.clone(),
        count: 1,
        class,
        failures,
        source,
        rebuild_seconds: rounded(written.max(read)),
        unreadable_per_bit: known.map(|known| known.unreadable_per_bit),
    })
}

/// Seconds in which all of a drive is written (a new one) or read (one in use) in order, alone.
fn pass_seconds(
    request: &OddsRequest,
    drive: &DriveSheet,
    lab: &Lab,
    mix: Mix,
) -> Result<f64, Problems> {
    let (config, whole) = match &drive.config {
        DriveConfig::Nand(_) | DriveConfig::Raid0(_) => (drive.config.shrunk(SMALL), true),
        config => (config.clone(), false),
    };
    let state = match mix {
        Mix::Write => Precondition::Fresh,
        _ => Precondition::Filled,
    };
    let capacity = config.capacity_bytes();
    let scale = drive.config.capacity_bytes() as f64 / capacity as f64;
    let block = 1u64 << 20;
    let piece = (capacity / PIECES).max(block) / block * block;
    let bytes = match whole {
        true => piece,
        false => piece.min(BEGINNING),
    };
    let machine = Machine::new(drive, &request.host).with_drive(config);
    let mut bench = Bench::new(lab, &machine, state, request.seed);
    let mut seconds = 0.0;
    for number in 0..(capacity / piece).min(PIECES) {
        let job = Job {
            mix,
            random: false,
            block_sizes: std::array::from_fn(|_| BlockSizes::Fixed(block as u32)),
            iodepth: 4,
            offset: Extent::Bytes(number * piece),
            size: Some(Extent::Bytes(bytes)),
            number_ios: Some(bytes / block),
            ..Job::default()
        };
        let outcome = bench.run(Work::Jobs(vec![job]), request.seed + number, Span::ZERO)?;
        let took = outcome.end.since(Time::ZERO).seconds();
        seconds += took * (capacity as f64 / PIECES as f64) / bytes as f64;
    }
    Ok(seconds * scale)
}

#[cfg(test)]
mod tests;
