//! `drivelab lab`: it replaces no file, refuses unsupported arguments, and its page's files and command give the
//! figures that the page shows.

use std::fs;

use page_engine::{Engine, Experiment};
use tempfile::tempdir;

use crate::rig::drivelab_in;

#[test]
fn a_page_that_is_there_stays() {
    let folder = tempdir().expect("a temporary folder");
    let page = folder.path().join("lab.html");
    fs::write(&page, "mine").expect("a folder of our own");
    let output = drivelab_in(folder.path(), &["lab"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("lab.html: exists already"), "{told}");
    assert!(told.contains("--force"), "{told}");
    assert_eq!(fs::read_to_string(&page).expect("it is there"), "mine");
}

#[test]
fn all_that_a_page_cannot_have_is_told_at_once() {
    let folder = tempdir().expect("a temporary folder");
    fs::write(folder.path().join("broken.toml"), "name = 1\n").expect("a folder of our own");
    let words = [
        "lab",
        "p4800x-376",
        "mirror(2*",
        "./broken.toml",
        "ram-disk",
        "--fill",
        "80%",
        "--lba-format",
        "4096+64",
        "--job",
        "no.fio",
    ];
    let output = drivelab_in(folder.path(), &words);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in [
        "p4800x-376",
        "ends too early",
        "broken.toml:1",
        "--lba-format",
        "no.fio",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(!folder.path().join("lab.html").exists());
}

#[test]
fn a_build_without_the_engine_says_what_to_build_and_another_writes_the_page() {
    let folder = tempdir().expect("a temporary folder");
    let page = folder.path().join("lab.html");
    fs::write(folder.path().join("a.fio"), "[a]\nrw=read\n").expect("a folder of our own");
    let words = [
        "lab",
        "mirror(2*p4801x-100)",
        "--job",
        "a.fio",
        "--set=members.p4801x-100.xpoint.power.idle=4W",
        "--fill=7.1%",
    ];
    let output = drivelab_in(folder.path(), &words);
    if report::page::engine_bytes() == 0 {
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("wasm32-unknown-unknown"), "{told}");
        assert!(!page.exists());
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let written = fs::read_to_string(&page).expect("it is written");
    assert!(written.contains("mirror(2*p4801x-100)") && written.contains("[a]\\nrw=read\\n"));
    assert!(
        written.contains(r#"[["set","members.p4801x-100.xpoint.power.idle=4W"],["fill","7.1%"]]"#)
    );
    let forced = drivelab_in(folder.path(), &["lab", "--force"]);
    assert!(forced.status.success(), "{forced:?}");
    assert_ne!(fs::read_to_string(&page).expect("it is written"), written);
}

fn experiment(drive: &str, settings: &[(&str, &str)], job: &str) -> Experiment {
    let settings = settings.iter();
    Experiment {
        drive: drive.into(),
        toml: None,
        settings: settings
            .map(|&(it, value)| (it.into(), value.into()))
            .collect(),
        whole: false,
        job: job.into(),
        host: "linux".into(),
        state: "steady".into(),
        seed: 7,
    }
}

#[test]
fn the_files_and_the_command_that_a_page_keeps_give_its_figures() {
    let job = "[mix]\nioengine=libaio\ndirect=1\nrw=randrw\nbs=4k\niodepth=8\nnorandommap=1\nnumber_ios=5000\n";
    let plain: &[(&str, &str)] = &[];
    let worn: &[(&str, &str)] = &[
        ("overprovision", "20%"),
        ("fill", "80%"),
        ("percentage-used", "40"),
    ];
    for (drive, settings) in [
        ("p3700-800", plain),
        ("p3700-800", worn),
        ("mirror(2*p4801x-100)", worn),
    ] {
        let shown = Engine::default()
            .experiment(&experiment(drive, settings, job))
            .expect("it runs");
        let folder = tempdir().expect("a temporary folder");
        fs::write(folder.path().join("job.fio"), job).expect("a folder of our own");
        fs::write(folder.path().join("kept.toml"), &shown.about.toml).expect("the same");
        for named in [drive, "./kept.toml"] {
            let given = settings.iter().map(|(it, value)| format!("--{it}={value}"));
            let made = shown.about.set.iter();
            let made = made.map(|(key, value)| format!("--set={key}={value}"));
            let set: Vec<String> = given.chain(made).collect();
            let mut words = vec![
                "run",
                "job.fio",
                named,
                "--host=linux",
                "--state=steady",
                "--seed=7",
                "--csv=run.csv",
            ];
            words.extend(set.iter().map(String::as_str));
            let output = drivelab_in(folder.path(), &words);
            assert!(output.status.success(), "{output:?}");
            let mut reader =
                ::csv::Reader::from_path(folder.path().join("run.csv")).expect("it is written");
            let names = reader.headers().expect("a header").clone();
            let mut seen = 0;
            for row in reader.records().map(|row| row.expect("a row")) {
                let cell = |name: &str| &row[names.iter().position(|it| it == name).expect(name)];
                let way = if cell("direction") == "read" {
                    &shown.read
                } else {
                    &shown.write
                };
                let one = &way.as_ref().expect("a mix").direction;
                for (name, page) in [
                    ("iops", one.iops),
                    ("mean_us", one.mean_us),
                    ("max_us", one.max_us),
                ] {
                    let program: f64 = cell(name).parse().expect("a number");
                    assert!(
                        (program / page - 1.0).abs() < 1e-5,
                        "{named}, {name}: {program}, {page}"
                    );
                }
                seen += 1;
            }
            assert_eq!(seen, 2, "{named}");
        }
    }
}
