//! `drivelab run` beyond fio's functions: options after a job file, and several drives at once.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::rig::{drivelab, drivelab_in, text};

fn job_file() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let jobs = "[global]\ndirect=1\nioengine=libaio\nsize=64m\nrw=randread\n\
                [small]\nbsrange=512-8k\niodepth=4\nnumber_ios=2000\n[large]\nstonewall\nbs=64k\nnumber_ios=500\n";
    fs::write(folder.path().join("a.fio"), jobs).expect("a file");
    folder
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = drivelab_in(folder, &[args, &["--output-format=json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Before and after the file: fio takes both as defaults that the file overrides; here the latter override the file.
#[test]
fn options_behind_a_job_file_override_it() {
    let folder = job_file();
    let figures = |args: &[&str]| {
        let root = json(folder.path(), args);
        let jobs = root["jobs"].as_array().expect("jobs").clone();
        let figures = jobs.into_iter().map(|job| {
            let options = &job["job options"];
            let depth = options["iodepth"].as_str().unwrap_or("1").to_owned();
            (job["read"]["io_bytes"].as_u64(), depth)
        });
        figures.collect::<Vec<_>>()
    };
    let run = ["run", "--drive", "ram-disk"];
    let before = figures(&[&run[..], &["--iodepth=9", "--bs=4k", "a.fio"]].concat());
    assert_eq!(before[0].1, "4");
    assert_eq!(before[1].0, Some(500 * 65_536));
    // The size overrides all of the file's, including the range; the drive may be at any position.
    let behind = figures(&[
        "run",
        "a.fio",
        "--iodepth=9",
        "--drive",
        "ram-disk",
        "--bs",
        "4k",
    ]);
    let wanted = [
        (Some(2000 * 4096), "9".into()),
        (Some(500 * 4096), "9".into()),
    ];
    assert_eq!(behind, wanted);
    // After the first name, options belong to another job.
    let another = figures(&[
        "run",
        "a.fio",
        "--drive=ram-disk",
        "--number_ios=10",
        "--name=b",
        "--rw=read",
        "--direct=1",
        "--size=1m",
    ]);
    assert_eq!(another.len(), 3);
    let wrong = drivelab_in(
        folder.path(),
        &["run", "a.fio", "--drive=ram-disk", "--iodepht=9"],
    );
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean `iodepth`?"));
}

#[test]
fn several_drives_give_one_table_and_one_document() {
    let folder = job_file();
    let both = [
        "run",
        "a.fio",
        "--drive",
        "ram-disk",
        "--drive",
        "p4800x-375",
    ];
    let output = drivelab_in(folder.path(), &[&both[..], &["--csv", "r.csv"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table: Vec<Vec<&str>> = text(&output.stdout)
        .lines()
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    let wanted = [
        vec!["job", "what", "drive"],
        vec!["small", "read", "ram-disk"],
        vec!["p4800x-375", "2,000"],
        vec!["large", "read", "ram-disk"],
        vec!["p4800x-375", "500"],
    ];
    assert_eq!(table.len(), wanted.len(), "{}", text(&output.stdout));
    for (line, wanted) in table.iter().zip(wanted) {
        assert!(line.starts_with(&wanted), "{line:?}");
    }
    let lines = fs::read_to_string(folder.path().join("r.csv")).expect("a table");
    assert_eq!(lines.lines().count(), 1 + 4);

    let root = json(folder.path(), &both);
    assert_eq!(
        (&root["schema"], &root["version"]),
        (&"drivelab run".into(), &1.into())
    );
    for (index, drive) in ["ram-disk", "p4800x-375"].into_iter().enumerate() {
        let mut entry = root["drives"][index].clone();
        let name = entry.as_object_mut().expect("an object").remove("drive");
        assert_eq!(name, Some(drive.into()));
        // Other options do not change the result.
        assert_eq!(
            entry,
            json(folder.path(), &["run", "a.fio", "--drive", drive])
        );
    }
}

/// `--drive` before and after a job file, or an argument: the position of a drive does not matter.
#[test]
fn drives_are_arguments_or_options() {
    let folder = job_file();
    let option = json(folder.path(), &["run", "a.fio", "--drive", "ram-disk"]);
    assert_eq!(option, json(folder.path(), &["run", "a.fio", "ram-disk"]));
    assert_eq!(option, json(folder.path(), &["run", "ram-disk", "a.fio"]));
    // A drive is not a job file: options after it belong to a job and override nothing.
    let job = ["run", "ram-disk", "--rw=read", "--size=64m", "--direct=1"];
    assert_eq!(
        json(folder.path(), &job)["jobs"].as_array().map(Vec::len),
        Some(1)
    );
    let both = ["run", "a.fio", "ram-disk", "--drive", "p4800x-375"];
    assert_eq!(
        json(folder.path(), &both)["drives"][1]["drive"],
        "p4800x-375"
    );
    // A file with a drive's name does not hide the drive.
    fs::write(folder.path().join("ram-disk"), "no jobs").expect("a file");
    assert_eq!(option, json(folder.path(), &["run", "a.fio", "ram-disk"]));
}

#[test]
fn an_argument_that_is_neither_a_file_nor_a_drive_is_told_once() {
    let folder = job_file();
    for (args, wanted) in [
        (
            &["run", "b.fio", "ram-disk"][..],
            "error: neither a job file nor a drive\n--> b.fio\n = help: did you mean the file `a.fio`?\n",
        ),
        (
            &["run", "a.fio", "ram-disc"],
            "error: neither a job file nor a drive\n--> ram-disc\n = help: did you mean the drive `ram-disk`?\n",
        ),
        (
            &["replay", "b.fio", "ram-disk"],
            "error: neither a trace nor a drive\n--> b.fio\n = help: did you mean the file `a.fio`?\n",
        ),
        (
            &["review", "a.fio"],
            "error: a.fio: a file, but not a drive's: those end in .toml\n--> command line\n = help: `--help` lists the options that take other files\n",
        ),
        (
            &["act"],
            "error: no drive is named\n--> command line\n = help: add one of those that `drivelab drives` lists, or the path of a TOML file\n",
        ),
    ] {
        let output = drivelab_in(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stderr), wanted);
    }
}

#[test]
fn a_drive_that_jobs_do_not_fit_does_not_stop_the_others() {
    let output = drivelab(&[
        "run",
        "--drive",
        "optane-memory-16",
        "--drive",
        "p4800x-375",
        "--direct=1",
        "--name=a",
        "--rw=randread",
        "--filename=/dev/x",
        "--offset=20g",
        "--number_ios=100",
        "--size=1g",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("p4800x-375"),
        "{}",
        text(&output.stdout)
    );
    assert!(
        text(&output.stderr).contains("job a on optane-memory-16"),
        "{}",
        text(&output.stderr)
    );
}

/// Threads start in sequence: in a short run most of them are not active at the same time. The total rate is computed
/// from the first start to the last completion, in every output format.
#[test]
fn a_short_run_of_many_threads_is_no_faster_than_a_long_one() {
    let folder = TempDir::new().expect("a temporary folder");
    let csv = folder.path().join("a.csv");
    let run = |numjobs: &str, number: &str| {
        let output = drivelab_in(
            folder.path(),
            &[
                "run",
                "p4801x-100",
                "--name=r",
                "--rw=randread",
                "--bs=4k",
                "--direct=1",
                "--ioengine=libaio",
                "--iodepth=16",
                "--group_reporting",
                "--csv",
                "a.csv",
                numjobs,
                number,
                "--output-format=json+",
            ],
        );
        let root: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let iops = root["jobs"][0]["read"]["iops"].as_f64().expect("a rate");
        let table = fs::read_to_string(&csv).expect("it was written");
        let mut lines = table
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let (head, line) = (lines.next().expect("a head"), lines.next().expect("a line"));
        let at = head
            .iter()
            .position(|&name| name == "iops")
            .expect("a rate");
        let in_csv: f64 = line[at].parse().expect("a number");
        assert!((in_csv / iops - 1.0).abs() < 1e-3, "{in_csv} and {iops}");
        (
            iops,
            root["notes"].is_array(),
            text(&output.stderr).to_owned(),
        )
    };
    let (long, noted, told) = run("--numjobs=4", "--number_ios=20000");
    assert!(!noted && !told.contains("start over"), "{told}");
    for (numjobs, number) in [
        ("--numjobs=64", "--number_ios=100"),
        ("--numjobs=1000", "--number_ios=20"),
    ] {
        let (short, noted, told) = run(numjobs, number);
        assert!(short < 1.02 * long, "{numjobs}: {short} of {long}");
        assert!(noted && told.contains("threads start over"), "{told}");
    }
}

/// Drives begin in the state that SNIA's tests of such a load require, and the first lines state it.
#[test]
fn a_load_in_order_begins_on_a_drive_that_was_filled_in_order() {
    let rate = |rw: &str, more: &[&str]| {
        let jobs = [
            "run",
            "7450max-800",
            rw,
            "--name=r",
            "--bs=2m",
            "--iodepth=8",
            "--ioengine=libaio",
            "--direct=1",
            "--number_ios=400",
            "--output-format=json",
        ];
        let output = drivelab(&[&jobs[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let root: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rate = root["jobs"][0]["read"]["bw_bytes"]
            .as_f64()
            .expect("a rate");
        (rate * 1e-6, text(&output.stderr).to_owned())
    };
    let (by_load, told) = rate("--rw=read", &[]);
    assert!(
        told.contains("filled sequentially") && told.contains("--state steady"),
        "{told}"
    );
    let (filled, told) = rate("--rw=read", &["--state", "filled"]);
    assert!(!told.contains("begin"), "{told}");
    assert_eq!(by_load, filled);
    let (steady, _) = rate("--rw=read", &["--state", "steady"]);
    assert!(steady < 0.5 * filled, "{steady} of {filled} MB/s");
    let (random, told) = rate("--rw=randread", &[]);
    assert!(told.contains("--state filled"), "{told}");
    assert_eq!(random, rate("--rw=randread", &["--state", "steady"]).0);
}

/// Runs do not model heat: a thermal figure that is set causes a note.
#[test]
fn a_figure_of_heat_that_is_set_is_said_to_change_nothing() {
    let run = [
        "run",
        "p4800x-375",
        "--name=r",
        "--rw=randread",
        "--direct=1",
        "--number_ios=10",
        "--set",
        "thermal.ambient=80C",
    ];
    let output = drivelab(&run);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr).replace('\n', " ");
    assert!(
        told.contains("--set thermal.ambient changes nothing here"),
        "{told}"
    );
}

/// Runs 4 reads with pauses on a drive and a host; returns the messages, and the mean latency in milliseconds.
fn paused(drive: &str, host: &str, pause: &str) -> (String, f64) {
    let think = format!("--thinktime={pause}");
    let run = [
        "run",
        drive,
        "--host",
        host,
        "--direct=1",
        "--rw=randread",
        "--bs=4k",
        "--number_ios=4",
        "--name=r",
        "--output-format=json",
        &think,
    ];
    let output = drivelab(&run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mean = json["jobs"][0]["read"]["clat_ns"]["mean"].as_f64();
    let messages = text(&output.stderr).split_whitespace().collect::<Vec<_>>();
    (messages.join(" "), mean.expect("a latency") * 1e-6)
}

/// A server leaves power states out, and says so if a client drive pauses for long enough.
#[test]
fn a_server_leaves_power_states_out_and_says_so() {
    let told = |drive: &str, pause: &str| {
        let (messages, mean) = paused(drive, "linux", pause);
        assert!(mean < 1.0, "{drive} {pause}: {mean} ms");
        messages.contains("power states during pauses")
    };
    assert!(told("970evo-500", "2s"));
    assert!(!told("970evo-500", "10ms"));
    assert!(!told("p3700-1600", "2s"));
    // A SATA drive, although its family has power states.
    assert!(!told("860evo-1000", "2s"));
}

#[test]
fn on_a_desktop_computer_an_idle_drive_wakes_late() {
    for (drive, pause, within) in [
        ("970evo-500", "2s", 8.0..8.5),
        // The first of four commands waits, those after 10 ms do not.
        ("970evo-500", "10ms", 2.0..2.5),
        // Two states: 45 ms before the first command, and 10 ms after a pause of 1 s.
        ("sn770-1000", "1s", 18.75..19.25),
        // Drives for data centres have no power states.
        ("p3700-1600", "2s", 0.0..1.0),
        ("p4800x-375", "2s", 0.0..1.0),
    ] {
        let (messages, mean) = paused(drive, "linux-desktop", pause);
        assert!(within.contains(&mean), "{drive} {pause}: {mean} ms");
        let told = messages.contains("lets idle drives enter power states");
        assert_eq!(told, within.end > 1.0, "{drive}: {messages}");
    }
}
