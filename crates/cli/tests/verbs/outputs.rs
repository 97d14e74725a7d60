//! Output of every deciding subcommand: a table with model, seeds and the command that repeats it; JSON with
//! intervals; CSV; a page if a chart helps; exit code 3 if a limit is not met.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::rig::{drivelab, drivelab_in, text};

/// A subcommand with a short question, and arguments for which a limit is not met.
struct Verb {
    asked: &'static [&'static str],
    missed: &'static [&'static str],
}

const VERBS: [Verb; 6] = [
    Verb {
        asked: &["max", "p4800x-375", "--slo", "p99=50us", "--ios", "8000"],
        missed: &["max", "p4800x-375", "--slo", "p99=1us", "--ios", "8000"],
    },
    Verb {
        asked: &[
            "choose",
            "p4800x-375",
            "950pro-256",
            "--load",
            "web",
            "--slo",
            "p99<5ms",
            "--runtime",
            "20ms",
        ],
        missed: &[
            "choose",
            "950pro-256",
            "--load",
            "web",
            "--slo",
            "p99<1us",
            "--runtime",
            "20ms",
        ],
    },
    Verb {
        asked: &["life", "p4800x-375", "--writes", "1MB/s"],
        missed: &["life", "950pro-256", "--writes", "20MB/s"],
    },
    Verb {
        asked: &[
            "size",
            "read-cache",
            "p4800x-375",
            "--main",
            "950pro-256",
            "--trace",
            "t.csv",
            "--slo",
            "read.p99<1s",
        ],
        missed: &[
            "size",
            "read-cache",
            "p4800x-375",
            "--main",
            "950pro-256",
            "--trace",
            "t.csv",
            "--slo",
            "read.p99<1us",
        ],
    },
    Verb {
        asked: &["check", "etcd", "p4800x-375"],
        missed: &["check", "etcd", "wd6001fzwx"],
    },
    Verb {
        asked: &["explain", "r.json", "p4800x-375"],
        missed: &[],
    },
];

/// Returns reads, and every fourth request a write, at the beginning of an hour.
fn trace(requests: u32) -> String {
    let mut text = String::new();
    for index in 0..requests {
        let op = if index % 4 == 3 { "Write" } else { "Read" };
        let (ticks, block) = (
            128_166_372_000_000_000 + u64::from(index) * 10_000,
            index * 37 % 900,
        );
        let _ = writeln!(
            text,
            "{ticks},host,0,{op},{},4096,0",
            u64::from(block) * 4096
        );
    }
    text
}

/// Returns a folder with a trace and a run's results.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("t.csv"), trace(4_000)).expect("a folder of our own");
    let run = [
        "run",
        "p4800x-375",
        "--name=a",
        "--ioengine=libaio",
        "--rw=randread",
        "--iodepth=4",
        "--direct=1",
        "--time_based",
        "--runtime=50ms",
        "--output-format=json",
        "--output=r.json",
    ];
    let output = drivelab_in(folder.path(), &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    folder
}

fn is_told(folder: &Path, verb: &Verb) {
    let seeds = ["--seeds", "2", "--csv", "a.csv"];
    let page = ["--output", "a.html"];
    let args = [verb.asked, &seeds, &page].concat();
    let output = drivelab_in(folder, &args);
    let (said, name) = (text(&output.stdout), verb.asked[0]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{name}: {}",
        text(&output.stderr)
    );
    for part in ["seeds 1 to 2", ": model ", "\nRepeat: drivelab "] {
        assert!(said.contains(part), "{name}: {part}: {said}");
    }
    let again = said
        .lines()
        .last()
        .and_then(|it| it.strip_prefix("Repeat: drivelab "));
    let words = again.expect("the last line").split(' ').count();
    assert_eq!(words, args.len(), "{name}: {said}");
    let csv = std::fs::read_to_string(folder.join("a.csv")).expect("a table");
    let first = csv.lines().next().expect("names");
    assert!(
        first.split(',').any(|it| it == "drive") && first.contains("model"),
        "{name}: {first}"
    );
    assert!(csv.lines().count() > 1, "{name}: {csv}");
    let page = std::fs::read_to_string(folder.join("a.html")).expect("a page");
    assert!(
        page.contains("<svg class=\"chart slim\"")
            && ["Repeat: drivelab", "Repeat: <code class=\"again\">drivelab"]
                .iter()
                .any(|again| page.contains(again)),
        "{name}"
    );
    // Tables are tables, for those who cannot see their columns.
    assert!(
        page.contains("<th scope=\"col\"") && page.contains("<th scope=\"row\""),
        "{name}"
    );
    assert!(!page.contains("<pre"), "{name}");
    // The limit is drawn.
    let limit = ["max", "choose", "life", "size", "check"].contains(&name);
    assert!(!limit || page.contains("class=\"limit\""), "{name}");
}

fn is_json(folder: &Path, verb: &Verb) {
    let output = drivelab_in(folder, &[verb.asked, &["--seeds", "2", "--json"]].concat());
    let name = verb.asked[0];
    let json: Value = serde_json::from_slice(&output.stdout).expect(name);
    assert_eq!(json["schema"], format!("drivelab {name}"));
    assert_eq!(
        (&json["asked"]["seed"], &json["asked"]["seeds"]),
        (&1.into(), &2.into()),
        "{name}"
    );
    let command = json["command"].as_str().expect(name);
    assert!(
        command.starts_with(&format!("drivelab {name} ")),
        "{command}"
    );
    let all = json["answers"].to_string();
    assert!(all.contains("\"model_text\""), "{name}: {all}");
    let ends = ["\"interval\":[", "_by_seed\":[", "\"by_seed\":["];
    assert!(ends.iter().any(|it| all.contains(it)), "{name}: {all}");
}

#[test]
fn every_verb_gives_table_json_csv_page_and_exit_code() {
    let folder = folder();
    for verb in &VERBS {
        is_told(folder.path(), verb);
        is_json(folder.path(), verb);
        if !verb.missed.is_empty() {
            let output = drivelab_in(folder.path(), &[verb.missed, &["--seeds", "1"]].concat());
            assert_eq!(
                output.status.code(),
                Some(3),
                "{:?}: {}",
                verb.missed,
                text(&output.stderr)
            );
            assert!(
                text(&output.stderr).starts_with("verdict: "),
                "{:?}",
                verb.missed
            );
        }
    }
}

/// A published table has no page, and its CSV has the content of the terminal output.
#[test]
fn a_published_table_is_written_as_csv() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let output = drivelab_in(folder.path(), &["life", "--table", "s3", "--csv", "t.csv"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = std::fs::read_to_string(folder.path().join("t.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let output = drivelab(&["life", "--table", "s3", "--output", "t.html"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trace_is_chosen_for_by_latency_and_told_how_long_drives_last() {
    let folder = folder();
    let drives = [
        "950pro-256",
        "p4800x-375",
        "--trace",
        "t.csv",
        "--seeds",
        "2",
    ];
    let choose = [
        &["choose"],
        &drives[..],
        &["--slo", "read.p99<1ms", "--json"],
    ]
    .concat();
    let output = drivelab_in(folder.path(), &choose);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = json["answers"]["candidates"]
        .as_array()
        .expect("candidates");
    // It has its own pace of 1,000 requests per second; drives are distinguished by latency.
    for one in all {
        let iops = one["iops"].as_f64().expect("a rate");
        assert!((iops / 1000.0 - 1.0).abs() < 0.01, "{iops}");
    }
    assert_eq!(all[0]["drive"], "p4800x-375");
    let said = text(&drivelab_in(folder.path(), &choose[..choose.len() - 1]).stdout).to_owned();
    assert!(
        said.starts_with("Take p4800x-375 (no longer made, 2022) by p99"),
        "{said}"
    );

    let output = drivelab_in(
        folder.path(),
        &[&["life"], &drives[..], &["--json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let written = json["answers"][0]["parts"][0]["written"]["mb_s"][0].as_f64();
    // A quarter of 1,000 per second, 4096 B each.
    assert!(
        (written.expect("a rate") / 1.024 - 1.0).abs() < 0.01,
        "{written:?}"
    );
}

#[test]
fn what_too_few_writes_of_a_trace_do_not_tell_is_said() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("t.csv"), trace(120)).expect("a folder of our own");
    let args = [
        "choose",
        "p4800x-375",
        "--trace",
        "t.csv",
        "--slo",
        "p99<1ms",
        "--seeds",
        "1",
    ];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stdout);
    assert!(
        said.starts_with("None of 1 is known to stay within p99 < 1 ms."),
        "{said}"
    );
    assert!(said.contains("Too few reads"), "{said}");
}
