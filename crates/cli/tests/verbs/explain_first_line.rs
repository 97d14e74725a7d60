//! First lines of `drivelab explain` on runs that are far from the model: results of `drivelab run` with every rate
//! multiplied, or explained with another drive.

use std::path::Path;

use serde_json::Value;

use crate::explain::{Results, bound, explained};
use crate::rig::{drivelab_in, text};

/// Multiplies rates and divides latencies of fio's results.
fn scale(value: &mut Value, factor: f64, in_latency: bool) {
    const RATES: [&str; 6] = [
        "iops",
        "bw",
        "bw_bytes",
        "io_bytes",
        "io_kbytes",
        "total_ios",
    ];
    match value {
        Value::Object(all) => {
            for (key, one) in all {
                let latency = in_latency || key.ends_with("lat_ns");
                match one.as_f64() {
                    Some(is) if RATES.contains(&key.as_str()) => {
                        *one = ((is * factor).round() as u64).into()
                    }
                    Some(is) if latency && key != "N" => *one = (is / factor).into(),
                    Some(_) => {}
                    None if key.ends_with("options") => {}
                    None => scale(one, factor, latency),
                }
            }
        }
        Value::Array(all) => all
            .iter_mut()
            .for_each(|one| scale(one, factor, in_latency)),
        _ => {}
    }
}

/// Returns results with every rate multiplied.
fn times(results: Results, factor: f64) -> Results {
    let path = results.0.path().join("r.json");
    let text = std::fs::read_to_string(&path).expect("results");
    let mut all: Value = serde_json::from_str(&text).expect("JSON");
    scale(&mut all, factor, false);
    std::fs::write(&path, all.to_string()).expect("a folder of our own");
    results
}

/// Returns the first two lines, and checks what holds for every first line.
fn lines(folder: &Path, rest: &[&str]) -> [String; 2] {
    let args = [&["explain", "r.json", "--seeds", "1"], rest].concat();
    let output = drivelab_in(folder, &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let mut lines = said.lines().map(String::from);
    let [first, second] = [lines.next(), lines.next()].map(|line| line.expect("two lines"));
    assert!(first.chars().count() <= 160, "{first}");
    assert_eq!(
        first.matches('(').count(),
        first.matches(')').count(),
        "{first}"
    );
    for part in ["model (model", "that the model does not have"] {
        assert!(!said.contains(part), "{part}: {said}");
    }
    [first, second]
}

const FOUR_THREADS: [&str; 3] = ["--iodepth=32", "--numjobs=4", "--group_reporting"];

fn four_threads(drive: &str, rw: &str) -> Results {
    Results::of(drive, &[&[rw][..], &FOUR_THREADS].concat())
}

/// A solid-state drive's result, explained as that of a disk.
#[test]
fn a_result_of_another_drive_is_named_as_such() {
    let results = four_threads("970evo-1000", "--rw=randwrite");
    let [first, second] = lines(results.0.path(), &["wd6001fzwx"]);
    let times = first
        .strip_prefix("a: ")
        .and_then(|it| it.split(' ').next());
    let times: f64 = times.and_then(|it| it.parse().ok()).expect(&first);
    assert!((100.0..200.0).contains(&times), "{first}");
    for part in ["times as fast as the model", "another drive, or a cache"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(
        second.starts_with("One turn of the disk takes 8.33 ms"),
        "{second}"
    );
    assert!(!second.contains("numjobs="), "{second}");
    assert_eq!(bound(&results.explained("wd6001fzwx")), "unknown");
}

/// 24 GB a second do not go through four lanes of PCIe 4.0; CPU time does not matter then.
#[test]
fn a_result_beyond_the_link_is_no_bottleneck() {
    let results = times(four_threads("990pro-2000", "--rw=randread"), 5.0);
    let [first, second] = lines(results.0.path(), &["990pro-2000"]);
    for part in [
        "times as fast as the model",
        "times what its interface allows",
        "another drive, or a cache",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(!first.contains("CPU time"), "{first}");
    assert!(
        second.contains("reads per second of 4 KiB are 24.") && second.contains("GB/s"),
        "{second}"
    );
}

/// A log shows a drop after 39 s: no condition that holds from the start explains that.
#[test]
fn a_drop_in_a_log_comes_before_suppositions() {
    let options = ["--rw=randread", "--iodepth=16"];
    let results = times(Results::of("p4800x-375", &options), 0.65);
    let folder = results.0.path();
    let rate = |second: u32| if second < 40 { 9000 } else { 4000 };
    let line = |second: u32| format!("{}, {}, 0, 4096\n", second * 1000, rate(second));
    let log: String = (1..=100).map(line).collect();
    std::fs::write(folder.join("run_iops.1.log"), log).expect("a folder of our own");
    let [first, _] = lines(folder, &["p4800x-375", "--log", "run_iops.1.log"]);
    assert!(
        first.starts_with("a: the rate fell to 44 % after 39 s: heat, or another user of the drive or host; in the mean "),
        "{first}"
    );
    let [first, _] = lines(folder, &["p4800x-375"]);
    assert!(!first.contains("after 39 s"), "{first}");
}

/// A condition is a supposition with its check; if no single one fits, the line says so first.
#[test]
fn a_slow_result_has_its_factor_and_suppositions() {
    let results = times(four_threads("990pro-2000", "--rw=randread"), 0.4);
    let [first, _] = lines(results.0.path(), &["990pro-2000"]);
    assert!(
        first.starts_with("a: 2.") && first.contains(" times slower than the model"),
        "{first}"
    );
    let single = first.find("no single condition explains it, two fit: if its link runs at");
    assert!(
        single.is_some() && first.contains("(check: lspci -vv)"),
        "{first}"
    );

    let governed = [
        &["--rw=randwrite", "--power-limit", "12W"][..],
        &FOUR_THREADS,
    ]
    .concat();
    let held = Results::of("p4800x-750", &governed);
    let [first, _] = lines(held.0.path(), &["p4800x-750"]);
    assert!(
        first
            .contains(" times slower than the model; it fits if its power governor is set to 12 W"),
        "{first}"
    );
    assert!(first.contains("(check: nvme get-feature -f 2)"), "{first}");

    let alone = Results::of("p4800x-375", &["--rw=randread", "--iodepth=1"]);
    let slow = times(alone, 0.1);
    let [first, second] = lines(slow.0.path(), &["p4800x-375"]);
    assert!(
        first.contains(" times slower than the model; no condition"),
        "{first}"
    );
    assert!(second.contains("nor do two of them together"), "{second}");
}

/// A rate in steady state is a twelfth of the rating of a new drive, and the line says why.
#[test]
fn steady_state_is_told_from_a_fresh_drive() {
    let results = four_threads("970evo-1000", "--rw=randwrite");
    let [first, second] = lines(results.0.path(), &["970evo-1000"]);
    let begin = "a: steady state: a fresh drive does ";
    assert!(
        first.starts_with(begin) && first.contains("(rated 450 k when new)"),
        "{first}"
    );
    assert!(
        second.contains("of the 450 k IOPS that 970evo-1000 is rated at"),
        "{second}"
    );
    assert!(second.contains("on a new drive"), "{second}");
    // A fresh drive's result needs no such words, nor one of reads.
    let [first, _] = lines(results.0.path(), &["970evo-1000", "--state", "fresh"]);
    assert!(
        first.contains("it fits if the drive was in steady state"),
        "{first}"
    );
    let reads = four_threads("970evo-1000", "--rw=randread");
    let [first, _] = lines(reads.0.path(), &["970evo-1000"]);
    assert!(!first.contains("steady state"), "{first}");
    let all = explained(
        reads.0.path(),
        &["explain", "r.json", "970evo-1000", "--seeds", "1", "--json"],
    );
    assert_eq!(all["answers"][0]["model"]["gap"]["beyond_model"], false);
}
