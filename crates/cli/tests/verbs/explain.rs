//! `drivelab explain` on results with known causes, because `drivelab run` made them; on a run of the installed fio;
//! and on invalid input.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::rig::{drivelab_in, text};

/// Results of a run as fio writes them, in their own folder.
pub(crate) struct Results(pub(crate) tempfile::TempDir);

impl Results {
    pub(crate) fn of(drive: &str, options: &[&str]) -> Results {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let all = [
            "run",
            drive,
            "--name=a",
            "--ioengine=libaio",
            "--direct=1",
            "--time_based",
            "--output-format=json",
            "--output=r.json",
        ];
        let runtime = ["--runtime=100ms"];
        let longer = options.iter().any(|it| it.starts_with("--runtime"));
        let all = [&all[..], if longer { &[] } else { &runtime }, options].concat();
        let output = drivelab_in(folder.path(), &all);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        Results(folder)
    }

    /// Returns the results without an option that describes the load.
    fn without(self, option: &str) -> Results {
        let path = self.0.path().join("r.json");
        let told = std::fs::read_to_string(&path).expect("results");
        let mut all: Value = serde_json::from_str(&told).expect("JSON");
        let [here, there] = ["/global options", "/jobs/0/job options"].map(|place| {
            let options = all.pointer_mut(place).and_then(Value::as_object_mut);
            options.is_some_and(|options| options.remove(option).is_some())
        });
        assert!(here || there, "{option}");
        std::fs::write(&path, all.to_string()).expect("a folder of our own");
        self
    }

    /// Returns the output of `explain` with this drive.
    pub(crate) fn explained(&self, drive: &str) -> Value {
        let args = ["explain", "r.json", drive, "--seeds", "1", "--json"];
        let mut all = explained(self.0.path(), &args);
        all["answers"][0].take()
    }
}

pub(crate) fn explained(folder: &Path, args: &[&str]) -> Value {
    let output = drivelab_in(folder, args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(crate) fn bound(answer: &Value) -> &str {
    answer["bound"]["by"].as_str().expect("a word")
}

/// Returns the explaining conditions, under which the model agrees with the measurement.
fn causes(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["model"]["agrees"], true, "{}", answer["model"]);
    let causes = answer["model"]["explained_by"].as_array();
    let causes = causes.expect("a list").iter();
    causes.filter_map(Value::as_str).collect()
}

/// Returns the factor by which a run is faster without an option.
fn factor(answer: &Value, key: &str) -> f64 {
    let options = answer["model"]["options"].as_array().expect("a list");
    let found = options.iter().find(|trial| trial["key"] == key);
    found
        .and_then(|trial| trial["factor"].as_f64())
        .unwrap_or(1.0)
}

const DEEP: [&str; 4] = [
    "--rw=randwrite",
    "--iodepth=16",
    "--numjobs=4",
    "--group_reporting",
];

#[test]
fn a_queue_is_told_from_a_thread_and_what_reaches_the_rating_does() {
    let shallow = Results::of("p4800x-375", &["--rw=randread", "--iodepth=1"]);
    let answer = shallow.explained("p4800x-375");
    assert_eq!((bound(&answer), causes(&answer).len()), ("queue", 0));
    assert!(factor(&answer, "depth") > 2.0);
    assert!(factor(&answer, "idle-states") > 1.1);
    assert_eq!(answer["model"]["rating"]["iops"], 550_000.0);

    let advice = &answer["model"]["advice"];
    assert_eq!(advice["reached"], true);
    let job = advice["job"].as_str().expect("a job");
    let job = job.replace("runtime=60s", "runtime=100ms");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("j.fio"), job).expect("a folder of our own");
    let args = ["run", "j.fio", "p4800x-375", "--output-format=json"];
    let run = explained(folder.path(), &args);
    let iops = run["jobs"][0]["read"]["iops"].as_f64().expect("a number");
    assert!(iops > 0.95 * 550_000.0, "{iops}");

    let deep = Results::of("p4800x-375", &["--rw=randread", "--iodepth=64"]);
    let answer = deep.explained("p4800x-375");
    assert_eq!((bound(&answer), causes(&answer).len()), ("thread", 0));
    assert!(factor(&answer, "threads") > 1.5);
    assert!(factor(&answer, "depth") < 1.1);
}

/// Conditions that are not in the file are found by their effect.
#[test]
fn a_condition_that_the_file_does_not_tell_is_found() {
    let new = Results::of(
        "950pro-256",
        &["--rw=randwrite", "--iodepth=32", "--state", "fresh"],
    );
    let answer = new.explained("950pro-256");
    assert!(causes(&answer).contains(&"fresh"));
    // The same drive, with a known state.
    let args = [
        "explain",
        "r.json",
        "--drive",
        "950pro-256",
        "--state",
        "fresh",
        "--json",
    ];
    let known = explained(new.0.path(), &args);
    assert!(causes(&known["answers"][0]).is_empty());

    let odd = Results::of("p4800x-375", &[&DEEP[..], &["--offset=512"]].concat());
    let answer = odd.without("offset").explained("p4800x-375");
    assert_eq!(causes(&answer), ["misaligned"]);

    let worn = Results::of(
        "p4800x-375",
        &[&DEEP[..], &["--percentage-used", "110"]].concat(),
    );
    let answer = worn.explained("p4800x-375");
    assert_eq!((bound(&answer), causes(&answer)), ("limit", vec!["worn"]));

    let held = [
        "--rw=randwrite",
        "--iodepth=64",
        "--numjobs=4",
        "--group_reporting",
        "--power-limit",
        "12W",
    ];
    let answer = Results::of("p4800x-750", &held).explained("p4800x-750");
    assert_eq!(
        (bound(&answer), causes(&answer)),
        ("limit", vec!["power-12W"])
    );

    let awake = ["--rw=randread", "--iodepth=1", "--host", "xeon-2017"];
    let answer = Results::of("p4800x-375", &awake).explained("p4800x-375");
    assert_eq!(causes(&answer), ["host"]);

    let lanes = [
        "--rw=read",
        "--bs=128k",
        "--iodepth=16",
        "--state",
        "filled",
        "--set",
        "nand.link.rate=1.4GB/s",
    ];
    let results = Results::of("p3700-1600", &[&lanes[..], &["--runtime=1s"]].concat());
    let args = [
        "explain",
        "r.json",
        "--drive",
        "p3700-1600",
        "--state",
        "filled",
        "--seeds",
        "1",
        "--json",
    ];
    let all = explained(results.0.path(), &args);
    let answer = &all["answers"][0];
    assert_eq!((bound(answer), causes(answer)), ("link", vec!["link-half"]));
}

/// Neither condition alone explains the measurement, both together do.
#[test]
fn two_conditions_at_once_are_told_from_each_alone() {
    let held = ["--iodepth=64", "--power-limit", "12W", "--offset=512"];
    let both = Results::of("p4800x-750", &[&DEEP[..], &held].concat());
    let answer = both.without("offset").explained("p4800x-750");
    assert_eq!(causes(&answer), ["misaligned+power-12W"]);
    let all = answer["model"]["conditions"].as_array().expect("a list");
    let found = all.iter().find(|it| it["key"] == "misaligned+power-12W");
    let to_tell = found.expect("it was tried")["to_tell"].as_array();
    assert_eq!(to_tell.map(Vec::len), Some(2));
}

/// Returns fio's log of a run, made from the output of `drivelab run --over-time`.
fn log_of(over_time: &Path, column: &str) -> String {
    let table = std::fs::read_to_string(over_time).expect("a table");
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    let at = |name: &str| names.iter().position(|it| *it == name).expect("a column");
    let lines = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |name: &str| cells[at(name)].parse::<f64>().expect("a number");
        format!(
            "{:.0}, {:.0}, 1, 131072\n",
            number("seconds") * 1e3,
            number(column)
        )
    });
    lines.collect()
}

/// A new drive's SLC cache is full after the number of bytes in its file.
#[test]
fn a_full_slc_cache_is_told_from_a_log() {
    let options = [
        "--rw=write",
        "--bs=128k",
        "--iodepth=16",
        "--state",
        "fresh",
    ];
    let over = ["--runtime=20s", "--over-time", "o.csv"];
    let results = Results::of("960evo-250", &[&options[..], &over].concat());
    let folder = results.0.path();
    let log = log_of(&folder.join("o.csv"), "write_iops");
    std::fs::write(folder.join("run_iops.1.log"), log).expect("a folder of our own");
    let args = ["explain", "r.json", "--log", "run_iops.1.log", "--json"];
    let alone = explained(folder, &args);
    let causes = alone["answers"][0]["change"]["causes"].as_array();
    assert!(causes.is_some_and(|all| all.len() > 2), "{alone}");
    let drive = ["--drive", "960evo-250", "--seeds", "1"];
    let known = explained(folder, &[&args[..], &drive].concat());
    let change = &known["answers"][0]["change"];
    assert_eq!(
        change["causes"].as_array().expect("causes"),
        &["slc"],
        "{change}"
    );
}

/// Reads fill no cache and need no free blocks.
#[test]
fn reads_that_become_slower_are_heat_or_somebody_else() {
    let results = Results::of("p4800x-375", &["--rw=randread", "--iodepth=16"]);
    let folder = results.0.path();
    let line = |second: u32| {
        format!(
            "{}, {}, 0, 4096\n",
            second * 1000,
            if second < 40 { 9000 } else { 4000 }
        )
    };
    let log: String = (1..=100).map(line).collect();
    std::fs::write(folder.join("run_iops.1.log"), log).expect("a folder of our own");
    let args = ["explain", "r.json", "--log", "run_iops.1.log"];
    let output = drivelab_in(folder, &args);
    let said = text(&output.stdout);
    assert!(
        said.contains("The rate fell to 44 % after 39 s: heat, or another user"),
        "{said}"
    );
    assert!(said.contains("nvme smart-log"), "{said}");
}

/// A minute at the full rate, then alternation: for reads the cause is heat or another user, and the model gives the
/// conditions for heat.
#[test]
fn a_rate_that_swings_is_held_against_heat() {
    let results = Results::of("p4800x-375", &["--rw=randread", "--iodepth=16"]);
    let folder = results.0.path();
    let rate = |second: u32| match second {
        0..=60 => 9000,
        _ if second % 15 > 9 => 9000,
        _ => 4000,
    };
    let line = |second: u32| format!("{}, {}, 0, 4096\n", second * 1000, rate(second));
    let log: String = (1..=150).map(line).collect();
    std::fs::write(folder.join("run_iops.1.log"), log).expect("a folder of our own");
    let args = ["explain", "r.json", "--log", "run_iops.1.log", "--json"];
    let drive = ["--drive", "p4800x-375", "--seeds", "1"];
    let known = explained(folder, &[&args[..], &drive].concat());
    let answer = &known["answers"][0];
    let change = &answer["change"];
    assert_eq!(
        change["causes"].as_array().expect("causes"),
        &["heat", "others"]
    );
    assert_eq!(
        answer["measured"]["steadiness"]["swings"]["falls"], 7,
        "{answer}"
    );
    // In the named air, the remaining rate keeps the drive at its limit.
    let figure = |value: &Value| value.as_f64().expect("a figure");
    let (heat, fall) = (&answer["model"]["heat"], &change["as_heat"]);
    let (air, watts) = (figure(&fall["air_celsius"]), figure(&fall["watts"]));
    assert!(watts < figure(&heat["watts"]) && watts > figure(&heat["idle_watts"]));
    assert!(
        (air + 2.5 * watts - figure(&heat["throttles_celsius"])).abs() < 0.1,
        "{fall}"
    );
    // In such air the drive throttles by its own figures, and these are shown without --log too.
    let hot = format!("thermal.ambient={air}C");
    let args = ["explain", "r.json", "--set", &hot, "--json"];
    let hot = explained(folder, &[&args[..], &drive].concat());
    let heat = &hot["answers"][0]["model"]["heat"];
    assert!(heat["throttles_after_seconds"].is_number(), "{heat}");
    let output = drivelab_in(
        folder,
        &["explain", "r.json", "--drive", "p4800x-375", "--seeds", "1"],
    );
    let said = text(&output.stdout);
    assert!(said.contains("heat, by arithmetic: at"), "{said}");
}

/// A cache cannot explain writes that stay at the full rate for longer than it can hold.
#[test]
fn swings_of_writes_beyond_the_cache_are_heat() {
    let options = [
        "--rw=write",
        "--bs=128k",
        "--iodepth=16",
        "--state",
        "fresh",
    ];
    let results = Results::of("960evo-250", &options);
    let folder = results.0.path();
    // Relative to the mean rate of the file: 1.5 times for a number of seconds, and a third for as many.
    let causes = |seconds: u32| {
        let line = |half: u32| {
            let rate = if (half / 2 / seconds) % 2 == 0 {
                15_000
            } else {
                3_000
            };
            format!("{}, {rate}, 1, 131072\n", (half + 1) * 500)
        };
        let log: String = (0..seconds * 16).map(line).collect();
        std::fs::write(folder.join("run_iops.1.log"), log).expect("a folder of our own");
        let args = ["explain", "r.json", "--log", "run_iops.1.log", "--json"];
        let drive = ["--drive", "960evo-250", "--seeds", "1"];
        let known = explained(folder, &[&args[..], &drive].concat());
        known["answers"][0]["change"]["causes"].to_string()
    };
    assert_eq!(causes(120), r#"["heat","others"]"#);
    assert_eq!(causes(12), r#"["emptying","heat","others"]"#);
}

/// No bottleneck of a disk's model explains a rate that a disk cannot have.
#[test]
fn a_rate_far_from_the_model_is_told_as_another_drive() {
    let fast = Results::of("970evo-1000", &["--rw=randwrite", "--iodepth=128"]);
    let args = ["explain", "r.json", "wd6001fzwx", "--seeds", "1"];
    let output = drivelab_in(fast.0.path(), &args);
    let said = text(&output.stdout);
    let first = said.lines().next().unwrap_or_default();
    assert!(first.contains(" times as fast as the model"), "{first}");
    assert!(first.ends_with("a cache in front of it."), "{first}");
}

/// Options in the file are removed, and the rate rises.
#[test]
fn an_option_that_holds_a_run_back_is_found() {
    let odd = Results::of("p4800x-375", &[&DEEP[..], &["--blockalign=512"]].concat());
    let answer = odd.explained("p4800x-375");
    assert!(causes(&answer).is_empty());
    assert!(factor(&answer, "alignment") > 1.5);

    let small = ["--rw=randwrite", "--iodepth=1", "--bs=512", "--runtime=1s"];
    let answer = Results::of("9100max-2400", &small).explained("9100max-2400");
    assert!(
        factor(&answer, "block") > 2.0,
        "{}",
        answer["model"]["options"]
    );

    let synced = [
        "--rw=randwrite",
        "--iodepth=1",
        "--fdatasync=1",
        "--runtime=1s",
    ];
    let answer = Results::of("950pro-256", &synced).explained("950pro-256");
    assert!(
        factor(&answer, "sync") > 1.5,
        "{}",
        answer["model"]["options"]
    );

    let paced = ["--rw=randread", "--iodepth=8", "--rate_iops=20000"];
    let answer = Results::of("p4800x-375", &paced).explained("p4800x-375");
    assert_eq!(bound(&answer), "rate");
    assert!(factor(&answer, "rate") > 5.0);
}

#[test]
fn without_a_drive_the_file_says_what_it_can_and_each_table_is_written() {
    let results = Results::of("p4800x-375", &["--rw=randread", "--iodepth=64"]);
    let folder = results.0.path();
    let output = drivelab_in(folder, &["explain", "r.json"]);
    let said = text(&output.stdout);
    assert!(
        said.starts_with("a: bound by one thread: CPU time is"),
        "{said}"
    );
    assert!(said.contains("the figures are consistent"), "{said}");

    let lines = |ms: u32| format!("{ms}, {}, 0, 4096\n", if ms < 5000 { 9000 } else { 900 });
    let log: String = (0..100).map(|index| lines(index * 100)).collect();
    std::fs::write(folder.join("a_iops.1.log"), log).expect("a folder of our own");
    let args = [
        "explain",
        "r.json",
        "--log",
        "a_iops.1.log",
        "--drive",
        "p4800x-375",
        "--seeds",
        "1",
        "--csv",
        "e.csv",
        "--output",
        "e.html",
    ];
    let output = drivelab_in(folder, &args);
    let said = text(&output.stdout);
    assert!(
        said.contains("a: steady: yes; over the last half"),
        "{said}"
    );
    assert!(said.contains("it began otherwise"), "{said}");
    let page = std::fs::read_to_string(folder.join("e.html")).expect("a page");
    assert_eq!(page.matches("<svg class=\"chart broad\"").count(), 2);
    let table = std::fs::read_to_string(folder.join("e.csv")).expect("a table");
    assert!(table.lines().count() > 8, "{table}");
    assert!(
        table
            .lines()
            .all(|line| line.starts_with("run,") || line.starts_with("a,p4800x-375,"))
    );
}

#[test]
fn several_runs_of_one_file_have_an_answer_each() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let job = "[global]\nioengine=libaio\ndirect=1\nruntime=50ms\ntime_based=1\nrw=randread\n\
               [one]\niodepth=1\n[many]\nstonewall\niodepth=4\nnumjobs=4\n";
    std::fs::write(folder.path().join("j.fio"), job).expect("a folder of our own");
    let args = [
        "run",
        "j.fio",
        "ram-disk",
        "--output-format=json",
        "--output=r.json",
    ];
    assert_eq!(drivelab_in(folder.path(), &args).status.code(), Some(0));
    let all = explained(folder.path(), &["explain", "r.json", "--json"]);
    let answers = all["answers"].as_array().expect("a list");
    let asked: Vec<&Value> = answers
        .iter()
        .map(|it| &it["measured"]["asked"]["in_flight"])
        .collect();
    assert_eq!(asked, [1, 16]);
    for answer in answers {
        assert_eq!(answer["measured"]["little"]["holds"], true, "{answer}");
    }
}

/// A real run, on a file: figures and options of the installed fio are read.
#[test]
fn a_run_of_the_installed_fio_is_taken_apart() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let run = Command::new("fio")
        .args([
            "--name=real",
            "--filename=data",
            "--size=4m",
            "--rw=randread",
            "--bs=4k",
            "--ioengine=psync",
        ])
        .args([
            "--runtime=1",
            "--time_based",
            "--output-format=json",
            "--output=r.json",
        ])
        .current_dir(folder.path())
        .output();
    if !run.is_ok_and(|run| run.status.success()) {
        eprintln!("skipped: fio is not installed");
        return;
    }
    let args = [
        "explain",
        "r.json",
        "--drive",
        "p4800x-375",
        "--seeds",
        "1",
        "--json",
    ];
    let all = explained(folder.path(), &args);
    let answer = &all["answers"][0];
    assert_eq!(answer["measured"]["little"]["holds"], true, "{answer}");
    assert_eq!(answer["measured"]["asked"]["engine"], "psync");
    let unlike = answer["unlike"].as_array().expect("a list");
    let told = |part: &str| {
        unlike
            .iter()
            .any(|it| it.as_str().is_some_and(|it| it.contains(part)))
    };
    assert!(told("filename=data") && told("buffered I/O"), "{unlike:?}");
    let output = drivelab_in(folder.path(), &["explain", "r.json"]);
    assert!(text(&output.stdout).starts_with("real: bound by"));
}

#[test]
fn what_cannot_be_explained_is_refused_with_all_that_is_wrong() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("no.json"), "{}").expect("a folder of our own");
    let args = [
        "explain",
        "no.json",
        "--drive",
        "p4800x-37",
        "--host",
        "linus",
        "--log",
        "gone.log",
        "--csv",
        "no.json",
    ];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "it contains no `jobs`",
        "p4800x-37",
        "linus",
        "gone.log",
        "--csv no.json",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (args, part) in [
        (
            &["no.json", "--lba-format", "4096"][..],
            "drive settings require a drive",
        ),
        (
            &["no.json", "p4800x-375", "--drive", "ram-disk"],
            "2 drives: p4800x-375, ram-disk",
        ),
        (
            &["no.json", "./no.json"],
            "2 files of results: no.json, ./no.json",
        ),
        (&["p4800x-375"], "no results of fio are named"),
        (
            &["no.json", "p4800x-37"],
            "neither fio's results nor a drive",
        ),
    ] {
        let output = drivelab_in(folder.path(), &[&["explain"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{part}");
        let said = text(&output.stderr);
        assert!(said.contains(part), "{part}: {said}");
    }

    // Figures without options: something by the file alone, nothing with a drive.
    let bare = r#"{"jobs": [{"jobname": "a", "read": {"iops": 1000.0, "total_ios": 9000, "lat_ns": {"mean": 64000.0}}}]}"#;
    std::fs::write(folder.path().join("bare.json"), bare).expect("a folder of our own");
    let output = drivelab_in(folder.path(), &["explain", "bare.json"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("the file has no options of the job"));
    let args = ["explain", "bare.json", "--drive", "p4800x-375"];
    let output = drivelab_in(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the file has no options of the job"));
}
