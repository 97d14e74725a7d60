//! `drivelab reproduce`, `fit` and `refit` as users run them: output, written files, exit codes.

use std::fs;

use tempfile::TempDir;

use crate::rig;

fn drivelab(args: &[&str]) -> (i32, String, String) {
    let output = rig::drivelab(args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Returns a ledger with one row, whose published value is `published`.
fn ledger(folder: &TempDir, published: &str) -> String {
    let path = folder.path().join("mine.toml");
    let text = format!(
        "[measure.reads]\ndrive = \"ram-disk\"\nstate = \"fresh\"\nhost = \"xeon-2017\"\n\
         fio = [\"--rw=randread\", \"--ioengine=libaio\", \"--direct=1\"]\n\n\
         [rows]\ntable = '''\nid | published | unit | is | evidence | metric | what | conditions\n\
         S0-001 | {published} | us | < | predicted | reads.read.mean_us | reads | QD1\n'''\n"
    );
    fs::write(&path, text).expect("a folder of our own");
    path.display().to_string()
}

#[test]
fn a_ledger_that_holds_is_exit_code_0_and_one_that_does_not_is_3() {
    let folder = TempDir::new().expect("a folder");
    let (code, out, _) = drivelab(&["reproduce", "--ledger", &ledger(&folder, "1000")]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("S0-001") && out.contains("1 of 1"), "{out}");
    let (code, _, said) = drivelab(&["reproduce", "--ledger", &ledger(&folder, "0.001")]);
    assert_eq!(code, 3);
    assert!(
        said.contains("1 row of 1 is out of its tolerance"),
        "{said}"
    );
}

#[test]
fn models_are_compared_with_a_formula_of_data_sheets() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("mine.toml");
    let measure = |name: &str, drive: &str| {
        format!(
            "[measure.{name}]\ndrive = \"{drive}\"\nstate = \"filled\"\nhost = \"linux\"\n\
             fio = [\"--rw=randread\", \"--bs=4k\", \"--ioengine=libaio\", \"--direct=1\"]\n\n"
        )
    };
    let row = |id: u32, of: &str| {
        format!("S0-00{id} | 20 | us | predicted | {of}.read.mean_us | reads | QD1\n")
    };
    let text = [
        measure("a", "p4800x-375"),
        measure("b", "ram-disk"),
        "[rows]\ntable = '''\nid | published | unit | evidence | metric | what | conditions\n"
            .to_owned(),
        row(1, "a"),
        row(2, "b"),
        "'''\n".to_owned(),
    ];
    fs::write(&path, text.concat()).expect("a folder of our own");
    let path = path.display().to_string();
    let (code, out, said) = drivelab(&["reproduce", "--ledger", &path, "--against-sheet"]);
    assert_eq!(code, 0, "no row is judged: {said}");
    let line = out.lines().find(|line| line.contains("mean and median"));
    let line = line.unwrap_or_else(|| panic!("no line of means: {out}"));
    // Rated 10 us, so the error of the formula is one half.
    assert!(line.contains(" 1 ") && line.contains("50.0 %"), "{line}");
    assert!(
        out.contains("Not compared: 1 predicted rows (1: the drive's file has no"),
        "{out}"
    );
}

#[test]
fn files_are_written_whole() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, html) = (path("r.json"), path("r.html"));
    let ledger = ledger(&folder, "1000");
    let args = [
        "reproduce",
        "--ledger",
        &ledger,
        "--json",
        &json,
        "--html",
        &html,
    ];
    assert_eq!(drivelab(&args).0, 0);
    let value: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    assert_eq!(value["rows"][0]["id"], "S0-001");
    assert_eq!(value["summary"]["claims_held"], 1);
    assert!(
        fs::read_to_string(html)
            .expect("written")
            .contains("S0-001")
    );
}

#[test]
fn files_that_cannot_be_written_are_told_before_the_runs() {
    let folder = TempDir::new().expect("a folder");
    let ledger = ledger(&folder, "1000");
    let before = fs::read(&ledger).expect("the ledger");
    let same = folder.path().join("r").display().to_string();
    for (args, hint) in [
        (["--json", "/nowhere/r.json", "", ""], "there is no folder"),
        (["--html", "/proc/r.html", "", ""], "cannot be written"),
        (
            ["--html", &ledger, "", ""],
            "one of the files that are read",
        ),
        (["--json", &same, "--html", &same], "the file of --json too"),
    ] {
        let args = args.iter().copied().filter(|arg| !arg.is_empty());
        let all = ["reproduce", "--ledger", &ledger].into_iter().chain(args);
        let (code, out, said) = drivelab(&all.collect::<Vec<_>>());
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains(hint), "{said}");
    }
    assert_eq!(fs::read(&ledger).expect("the ledger"), before);
    assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 1);
}

/// Returns arguments of a fit of this drive to an unreadable file.
fn fit<'a>(base: &'a str, output: &'a str) -> [&'a str; 6] {
    let measured = "/nowhere.json";
    ["fit", base, "--measured", measured, "--output", output]
}

#[test]
fn bad_usage_is_exit_code_2() {
    for (args, part) in [
        (&["reproduce", "S9"][..], "there is no source `S9`"),
        (&["reproduce", "--row", "S0-999"][..], "no row S0-999"),
        (
            &["reproduce", "--ledger", "/nowhere.toml"][..],
            "cannot be read",
        ),
        (&fit("ram-disk", "x.toml")[..], "cannot be read"),
        (
            &["refit", "--free", "xpoint.nothing"][..],
            "no row of the ledger fixes xpoint.nothing",
        ),
        (&["refit", "p4800x"][..], "there is no drive of this name"),
        (&["fit", "--check"][..], "unexpected argument '--check'"),
        (
            &["fit", "--measured", "a.json", "--output", "b.toml"][..],
            "cannot be read",
        ),
        (
            &fit("ram-disk", "/nowhere/x.toml")[..],
            "there is no folder /nowhere",
        ),
        (&fit("ram-disc", "x.toml")[..], "did you mean `ram-disk`?"),
    ] {
        let (code, _, said) = drivelab(args);
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

/// The fit does not begin with the catalogue's value, and must find it.
#[test]
fn a_fit_of_the_catalogue_is_made_again() {
    let args = [
        "refit",
        "--only",
        "xpoint/optane-memory.family",
        "--free",
        "xpoint.controller.interval",
    ];
    let (code, out, said) = drivelab(&args);
    assert_eq!(code, 0, "{said}");
    for part in [
        "S0-004",
        "xpoint/optane-memory.family",
        "stands",
        "Fits: 1, off: 0.",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert!(!out.contains("not searched"), "{out}");
}

/// Jobs simulated with the model are fio's results for the fit, which must find the drive again.
#[test]
fn a_drive_is_fitted_to_the_output_of_run() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (jobs, results, output) = (path("jobs.fio"), path("results.json"), path("mine.toml"));
    let text = "[global]\nioengine=libaio\ndirect=1\nnumber_ios=20000\nnorandommap=1\nbs=4k\n\
                [one]\nstonewall\nrw=randread\n[two]\nstonewall\nrw=randread\niodepth=2\n\
                [three]\nstonewall\nrw=randwrite\n";
    fs::write(&jobs, text).expect("a folder of our own");
    let (code, _, said) = drivelab(&[
        "run",
        &jobs,
        "ram-disk",
        "--output-format=json",
        "--output",
        &results,
    ]);
    assert_eq!(code, 0, "{said}");
    let (code, out, said) = drivelab(&[
        "fit",
        "ram-disk",
        "--measured",
        &results,
        "--output",
        &output,
        "--iterations",
        "15",
        "--hold-out",
        "3",
        "--free",
        "ram.per_command",
    ]);
    assert_eq!(code, 0, "{said}");
    assert!(
        out.contains("held out") && out.contains("ram.per_command"),
        "{out}"
    );
    assert!(
        fs::read_to_string(output)
            .expect("written")
            .contains("kind = \"fitted\"")
    );
}
