//! `drivelab odds` as a user runs it.

use crate::decide::json;
use crate::rig::{drivelab, drivelab_in, text};

#[test]
fn a_mirror_loses_data_far_less_often_than_a_stripe_and_all_have_a_range() {
    let (code, found) = json(&[
        "odds",
        "p4801x-100",
        "stripe(2*p4801x-100)",
        "mirror(2*p4801x-100)",
    ]);
    assert_eq!(code, Some(0));
    let losses = |index: usize, end: usize| {
        let losses = &found["answers"][index]["losses"][end];
        losses.as_f64().unwrap_or_else(|| panic!("{losses}"))
    };
    assert!((losses(1, 0) / losses(0, 0) - 2.0).abs() < 1e-9);
    assert!(losses(2, 0) < 1e-4 * losses(0, 0));
    for index in 0..3 {
        assert!(losses(index, 1) < losses(index, 0) && losses(index, 0) < losses(index, 2));
    }
    // 100 GB at the rated 1 GB/s or a little faster or slower.
    let rebuild = &found["answers"][2]["drives"][0]["rebuild_seconds"];
    let rebuild = rebuild.as_f64().expect("seconds");
    assert!((70.0..150.0).contains(&rebuild), "{rebuild}");
}

#[test]
fn the_answer_says_how_drives_are_repaired_and_where_rates_are_from() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let output = drivelab_in(
        folder.path(),
        &[
            "odds",
            "s2-slog",
            "--afr",
            "1%",
            "--afr",
            "p4801x-100=0.2%",
            "--replace-after",
            "3d",
            "--csv",
            "odds.csv",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let first = printed.lines().next().expect("a sentence");
    assert!(
        first.starts_with("s2-slog: the pool is lost once in ") && first.chars().count() <= 160,
        "{first}"
    );
    assert!(printed.contains("replaced after 3 d"), "{printed}");
    assert!(printed.contains("p4801x-100: 0.2 % (given)"), "{printed}");
    let (_, tables) = printed.split_once("\n\n").expect("tables");
    for line in tables.lines().filter(|line| !line.starts_with("Repeat: ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let csv = std::fs::read_to_string(folder.path().join("odds.csv")).expect("written");
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

/// A write hole loses a stripe that is being written, as an unreadable sector does: neither is the loss of the pool.
#[test]
fn a_write_hole_is_compared_with_unreadable_sectors_and_not_with_the_loss_of_a_pool() {
    let pools = ["raid6(6*exos-x18-16tb)", "mirror(2*exos-x18-16tb)"];
    let (_, found) = json(&["odds", pools[0], pools[1]]);
    let of = |index: usize, key: &str| found["answers"][index][key][0].as_f64();
    assert!(of(0, "losses") < of(1, "losses"), "{found}");
    // By hand: 6 x 0.0157 failures x 47.8 h / 8766 h x one crash a year.
    let hole = of(0, "crash_losses").expect("a write hole");
    assert!((hole / 5.14e-4 - 1.0).abs() < 0.02, "{hole}");
    assert_eq!(of(1, "crash_losses"), None);
    let output = drivelab(&["odds", pools[0], pools[1]]);
    let lines: Vec<&str> = text(&output.stdout).lines().take(2).collect();
    assert!(
        lines[0].contains("(crash with a drive missing)"),
        "{lines:?}"
    );
    assert!(lines[1].contains("(unreadable sectors)"), "{lines:?}");
}

/// JSON repeats the given rates, so that the command can be rebuilt from it.
#[test]
fn json_has_the_failure_rates_that_were_given() {
    let asked = [
        "odds",
        "p4801x-100",
        "--afr",
        "1%",
        "--afr",
        "p4801x-100=0.2%",
    ];
    let (code, found) = json(&asked);
    assert_eq!(code, Some(0));
    let afr = &found["asked"]["afr"];
    let expected = serde_json::json!([
        { "drive": null, "share": 0.01 },
        { "drive": "p4801x-100", "share": 0.002 },
    ]);
    assert_eq!(*afr, expected);
}

#[test]
fn unknown_rates_and_names_are_refused_all_at_once() {
    let output = drivelab(&["odds", "gp3", "--afr", "970pro=1%"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("no failure rate is known of gp3"), "{said}");
    assert!(
        said.contains("no drive of these pools is called 970pro"),
        "{said}"
    );
}

/// A raidz is refused by itself elsewhere; here it is a ZFS pool without log devices. Its loss rule is that of a RAID 6, and
/// it has no write hole.
#[test]
fn a_raidz_alone_is_answered_and_has_no_write_hole() {
    let raidz = "raidz(6*exos-x18-16tb; parity=2)";
    let main = format!("intent-log(main={raidz})");
    let (code, found) = json(&["odds", raidz, &main, "raid6(6*exos-x18-16tb)"]);
    assert_eq!(code, Some(0));
    let answers = &found["answers"];
    assert_eq!(answers[0]["drive"], raidz);
    assert_eq!(answers[0]["losses"], answers[1]["losses"]);
    let lost = |index: usize| answers[index]["losses"][0].as_f64().expect("a rate");
    assert!((lost(0) / lost(2) - 1.0).abs() < 1e-9, "{answers}");
    assert!(answers[0]["crash_losses"].is_null(), "{answers}");
    assert!(answers[2]["crash_losses"][0].is_f64(), "{answers}");
    let several = "stripe(raidz(3*exos-x18-16tb), raidz(3*exos-x18-16tb))";
    assert_eq!(json(&["odds", several]).0, Some(0));
    let output = drivelab(&["odds", "raidz2(6*exos-x18-16tb)"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("parity=2"), "{said}");
}

/// By hand: 1 - exp(-5 x 2 x 0.0157 x 0.0157 x 47.8 h / 8766 h) is 1.34e-5 for a mirror.
#[test]
fn the_probability_over_five_years_is_in_the_first_line() {
    let mirror = "mirror(2*exos-x18-16tb)";
    let (_, found) = json(&["odds", mirror, "--years", "5"]);
    let over = &found["answers"][0]["over"];
    let loss = over["losses"][0].as_f64().expect("a probability");
    assert!((loss / 1.344e-5 - 1.0).abs() < 0.01, "{over}");
    let output = drivelab(&["odds", mirror, "--years", "5"]);
    let printed = text(&output.stdout);
    let first = printed.lines().next().unwrap_or_default();
    let expected =
        "mirror(2*exos-x18-16tb): within 5 years the pool is lost with a probability of 1 in 74,";
    assert!(first.starts_with(expected), "{first}");
    assert!(printed.contains("pool in 5 y"), "{printed}");
    let wrong = drivelab(&["odds", mirror, "--years", "0"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// A name of 81 characters leaves the other columns their width.
#[test]
fn a_long_name_does_not_squeeze_the_columns() {
    let two = "mirror(2*exos-x18-16tb)";
    let long = format!("stripe({two}, {two}, {two})");
    let output = drivelab(&["odds", &long, two, "--years", "5"]);
    let printed = text(&output.stdout);
    let (_, tables) = printed.split_once("\n\n").expect("tables");
    for line in tables.lines().filter(|line| !line.starts_with("Repeat: ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(tables.contains("2 drives failed at once"), "{tables}");
    assert!(tables.lines().count() < 60, "{tables}");
}

/// What is lost with a drive and the memory together is some blocks, not the pool, also where the pool is shown.
#[test]
fn show_counts_the_write_hole_as_some_blocks() {
    let pool = "raid6(4*p4801x-100)";
    let (_, shown) = json(&["show", pool]);
    let volume = &shown["drives"][0]["pool"]["volumes"][0];
    let sets = |key: &str| volume[key].as_array().expect("sets").len();
    assert_eq!(
        (sets("lost_if"), sets("some_blocks_lost_if")),
        (4, 4),
        "{volume}"
    );
    let output = drivelab(&["show", pool]);
    let printed = text(&output.stdout);
    assert!(printed.contains("Some blocks: "), "{printed}");
    let output = drivelab(&["show", "mirror(2*p4801x-100)"]);
    assert!(!text(&output.stdout).contains("Some blocks: "));
}
