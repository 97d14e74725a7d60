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

/// A raidz alone is refused with the expression that has its parity, which is accepted.
#[test]
fn a_raidz_alone_names_the_pool_that_has_its_parity() {
    for wrong in ["raidz(6*exos-x18-16tb)", "raidz2(6*exos-x18-16tb)"] {
        let output = drivelab(&["odds", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let said = text(&output.stderr);
        assert!(said.contains("parity=2"), "{wrong}: {said}");
    }
    let pool = "intent-log(main=raidz(6*exos-x18-16tb; parity=2))";
    let (code, _) = json(&["odds", pool]);
    assert_eq!(code, Some(0));
}
