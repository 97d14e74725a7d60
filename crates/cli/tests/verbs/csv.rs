//! `--csv` of every subcommand as a user runs it: one flat table, units in the column names, and no lost data.

use std::collections::BTreeMap;
use std::path::Path;

use crate::rig::drivelab_in;

type Line = BTreeMap<String, String>;

fn table(folder: &Path, args: &[&str]) -> Vec<Line> {
    let output = drivelab_in(folder, &[args, &["--csv", "t.csv"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut reader = ::csv::Reader::from_path(folder.join("t.csv")).expect("the file is there");
    let lines = reader.deserialize().collect::<Result<Vec<Line>, _>>();
    lines.expect("every line has the header's columns")
}

fn number(line: &Line, column: &str) -> f64 {
    let cell = &line[column];
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} is `{cell}`"))
}

#[test]
fn fio_jobs_have_a_line_each_and_direction() {
    let folder = tempfile::tempdir().unwrap();
    let job = "[global]\nsize=1g\ndirect=1\nioengine=libaio\n\
        [mix]\nrw=randrw\nrwmixread=70\nbs=8k\niodepth=4\nnumjobs=2\nnumber_ios=2000\n\
        [log]\nrw=write\nbs=16k\nnumber_ios=400\nfsync=4\nioengine=psync\niodepth=8\n";
    std::fs::write(folder.path().join("j.fio"), job).unwrap();
    let args = ["run", "j.fio", "--drive", "p4800x-375", "--seed", "3"];
    let lines = table(folder.path(), &args);
    let named: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (&*line["point"], &*line["direction"]))
        .collect();
    let wanted = [
        ("mix", "read"),
        ("mix", "write"),
        ("log", "write"),
        ("log", "flush"),
    ];
    assert_eq!(named, wanted);
    let mix = &lines[0];
    assert_eq!(
        [&mix["drive"], &mix["host"], &mix["state"], &mix["pattern"]],
        ["p4800x-375", "linux", "steady", "random"]
    );
    for (column, value) in [
        ("block_bytes", 8192.0),
        ("queue_depth", 8.0),
        ("threads", 2.0),
        ("read_percent", 70.0),
        ("seed", 3.0),
    ] {
        assert_eq!(number(mix, column), value, "{column}");
    }
    // A synchronous engine has one I/O in flight, whatever its iodepth is.
    assert_eq!(number(&lines[2], "queue_depth"), 1.0);
    let all: f64 = lines[..2].iter().map(|line| number(line, "ios")).sum();
    assert_eq!(all, 4000.0);
    let rate = number(mix, "ios") / number(mix, "seconds");
    assert!((number(mix, "iops") / rate - 1.0).abs() < 0.01);
    assert!((number(mix, "mb_s") / (rate * 0.008_192) - 1.0).abs() < 0.01);
    assert!(number(mix, "p50_low_us") <= number(mix, "p50_us"));
}

#[test]
fn a_replay_has_what_was_recorded_beside_the_drives() {
    let folder = tempfile::tempdir().unwrap();
    let row = |index: u64| {
        let kind = if index % 4 == 3 { "Write" } else { "Read" };
        format!(
            "{},hm,0,{kind},{},4096,2500\n",
            index * 1_000 + 10,
            index * 8_192
        )
    };
    let trace: String = (0..2_000).map(row).collect();
    std::fs::write(folder.path().join("t.trace"), trace).unwrap();
    let two = ["--drive", "ram-disk", "--drive", "p4800x-375"];
    let lines = table(
        folder.path(),
        &[&["replay", "t.trace", "--format", "msr"], &two[..]].concat(),
    );
    let of = |drive: &str| -> Vec<&Line> {
        lines.iter().filter(|line| line["drive"] == drive).collect()
    };
    for drive in ["ram-disk", "p4800x-375", "as recorded"] {
        let ios: Vec<f64> = of(drive).iter().map(|line| number(line, "ios")).collect();
        assert_eq!(ios, [1500.0, 500.0], "{drive}");
    }
    assert_eq!(number(of("as recorded")[0], "mean_us"), 250.0);
    assert_eq!(number(of("ram-disk")[0], "speed"), 1.0);
}

#[test]
fn act_and_the_ledger_have_tables_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let act = "act p4800x-375 --load 2 --duration 1 --warm-up 0";
    let act: Vec<&str> = act.split(' ').collect();
    let lines = table(folder.path(), &act);
    let what: Vec<&str> = lines.iter().map(|line| &*line["what"]).collect();
    assert_eq!(what, ["read", "device read", "large read", "large write"]);
    assert_eq!(number(&lines[0], "asked_iops"), 4000.0);
    assert_eq!(lines[0]["passes"], "true");
    let ledger = ["reproduce", "--row", "S4-001"];
    let lines = table(folder.path(), &ledger);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["source"], "S4");
    let ends = [
        number(&lines[0], "model_low"),
        number(&lines[0], "model_high"),
    ];
    let model = number(&lines[0], "model");
    assert!(ends[0] <= model && model <= ends[1]);
    assert_eq!(number(&lines[0], "seeds"), 3.0);
}

#[test]
fn a_table_that_cannot_be_written_is_told_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["act", "ram-disk", "--csv", "absent/t.csv"][..],
        &["reproduce", "--csv", "absent/t.csv"],
        &[
            "run",
            "--drive",
            "ram-disk",
            "--rw=read",
            "--csv",
            "absent/t.csv",
        ],
        &["review", "ram-disk", "--output", "page.csv"],
    ] {
        let output = drivelab_in(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(output.stdout, b"", "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(".csv"), "{said}");
    }
}
