//! Ctrl-C: `run` prints partial results; a subcommand without partial results ends at once, but never while writing
//! its results.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use crate::rig::text;

/// Checks whether this process handles SIGINT (`SigCgt` of proc(5)).
fn handles_interrupts(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << 1 != 0)
}

/// Sends Ctrl-C this long after the process handles it.
fn interrupt(child: &Child, after: Duration) {
    let begun = Instant::now();
    while !handles_interrupts(child.id()) && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(20));
    }
    sleep(after);
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill is there").success());
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

#[test]
fn ctrl_c_prints_what_there_is_and_exits_130() {
    for more in [&[][..], &["--drive", "p4800x-375"]] {
        let child = Command::new(cargo_bin!("drivelab"))
            .args([
                "run",
                "--drive",
                "ram-disk",
                "--direct=1",
                "--name=endless",
                "--rw=randread",
            ])
            .args(["--size=1g", "--runtime=90d", "--time_based"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("the binary runs");
        interrupt(&child, Duration::from_millis(1_500));
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("stopped by signal 2"));
        let out = text(&output.stdout);
        let shown = if more.is_empty() {
            "read: IOPS="
        } else {
            "ram-disk"
        };
        assert!(out.contains("endless") && out.contains(shown), "{out}");
    }
}

#[test]
fn what_has_nothing_to_show_yet_ends_at_once_and_leaves_nothing() {
    let long: [&[&str]; 3] = [
        &[
            "review",
            "d7-p5510-3840",
            "p3700-1600",
            "--suite",
            "full",
            "--output",
            "a.html",
        ],
        &["act", "p3700-1600", "--duration", "3600", "--csv", "a.csv"],
        &["reproduce", "S1", "--json", "a.json"],
    ];
    for args in long {
        let folder = TempDir::new().expect("a temporary folder");
        let child = Command::new(cargo_bin!("drivelab"))
            .args(args)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("the binary runs");
        interrupt(&child, Duration::from_millis(300));
        let asked = Instant::now();
        let output = child.wait_with_output().expect("it ends");
        assert!(asked.elapsed() < Duration::from_secs(10), "{args:?}");
        assert_eq!(output.status.code(), Some(130), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert!(names(&folder).is_empty(), "{args:?}: {:?}", names(&folder));
    }
}

/// The page is written into a pipe that is smaller than the page, so writing lasts as long as the pipe is not read.
#[test]
fn results_that_are_being_written_are_written_whole() {
    let folder = TempDir::new().expect("a temporary folder");
    let page = folder.path().join("a.html");
    let made = Command::new("mkfifo").arg(&page).status();
    assert!(made.expect("mkfifo is there").success());
    let job = "[a]\nrw=randread\nsize=1m\n";
    fs::write(folder.path().join("a.fio"), job).expect("a file");
    let child = Command::new(cargo_bin!("drivelab"))
        .args([
            "review",
            "ram-disk",
            "--job",
            "a.fio",
            "--only-jobs",
            "--output",
            "a.html",
        ])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("the binary runs");
    // Opens when the other side does.
    let mut pipe = fs::File::open(&page).expect("a pipe");
    interrupt(&child, Duration::ZERO);
    sleep(Duration::from_millis(300));
    let mut html = String::new();
    pipe.read_to_string(&mut html).expect("a page");
    assert!(html.len() > 100_000 && html.trim_end().ends_with("</html>"));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(names(&folder), ["a.csv", "a.fio", "a.html", "a.json"]);
    let data = fs::read(folder.path().join("a.json")).expect("data");
    serde_json::from_slice::<Value>(&data).expect("JSON");
}
