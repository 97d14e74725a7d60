//! `drivelab mix` and `drivelab fill` as a user runs them.

use crate::decide::json;
use crate::rig::{drivelab, drivelab_in, text};

#[test]
fn a_flash_drive_falls_off_with_its_first_writes_and_says_so() {
    let args = [
        "mix",
        "9100max-2400",
        "--step",
        "50",
        "--seeds",
        "2",
        "--ios",
        "4000",
    ];
    let (code, found) = json(&args);
    assert_eq!(code, Some(0));
    let answer = &found["answers"][0];
    let percents = answer["points"].as_array().expect("points");
    let percents: Vec<u64> = percents
        .iter()
        .filter_map(|it| it["read_percent"].as_u64())
        .collect();
    assert_eq!(percents, [100, 50, 0]);
    assert_eq!(answer["falls_off"]["read_percent"][0], 100);
    let iops = |at: usize| answer["points"][at]["iops"][0].as_f64().expect("a rate");
    assert!(iops(1) < 0.75 * iops(0));
    // The ends are 100 % of themselves, and reads alone have no writes.
    assert_eq!(answer["points"][0]["of_ends"], 1.0);
    assert!(answer["points"][0]["write"].is_null());
    assert!(answer["points"][1]["write"]["p99_us"].is_number());
    let output = drivelab(&args);
    let printed = text(&output.stdout);
    let first = printed.lines().next().expect("a sentence");
    assert!(first.starts_with("9100max-2400: "), "{printed}");
    assert!(
        printed.contains("falls off from 100 to 50 % reads"),
        "{printed}"
    );
    assert!(
        printed.contains("Repeat: drivelab mix 9100max-2400"),
        "{printed}"
    );
}

#[test]
fn what_is_no_mix_is_refused_with_all_that_is_wrong() {
    let output = drivelab(&[
        "mix",
        "p4800x-375",
        "--rw",
        "randread",
        "--fio",
        "iodepth=4",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("is not a mix") && said.contains("iodepth: is set by the search"),
        "{said}"
    );
}

/// The D5-P5336 has no pSLC cache and is rated for 1650 MB/s without end. Its buffer is 0.001 % of it.
#[test]
fn the_buffer_of_a_large_drive_is_not_a_fast_region() {
    let (code, found) = json(&["fill", "d5-p5336-7680", "--used", "50", "--seeds", "1"]);
    assert_eq!(code, Some(0));
    let at = &found["answers"][0]["at"][0];
    assert!(at["falls_off"].is_null(), "{at}");
    let fast = at["fast_mb_s"][0].as_f64().expect("a rate");
    assert!((fast / 1650.0 - 1.0).abs() < 0.1, "{fast}");
}

/// Drives without a pSLC cache whose buffer is full only after several pieces: one drive each by its sequential rating in
/// MB/s, and the P4608, which is two drives in one.
#[test]
fn a_buffer_that_fills_slowly_is_no_fast_region() {
    let drives = [
        ("9200max-3200", 2300.0),
        ("d7-p5510-3840", 3500.0),
        ("p4610-1600", 2080.0),
        ("pm963-1920", 1200.0),
        ("p4608-6400", 3800.0),
    ];
    let names: Vec<&str> = drives.iter().map(|drive| drive.0).collect();
    let (code, found) = json(&[&["fill"], &names[..], &["--used", "50", "--seeds", "1"]].concat());
    assert_eq!(code, Some(0));
    for (index, (name, rate)) in drives.into_iter().enumerate() {
        let at = &found["answers"][index]["at"][0];
        assert!(at["falls_off"].is_null(), "{name}: {at}");
        let fast = at["fast_mb_s"][0].as_f64().expect("a rate");
        assert!((fast / rate - 1.0).abs() < 0.15, "{name}: {fast}");
    }
}

#[test]
fn a_desktop_drive_falls_off_sooner_the_fuller_it_is() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let args = [
        "fill",
        "t500-1000",
        "--used",
        "10,80",
        "--seeds",
        "1",
        "--csv",
        "fill.csv",
        "-o",
        "fill.html",
    ];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let curve = std::fs::read_to_string(folder.path().join("fill.csv")).expect("written");
    assert!(curve.starts_with("drive,model,used_percent,written_gb,seconds,mb_s\n"));
    let page = std::fs::read_to_string(folder.path().join("fill.html")).expect("written");
    assert!(page.contains("t500-1000, 80 %"));
    let (_, found) = json(&args[..6]);
    let at = |index: usize, key: &str| {
        let falls = &found["answers"][0]["at"][index]["falls_off"];
        falls[key][0].as_f64().unwrap_or_else(|| panic!("{falls}"))
    };
    // A third of the unused cells.
    let (empty, full) = (at(0, "gb"), at(1, "gb"));
    assert!((270.0..340.0).contains(&empty), "{empty}");
    assert!((40.0..110.0).contains(&full), "{full}");
    assert!(at(0, "slow_mb_s") < 1500.0);
    let recovers = &found["answers"][0]["at"][0]["falls_off"]["recovers_seconds"];
    assert!(
        recovers.as_f64().is_some_and(|seconds| seconds >= 30.0),
        "{recovers}"
    );
}

/// After a drop, the rate of random writes falls until they covered the drive several times. In steady state, a PM9A3
/// is rated 70 k writes of 4 KiB per second, 287 MB/s, whatever share was in use before.
#[test]
fn random_writes_end_in_steady_state() {
    let (_, found) = json(&[
        "fill",
        "pm9a3-960",
        "--random",
        "--used",
        "40",
        "--seeds",
        "1",
    ]);
    let falls = &found["answers"][0]["at"][0]["falls_off"];
    let slow = falls["slow_mb_s"][0].as_f64().expect("a rate");
    assert!((250.0..400.0).contains(&slow), "{falls}");
}

#[test]
fn writes_of_xpoint_stay_fast_and_pools_are_refused() {
    let output = drivelab(&["fill", "p4800x-375", "--used", "90", "--seeds", "1"]);
    assert!(
        text(&output.stdout).contains("writes stay at"),
        "{}",
        text(&output.stderr)
    );
    for (block, says) in [("3k", "a multiple of 4k"), ("much", "")] {
        let output = drivelab(&["fill", "990pro-2000", "--bs", block]);
        assert_eq!(output.status.code(), Some(2), "{block}");
        let said = text(&output.stderr);
        assert!(said.contains(block) && said.contains(says), "{said}");
    }
    let output = drivelab(&["fill", "mirror(2*p4801x-100)", "--fill", "50%"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("single drives") && said.contains("--used 50,90"),
        "{said}"
    );
}
