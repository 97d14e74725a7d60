//! First lines that state what a buyer would otherwise have to ask: units, figures without a minimum, and limits of makers.

use crate::rig::{drivelab, text};

/// Returns the exit code and the output of a command, its errors included.
fn said(words: &[&str]) -> (Option<i32>, String) {
    let output = drivelab(words);
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), all)
}

fn first(words: &[&str]) -> String {
    let output = drivelab(words);
    text(&output.stdout)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn software_without_a_check_is_answered_with_a_way_to_ask() {
    for (name, way) in [
        ("redis", "appendfsync always"),
        ("MySQL", "drivelab check postgres"),
        ("postgresql", "did you mean `postgres`?"),
        ("etdc", "did you mean `etcd`?"),
        ("elasticsearch", "--job FILE"),
    ] {
        let (code, text) = said(&["check", name, "p4800x-375"]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("there are etcd, postgres"), "{text}");
        assert!(text.contains(way), "{name}: {text}");
    }
}

/// Without a published minimum, the figures are the answer; the faster drive comes first.
#[test]
fn figures_are_in_the_first_line_if_no_minimum_is_published() {
    let drives = ["check", "postgres", "950pro-256", "p4800x-375"];
    let line = first(&[&drives[..], &["--seeds", "1"]].concat());
    let start = "This program knows no published minimum of PostgreSQL. p4800x-375: sync.mean ";
    assert!(line.starts_with(start), "{line}");
    assert!(line.contains("; 950pro-256: sync.mean "), "{line}");
    assert!(line.chars().count() <= 160, "{line}");
}

/// By hand: 200 TB at 100 GB/day are 2,000 days, whatever the arrivals that a seed draws.
#[test]
fn years_at_a_rate_of_writes_are_those_of_the_rate() {
    let asked = ["choose", "950pro-256", "--load", "oltp", "--seeds", "1"];
    for seed in ["21", "31"] {
        let rate = ["--writes", "100GB/day", "--seed", seed, "--json"];
        let output = drivelab(&[&asked[..], &rate].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let one = &json["answers"]["candidates"][0];
        let years = one["years"].as_f64().expect("rated");
        assert!((years / (2000.0 / 365.0) - 1.0).abs() < 0.01, "{years}");
    }
    let line = first(&[&asked[..], &["--writes", "100GB/day"]].concat());
    assert!(line.contains("IOPS (1.16 MB/s written)"), "{line}");
    let line = first(&[&asked[..], &["--rate", "100GB/day"]].concat());
    assert!(line.contains("IOPS (1.16 MB/s read and written)"), "{line}");
    // Drives with ample room are told of the same rate.
    let two = [
        "choose",
        "p4800x-375",
        "950pro-256",
        "--load",
        "oltp",
        "--seeds",
        "1",
    ];
    let line = first(&[&two[..], &["--rate", "600GB/day"]].concat());
    assert!(
        line.contains("848 IOPS (6.94 MB/s read and written)"),
        "{line}"
    );
    let (code, text) = said(&[&asked[..], &["--writes", "1k"]].concat());
    assert_eq!(code, Some(2));
    assert!(text.contains("600GB/day"), "{text}");
}

#[test]
fn amounts_of_a_month_and_of_a_year_are_rates() {
    // By hand: 30.4 TB a month are 365 TB a year, 1 TB a day, 11.6 MB/s.
    for rate in ["30.4166667TB/month", "365TB/year", "1TB/day"] {
        let line = first(&["life", "p4800x-375", "--writes", rate, "--seeds", "1"]);
        // The run completes whole blocks, so its rate is 0.2 % lower.
        let is_right = ["56.2", "56.3"]
            .iter()
            .any(|it| line.contains(&format!("{it} years until the rated bytes")));
        assert!(is_right, "{line}");
    }
}

#[test]
fn hard_disks_have_a_workload_limit_instead_of_wear() {
    let rate = ["--writes", "1MB/s", "--rw", "write", "--bs", "1m"];
    let line = first(&[&["life", "exos-x18-16tb", "--seeds", "1"][..], &rate].concat());
    let (start, rest) = line.split_once(" TB a year are written. ").expect("bytes");
    let (_, written) = start.split_once("writes do not wear it; ").expect("bytes");
    // By hand: 1 MB/s are 31.5 TB a year; the run writes 15 blocks or a few more.
    let written: f64 = written.parse().expect("a number");
    assert!((written / 31.5 - 1.0).abs() < 0.05, "{line}");
    assert!(
        rest.starts_with("Its data sheet may limit reads and writes"),
        "{line}"
    );
}

/// By hand: a RAID 6 loses three drives of six at once, a mirror two of two; see the rates in their own lines.
#[test]
fn odds_name_the_pool_that_is_lost_least_often() {
    let pools = ["mirror(2*exos-x18-16tb)", "raid6(6*exos-x18-16tb)"];
    let (code, text) = said(&["odds", pools[0], pools[1]]);
    assert_eq!(code, Some(0), "{text}");
    let line = text
        .lines()
        .find(|line| line.contains("lost least often"))
        .expect("a comparison");
    let start = "At the same failure rates, raid6(6*exos-x18-16tb) as a whole is lost least often; mirror(2*exos-x18-16tb) ";
    assert!(line.starts_with(start), "{line}");
    // Rates of other drives have other sources, and wide ranges.
    for others in [&[pools[0]][..], &[pools[0], "mirror(2*p4801x-100)"]] {
        let (_, one) = said(&[&["odds"], others].concat());
        assert!(!one.contains("least often"), "{one}");
    }
}

#[test]
fn a_network_is_a_rate_in_the_help() {
    let asked = ["size", "slog", "p1600x-58", "--main", "exos-x18-16tb"];
    let (code, text) = said(&[&asked[..], &["--inbound", "1Gb", "--load", "wal"]].concat());
    assert_eq!(code, Some(2));
    assert!(text.contains("1GbE"), "{text}");
}

/// The form of the PM9A3 is that in which most of them are sold; it is also sold as M.2 22110.
#[test]
fn an_assumed_form_is_marked() {
    let asked = [
        "choose",
        "pm9a3-960",
        "--like",
        "p4801x-375",
        "--load",
        "oltp",
    ];
    let (_, text) = said(&[&asked[..], &["--rate", "2k", "--seeds", "1"]].concat());
    let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unbroken.contains("2.5 inch U.2 (assumed)"), "{text}");
}

/// By hand: a P4800X does 2.4 GB/s of sequential reads, so a stripe of two does 4 GB/s and one drive does not.
#[test]
fn the_fewest_drives_of_a_stripe_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("read.fio");
    let text = "[a]\nioengine=libaio\ndirect=1\nrw=randread\nbs=128k\niodepth=32\nruntime=1s\ntime_based=1\n";
    std::fs::write(&job, text).expect("written");
    let job = job.to_str().expect("UTF-8");
    let asked = [
        "choose",
        "p4800x-375",
        "--job",
        job,
        "--seeds",
        "1",
        "--fewest",
    ];
    let line = first(&[&asked[..], &["--rate", "4GB/s"]].concat());
    assert!(line.starts_with("Take stripe(2*p4800x-375) "), "{line}");
    let (_, text) = said(&[&asked[..], &["--rate", "4GB/s"]].concat());
    assert!(text.contains("stripes have no redundancy"), "{text}");
    let line = first(&[&asked[..], &["--rate", "1GB/s"]].concat());
    assert!(line.starts_with("Take p4800x-375 "), "{line}");
    let (code, text) = said(&asked);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("--fewest: neither a rate nor a limit"),
        "{text}"
    );
}

/// By hand: 569 of 1,825 days of 30 MB/s are 9.35 MB/s. The verdict follows the rating, and names the other drive too.
#[test]
fn a_verdict_names_drives_whose_cycles_end_early() {
    let drives = ["life", "p3plus-1000", "d5-p5336-7680"];
    let (code, text) = said(&[&drives[..], &["--writes", "30MB/s", "--seeds", "1"]].concat());
    assert_eq!(code, Some(3), "{text}");
    let verdict = text.lines().find(|line| line.contains("not 5 years"));
    let verdict = verdict.expect("a verdict");
    let expected = "p3plus-1000: not 5 years; d5-p5336-7680: by the rating, but not by the cycles";
    assert!(verdict.ends_with(expected), "{verdict}");
    assert!(text.contains("37.4 (9."), "{text}");
}

/// 16 I/Os were in flight, and the options are changed to say 4.
#[test]
fn results_that_contradict_their_options_have_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json");
    let job = [
        "--name=a",
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randread",
        "--bs=4k",
        "--iodepth=16",
    ];
    let end = ["--runtime=200ms", "--time_based", "--output-format=json"];
    let output = drivelab(&[&["run", "p4800x-375"][..], &job, &end].concat());
    let results = text(&output.stdout);
    let bent = results.replace("\"16\"", "\"4\"");
    assert_ne!(results, bent);
    for (results, has_warning) in [(results, false), (&*bent, true)] {
        std::fs::write(&file, results).expect("written");
        let name = file.to_str().expect("UTF-8");
        let (code, said) = said(&["explain", name, "p4800x-375", "--seeds", "1"]);
        assert_eq!(code, Some(0), "{said}");
        let warning = "the results contradict their options: by Little's law";
        assert_eq!(said.contains(warning), has_warning, "{said}");
    }
}
