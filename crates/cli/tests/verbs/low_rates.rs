//! `choose` and `life` at arrival rates so low that a run of the usual length draws few I/Os.

use serde_json::Value;

use crate::rig::{drivelab, text};

/// Runs `choose` at a rate, and returns its JSON.
fn choose(rate: &str, seed: &str) -> Value {
    let drives = ["choose", "p4800x-375", "p3700-1600", "--load", "oltp"];
    let options = ["--rate", rate, "--seed", seed, "--json"];
    let output = drivelab(&[&drives[..], &options].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// At any rate and with any seed, p99 is known, the rate is the requested one, and all drives complete what arrives. By
/// hand: 1 of 33 I/Os is a sync, so 1.25 x 1,600 syncs with 3 seeds take 22,000 s at 1 IOPS.
#[test]
fn drives_are_ranked_by_p99_at_any_rate() {
    for (rate, iops, seconds) in [
        ("1", 1.0, Some(22_000.0)),
        ("10", 10.0, Some(2_200.0)),
        ("100", 100.0, Some(220.0)),
        ("1k", 1_000.0, Some(22.0)),
        ("50k", 50_000.0, None),
    ] {
        let seeds: &[&str] = match rate {
            "100" => &["1", "11", "21", "31"],
            _ => &["1", "31"],
        };
        for seed in seeds {
            let found = choose(rate, seed);
            let load = &found["asked"]["load"];
            let offered = load["offered_iops"].as_f64().expect("a rate");
            assert!((offered / iops - 1.0).abs() < 0.005, "{rate}: {offered}");
            let extended = load["extended_seconds"].as_f64();
            match (extended, seconds) {
                (Some(is), Some(by_hand)) => assert!((is / by_hand - 1.0).abs() < 0.02, "{is}"),
                (is, by_hand) => assert_eq!(is, by_hand, "{rate}"),
            }
            let best = found["answers"]["best"].as_array().expect("a list").iter();
            let p99 = best.filter(|one| one["by"] == "p99").collect::<Vec<_>>();
            assert_eq!(p99.len(), 1, "{rate}, seed {seed}");
            assert_eq!(p99[0]["drive"], "p4800x-375", "{rate}, seed {seed}");
            for one in found["answers"]["candidates"].as_array().expect("a list") {
                let completes = one["completes"].as_f64().expect("a share");
                let is_slow = rate == "50k" && one["drive"] == "p3700-1600";
                assert!(completes > 0.985 || is_slow, "{rate}, seed {seed}: {one}");
            }
        }
    }
}

/// By chance, a run draws more or fewer arrivals than its rate says; the drive completes them.
#[test]
fn chance_is_no_shortfall() {
    for rate in ["1", "5", "100"] {
        for seed in ["1", "11", "21", "31"] {
            let load = ["life", "p4800x-375", "--load", "oltp", "--rate", rate];
            let output = drivelab(&[&load[..], &["--seed", seed, "--seeds", "1"]].concat());
            let said = text(&output.stdout);
            assert!(said.starts_with("p4800x-375 lasts"), "{said}");
            assert!(!said.contains("completes only"), "{said}");
            assert!(said.contains("of virtual time"), "{said}");
        }
    }
}

/// A percentile of a limit has as many I/Os as it needs: 1.25 x 16 beyond p99.9 are 20,000 of the rarest direction.
#[test]
fn a_higher_percentile_has_longer_runs() {
    let args = [
        "choose",
        "p4800x-375",
        "--load",
        "oltp",
        "--slo",
        "read.p99.9<10ms,iops>300",
        "--seeds",
        "1",
        "--json",
    ];
    let output = drivelab(&args);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let reading = &found["answers"]["candidates"][0]["readings"][0];
    assert_eq!(reading["met"], true, "{reading}");
    let seconds = found["asked"]["load"]["extended_seconds"].as_f64();
    // 20,000 syncs of 9.1 per second; 1.5 million I/Os at most.
    let by_hand = 20_000.0 / (300.0 / 33.0);
    assert!(
        (seconds.expect("extended") / by_hand - 1.0).abs() < 0.02,
        "{seconds:?}"
    );
}
