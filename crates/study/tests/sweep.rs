//! Sweeps: equal bytes however they are run, no scenario lost or run twice, and all problems reported at their line.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::{Lab, to_the_end};
use study::sweep::{Cell, Parts, Sweep, SweepError, Watch, read_table, run};
use tempfile::TempDir;

/// 240 scenarios: three parts. Some of them do not fit the smaller drive.
const SWEEP: &str = r#"
drive = ["optane-memory-16", "p4800x-375"]
seed = { from = 1, count = 20 }
state = "fresh"
[set]
"xpoint.power.write" = "9 W"
[job]
ioengine = "libaio"
direct = 1
rw = "randread"
iodepth = [1, 4, 16]
number_ios = 40
offset = [0, "20g"]
"#;

fn sweep() -> Sweep {
    Sweep::of_text("sweep.toml", SWEEP, Path::new("")).expect("nothing is wrong")
}

/// Runs until at most `most` scenarios are done, and returns their number.
fn run_for(sweep: &Sweep, parts: &Parts<'_>, threads: usize, most: usize) -> usize {
    let done = AtomicUsize::new(0);
    let watch = Watch {
        go_on: &|| match done.load(Ordering::SeqCst) < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        },
        done: &|| {
            done.fetch_add(1, Ordering::SeqCst);
        },
    };
    run(sweep, parts, threads, &watch).expect("it can be written");
    done.into_inner()
}

/// Returns the result of a sweep that is interrupted after every `most` scenarios and resumed.
fn result(threads: usize, most: usize) -> Vec<u8> {
    let folder = TempDir::new().expect("a temporary folder");
    let output = folder.path().join("a.parquet");
    let sweep = sweep();
    for _ in 0..9 {
        let parts = Parts::open(&sweep, &output).expect("they are its own");
        run_for(&sweep, &parts, threads, most);
        if parts.missing().expect("a folder").is_empty() {
            parts.finish().expect("it can be written");
            assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
            return fs::read(&output).expect("the result");
        }
    }
    panic!("it does not come to an end");
}

#[test]
fn a_sweep_gives_the_same_bytes_with_any_threads_and_interruptions() {
    let whole = result(1, usize::MAX);
    assert!(result(2, usize::MAX) == whole, "two threads");
    assert!(result(2, 130) == whole, "broken off");
    assert!(result(3, 101) == whole, "broken off more often");
}

#[test]
fn a_table_has_each_scenario_once_and_what_repeats_it() {
    let sweep = sweep();
    assert_eq!((sweep.scenarios(), sweep.parts()), (240, 3));
    let folder = TempDir::new().expect("a temporary folder");
    let output = folder.path().join("a.parquet");
    let parts = Parts::open(&sweep, &output).expect("new");
    assert_eq!(run_for(&sweep, &parts, 2, usize::MAX), 240);
    parts.finish().expect("it can be written");
    let file = fs::File::open(&output).expect("the result");
    let (columns, rows) = read_table(file).expect("Parquet");
    assert_eq!(columns, sweep.columns());
    assert_eq!(rows.len(), 240);
    let at = |name: &str| {
        let found = columns.iter().position(|column| column.name == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    };
    let mut commands = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row[at("scenario")], Cell::Whole(index as i64));
        let lab = Lab::with_drives(1);
        if index % 50 == 0 {
            assert_eq!(sweep.row(index, &lab, &to_the_end).as_ref(), Some(row));
        }
        let Cell::Text(command) = &row[at("command")] else {
            panic!("no command");
        };
        assert!(commands.insert(command.clone()), "{command}");
        let small = row[at("drive")] == Cell::Text("optane-memory-16".into());
        let far = row[at("job.offset")] == Cell::Text("20g".into());
        let runs = row[at("problem")] == Cell::Empty;
        assert_eq!(runs, !(small && far), "{command}");
        assert_eq!(row[at("read_ios")] == Cell::Whole(40), runs);
        assert_eq!(row[at("write_iops")], Cell::Empty);
    }
    let (count, first) = study::sweep::problems(&output).expect("the result");
    assert_eq!(count, 60);
    let (scenario, what) = first.expect("60 have one");
    assert!(what.contains("20g") || what.contains("offset"), "{what}");
    assert_eq!(rows[scenario][at("problem")], Cell::Text(what));
    assert!(
        rows[..scenario]
            .iter()
            .all(|row| row[at("problem")] == Cell::Empty)
    );
}

#[test]
fn parts_and_results_of_another_sweep_are_left_alone() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = folder.path().join("a.parquet");
    let one = sweep();
    let parts = Parts::open(&one, &output).expect("new");
    run_for(&one, &parts, 1, 110);
    let refused = |sweep: &Sweep| match Parts::open(sweep, &output) {
        Err(SweepError::Input(problems)) => problems.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&one).contains("another drivelab writes"));
    drop(parts);
    let text = SWEEP.replace("number_ios = 40", "number_ios = 41");
    let other = Sweep::of_text("sweep.toml", &text, Path::new("")).expect("nothing is wrong");
    assert!(refused(&other).contains("another sweep"));
    fs::write(&output, "a result of yours").expect("a file");
    assert!(refused(&one).contains("exists"));
    assert_eq!(fs::read(&output).expect("kept"), b"a result of yours");
}

#[test]
fn scenarios_of_one_warm_seed_begin_in_one_state() {
    let text = "drive = \"950pro-256\"\nseed = [1, 2]\nwarm_seed = 7\n[job]\nrw = \"randwrite\"\nnumber_ios = 50\n";
    let sweep = Sweep::of_text("sweep.toml", text, Path::new("")).expect("nothing is wrong");
    for index in 0..2 {
        let scenario = sweep.scenario(index).expect("it fits");
        assert_eq!(
            (scenario.seed, scenario.seeds().warm),
            (index as u64 + 1, 7)
        );
        assert!(sweep.command(index).contains("--warm-seed=7"));
    }
}

#[test]
fn everything_wrong_with_drives_and_jobs_is_told_at_the_line_that_says_so() {
    let text = r#"
drive = ["p4800x-375", "p3700-160"]
state = "stedy"
host = ["linux", "xeon-2071"]
[set]
"xpoint.power.limt" = ["12W"]
"xpoint.power.limit" = [12]
[job]
rw = "randred"
bs = ["4k", "5q"]
iodpth = 3
"#;
    let problems = Sweep::of_text("sweep.toml", text, Path::new("")).expect_err("much is wrong");
    insta::assert_snapshot!(problems.to_string());
}

#[test]
fn job_files_and_drives_are_looked_for_beside_the_sweep() {
    let folder = TempDir::new().expect("a temporary folder");
    let own = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    own(
        "a.fio",
        "[a]\nrw=randread\nnumber_ios=20\n[b]\nrw=randwrite\nnumber_ios=20\n",
    );
    own(
        "sweep.toml",
        "drive = \"ram-disk\"\njob_file = \"a.fio\"\n[job]\nbs = [\"4k\", \"8k\"]\n",
    );
    let path = folder.path().join("sweep.toml");
    let sweep = Sweep::read(&path).expect("nothing is wrong");
    let expected = "drivelab run a.fio ram-disk --host=linux --state=steady --seed=1 --bs=8k";
    assert_eq!(sweep.command(1), expected);
    let defined = sweep.definition().to_owned();
    own("a.fio", "[a]\nrw=randread\nnumber_ios=21\n");
    assert_ne!(
        Sweep::read(&path).expect("nothing is wrong").definition(),
        defined
    );
    own("a.fio", "[a]\nrw=randred\n");
    let problems = Sweep::read(&path).expect_err("no such pattern").to_string();
    assert!(problems.contains("a.fio:2:"), "{problems}");
}

#[test]
fn the_example_of_the_documentation_is_a_sweep() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sweep.toml");
    let sweep = Sweep::read(&path).expect("nothing is wrong");
    assert_eq!(sweep.scenarios(), 4 * 2 * 3 * 2 * 4);
    assert!(sweep.warnings().is_empty(), "{:?}", sweep.warnings());
    let guide = include_str!("../../../docs/sweep.md");
    let examples = guide.split("```toml").skip(1);
    let examples: Vec<&str> = examples
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let sweep = Sweep::of_text("docs/sweep.md", example, Path::new(""));
        sweep.unwrap_or_else(|problems| panic!("{problems}"));
    }
}
