//! A load at a given rate, equal for every drive: I/Os arrive independently (open loop), whether or not previous ones
//! are complete.
//!
//! If each drive runs at its own maximum, the faster drive seems to last shorter and to use more power; at an equal
//! rate, latency, watts and years are comparable. A rate is divided over the jobs of a file by their I/Os in flight
//! (`numjobs` x `iodepth`); reads and writes of a mix arrive independently. A job that waits for the medium after its
//! writes (`fsync`, `fdatasync`), has a synchronous engine or uses the page cache keeps its depth and is only
//! rate-limited. Its latency excludes the time that an arrival waits for a busy thread, but the check whether the
//! drive keeps up includes it.

use model::Span;
use model::host::Engine;
use serde::Serialize;
use text::digits::{count, megabytes_a_second};
use text::problem::Problems;
use text::quantity::{Rate as Bytes, quantity, split};
use workload::job::{BlockSizes, Job, Mix, Rate, RateProcess};

use super::life_part::{DAY, DAYS};
use super::load::OPEN_DEPTH;
use super::slo::{self, LimitMetric, LimitScope, Slo};

/// Minimum share of the arriving I/Os that a drive must complete to keep up.
pub const KEPT_UP: f64 = 0.97;

/// Minimum total rate in I/Os per second, also for a rate in bytes.
const LEAST_IOPS: f64 = 1.0;

/// Amounts of rates over a long time, and the bytes of each.
const AMOUNTS: [(&str, f64); 4] = [("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)];

/// Days of the times of such rates; a month is a twelfth of a year.
const TIMES: [(&str, f64); 3] = [("day", 1.0), ("month", DAYS / 12.0), ("year", DAYS)];

/// Returns the bytes per second of a rate such as `20GB/day`, `20TB/month` or `500TB/year`; `None` for other texts.
pub(super) fn bytes_over_days(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (amount, time) = unit.split_once('/')?;
    let (_, bytes) = AMOUNTS.iter().find(|(name, _)| *name == amount)?;
    let (_, days) = TIMES.iter().find(|(name, _)| *name == time)?;
    Some(number * bytes / (days * DAY))
}

/// Rate on all drives, per second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferedRate {
    /// I/Os per second.
    Iops(f64),
    /// Bytes per second of reads and writes together.
    Bytes(f64),
    /// Bytes per second of writes; reads arrive in proportion.
    Written(f64),
}

impl OfferedRate {
    /// Parses `50k` (IOPS), `300MB/s` or `20GB/day`.
    ///
    /// # Errors
    /// A description of the allowed form.
    pub fn read(text: &str) -> Result<OfferedRate, String> {
        let help = "write IOPS, such as 50k, or bytes per second, day, month or year, such as 300MB/s or 20GB/day";
        let read = match (bytes_over_days(text), text.ends_with("/s")) {
            (Some(bytes), _) => Ok(OfferedRate::Bytes(bytes)),
            (None, true) => quantity::<Bytes>(text).map(|rate| OfferedRate::Bytes(rate.0)),
            (None, false) => slo::count(text).map(OfferedRate::Iops),
        };
        match read {
            Ok(rate) if rate.value() >= LEAST_IOPS && rate.value() <= 1e12 => Ok(rate),
            _ => Err(format!("{help}; at least {LEAST_IOPS} IOPS")),
        }
    }

    /// Parses a rate of writes: `100MB/s` or `600GB/day`.
    ///
    /// # Errors
    /// A description of the allowed form.
    pub fn read_writes(text: &str) -> Result<OfferedRate, String> {
        match OfferedRate::read(text) {
            Ok(OfferedRate::Bytes(bytes)) => Ok(OfferedRate::Written(bytes)),
            _ => Err(String::from(
                "write bytes per second, day, month or year, such as 100MB/s or 600GB/day",
            )),
        }
    }

    /// Returns the total rates that limits require: those of `iops>` and `bw>` without a direction.
    pub fn asked_by(slo: &Slo) -> Vec<OfferedRate> {
        let all = slo
            .limits
            .iter()
            .filter(|limit| limit.of == LimitScope::All);
        let rates = all.filter_map(|limit| match limit.figure {
            LimitMetric::Iops => Some(OfferedRate::Iops(limit.bound)),
            LimitMetric::Bandwidth => Some(OfferedRate::Bytes(limit.bound * 1e6)),
            _ => None,
        });
        rates.collect()
    }

    const fn value(self) -> f64 {
        match self {
            OfferedRate::Iops(value) | OfferedRate::Bytes(value) | OfferedRate::Written(value) => {
                value
            }
        }
    }

    /// Returns text such as `50 k IOPS`.
    pub fn words(self) -> String {
        match self {
            OfferedRate::Iops(iops) => format!("{} IOPS", count(iops)),
            OfferedRate::Bytes(bytes) => megabytes_a_second(bytes * 1e-6),
            OfferedRate::Written(bytes) => {
                format!("{} of writes", megabytes_a_second(bytes * 1e-6))
            }
        }
    }

    /// Returns a rate of bytes with its direction, for a load that has reads or writes: `6.94 MB/s read and written`;
    /// `None` for IOPS.
    pub(super) fn words_of_bytes(self, [reads, writes]: [bool; 2]) -> Option<String> {
        let (bytes, direction) = match self {
            OfferedRate::Iops(_) => return None,
            OfferedRate::Bytes(bytes) => match (reads, writes) {
                (true, true) => (bytes, "read and written"),
                (true, false) => (bytes, "read"),
                (false, _) => (bytes, "written"),
            },
            OfferedRate::Written(bytes) => (bytes, "written"),
        };
        Some(format!("{} {direction}", megabytes_a_second(bytes * 1e-6)))
    }
}

/// I/Os of one direction of a job.
struct Flow<'a> {
    job: &'a Job,
    mix: Mix,
    /// I/Os in flight in a closed loop.
    weight: f64,
    /// Mean bytes of an I/O.
    bytes: f64,
}

/// Share by which the rate of a thread may differ from the requested one because it is whole, as in fio. A thread that
/// would differ by more, which has fewer than 100 IOPS, gets the exact rate.
const ROUNDING: f64 = 0.005;

/// Returns the rate of a thread, and its I/Os per second.
fn rate_of_thread(wanted: f64) -> (Rate, f64) {
    let whole = libm::round(wanted).max(1.0);
    match (whole / wanted - 1.0).abs() <= ROUNDING {
        true => (Rate::Iops(whole as u64), whole),
        false => (Rate::Every(Span::from_seconds(1.0 / wanted)), wanted),
    }
}

/// Returns jobs that offer this rate together, and the exact IOPS that they offer.
///
/// # Errors
/// A job that cannot have a rate; `option` is the user's option that requests the rate.
pub fn paced_jobs(
    jobs: &[Job],
    offered: OfferedRate,
    option: &str,
) -> Result<(Vec<Job>, f64), Problems> {
    let mut problems = Problems::default();
    for job in jobs {
        if let Some(what) = refusal(job, option) {
            let what = format!("{option}: job `{}` {what}", job.name);
            problems.0.extend(Problems::whole("command line", what).0);
        }
    }
    problems.or(())?;
    let flows: Vec<Flow<'_>> = jobs.iter().flat_map(flows).collect();
    let each = match offered {
        OfferedRate::Iops(iops) => iops / flows.iter().map(|flow| flow.weight).sum::<f64>(),
        OfferedRate::Bytes(bytes) => {
            let weighted = flows.iter().map(|flow| flow.weight * flow.bytes);
            bytes / weighted.sum::<f64>()
        }
        OfferedRate::Written(bytes) => {
            let writes = flows.iter().filter(|flow| direction(flow.mix) == 1);
            let weighted: f64 = writes.map(|flow| flow.weight * flow.bytes).sum();
            if weighted <= 0.0 {
                let what = format!("{option}: the load does not write");
                return Err(Problems::whole("command line", what));
            }
            bytes / weighted
        }
    };
    let asked: f64 = flows.iter().map(|flow| each * flow.weight).sum();
    if asked < LEAST_IOPS * (1.0 - ROUNDING) {
        let mean = flows
            .iter()
            .map(|flow| flow.weight * flow.bytes)
            .sum::<f64>()
            / flows.iter().map(|flow| flow.weight).sum::<f64>();
        let what = format!(
            "{option}: {} are {} IOPS of {} bytes, and the minimum is {LEAST_IOPS} IOPS ({} bytes per second)",
            offered.words(),
            text::digits::digits(asked),
            mean.round(),
            (mean * LEAST_IOPS).ceil(),
        );
        return Err(Problems::whole("command line", what));
    }
    let mut total = 0.0;
    let mut first = None;
    let paced = flows.iter().map(|flow| {
        let rate = each * flow.weight;
        let copies = libm::floor(rate).clamp(1.0, f64::from(flow.job.numjobs));
        let (of_thread, iops) = rate_of_thread(rate / copies);
        total += copies * iops;
        // Both directions of a mix begin together.
        let again = first == Some(flow.job as *const Job);
        first = Some(flow.job);
        paced(flow, copies as u32, of_thread, again)
    });
    let paced = paced.collect();
    Ok((paced, total))
}

/// Returns the mean bytes of the I/Os of jobs with an assigned rate.
pub(super) fn mean_bytes_of(paced: &[Job]) -> f64 {
    let mut sums = [0.0; 2];
    for job in paced {
        let at = direction(job.mix);
        if let Some(each) = job.rate[at].and_then(Rate::iops) {
            let rate = each * f64::from(job.numjobs);
            sums[0] += rate;
            sums[1] += rate * mean_bytes(&job.block_sizes[at]);
        }
    }
    sums[1] / sums[0].max(1e-9)
}

/// Returns the IOPS of the rarest of reads, writes and syncs of jobs with an assigned rate.
pub(super) fn rarest(paced: &[Job]) -> Option<f64> {
    let mut sums = [0.0; 3];
    for job in paced {
        let at = direction(job.mix);
        let rate = job.rate[at].and_then(Rate::iops)? * f64::from(job.numjobs);
        sums[at] += rate;
        let every = [job.fsync, job.fdatasync].into_iter().filter(|it| *it > 0);
        if let Some(every) = every.min() {
            sums[2] += rate / f64::from(every);
        }
    }
    sums.into_iter()
        .filter(|rate| *rate > 0.0)
        .min_by(f64::total_cmp)
}

/// Returns why a job cannot have a rate.
fn refusal(job: &Job, option: &str) -> Option<String> {
    match job.mix {
        Mix::Trim | Mix::TrimWrite => Some(String::from("trims; reads and writes have a rate")),
        _ if job.rate.iter().any(Option::is_some) => Some(format!(
            "has a rate of its own; leave out {option}, or `rate` and `rate_iops` of the job"
        )),
        _ if job.iolog.is_some() || job.records.is_some() => {
            Some(String::from("replays a log of I/Os with recorded times"))
        }
        _ => None,
    }
}

fn flows(job: &Job) -> Vec<Flow<'_>> {
    let reads = f64::from(job.read_percent) / 100.0;
    let shares = match job.mix {
        Mix::ReadWrite => vec![(Mix::Read, reads), (Mix::Write, 1.0 - reads)],
        mix => vec![(mix, 1.0)],
    };
    let in_flight = f64::from(job.numjobs) * f64::from(job.iodepth);
    let shares = shares.into_iter().filter(|(_, share)| *share > 0.0);
    let flow = |(mix, share): (Mix, f64)| Flow {
        job,
        mix,
        weight: in_flight * share,
        bytes: mean_bytes(&job.block_sizes[direction(mix)]),
    };
    shares.map(flow).collect()
}

/// Returns the index of a direction in fio's triples.
fn direction(mix: Mix) -> usize {
    usize::from(mix == Mix::Write)
}

/// Rate at which the I/Os of a direction arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Arrival {
    /// I/Os per second.
    pub(super) iops: f64,
    /// Bytes per second.
    pub(super) bytes: f64,
}

/// Returns the sum of the rates of all jobs in a direction (0: reads, 1: writes); zero if no job has it. `None` if the
/// drive or a log of I/Os sets the rate of one.
pub(super) fn arrival<'a>(jobs: impl IntoIterator<Item = &'a Job>, at: usize) -> Option<Arrival> {
    let mut sum = Arrival {
        iops: 0.0,
        bytes: 0.0,
    };
    for job in jobs {
        // A log of I/Os has its own directions.
        if job.iolog.is_some() || job.records.is_some() {
            return None;
        }
        let has = match job.mix {
            Mix::Read => at == 0,
            Mix::Write | Mix::TrimWrite => at == 1,
            Mix::ReadWrite => true,
            Mix::Trim => false,
        };
        if !has {
            continue;
        }
        let each = mean_bytes(&job.block_sizes[at]);
        let bytes = match job.rate[at]? {
            Rate::Bytes(bytes) => bytes as f64,
            of_ios => of_ios.iops()? * each,
        } * f64::from(job.numjobs);
        sum.iops += bytes / each.max(1.0);
        sum.bytes += bytes;
    }
    Some(sum)
}

/// Mean bytes of a job's writes.
pub(super) fn written_bytes(job: &Job) -> f64 {
    mean_bytes(&job.block_sizes[1])
}

pub(super) fn mean_bytes(sizes: &BlockSizes) -> f64 {
    match sizes {
        BlockSizes::Fixed(bytes) => f64::from(*bytes),
        BlockSizes::Range { min, max, .. } => f64::midpoint(f64::from(*min), f64::from(*max)),
        BlockSizes::Split(shares) => {
            let parts = shares
                .iter()
                .map(|(bytes, percent)| f64::from(*bytes) * percent / 100.0);
            parts.sum()
        }
    }
}

/// Checks whether its threads may have any number of I/Os in flight.
fn is_open(job: &Job) -> bool {
    let syncs = job.fsync > 0 || job.fdatasync > 0;
    job.direct && !syncs && !matches!(job.engine, Engine::Sync | Engine::Pvsync2)
}

fn paced(flow: &Flow<'_>, copies: u32, of_thread: Rate, again: bool) -> Job {
    let job = flow.job;
    let mut rate = [None; 3];
    rate[direction(flow.mix)] = Some(of_thread);
    Job {
        mix: flow.mix,
        numjobs: copies,
        iodepth: match is_open(job) {
            true => OPEN_DEPTH.max(job.iodepth),
            false => job.iodepth,
        },
        iodepth_low: 0,
        // An arrival does not wait for completions of others.
        iodepth_batch: 1,
        iodepth_batch_complete_min: 1,
        iodepth_batch_complete_max: 1,
        rate,
        rate_process: RateProcess::Poisson,
        think: None,
        latency_target: None,
        stonewall: job.stonewall && !again,
        new_group: job.new_group && !again,
        ..job.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::super::work::Load;
    use super::*;
    use crate::review::Workload;

    fn jobs(text: &str) -> Vec<Job> {
        let load = Load::of_text("a job", text.to_owned()).expect("fio's words");
        let Workload::Jobs(jobs) = &load.user_workload().workload else {
            panic!("jobs")
        };
        jobs.clone()
    }

    fn offered(jobs: &[Job]) -> f64 {
        let rates = jobs.iter().map(|job| {
            let rate = job.rate.iter().flatten().next();
            let each = rate.and_then(|rate| rate.iops()).expect("a rate");
            each * f64::from(job.numjobs)
        });
        rates.sum()
    }

    #[test]
    fn jobs_offer_what_was_asked_for_in_all() {
        for name in named::names() {
            let before = jobs(named::text(name).expect("it has a name"));
            for rate in [1.0, 10.0, 100.0, 5_000.0, 50_000.0, 400_000.0] {
                let (after, total) =
                    paced_jobs(&before, OfferedRate::Iops(rate), "--rate").expect("no rate yet");
                assert!((offered(&after) / total - 1.0).abs() < 1e-6, "{name}");
                assert!(
                    (total / rate - 1.0).abs() < 0.005,
                    "{name}: {total} of {rate}"
                );
            }
        }
    }

    #[test]
    fn bytes_below_the_minimum_of_iops_are_refused() {
        let before = jobs(named::text("nfs-sync").expect("it has a name"));
        for (bytes, is_allowed) in [(1.0, false), (32_000.0, false), (32_768.0, true)] {
            let paced = paced_jobs(&before, OfferedRate::Bytes(bytes), "--rate");
            assert_eq!(paced.is_ok(), is_allowed, "{bytes}");
            if let Err(problems) = paced {
                let what = &problems.0[0].what;
                assert!(
                    what.contains("the minimum is 1 IOPS (32768 bytes per second)"),
                    "{what}"
                );
            }
        }
        let refused = OfferedRate::read("0.5").expect_err("below 1");
        assert!(refused.contains("at least 1 IOPS"), "{refused}");
    }

    #[test]
    fn bytes_a_second_are_those_of_the_blocks() {
        let before = jobs(named::text("nfs-sync").expect("it has a name"));
        let (after, total) =
            paced_jobs(&before, OfferedRate::Bytes(327.68e6), "--rate").expect("no rate yet");
        assert_eq!((total, after[0].numjobs), (10_000.0, 8));
        assert_eq!(after[0].iodepth, OPEN_DEPTH);
    }

    #[test]
    fn reads_and_writes_arrive_by_themselves_and_syncs_keep_their_depth() {
        let before = jobs(named::text("oltp").expect("it has a name"));
        let (after, _) =
            paced_jobs(&before, OfferedRate::Iops(33_000.0), "--rate").expect("no rate yet");
        let shown: Vec<(Mix, u32, f64)> = after
            .iter()
            .map(|job| (job.mix, job.iodepth, offered(std::slice::from_ref(job))))
            .collect();
        assert_eq!(
            shown,
            [
                (Mix::Read, OPEN_DEPTH, 22_400.0),
                (Mix::Write, OPEN_DEPTH, 9_600.0),
                (Mix::Write, 1, 1_000.0)
            ]
        );
    }

    #[test]
    fn a_rate_of_its_own_is_no_rate_of_ours() {
        let before = jobs("[a]\nrw=read\nbs=4k\nrate_iops=100\n");
        let problems =
            paced_jobs(&before, OfferedRate::Iops(5.0), "--zilstat").expect_err("it has one");
        let what = &problems.0[0].what;
        assert!(what.starts_with("--zilstat: job `a` has a rate of its own; leave out --zilstat"));
    }

    #[test]
    fn a_limit_on_the_rate_of_all_is_a_rate() {
        let of = |text: &str| OfferedRate::asked_by(&Slo::read(text).expect("limits"));
        assert_eq!(of("p99<1ms,iops>50k"), [OfferedRate::Iops(50_000.0)]);
        assert_eq!(of("bw>1GB/s"), [OfferedRate::Bytes(1e9)]);
        assert_eq!(of("p99<1ms,read.iops>50k"), []);
        // Of two, the one that satisfies both.
        let load = Load::of_text("a job", String::from("[a]\nrw=read\nbs=4k\n")).expect("a job");
        for (slo, iops) in [
            ("iops>50k,bw>1GB/s", 1e9 / 4096.0),
            ("bw>1MB/s,iops>50k", 50e3),
        ] {
            let load = load.clone().at_rate_of(&Slo::read(slo).expect("limits"));
            let found = load.offered_iops().expect("a rate");
            assert!((found / iops - 1.0).abs() < 0.01, "{slo}: {found}");
        }
    }

    /// By hand: of 32 x 70 % reads and 32 x 30 % writes of 8 KiB and one log write in flight, 10.6 of 33 I/Os are writes.
    #[test]
    fn a_rate_of_writes_leaves_the_mix_as_it_is() {
        let before = jobs(named::text("oltp").expect("it has a name"));
        let written = OfferedRate::read_writes("8.64TB/day").expect("a rate");
        let (after, total) = paced_jobs(&before, written, "--writes").expect("it writes");
        let bytes = arrival(&after, 1).expect("rates").bytes;
        assert!((bytes / 1e8 - 1.0).abs() < 0.01, "{bytes}");
        let reads = arrival(&after, 0).expect("rates").iops;
        assert!(
            (reads / total - 22.4 / 33.0).abs() < 0.01,
            "{reads} of {total}"
        );
        let reads = jobs("[a]\nrw=randread\nbs=4k\n");
        let problems = paced_jobs(&reads, written, "--writes").expect_err("it only reads");
        assert_eq!(problems.0[0].what, "--writes: the load does not write");
    }

    #[test]
    fn rates_are_read_with_their_unit() {
        assert_eq!(OfferedRate::read("50k"), Ok(OfferedRate::Iops(50_000.0)));
        assert_eq!(OfferedRate::read("300MB/s"), Ok(OfferedRate::Bytes(300e6)));
        let day = OfferedRate::read("86.4 GB/day");
        assert_eq!(day, Ok(OfferedRate::Bytes(1e6)));
        let month = OfferedRate::read("30TB/month").expect("a rate").value();
        let year = OfferedRate::read("360TB/year").expect("a rate").value();
        assert!((month / year - 1.0).abs() < 1e-9, "{month} {year}");
        assert!((year - 360e12 / 31_536_000.0).abs() < 1.0, "{year}");
        for wrong in [
            "", "0", "1TB/week", "-5", "50kb", "MB/s", "fast", "20k/day", "GB/day", "-2GB/day",
        ] {
            OfferedRate::read(wrong).expect_err(wrong);
        }
    }
}
