//! `drivelab run` with the host's page cache (`direct=0`, `--memory`), with `--dd`, and with `--scheduler`.

use serde_json::Value;

use crate::rig::{drivelab, text};

const DRIVE: &str = "p4800x-375";

/// Standard output and error of a run that succeeds.
fn told(args: &[&str]) -> (String, String) {
    let output = drivelab(args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    (text(&output.stdout).to_owned(), error.to_owned())
}

/// Mean rate of a job in MB/s.
fn mb_s(args: &[&str], direction: &str) -> f64 {
    let (json, _) = told(&[args, &["--output-format=json"]].concat());
    let root: Value = serde_json::from_str(&json).expect("JSON");
    let bytes = root["jobs"][0][direction]["bw_bytes"].as_f64();
    bytes.expect("a rate") / 1e6
}

/// Memory is faster than the drive, until too much is dirty; then writes have the drive's rate.
#[test]
fn buffered_writes_have_the_rate_of_memory_and_then_of_the_drive() {
    let write = |size: &str, memory: &str| {
        let size = format!("--size={size}");
        let args = [
            "run",
            DRIVE,
            "--rw=write",
            "--direct=0",
            "--bs=128k",
            "--filename=/dev/x",
            &size,
            "--memory",
            memory,
        ];
        mb_s(&args, "write")
    };
    let direct = [
        "run",
        DRIVE,
        "--rw=write",
        "--bs=128k",
        "--filename=/dev/x",
        "--size=1g",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=16",
    ];
    let drive = mb_s(&direct, "write");
    let memory = write("1g", "64G");
    let limited = write("2g", "256M");
    assert!(memory > 2.0 * drive, "{memory} {drive}");
    assert!((limited / drive - 1.0).abs() < 0.15, "{limited} {drive}");
}

/// The first lines say how much came from memory. The second pass over 64 MiB needs no drive.
#[test]
fn the_first_lines_tell_what_the_page_cache_did() {
    let args = [
        "run",
        DRIVE,
        "--rw=randread",
        "--direct=0",
        "--filename=/dev/x",
        "--size=64m",
        "--loops=2",
    ];
    let (out, _) = told(&args);
    let first = out.lines().next().expect("lines");
    assert_eq!(
        first,
        "page cache: 128.0 MiB read by the jobs, 64.0 MiB from the drive, 50.0 % served from memory"
    );
    let (direct, _) = told(&[&args[..], &["--direct=1"]].concat());
    assert!(!direct.contains("page cache"), "{direct}");
    let synced = [
        "run",
        DRIVE,
        "--rw=write",
        "--direct=0",
        "--size=64m",
        "--end_fsync=1",
    ];
    let (out, error) = told(&synced);
    assert!(
        out.starts_with("page cache: 64.0 MiB written by the jobs, 0.0 MiB not yet"),
        "{out}"
    );
    assert!(error.contains("buffered I/O (direct=0)"), "{error}");
}

/// Random reads of more than memory miss in proportion.
#[test]
fn a_range_larger_than_memory_is_read_from_the_drive_in_part() {
    let args = [
        "run",
        DRIVE,
        "--rw=randread",
        "--direct=0",
        "--filename=/dev/x",
        "--size=128m",
        "--norandommap",
        "--number_ios=200000",
        "--memory",
        "64M",
    ];
    let (out, _) = told(&args);
    let first = out.lines().next().expect("lines");
    let share = first.split(", ").nth(2).and_then(|it| it.split(' ').next());
    let share: f64 = share.and_then(|it| it.parse().ok()).expect("a share");
    // One pass of 32,768 reads from cold: each page is read once on average, and half of them fit.
    assert!((30.0..40.0).contains(&share), "{first}");
}

/// Without a sync, `dd` measures memory. With one, it measures the drive.
#[test]
fn dd_tells_what_dd_tells() {
    let seconds = |operands: &str| {
        let (_, error) = told(&["run", "--dd", operands, DRIVE]);
        let line = error.lines().find(|line| line.contains("copied"));
        let line = line.expect("its last line");
        assert!(
            line.contains("268435456 bytes (268.4 MB, 256.0 MiB) copied"),
            "{line}"
        );
        let time = line.split(", ").find_map(|it| it.strip_suffix(" s"));
        time.and_then(|it| it.parse::<f64>().ok()).expect("a time")
    };
    let usual = seconds("if=/dev/zero of=/dev/x bs=1M count=256");
    let synced = seconds("if=/dev/zero of=/dev/x bs=1M count=256 conv=fdatasync");
    let direct = seconds("if=/dev/zero of=/dev/x bs=1M count=256 oflag=direct");
    let small = seconds("if=/dev/zero of=/dev/x bs=4k count=65536 oflag=direct,dsync");
    assert!(
        usual < synced && direct < small,
        "{usual} {synced} {direct} {small}"
    );
    let refused = drivelab(&["run", "--dd", "if=/dev/x of=/dev/y", DRIVE]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("from drive to drive"));
    let both = drivelab(&["run", "--dd", "of=/dev/x", "--rw=read", DRIVE]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("exclude each other"));
}

#[test]
fn hosts_without_a_page_cache_refuse_buffered_reads() {
    let args = [
        "run",
        DRIVE,
        "--rw=read",
        "--direct=0",
        "--size=1m",
        "--host",
        "freebsd-perftest",
    ];
    let refused = drivelab(&args);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("buffered I/O (direct=0)"));
    let memory = drivelab(&[&args[..], &["--direct=1", "--memory", "8G"]].concat());
    assert_eq!(memory.status.code(), Some(2));
    assert!(text(&memory.stderr).contains("no [page_cache]"));
}

/// At depth 1 a scheduler costs its CPU time. On a hard disk with more than 32 requests, mq-deadline sorts those that
/// wait.
#[test]
fn a_scheduler_costs_time_and_sorts_what_waits() {
    let mean = |scheduler: &str| {
        let args = [
            "run",
            DRIVE,
            "--rw=randread",
            "--filename=/dev/x",
            "--direct=1",
            "--ioengine=libaio",
            "--number_ios=5000",
            "--output-format=json",
            "--scheduler",
            scheduler,
        ];
        let (json, _) = told(&args);
        let root: Value = serde_json::from_str(&json).expect("JSON");
        root["jobs"][0]["read"]["lat_ns"]["mean"]
            .as_f64()
            .expect("a mean")
    };
    let [none, deadline, bfq] = ["none", "mq-deadline", "bfq"].map(mean);
    assert!((deadline - none - 700.0).abs() < 60.0, "{none} {deadline}");
    assert!((bfq - none - 1900.0).abs() < 60.0, "{none} {bfq}");
    let disk = |scheduler: &str| {
        let args = [
            "run",
            "wd6001fzwx",
            "--rw=randread",
            "--filename=/dev/x",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=256",
            "--size=1t",
            "--number_ios=3000",
            "--scheduler",
            scheduler,
        ];
        mb_s(&args, "read")
    };
    assert!(disk("mq-deadline") > 1.1 * disk("none"));
    let pool = drivelab(&[
        "run",
        "mirror(2*p4801x-100)",
        "--rw=read",
        "--size=1m",
        "--direct=1",
        "--scheduler",
        "bfq",
    ]);
    assert_eq!(pool.status.code(), Some(2));
    assert!(text(&pool.stderr).contains("is a pool"));
}
