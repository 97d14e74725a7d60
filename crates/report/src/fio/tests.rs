//! fio's text and JSON of runs, as fio itself would print them.

use model::{Span, Time};
use serde_json::Value;

use super::*;
use lab::{Interval, Measured, ThreadOutcome};
use workload::job::{LatencyTarget, Mix, Unified};

/// Returns `ios` I/Os of 4 KiB in two seconds, of 10, 11, ... 109 us in turn, of which 1 us is submission; every tenth
/// takes ten times as long.
fn measured(ios: u64) -> Measured {
    let mut measured = Measured {
        ios,
        bytes: ios * 4096,
        over: Span::from_seconds(2.0),
        ..Measured::default()
    };
    for io in 0..ios {
        let long = if io % 10 == 9 { 10 } else { 1 };
        let latency = Span::from_us((10 + io % 100) * long);
        measured.latency.record(latency);
        measured.submission.record(Span::from_us(1));
        measured
            .completion
            .record(latency.saturating_sub(Span::from_us(1)));
    }
    // Four half seconds with a quarter of the I/Os each, except for a hundred more in the second than in the third.
    for ios in [ios / 4, ios / 4 + 50, ios / 4 - 50, ios / 4] {
        measured.series.push(Interval {
            ios,
            bytes: ios * 4096,
            ..Interval::default()
        });
    }
    measured
}

fn thread(job: usize, copy: u32, group: u32) -> ThreadOutcome {
    ThreadOutcome {
        job,
        copy,
        group,
        started: Time::ZERO,
        ended: Time::from_ns(2_000_000_000),
        read: measured(10_000),
        write: Measured::default(),
        trim: Measured::default(),
        sync: Measured::default(),
        depths: [1, 1, 9_998, 0, 0, 0, 0],
        cpu: [Span::from_ms(100), Span::from_ms(500)],
        latency_depth: None,
        steady_at: None,
        arrived: None,
    }
}

fn two_jobs() -> (Vec<Job>, Outcome) {
    let first = Job {
        name: "readers".into(),
        random: true,
        numjobs: 2,
        group_reporting: true,
        iodepth: 4,
        thread: true,
        as_written: vec![("rw".into(), "randread".into())],
        ..Job::default()
    };
    let second = Job {
        name: "mixed".into(),
        stonewall: true,
        mix: Mix::ReadWrite,
        latency_target: Some(LatencyTarget {
            target: Span::from_us(200),
            window: Span::from_ms(5),
            percentile: 99.0,
            run: false,
        }),
        ..Job::default()
    };
    let mut last = thread(1, 0, 1);
    last.write = measured(5_000);
    last.sync.latency.record(Span::from_us(30));
    last.sync.ios = 1;
    let outcome = Outcome {
        threads: vec![thread(0, 0, 0), thread(0, 1, 0), last],
        end: Time::from_ns(4_000_000_000),
        members: Vec::new(),
        over_time: lab::OverTime::default(),
        gauges: Vec::new(),
        counted: Span::from_seconds(4.0),
        stopped: false,
        phases: Vec::new(),
        rebuilds: Vec::new(),
        of: lab::OutcomeDetail::Jobs,
    };
    (vec![first, second], outcome)
}

fn printed(jobs: &[Job], outcome: &Outcome, formats: &str) -> String {
    let globals = [("ioengine".to_string(), "libaio".to_string())];
    let report = Report {
        jobs,
        globals: &globals,
        outcome,
        drive: "some-drive",
        members: &[],
        series_every: Span::from_ms(500),
    };
    print(&report, formats.parse().expect("a list of formats"))
}

fn json_of(jobs: &[Job], outcome: &Outcome, formats: &str) -> Value {
    serde_json::from_str(&printed(jobs, outcome, formats)).expect("JSON")
}

#[test]
fn text_of_two_jobs() {
    let (jobs, outcome) = two_jobs();
    insta::assert_snapshot!(printed(&jobs, &outcome, "normal"));
}

#[test]
fn figures_in_json_are_those_of_the_run() {
    let (jobs, outcome) = two_jobs();
    let root = json_of(&jobs, &outcome, "json+");
    assert_eq!(root["fio version"], "fio-3.33");
    assert_eq!(root["time"], "Thu Jan  1 00:00:04 1970");
    assert_eq!(root["global options"]["ioengine"], "libaio");
    assert_eq!(root["jobs"].as_array().map(Vec::len), Some(2));
    let readers = &root["jobs"][0];
    assert_eq!(readers["job options"]["rw"], "randread");
    let read = &readers["read"];
    // Two concurrent copies: their I/Os and rates add up, their times do not.
    assert_eq!(read["total_ios"], 20_000);
    assert_eq!(read["io_bytes"], 20_000 * 4096);
    assert_eq!(read["runtime"], 2_000);
    assert_eq!(read["iops"], 10_000.0);
    assert_eq!(read["bw_bytes"], 10_000 * 4096);
    assert_eq!(read["bw"], 40_000);
    assert_eq!(read["slat_ns"]["mean"], 1_000.0);
    assert_eq!(read["clat_ns"]["min"], 9_000);
    assert_eq!(read["clat_ns"]["max"], 1_089_000);
    assert_eq!(read["lat_ns"]["N"], 20_000);
    // 4,900 to 5,100 IOPS in the samples of each copy, as sums.
    assert_eq!(
        (&read["iops_min"], &read["iops_max"]),
        (&9_800.into(), &10_200.into())
    );
    assert_eq!(read["iops_samples"], 8);
    assert_eq!(read["bw_mean"], 40_000.0);
    assert_eq!(read["bw_agg"], 100.0);
    assert_eq!(readers["usr_cpu"], 5.0);
    assert_eq!(readers["sys_cpu"], 25.0);
    assert_eq!(readers["job_runtime"], 4_000);
    assert_eq!(readers["iodepth_level"][">=64"], 0.0);
    assert_eq!(readers["latency_depth"], 4);
    let bins = read["clat_ns"]["bins"].as_object().expect("bins");
    assert_eq!(bins.values().filter_map(Value::as_u64).sum::<u64>(), 20_000);
    let classes: f64 = ["latency_ns", "latency_us", "latency_ms"]
        .iter()
        .flat_map(|unit| readers[*unit].as_object().expect("classes").values())
        .filter_map(Value::as_f64)
        .sum();
    assert!((classes - 100.0).abs() < 1e-6, "{classes}");
    let mixed = &root["jobs"][1];
    assert_eq!(mixed["groupid"], 1);
    assert_eq!(mixed["latency_target"], 200_000);
    assert_eq!(mixed["latency_window"], 5_000);
    assert_eq!(mixed["sync"]["lat_ns"]["min"], 30_000);
    assert_eq!(mixed["sync"]["lat_ns"]["percentile"]["50.000000"], 30_080);
    assert_eq!(root["disk_util"][0]["read_ios"], 30_000);
}

/// Observed with fio 3.33: name and units are those of the first job of a group, percentiles and target those of the
/// last.
#[test]
fn the_last_job_of_a_group_says_which_percentiles_are_shown() {
    let (mut jobs, mut outcome) = two_jobs();
    jobs[0].percentile_list = vec![50.0, 90.0];
    jobs[1].percentile_list = vec![99.0, 99.9];
    jobs[1].reporting.percentile_digits = 1;
    jobs[1].group_reporting = true;
    outcome.threads[2].group = 0;
    let text = printed(&jobs, &outcome, "normal");
    assert!(text.contains("99.9th=["), "{text}");
    assert!(!text.contains("50.0"), "{text}");
    let group = &json_of(&jobs, &outcome, "json")["jobs"][0];
    assert_eq!(group["jobname"], "readers");
    let shown = group["read"]["clat_ns"]["percentile"].as_object();
    let names: Vec<&String> = shown.expect("percentiles").keys().collect();
    assert_eq!(names, ["99.000000", "99.900000"]);
    assert_eq!(group["latency_target"], 200_000);
}

#[test]
fn json_has_bins_only_if_asked() {
    let (jobs, outcome) = two_jobs();
    assert!(!printed(&jobs, &outcome, "json").contains("bins"));
    assert!(printed(&jobs, &outcome, "json,normal").starts_with("readers: (g=0)"));
    assert!("json,terse".parse::<Formats>().is_err());
    assert!("jsn".parse::<Formats>().is_err());
}

#[test]
fn unified_directions_are_one() {
    let (mut jobs, outcome) = two_jobs();
    jobs[1].reporting.unified = Unified::Mixed;
    let root = json_of(&jobs, &outcome, "json");
    let mixed = &root["jobs"][1];
    assert_eq!(mixed["mixed"]["total_ios"], 15_000);
    assert!(mixed.get("read").is_none() && mixed.get("sync").is_none());
    jobs[1].reporting.unified = Unified::Both;
    let root = json_of(&jobs, &outcome, "json");
    assert_eq!(root["jobs"][1]["mixed"]["total_ios"], 15_000);
    assert_eq!(root["jobs"][1]["write"]["total_ios"], 5_000);
}

#[test]
fn what_is_disabled_is_left_out() {
    let (mut jobs, outcome) = two_jobs();
    jobs[1].reporting.disable_clat = true;
    jobs[1].reporting.disable_bw = true;
    let read = &json_of(&jobs, &outcome, "json")["jobs"][1]["read"];
    assert_eq!(read["clat_ns"]["N"], 0);
    assert_eq!(read["bw_samples"], 0);
    assert_eq!(read["lat_ns"]["N"], 10_000);
}

#[test]
fn an_empty_run_is_printed() {
    let jobs = [Job::default()];
    let outcome = Outcome {
        threads: vec![ThreadOutcome {
            read: Measured::default(),
            ended: Time::ZERO,
            depths: [0; 7],
            ..thread(0, 0, 0)
        }],
        ..Outcome::default()
    };
    assert_eq!(
        json_of(&jobs, &outcome, "json")["jobs"][0]["read"]["iops"],
        0.0
    );
    assert!(printed(&jobs, &outcome, "normal").contains("Run status group 0"));
}
