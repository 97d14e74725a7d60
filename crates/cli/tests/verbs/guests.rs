//! `run --guests`: several virtual machines on one datastore, with figures for each and their fairness.

use serde_json::Value;

use crate::rig::{drivelab, text};

const JOB: &str = "--name=a --ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=4 --runtime=40ms --time_based";

fn run(drive: &str, options: &[&str], job: &str) -> (Option<i32>, String, String) {
    let job: Vec<&str> = job.split_whitespace().collect();
    let output = drivelab(&[&["run", drive], options, &job[..]].concat());
    let said = text(&output.stderr).to_owned();
    (output.status.code(), text(&output.stdout).to_owned(), said)
}

#[test]
fn each_guest_has_figures_and_all_share_the_drive() {
    let json = |guests: &str| {
        let options = ["--guests", guests, "--output-format=json"];
        let (code, out, said) = run("p4801x-100", &options, JOB);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str::<Value>(&out).expect("JSON")["guests"].clone()
    };
    let iops = |value: &Value| -> Vec<f64> {
        let guests = value["guests"].as_array().expect("guests").iter();
        guests
            .map(|it| it["read"]["iops"].as_f64().expect("a number"))
            .collect()
    };
    let (one, four) = (json("1"), json("4"));
    let (alone, shared) = (iops(&one), iops(&four));
    assert_eq!((alone.len(), shared.len()), (1, 4));
    assert_eq!(one["fairness"].as_f64(), Some(1.0));
    assert!(four["fairness"].as_f64() > Some(0.99), "{four}");
    // The drive is the bottleneck: together they have more than one guest, and each less.
    let sum: f64 = shared.iter().sum();
    assert!(
        sum > alone[0] && shared.iter().all(|it| *it < alone[0]),
        "{alone:?} {shared:?}"
    );
    let (_, shown, _) = run("p4801x-100", &["--guests", "2"], JOB);
    assert!(shown.contains("guest2/a: (groupid=1"), "{shown}");
    assert!(shown.contains("fairness of IOPS: Jain's index"), "{shown}");
}

#[test]
fn the_threads_of_a_guest_report_together() {
    let jobs = format!("{JOB} --numjobs=2 --group_reporting");
    let (code, shown, said) = run("p4801x-100", &["--guests", "3"], &jobs);
    assert_eq!(code, Some(0), "{said}");
    // The two threads of a guest are one group.
    assert_eq!(shown.matches("jobs=2)").count(), 3, "{shown}");
}

#[test]
fn what_a_guest_cannot_run_is_refused() {
    for (job, why) in [
        ("--size=60g", "a guest's share is"),
        ("--direct=0", "set direct=1"),
    ] {
        let (code, _, said) = run("p4801x-100", &["--guests", "2"], &format!("{JOB} {job}"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--guests") && said.contains(why), "{said}");
    }
}
