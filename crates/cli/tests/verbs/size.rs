//! `drivelab size`: an answer as JSON, a missed limit, and unsupported places. The hit ratio of a read cache is tested
//! in `outputs.rs`.

use serde_json::Value;

use crate::rig::{drivelab, drivelab_in, text};

#[test]
fn a_log_is_sized_and_a_limit_that_no_size_is_within_is_told() {
    let log = ["size", "slog", "p4801x-100", "--main", "950pro-256"];
    let load = [
        "--load", "wal", "--seeds", "1", "--slo", "p99<1us", "--json",
    ];
    let output = drivelab(&[&log[..], &load[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["answers"][0]["rows"].as_array().expect("sizes");
    assert!(rows.len() > 2, "{json}");
    assert!(rows.iter().all(|row| row["meets"] == false), "{json}");
    // A log that is never full stays so with a larger size.
    let full = |row: &Value| row["never_full"] == false;
    assert!(rows.is_sorted_by_key(|row| !full(row)), "{json}");
    assert!(full(&rows[0]) && !full(&rows[rows.len() - 1]), "{json}");
    let held = json["answers"][0]["most_held_bytes"][0].as_f64();
    assert!(held > rows[0]["bytes"].as_f64(), "{json}");
}

/// The user gives the rate of the network; the simulation covers only what the clients of the load do.
#[test]
fn the_first_line_on_a_log_has_the_rule_and_a_limit_that_is_missed() {
    let first = |rest: &[&str]| {
        let log = ["size", "slog", "p4801x-100", "--main", "950pro-256"];
        let load = ["--load", "wal", "--seeds", "1", "--runtime", "1s"];
        let output = drivelab(&[&log[..], &load, rest].concat());
        text(&output.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    // By hand: two groups of 4 GiB.
    let rule = first(&["--inbound", "10GbE"]);
    assert!(
        rule.starts_with("p4801x-100: by the rule 8.59 GB are enough for 1.25 GB/s"),
        "{rule}"
    );
    let missed = first(&["--slo", "p99<1us"]);
    assert!(
        missed.starts_with("p4801x-100: p99<1us is not met at"),
        "{missed}"
    );
}

/// `web` reads and writes without syncs: nothing reaches the log, whatever its size.
#[test]
fn a_load_without_synchronous_writes_needs_no_log() {
    let log = ["size", "slog", "p4801x-100", "--main", "950pro-256"];
    let output = drivelab(&[&log[..], &["--load", "web", "--seeds", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("You need no log for web: "), "{first}");
    assert!(!said.contains("0 B"), "{said}");
}

#[test]
fn what_it_cannot_size_is_refused() {
    let asked = [
        "size",
        "slog",
        "p4801x-100",
        "--main",
        "950pro-256",
        "--load",
        "nothing",
    ];
    let output = drivelab(&asked);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("nothing"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_write_buffer_that_holds_its_working_set_is_not_pressed_and_a_smaller_one_is() {
    let group = [
        "size",
        "vsan-cache",
        "p1600x-118",
        "--capacity",
        "2*p4801x-375",
    ];
    let load = [
        "--profile",
        "32k0r",
        "--working-set",
        "20GB",
        "--lasts",
        "60 s",
        "--seeds",
        "1",
        "--json",
    ];
    let output = drivelab(&[&group[..], &load[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let answer = &json["answers"][0];
    assert_eq!(answer["buffer_rule"]["bytes"], 5e10, "{answer}");
    let failed = [&group[..], &load[..], &["--failed-node-of", "3"]].concat();
    let failed: Value = serde_json::from_slice(&drivelab(&failed).stdout).expect("JSON");
    let rule = &failed["answers"][0]["buffer_rule"];
    assert_eq!(rule["bytes"], 7.5e10, "{rule}");
    assert_eq!(rule["failed_node_of"], 3, "{rule}");
    let rows = answer["rows"].as_array().expect("sizes");
    assert!(rows.len() > 2, "{answer}");
    let free = |row: &Value| row["never_pressed"] == true;
    assert!(rows.is_sorted_by_key(free), "{answer}");
    assert!(!free(&rows[0]) && free(&rows[rows.len() - 1]), "{answer}");
    // A smaller buffer is full sooner.
    let begins = rows
        .iter()
        .filter_map(|row| row["pressed_seconds"][0].as_f64());
    assert!(begins.is_sorted(), "{answer}");
}

#[test]
fn a_working_set_that_does_not_fit_is_refused_as_it_was_written() {
    let group = [
        "size",
        "cache",
        "p5800x-400",
        "--capacity",
        "2*d7-p5510-3840",
    ];
    for (asked, why) in [
        ("50TB", "the pool has room for 7.68 TB"),
        ("100M", "the pool runs 200 times smaller"),
    ] {
        let load = ["--profile", "4k70r", "--working-set", asked];
        let output = drivelab(&[&group[..], &load[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(
            said.contains(&format!("--working-set {asked}: {why}")),
            "{said}"
        );
    }
}

#[test]
fn a_read_cache_needs_a_trace() {
    let cache = ["size", "read-cache", "p4800x-375", "--main", "950pro-256"];
    let output = drivelab(&[&cache[..], &["--load", "web"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("there is no trace"), "{said}");
}

#[test]
fn a_place_takes_its_own_options() {
    let vsan = [
        "size",
        "vsan-cache",
        "p1600x-118",
        "--main",
        "950pro-256",
        "--load",
        "wal",
    ];
    let output = drivelab(&vsan);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "--main does not apply",
        "--load does not apply",
        "no --profile",
        "no --working-set",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Header of zilstat.
const ZILSTAT: &str =
    "    time   cc/s   ic/s  idc/s  idb/s  iic/s  iib/s  imnc/s  imnw/s  imsc/s  imsw/s";

/// Returns a folder with texts of zilstat: of an idle log, of a busy one, and of one with records of metadata only.
fn zilstat_texts() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let write = |name: &str, lines: &[&str]| {
        let text = format!("{ZILSTAT}\n{}\n", lines.join("\n"));
        std::fs::write(folder.path().join(name), text).expect("a folder of our own");
    };
    let none = "10:00:00 0 0 0 0 0 0 0 0 0 0";
    let busy = "10:00:01 0 0 0 10M 0 0 0 0 0 0";
    let less = "10:00:02 0 0 0 2M 0 0 0 0 0 0";
    let metadata = "10:00:01 200 500 0 0 0 0 200 1.6M 0 0";
    write("idle.txt", &[none, &none.replace(":00 ", ":01 ")]);
    write("busy.txt", &[none, busy, less]);
    write("metadata.txt", &[none, metadata]);
    folder
}

/// Rates of a real pool's intent log size a log and pace logs; a pool that logs nothing needs none.
#[test]
fn zilstat_is_a_source_of_the_rate_and_of_no_log() {
    let folder = zilstat_texts();
    let run = |command: &str| drivelab_in(folder.path(), &command.split(' ').collect::<Vec<_>>());
    let rest = "slog p4801x-100 --main exos-x18-16tb --load nfs-sync --seeds 1 --runtime 1s";
    for verb in ["choose", "size"] {
        let output = run(&format!("{verb} {rest} --zilstat idle.txt"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.starts_with("You need no log by idle.txt"), "{said}");
    }
    // By hand: 10 MiB/s are 10.5 MB/s, and 320 records of 32 KiB per second.
    let output = run(&format!("size {rest} --zilstat busy.txt"));
    let said = text(&output.stdout);
    assert!(
        said.contains("10.5 MB/s in"),
        "{said} {}",
        text(&output.stderr)
    );
    let output = run(&format!("choose {rest} --zilstat busy.txt"));
    let said = text(&output.stdout);
    assert!(said.contains("320 IOPS"), "{said} {}", text(&output.stderr));
    // The rate of a real log replaces that of a limit.
    let output = run(&format!("choose {rest} --zilstat busy.txt --slo iops>100"));
    let said = text(&output.stdout);
    assert!(said.contains("320 IOPS"), "{said} {}", text(&output.stderr));
    for wrong in [
        "choose p4801x-100 --load oltp --zilstat busy.txt",
        "size slog p4801x-100 --main exos-x18-16tb --load wal --zilstat none.txt",
        "size slog p4801x-100 --main exos-x18-16tb --load wal --zilstat busy.txt --inbound 1GB/s",
    ] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong}");
    }
}

/// `zpool iostat -w` has the share of synchronous writes: 1 of 2,049 is less than labels may be, half of them is not.
#[test]
fn zpool_iostat_is_a_source_of_no_log() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let header = "tank  total_wait  disk_wait  syncq_wait  asyncq_wait\n\
                  latency  read  write  read  write  read  write  read  write  scrub  trim\n";
    for (name, synchronous) in [("idle.txt", "1"), ("busy.txt", "2K")] {
        let text = format!("{header}4us  0  0  0  0  0  {synchronous}  0  2K  0  0\n");
        std::fs::write(folder.path().join(name), text).expect("a folder of our own");
    }
    let run = |command: &str| drivelab_in(folder.path(), &command.split(' ').collect::<Vec<_>>());
    let rest = "slog p4801x-100 --main exos-x18-16tb --load nfs-sync --seeds 1 --runtime 1s";
    for verb in ["choose", "size"] {
        let said = run(&format!("{verb} {rest} --zilstat idle.txt"));
        let said = text(&said.stdout);
        assert!(
            said.starts_with("You need no log by idle.txt: 0.05 % of the writes"),
            "{said}"
        );
    }
    let output = run(&format!("choose {rest} --zilstat busy.txt"));
    let note = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{note}");
    assert!(
        note.contains("busy.txt: 50.0 % of the writes are synchronous"),
        "{note}"
    );
}

/// Metadata uses a log without a rate of data. Loads with other I/Os are refused, and arguments are checked even if no
/// log is needed.
#[test]
fn zilstat_of_metadata_and_invalid_questions() {
    let folder = zilstat_texts();
    let run = |command: &str| drivelab_in(folder.path(), &command.split(' ').collect::<Vec<_>>());
    let rest = "slog p4801x-100 --main exos-x18-16tb --load nfs-sync --seeds 1 --runtime 1s";
    let output = run(&format!("size {rest} --zilstat metadata.txt"));
    let said = text(&output.stderr);
    assert!(said.contains("metadata only"), "{said}");
    let said = text(&output.stdout);
    assert!(!said.contains("need no log"), "{said}");
    for (wrong, why) in [
        (
            "choose slog p4801x-100 --main exos-x18-16tb --load oltp --zilstat busy.txt",
            "the rate of synchronous writes only",
        ),
        (
            "choose slog p4801x-101 --main exos-x18-16tb --load wal --zilstat idle.txt",
            "p4801x-101",
        ),
        (
            "choose slog p4801x-100 --main exos-x18-16tb --zilstat idle.txt",
            "there is no load",
        ),
        (
            "choose slog p4801x-100 --main exos-x18-16tb --load wal --zilstat idle.txt --csv a.csv",
            "--csv: nothing is run",
        ),
    ] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(
            text(&output.stderr).contains(why),
            "{wrong}: {}",
            text(&output.stderr)
        );
    }
}
