//! Synchronous share of a load: only synchronous writes use a log device.
//!
//! Synchronous are writes with `O_SYNC`, `O_DSYNC` or force unit access, and each fsync, fdatasync or flush counts as
//! one. Many trace formats record neither flushes nor force unit access; for their traces, nothing is reported.

use model::Op;
use serde::Serialize;
use tier::{DriveConfig, Kind, PoolConfig, SyncPolicy};
use workload::job::{Job, Mix, Rate, SyncMode};
use workload::trace::Trace;

use crate::review::Workload;

/// Trace formats that record flushes and force unit access.
const RECORDED: [&str; 5] = ["blktrace", "blkparse", "biosnoop", "ftrace", "iolog"];

/// Share of synchronous writes at and below which a log device has no effect.
pub const NEGLIGIBLE: f64 = 1e-3;

/// Synchronous share of a load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Syncs {
    /// Synchronous writes, including flushes, as a share of all writes; 0 if nothing is written.
    Share(f64),
    /// The trace's format does not record it.
    NotRecorded,
}

impl Syncs {
    /// Returns the synchronous share of a workload.
    pub fn count(workload: &Workload) -> Syncs {
        match workload {
            Workload::Jobs(jobs) => Syncs::Share(of_jobs(jobs)),
            Workload::Trace(trace) => of_trace(trace),
        }
    }

    /// Checks whether a log device has no effect.
    pub fn needs_no_log(self) -> bool {
        matches!(self, Syncs::Share(share) if share <= NEGLIGIBLE)
    }
}

/// Checks whether a pool logs all writes, synchronous or not (`sync = "always"`).
pub fn logs_all(pool: &PoolConfig<DriveConfig>) -> bool {
    pool.tiers.iter().any(|tier| match &tier.kind {
        Kind::IntentLog(config) => config.sync == SyncPolicy::Always,
        _ => false,
    })
}

/// Returns the name of the first job whose I/Os are not all logged: it reads, or does not sync its writes. A sync logs
/// all earlier writes of its file. `None` for a trace.
pub fn unlogged_job(workload: &Workload) -> Option<&str> {
    let Workload::Jobs(jobs) = workload else {
        return None;
    };
    let is_logged = |job: &&Job| {
        let syncs = job.fsync > 0 || job.fdatasync > 0 || job.sync != SyncMode::None;
        job.mix == Mix::Write && syncs
    };
    jobs.iter()
        .find(|job| !is_logged(job))
        .map(|job| job.name.as_str())
}

/// Returns the share, weighted by the write rates if each writing job has one, otherwise by the writes in flight.
fn of_jobs(jobs: &[Job]) -> f64 {
    let in_flight = |job: &Job| {
        let share = match job.mix {
            Mix::Write => 1.0,
            Mix::ReadWrite => 1.0 - f64::from(job.read_percent) / 100.0,
            _ => 0.0,
        };
        share * f64::from(job.numjobs) * f64::from(job.iodepth)
    };
    let writing = || jobs.iter().filter(|job| in_flight(job) > 0.0);
    let is_paced = writing().all(|job| paced_writes(job).is_some());
    let of = |job: &Job| {
        let writes = match paced_writes(job) {
            Some(rate) if is_paced => rate,
            _ => in_flight(job),
        };
        let every = [job.fsync, job.fdatasync].into_iter().filter(|it| *it > 0);
        let synced = match job.sync {
            SyncMode::None => every.min().map_or(0.0, |every| 1.0 / f64::from(every)),
            SyncMode::Sync | SyncMode::DataSync => 1.0,
        };
        (writes, writes * synced)
    };
    let all = writing().map(of);
    let (writes, synced) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if writes > 0.0 { synced / writes } else { 0.0 }
}

/// Returns the writes per second of a job whose writes have a rate in IOPS.
fn paced_writes(job: &Job) -> Option<f64> {
    job.rate[1]
        .and_then(Rate::iops)
        .map(|of_thread| of_thread * f64::from(job.numjobs))
}

fn of_trace(trace: &Trace) -> Syncs {
    let (mut writes, mut synced) = (0u64, 0u64);
    for request in trace.records.iter().map(|record| record.request()) {
        match request.op {
            Op::Write => {
                writes += 1;
                synced += u64::from(request.fua);
            }
            Op::Flush => synced += 1,
            _ => {}
        }
    }
    if synced == 0 && writes > 0 && !RECORDED.contains(&trace.format.name) {
        return Syncs::NotRecorded;
    }
    Syncs::Share((synced as f64 / writes.max(1) as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::super::rate::OfferedRate;
    use super::super::work::Load;
    use super::*;

    fn of(text: &str) -> Syncs {
        let load = Load::of_text("a job", text.to_owned()).expect("fio's words");
        Syncs::count(&load.user_workload().workload)
    }

    #[test]
    fn synchronous_are_writes_that_wait_for_the_medium() {
        for (options, share) in [
            ("rw=write\nsync=1", 1.0),
            ("rw=write\nsync=dsync", 1.0),
            ("rw=write\nfdatasync=1", 1.0),
            ("rw=randwrite\nfsync=32", 1.0 / 32.0),
            ("rw=randwrite\niodepth=32", 0.0),
            ("rw=write\nend_fsync=1\nsize=1g", 0.0),
            ("rw=read\nsync=1", 0.0),
        ] {
            let text = format!("[a]\nioengine=libaio\ndirect=1\nbs=4k\n{options}\n");
            assert_eq!(of(&text), Syncs::Share(share), "{options}");
        }
    }

    #[test]
    fn jobs_that_read_or_do_not_sync_are_not_logged_whole() {
        let of = |text: &str| {
            let load = Load::of_text("a job", text.to_owned()).expect("fio's words");
            unlogged_job(&load.user_workload().workload).map(str::to_owned)
        };
        let named = |name: &str| of(named::text(name).expect("a named load"));
        assert_eq!((named("nfs-sync"), named("wal")), (None, None));
        assert!(named("oltp").is_some());
        let first = "[a]\nrw=write\nfsync=32\n";
        assert_eq!(of(first), None);
        for second in ["rw=randrw\nsync=1", "rw=write", "rw=read"] {
            let found = of(&format!("{first}[b]\nioengine=libaio\n{second}\n"));
            assert_eq!(found.as_deref(), Some("b"), "{second}");
        }
    }

    /// A load at a given rate (open loop) keeps up to 1,024 I/Os of a job in flight: its share follows from its rates.
    #[test]
    fn a_rate_does_not_change_the_share() {
        let text = named::text("oltp").expect("a named load").to_owned();
        let load = Load::of_text("oltp", text).expect("fio's words");
        let Syncs::Share(free) = Syncs::count(&load.user_workload().workload) else {
            panic!("a share")
        };
        let paced = load
            .at_rate(OfferedRate::Iops(3800.0))
            .expect("no rate yet");
        let Syncs::Share(paced) = Syncs::count(&paced.user_workload().workload) else {
            panic!("a share")
        };
        assert!((free - 1.0 / 10.6).abs() < 1e-9, "{free}");
        assert!((paced / free - 1.0).abs() < 0.1, "{paced} for {free}");
        assert!(!Syncs::Share(paced).needs_no_log());
    }

    #[test]
    fn a_log_is_needed_for_more_than_a_write_in_a_thousand() {
        let jobs = "[a]\nrw=write\niodepth=64\nioengine=libaio\n[b]\nrw=write\nfsync=1\niodepth=1\nioengine=libaio\n";
        assert!(!of(jobs).needs_no_log());
        assert!(of("[a]\nrw=write\nfsync=2000\n").needs_no_log());
        assert!(!Syncs::NotRecorded.needs_no_log());
    }

    #[test]
    fn flushes_of_a_trace_are_counted_where_its_format_has_them() {
        let read = |text: &str| {
            let options = workload::trace::Options::default();
            let trace = workload::trace::read_from(text.as_bytes(), "t", &options);
            of_trace(&trace.expect("a trace"))
        };
        let log = "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n1 /dev/a write 0 4096\n2 /dev/a write 4096 4096\n";
        assert_eq!(read(log), Syncs::Share(0.0));
        let flushed = format!("{log}3 /dev/a sync 0 0\n");
        assert_eq!(read(&flushed), Syncs::Share(0.5));
        let msr = "128166372003061629,hm,0,Write,8192,4096,100\n128166372003061639,hm,0,Write,12288,4096,100\n";
        assert_eq!(read(msr), Syncs::NotRecorded);
    }
}
