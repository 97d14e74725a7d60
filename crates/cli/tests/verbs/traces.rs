//! `drivelab choose` for a trace: a place in a pool, drives that are too small for a trace, and a recorded trace.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::rig::{drivelab_in, skipped, text};

/// Returns a folder with a trace of reads, and every fourth request a write, at 1,000 per second, beginning at `from`.
fn folder(requests: u32, from: u64) -> TempDir {
    let mut lines = String::new();
    for index in 0..requests {
        let op = if index % 4 == 3 { "Write" } else { "Read" };
        let ticks = 128_166_372_000_000_000 + u64::from(index) * 10_000;
        let offset = from + u64::from(index * 37 % 900) * 4096;
        let _ = writeln!(lines, "{ticks},host,0,{op},{offset},4096,0");
    }
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("t.csv"), lines).expect("a folder of our own");
    folder
}

fn answer(folder: &Path, args: &[&str]) -> Value {
    let all = [&["choose"], args, &["--seeds", "1", "--json"]].concat();
    let output = drivelab_in(folder, &all);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["answers"].take()
}

/// Returns names and percentiles; with few writes, a percentile is unknown.
fn candidates(answer: &Value) -> Vec<(&str, Option<f64>)> {
    let all = answer["candidates"].as_array().expect("a list").iter();
    let p99 = |one: &Value| one["p99_us"].as_f64();
    all.map(|one| (one["drive"].as_str().expect("a name"), p99(one)))
        .collect()
}

/// The disk alone is compared with each cache, and is the slowest.
#[test]
fn a_read_cache_is_chosen_for_a_trace() {
    let folder = folder(4_000, 0);
    let args = ["read-cache", "none", "p4800x-375", "950pro-256"];
    let behind = ["--main", "wd6001fzwx", "--trace", "t.csv"];
    let found = answer(folder.path(), &[&args[..], &behind].concat());
    let all = candidates(&found);
    assert_eq!(all.len(), 3, "{found}");
    assert_eq!(all[2].0, "none", "{all:?}");
    assert!(all[0].1.is_some() && all[2].1 > all[0].1, "{all:?}");
    assert_eq!(found["best"][2]["by"], "p99");
    // Each states which failures lose data, as a pool does.
    let cached = &found["candidates"][0];
    assert!(cached["promise"].is_string(), "{cached}");
}

#[test]
fn a_drive_that_a_trace_is_too_large_for_is_not_chosen() {
    let folder = folder(2_000, 20_000_000_000);
    let both = ["optane-memory-16", "p4800x-375", "--trace", "t.csv"];
    let found = answer(folder.path(), &both);
    assert_eq!(candidates(&found).len(), 1);
    let unfit = &found["unfit"][0];
    assert_eq!(unfit["drive"], "optane-memory-16");
    let why = unfit["why"].as_str().expect("a reason");
    for part in ["2000 of 2000 requests: beyond the end", "--beyond wrap"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let folded = answer(folder.path(), &[&both[..], &["--beyond", "wrap"]].concat());
    assert_eq!(candidates(&folded).len(), 2);
    // None is left.
    let alone = ["choose", "optane-memory-16", "--trace", "t.csv"];
    let output = drivelab_in(folder.path(), &alone);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("beyond the end of optane-memory-16"),
        "{said}"
    );
}

/// A web search of 60 s on several volumes, which together are larger than 16 GB, from `../shared/traces` next to the
/// checkout.
#[test]
fn a_recorded_trace_is_chosen_for() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/traces/mqsim-wsrch-small.trace.xz");
    if !path.is_file() {
        skipped("../shared/traces is not there");
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let path = path.to_string_lossy();
    let drives = ["p4800x-375", "p1600x-118", "optane-memory-16", "wd6001fzwx"];
    let args = [&drives[..], &["--trace", &path, "--slo", "read.p99<1ms"]].concat();
    let found = answer(folder.path(), &args);
    let all = candidates(&found);
    assert_eq!(all.len(), 3, "{found}");
    assert_eq!(found["unfit"][0]["drive"], "optane-memory-16");
    let meets = |index: usize| &found["candidates"][index]["meets"];
    assert_eq!(
        (all[2].0, meets(0), meets(2)),
        ("wd6001fzwx", &Value::Bool(true), &Value::Bool(false))
    );
}
