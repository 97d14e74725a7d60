//! `drivelab explain` on syncs, on files with several results, and on characters that a terminal or a UTF-8 reader
//! must not receive.

use crate::explain::{Results, bound, explained};
use crate::rig::{drivelab_in, text};

/// A flush of this drive takes milliseconds: with syncs timed by fio, and with O_DSYNC, whose time only the model
/// shows.
#[test]
fn a_run_that_syncs_is_bound_by_that_and_not_told_to_add_threads() {
    let each = ["--rw=write", "--bs=4k", "--runtime=1s", "--ioengine=psync"];
    let timed = Results::of("950pro-256", &[&each[..], &["--fdatasync=1"]].concat());
    let held = Results::of("950pro-256", &[&each[..], &["--sync=dsync"]].concat());
    for (results, what) in [(timed, "its fdatasync: "), (held, "its O_DSYNC: ")] {
        let answer = results.explained("950pro-256");
        assert_eq!(bound(&answer), "sync", "{}", answer["bound"]);
        let said = answer["bound"]["text"].as_str().expect("words");
        assert!(said.starts_with(what), "{said}");
        assert!(answer["model"]["advice"].is_null(), "{answer}");
        let args = ["explain", "r.json", "950pro-256", "--seeds", "1"];
        let output = drivelab_in(results.0.path(), &args);
        let said = text(&output.stdout);
        let (sentences, _) = said.split_once("\n\n").expect("a table follows");
        assert!(!sentences.contains("numjobs"), "{sentences}");
        for part in ["group commit", "power-loss protection", "log device"] {
            assert!(sentences.contains(part), "{part}: {sentences}");
        }
    }
}

/// Results of `fio --status-interval`, files that are appended to, and characters that a terminal must not receive.
#[test]
fn the_last_of_several_results_counts_and_names_are_harmless() {
    let slow = Results::of("p4800x-375", &["--rw=randread", "--iodepth=1"]);
    let deep = Results::of("p4800x-375", &["--rw=randread", "--iodepth=8"]);
    let read = |results: &Results| {
        std::fs::read_to_string(results.0.path().join("r.json")).expect("results")
    };
    let last = read(&deep).replace(
        "\"jobname\" : \"a\"",
        "\"jobname\" : \"a\\u001b]0;x\\u0007\"",
    );
    let all = format!("fio: a note\n{}{last}", read(&slow));
    std::fs::write(deep.0.path().join("r.json"), all).expect("a folder of our own");
    let output = drivelab_in(deep.0.path(), &["explain", "r.json"]);
    let said = text(&output.stdout);
    assert!(
        said.contains("2 complete results") && said.contains("the last one counts"),
        "{said}"
    );
    assert!(said.starts_with("a\\u{1b}]0;x\\u{7}: bound by"), "{said}");
    assert!(!said.contains('\x1b') && !said.contains('\x07'));
    let told = explained(deep.0.path(), &["explain", "r.json", "--json"]);
    assert_eq!(told["answers"][0]["measured"]["asked"]["in_flight"], 8);

    let utf16: Vec<u8> = last.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(
        deep.0.path().join("r.json"),
        [&b"\xff\xfe"[..], &utf16].concat(),
    )
    .expect("a folder of our own");
    let output = drivelab_in(deep.0.path(), &["explain", "r.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is UTF-16 (little-endian)"));
}
