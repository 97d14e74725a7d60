//! `drivelab life` at rates beyond what a drive can do.

use serde_json::Value;

use crate::rig::{drivelab, text};

fn json(args: &[&str]) -> Value {
    let output = drivelab(&[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// What more than a hundred threads would have to write is written by a hundred, each in a range of its own: a drive that
/// is asked for more than it can do does what it can.
#[test]
fn life_at_more_than_a_drive_writes_is_that_at_all_it_writes() {
    let written = |rate: &str| {
        let found = json(&[
            "life",
            "p5800x-800",
            "--writes",
            rate,
            "--rw",
            "write",
            "--bs",
            "1m",
            "--seeds",
            "1",
        ]);
        let answers = found["answers"].as_array().expect("answers");
        answers[0]["parts"][0]["written"]["mb_s"][0]
            .as_f64()
            .expect("a rate")
    };
    let (much, more) = (written("30GB/s"), written("60GB/s"));
    assert!(
        much > 4000.0 && more > 0.85 * much,
        "{much} and {more} MB/s"
    );
}
