//! How large a log, a write buffer ([`buffer`]) or a read cache should be: by a rule, and by what simulations of several sizes say.
//!
//! *Log.* ZFS keeps in its log what is not in a transaction group on main yet: `min(rate x 2 groups, 2 x what may be dirty)`
//! ([`IntentLogConfig::log_needed`]; S2-097 has 4 GB at 10 GbE). Simulated: a log is large enough for a load if each block
//! finds room on it. That grows with the size by itself. I/Os a second do not: in a closed loop the disks of main set the pace,
//! which differs between groups and seeds by more than the log changes, and a full log holds writers back as a throttle does. So
//! nothing is concluded from them.
//!
//! *Read cache.* The share of bytes read that are in the cache, over a trace: simulated as recorded, and by arithmetic, one
//! request after the other with an exact LRU and this tier's rules: lines are taken in by reads, and by writes of whole lines
//! (`through`); a write of a part of a line brings nothing in.
//!
//! Left out: logs in several parts at once, and bytes of metadata.

mod buffer;

pub use buffer::{BufferRule, Busy, write_buffer};

use std::collections::BTreeMap;

use catalogue::DriveSheet;
use lab::{Lab, Outcome, to_the_end};
use model::media::DriveConfig;
use model::tier::{IntentLogConfig, Kind, PoolConfig, ReadCacheConfig, Target, Writes};
use model::{Gauge, Op};
use serde::Serialize;
use text::problem::Problems;
use workload::trace::Trace;

use super::slo::{Figure, Limit, Of, Slo};
use super::spread;
use super::tally::{Reading, Tally};
use super::work::{Conditions, Load, LoadFacts};
use crate::ledger::support;
use crate::review::results::rounded;

/// The smallest log that is tried, bytes; each further one is twice as large.
const SMALLEST_LOG: u64 = 64 << 20;
/// Sizes of a read cache that are tried, as shares of what the trace touches: each half of the next.
const CACHES: u32 = 6;
/// A larger read cache is not worth it if it hits less than this share of reads more.
const WORTH: f64 = 0.01;

/// The rule for a log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rule {
    /// 10^6 bytes a second that come in at most.
    pub inbound_mb_s: f64,
    /// How long a transaction group takes writes in, seconds.
    pub txg_seconds: f64,
    /// Bytes that may be dirty.
    pub dirty_bytes: u64,
    /// Bytes that are needed.
    pub bytes: f64,
}

/// One size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Bytes of the log, buffer or cache.
    pub bytes: u64,
    /// I/Os a second: mean, least and greatest of the seeds.
    pub iops: [f64; 3],
    /// Of a write buffer: whether with no seed writes are held back; null of others.
    pub never_pressed: Option<bool>,
    /// Of a write buffer: when writes are first held back, in seconds: mean, least and greatest of the seeds; null where some seed has
    /// none of it.
    pub pressed_seconds: Option<[f64; 3]>,
    /// The 99th percentile of the slowest direction in microseconds; null with too few I/Os.
    pub p99_us: Option<f64>,
    /// Of a log: whether with every seed it is never full; null of a cache.
    pub never_full: Option<bool>,
    /// Of a cache: share of bytes read that it has, simulated, mean, least and greatest of the seeds; null of a log.
    pub hits: Option<[f64; 3]>,
    /// The same by arithmetic, one request after the other.
    pub hits_by_arithmetic: Option<f64>,
    /// The limits.
    pub readings: Vec<Reading>,
    /// Whether all limits are met.
    pub meets: bool,
}

/// What was found with one drive in that place.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The drive.
    pub drive: String,
    /// How well the pool's model is known.
    pub model: &'static str,
    /// The rows behind that.
    pub model_text: String,
    /// The load.
    pub load: LoadFacts,
    /// Of a log.
    pub rule: Option<Rule>,
    /// Of a write buffer.
    pub buffer_rule: Option<BufferRule>,
    /// What the load logs, 10^6 bytes a second, of a log.
    pub logged_mb_s: Option<f64>,
    /// The most bytes that the largest log held at once: mean, least and greatest of the seeds; of a log.
    pub most_held_bytes: Option<[f64; 3]>,
    /// By size.
    pub rows: Vec<Row>,
    /// The smallest size from which on all that were tried are enough: never full, writes never held back, or no larger one hits much
    /// more; null if the largest is not.
    pub enough_bytes: Option<u64>,
    /// The smallest size from which on all that were tried meet the limits; null if the largest does not, or without limits.
    pub meets_bytes: Option<u64>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load.
    pub load: Load,
    /// The limits; none if empty.
    pub slo: Slo,
    /// Of a log: bytes a second that come in at most.
    pub inbound: Option<f64>,
    /// Seeds, state and host.
    pub conditions: Conditions,
}

/// A log for a pool whose top is an intent log with one.
///
/// # Errors
/// The load does not fit, or the pool has no single log.
pub fn log(
    drive: &str,
    pool: &DriveSheet,
    request: &Request,
    lab: &Lab,
) -> Result<Answer, Problems> {
    let (tier, config) = found(pool, |kind| match kind {
        Kind::IntentLog(config) => Some(config.clone()),
        _ => None,
    })
    .ok_or_else(|| Problems::whole(drive, "no intent log"))?;
    let whole = bytes_of_child(pool, tier, 1)
        .ok_or_else(|| Problems::whole(drive, "the pool has no log of one part"))?;
    let most = 2 * config.dirty_max();
    if whole < most {
        let what = format!(
            "its log of {whole} bytes is smaller than twice what may be dirty ({most}): nothing shows what a larger one would do"
        );
        return Err(Problems::whole(drive, what));
    }
    let largest = run(pool, tier, 1, most, request, lab)?;
    let mut rows = Vec::new();
    let mut bytes = SMALLEST_LOG;
    while bytes < most {
        let outcomes = run(pool, tier, 1, bytes, request, lab)?;
        let never = never_full(&outcomes);
        rows.push(row(bytes, &outcomes, &request.slo, Some(never)));
        bytes *= 2;
        // A log that is never full is not fuller when it is larger.
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
    Ok(Answer {
        most_held_bytes: Some(spread(largest.iter().map(held))),
        rule: request.inbound.map(|inbound| rule(&config, inbound)),
        logged_mb_s: logged.map(|rate| rounded(rate * 1e-6)),
        ..answer(drive, pool, request, rows, enough)
    })
}

/// Whether with no seed a block found no room on the log.
fn never_full(outcomes: &[Outcome]) -> bool {
    let mut full = outcomes.iter().map(|it| it.gauge(Gauge::LogFullBlocks));
    full.all(|it| it == Some(0.0))
}

/// The rule for a log.
pub fn rule(config: &IntentLogConfig, inbound: f64) -> Rule {
    Rule {
        inbound_mb_s: inbound * 1e-6,
        txg_seconds: config.txg.seconds(),
        dirty_bytes: config.dirty_max(),
        bytes: config.log_needed(inbound),
    }
}

/// A read cache for a pool whose top is one, over a trace.
///
/// # Errors
/// The trace does not fit, reads nothing, or the pool is none.
pub fn read_cache(
    drive: &str,
    pool: &DriveSheet,
    (request, trace): (&Request, &Trace),
    lab: &Lab,
) -> Result<Answer, Problems> {
    let (tier, config) = found(pool, |kind| match kind {
        Kind::ReadCache(config) => Some(config.clone()),
        _ => None,
    })
    .ok_or_else(|| Problems::whole(drive, "no read cache"))?;
    let whole = bytes_of_child(pool, tier, 0)
        .ok_or_else(|| Problems::whole(drive, "the cache is not of one part"))?;
    let touched = touched(trace, u64::from(config.line));
    if touched == 0 {
        return Err(Problems::whole(&trace.origin, "the trace reads nothing"));
    }
    let mut rows = Vec::new();
    for halvings in (0..CACHES).rev() {
        let bytes = (touched >> halvings).next_multiple_of(u64::from(config.line));
        if bytes > whole {
            break;
        }
        let outcomes = run(pool, tier, 0, bytes, request, lab)?;
        let hit = |outcome: &Outcome| {
            let of = |gauge| outcome.gauge(gauge).unwrap_or(0.0);
            let (hit, missed) = (of(Gauge::HitBytes), of(Gauge::MissBytes));
            hit / (hit + missed).max(1.0)
        };
        rows.push(Row {
            hits: Some(spread(outcomes.iter().map(hit))),
            hits_by_arithmetic: Some(rounded(one_after_the_other(trace, &config, bytes))),
            ..row(bytes, &outcomes, &request.slo, None)
        });
    }
    let hits = |row: &Row| row.hits.map_or(0.0, |[mean, ..]| mean);
    let best = rows.last().map_or(0.0, hits);
    let enough = since(&rows, |row| hits(row) + WORTH >= best);
    Ok(answer(drive, pool, request, rows, enough))
}

fn answer(
    drive: &str,
    pool: &DriveSheet,
    request: &Request,
    rows: Vec<Row>,
    enough: Option<u64>,
) -> Answer {
    let support = support::statement(pool);
    let limited = !request.slo.limits.is_empty();
    Answer {
        drive: drive.to_owned(),
        model: support.grade.name(),
        model_text: support.text,
        load: request.load.facts(),
        rule: None,
        buffer_rule: None,
        logged_mb_s: None,
        most_held_bytes: None,
        enough_bytes: enough,
        meets_bytes: limited.then(|| since(&rows, |row| row.meets)).flatten(),
        rows,
    }
}

/// The size of the first row from which on this holds for all.
fn since(rows: &[Row], holds: impl Fn(&Row) -> bool) -> Option<u64> {
    let after = rows.iter().rev().take_while(|row| holds(row));
    after.last().map(|row| row.bytes)
}

fn row(bytes: u64, outcomes: &[Outcome], slo: &Slo, never_full: Option<bool>) -> Row {
    let runs: Vec<&Outcome> = outcomes.iter().collect();
    let tally = Tally::of(&runs);
    let p99 = Limit {
        text: String::from("p99"),
        of: Of::All,
        figure: Figure::Percentile(99.0),
        bound: f64::INFINITY,
        unit: "us",
    };
    let readings: Vec<Reading> = slo
        .limits
        .iter()
        .map(|limit| tally.reading(limit, None))
        .collect();
    Row {
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

/// The tier of a pool that this finds, and what it found.
fn found<T>(pool: &DriveSheet, of: impl Fn(&Kind) -> Option<T>) -> Option<(usize, T)> {
    let tiers = &pool.pool_config()?.tiers;
    let mut all = tiers.iter().enumerate().rev();
    all.find_map(|(index, tier)| Some((index, of(&tier.kind)?)))
}

/// Bytes that a tier can use of a child, if it has just one such.
fn bytes_of_child(pool: &DriveSheet, tier: usize, child: usize) -> Option<u64> {
    let bytes = pool.pool_config()?.child_bytes(tier);
    (bytes.len() == 2).then(|| bytes[child])
}

/// Outcomes with a child of a tier that has so many bytes.
fn run(
    pool: &DriveSheet,
    tier: usize,
    child: usize,
    bytes: u64,
    request: &Request,
    lab: &Lab,
) -> Result<Vec<Outcome>, Problems> {
    let mut smaller = pool.clone();
    if let DriveConfig::Pool(config) = &mut smaller.config {
        cut(config, (tier, child), bytes).map_err(|what| {
            Problems::whole(&pool.id, format!("{what}: name a drive or a mirror"))
        })?;
    }
    request
        .load
        .run(&smaller, &request.conditions, lab, &to_the_end)
}

/// Leaves a child of a tier so many bytes.
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

/// Bytes of the lines that a trace reads or writes; 0 if it reads nothing.
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
    /// Whether it holds a line, which is used now if it does.
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

/// Share of the bytes read that an exact LRU of this many bytes holds, each request after the one before has ended.
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
