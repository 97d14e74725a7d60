//! Plausibility checks of fio results. Figures that contradict each other or their options would otherwise be fitted
//! to as if a drive had produced them.
//!
//! - Little's law: IOPS times mean latency equals the I/Os in flight. This is never more than the options allow. For
//!   an asynchronous job without a rate limit it is not far less.
//! - Percentiles do not decrease, means lie between the extremes, and IOPS are I/Os divided by the runtime.
//! - Directions and block sizes are those of the options.
//! - fio has ended the job without an error.
//!
//! Ramps affect fio's counts. With a ramp before the counted time, fio counts the bytes of I/Os that were in flight
//! when counting began, but not the I/Os themselves. (`total_io_u` is counted when they are queued, `io_bytes` when
//! they complete; observed with fio 3.33.) Bandwidth divided by IOPS then exceeds the block size by up to the queue
//! depth. This is visible in runs of tens of milliseconds.
//!
//! Not checked: what requires access to the drive (which device produced the results), and bandwidth that is plausible
//! but wrong.

use serde_json::Value;
use workload::job::{BlockSizes, Job, Mix, SyncMode};

/// Tolerance for fio's rounding, and for the ends of a run, which count on one side only.
const ROUNDING: f64 = 0.05;
/// Tolerance for short runs. The latency of I/Os in flight when counting began or ended is counted, but their time is
/// not: in a run of 0.1 s, fio itself is off by an eighth.
const ENDS: f64 = 0.25;
/// A thread with a busy core has half its I/Os in flight. If the share is below this value, something else is wrong.
const FEWEST_OF_DEPTH: f64 = 0.25;
/// Runs shorter than this, in milliseconds, consist mostly of their ends.
const SHORTEST_MS: f64 = 100.0;
/// Queue depth at and above which too few I/Os in flight are reported. Below it, fio's own work between two I/Os
/// matters.
const DEEP: f64 = 4.0;

/// Returns a number of an object, if it is present.
fn number(side: &Value, key: &str) -> Option<f64> {
    side[key].as_f64()
}

/// Returns one latency statistic in microseconds. fio reports nanoseconds since 3.0 and microseconds before.
pub(crate) fn microseconds(side: &Value, kind: &str, of: impl Fn(&Value) -> &Value) -> Option<f64> {
    let since_3 = of(&side[format!("{kind}_ns")]).as_f64();
    since_3
        .map(|ns| ns / 1e3)
        .or_else(|| of(&side[kind]).as_f64())
}

/// Returns all contradictions in one reporting group: the finding, and what would be right. `has_ramp`: counting began
/// while the jobs ran.
pub(super) fn contradictions(
    jobs: &[Job],
    members: &[Value],
    has_ramp: bool,
) -> Vec<(String, &'static str)> {
    let mut all = impossible(members);
    all.extend(beyond_options(jobs, members, has_ramp));
    all.extend(too_few_in_flight(jobs, members));
    all.dedup();
    all
}

/// As [`contradictions`], without impossible figures, which have a check of their own, and without too few I/Os in flight:
/// a synchronous engine, or a drive that is idle, may be the reason.
pub(crate) fn beyond_options(
    jobs: &[Job],
    members: &[Value],
    has_ramp: bool,
) -> Vec<(String, &'static str)> {
    let uncounted = if has_ramp { queued(jobs) } else { 0.0 };
    let mut all = Vec::new();
    for (index, key) in ["read", "write"].into_iter().enumerate() {
        for side in members.iter().map(|member| &member[key]) {
            all.extend(of_options((key, index), side, jobs, uncounted));
        }
    }
    all.extend(too_many_in_flight(jobs, members));
    all.dedup();
    all
}

/// Objects of a job's results that contain figures of I/O.
const SIDES: [&str; 5] = ["read", "write", "trim", "sync", "mixed"];

/// Returns values that are impossible whatever the options: an error that ended the job, and figures that no run has.
pub(crate) fn impossible(members: &[Value]) -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    for member in members {
        if let Some(error) = member["error"].as_i64().filter(|&error| error != 0) {
            all.push((
                format!("fio ended the job with error {error}"),
                "measure it again: its figures only cover the I/Os before the error",
            ));
        }
        for key in ["usr_cpu", "sys_cpu", "job_runtime"] {
            all.extend(absurd(key, &member[key]));
        }
        for key in SIDES {
            all.extend(negative(key, &member[key]));
        }
        for key in ["read", "write", "mixed"] {
            all.extend(of_side(key, &member[key]));
        }
    }
    all.dedup();
    all
}

/// Figures of a direction that must be numbers.
const FIGURES: [&str; 6] = ["io_bytes", "bw_bytes", "bw", "iops", "runtime", "total_ios"];
/// Above any figure of a run: more than the I/Os, bytes and nanoseconds of a century.
const MOST: f64 = 4e18;
/// IOPS above those of any device.
const MOST_IOPS: f64 = 1e10;
const AS_WRITTEN: &str = "take the file as fio wrote it";

/// Returns the first figure of a direction that is negative, too large or not a number.
fn negative(key: &str, side: &Value) -> Option<(String, &'static str)> {
    let figures = FIGURES.into_iter().find_map(|name| {
        let most = if name == "iops" { MOST_IOPS } else { MOST };
        let figure = &side[name];
        let wrong = match figure.as_f64() {
            Some(number) => !(0.0..=most).contains(&number),
            None => !figure.is_null(),
        };
        wrong.then(|| (format!("{key}: {name} is {figure}"), AS_WRITTEN))
    });
    let latencies = || {
        let kinds = ["slat", "clat", "lat", "slat_ns", "clat_ns", "lat_ns"];
        kinds.into_iter().find_map(|kind| {
            // Without I/Os, fio may print the initial values of its extremes.
            if side[kind]["N"] == 0 {
                return None;
            }
            let statistics = side[kind].as_object()?;
            let percentiles = side[kind]["percentile"].as_object();
            let all = statistics.iter().chain(percentiles.into_iter().flatten());
            let number = |value: &Value| value.as_f64();
            let (name, figure) = all
                .filter_map(|(name, value)| Some((name, number(value)?)))
                .find(|(_, figure)| !(0.0..=1.9e19).contains(figure))?;
            Some((format!("{key}: {name} of {kind} is {figure}"), AS_WRITTEN))
        })
    };
    figures.or_else(latencies)
}

/// Returns a figure of the job itself that is negative or larger than a thread can have.
fn absurd(key: &str, figure: &Value) -> Option<(String, &'static str)> {
    let most = if key == "job_runtime" { MOST } else { 1_000.0 };
    let wrong = match figure.as_f64() {
        Some(number) => !(0.0..=most).contains(&number),
        None => !figure.is_null(),
    };
    wrong.then(|| (format!("{key} is {figure}"), AS_WRITTEN))
}

/// Returns the contradictions within the figures of one direction.
fn of_side(key: &str, side: &Value) -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    let ios = number(side, "total_ios").unwrap_or_default();
    let iops = number(side, "iops").unwrap_or_default();
    if iops > 0.0 && ios == 0.0 {
        all.push((
            format!("{iops:.0} {key} IOPS, and not one I/O (`total_ios` is 0)"),
            AS_WRITTEN,
        ));
    }
    if let Some(runtime) = number(side, "runtime").filter(|&ms| ms >= SHORTEST_MS && ios > 0.0) {
        let counted = ios / runtime * 1e3;
        if (iops / counted - 1.0).abs() > ROUNDING {
            all.push((
                format!(
                    "{iops:.0} {key} IOPS, where {ios:.0} I/Os in {runtime:.0} ms are {counted:.0}"
                ),
                AS_WRITTEN,
            ));
        }
        all.extend(longer_than_the_run(key, side, runtime));
        all.extend(bandwidth(key, side, runtime));
    }
    if ios == 0.0 {
        return all;
    }
    for kind in ["clat", "lat"] {
        let of = |name: &str| microseconds(side, kind, |statistics| &statistics[name]);
        if let (Some(min), Some(mean), Some(max)) = (of("min"), of("mean"), of("max"))
            && max > 0.0
            && !(min * (1.0 - ROUNDING)..=max * (1.0 + ROUNDING)).contains(&mean)
        {
            all.push((
                format!("{key} latency (`{kind}`): the mean {mean:.1} us is not between the minimum {min:.1} and the maximum {max:.1}"),
                AS_WRITTEN,
            ));
        }
        all.extend(falling(key, kind, side));
    }
    all
}

/// Finds a mean latency that is longer than the run, so that not one I/O fits into it. Alone in flight, an I/O takes
/// at most as long as the run.
fn longer_than_the_run(key: &str, side: &Value, runtime_ms: f64) -> Option<(String, &'static str)> {
    let mean = microseconds(side, "lat", |statistics| &statistics["mean"])? / 1e3;
    (mean > 2.0 * runtime_ms + 60e3).then(|| {
        (
            format!("{key} latency: a mean of {mean:.0} ms in a run of {runtime_ms:.0} ms"),
            AS_WRITTEN,
        )
    })
}

/// Finds a bandwidth that differs from bytes divided by runtime. fio 2 counted `io_bytes` in KiB and has no
/// `bw_bytes`.
fn bandwidth(key: &str, side: &Value, runtime_ms: f64) -> Option<(String, &'static str)> {
    let bytes = number(side, "io_bytes")?;
    let is = number(side, "bw_bytes")?;
    let counted = bytes / runtime_ms * 1e3;
    ((is - counted).abs() > counted * ROUNDING + 2048.0).then(|| {
        (
            format!("{is:.0} bytes/s of {key}s, where {bytes:.0} bytes in {runtime_ms:.0} ms are {counted:.0}"),
            AS_WRITTEN,
        )
    })
}

/// Finds the first percentile that is below a preceding one.
fn falling(key: &str, kind: &str, side: &Value) -> Option<(String, &'static str)> {
    let since_3 = &side[format!("{kind}_ns")]["percentile"];
    let listed = match since_3.is_object() {
        true => since_3,
        false => &side[kind]["percentile"],
    };
    let mut percentiles: Vec<(f64, f64)> = listed
        .as_object()?
        .iter()
        .filter_map(|(percent, value)| Some((percent.parse().ok()?, value.as_f64()?)))
        // fio prints 0 for percentiles that were not requested.
        .filter(|&(percent, _)| percent > 0.0)
        .collect();
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    let wrong = percentiles.windows(2).find(|pair| pair[1].1 < pair[0].1)?;
    Some((
        format!(
            "{key} latency (`{kind}`): percentile {} is below percentile {}",
            wrong[1].0, wrong[0].0
        ),
        AS_WRITTEN,
    ))
}

/// Returns the maximum number of I/Os in flight of asynchronous jobs.
fn queued(jobs: &[Job]) -> f64 {
    let asynchronous = jobs.iter().filter(|job| job.engine.asynchronous());
    let each = asynchronous.map(|job| f64::from(job.iodepth) * f64::from(job.numjobs));
    each.sum()
}

/// Returns the ways in which one direction contradicts the options. For the given number of I/Os, bytes may be counted
/// without the I/O.
fn of_options(
    (key, index): (&str, usize),
    side: &Value,
    jobs: &[Job],
    uncounted: f64,
) -> Option<(String, &'static str)> {
    const HELP: &str = "options and results are from different runs: take both from one fio result, with one job per reporting group";
    let ios = number(side, "total_ios").unwrap_or_default();
    if ios == 0.0 || jobs.is_empty() || jobs.iter().any(|job| job.iolog.is_some()) {
        return None;
    }
    let does = |job: &&Job| match job.mix {
        Mix::Read => index == 0,
        Mix::Write | Mix::TrimWrite => index == 1,
        Mix::Trim => false,
        Mix::ReadWrite => true,
    };
    let asked: Vec<&Job> = jobs.iter().filter(does).collect();
    if asked.is_empty() {
        return Some((
            format!("{ios:.0} {key}s, and the options ask for none"),
            HELP,
        ));
    }
    let bytes = number(side, "bw_bytes").or_else(|| Some(number(side, "bw")? * 1024.0))?;
    let iops = number(side, "iops").filter(|&iops| iops > 0.0)?;
    // Bandwidth is rounded to whole KiB/s, so a few I/Os per second are not enough for a check.
    if bytes < 100.0 * 1024.0 {
        return None;
    }
    let sizes = asked.iter().map(|job| extremes(&job.block_sizes[index]));
    let (least, most) = sizes.fold((u32::MAX, 0), |all, one| {
        (all.0.min(one.0), all.1.max(one.1))
    });
    let block = bytes / iops;
    let more = 1.0 + uncounted / ios;
    let within = f64::from(least) * (1.0 - ROUNDING)..=f64::from(most) * more * (1.0 + ROUNDING);
    (!within.contains(&block)).then(|| {
        let asked = match least == most {
            true => format!("{least}"),
            false => format!("{least} to {most}"),
        };
        (
            format!("{key}s of {block:.0} bytes (bandwidth over IOPS), where the options ask for {asked}"),
            HELP,
        )
    })
}

/// Returns the smallest and the largest block size.
fn extremes(sizes: &BlockSizes) -> (u32, u32) {
    match sizes {
        BlockSizes::Fixed(bytes) => (*bytes, *bytes),
        BlockSizes::Range { min, max, .. } => (*min, *max),
        BlockSizes::Split(parts) => {
            let sizes = parts.iter().map(|&(bytes, _)| bytes);
            (
                sizes.clone().min().unwrap_or(1),
                sizes.max().unwrap_or(u32::MAX),
            )
        }
    }
}

/// Returns the I/Os that the options keep in flight at most, and those that were, by Little's law over all directions.
fn in_flight(jobs: &[Job], members: &[Value]) -> (f64, f64) {
    let depth: f64 = jobs
        .iter()
        .map(|job| f64::from(job.iodepth) * f64::from(job.numjobs))
        .sum();
    let of_side = |side: &Value| {
        let iops = number(side, "iops")?;
        let mean = microseconds(side, "lat", |statistics| &statistics["mean"])?;
        Some(iops * mean / 1e6)
    };
    let sides = members
        .iter()
        .flat_map(|member| ["read", "write"].map(|key| &member[key]));
    (depth, sides.filter_map(of_side).sum())
}

fn too_many_in_flight(jobs: &[Job], members: &[Value]) -> Option<(String, &'static str)> {
    let (depth, found) = in_flight(jobs, members);
    (depth > 0.0 && found > depth * (1.0 + ENDS)).then(|| {
        (
            format!(
                "by Little's law {found:.1} I/Os were in flight (IOPS x mean latency), and the options keep {depth:.0} at most"
            ),
            "one job to a reporting group (`stonewall`); of several with `group_reporting` fio prints only the first one's options",
        )
    })
}

fn too_few_in_flight(jobs: &[Job], members: &[Value]) -> Option<(String, &'static str)> {
    let (depth, found) = in_flight(jobs, members);
    let is_held_back = |job: &Job| {
        job.rate.iter().any(Option::is_some)
            || job.think.is_some()
            || job.fsync > 0
            || job.fdatasync > 0
            || job.sync != SyncMode::None
            || job.latency_target.is_some()
            || job.iolog.is_some()
            || matches!(job.mix, Mix::Trim | Mix::TrimWrite)
            || job.iodepth_low < job.iodepth
            || job.iodepth_batch > 1
            || as_written(job, "direct").is_none_or(|direct| direct == "0")
    };
    let all_run = jobs
        .iter()
        .all(|job| f64::from(job.iodepth) >= DEEP && !is_held_back(job));
    (all_run && found > 0.0 && found < depth * FEWEST_OF_DEPTH).then(|| {
        (
            format!("by Little's law {found:.2} I/Os were in flight (IOPS x mean latency), where the options keep {depth:.0}"),
            "results of another run, or a host too busy to keep its queue: measure it again",
        )
    })
}

/// Returns an option as it was written.
fn as_written<'a>(job: &'a Job, key: &str) -> Option<&'a str> {
    let written = job.as_written.iter().rev();
    let mut found = written.filter(|(known, _)| known == key);
    found.next().map(|(_, value)| &**value)
}

#[cfg(test)]
mod tests {
    use super::super::measured::read;

    /// Returns consistent results of one read job at QD32, with one part replaced.
    fn said(part: &str, by: &str) -> String {
        let text = r#"{"fio version": "fio-3.36", "jobs": [{"jobname": "deep", "groupid": 0,
            "job options": {"rw": "randread", "ioengine": "libaio", "direct": "1", "bs": "4k", "iodepth": "32"},
            "read": {"iops": 500000.0, "bw_bytes": 2048000000, "runtime": 30000, "total_ios": 15000000,
              "lat_ns": {"min": 8000, "mean": 63000.0, "max": 900000},
              "clat_ns": {"min": 8000, "mean": 62000.0, "max": 900000,
                "percentile": {"0.00": 0, "50.000000": 60000, "99.000000": 90000, "99.900000": 120000}}},
            "write": {"iops": 0, "total_ios": 0}}]}"#;
        assert!(text.contains(part), "{part}");
        match read("r.json", &text.replace(part, by)) {
            Ok(_) => String::from("sound"),
            Err(problems) => problems.to_string(),
        }
    }

    #[test]
    fn what_agrees_is_taken() {
        assert_eq!(said("deep", "deep"), "sound");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (part, by, words) in [
            (
                r#""iodepth": "32""#,
                r#""iodepth": "16""#,
                "31.5 I/Os were in flight",
            ),
            (
                r#""mean": 63000.0"#,
                r#""mean": 9000.0"#,
                "4.50 I/Os were in flight",
            ),
            (
                r#""99.000000": 90000"#,
                r#""99.000000": 9000"#,
                "percentile 99 is below percentile 50",
            ),
            (
                r#""total_ios": 15000000"#,
                r#""total_ios": 0"#,
                "not one I/O",
            ),
            (
                r#""total_ios": 15000000"#,
                r#""total_ios": 1500000"#,
                "1500000 I/Os in 30000 ms are 50000",
            ),
            (r#""bs": "4k""#, r#""bs": "8k""#, "reads of 4096 bytes"),
            (
                r#""groupid": 0"#,
                r#""groupid": 0, "error": 5"#,
                "ended the job with error 5",
            ),
            (
                r#""rw": "randread""#,
                r#""rw": "randwrite""#,
                "the options ask for none",
            ),
            (
                r#""mean": 62000.0"#,
                r#""mean": 990000.0"#,
                "between the minimum 8.0",
            ),
        ] {
            let said = said(part, by);
            assert!(said.contains(words), "{by}: {said}");
        }
    }

    /// A run of fio 3.33 with 60 ms of ramp and 60 ms of counted time: 474 I/Os, and the bytes of 598.
    #[test]
    fn bytes_of_what_was_in_flight_when_counting_began_are_fios_own() {
        let said = |ramp: &str, block: &str| {
            let text = r#"{"fio version": "fio-3.33", "global options": {"ioengine": "libaio"}, "jobs": [{"jobname": "a", "groupid": 0,
                "job options": {"rw": "randread", "direct": "1", "bs": "BLOCK", "iodepth": "32", "numjobs": "4", RAMP "runtime": "60ms"},
                "read": {"io_bytes": 39190528, "bw_bytes": 395863919, "iops": 4787.878788, "runtime": 99, "total_ios": 474,
                  "lat_ns": {"min": 1668585, "mean": 23515029.505017, "max": 55071530},
                  "clat_ns": {"min": 1610256, "mean": 23494390.742475, "max": 55064467}},
                "write": {"iops": 0, "total_ios": 0}}]}"#;
            let text = text.replace("RAMP", ramp).replace("BLOCK", block);
            let problems = read("r.json", &text).err();
            problems.map_or_else(|| String::from("sound"), |all| all.to_string())
        };
        let ramp = r#""ramp_time": "60ms","#;
        assert_eq!(said(ramp, "64k"), "sound");
        // Without a ramp no I/O was in flight. A difference that the queue does not explain is still a contradiction.
        for (ramp, block) in [("", "64k"), (ramp, "32k")] {
            let said = said(ramp, block);
            assert!(
                said.contains("bandwidth over IOPS"),
                "{ramp} {block}: {said}"
            );
        }
    }

    /// A rate limit or fsync keeps fewer I/Os in flight than the depth, without a contradiction.
    #[test]
    fn what_is_held_back_may_have_few_in_flight() {
        let slow = r#""direct": "1", "rate_iops": "500000", "bs": "4k", "iodepth": "512""#;
        assert_eq!(
            said(r#""direct": "1", "bs": "4k", "iodepth": "32""#, slow),
            "sound"
        );
    }

    /// fio before 3.0 reported latencies in microseconds.
    #[test]
    fn results_of_fio_2_are_in_microseconds() {
        let text = r#"{"fio version": "fio-2.16", "jobs": [{"jobname": "one", "groupid": 0,
            "job options": {"rw": "randread", "ioengine": "libaio", "direct": "1", "bs": "4k"},
            "read": {"io_bytes": 1200000, "bw": 40000, "iops": 10000.0, "runtime": 30000, "total_ios": 300000,
              "lat": {"min": 50, "mean": 95.0, "max": 900},
              "clat": {"min": 50, "mean": 90.0, "max": 900,
                "percentile": {"50.000000": 88, "99.000000": 120, "99.900000": 300}}},
            "write": {"iops": 0, "total_ios": 0}}]}"#;
        let runs = read("r.json", text).expect("fio's");
        let values: Vec<f64> = runs[0].targets.iter().map(|target| target.value).collect();
        assert_eq!(values, [10_000.0, 95.0, 88.0, 120.0, 300.0]);
    }
}
