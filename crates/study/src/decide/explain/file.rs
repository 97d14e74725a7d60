//! Facts from fio's JSON alone: rates and latencies, the number of I/Os in flight (Little's law), the CPU time of
//! threads, and the requested load, if the options are included.
//!
//! Source: fio 3's HOWTO, "JSON output", and `stat.c`. fio 2 has latencies in microseconds; fio before 3.6 has
//! bandwidth only in KiB/s. Trims count if a job has no other I/O. Not used: figures by priority.

use model::host::Engine;
use serde::Serialize;
use serde_json::Value;
use text::problem::{Place, Problem, Problems};
use workload::job::{BlockSizes, Job, Mix, Rate};

use super::steadiness::{self, Steadiness};
use super::syncs::{self, SyncTimes};
use crate::fit::measured::{self, Group, MeasuredFigure};
use crate::fit::sound::{self, microseconds};
use crate::review::results::rounded;

/// One reporting group of a file of fio's results: jobs that ran together.
#[derive(Clone, Debug)]
pub struct ReportingGroup {
    /// Names of its jobs.
    pub name: String,
    /// Jobs that ran, without a bound; empty if the file has no options.
    pub jobs: Vec<Job>,
    /// Differences between the measurement and a model's run.
    pub unlike: Vec<String>,
    /// Contradictions between the results and their options: options and results are of different runs.
    pub contradictions: Vec<String>,
    /// Figures that are compared with a simulated run.
    pub targets: Vec<MeasuredFigure>,
    /// Facts of the run.
    pub facts: RunFacts,
}

/// Facts of a run from its file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunFacts {
    /// Results of each direction that had I/O.
    pub sides: Vec<Side>,
    /// I/Os per second, reads and writes.
    pub iops: f64,
    /// 10^6 bytes per second, reads and writes.
    pub mb_s: f64,
    /// Mean CPU time of a thread, user and system, as a share of the run time; null if the file does not contain it.
    pub cpu: Option<f64>,
    /// Requested load; null if the file has no options.
    pub asked: Option<RequestedLoad>,
    /// Whether the file agrees with Little's law.
    pub little: LittlesLawCheck,
    /// Syncs of the run; null if fio timed none.
    pub syncs: Option<SyncTimes>,
    /// Whether it was in steady state.
    pub steadiness: Steadiness,
}

/// Results of reads or writes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Side {
    /// `reads` or `writes`; `reads and writes` if fio reported them as one, `trims` for a job that only trims.
    pub direction: &'static str,
    /// Number of I/Os.
    pub ios: f64,
    /// I/Os per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Mean latency; null if fio did not measure it. The same applies to the following fields.
    pub mean_us: Option<f64>,
    /// Mean submission latency.
    pub submission_us: Option<f64>,
    /// Mean completion latency.
    pub completion_us: Option<f64>,
    /// 99th percentile of completion latency.
    pub p99_us: Option<f64>,
}

/// Requested load of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RequestedLoad {
    /// fio's `rw`, such as `randread`.
    pub rw: String,
    /// Bytes of an I/O; null if they vary.
    pub block_bytes: Option<u32>,
    /// Maximum I/Os in flight of the jobs.
    pub in_flight: u32,
    /// Number of threads.
    pub threads: u32,
    /// Rate limit of the jobs in IOPS; null if there is none.
    pub rate: Option<f64>,
    /// fio's engine of the first job.
    pub engine: String,
}

/// Check by Little's law: I/Os in flight = rate x latency.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LittlesLawCheck {
    /// Rate times mean latency; null without latencies.
    pub in_flight: Option<f64>,
    /// `in_flight` divided by the requested depth; null without options.
    pub of_asked: Option<f64>,
    /// Whether the value is possible; null if unknown.
    pub holds: Option<bool>,
    /// Description of the result.
    pub text: String,
}

/// Bottleneck of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bound {
    /// `thread`, `queue`, `sync`, `link`, `controller`, `dies`, `limit`, `pool`, `rate`, or `unknown`.
    pub by: &'static str,
    /// Text that follows "bound by".
    pub text: String,
}

/// Ratio to the requested depth above which the I/Os in flight are impossible: rates and latencies are rounded, and
/// end at different times.
const TOO_MANY: f64 = 1.05;
/// Ratio to the requested depth below which the threads do not keep their queues full.
const NOT_FULL: f64 = 0.8;
/// CPU share at and above which a thread is saturated.
const BUSY: f64 = 0.9;
/// Ratio to the rate limit at and above which the limit is the bottleneck.
const HELD: f64 = 0.97;

/// Reads a file of fio's results; `origin` names it in messages.
///
/// # Errors
/// All problems of the file.
pub fn read(origin: &str, text: &str) -> Result<Vec<ReportingGroup>, Problems> {
    let file = measured::entries(origin, text)?;
    let mut problems = Problems::default();
    let mut runs = Vec::new();
    for group in &file.groups {
        match run(origin, group) {
            Ok(run) => runs.push(run),
            Err(more) => problems.0.extend(more.0),
        }
    }
    problems.or(runs)
}

fn run(origin: &str, group: &Group) -> Result<ReportingGroup, Problems> {
    let (globals, members) = (&group.globals, group.members.as_slice());
    let has_options = |value: &Value| value.as_object().is_some_and(|it| !it.is_empty());
    let known = has_options(globals) || members.iter().any(|it| has_options(&it["job options"]));
    let (jobs, mut unlike, name) = match known {
        true => measured::jobs_of(origin, group)?,
        false => (Vec::new(), group.unlike.clone(), names(members)),
    };
    refuse_impossible(origin, &name, members)?;
    unlike.extend(on_a_file_system(globals, members));
    let contradictions: Vec<String> = match jobs.is_empty() {
        true => Vec::new(),
        false => {
            let wrong = sound::beyond_options(&jobs, members, measured::has_ramp(group));
            wrong.into_iter().map(|(what, _)| what).collect()
        }
    };
    let sides = sides(members);
    let targets = match sides.first() {
        // These are not compared with a model.
        Some(Side {
            direction: "reads and writes" | "trims",
            ..
        }) => Vec::new(),
        _ => measured::figures(origin, &name, members)?,
    };
    let asked = requested_load(&jobs);
    let sum = |figure: fn(&Side) -> f64| sides.iter().map(figure).sum::<f64>();
    Ok(ReportingGroup {
        facts: RunFacts {
            iops: rounded(sum(|side| side.iops)),
            mb_s: rounded(sum(|side| side.mb_s)),
            cpu: cpu(members),
            little: little(&sides, asked.as_ref()),
            syncs: syncs::sync_times(members, &jobs),
            steadiness: steadiness::of_samples(members),
            asked,
            sides,
        },
        name,
        jobs,
        unlike,
        contradictions,
        targets,
    })
}

/// Rejects results that fio ended with an error, and figures that no run has.
fn refuse_impossible(origin: &str, name: &str, members: &[Value]) -> Result<(), Problems> {
    let problem = |(what, help): (String, &str)| Problem {
        origin: origin.to_owned(),
        place: Place::Whole,
        what: format!("job {name}: {what}"),
        help: Some(help.to_owned()),
    };
    let all = sound::impossible(members).into_iter().map(problem);
    Problems(all.collect()).or(())
}

/// Returns reads and writes, or both together if fio reported them as one, or trims of a job without other I/O.
fn sides(members: &[Value]) -> Vec<Side> {
    let of = |kinds: &[(&str, &'static str)]| -> Vec<Side> {
        let sides = kinds.iter();
        sides
            .filter_map(|(key, name)| side(members, key, name))
            .collect()
    };
    let tries: [&[(&str, &'static str)]; 3] = [
        &[("read", "reads"), ("write", "writes")],
        &[("mixed", "reads and writes")],
        &[("trim", "trims")],
    ];
    let found = tries.into_iter().map(of).find(|sides| !sides.is_empty());
    found.unwrap_or_default()
}

/// Returns a note if the run used files instead of a device.
fn on_a_file_system(globals: &Value, members: &[Value]) -> Option<String> {
    let options = members.iter().map(|it| &it["job options"]).chain([globals]);
    let word =
        |options: &Value, key: &str| options[key].as_str().map(|word| format!("{key}={word}"));
    let on_files = |options: &Value| {
        let file = word(options, "filename").filter(|word| !word.contains("=/dev/"));
        word(options, "directory").or(file)
    };
    let file = options.into_iter().find_map(on_files)?;
    Some(format!(
        "{file}: the file system, and the device that it is on, stand between fio and the drive"
    ))
}

fn names(members: &[Value]) -> String {
    let mut names: Vec<&str> = members
        .iter()
        .filter_map(|it| it["jobname"].as_str())
        .collect();
    names.dedup();
    names.join(" + ")
}

/// Returns one direction over the jobs (or copies) of a group.
fn side(members: &[Value], key: &str, direction: &'static str) -> Option<Side> {
    let sides: Vec<&Value> = members.iter().map(|it| &it[key]).collect();
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let sum = |figure: &str| sides.iter().map(|side| number(&side[figure])).sum::<f64>();
    let ios = sum("total_ios");
    // Means over I/Os; fio prints zero if it did not measure.
    let mean = |kind: &str, figure: &dyn Fn(&Value) -> &Value| {
        let of = |side: &&Value| {
            microseconds(side, kind, figure).unwrap_or_default() * number(&side["total_ios"])
        };
        let mean = sides.iter().map(of).sum::<f64>() / ios;
        (mean > 0.0).then(|| rounded(mean))
    };
    (ios > 0.0).then(|| Side {
        direction,
        ios,
        iops: rounded(sum("iops")),
        mb_s: rounded(sides.iter().map(|side| bytes_a_second(side)).sum::<f64>() / 1e6),
        mean_us: mean("lat", &|it| &it["mean"]),
        submission_us: mean("slat", &|it| &it["mean"]),
        completion_us: mean("clat", &|it| &it["mean"]),
        p99_us: mean("clat", &|it| &it["percentile"]["99.000000"]),
    })
}

/// Returns the bytes per second of a direction: fio before 3.6 has only `bw`, in KiB/s.
fn bytes_a_second(side: &Value) -> f64 {
    let told = side["bw_bytes"].as_f64();
    let in_kib = || side["bw"].as_f64().map(|kib| kib * 1024.0);
    told.or_else(in_kib).unwrap_or_default()
}

/// Returns the mean CPU time of a thread; for jobs that report as a group, fio already prints the mean.
fn cpu(members: &[Value]) -> Option<f64> {
    let shares: Vec<f64> = members
        .iter()
        .filter_map(|it| Some((it["usr_cpu"].as_f64()? + it["sys_cpu"].as_f64()?) / 100.0))
        .collect();
    (!shares.is_empty()).then(|| rounded(shares.iter().sum::<f64>() / shares.len() as f64))
}

/// Returns the maximum I/Os in flight of a copy of a job.
pub(crate) fn depth_of(job: &Job) -> u32 {
    match job.engine.asynchronous() {
        true => job.iodepth.max(1),
        false => 1,
    }
}

/// Returns the rate limit of a job's copies in IOPS, over its directions.
fn rate_of(job: &Job) -> Option<f64> {
    let ways: &[usize] = match job.mix {
        Mix::Read => &[0],
        Mix::Write => &[1],
        Mix::ReadWrite => &[0, 1],
        Mix::Trim | Mix::TrimWrite => return None,
    };
    let held = |way: &usize| {
        let block = match job.block_sizes[*way] {
            BlockSizes::Fixed(bytes) => f64::from(bytes),
            _ => return None,
        };
        Some(match job.rate[*way]? {
            Rate::Bytes(bytes) => bytes as f64 / block,
            other => other.iops()?,
        })
    };
    let rates: Option<Vec<f64>> = ways.iter().map(held).collect();
    rates.map(|rates| rates.iter().sum::<f64>() * f64::from(job.numjobs))
}

fn requested_load(jobs: &[Job]) -> Option<RequestedLoad> {
    let first = jobs.first()?;
    let way = usize::from(first.mix == Mix::Write);
    let block = match first.block_sizes[way] {
        BlockSizes::Fixed(bytes) => Some(bytes),
        _ => None,
    };
    let alike = jobs.iter().all(|it| it.block_sizes == first.block_sizes);
    let rates: Option<Vec<f64>> = jobs.iter().map(rate_of).collect();
    let random = if first.random { "rand" } else { "" };
    Some(RequestedLoad {
        rw: match first.mix {
            Mix::Read => format!("{random}read"),
            Mix::Write => format!("{random}write"),
            Mix::ReadWrite => format!("{random}rw"),
            Mix::Trim => format!("{random}trim"),
            Mix::TrimWrite => format!("{random}trimwrite"),
        },
        block_bytes: block.filter(|_| alike),
        in_flight: jobs.iter().map(|job| depth_of(job) * job.numjobs).sum(),
        threads: jobs.iter().map(|job| job.numjobs).sum(),
        rate: rates.map(|rates| rates.iter().sum()),
        engine: first.engine_name.clone(),
    })
}

fn little(sides: &[Side], asked: Option<&RequestedLoad>) -> LittlesLawCheck {
    let each = sides
        .iter()
        .map(|side| Some(side.iops * side.mean_us? / 1e6));
    let in_flight = each
        .collect::<Option<Vec<f64>>>()
        .map(|all| all.iter().sum::<f64>());
    let of_asked = in_flight
        .zip(asked)
        .map(|(is, asked)| is / f64::from(asked.in_flight));
    let holds = of_asked.map(|share| share <= TOO_MANY);
    let text = match (in_flight, asked, holds) {
        (None, ..) => String::from("the file has no latencies, so Little's law cannot be checked"),
        (Some(is), Some(asked), Some(true)) => format!(
            "rate x latency is {:.3} in flight of the requested {}: the figures are consistent",
            is, asked.in_flight
        ),
        (Some(is), Some(asked), _) => format!(
            "rate x latency gives {:.3} I/Os in flight, more than the requested {}: options and results are not from one run",
            is, asked.in_flight
        ),
        (Some(is), ..) => format!(
            "rate x latency is {is:.3} in flight; the file does not state the requested depth"
        ),
    };
    LittlesLawCheck {
        in_flight: in_flight.map(rounded),
        of_asked: of_asked.map(rounded),
        holds,
        text,
    }
}

impl ReportingGroup {
    /// Checks whether its threads poll, so that CPU time shows nothing.
    fn polls(&self) -> bool {
        let polls = |job: &Job| job.high_priority || job.sq_poll || job.engine == Engine::UserSpace;
        self.jobs.iter().any(polls)
    }

    /// Checks whether it is intentionally limited.
    pub(crate) fn is_held(&self) -> bool {
        let asked = self.facts.asked.as_ref();
        let rate = asked.and_then(|asked| asked.rate);
        rate.is_some_and(|rate| self.facts.iops >= HELD * rate)
            || self.jobs.iter().any(|job| job.think.is_some())
    }

    /// Returns the bottleneck according to the file alone.
    pub fn bound(&self) -> Bound {
        let bound = |by, text: String| Bound { by, text };
        let threads = self.facts.asked.as_ref().map(|asked| asked.threads);
        let threads = match threads {
            Some(1) => String::from("one thread"),
            Some(many) => format!("its {many} threads"),
            None => String::from("its threads"),
        };
        if self.is_held() {
            return bound(
                "rate",
                String::from("the rate or pauses that its options ask for"),
            );
        }
        if let Some(text) = self.facts.syncs.as_ref().and_then(SyncTimes::bound) {
            return bound("sync", text);
        }
        if let Some(cpu) = self.facts.cpu.filter(|cpu| *cpu >= BUSY && !self.polls()) {
            let text = format!("{threads}: CPU time is {:.0} % of the time", cpu * 100.0);
            return bound("thread", text);
        }
        let full = self.facts.little.of_asked;
        match (&self.facts.asked, full) {
            (Some(asked), Some(full)) if full < NOT_FULL => bound(
                "thread",
                format!(
                    "{threads}: of {} I/Os that may be in flight {:.0} % are",
                    asked.in_flight,
                    full * 100.0
                ),
            ),
            (Some(asked), _) if asked.in_flight == asked.threads => bound(
                "queue",
                match syncs::synchronous_writes(&self.jobs) {
                    Some(flag) => format!(
                        "its queue: a thread has one I/O in flight, so latency sets the rate; each write is synced ({flag}), and its latency includes the sync"
                    ),
                    None => String::from(
                        "its queue: a thread has one I/O in flight, so latency sets the rate",
                    ),
                },
            ),
            (Some(asked), Some(_)) => bound(
                "unknown",
                format!(
                    "its queue or the drive: all {} are in flight, and the file cannot say whether more would be faster (name the drive with --drive)",
                    asked.in_flight
                ),
            ),
            _ => bound(
                "unknown",
                String::from("unknown: the file has no options of the job, or no latencies"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(options: &str, iops: f64, mean_us: f64, cpu: f64) -> String {
        format!(
            r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "a", "groupid": 0, {options} "usr_cpu": {cpu}, "sys_cpu": 0.0,
            "read": {{"iops": {iops}, "total_ios": 100000, "bw_bytes": 1000, "lat_ns": {{"mean": {}}},
            "clat_ns": {{"mean": 1000}}, "slat_ns": {{"mean": 100}}}}, "write": {{"total_ios": 0}}}}]}}"#,
            mean_us * 1e3
        )
    }

    fn one(options: &str, iops: f64, mean_us: f64, cpu: f64) -> ReportingGroup {
        let options = match options {
            "" => String::new(),
            options => format!(r#""job options": {{{options}}},"#),
        };
        let runs = read("r.json", &file(&options, iops, mean_us, cpu)).expect("fio's");
        runs[0].clone()
    }

    const DEEP: &str =
        r#""rw": "randread", "bs": "4k", "iodepth": "32", "ioengine": "libaio", "direct": "1""#;

    #[test]
    fn the_file_alone_tells_a_thread_from_a_queue() {
        let by = |run: ReportingGroup| run.bound().by;
        assert_eq!(by(one(DEEP, 320_000.0, 100.0, 40.0)), "unknown");
        assert_eq!(by(one(DEEP, 320_000.0, 100.0, 99.0)), "thread");
        assert_eq!(by(one(DEEP, 100_000.0, 100.0, 40.0)), "thread");
        let sync = r#""rw": "randread", "ioengine": "psync", "iodepth": "32""#;
        assert_eq!(by(one(sync, 9_900.0, 100.0, 20.0)), "queue");
        let held = format!(r#"{DEEP}, "rate_iops": "5000""#);
        assert_eq!(by(one(&held, 5_000.0, 100.0, 5.0)), "rate");
        assert_eq!(by(one("", 5_000.0, 100.0, 5.0)), "unknown");
    }

    #[test]
    fn rate_times_latency_is_held_against_what_was_asked() {
        let holds = |iops: f64| one(DEEP, iops, 100.0, 40.0).facts.little.holds;
        assert_eq!(holds(320_000.0), Some(true));
        assert_eq!(holds(400_000.0), Some(false));
        assert_eq!(one("", 1.0, 100.0, 40.0).facts.little.holds, None);
        assert_eq!(one(DEEP, 1.0, 0.0, 40.0).facts.little.in_flight, None);
    }

    /// fio 2 has microseconds; fio 3.1 has bandwidth only in KiB/s.
    #[test]
    fn old_versions_of_fio_are_read() {
        let text = file("", 9_000.0, 0.1, 1.0).replace("_ns", "");
        let runs = read("r.json", &text.replace("fio-3.33", "fio-2.2.10")).expect("fio's");
        assert_eq!(runs[0].facts.sides[0].mean_us, Some(100.0));
        let text = file("", 68_000.0, 100.0, 1.0).replace("\"bw_bytes\": 1000", "\"bw\": 272000");
        let runs = read("r.json", &text).expect("fio's");
        assert_eq!(runs[0].facts.mb_s, 278.528);
    }

    #[test]
    fn figures_that_no_run_has_are_refused() {
        let sound = file("", 9_000.0, 100.0, 1.0);
        for (part, by) in [
            ("\"iops\": 9000", "\"iops\": -9000"),
            ("\"iops\": 9000", "\"iops\": 1e300"),
            ("\"iops\": 9000", "\"iops\": \"many\""),
            ("\"total_ios\": 100000", "\"total_ios\": -1"),
            ("\"mean\": 1000}", "\"mean\": -1000}"),
            ("\"usr_cpu\": 1", "\"usr_cpu\": -1"),
            ("\"groupid\": 0", "\"groupid\": 0, \"error\": 5"),
        ] {
            assert!(sound.contains(part), "{part} in {sound}");
            let said = read("r.json", &sound.replacen(part, by, 1)).expect_err(by);
            assert!(said.to_string().contains("job a: "), "{by}: {said}");
        }
    }

    /// A thread that syncs after each write, by fio 3.33, in which `total_ios` of its syncs is 0.
    #[test]
    fn syncs_that_take_most_of_the_time_bound_a_run() {
        let run = |sync_us: f64| {
            let text = format!(
                r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "w", "groupid": 0, "job_runtime": 2000, "usr_cpu": 1, "sys_cpu": 1,
                "job options": {{"rw": "write", "fdatasync": "1", "ioengine": "psync", "direct": "1"}},
                "read": {{"total_ios": 0}}, "write": {{"iops": 200, "total_ios": 400, "bw_bytes": 819200, "lat_ns": {{"mean": 1400000}}}},
                "sync": {{"total_ios": 0, "lat_ns": {{"mean": {}, "N": 400, "percentile": {{"99.000000": 9000000}}}}}}}}]}}"#,
                sync_us * 1e3
            );
            read("r.json", &text).expect("fio's").remove(0)
        };
        let slow = run(3_600.0);
        let syncs = slow.facts.syncs.as_ref().expect("syncs");
        assert_eq!((syncs.share, syncs.every_us), (Some(0.72), Some(5_000.0)));
        assert_eq!(slow.bound().by, "sync");
        assert!(
            slow.bound()
                .text
                .starts_with("its fdatasync: 3600 us each, of 5000 us")
        );
        assert_ne!(run(1_000.0).bound().by, "sync");
    }
}
