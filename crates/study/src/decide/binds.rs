//! What limits the rate of a pool with an intent log: its log, its main pool, or the memory for what main has not taken yet.

use catalogue::DriveSheet;
use model::Part;
use model::media::DriveConfig;
use model::tier::{Kind, PoolConfig, Target};
use serde::Serialize;

use super::slo::{Figure, Limit, Of};
use super::tally::Tally;

/// Busy for at least this share of the time, a member has no more to give.
const FULL: f64 = 0.95;
/// From this share of what is written on, reads of main are in the way of writes.
const READS: f64 = 0.02;

/// What limits the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binds {
    /// Writers wait for room in memory, as main takes transaction groups too slowly.
    Memory,
    /// The log is busy all the time.
    LogBusy,
    /// The log is not busy: each commit waits for its latency.
    LogLatency,
    /// Main is busy all the time.
    MainBusy,
    /// Records that are written in part are read from main.
    MainReads,
    /// There is no log device: each commit waits for main.
    MainLatency,
}

impl Binds {
    /// In words, after "limited by".
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

/// What limits a pool with one intent log at this load; `None` of other pools and drives.
pub fn of(drive: &DriveSheet, tally: &Tally) -> Option<Binds> {
    let pool = drive.pool_config()?;
    let is_log = |kind: &Kind| matches!(kind, Kind::IntentLog(_));
    let mut tiers = pool.tiers.iter().filter(|tier| is_log(&tier.kind));
    let (Some(tier), None) = (tiers.next(), tiers.next()) else {
        return None;
    };
    let (main, logs) = tier.children.split_first()?;
    let members = |targets: &[Target]| {
        let mut found = Vec::new();
        targets.iter().for_each(|it| below(pool, *it, &mut found));
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
        of: Of::All,
        figure: Figure::Mean,
        bound: f64::INFINITY,
        unit: Figure::Mean.unit(),
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

/// Members below a tier or slice.
fn below(pool: &PoolConfig<DriveConfig>, target: Target, found: &mut Vec<usize>) {
    match target {
        Target::Slice { member, .. } => found.push(usize::from(member)),
        Target::Tier(tier) => {
            let children = &pool.tiers[usize::from(tier)].children;
            children.iter().for_each(|it| below(pool, *it, found));
        }
    }
}
