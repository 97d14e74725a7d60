//! Size of the write buffer of a disk group: the size at and above which no write is delayed during a load.
//!
//! The rule has two parts. The repeatedly overwritten data (the working set) is at most 40 % of the buffer (VMware's
//! performance guide for vSAN). Only the limit of a group's buffer counts (600 GB, S3-044; the rest of a larger drive
//! is unused). Simulated: the load over its working set for the duration of a busy time, with several sizes of the
//! buffer. Write pressure begins with the first interval (a 240th) at whose end writes are delayed. With a working
//! set much larger than the buffer, pressure occurs eventually at any size; the size then determines how long a burst
//! is not delayed.
//!
//! Pools of flash run scaled, as in reviews ([`crate::review`]); times are the whole pool's. After the failure of a node, the
//! others share its load ([`Busy::with_failed_node`]). Not modelled: several hosts, a start with a partly used buffer (except the pool's own `start`).

use std::collections::BTreeMap;

use catalogue::DriveSheet;
use lab::{Lab, Machine, Outcome, ProgressCallback, Scenario, Work};
use model::{Gauge, Span};
use serde::Serialize;
use text::digits::bytes_decimal;
use text::problem::Problems;
use tier::{DriveConfig, Kind, WriteBackConfig};

use super::{SizeAnswer, SizeRequest, SizeResult, answer, found, part_of, row, since};
use crate::decide::profile::{DISKS, Profile};
use crate::decide::spread;
use crate::decide::work::Load;
use crate::review::results::rounded;
use crate::review::{ScaledDrive, Workload};

/// Number of sizes that may be tried, each half of the next.
const SIZES: u32 = 6;
/// Minimum size of a buffer in bytes of the scaled pool.
const LEAST: u64 = 32 << 20;
/// Number of intervals of a run.
const INTERVALS: u64 = 240;
/// Minimum working set in bytes of the scaled pool.
const LEAST_RANGE: f64 = (8 << 20) as f64;
/// Maximum share of a buffer that a working set may have.
const WORKING_SET: f64 = 0.4;

/// Load on a disk group.
#[derive(Clone, PartialEq, Debug)]
pub struct Busy {
    /// Profile of the load.
    pub profile: Profile,
    /// Bytes that are read and overwritten.
    pub working_set: u64,
    /// Working set as the user wrote it, for messages: `5TB`.
    pub asked: String,
    /// Duration of the load.
    pub lasts: Span,
    /// Maximum write rate in bytes per second; `None` for no limit at QD32.
    pub written: Option<f64>,
    /// Number of nodes, if the load is that of a group while one of them has failed ([`Busy::with_failed_node`]).
    pub failed_node_of: Option<u32>,
}

impl Busy {
    /// Returns the load of a group after one of this number of nodes has failed: the other nodes share its working set
    /// and its writes equally. The copies that a cluster then recreates are not included.
    #[must_use]
    pub fn with_failed_node(self, nodes: u32) -> Busy {
        let factor = f64::from(nodes) / f64::from(nodes.saturating_sub(1).max(1));
        Busy {
            working_set: (self.working_set as f64 * factor) as u64,
            written: self.written.map(|rate| rate * factor),
            failed_node_of: Some(nodes),
            ..self
        }
    }

    /// Returns the working set in a pool that is smaller by this factor.
    fn range(&self, stretch: f64) -> u64 {
        (self.working_set as f64 / stretch) as u64 >> 20 << 20
    }

    /// Returns the option of a job's rates, in bytes per second of each disk: that of reads is such that their share stays
    /// that of the profile.
    fn rates(&self, written: f64) -> String {
        let writes = 100 - self.profile.reads.min(100);
        let reads = written * f64::from(self.profile.reads) / f64::from(writes.max(1));
        let of_disk = |all: f64| (all / f64::from(DISKS)).max(1.0) as u64;
        match self.profile.reads {
            // Without reads, or without writes whose rate would limit them.
            0 | 100 => format!("rate=,{}\n", of_disk(written)),
            _ => format!("rate={},{}\n", of_disk(reads), of_disk(written)),
        }
    }

    /// Returns the job file for a pool that is smaller by this factor.
    fn text(&self, stretch: f64) -> String {
        let each = self.written.map(|all| self.rates(all));
        self.profile.job(&format!(
            "size={}\nruntime={}us\n{}",
            self.range(stretch),
            (self.lasts.seconds() / stretch * 1e6).round().max(1000.0) as u64,
            each.unwrap_or_default()
        ))
    }

    /// Returns the load on the whole pool.
    ///
    /// # Errors
    /// Options that fio would reject.
    pub fn load(&self) -> Result<Load, Problems> {
        Load::of_text(&self.profile.name, self.text(1.0))
    }

    /// Checks whether a pool has space for the working set, and the scaled pool enough of it.
    fn check(&self, drive: &str, pool: &DriveSheet) -> Result<(), Problems> {
        let whole = pool.capacity;
        let stretch = ScaledDrive::smallest_for(&pool.config).stretch;
        let least = LEAST_RANGE * stretch;
        let (what, help) = if self.working_set > whole {
            let room = bytes_decimal(whole as f64);
            (
                format!("the pool has room for {room}"),
                "a smaller --working-set, or a larger capacity tier with --capacity",
            )
        } else if (self.working_set as f64) < least {
            let least = bytes_decimal(least);
            let what = format!(
                "the pool runs {stretch:.0} times smaller, so a result requires at least {least}"
            );
            (what, "a larger --working-set")
        } else {
            return Ok(());
        };
        let what = format!("--working-set {}: {what}", self.asked);
        let mut problems = Problems::whole(drive, what);
        problems.0[0].help = Some(help.to_owned());
        Err(problems)
    }
}

/// The rule for a write buffer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BufferRule {
    /// Bytes of the working set.
    pub working_set_bytes: u64,
    /// Required bytes of the buffer.
    pub bytes: f64,
    /// Maximum bytes of the buffer that count, by the pool's limit.
    pub limit_bytes: u64,
    /// Bytes of the cache drive above that limit.
    pub trapped_bytes: u64,
    /// Number of nodes, one of which has failed; `None` if all work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_node_of: Option<u32>,
}

/// Sizes the write buffer of a pool whose top tier is a write-back cache; `go_on` receives the completed share of the
/// sizes.
///
/// # Errors
/// The load does not fit, or the pool has no such cache.
pub fn write_buffer(
    drive: &str,
    pool: &DriveSheet,
    (request, busy): (&SizeRequest, &Busy),
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<SizeAnswer, Problems> {
    let (tier, config) = found(pool, |kind| match kind {
        Kind::WriteBack(config) => Some(config.clone()),
        _ => None,
    })
    .ok_or_else(|| Problems::whole(drive, "no write-back cache"))?;
    busy.check(drive, pool)?;
    let bytes = pool.pool_config().map(|it| it.child_bytes(tier));
    let has = bytes.and_then(|it| it.first().copied()).unwrap_or(0);
    let whole = has.min(config.buffer_limit);
    let sizes: Vec<(u64, ScaledDrive)> = (0..SIZES)
        .rev()
        .map(|halvings| {
            let bytes = whole >> halvings;
            (
                bytes,
                ScaledDrive::smallest_for(&limited(pool, tier, bytes)),
            )
        })
        .filter(|(bytes, scaled)| *bytes as f64 / scaled.stretch >= LEAST as f64)
        .collect();
    let halvings = sizes.len().max(1).ilog2();
    let steps = match request.slo.limits.is_empty() {
        true => 2 + halvings,
        // The size that meets the limits may be another one.
        false => 2 + 2 * halvings,
    };
    let size_row = |at: usize, step: u32| -> Result<SizeResult, Problems> {
        let (bytes, scaled) = &sizes[at];
        let tell = part_of(go_on, step, steps);
        let outcomes = run(pool, scaled, (request, busy), lab, &tell)?;
        let begins = outcomes.iter().map(|one| pressed(one, scaled.stretch));
        let begins: Vec<Option<f64>> = begins.collect();
        let meets = row(*bytes, &outcomes, &request.slo, None);
        Ok(SizeResult {
            never_pressed: Some(begins.iter().all(Option::is_none)),
            pressed_seconds: begins
                .iter()
                .all(Option::is_some)
                .then(|| spread(begins.iter().flatten().copied())),
            ..meets
        })
    };
    let rows = bisected(
        sizes.len(),
        &size_row,
        &[&|row| row.never_pressed == Some(true), &|row| row.meets],
    )?;
    let enough = since(&rows, |row| row.never_pressed == Some(true));
    Ok(SizeAnswer {
        buffer_rule: Some(BufferRule {
            working_set_bytes: busy.working_set,
            bytes: rounded(busy.working_set as f64 / WORKING_SET),
            limit_bytes: config.buffer_limit,
            trapped_bytes: has - whole,
            failed_node_of: busy.failed_node_of,
        }),
        ..answer(drive, pool, request, rows, enough)
    })
}

/// Condition of a row.
type SizeCondition<'a> = &'a dyn Fn(&SizeResult) -> bool;

/// Returns the rows of the smallest and the largest size, and of those between them that bisections need. A bisection finds
/// the smallest size that is enough for one condition: a larger buffer never delays writes earlier. Each condition has a
/// size of its own: a limit that no size meets says nothing on the others. `of` returns the row of a size, and gets the number of
/// rows before it.
fn bisected(
    sizes: usize,
    of: &dyn Fn(usize, u32) -> Result<SizeResult, Problems>,
    conditions: &[SizeCondition<'_>],
) -> Result<Vec<SizeResult>, Problems> {
    let mut rows = BTreeMap::new();
    if sizes == 0 {
        return Ok(Vec::new());
    }
    for at in [0, sizes - 1] {
        if !rows.contains_key(&at) {
            rows.insert(at, of(at, rows.len() as u32)?);
        }
    }
    for is_enough in conditions {
        // The smallest size that ran at and above which all sizes that ran are enough.
        let known = rows.iter().rev().take_while(|(_, row)| is_enough(row));
        let Some(mut above) = known.last().map(|(at, _)| *at) else {
            continue;
        };
        let Some(mut below) = rows.range(..above).next_back().map(|(at, _)| *at) else {
            continue;
        };
        while above - below > 1 {
            let middle = usize::midpoint(below, above);
            let row = of(middle, rows.len() as u32)?;
            match is_enough(&row) {
                true => above = middle,
                false => below = middle,
            }
            rows.insert(middle, row);
        }
    }
    Ok(rows.into_values().collect())
}

/// Returns the pool with at most this size of its buffer in use.
fn limited(pool: &DriveSheet, tier: usize, bytes: u64) -> DriveConfig {
    let mut config = pool.config.clone();
    if let DriveConfig::Pool(pool) = &mut config
        && let Kind::WriteBack(it) = &mut pool.tiers[tier].kind
    {
        *it = WriteBackConfig {
            buffer_limit: bytes,
            ..it.clone()
        };
    }
    config
}

/// Returns when writes were first delayed, in seconds of the whole pool.
fn pressed(outcome: &Outcome, stretch: f64) -> Option<f64> {
    let levels = outcome.over_time.series(Gauge::Congestion)?;
    let begins = levels.iter().position(|level| *level > 0.0)?;
    let every = outcome.over_time.every.seconds() * stretch;
    Some(rounded((begins + 1) as f64 * every))
}

fn run(
    pool: &DriveSheet,
    scaled: &ScaledDrive,
    (request, busy): (&SizeRequest, &Busy),
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<Vec<Outcome>, Problems> {
    let conditions = &request.conditions;
    let machine = Machine::new(pool, &conditions.host).with_drive(scaled.drive.clone());
    let name = &busy.profile.name;
    let load = Load::of_text(name, busy.text(scaled.stretch))?;
    let Workload::Jobs(jobs) = &load.user_workload().workload else {
        return Err(Problems::whole(name, "no job"));
    };
    let length = busy.lasts.seconds() / scaled.stretch;
    let scenario = |seed: u64| {
        let work = Work::Jobs(jobs.clone());
        let mut scenario = Scenario::new(machine.clone(), conditions.state, work, seed);
        scenario.warm_seed = Some(conditions.seed);
        scenario.series_every = Span::from_us((length * 1e6 / INTERVALS as f64).max(100.0) as u64);
        scenario
    };
    let seeds = conditions.seed..conditions.seed + u64::from(conditions.seeds);
    let scenarios: Vec<Scenario> = seeds.map(scenario).collect();
    lab.run_all(&scenarios, go_on).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use workload::job::Rate;

    use super::*;

    /// Returns the sizes that run, if sizes at and above `enough` never delay writes and those at and above `meets` meet the
    /// limits.
    fn tried_with(sizes: usize, enough: usize, meets: usize) -> (Vec<u64>, usize) {
        let count = std::cell::Cell::new(0);
        let of = |at: usize, step: u32| {
            assert_eq!(step as usize, count.replace(count.get() + 1));
            Ok(SizeResult {
                bytes: at as u64,
                iops: [0.0; 3],
                never_pressed: Some(at >= enough),
                pressed_seconds: None,
                p99_us: None,
                never_full: None,
                hits: None,
                hits_by_arithmetic: None,
                readings: Vec::new(),
                meets: at >= meets,
            })
        };
        let rows = bisected(
            sizes,
            &of,
            &[&|row| row.never_pressed == Some(true), &|row| row.meets],
        );
        let rows = rows.expect("no problem");
        (rows.iter().map(|row| row.bytes).collect(), count.get())
    }

    /// As [`tried_with`], without limits.
    fn tried(sizes: usize, enough: usize) -> (Vec<u64>, usize) {
        tried_with(sizes, enough, 0)
    }

    /// A limit that no size meets, or only a large one, does not hide the size that never delays writes.
    #[test]
    fn each_condition_has_a_size_of_its_own() {
        let never = 99;
        for (enough, meets) in [(2, never), (2, 4), (4, 1), (3, 3), (0, 2), (never, 2)] {
            let (rows, runs) = tried_with(6, enough, meets);
            assert!(rows.is_sorted() && rows.len() == runs, "{rows:?}");
            for boundary in [enough, meets].into_iter().filter(|it| (1..6).contains(it)) {
                let pair = [boundary as u64 - 1, boundary as u64];
                assert!(
                    pair.iter().all(|at| rows.contains(at)),
                    "{enough} {meets} {rows:?}"
                );
            }
        }
        assert_eq!(tried_with(6, never, never).0, [0, 5]);
    }

    #[test]
    fn few_sizes_run_and_the_boundary_is_among_them() {
        for sizes in 1..=6 {
            for enough in 0..=sizes {
                let (rows, runs) = tried(sizes, enough);
                assert!(rows.is_sorted() && rows.len() == runs, "{rows:?}");
                assert!(runs <= 5, "{rows:?}");
                if enough < sizes {
                    assert!(rows.contains(&(enough as u64)), "{sizes} {enough} {rows:?}");
                }
                if (1..sizes).contains(&enough) {
                    assert!(
                        rows.contains(&(enough as u64 - 1)),
                        "{sizes} {enough} {rows:?}"
                    );
                }
            }
        }
        assert_eq!(tried(6, 0).0, [0, 5]);
        assert_eq!(tried(0, 0).0, [0_u64; 0]);
    }

    /// By hand: 300 MB/s of writes that are half, a fifth or all of the I/Os, in 16 KiB blocks.
    #[test]
    fn a_rate_of_writes_keeps_the_share_of_reads() {
        for (reads, read_iops) in [(50, 18_311.0), (80, 73_242.0), (0, 0.0)] {
            let busy = Busy {
                profile: Profile {
                    name: format!("16k{reads}r"),
                    block: String::from("16k"),
                    reads,
                },
                working_set: 500_000_000_000,
                asked: String::from("500GB"),
                lasts: Span::from_ms(300_000),
                written: Some(300e6),
                failed_node_of: None,
            };
            let load = busy.load().expect("fio's words");
            let Workload::Jobs(jobs) = &load.user_workload().workload else {
                panic!("no job")
            };
            let iops = |at: usize| {
                let rate = match jobs[0].rate[at] {
                    Some(Rate::Bytes(bytes)) => bytes as f64 / 16_384.0,
                    Some(_) => panic!("a rate in bytes"),
                    None => 0.0,
                };
                rate * f64::from(jobs[0].numjobs)
            };
            assert!((iops(1) / 18_311.0 - 1.0).abs() < 1e-3, "{}", iops(1));
            assert!(
                (iops(0) - read_iops).abs() <= 1e-3 * read_iops,
                "{}",
                iops(0)
            );
        }
    }
}
