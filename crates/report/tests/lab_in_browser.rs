//! The page of `drivelab lab` in headless Chromium: its answers equal this machine's answers to the same questions,
//! byte for byte, and its exports are read back as the same drives and jobs.
//!
//! It needs the same tools as the other tests of the page, and a build with the engine (`DRIVELAB_PAGE_ENGINE=1`);
//! without them, the test is skipped with a message.

mod chromium;

use page_engine::{Engine, Experiment};
use report::page::{LabChoice, engine_bytes, lab_html};
use serde::Deserialize;

/// Maximum bytes of the page.
const WHOLE: usize = 4_000_000;
/// Maximum bytes of the compressed engine.
const ENGINE: usize = 1_000_000;

const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nnorandommap=1\nnumber_ios=4000\n\n[mix]\nrw=randrw\nbs=4k\niodepth=8\n";

/// Results and exports of the page for one drive.
#[derive(Deserialize)]
struct Kept {
    drive: String,
    toml: String,
    job: String,
    command: String,
}

#[test]
fn the_page_answers_what_this_machine_answers_and_exports_what_it_ran() {
    if engine_bytes() == 0 {
        assert_ne!(option_env!("DRIVELAB_PAGE_ENGINE"), Some("1"));
        chromium::skip("built without the page's engine (DRIVELAB_PAGE_ENGINE=1)");
        return;
    }
    let bench = |drive: &str| LabChoice {
        drive: drive.into(),
        toml: None,
    };
    let benches = ["p4800x-375", "p3700-800", "mirror(2*p4801x-100)"].map(bench);
    let html = lab_html(&benches, &[], Some(JOB));
    assert!(html.len() <= WHOLE, "{} bytes", html.len());
    assert!(engine_bytes() <= ENGINE, "{} bytes", engine_bytes());
    chromium::run_on(&html, "{}", &["lab.test.mjs"], |folder| {
        let text = std::fs::read_to_string(folder.join("said.json")).expect("the tests wrote it");
        let (said, kept): (Vec<(String, String)>, Vec<Kept>) =
            serde_json::from_str(&text).expect("JSON");
        let engine = Engine::default();
        let ran = said
            .iter()
            .filter(|(_, it)| it.starts_with(r#"{"results":"#));
        assert!(ran.count() >= 5, "{} answers", said.len());
        for (question, answer) in &said {
            assert_eq!(&engine.answer(question.as_bytes()), answer, "{question}");
        }
        assert_eq!(kept.len(), benches.len());
        for (kept, bench) in kept.iter().zip(&benches) {
            assert_eq!(kept.drive, bench.drive);
            assert_eq!(kept.job, JOB);
            let named = catalogue::drive(&bench.drive).expect("built in");
            let again = catalogue::drive_from_text("kept.toml", &kept.toml).expect("it is read");
            assert_eq!(again.config, named.config, "{}", kept.drive);
            assert!(
                kept.command.starts_with("drivelab run job.fio "),
                "{}",
                kept.command
            );
        }
        // The `--set` of the command is what ran.
        let flash = &kept[1];
        let asked = Experiment {
            drive: flash.drive.clone(),
            toml: None,
            settings: Vec::new(),
            whole: false,
            job: flash.job.clone(),
            host: catalogue::TYPICAL_HOST.into(),
            state: "steady".into(),
            seed: 1,
        };
        let about = engine.experiment(&asked).expect("it runs").about;
        assert!(!about.set.is_empty());
        for (key, value) in about.set {
            assert!(
                flash.command.contains(&format!("--set={key}={value}")),
                "{}",
                flash.command
            );
        }
    });
}
