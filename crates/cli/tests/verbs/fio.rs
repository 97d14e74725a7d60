//! `drivelab run` compared with the real fio: the same job files are accepted, the same options have the same meaning,
//! and the output has the same keys and lines. fio's own tool and fio-plot can read it.
//!
//! If fio is not installed, these tests report that and pass; with `DRIVELAB_REQUIRE_TOOLS=1` (as in CI) they fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use crate::rig::{drivelab, installed, run, skipped, text};

fn fio(args: &[&str], folder: &Path) -> Output {
    let output = Command::new("fio").args(args).current_dir(folder).output();
    output.expect("fio runs")
}

fn job_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of job files")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

#[test]
fn job_files_are_read_as_they_are() {
    let folder = TempDir::new().expect("a temporary folder");
    let real = installed("fio");
    let mut warnings = String::new();
    for file in job_files() {
        let path = file.to_str().expect("UTF-8");
        let ours = run(&["--parse-only", path]);
        assert_eq!(
            ours.status.code(),
            Some(0),
            "{path}: {}",
            text(&ours.stderr)
        );
        let name = file.file_name().expect("a file").to_string_lossy();
        warnings.push_str(&format!("{name}\n{}", text(&ours.stderr)));
        if real {
            let theirs = fio(&["--parse-only", path], folder.path());
            assert!(theirs.status.success(), "fio itself refuses {path}");
        }
    }
    insta::assert_snapshot!(warnings);
}

/// Options, one set per job, whose meaning both programs show in their first lines.
const SHOWN: &[&str] = &[
    "rw=randread\nbs=4kib,8k,512",
    "readwrite=readwrite\nblocksize=16k",
    "rw=randtrimwrite\nbs=,64k",
    "rw=trimwrite\nbs=8k,",
    "rw=write:8k\nbs=0x2000",
    "rw=randrw:4\nbs=1m:2m",
    "rw=randtrim\nbsrange=4k-64k",
    "rw=trim\nbsrange=64k:4k,8k-16k",
    "rw=read\nbssplit=4k/60:64k/40",
    "rw=write\nbssplit=4k/10:512/:16k,32k/100,128k:1k",
    "rw=randwrite\nbs=8k\nbsrange=1k-2k",
    "rw=randwrite\nkb_base=1000\nbs=8kib,16kib",
    "rw=randread\nbs=2*$pagesize",
    "rw=randread\nbs=${DRIVELAB_TEST_SIZE}k",
    "rw=randread\nnumjobs=3",
    "rw=randread\nstonewall\nsignificant_figures=6\nbs=1m",
    "rw=randread\nnew_group=1",
    "rw=randread\nwait_for_previous=1",
];

#[test]
fn options_mean_what_they_mean_to_fio() {
    if !installed("fio") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let file = |engine: &str, size: &str| {
        let mut jobs = format!("[global]\nioengine={engine}\ndirect=1\nsize={size}\n");
        for (index, options) in SHOWN.iter().enumerate() {
            // fio takes 4kib as 4000 bytes, which no drive can transfer: another test covers that.
            jobs.push_str(&format!("[j{index}]\n{}\n", options.replace("4kib", "4k")));
        }
        let path = folder.path().join(format!("{engine}.fio"));
        fs::write(&path, jobs).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    // The first lines of jobs, without the engine.
    let heads = |output: &Output| -> Vec<String> {
        text(&output.stdout)
            .lines()
            .take_while(|line| !line.starts_with("Starting"))
            .map(|line| line.split(", ioengine").next().unwrap_or(line).to_string())
            .filter(|line| !line.starts_with("fio-"))
            .collect()
    };
    let run = |command: &mut Command| {
        command
            .env("DRIVELAB_TEST_SIZE", "32")
            .output()
            .expect("it runs")
    };
    let theirs = run(Command::new("fio")
        .arg(file("null", "4m"))
        .current_dir(folder.path()));
    let ours = run(Command::new(cargo_bin!("drivelab")).args([
        "run",
        "--drive",
        "ram-disk",
        &file("libaio", "4m"),
    ]));
    assert_eq!(ours.status.code(), Some(0), "{}", text(&ours.stderr));
    assert_eq!(heads(&ours), heads(&theirs));
    assert!(heads(&ours).len() > SHOWN.len());
}

#[test]
fn a_command_line_leaves_fios_options_in_json() {
    if !installed("fio") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let json = "--output-format=json";
    let options = [
        json,
        "--direct=1",
        "--timeout=5",
        "--name=a",
        "--rw=randread",
        "--size=1m",
        "--thread",
        "--name=b",
    ];
    let more = [
        "--blocksize=8k",
        "--size=2m",
        "--numjobs=2",
        "--group_reporting=1",
        "--new_group",
    ];
    let words = [&options[..], &more].concat();
    let of = |output: &Output| {
        let root: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let jobs = root["jobs"].as_array().expect("jobs").iter();
        let jobs: Vec<Value> = jobs.map(|job| job["job options"].clone()).collect();
        (root["global options"].clone(), jobs)
    };
    let theirs = fio(&words, folder.path());
    assert!(theirs.status.success(), "{}", text(&theirs.stderr));
    assert_eq!(of(&run(&words)), of(&theirs));
}

/// A job that both run. fio runs it on a small file; drivelab takes the same virtual time.
const BOTH: &str = "\
[global]
ioengine=libaio
filename=data
size=4m
runtime=1200ms
time_based
bs=4k
fsync=32
[reader]
description=One of two
rw=randread
iodepth=4
slat_percentiles=1
lat_percentiles=1
[mixed]
stonewall
rw=randrw
rwmixread=60
iodepth=8
numjobs=2
group_reporting
percentile_list=50:99:99.9
[one]
stonewall
rw=write
unified_rw_reporting=mixed
ioengine=psync
[both]
stonewall
rw=rw
unified_rw_reporting=both
steadystate=iops:50%
steadystate_duration=1
number_ios=200000
[latency]
stonewall
rw=randread
latency_target=10s
latency_window=100ms
";

/// Runs [`BOTH`] with fio and simulated.
fn both(format: &str) -> (String, String) {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("both.fio");
    fs::write(&path, BOTH).expect("written");
    // fio prints a line if it must lay a file out first.
    fs::write(folder.path().join("data"), vec![0; 4 << 20]).expect("written");
    let path = path.to_str().expect("UTF-8");
    let format = format!("--output-format={format}");
    let theirs = fio(&[&format, path], folder.path());
    assert!(
        theirs.status.success(),
        "{}{}",
        text(&theirs.stdout),
        text(&theirs.stderr)
    );
    let ours = run(&[&format, path]);
    assert_eq!(ours.status.code(), Some(0), "{}", text(&ours.stderr));
    (
        text(&theirs.stdout).to_owned(),
        text(&ours.stdout).to_owned(),
    )
}

/// Collects every path of keys. Elements of an array count as one; one bucket's name represents all of fio's buckets.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            found.insert(format!("{path}{{}}"));
            for (key, value) in object {
                let is_bucket = path.ends_with("/bins") && is_bucket(key);
                let key = if is_bucket { "(bucket)" } else { key };
                paths(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(array) => {
            found.insert(format!("{path}[]"));
            for (index, value) in array.iter().enumerate() {
                let index = if path == "/jobs" {
                    index.to_string()
                } else {
                    String::new()
                };
                paths(value, &format!("{path}[{index}]"), found);
            }
        }
        Value::String(_) => drop(found.insert(format!("{path} string"))),
        Value::Number(_) => drop(found.insert(format!("{path} number"))),
        Value::Bool(_) | Value::Null => drop(found.insert(format!("{path} other"))),
    }
}

/// Checks whether `name` is the middle of a bucket as described in fio's `stat.h`.
fn is_bucket(name: &str) -> bool {
    let Ok(middle) = name.parse::<u64>() else {
        return false;
    };
    let octave = u64::BITS - 1 - middle.max(1).leading_zeros();
    match octave.checked_sub(6) {
        None | Some(0) => true,
        Some(shift) => middle % (1 << shift) == (1 << shift) / 2,
    }
}

fn compare_json(format: &str) {
    if !installed("fio") {
        return;
    }
    let (theirs, ours) = both(format);
    let keys = |text: &str| {
        let start = text.find("\n{").map_or(0, |start| start + 1);
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let mut value = values.next().expect("one value").expect("JSON");
        // The name and structure of the disk under fio's file depend on the machine.
        let disks = value
            .as_object_mut()
            .expect("an object")
            .remove("disk_util");
        let mut found = BTreeSet::new();
        paths(&value, "", &mut found);
        let mut disk = BTreeSet::new();
        if let Some(first) = disks.as_ref().and_then(|disks| disks.get(0)) {
            paths(first, "/disk_util", &mut disk);
        }
        (found, disk)
    };
    let ((theirs, their_disk), (ours, our_disk)) = (keys(&theirs), keys(&ours));
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let extra: Vec<_> = ours.difference(&theirs).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing: {missing:#?}\nextra: {extra:#?}"
    );
    assert!(ours.len() > 300, "only {} keys", ours.len());
    if !their_disk.is_empty() {
        let extra: Vec<_> = our_disk.difference(&their_disk).collect();
        assert!(extra.is_empty(), "extra in disk_util: {extra:#?}");
    }
}

#[test]
fn json_has_fios_keys() {
    compare_json("json");
}

#[test]
fn json_plus_has_fios_keys() {
    compare_json("normal,json+");
}

/// Returns a line without its figures: the text before the first `=` or `:`, and units by kind.
fn shape(line: &str) -> String {
    let head = line.split(['=', '|']).next().unwrap_or(line);
    let head = if head.contains("(groupid") {
        "job"
    } else {
        head
    };
    let mut shape = head.to_string();
    for unit in ["nsec", "usec", "msec", "KiB/s", "MiB/s"] {
        shape = shape.replace(unit, "unit");
    }
    shape
}

#[test]
fn text_has_fios_lines() {
    if !installed("fio") {
        return;
    }
    let (theirs, ours) = both("normal");
    let shapes = |text: &str| -> Vec<String> {
        let mut shapes: Vec<String> = text
            .lines()
            // The number of lines of a distribution depends on it; the disk's name depends on the machine; and fio
            // shows `bw` and `iops` of a thread that ran long enough.
            .take_while(|line| !line.starts_with("Disk stats"))
            .filter(|line| {
                !line.starts_with("  lat (")
                    && !line.starts_with("   bw")
                    && !line.starts_with("   iops")
            })
            .map(shape)
            .collect();
        shapes.dedup();
        shapes
    };
    assert_eq!(shapes(&ours), shapes(&theirs));
    assert!(ours.contains("Disk stats (read/write):"));
}

#[test]
fn fios_own_tool_reads_json_plus() {
    let tool = "fio_jsonplus_clat2csv";
    if !installed("fio") || !installed(tool) {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let json = folder.path().join("result.json");
    let job = [
        "--name=a",
        "--rw=randrw",
        "--bs=4k",
        "--size=4m",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=4",
    ];
    let output = format!("--output={}", json.display());
    let ours = run(&[&job[..], &["--output-format=json+", &output]].concat());
    assert_eq!(ours.status.code(), Some(0), "{}", text(&ours.stderr));
    let csv = folder.path().join("result.csv");
    let status = Command::new(tool)
        .args([&json, &csv])
        .output()
        .expect("it runs")
        .status;
    assert!(status.success());
    let csv = fs::read_to_string(folder.path().join("result_job0.csv")).expect("it wrote a table");
    let last = csv.lines().last().expect("lines");
    assert!(
        last.contains("1.0"),
        "the cumulative share does not end at 1: {last}"
    );
}

#[test]
fn fio_plot_draws_a_chart() {
    let Ok(fio_plot) = std::env::var("DRIVELAB_FIO_PLOT") else {
        let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "fio-plot is required and DRIVELAB_FIO_PLOT does not name it"
        );
        skipped("DRIVELAB_FIO_PLOT does not name fio-plot (cargo xtask test sets it)");
        return;
    };
    let folder = TempDir::new().expect("a temporary folder");
    let results = folder.path().join("results");
    fs::create_dir(&results).expect("made");
    for depth in [1, 2, 4, 8] {
        let output = format!("--output={}/randread-{depth}-1.json", results.display());
        let depth = format!("--iodepth={depth}");
        let ours = run(&[
            "--name=plot",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            "--size=16m",
            "--numjobs=1",
            &depth,
            "--output-format=json",
            &output,
        ]);
        assert_eq!(ours.status.code(), Some(0), "{}", text(&ours.stderr));
    }
    for chart in [
        &["-l", "-n", "1", "-d", "1", "2", "4", "8"][..],
        &["-L", "-t", "iops"],
        &["-H", "-n", "1", "-d", "4"],
    ] {
        let png = folder.path().join(format!("chart{}.png", chart[0]));
        let output = Command::new(&fio_plot)
            .args(["-T", "drivelab", "-r", "randread", "-i"])
            .arg(&results)
            .arg("-o")
            .arg(&png)
            .args(chart)
            .env("MPLCONFIGDIR", folder.path())
            .output();
        let output = output.expect("fio-plot runs");
        assert!(
            output.status.success(),
            "{chart:?}: {}",
            text(&output.stderr)
        );
        let bytes = fs::read(&png).unwrap_or_else(|error| panic!("{chart:?}: {error}"));
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000,
            "{chart:?} is no chart"
        );
    }
}

#[test]
fn bad_input_overwrites_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let result = folder.path().join("result.json");
    fs::write(&result, "precious").expect("written");
    let output = format!("--output={}", result.display());
    for wrong in [
        &["--name=a", "--rw=randreed"][..],
        &["--iodept=4"],
        &["gone.fio"],
        &["--name=a", "--size=1p", "--filename=x"],
    ] {
        let ours = run(&[wrong, &[&output]].concat());
        assert_eq!(
            ours.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&ours.stderr)
        );
        assert!(ours.stdout.is_empty());
        assert_eq!(
            fs::read_to_string(&result).expect("still there"),
            "precious"
        );
    }
}

#[test]
fn problems_of_drive_host_and_jobs_come_together() {
    let output = Command::new(cargo_bin!("drivelab"))
        .args([
            "run",
            "--drive",
            "ram-disc",
            "--host",
            "xeon-2018",
            "--rw=randreed",
            "--bs=4k",
        ])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    for hint in ["ram-disk", "xeon-2017", "randread"] {
        assert!(
            text(&output.stderr).contains(hint),
            "{}",
            text(&output.stderr)
        );
    }
    let nowhere = run(&["--rw=read", "--size=1m", "--output=/nowhere/at/all"]);
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn fios_options_stand_anywhere() {
    let job = [
        "--ioengine=libaio",
        "--direct",
        "1",
        "-rw",
        "randread",
        "--bs",
        "4k",
        "--size=4m",
        "--thread",
        "--iodepth=4",
    ];
    let before = run(&job);
    assert_eq!(before.status.code(), Some(0), "{}", text(&before.stderr));
    assert!(text(&before.stdout).starts_with("job: (g=0): rw=randread, bs=(R) 4096B-4096B"));
    assert!(text(&before.stdout).contains("Starting 1 thread\n"));
    let again = run(&[&["--seed", "1", "--eta=never"], &job[..]].concat());
    assert_eq!(
        text(&again.stdout),
        text(&before.stdout),
        "the same seed gives the same bytes"
    );
    let other = run(&[&job[..], &["--drivee", "x"]].concat());
    assert_eq!(other.status.code(), Some(2));
    assert!(
        text(&other.stderr).contains("--drive"),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(run(&[]).status.code(), Some(2), "no job");
}

/// fio continues at depth 1; the note says that the target is not met.
#[test]
fn a_latency_target_that_no_depth_meets_does_not_end_the_job() {
    let output = drivelab(&[
        "run",
        "s4510-960",
        "--name=job",
        "--rw=randread",
        "--bs=4k",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=64",
        "--latency_target=10us",
        "--latency_window=10ms",
        "--runtime=100ms",
        "--time_based",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("depth=1\n"), "{said}");
    assert!(
        said.contains("/100msec)") || said.contains("/101msec)"),
        "{said}"
    );
    assert!(
        noted.contains("no depth meets its latency_target"),
        "{noted}"
    );
}
