//! Bottleneck of a pool with an intent log: its log, its main pool, or the memory for data that the main pool has not
//! written yet.

use catalogue::DriveSheet;
use model::Part;
use serde::Serialize;
use tier::{DriveConfig, Kind, PoolConfig, Target};

use super::slo::{Limit, LimitMetric, LimitScope};
use super::tally::Tally;

/// Utilisation at and above which a member is saturated.
const FULL: f64 = 0.95;
/// Reads of the main pool delay writes at and above this share of the written bytes.
const READS: f64 = 0.02;

/// Bottleneck of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binds {
    /// Writers wait for free memory, because the main pool writes transaction groups too slowly.
    Memory,
    /// The log is saturated.
    LogBusy,
    /// The log is not saturated: each commit waits for its latency.
    LogLatency,
    /// The main pool is saturated.
    MainBusy,
    /// Partly overwritten records are read from the main pool.
    MainReads,
    /// There is no log device: each commit waits for the main pool.
    MainLatency,
}

impl Binds {
    /// Returns the text that follows "limited by".
    pub const fn words(self) -> &'static str {
        match self {
            Binds::Memory => "main (dirty data fills memory)",
            Binds::LogBusy => "log, busy",
            Binds::LogLatency => "log latency",
            Binds::MainBusy => "main, busy",
            Binds::MainReads => "reads of main",
            Binds::MainLatency => "main latency",
        }
    }
}

/// Returns the bottleneck of a pool with one intent log at this load; `None` for other pools and drives.
pub fn bottleneck(drive: &DriveSheet, tally: &Tally) -> Option<Binds> {
    let pool = drive.pool_config()?;
    let is_log = |kind: &Kind| matches!(kind, Kind::IntentLog(_));
    let mut tiers = pool.tiers.iter().filter(|tier| is_log(&tier.kind));
    let (Some(tier), None) = (tiers.next(), tiers.next()) else {
        return None;
    };
    let (main, logs) = tier.children.split_first()?;
    let members = |targets: &[Target]| {
        let mut found = Vec::new();
        targets
            .iter()
            .for_each(|it| collect_members(pool, *it, &mut found));
        found
    };
    let figures = &tally.measurement.members;
    let busiest = |members: &[usize]| {
        let busy = members.iter().filter_map(|&it| Some(figures.get(it)?.busy));
        busy.fold(0.0, f64::max)
    };
    let (main, logs) = (members(&[*main]), members(logs));
    let read: f64 = main
        .iter()
        .filter_map(|&it| Some(figures.get(it)?.read_mb_s))
        .sum();
    let mean = Limit {
        text: String::from("mean"),
        of: LimitScope::All,
        figure: LimitMetric::Mean,
        bound: f64::INFINITY,
        unit: LimitMetric::Mean.unit(),
    };
    let wait = tally.wait(&mean)?;
    let reads =
        tally.measurement.read.is_none() && read > READS * tally.written_bytes_a_second() * 1e-6;
    Some(match () {
        () if wait.part == Part::Congestion.name() => Binds::Memory,
        () if busiest(&logs) >= FULL => Binds::LogBusy,
        () if busiest(&main) >= FULL => Binds::MainBusy,
        () if reads => Binds::MainReads,
        () if logs.is_empty() => Binds::MainLatency,
        () => Binds::LogLatency,
    })
}

/// Collects the members below a tier or slice.
fn collect_members(pool: &PoolConfig<DriveConfig>, target: Target, found: &mut Vec<usize>) {
    match target {
        Target::Slice { member, .. } => found.push(usize::from(member)),
        Target::Tier(tier) => {
            let children = &pool.tiers[usize::from(tier)].children;
            children
                .iter()
                .for_each(|it| collect_members(pool, *it, found));
        }
    }
}
