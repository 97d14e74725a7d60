//! Settings of a drive on the command line: their effect in a run, and their refusals.

use serde_json::Value;

use crate::rig::drivelab;

/// Returns fio's JSON of a short job on a P4800X 750 GB with additional options.
fn job(rw: &str, bs: &str, depth: &str, seconds: &str, more: &[&str]) -> Value {
    let (rw, bs) = (format!("--rw={rw}"), format!("--bs={bs}"));
    let (depth, runtime) = (format!("--iodepth={depth}"), format!("--runtime={seconds}"));
    let fixed = [
        "run",
        "--drive",
        "p4800x-750",
        "--name=j",
        "--ioengine=libaio",
        "--direct=1",
        "--size=100g",
        "--time_based",
        "--output-format=json",
        &rw,
        &bs,
        &depth,
        &runtime,
    ];
    let output = drivelab(&[&fixed[..], more].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rate(result: &Value, way: &str) -> f64 {
    result["jobs"][0][way]["bw_bytes"].as_f64().expect("a rate")
}

#[test]
fn twelve_watts_slow_down_writes_and_not_reads() {
    let limited = ["--power-limit", "12W"];
    let (full, less) = (
        rate(&job("write", "128k", "8", "2", &[]), "write"),
        rate(&job("write", "128k", "8", "2", &limited), "write"),
    );
    // Full speed needs 9 W above idle; 6 are allowed.
    assert!((less / full - 6.0 / 9.0).abs() < 0.03, "{less} of {full}");
    let (full, less) = (
        rate(&job("read", "128k", "8", "1", &[]), "read"),
        rate(&job("read", "128k", "8", "1", &limited), "read"),
    );
    assert!((less / full - 1.0).abs() < 1e-3, "{less} of {full}");
}

/// Writes at a multiple of their wear take a drive past 100 % and its own limit within a run, with rates around it.
#[test]
fn a_run_reaches_the_end_of_a_drives_life() {
    let worn = |drive: &str, rw: &str, more: &[&str]| {
        let fixed = [
            "run",
            drive,
            "--name=j",
            "--ioengine=libaio",
            "--direct=1",
            "--iodepth=8",
            "--time_based",
            "--runtime=4",
            "--percentage-used=99",
            "--every=100ms",
            "--output-format=json",
            rw,
        ];
        let output = drivelab(&[&fixed[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(0), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (said, result)
    };
    let million = ["--bs=128k", "--wear-factor=1e6"];
    let (said, _) = worn("p4800x-750", "--rw=write", &million);
    for part in [
        "counts 1000000 times",
        "Percentage Used: 99 % at the start, 100 % by 0.2 s, 105 % by 1.2 s",
        "throttles writes: 2.09 GB/s before, 29.6 MB/s after",
        "at and above 100 %: 3 months",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // As many bytes at their own wear change nothing.
    let (said, _) = worn("p4800x-750", "--rw=write", &["--bs=128k"]);
    assert!(!said.contains("Percentage Used"), "{said}");
    let (said, result) = worn(
        "p3700-1600",
        "--rw=randwrite",
        &["--bs=4k", "--wear-factor=1e6"],
    );
    assert!(said.contains("105 % by"), "{said}");
    assert!(
        said.contains("writes fail") && said.contains(" 0 MB/s after"),
        "{said}"
    );
    assert_eq!(result["jobs"][0]["error"], 5);
    let (said, _) = worn("p3700-1600", "--rw=write", &million);
    assert!(said.contains("no block was erased"), "{said}");
}

/// Sustained writes with and without heat; the governor at 12 W keeps the drive below the temperature at which it
/// throttles.
#[test]
fn a_drive_in_hot_air_throttles_and_one_with_a_power_limit_does_not() {
    let fixed = [
        "--state=filled",
        "--set=thermal.time_constant=1s",
        "--every=100ms",
    ];
    let run = |drive: &str, more: &[&str]| {
        let job = [
            "run",
            drive,
            "--name=j",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=write",
            "--bs=128k",
            "--iodepth=8",
            "--time_based",
            "--runtime=8",
            "--output-format=json",
        ];
        let output = drivelab(&[&job[..], &fixed, more].concat());
        let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(0), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (said, rate(&result, "write"))
    };
    for (drive, air) in [
        ("p4800x-750", "--ambient=55C"),
        ("p4610-1600", "--ambient=60C"),
    ] {
        let (said, plain) = run(drive, &[]);
        assert!(said.contains("no drive warms up"), "{said}");
        let (said, cool) = run(drive, &["--heat"]);
        assert!(said.contains("the drive did not throttle"), "{said}");
        assert_eq!(cool, plain, "{drive}");
        let (said, hot) = run(drive, &[air]);
        assert!(said.contains("temperature: at most 8"), "{said}");
        assert!(said.contains("the drive throttled for"), "{said}");
        assert!(hot < 0.9 * plain, "{drive}: {hot} of {plain}");
        for (rate, end) in [(hot, " on average"), (plain, " without heat")] {
            let noted = rate_before(&said, end);
            assert!((noted / rate - 1.0).abs() < 0.01, "{end}: {rate}: {said}");
        }
        let (said, windy) = run(drive, &[air, "--airflow=800LFM"]);
        assert!(said.contains("did not throttle"), "{said}");
        assert_eq!(windy, plain, "{drive}");
    }
    let (said, limited) = run("p4800x-750", &["--ambient=50C", "--power-limit=12W"]);
    assert!(said.contains("did not throttle"), "{said}");
    assert!(limited > 1e9, "{limited}");
    let output = drivelab(&[
        "run",
        "mirror(2*p4800x-750)",
        "--name=j",
        "--size=1g",
        "--heat",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("heat is simulated for a single drive"),
        "{said}"
    );
}

/// Returns the rate in bytes per second that is before these words.
fn rate_before(said: &str, words: &str) -> f64 {
    let (head, _) = said.split_once(words).unwrap_or_else(|| panic!("{said}"));
    let mut last = head.rsplit(' ');
    let unit = match last.next() {
        Some("GB/s") => 1e9,
        Some("MB/s") => 1e6,
        other => panic!("{other:?}: {said}"),
    };
    let number: f64 = last.next().expect("a number").parse().expect("a number");
    number * unit
}

/// A run starts at the temperature of an idle drive and says so; a drive that is critical when idle, or that no
/// throttling cools, is refused.
#[test]
fn a_box_that_is_too_hot_is_refused() {
    let run = |more: &[&str]| {
        let job = [
            "run",
            "pm9a3-960",
            "--name=r",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            "--iodepth=64",
            "--time_based",
            "--runtime=1",
        ];
        let output = drivelab(&[&job[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.code(), said)
    };
    let (code, said) = run(&["--ambient=30C"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("C after a long idle time to"), "{said}");
    assert!(said.contains("air of 30 C, 200 LFM (assumed)"), "{said}");
    let (code, said) = run(&["--ambient=60C", "--airflow=0LFM"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("C without load"), "{said}");
    assert!(said.contains("more airflow"), "{said}");
    let fast = "--set=thermal.time_constant=100ms";
    let (code, said) = run(&["--ambient=30C", "--airflow=10LFM", fast]);
    assert_eq!(code, Some(0), "{said}");
    let still = "air of 30 C, 10 LFM (as still air: 40 LFM, assumed)";
    assert!(said.contains(still), "{said}");
    // 84 C without load.
    let small = "--set=thermal.resistance=20K/W";
    let (code, said) = run(&["--ambient=-16C", small, fast]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("shuts down at 95 C"), "{said}");
    for (option, range) in [
        ("--airflow=6000LFM", "from 0 LFM to 5000 LFM"),
        ("--ambient=500C", "from -40 C to 200 C"),
    ] {
        let (code, said) = run(&[option]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(range), "{said}");
        let name = option.split('=').next().expect("a name");
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn used_up_it_writes_thirty_megabytes_a_second() {
    let worn = job("write", "128k", "4", "2", &["--percentage-used", "105"]);
    let speed = rate(&worn, "write");
    assert!((speed / 30e6 - 1.0).abs() < 0.1, "{speed}");
    let nearly = job("write", "128k", "4", "1", &["--percentage-used=104%"]);
    assert!(rate(&nearly, "write") > 1.9e9);
}

#[test]
fn just_switched_on_its_tail_is_heavier() {
    let tail = |more: &[&str]| {
        let result = job("randread", "4k", "1", "4", more);
        let latency = &result["jobs"][0]["read"]["clat_ns"]["percentile"];
        latency["99.990000"]
            .as_f64()
            .expect("the 99.99th percentile")
    };
    let (settled, fresh) = (tail(&["--uptime", "24h"]), tail(&["--uptime", "10min"]));
    assert!(fresh > 1.5 * settled, "{fresh} against {settled}");
}

#[test]
fn four_kibibyte_blocks_help_a_little() {
    let mean = |more: &[&str]| {
        let result = job("randread", "4k", "1", "1", more);
        result["jobs"][0]["read"]["lat_ns"]["mean"]
            .as_f64()
            .expect("a mean")
    };
    let (small, large) = (mean(&[]), mean(&["--lba-format", "4096"]));
    assert!(
        large < small && large > 0.97 * small,
        "{large} against {small}"
    );
}

/// A governor's limit is a normal figure: setting the figure equals its own option, in every subcommand.
#[test]
fn a_changed_figure_is_the_drives_own() {
    let set = ["--set", "xpoint.power.limit=12 W"];
    let option = ["--power-limit", "12W"];
    let figure = job("write", "128k", "8", "1", &set);
    assert_eq!(
        figure["jobs"],
        job("write", "128k", "8", "1", &option)["jobs"]
    );
    assert_ne!(figure["jobs"], job("write", "128k", "8", "1", &[])["jobs"]);
    for verb in ["run", "replay", "review", "act", "serve", "show", "fit"] {
        let output = drivelab(&[verb, "--drive", "p4800x-375", "--set", "xpoint.power.limit"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(said.contains("write KEY=VALUE"), "{verb}: {said}");
    }
}

#[test]
fn a_figure_that_a_drive_does_not_have_is_refused() {
    let jobs = ["run", "p4800x-375", "--rw=read", "--direct=1", "--size=1g"];
    let said = |set: &[&str]| {
        let output = drivelab(&[&jobs[..], set].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let all = [
        said(&["--set", "xpoint.power.limits=12W"]),
        said(&["--set", "xpoint.power.limit=12"]),
        said(&["--set", "name.first=12"]),
    ];
    insta::assert_snapshot!(all.join("\n---\n"));
    // A section is shown at the option as well, and not in a generated file.
    for key in ["xpoint", "xpoint.power"] {
        let said = said(&["--set", &format!("{key}=12W")]);
        assert!(said.contains("--set on p4800x-375:1:1"), "{said}");
        assert!(!said.contains("(changed)"), "{said}");
    }
}

#[test]
fn what_a_drive_does_not_have_is_told_at_once() {
    let jobs = ["run", "--rw=read", "--direct=1", "--size=1g"];
    let settings = [
        "--drive",
        "950pro-256",
        "--power-limit",
        "12W",
        "--uptime",
        "1h",
        "--lba-format",
        "4096+8",
        "--percentage-used=-3",
    ];
    let output = drivelab(
        &[
            &jobs[..],
            &["--drive", "p4800x-375", "--power-limit", "4 W"],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(2));
    let low = String::from_utf8_lossy(&output.stderr).into_owned();
    let output = drivelab(&[&jobs[..], &settings].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let all = String::from_utf8_lossy(&output.stderr);
    insta::assert_snapshot!(format!("{low}\n---\n{all}"));
}

#[test]
fn values_of_the_wrong_form_are_bad_usage() {
    for (option, value) in [
        ("--power-limit", "12"),
        ("--lba-format", "520"),
        ("--percentage-used", "much"),
        ("--uptime", "10"),
    ] {
        let output = drivelab(&["run", "--drive", "p4800x-375", option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(option) && text.contains("not a"), "{text}");
    }
}

/// Returns IOPS of random 4 KiB writes to a NAND drive, and its write amplification.
fn overwritten(more: &[&str]) -> (f64, f64) {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let table = folder.path().join("table.csv");
    let fixed = [
        "run",
        "p4610-1600",
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=128",
        "--time_based",
        "--ramp_time=200ms",
        "--runtime=1",
        "--csv",
        table.to_str().expect("UTF-8"),
    ];
    let output = drivelab(&[&fixed[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(&table).expect("it was written");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = lines.find(|line| line.contains(",write,"));
    let row: Vec<&str> = row.expect("writes").split(',').collect();
    let figure = |name: &str| {
        let at = header.iter().position(|it| *it == name).expect("a column");
        row[at].parse::<f64>().expect("a number")
    };
    (figure("iops"), figure("write_amplification"))
}

/// Never-written space is spare area; a part of a full drive that a job does not use is not.
#[test]
fn what_is_not_written_is_spare_area() {
    let (full, of_full) = overwritten(&[]);
    let (alone, of_alone) = overwritten(&["--size=80%"]);
    assert!((alone / full - 1.0).abs() < 0.01 && (of_alone / of_full - 1.0).abs() < 0.01);
    let trimmed = overwritten(&["--fill", "80%", "--size=80%"]);
    assert!(
        trimmed.0 > 1.3 * full && trimmed.1 < 0.7 * of_full,
        "{trimmed:?}"
    );
    assert_eq!(overwritten(&["--overprovision", "20%"]), trimmed);
    assert_eq!(overwritten(&["--set", "overprovision=20%"]), trimmed);
}

/// Every subcommand that takes drives accepts the conditions, and refuses impossible ones.
#[test]
fn conditions_are_every_verbs() {
    for verb in [
        "run", "replay", "review", "act", "serve", "show", "fit", "choose", "max", "life", "check",
        "explain", "lab",
    ] {
        let output = drivelab(&[verb, "--drive", "p4610-1600", "--fill", "a fifth"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(said.contains("percent sign"), "{verb}: {said}");
    }
    let job = ["--name=j", "--rw=randread", "--direct=1", "--number_ios=10"];
    let run = |more: &[&str]| drivelab(&[&["run"], &job[..], more].concat());
    let refused = run(&[
        "p4610-1600",
        "exos-x18-16tb",
        "--age=3y",
        "--overprovision=10%",
        "--fill=50%",
        "--state=fresh",
    ]);
    assert_eq!(refused.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&refused.stderr));
    let noted = run(&["p4800x-375", "p4610-1600", "--fill=50%"]);
    assert_eq!(noted.status.code(), Some(0));
    let said = String::from_utf8_lossy(&noted.stderr);
    assert_eq!(
        said.matches("note: p4800x-375: written in place").count(),
        1,
        "{said}"
    );
    assert!(!said.contains("p4610-1600:"), "{said}");
}
