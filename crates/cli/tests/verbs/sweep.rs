//! `drivelab sweep`: its output, its end, and that it resumes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use crate::rig::{drivelab_in, text};

fn folder(sweep: &str) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("a.toml"), sweep).expect("a file");
    folder
}

/// 1,500 scenarios, 15 parts.
const LONG: &str = "drive = [\"p4800x-375\", \"ram-disk\", \"p4801x-100\"]\nseed = { from = 1, count = 500 }\n\
                    [job]\nrw = \"randread\"\ndirect = 1\nnumber_ios = 400\n";

fn begin(folder: &Path) -> Child {
    let child = Command::new(cargo_bin!("drivelab"))
        .args(["sweep", "a.toml", "--threads", "1"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("the binary runs")
}

/// Returns the number of stored parts.
fn parts(folder: &Path) -> usize {
    let entries = fs::read_dir(folder.join("a.parquet.parts"));
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".parquet")).count()
}

fn wait_for_parts(folder: &Path, least: usize) {
    let begun = Instant::now();
    while parts(folder) < least {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no part is written"
        );
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn what_is_killed_goes_on_and_comes_out_the_same() {
    let whole = folder(LONG);
    let output = drivelab_in(whole.path(), &["sweep", "a.toml", "--threads", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1,500 scenarios in "));
    let expected = fs::read(whole.path().join("a.parquet")).expect("the result");

    let killed = folder(LONG);
    let mut child = begin(killed.path());
    wait_for_parts(killed.path(), 2);
    child.kill().expect("SIGKILL");
    child.wait().expect("it is gone");
    let there = parts(killed.path());
    assert!((2..15).contains(&there), "{there} parts");
    let child = begin(killed.path());
    wait_for_parts(killed.path(), there + 2);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("run the same command again to continue"));
    let output = drivelab_in(killed.path(), &["sweep", "a.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(" of 1,500 scenarios are there"));
    let again = fs::read(killed.path().join("a.parquet")).expect("the result");
    assert!(again == expected, "the bytes differ");
    let output = drivelab_in(killed.path(), &["sweep", "a.toml"]);
    assert!(
        text(&output.stderr).contains("is complete"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_dry_run_shows_commands_and_writes_nothing() {
    let sweep = "drive = \"ram-disk\"\n[job]\nrw = \"randread\"\nnumber_ios = 100\nbs = [\"4k\", \"8k\"]\n[[point]]\n\
                 job = { rwmixread = 30 }\n[[point]]\ndrive = \"mirror(2*p4801x-100)\"\n";
    let folder = folder(sweep);
    let output = drivelab_in(folder.path(), &["sweep", "a.toml", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
}

#[test]
fn the_command_of_a_row_repeats_it() {
    let sweep = "drive = \"950pro-256\"\nseed = 3\nwarm_seed = 9\n[job]\n\
                 rw = \"randwrite\"\ndirect = 1\nnumber_ios = 3000\n";
    let folder = folder(sweep);
    let dry = drivelab_in(folder.path(), &["sweep", "a.toml", "--dry-run"]);
    let command = text(&dry.stdout)
        .lines()
        .nth(1)
        .expect("a command")
        .to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let ran = drivelab_in(folder.path(), &[&words[..], &["--csv", "a.csv"]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let swept = drivelab_in(folder.path(), &["sweep", "a.toml"]);
    assert_eq!(swept.status.code(), Some(0), "{}", text(&swept.stderr));
    let table = fs::File::open(folder.path().join("a.parquet")).expect("the result");
    let (columns, rows) = study::sweep::read_table(table).expect("Parquet");
    let lines = fs::read_to_string(folder.path().join("a.csv")).expect("a table");
    let mut lines = lines
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let (head, line) = (lines.next().expect("a head"), lines.next().expect("a line"));
    for name in ["iops", "mean_us", "p99_us", "max_us"] {
        let wanted = format!("write_{name}");
        let at = columns.iter().position(|column| column.name == wanted);
        let study::sweep::Cell::Number(swept) = rows[0][at.expect("a column")] else {
            panic!("{name} is no number");
        };
        let at = head
            .iter()
            .position(|column| *column == name)
            .expect("a column");
        assert_eq!(line[at].parse(), Ok(swept), "{name}");
    }
}

#[test]
fn what_cannot_be_run_is_exit_code_2_and_the_rest_is_written() {
    let sweep = "drive = [\"optane-memory-16\", \"p4801x-100\"]\n[job]\nrw = \"read\"\ndirect = 1\noffset = \"20g\"\n\
                 number_ios = 10\n";
    let folder = folder(sweep);
    let output = drivelab_in(folder.path(), &["sweep", "a.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("1 of 2 could not be run, the first is scenario 0: "),
        "{}",
        text(&output.stderr)
    );
    assert!(folder.path().join("a.parquet").is_file());
    let output = drivelab_in(
        folder.path(),
        &["sweep", "b.toml", "--output", "no/such/b.parquet"],
    );
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("b.toml") && told.contains("there is no folder"),
        "{told}"
    );
}
