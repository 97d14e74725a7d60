//! `drivelab review` as a user runs it: files, table, messages and exit codes.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::rig::{drivelab_in, text};

fn review(folder: &Path, args: &[&str]) -> Output {
    drivelab_in(folder, &[&["review"], args].concat())
}

#[test]
fn writes_page_and_data_and_prints_a_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("log.fio"),
        "[log]\nrw=write\nbs=4k\nnumber_ios=500\nsize=1g\n",
    )
    .unwrap();
    let args = [
        "ram-disk",
        "optane-memory-16",
        "--ios",
        "300",
        "--job",
        "log.fio",
        "--output",
        "out.html",
    ];
    let output = review(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("4 KiB random read, QD1: mean") && table.contains("optane-memory-16"));
    assert!(table.contains("out.html") && table.contains("out.json"));
    // A catalogue drive has an article; one that its user has named has none (tested in `study`'s test of the
    // verdict).
    assert!(table.contains(" µs on the RAM disk; "), "{table}");
    let mine = table
        .lines()
        .find(|line| line.contains("log.fio/log, writes"));
    assert_eq!(mine.map(|line| line.matches(" IOPS").count()), Some(2));
    assert!(table.contains("log.fio/log, writes: mean"));
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let data = std::fs::read(folder.path().join("out.json")).unwrap();
    let data: Value = serde_json::from_slice(&data).unwrap();
    assert_eq!(data["schema"], "drivelab review");
    assert_eq!(data["version"], 1);
    assert_eq!(data["drives"][1]["id"], "optane-memory-16");
    assert_eq!(
        data["chapters"].as_array().unwrap().last().unwrap()["id"],
        "yours"
    );
    let lines = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert!(lines.starts_with("drive,host,chapter,point,direction,"));
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 4, "no temporary file is left");
    // A repetition gives the same bytes; another seed does not.
    let first = std::fs::read(folder.path().join("out.html")).unwrap();
    assert!(!table.contains("replace"), "{table}");
    let again = review(folder.path(), &args);
    let said = text(&again.stdout);
    assert!(
        said.contains("They replace those of an earlier review."),
        "{said}"
    );
    assert_eq!(
        std::fs::read(folder.path().join("out.html")).unwrap(),
        first
    );
    review(folder.path(), &[&args[..], &["--seed", "43"]].concat());
    assert_ne!(
        std::fs::read(folder.path().join("out.html")).unwrap(),
        first
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("review.html"), "mine").unwrap();
    std::fs::write(
        folder.path().join("bad.fio"),
        "[a]\nrw=randraed\niodpeth=4\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("bad.trace"), "not a trace\n").unwrap();
    let args = [
        "p4800x-376",
        "ram-disk",
        "ram-disk",
        "--job",
        "bad.fio",
        "--job",
        "absent.fio",
        "--trace",
        "bad.trace",
        "--host",
        "xeon-2018",
    ];
    let output = review(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    for part in [
        "p4800x-376",
        "ram-disk: named twice",
        "randraed",
        "iodpeth",
        "absent.fio",
        "bad.trace",
        "xeon-2018",
    ] {
        assert!(said.contains(part), "{part} in:\n{said}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.path().join("review.html")).unwrap(),
        "mine"
    );
    assert!(!folder.path().join("review.json").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_said_first() {
    let folder = tempfile::tempdir().unwrap();
    for (output, part) in [
        ("absent/review.html", "there is no folder absent"),
        ("review.json", "the ending .json"),
        (".", "names no file"),
    ] {
        let output = review(folder.path(), &["ram-disk", "--output", output]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(part),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn files_that_no_review_wrote_are_replaced_by_force_only() {
    let folder = tempfile::tempdir().unwrap();
    // The data beside the page are what a user does not think of.
    let precious = folder.path().join("database.json");
    std::fs::write(&precious, "{\"jobs\": []}").unwrap();
    std::fs::write(
        folder.path().join("j.fio"),
        "[a]\nrw=randread\nbs=4k\nnumber_ios=500\nsize=1g\n",
    )
    .unwrap();
    let args = "ram-disk --job j.fio --only-jobs --output database.html";
    let args: Vec<&str> = args.split(' ').collect();
    let refused = review(folder.path(), &args);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("no review wrote database.json") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string(&precious).unwrap(),
        "{\"jobs\": []}"
    );
    assert!(!folder.path().join("database.html").exists());
    let forced = review(folder.path(), &[&args[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
    assert!(
        std::fs::read_to_string(&precious)
            .unwrap()
            .contains("drivelab review")
    );
    // Its own jobs alone are no suite, and have the charts that its words name.
    let page = std::fs::read_to_string(folder.path().join("database.html")).unwrap();
    assert!(page.contains("Your jobs and traces, seed 1") && !page.contains("Quick suite"));
    for part in [
        "<h2>Tail latency</h2>",
        "data-chart=\"distribution\"",
        "data-chart=\"anatomy\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn help_has_examples() {
    let output = review(Path::new("."), &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("drivelab review p4800x-375 p3700-1600 9100max-2400"));
}

#[test]
fn settings_of_the_drives_are_obeyed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, more: &[&str]| -> (String, Value) {
        let page = format!("{name}.html");
        let args = ["p4800x-750", "--ios", "300", "--output", &page];
        let output = review(folder.path(), &[&args[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let data = std::fs::read(folder.path().join(format!("{name}.json"))).unwrap();
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        (page, serde_json::from_slice(&data).unwrap())
    };
    let most = |data: &Value| -> f64 {
        let points = data["chapters"].as_array().unwrap().iter();
        let points = points.flat_map(|chapter| chapter["points"].as_array().unwrap());
        points
            .filter_map(|point| point["results"][0]["write"]["mb_s"].as_f64())
            .fold(0.0, f64::max)
    };
    let (_, plain) = read("plain", &[]);
    assert_eq!(plain["settings"], serde_json::json!([]));
    let (page, limited) = read("limited", &["--power-limit", "12W", "--lba-format", "4096"]);
    assert_eq!(
        limited["settings"],
        serde_json::json!(["power limit 12 W", "blocks of 4096 B"])
    );
    assert!(page.contains("Set on the drive: power limit 12 W, blocks of 4096 B."));
    // I/O smaller than a block is not measured.
    let results = |data: &Value| -> Vec<bool> {
        let points = data["chapters"][0]["points"].as_array().unwrap().iter();
        points.map(|point| point["results"][0].is_null()).collect()
    };
    assert!(results(&plain).iter().all(|missing| !missing));
    assert!(results(&limited).contains(&true) && results(&limited).contains(&false));
    // Only writes at full speed need more than 12 W; runs are so short that the governor does not limit most of them.
    assert!(
        most(&limited) < 0.95 * most(&plain),
        "{} of {}",
        most(&limited),
        most(&plain)
    );
    let refused = review(folder.path(), &["p4800x-750", "--power-limit", "5W"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--power-limit"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn only_jobs_leaves_the_suite_out() {
    let folder = tempfile::tempdir().unwrap();
    let job = "[mine]\ndirect=1\nioengine=libaio\nrw=randread\nsize=64m\nnumber_ios=2000\n";
    std::fs::write(folder.path().join("mine.fio"), job).unwrap();
    let args = ["ram-disk", "p4800x-375", "--only-jobs", "--job", "mine.fio"];
    let output = review(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let data = std::fs::read(folder.path().join("review.json")).unwrap();
    let data: Value = serde_json::from_slice(&data).unwrap();
    let chapters = data["chapters"].as_array().unwrap();
    assert_eq!(chapters.len(), 1);
    assert_eq!(chapters[0]["id"], "yours");
    let output = review(folder.path(), &["ram-disk", "--only-jobs"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--only-jobs: there is no job"));
}

/// The suite `heat` has sustained writes without and with heat; `rebuild` has a member that returns and one that is
/// replaced.
#[test]
fn suites_for_heat_and_rebuilds() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let output = review(folder.path(), &[args, &["--ios", "20000"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let json = std::fs::read(folder.path().join("review.json")).expect("written");
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        let points = json["chapters"][0]["points"].as_array().expect("points");
        let notes = |name: &str| {
            let point = points.iter().find(|it| it["name"] == name);
            let point = point.unwrap_or_else(|| panic!("{name}: {json:#}"));
            point["results"][0]["notes"].to_string()
        };
        let names: Vec<String> = points.iter().map(|it| it["name"].to_string()).collect();
        (
            names.len(),
            notes(points[points.len() - 1]["name"].as_str().expect("a name")),
        )
    };
    let (points, notes) = run(&["p3700-1600", "--suite", "heat", "--ambient", "55C"]);
    assert_eq!(points, 2);
    assert!(
        notes.contains("throttled for") && notes.contains("degrees Celsius"),
        "{notes}"
    );
    let (points, notes) = run(&["raid5(3*p4801x-100)", "--suite", "rebuild"]);
    assert_eq!(points, 3);
    assert!(notes.contains("at this rate"), "{notes}");
}

#[test]
fn suites_for_heat_and_rebuilds_name_what_they_need() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, why) in [
        (
            &["mirror(2*p4801x-100)", "--suite", "heat"][..],
            "a single drive",
        ),
        (&["p4801x-100", "--suite", "rebuild"], "others can rebuild"),
        (
            &["stripe(2*p4801x-100)", "--suite", "rebuild"],
            "others can rebuild",
        ),
        (&["p4801x-100", "--ambient", "55C"], "only the suite heat"),
    ] {
        let output = review(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}
