//! `--fault` of run and replay: phases are shown, and impossible faults are refused with their line.

use serde_json::Value;
use std::fs;

use crate::rig::{drivelab, text};

const JOB: [&str; 8] = [
    "--name=a",
    "--ioengine=libaio",
    "--direct=1",
    "--iodepth=8",
    "--rw=randread",
    "--bs=4k",
    "--runtime=60ms",
    "--time_based",
];

fn script(folder: &tempfile::TempDir, lines: &str) -> String {
    let path = folder.path().join("faults");
    fs::write(&path, lines).expect("written");
    path.display().to_string()
}

#[test]
fn a_run_tells_what_was_done_between_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "at 20ms p4801x-100.0: dies\nat 40ms p4801x-100.0: returns # and is copied to\n";
    let path = script(&folder, lines);
    let pool = "mirror(2*p4801x-100)";
    let run = |more: &[&str]| {
        let args = [&["run", pool, "--fault", &path], more, &JOB].concat();
        let output = drivelab(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let json: Value = serde_json::from_str(&run(&["--output-format=json"])).expect("JSON");
    let phases = json["phases"].as_array().expect("phases");
    let after: Vec<_> = phases.iter().map(|it| it["after"].as_str()).collect();
    let wanted = ["", "p4801x-100.0: dies", "p4801x-100.0: returns"];
    assert_eq!(after, wanted.map(Some));
    let ios = |value: &Value| value["read"]["ios"].as_u64().expect("a number");
    assert_eq!(
        phases.iter().map(ios).sum::<u64>(),
        json["jobs"][0]["read"]["total_ios"]
            .as_u64()
            .expect("fio's"),
    );
    let shown = run(&[]);
    assert!(shown.contains("after p4801x-100.0: dies"), "{shown}");
}

#[test]
fn a_replay_does_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = script(&folder, "at 1ms slow 1ms\n");
    let trace = folder.path().join("t.csv");
    let lines = (0..40).map(|i| format!("{}.{:03},R,{},4096\n", i / 10, i % 10, i * 4096));
    let head = String::from("time,op,offset,size\n");
    fs::write(&trace, head + &lines.collect::<String>()).expect("written");
    let trace = trace.display().to_string();
    let columns = [
        "--columns",
        "time=1,op=2,offset=3,size=4",
        "--time-unit",
        "s",
    ];
    let args = [
        &["replay", &trace, "p4800x-375", "--fault", &path],
        &columns[..],
    ]
    .concat();
    let output = drivelab(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("after the drive: 1 ms slower"), "{shown}");
}

#[test]
fn what_a_run_cannot_have_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "at 1s p4801x-100.0: rots 7\nat 2s dies\nat 3s nobody: slow 1ms\n";
    let path = script(&folder, lines);
    let args = ["run", "mirror(2*p4801x-100)", "--fault", &path];
    let output = drivelab(&[&args, &JOB[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    for wanted in [
        "`rots 7`: this fault only affects data, and a run has no data",
        "faults:1",
        "`dies`: this is a fault of one member of a pool: name it",
        "faults:2",
        "there is no drive `nobody`",
        "faults:3",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let missing = drivelab(&[
        "run",
        "p4801x-100",
        "--fault",
        "/nowhere/script",
        "--name=a",
    ]);
    assert_eq!(missing.status.code(), Some(2));
    let told = text(&missing.stderr);
    assert!(
        told.contains("cannot be read") && told.contains("/nowhere/script"),
        "{told}"
    );
}

/// A node that represents several has a fault for all of them: data that a single node's fault would leave is lost,
/// and a note states that.
#[test]
fn a_fault_of_a_folded_cluster_is_said_to_strike_all_that_a_node_stands_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |lines: &str| {
        let path = script(&folder, lines);
        let output = drivelab(&[&["run", "vsan-s3-optane", "--fault", &path], &JOB[..]].concat());
        (
            output.status.code(),
            text(&output.stderr).replace('\n', " "),
        )
    };
    let (code, said) = told("at 20ms node0.0.cache: dies\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("affects the same drive of 4 nodes"), "{said}");
    let (_, said) = told("");
    assert!(!said.contains("the same drive of"), "{said}");
}

/// Counts and rates: the same script and seed give the same bytes; another seed draws other errors.
#[test]
fn a_run_with_counts_and_rates_is_the_same_again_with_its_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "at read 500: delay 50us range 0..1GiB for 100 commands\n\
                 after 900 reads: power-cut\n\
                 error-rate reads 0.05\n";
    let path = script(&folder, lines);
    let run = |seed: &str| {
        let more = ["--seed", seed, "--output-format=json"];
        let args = [&["run", "p4801x-100", "--fault", &path], &more[..], &JOB].concat();
        let output = drivelab(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let one = run("1");
    assert!(one == run("1"), "the same bytes");
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (one, two) = (json(&one), json(&run("2")));
    let failed = |json: &Value| json["phases"][0]["failed"].as_u64().expect("a number");
    assert!(failed(&one) > 0 && failed(&one) != failed(&two), "{one}");
    let phases = one["phases"].as_array().expect("phases");
    let after: Vec<_> = phases.iter().map(|it| it["after"].as_str()).collect();
    let wanted = [
        "the drive: unrecovered-read rate 0.05",
        "the drive: delay 50000ns range 0..1073741824 for 100 commands",
        "the drive: loses its power",
    ];
    assert_eq!(after, wanted.map(Some));
}

#[test]
fn all_that_is_wrong_with_counts_and_rules_is_said_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "at write 0: dies\nafter ten writes: dies\nerror-rate reads 2\n";
    let refused = |lines: &str| {
        let path = script(&folder, lines);
        let args = ["run", "mirror(2*p4801x-100)", "--fault", &path];
        let output = drivelab(&[&args, &JOB[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr).to_owned()
    };
    let told = refused(lines);
    for wanted in [
        "commands are counted from 1",
        "faults:1",
        "`ten` is not a valid number here",
        "faults:2",
        "`2` is not a rate above 0 and up to 1",
        "faults:3",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let told = refused("at write 9: power-cut\np4801x-100.1: write-fault range 0..9TB\n");
    for wanted in ["name it", "faults:1", "beyond the end", "faults:2"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}

/// A script of comments only is an error: the run would be one without faults.
#[test]
fn a_script_without_a_fault_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for lines in ["", "# nothing yet\n\n"] {
        let path = script(&folder, lines);
        let args = [&["run", "p4800x-375", "--fault", &path], &JOB[..]].concat();
        let output = drivelab(&args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("the fault script contains no fault"),
            "{said}"
        );
        assert!(said.contains(&path), "{said}");
    }
}

/// A member that misses writes is resynced or rebuilt while the client works: the output has its duration, and the
/// client's figures during and after it.
#[test]
fn a_rebuild_is_shown_with_its_duration_and_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |pool: &str, member: &str, lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|it| it.replace("M:", member)).collect();
        let path = script(&folder, &lines.join("\n"));
        let job = "--name=a --ioengine=libaio --direct=1 --iodepth=4 --rw=randrw --bs=4k --size=256m \
                   --norandommap --runtime=800ms --time_based";
        let args = ["run", pool, "--fault", &path, "--output-format=json"];
        let args: Vec<&str> = args.into_iter().chain(job.split_whitespace()).collect();
        let output = drivelab(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_str::<Value>(text(&output.stdout)).expect("JSON")
    };
    let away = ["at 50ms M: dies", "at 100ms M: returns"];
    for (pool, member) in [
        ("mirror(2*p4801x-100)", "p4801x-100.1:"),
        ("raid5(3*p4801x-100)", "p4801x-100.1:"),
        ("raid6(4*p4801x-100)", "p4801x-100.0:"),
        (
            "intent-log(main=raidz(3*p4801x-100), log=p1600x-58; txg=50ms)",
            "p4801x-100.2:",
        ),
    ] {
        let json = run(pool, member, &away);
        let rebuild = &json["rebuilds"][0];
        assert_eq!(rebuild["in_sync"], true, "{pool}: {json:#}");
        let (from, to) = (rebuild["from_s"].as_f64(), rebuild["to_s"].as_f64());
        let phases = json["phases"].as_array().expect("phases");
        let name = member.trim_end_matches(':');
        let phase = |what: &str| {
            let after = format!("{name}: {what}");
            let found = phases.iter().find(|it| it["after"] == *after);
            found.unwrap_or_else(|| panic!("{pool} {what}: {phases:#?}"))
        };
        // The phase from the return to the end of the rebuild has the client's figures during it.
        assert_eq!(phase("returns")["from_s"].as_f64(), from, "{pool}");
        assert_eq!(phase("in sync")["from_s"].as_f64(), to, "{pool}");
        assert!(phase("returns")["read"]["p99_us"].is_number(), "{pool}");
        assert!(
            phase("in sync")["write"]["ios"].as_u64() > Some(100),
            "{pool}"
        );
    }
    // With a limit, a replaced member takes as long as its size and the limit say.
    let slow = run(
        "mirror(2*p4801x-100; resync_rate=200MB/s)",
        "p4801x-100.1:",
        &["at 50ms M: dies", "at 100ms M: replaced"],
    );
    let rebuild = &slow["rebuilds"][0];
    assert_eq!(rebuild["in_sync"], false, "{rebuild:#}");
    let rest = rebuild["remaining_s"].as_f64().expect("seconds");
    assert!((450.0..550.0).contains(&rest), "{rebuild:#}");
    let left = rebuild["bytes_left"].as_f64().expect("bytes");
    assert!((99e9..1e11).contains(&left), "{rebuild:#}");
}

#[test]
fn a_member_without_copies_cannot_be_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    for (drive, name) in [
        ("stripe(2*p4801x-100)", "p4801x-100.0"),
        ("p4801x-100", "p4801x-100"),
    ] {
        let path = script(&folder, &format!("at 1ms {name}: replaced\n"));
        let output = drivelab(&[&["run", drive, "--fault", &path], &JOB[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{drive}");
        let said = text(&output.stderr);
        assert!(said.contains("nothing has a copy of the data"), "{said}");
    }
}
