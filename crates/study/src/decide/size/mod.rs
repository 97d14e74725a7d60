//! Size of a log, a write buffer ([`buffer`]) or a read cache: by a rule, and by simulations of several sizes.
//!
//! *Log.* The log of ZFS holds the data that the main pool does not yet have in a transaction group:
//! `min(rate x 2 groups, 2 x the dirty limit)` ([`IntentLogConfig::log_needed`]; S2-097 has 4 GB at 10 GbE).
//! Simulated: a log is large enough for a load if each block finds space on it. This can only improve with the size.
//! IOPS are not a criterion. In a closed loop the disks of the main pool determine the rate, which differs between
//! groups and seeds by more than the effect of the log, and a full log throttles writers. So no conclusion is drawn
//! from IOPS.
//!
//! *Read cache.* The share of the read bytes that are in the cache, over a trace, in two ways: simulated as recorded,
//! and by arithmetic, for requests in sequence with an exact LRU and this tier's rules. Lines are admitted by reads,
//! and by writes of whole lines (`through`); a write of a part of a line admits nothing.
//!
//! Not modelled: logs in several parts at once, and bytes of metadata.

mod buffer;

pub use buffer::{BufferRule, Busy, write_buffer};

use std::collections::BTreeMap;

use catalogue::DriveSheet;
use lab::{Lab, Outcome, ProgressCallback};
use model::{Gauge, Op};
use serde::Serialize;
use text::problem::Problems;
use tier::{DriveConfig, IntentLogConfig, Kind, PoolConfig, ReadCacheConfig, Target, Writes};
use workload::trace::Trace;

use super::life::{self, FirstEnd};
use super::slo::{Limit, LimitMetric, LimitScope, Slo};
use super::spread;
use super::tally::{Reading, Tally};
use super::work::{Conditions, Load, LoadFacts};
use crate::ledger::support;
use crate::review::results::rounded;

/// Smallest log that is tried, in bytes; each further one is twice as large.
const SMALLEST_LOG: u64 = 64 << 20;
/// Number of sizes of a read cache that are tried, as shares of the data that the trace accesses: each half of the
/// next.
const CACHES: u32 = 6;
/// Minimum increase of the hit ratio for which a larger read cache is worthwhile.
const WORTH: f64 = 0.01;

/// The rule for a log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rule {
    /// Maximum incoming rate in 10^6 bytes per second.
    pub inbound_mb_s: f64,
    /// Seconds during which a transaction group accepts writes.
    pub txg_seconds: f64,
    /// Maximum dirty bytes.
    pub dirty_bytes: u64,
    /// Required bytes.
    pub bytes: f64,
}

/// Results of one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SizeResult {
    /// Bytes of the log, buffer or cache.
    pub bytes: u64,
    /// IOPS: mean, least and greatest of the seeds.
    pub iops: [f64; 3],
    /// For a write buffer: whether no seed delays writes; null for others.
    pub never_pressed: Option<bool>,
    /// For a write buffer: when writes are first delayed, in seconds: mean, least and greatest of the seeds; null if
    /// some seed never delays them.
    pub pressed_seconds: Option<[f64; 3]>,
    /// 99th percentile of the slowest direction in microseconds; null with too few I/Os.
    pub p99_us: Option<f64>,
    /// For a log: whether it is never full with any seed; null for a cache.
    pub never_full: Option<bool>,
    /// For a cache: simulated hit ratio of read bytes, mean, least and greatest of the seeds; null for a log.
    pub hits: Option<[f64; 3]>,
    /// For a cache: hit ratio by arithmetic, for requests in sequence.
    pub hits_by_arithmetic: Option<f64>,
    /// Figures of the limits.
    pub readings: Vec<Reading>,
    /// Whether all limits are met.
    pub meets: bool,
}

/// Results with one drive in that place.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SizeAnswer {
    /// Name of the drive.
    pub drive: String,
    /// Support level of the pool's model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Facts about the load.
    pub load: LoadFacts,
    /// The rule, for a log.
    pub rule: Option<Rule>,
    /// The rule, for a write buffer.
    pub buffer_rule: Option<BufferRule>,
    /// For a log: logged rate of the load in 10^6 bytes per second.
    pub logged_mb_s: Option<f64>,
    /// For a log: maximum bytes that the largest log held: mean, least and greatest of the seeds.
    pub most_held_bytes: Option<[f64; 3]>,
    /// For a log or a read cache: when the first drive of the pool reaches its rated endurance at this load, with the
    /// largest size; null without a rating or without writes.
    pub first_end: Option<FirstEnd>,
    /// Results by size.
    pub rows: Vec<SizeResult>,
    /// The smallest size at and above which all tried sizes are sufficient: never full, writes never delayed, or no
    /// larger size with a clearly higher hit ratio. Null if the largest is not.
    pub enough_bytes: Option<u64>,
    /// The smallest size at and above which all tried sizes meet the limits; null if the largest does not, or without
    /// limits.
    pub meets_bytes: Option<u64>,
}

/// Input of a sizing.
#[derive(Clone, Debug)]
pub struct SizeRequest {
    /// Load of the pool.
    pub load: Load,
    /// The limits; empty if there are none.
    pub slo: Slo,
    /// For a log: maximum incoming rate in bytes per second.
    pub inbound: Option<f64>,
    /// Seeds, state and host.
    pub conditions: Conditions,
}

/// Sizes a log for a pool whose top tier is an intent log with one; `go_on` receives the completed share of the
/// sizes.
///
/// # Errors
/// The load does not fit, or the pool does not have exactly one log.
pub fn log(
    drive: &str,
    pool: &DriveSheet,
    request: &SizeRequest,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<SizeAnswer, Problems> {
    let (tier, config) = found(pool, |kind| match kind {
        Kind::IntentLog(config) => Some(config.clone()),
        _ => None,
    })
    .ok_or_else(|| Problems::whole(drive, "no intent log"))?;
    let whole = bytes_of_child(pool, tier, 1)
        .ok_or_else(|| Problems::whole(drive, "the pool must have a log of one part"))?;
    let most = 2 * config.dirty_max();
    if whole < most {
        let what = format!(
            "its log of {whole} bytes is smaller than twice the limit of dirty data ({most}): a simulation cannot show the effect of a larger log"
        );
        return Err(Problems::whole(drive, what));
    }
    // At most so many sizes are tried.
    let steps = most.div_ceil(SMALLEST_LOG).max(1).ilog2() + 2;
    let size_run = |bytes, step| {
        let tell = part_of(go_on, step, steps);
        run(pool, (tier, 1), bytes, (request, lab), &tell)
    };
    let largest = size_run(most, 0)?;
    let mut rows = Vec::new();
    let mut bytes = SMALLEST_LOG;
    while bytes < most {
        let outcomes = size_run(bytes, rows.len() as u32 + 1)?;
        let never = never_full(&outcomes);
        rows.push(row(bytes, &outcomes, &request.slo, Some(never)));
        bytes *= 2;
        // A log that is never full is not fuller if it is larger.
        if never {
            break;
        }
    }
    rows.push(row(
        most,
        &largest,
        &request.slo,
        Some(never_full(&largest)),
    ));
    let logged = |outcome: &Outcome| {
        Some(outcome.gauge(Gauge::LogBytesWritten)? / outcome.counted.seconds().max(1e-9))
    };
    let logged: Option<Vec<f64>> = largest.iter().map(logged).collect();
    let logged = logged.map(|all| all.iter().sum::<f64>() / all.len().max(1) as f64);
    let held = |outcome: &Outcome| outcome.gauge(Gauge::MostLogBytesHeld).unwrap_or(0.0);
    let enough = since(&rows, |row| row.never_full == Some(true));
    Ok(SizeAnswer {
        most_held_bytes: Some(spread(largest.iter().map(held))),
        first_end: life::first_end(pool, &largest),
        rule: request.inbound.map(|inbound| rule(&config, inbound)),
        logged_mb_s: logged.map(|rate| rounded(rate * 1e-6)),
        ..answer(drive, pool, request, rows, enough)
    })
}

/// Checks that with every seed, each block found space on the log.
fn never_full(outcomes: &[Outcome]) -> bool {
    let mut full = outcomes.iter().map(|it| it.gauge(Gauge::LogFullBlocks));
    full.all(|it| it == Some(0.0))
}

/// Returns the rule for a log.
pub fn rule(config: &IntentLogConfig, inbound: f64) -> Rule {
    Rule {
        inbound_mb_s: inbound * 1e-6,
        txg_seconds: config.txg.seconds(),
        dirty_bytes: config.dirty_max(),
        bytes: config.log_needed(inbound),
    }
}

/// Converts the share of one step of several into the share of all of them.
fn part_of(
    go_on: ProgressCallback<'_>,
    step: u32,
    steps: u32,
) -> impl Fn(f64) -> std::ops::ControlFlow<()> + Sync {
    move |share| go_on(((f64::from(step) + share) / f64::from(steps)).min(1.0))
}

/// Sizes a read cache for a pool whose top tier is one, over a trace; `go_on` receives the completed share of the
/// sizes.
///
/// # Errors
/// The trace does not fit or reads nothing, or the pool is not a read cache.
pub fn read_cache(
    drive: &str,
    pool: &DriveSheet,
    (request, trace): (&SizeRequest, &Trace),
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<SizeAnswer, Problems> {
    let (tier, config) = found(pool, |kind| match kind {
        Kind::ReadCache(config) => Some(config.clone()),
        _ => None,
    })
    .ok_or_else(|| Problems::whole(drive, "no read cache"))?;
    let whole = bytes_of_child(pool, tier, 0)
        .ok_or_else(|| Problems::whole(drive, "the cache must consist of one part"))?;
    let touched = touched(trace, u64::from(config.line));
    if touched == 0 {
        return Err(Problems::whole(&trace.origin, "the trace reads nothing"));
    }
    let mut rows = Vec::new();
    let mut first_end = None;
    for halvings in (0..CACHES).rev() {
        let bytes = (touched >> halvings).next_multiple_of(u64::from(config.line));
        if bytes > whole {
            break;
        }
        let tell = part_of(go_on, CACHES - 1 - halvings, CACHES);
        let outcomes = run(pool, (tier, 0), bytes, (request, lab), &tell)?;
        first_end = life::first_end(pool, &outcomes);
        let hit = |outcome: &Outcome| {
            let of = |gauge| outcome.gauge(gauge).unwrap_or(0.0);
            let (hit, missed) = (of(Gauge::HitBytes), of(Gauge::MissBytes));
            hit / (hit + missed).max(1.0)
        };
        rows.push(SizeResult {
            hits: Some(spread(outcomes.iter().map(hit))),
            hits_by_arithmetic: Some(rounded(one_after_the_other(trace, &config, bytes))),
            ..row(bytes, &outcomes, &request.slo, None)
        });
    }
    let hits = |row: &SizeResult| row.hits.map_or(0.0, |[mean, ..]| mean);
    let best = rows.last().map_or(0.0, hits);
    let enough = since(&rows, |row| hits(row) + WORTH >= best);
    Ok(SizeAnswer {
        first_end,
        ..answer(drive, pool, request, rows, enough)
    })
}

fn answer(
    drive: &str,
    pool: &DriveSheet,
    request: &SizeRequest,
    rows: Vec<SizeResult>,
    enough: Option<u64>,
) -> SizeAnswer {
    let support = support::statement(pool);
    let limited = !request.slo.limits.is_empty();
    SizeAnswer {
        drive: drive.to_owned(),
        model: support.grade.name(),
        model_text: support.text,
        load: request.load.facts_on(pool, request.conditions.seeds),
        rule: None,
        buffer_rule: None,
        logged_mb_s: None,
        most_held_bytes: None,
        first_end: None,
        enough_bytes: enough,
        meets_bytes: limited.then(|| since(&rows, |row| row.meets)).flatten(),
        rows,
    }
}

/// Returns the size of the first row at and after which `holds` is true for all rows.
fn since(rows: &[SizeResult], holds: impl Fn(&SizeResult) -> bool) -> Option<u64> {
    let after = rows.iter().rev().take_while(|row| holds(row));
    after.last().map(|row| row.bytes)
}

fn row(bytes: u64, outcomes: &[Outcome], slo: &Slo, never_full: Option<bool>) -> SizeResult {
    let runs: Vec<&Outcome> = outcomes.iter().collect();
    let tally = Tally::from_runs(&runs);
    let p99 = Limit {
        text: String::from("p99"),
        of: LimitScope::All,
        figure: LimitMetric::Percentile(99.0),
        bound: f64::INFINITY,
        unit: "us",
    };
    let readings: Vec<Reading> = slo
        .limits
        .iter()
        .map(|limit| tally.reading(limit, None))
        .collect();
    SizeResult {
        bytes,
        iops: spread(outcomes.iter().map(super::rate_of)),
        p99_us: tally.reading(&p99, None).value.map(rounded),
        never_full,
        never_pressed: None,
        pressed_seconds: None,
        hits: None,
        hits_by_arithmetic: None,
        meets: readings.iter().all(|reading| reading.met == Some(true)),
        readings,
    }
}

/// Returns the tier of a pool for which `of` returns a value, and the value.
fn found<T>(pool: &DriveSheet, of: impl Fn(&Kind) -> Option<T>) -> Option<(usize, T)> {
    let tiers = &pool.pool_config()?.tiers;
    let mut all = tiers.iter().enumerate().rev();
    all.find_map(|(index, tier)| Some((index, of(&tier.kind)?)))
}

/// Returns the bytes that a tier can use of a child, if it has exactly one such child.
fn bytes_of_child(pool: &DriveSheet, tier: usize, child: usize) -> Option<u64> {
    let bytes = pool.pool_config()?.child_bytes(tier);
    (bytes.len() == 2).then(|| bytes[child])
}

/// Runs with this number of bytes for a child of a tier.
fn run(
    pool: &DriveSheet,
    (tier, child): (usize, usize),
    bytes: u64,
    (request, lab): (&SizeRequest, &Lab),
    go_on: ProgressCallback<'_>,
) -> Result<Vec<Outcome>, Problems> {
    let mut smaller = pool.clone();
    if let DriveConfig::Pool(config) = &mut smaller.config {
        cut(config, (tier, child), bytes).map_err(|what| {
            Problems::whole(&pool.id, format!("{what}: name a drive or a mirror"))
        })?;
    }
    request.load.run(&smaller, &request.conditions, lab, go_on)
}

/// Limits a child of a tier to this number of bytes.
fn cut(
    config: &mut PoolConfig<DriveConfig>,
    (tier, child): (usize, usize),
    bytes: u64,
) -> Result<(), String> {
    let label = config.label_bytes;
    match &mut config.tiers[tier].children[child] {
        Target::Slice { bytes: all, .. } => {
            *all = (*all).min((bytes + label).next_multiple_of(4096));
            Ok(())
        }
        Target::Tier(below) => {
            let below = usize::from(*below);
            if !matches!(config.tiers[below].kind, Kind::Mirror(_)) {
                return Err(String::from("this part of the pool cannot be made smaller"));
            }
            (0..config.tiers[below].children.len())
                .try_for_each(|leg| cut(config, (below, leg), bytes))
        }
    }
}

/// Returns the bytes of the lines that a trace reads or writes; 0 if it reads nothing.
fn touched(trace: &Trace, line: u64) -> u64 {
    let mut lines = std::collections::BTreeSet::new();
    let mut reads = false;
    for record in &trace.records {
        let request = record.request();
        reads |= request.op == Op::Read && request.bytes > 0;
        if matches!(request.op, Op::Read | Op::Write) {
            let all =
                request.offset / line..(request.offset + u64::from(request.bytes)).div_ceil(line);
            lines.extend(all.map(|line| (request.volume, line)));
        }
    }
    if reads { lines.len() as u64 * line } else { 0 }
}

/// Lines in the order of their last use.
#[derive(Default)]
struct Lru {
    used: BTreeMap<(u16, u64), u64>,
    order: BTreeMap<u64, (u16, u64)>,
    now: u64,
}

impl Lru {
    /// Checks whether it holds a line, and marks the line as used now.
    fn touch(&mut self, line: (u16, u64)) -> bool {
        let Some(at) = self.used.get_mut(&line) else {
            return false;
        };
        self.order.remove(at);
        self.now += 1;
        *at = self.now;
        self.order.insert(self.now, line);
        true
    }

    fn insert(&mut self, line: (u16, u64), most: u64) {
        self.now += 1;
        self.used.insert(line, self.now);
        self.order.insert(self.now, line);
        if self.used.len() as u64 > most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
    }

    fn drop(&mut self, line: (u16, u64)) {
        if let Some(at) = self.used.remove(&line) {
            self.order.remove(&at);
        }
    }
}

/// Returns the share of the read bytes that an exact LRU of this size holds, for requests in sequence.
pub fn one_after_the_other(trace: &Trace, config: &ReadCacheConfig, bytes: u64) -> f64 {
    let line = u64::from(config.line);
    let most = bytes / line;
    let mut lru = Lru::default();
    let (mut hit, mut all) = (0u64, 0u64);
    for record in &trace.records {
        let request = record.request();
        let end = request.offset + u64::from(request.bytes);
        for number in request.offset / line..end.div_ceil(line) {
            let key = (request.volume, number);
            let (first, last) = (
                request.offset.max(number * line),
                end.min((number + 1) * line),
            );
            match request.op {
                Op::Read => {
                    all += last - first;
                    if lru.touch(key) {
                        hit += last - first;
                    } else {
                        lru.insert(key, most);
                    }
                }
                Op::Write if config.writes == Writes::Through => {
                    if !lru.touch(key) && last - first == line {
                        lru.insert(key, most);
                    }
                }
                Op::Write | Op::Deallocate | Op::WriteZeroes => lru.drop(key),
                Op::Flush => {}
            }
        }
    }
    hit as f64 / all.max(1) as f64
}
