//! Syncs as a bottleneck: the share of a run's time in its fsync and fdatasync calls, and the consequences.
//!
//! fio times syncs separately from writes (`sync` of a job). A synchronous thread does nothing else meanwhile. fio
//! before 3.5 does not time them, and writes with O_SYNC or O_DSYNC include their sync in their own latency; in both
//! cases only a model without syncs shows their share.

use model::host::Engine;
use serde::Serialize;
use serde_json::Value;
use workload::job::{Job, SyncMode};

use crate::review::results::rounded;

/// Syncs of a run, as fio timed them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SyncTimes {
    /// fio's option, such as `fdatasync`.
    pub option: &'static str,
    /// Number of syncs.
    pub count: f64,
    /// Mean latency of a sync.
    pub mean_us: f64,
    /// 99th percentile of sync latency.
    pub p99_us: Option<f64>,
    /// Time of a thread from one sync to the next; null if the file does not contain the run time of threads.
    pub every_us: Option<f64>,
    /// Share of the threads' time, 0 to 1; null in the same case.
    pub share: Option<f64>,
}

/// Share of the time at and above which syncs are the bottleneck.
pub(super) const BOUND: f64 = 0.5;

/// Returns the syncs of a reporting group with these jobs; `None` if fio timed none.
pub(super) fn sync_times(members: &[Value], jobs: &[Job]) -> Option<SyncTimes> {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    // In fio 3.33, `total_ios` of syncs is 0.
    let count_of =
        |it: &Value| number(&it["sync"]["lat_ns"]["N"]).max(number(&it["sync"]["total_ios"]));
    let count: f64 = members.iter().map(count_of).sum();
    if count <= 0.0 {
        return None;
    }
    let mean = |figure: &dyn Fn(&Value) -> f64| {
        let sum: f64 = members
            .iter()
            .map(|it| figure(&it["sync"]["lat_ns"]) * count_of(it))
            .sum();
        sum / count / 1e3
    };
    let mean_us = mean(&|it| number(&it["mean"]));
    if mean_us <= 0.0 {
        return None;
    }
    let p99 = mean(&|it| number(&it["percentile"]["99.000000"]));
    let time_ms: f64 = members
        .iter()
        .map(|it| thread_time_ms(it, members.len(), jobs))
        .sum();
    let every = (time_ms > 0.0).then(|| time_ms * 1e3 / count);
    Some(SyncTimes {
        option: option(jobs),
        count,
        mean_us: rounded(mean_us),
        p99_us: (p99 > 0.0).then(|| rounded(p99)),
        every_us: every.map(rounded),
        share: every.map(|every| rounded((mean_us / every).min(1.0))),
    })
}

/// Returns the total run time of a member's threads; if all copies report as a group, fio prints their total.
fn thread_time_ms(member: &Value, members: usize, jobs: &[Job]) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let told = number(&member["job_runtime"]);
    if told > 0.0 {
        return told;
    }
    let copies = match (jobs, members) {
        ([job], 1) => f64::from(job.numjobs),
        _ => 1.0,
    };
    let longest = number(&member["read"]["runtime"]).max(number(&member["write"]["runtime"]));
    longest * copies
}

fn option(jobs: &[Job]) -> &'static str {
    let has = |of: fn(&Job) -> bool| jobs.iter().any(of);
    match (has(|it| it.fsync > 0), has(|it| it.fdatasync > 0)) {
        (true, false) => "fsync",
        (false, true) => "fdatasync",
        _ => "fsync or fdatasync",
    }
}

impl SyncTimes {
    /// Returns the text that follows "bound by"; `None` if syncs take less than half of the time.
    pub(super) fn bound(&self) -> Option<String> {
        let (share, every) = (self.share?, self.every_us?);
        (share >= BOUND).then(|| {
            format!(
                "its {}: {:.0} us each, of {every:.0} us from one to the next ({:.1} % of the time)",
                self.option,
                self.mean_us,
                share * 100.0
            )
        })
    }
}

/// Returns the option that makes each write of these jobs durable when it completes, if there is one.
pub(super) fn synchronous_writes(jobs: &[Job]) -> Option<&'static str> {
    let mode = jobs
        .iter()
        .map(|job| job.sync)
        .find(|sync| *sync != SyncMode::None)?;
    Some(match mode {
        SyncMode::DataSync => "O_DSYNC",
        _ => "O_SYNC",
    })
}

/// Returns the consequences if syncs are the bottleneck; `protected`: whether the drive has power-loss protection, if
/// known.
pub(super) fn follows(jobs: &[Job], protected: Option<bool>) -> Vec<String> {
    let mut all = vec![match synchronous_writes(jobs) {
        Some(_) => String::from(
            "group commit: write several transactions with one call, or write without O_SYNC and sync once for them all",
        ),
        None => String::from(
            "group commit: sync once for several transactions (fsync=N, fdatasync=N), so that they share its time",
        ),
    }];
    all.push(match protected {
        Some(true) => String::from(
            "the drive's buffer survives a power loss, so its flush is short: the time is that of the file system's journal, the host or writes before it",
        ),
        Some(false) => String::from(
            "a drive with power-loss protection answers a flush from its buffer; this one has none",
        ),
        None => String::from(
            "a drive with power-loss protection (PLP) completes a flush at once; a drive without PLP writes its buffer to the medium first",
        ),
    });
    all.push(String::from(
        "a log device: the log on a drive of its own with low sync latency (WAL, SLOG), data elsewhere",
    ));
    if jobs.iter().all(|job| job.engine != Engine::UserSpace) {
        all.push(String::from(
            "a deeper queue or more threads do not shorten a sync",
        ));
    }
    all
}
