//! Messages of `drivelab run` on jobs that cannot be run, or that count nothing.

use crate::rig::{run, text};

#[test]
fn a_file_without_the_job_that_was_asked_for_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.fio");
    std::fs::write(&path, "[global]\nrw=read\n").expect("ours");
    let file = path.display().to_string();
    let output = run(&[&file]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("holds no job") && said.contains("jobs.fio"),
        "{said}"
    );
    std::fs::write(&path, "[one]\nrw=read\nsize=1m\n[two]\nrw=read\nsize=1m\n").expect("ours");
    let output = run(&[&file, "--section=three"]);
    let said = text(&output.stderr);
    assert!(said.contains("the sections are one, two"), "{said}");
    let blocks = run(&["--rw=read", "--bs=4k", "--kb_base=1000", "--size=1m"]);
    let said = text(&blocks.stderr);
    assert!(said.contains("with kb_base=1000 `4k`"), "{said}");
}

#[test]
fn a_job_that_its_ramp_outlasts_is_warned_of() {
    let job = [
        "--name=short",
        "--rw=read",
        "--size=1m",
        "--direct=1",
        "--ramp_time=5",
    ];
    let said = run(&job);
    let said = text(&said.stderr);
    assert!(
        said.contains("job short ended within its ramp_time"),
        "{said}"
    );
    let long = run(&["--rw=read", "--size=1m", "--direct=1"]);
    assert!(!text(&long.stderr).contains("ramp_time"));
}
