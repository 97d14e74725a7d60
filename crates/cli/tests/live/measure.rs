//! `drivelab measure` on a served drive: the fit plan with the installed fio, killed in the middle and gone on with.

use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::rig::has;
use crate::rig::process::{Running, mortal, run};
use crate::rig::server::{Folder, fast};

#[test]
fn a_served_drive_is_filled_and_measured_until_it_is_steady() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let uri = folder.uri("nbd", "p4800x-375");
    let file = folder.text("m.json");
    let measure = |word: &str| {
        let mut command = mortal(cargo_bin!("drivelab"));
        command.args([
            "measure",
            &uri,
            "--plan",
            "fit",
            "--runtime",
            "100ms",
            "--size",
            "32M",
        ]);
        command.args(["--destroy-data", word, "--output", &file]);
        command
    };
    let limit = Duration::from_secs(300);
    let refused = run(&mut measure("nbd://elsewhere"), limit);
    assert_eq!(refused.code, Some(2), "{}", refused.said);
    assert!(refused.said.contains("its URI is"), "{}", refused.said);
    // Killed as soon as there is something.
    let first = Running::start(&mut measure(&uri), false);
    let begun = std::time::Instant::now();
    while !folder.path("m.json").exists() && begun.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill();
    let ended = run(&mut measure(&uri), limit);
    // A busy machine may not be steady at 100 ms a round.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.said);
    assert!(ended.said.contains("goes on after"), "{}", ended.said);
    let text = std::fs::read_to_string(folder.path("m.json")).expect("it was written");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["device"]["kind"], "nbd");
    assert_eq!(document["host"]["engine"], "nbd");
    assert_eq!(document["verdict"]["is_complete"], true);
    let steady = &document["verdict"]["is_steady"];
    assert_eq!(steady, &Value::from(ended.code == Some(0)));
    let steps = document["steps"].as_array().expect("steps");
    let of = |phase: &str| steps.iter().filter(|step| step["phase"] == phase).count();
    assert_eq!((of("prepare"), of("measure")), (1, 15));
    assert!((5..=25).contains(&of("round")));
    // Two fills of what is used.
    let filled = &steps[0]["fio"]["jobs"][0]["write"]["io_bytes"];
    assert_eq!(filled, 2 * (32 << 20));
    server.stop().expect_success();
}
