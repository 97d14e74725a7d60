//! `drivelab measure` with a fake fio that returns prepared results, and with the installed one on a file: refusals,
//! rounds, interruptions, and the subcommands that read the result.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use crate::rig::{drivelab_in, installed, text};

/// Returns the rate in the file `rates`, in the line of its own call number, or 1000; a line `wait` is a call that
/// continues until it is ended.
const FIO: &str = r#"#!/bin/sh
folder=$(dirname "$0")
case "$1" in
--version) echo fio-3.33; exit 0 ;;
--enghelp) printf 'Available IO engines:\n\tio_uring\n\tlibaio\n\tnbd\n'; exit 0 ;;
esac
name=job; output=/dev/stdout
while [ $# -gt 0 ]; do
  case "$1" in
  --name=*) name=${1#--name=} ;;
  --output) output=$2; shift ;;
  esac
  shift
done
[ "$name" = one-block ] && exit 0
echo "$name" >> "$folder/calls"
rate=$(sed -n "$(wc -l < "$folder/calls")p" "$folder/rates" 2> /dev/null)
[ "$rate" = wait ] && exec sleep 60
[ "$rate" = fail ] && { echo "fio: it broke" >&2; exit 1; }
rate=${rate:-1000}
cat > "$output" <<END
{"fio version": "fio-3.33", "jobs": [{"jobname": "$name", "groupid": 0, "error": 0,
 "job options": {"name": "$name", "rw": "randwrite", "bs": "4k", "iodepth": "1", "ioengine": "libaio", "direct": "1"},
 "read": {"iops": 0.000000, "total_ios": 0},
 "write": {"iops": $rate.500000, "total_ios": 20000, "bw_bytes": 4096000, "lat_ns": {"mean": 99000.25},
  "clat_ns": {"mean": 98000.0, "percentile": {"50.000000": 98000, "99.000000": 120000, "99.900000": 130000}}}}]}
END
"#;

/// A folder with such a fio, and a file to measure.
struct Bench(TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(TempDir::new().expect("a temporary folder"));
        let fio = bench.path("fio");
        fs::write(&fio, FIO).expect("a file");
        fs::set_permissions(&fio, fs::Permissions::from_mode(0o755)).expect("a file of ours");
        fs::write(bench.path("image"), vec![7; 2 << 20]).expect("a file");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Sets the results of fio, call by call.
    fn rates(&self, rates: &[&str]) {
        fs::write(self.path("rates"), rates.join("\n") + "\n").expect("a file");
    }

    /// Returns the names of the jobs that were called.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn command(&self, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(cargo_bin!("drivelab"));
        command.arg("measure").args(args).current_dir(self.0.path());
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn measure(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary runs")
    }

    fn document(&self) -> Value {
        let text = fs::read_to_string(self.path("m.json")).expect("it was written");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Returns the files besides those of the bench.
    fn files(&self) -> Vec<String> {
        let known = ["fio", "image", "rates", "calls"];
        let entries = fs::read_dir(self.0.path()).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| !known.contains(&name.as_str()))
            .collect()
    }
}

const FIT: [&str; 7] = [
    "image",
    "--plan",
    "fit",
    "--destroy-data",
    "image",
    "--output",
    "m.json",
];

#[track_caller]
pub(crate) fn expect(output: &Output, code: i32) -> String {
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Rates of a fill, and of rounds; the first five steady ones begin with the fourth.
const STEADY: [&str; 9] = [
    "9000", "8000", "5000", "3000", "1000", "1010", "990", "1000", "1005",
];

#[test]
fn rounds_end_when_the_rate_is_steady() {
    let bench = Bench::new();
    bench.rates(&STEADY);
    let said = expect(&bench.measure(&FIT), 0);
    assert!(said.contains("steady after 8 rounds"), "{said}");
    let document = bench.document();
    assert_eq!(document["verdict"]["is_complete"], true);
    assert_eq!(document["verdict"]["tracked"]["first_round"], 4);
    let steps = document["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 1 + 8 + 15);
    assert_eq!(bench.calls().len(), steps.len());
    // fio's JSON is unchanged, including its numbers.
    let write = &steps[4]["fio"]["jobs"][0]["write"];
    assert_eq!(write["lat_ns"]["mean"], 99000.25);
    assert_eq!(write["iops"], 1000.5);
    // Each call has its own seed.
    let mut seeds: Vec<&str> = steps
        .iter()
        .flat_map(|step| step["arguments"].as_array().expect("words"))
        .filter_map(|word| word.as_str()?.strip_prefix("--randseed="))
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), steps.len());
    assert_eq!(bench.files(), ["m.json"]);
    // A complete measurement is not repeated.
    let said = expect(&bench.measure(&FIT), 0);
    assert!(said.contains("continues after 24 steps"), "{said}");
    assert_eq!(bench.calls().len(), 24);
}

#[test]
fn what_is_never_steady_is_exit_code_3_and_a_whole_file() {
    let bench = Bench::new();
    let rates: Vec<&str> = (0..30)
        .map(|call| if call % 2 == 0 { "1000" } else { "3000" })
        .collect();
    bench.rates(&rates);
    let said = expect(&bench.measure(&FIT), 3);
    assert!(
        said.contains("never steady: not steady after 25 rounds"),
        "{said}"
    );
    assert_eq!(bench.document()["verdict"]["is_complete"], true);
    assert_eq!(bench.calls().len(), 1 + 25 + 15);
}

/// Ctrl-C in a round and a failure in another step give the same final file as without them.
#[test]
fn what_was_interrupted_goes_on_and_becomes_the_same_file() {
    let whole = Bench::new();
    whole.rates(&STEADY);
    expect(&whole.measure(&FIT), 0);
    let bench = Bench::new();
    bench.rates(
        &[
            &STEADY[..3],
            &["wait"],
            &STEADY[3..6],
            &["fail"],
            &STEADY[6..],
        ]
        .concat(),
    );
    let child = bench.command(&FIT).spawn().expect("the binary runs");
    let begun = Instant::now();
    while bench.calls().len() < 4 && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.is_ok_and(|status| status.success()));
    let asked = Instant::now();
    let said = expect(&child.wait_with_output().expect("it ends"), 130);
    assert!(asked.elapsed() < Duration::from_secs(20));
    assert!(
        said.contains("run the same command again to continue"),
        "{said}"
    );
    assert_eq!(bench.document()["steps"].as_array().map(Vec::len), Some(3));
    assert_eq!(bench.files(), ["m.json"]);
    let said = expect(&bench.measure(&FIT), 1);
    assert!(
        said.contains("soak: fio failed") && said.contains("fio: it broke"),
        "{said}"
    );
    assert_eq!(bench.document()["steps"].as_array().map(Vec::len), Some(6));
    expect(&bench.measure(&FIT), 0);
    let (gone_on, in_one) = (bench.document(), whole.document());
    for part in ["host", "asked", "notes", "verdict", "steps"] {
        assert!(gone_on[part] == in_one[part], "{part} differs");
    }
    // Another device, plan or time is another measurement.
    let before = bench.document();
    for more in [&["--runtime", "2s"][..], &["--size", "1M"]] {
        let said = expect(&bench.measure(&[&FIT[..], more].concat()), 2);
        assert!(said.contains("asked."), "{said}");
    }
    fs::copy(bench.path("image"), bench.path("other")).expect("room");
    let said = expect(&bench.measure(&["other", "--output", "m.json"]), 2);
    assert!(
        said.contains("device.name") && said.contains("asked.plan"),
        "{said}"
    );
    assert_eq!(bench.document(), before);
}

#[test]
fn data_is_destroyed_by_name_alone_and_everything_wrong_is_told_at_once() {
    let bench = Bench::new();
    let said = expect(
        &bench.measure(&["image", "--plan", "fit", "--output", "m.json"]),
        2,
    );
    assert!(said.contains("image', its path"), "{said}");
    let wrong = [
        "image",
        "--plan",
        "snia",
        "--destroy-data",
        "imago",
        "--size",
        "8G",
        "--runtime",
        "1us",
    ];
    let said = expect(
        &bench.measure(&[&wrong[..], &["--ioengine", "mmap", "--output", "no/m.json"]].concat()),
        2,
    );
    for part in [
        "names `imago`",
        "2097152 bytes",
        "shorter than",
        "no engine mmap",
        "no folder",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = expect(&bench.measure(&["image", "--output", "image"]), 2);
    assert!(said.contains("one of the files that are read"), "{said}");
    let said = expect(
        &bench.measure(&[
            "image",
            "--plan",
            "snia",
            "--read-only",
            "--output",
            "m.json",
        ]),
        2,
    );
    assert!(
        said.contains("the measured rounds of this plan write"),
        "{said}"
    );
    fs::write(bench.path("m.json"), "{\"mine\": 1}").expect("a file");
    let said = expect(&bench.measure(&["image", "--output", "m.json"]), 2);
    assert!(said.contains("not a measurement"), "{said}");
    assert_eq!(bench.document()["mine"], 1);
    assert!(bench.calls().is_empty());
}

#[test]
fn a_dry_run_prints_the_commands_and_does_nothing() {
    let bench = Bench::new();
    let output = bench.measure(&[
        "image",
        "--plan",
        "snia",
        "--destroy-data",
        "image",
        "--dry-run",
    ]);
    expect(&output, 0);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    let commands = lines
        .iter()
        .filter(|line| line.starts_with("fio --name="))
        .count();
    assert_eq!(commands, 57);
    assert!(
        lines[1].contains("--rw=write") && lines[1].contains("--loops=2"),
        "{}",
        lines[1]
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("# a round") && line.contains("25 times"))
    );
    let reads = bench.measure(&["image", "--plan", "fit", "--read-only", "--dry-run"]);
    expect(&reads, 0);
    let lines: Vec<&str> = text(&reads.stdout)
        .lines()
        .filter(|line| line.starts_with("fio"))
        .collect();
    assert_eq!(lines.len(), 7);
    assert!(
        lines
            .iter()
            .all(|line| line.contains("--readonly") && !line.contains("write"))
    );
    assert!(bench.calls().is_empty() && bench.files().is_empty());
}

/// Nothing writes to the disk that this machine runs from, whatever the arguments are.
#[test]
fn the_root_disk_is_refused() {
    let number = fs::metadata("/").expect("a root").dev();
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff);
    let name = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok();
    let device = name.and_then(|dir| Some(Path::new("/dev").join(dir.file_name()?)));
    let Some(device) = device.filter(|device| device.exists()) else {
        crate::rig::skipped("the root file system is on no block device");
        return;
    };
    let device = device.to_str().expect("UTF-8");
    let bench = Bench::new();
    let said = expect(&bench.measure(&[device, "--plan", "snia", "--dry-run"]), 2);
    for part in [
        "is mounted at /",
        "the root file system is on",
        "fio --name=fill",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(bench.calls().is_empty());
}

/// Returns a file measured by the installed fio in steps of this length, as `m.json` in a folder; `None` without fio.
fn measured_file(runtime: &str) -> Option<TempDir> {
    if !installed("fio") {
        return None;
    }
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("image"), vec![7; 16 << 20]).expect("room");
    let measure = [
        "measure",
        "image",
        "--runtime",
        runtime,
        "--output",
        "m.json",
    ];
    let said = expect(&drivelab_in(folder.path(), &measure), 0);
    assert!(
        said.contains("read-4k-qd256") && said.contains("only reads"),
        "{said}"
    );
    Some(folder)
}

pub(crate) fn json(folder: &TempDir, name: &str) -> Value {
    let text = fs::read_to_string(folder.path().join(name)).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn fio_measures_a_file() {
    let Some(folder) = measured_file("200ms") else {
        return;
    };
    let document = json(&folder, "m.json");
    let engine = document["host"]["engine"].as_str().expect("an engine");
    for step in document["steps"].as_array().expect("steps") {
        let job = &step["fio"]["jobs"][0];
        assert_eq!(job["job options"]["ioengine"], engine);
        assert_eq!(job["write"]["total_ios"], 0);
        assert!(job["read"]["total_ios"].as_u64().is_some_and(|ios| ios > 0));
    }
    let image = fs::read(folder.path().join("image")).expect("a file");
    assert!(image == vec![7; 16 << 20], "a plan that reads wrote");
}

/// Every reader of fio's results can read the result.
#[test]
fn other_verbs_read_a_measurement() {
    let Some(folder) = measured_file("200ms") else {
        return;
    };
    let drivelab = |args: &[&str]| expect(&drivelab_in(folder.path(), args), 0);
    let said = drivelab(&["explain", "m.json"]);
    assert!(said.contains("read-128k-qd8"), "{said}");
    let fit = [
        "fit",
        "ram-disk",
        "--measured",
        "m.json",
        "--iterations",
        "1",
        "--output",
        "mine.toml",
    ];
    let said = drivelab(&fit);
    assert!(
        said.contains("read-4k-qd4") && said.contains("only reads"),
        "{said}"
    );
    assert!(folder.path().join("mine.toml").is_file());
    let review = [
        "review",
        "p4800x-375",
        "--measured",
        "m.json",
        "--ios",
        "200",
        "--output",
        "r.html",
    ];
    let said = drivelab(&review);
    assert!(
        said.contains("Model / measured") && said.contains("only reads"),
        "{said}"
    );
    let data = json(&folder, "r.json");
    let published = data["published"].as_array().expect("figures");
    let measured: Vec<&Value> = published
        .iter()
        .filter(|one| one["stands"] == "measured")
        .collect();
    assert!(
        measured
            .iter()
            .any(|one| one["row"] == "read-4k-qd1" && one["metric"] == "iops")
    );
    assert!(
        measured
            .iter()
            .all(|one| one["source"] == "m.json" && one["drive"] == 0)
    );
}

/// In short steps, bytes of I/Os that were in flight when fio began counting are noticeable; this is not a
/// contradiction.
#[test]
fn steps_of_some_milliseconds_are_what_fio_wrote() {
    let Some(folder) = measured_file("40ms") else {
        return;
    };
    let fit = ["fit", "ram-disk", "--measured", "m.json"];
    let fit = [&fit[..], &["--iterations", "1", "--output", "mine.toml"]].concat();
    let ended = drivelab_in(folder.path(), &fit);
    let said = format!("{}{}", text(&ended.stdout), text(&ended.stderr));
    assert!(said.contains("read-4k-qd"), "{said}");
    assert!(!said.contains("bandwidth over IOPS"), "{said}");
}

/// Rates follow from the rounds; rate-limited I/O is compared at its share, and other readers do not treat it as a
/// run.
#[test]
fn paced_reads_are_measured_beside_writes() {
    if !installed("fio") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("image"), vec![7; 16 << 20]).expect("room");
    let measure = [
        "measure",
        "image",
        "--plan",
        "under-load",
        "--runtime",
        "300ms",
        "--destroy-data",
        "image",
        "--output",
        "m.json",
    ];
    let ended = drivelab_in(folder.path(), &measure);
    expect(&ended, if ended.status.code() == Some(3) { 3 } else { 0 });
    let document = json(&folder, "m.json");
    let steps = document["steps"].as_array().expect("steps");
    let rounds: Vec<f64> = steps
        .iter()
        .filter(|step| step["phase"] == "round")
        .filter_map(|step| step["fio"]["jobs"][0]["write"]["iops"].as_f64())
        .collect();
    let taken = rounds[rounds.len() - 5..].iter().sum::<f64>() / 5.0;
    let beside = &steps[steps.len() - 3];
    assert_eq!(beside["step"], "under-load-80");
    let each = taken as u64 / 10 / 4;
    let words = beside["arguments"].as_array().expect("words");
    assert!(
        words.contains(&Value::from(format!("--rate_iops={each},{each}"))),
        "{words:?}"
    );
    let groups = |step: &Value| step["fio"]["jobs"].as_array().map(Vec::len);
    assert_eq!(groups(beside), Some(2));
    assert_eq!(groups(&steps[steps.len() - 7]), Some(1));
    let drivelab = |args: &[&str]| expect(&drivelab_in(folder.path(), args), 0);
    let said = drivelab(&["explain", "m.json"]);
    assert!(
        said.contains("taken") && !said.contains("under-load-80"),
        "{said}"
    );
    let review = [
        "review",
        "p4800x-375",
        "--suite",
        "under-load",
        "--measured",
        "m.json",
        "--ios",
        "200",
        "--output",
        "r.html",
    ];
    let said = drivelab(&review);
    for part in ["Model / measured", "under-load-80", "taken"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let data = json(&folder, "r.json");
    let published = data["published"].as_array().expect("figures");
    let is_it = |one: &&Value| {
        one["row"] == "under-load-80" && one["of"] == "read" && one["metric"] == "p50"
    };
    let told = published.iter().find(is_it).expect("a median");
    assert_eq!(told["settings"]["share_of_saturation"], 0.8);
}

/// fio ends with a program that is killed, and does not continue writing.
#[test]
fn fio_does_not_outlive_a_killed_measurement() {
    if !installed("fio") || !installed("setpriv") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("image"), vec![7; 4 << 20]).expect("room");
    let mut child = Command::new(cargo_bin!("drivelab"))
        .args(["measure", "image", "--runtime", "60s", "--output", "m.json"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let pid = child.id();
    let fio = || -> Option<String> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let one = children.split_whitespace().next()?.to_owned();
        let name = fs::read_to_string(format!("/proc/{one}/comm")).ok()?;
        let words = fs::read_to_string(format!("/proc/{one}/cmdline")).ok()?;
        (name.trim() == "fio" && words.contains("read-4k-qd1")).then_some(one)
    };
    let begun = Instant::now();
    let mut found = None;
    while found.is_none() && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(20));
        found = fio();
    }
    let fio = PathBuf::from(format!("/proc/{}", found.expect("fio runs")));
    sleep(Duration::from_millis(500));
    child.kill().expect("a process of ours");
    child.wait().expect("a process of ours");
    let killed = Instant::now();
    while fio.exists() && killed.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }
    assert!(!fio.exists(), "fio goes on after {:?}", killed.elapsed());
}

#[test]
fn a_measurement_that_is_not_there_is_told_once() {
    let folder = TempDir::new().expect("a temporary folder");
    let review = ["review", "p4800x-375", "--measured", "none.json"];
    let output = drivelab_in(folder.path(), &review);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert_eq!(said.matches("cannot be read").count(), 1, "{said}");
}
