//! Pages of decisions in headless Chromium, starting with the width of a phone: `browser/decide.test.mjs` on the page
//! of a choice among many drives with names of all lengths, and on the page of a run that one condition explains.
//!
//! It needs the same tools as the other tests of the page; without them, the test is skipped with a message.

mod chromium;

use lab::{Lab, to_the_end};
use model::Span;
use model::media::Precondition;
use report::decide::{self, page::PageText, table::AnswerTable};
use serde_json::json;
use study::decide::choose::{self, Candidate, Measure};
use study::decide::explain::{answer, file};
use study::decide::named;
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load};

/// Writes the page and the measurement for inspection, into `DRIVELAB_KEEP_PAGES=FOLDER`.
fn look(name: &str, html: &str) {
    if let Some(folder) = std::env::var_os("DRIVELAB_KEEP_PAGES") {
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(path, html).expect("a folder that can be written to");
    }
}

fn words(title: &str, answers: Vec<String>, tables: Vec<AnswerTable>, method: String) -> PageText {
    PageText {
        title: title.into(),
        answers,
        tables,
        method,
    }
}

#[test]
fn a_choice_of_many_drives_is_whole_on_a_phone() {
    let text = named::text("oltp").expect("it has a name").to_owned();
    let load = Load::of_text("oltp", text).expect("a job");
    let request = choose::ChooseRequest {
        load: load.at_most(Span::from_ms(5)),
        slo: Slo::read("read.p99<1ms,iops>20k,write.mean<2ms").expect("limits"),
        years: 5.0,
        prices: None,
        conditions: Conditions {
            host: catalogue::host(catalogue::TYPICAL_HOST).expect("built in"),
            state: Precondition::Filled,
            seed: 1,
            seeds: 1,
        },
    };
    let sheet = catalogue::drive("p4800x-375").expect("built in");
    let one = choose::candidate(&request, &sheet, &Lab::new(), &to_the_end).expect("it runs");
    let long = "intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=mirror(2*p4801x-100))";
    let names = catalogue::drive_names().into_iter().map(String::from);
    let names: Vec<String> = names.chain([String::from(long)]).collect();
    assert!(names.len() > 30);
    // Of all heights, some of them adjacent.
    let like = |(index, name): (usize, &String)| {
        let slower = 1.0 + (index / 3) as f64 * 0.9;
        let mut like = Candidate {
            drive: name.clone(),
            iops: one.iops / slower,
            screened: index % 4 == 3,
            ..one.clone()
        };
        for reading in &mut like.readings {
            reading.value = reading.value.map(|value| value * slower);
        }
        like
    };
    let mut all: Vec<Candidate> = names.iter().enumerate().map(like).collect();
    // One whose percentile is not known has no point, and is named.
    let mut unknown = Candidate {
        drive: String::from("without-a-percentile"),
        ..one.clone()
    };
    for reading in &mut unknown.readings {
        (reading.value, reading.interval, reading.met) = (None, None, None);
    }
    all.push(unknown);
    let answer = choose::answer(all, Vec::new(), Measure::Iops);
    let html = decide::page::choose(
        &request.slo,
        &answer,
        &words(
            "Which drive for oltp",
            decide::choose::answer(&request, &answer, Measure::Iops),
            decide::choose::tables(&request, &answer, None),
            decide::choose::method(&request, &answer, "drivelab choose", None),
        ),
    );
    look("choose.html", &html);
    let screened = answer.candidates.iter().filter(|one| one.screened);
    let screened: Vec<&str> = screened.map(|one| &*one.drive).collect();
    assert!(screened.len() > 10);
    // A chart for each limited figure; the limit on IOPS is in both.
    let known = json!({
        "figures": 2, "names": names, "rows": [], "unknown": ["without-a-percentile"], "limits": [2, 2],
        "tables": ["Figures of each drive"], "screened": screened, "tip": "\nread.p99: .*(µs|ms)",
    });
    chromium::run_on(&html, &known.to_string(), &["decide.test.mjs"], |_| ());
}

/// A run on a drive whose power governor was set to 12 W.
const HELD: &str = r#"{"fio version": "fio-3.36", "jobs": [{"jobname": "db", "groupid": 0,
    "job options": {"rw": "randwrite", "ioengine": "libaio", "direct": "1", "bs": "4k", "iodepth": "64", "numjobs": "4"},
    "usr_cpu": 20.0, "sys_cpu": 30.0, "read": {"total_ios": 0},
    "write": {"iops": 345000.0, "bw_bytes": 1413120000, "runtime": 10000, "total_ios": 3450000,
      "slat_ns": {"mean": 1600.0}, "clat_ns": {"mean": 740000.0}, "lat_ns": {"mean": 741600.0}}}]}"#;

#[test]
fn a_run_taken_apart_is_whole_on_a_phone() {
    let runs = file::read("r.json", HELD).expect("fio's");
    let request = answer::ExplainRequest {
        drive: catalogue::drive("p4800x-750").expect("built in"),
        host: catalogue::host(catalogue::TYPICAL_HOST).expect("built in"),
        state: Precondition::Steady,
        seed: 1,
        seeds: 1,
    };
    let answers: Result<Vec<answer::ExplainAnswer>, _> = runs
        .iter()
        .map(|run| answer::explain(run, Some(&request), &Lab::new(), &|_| ()))
        .collect();
    let answers = answers.expect("they run");
    let model = answers[0].model.as_ref().expect("of a drive");
    assert_eq!(model.explained_by, ["power-12W"]);
    let html = decide::page::explain(
        &answers,
        &words(
            "Bottleneck of the run",
            decide::explain::sentences(&answers),
            decide::explain::tables(&answers),
            decide::explain::method(&answers, Some(&request), "drivelab explain", None),
        ),
    );
    look("explain.html", &html);
    // Options state the condition under which they are changed.
    let under = ", if: its power governor set to 12 W";
    let options = model.options.iter();
    let mut rows: Vec<String> = options
        .map(|trial| format!("model, with {}{under}", trial.what))
        .collect();
    assert!(rows.len() > 1);
    rows.extend(
        [
            "measured",
            "model, as asked",
            "model, if: its power governor set to 12 W",
        ]
        .map(String::from),
    );
    let known = json!({
        "figures": 2, "names": [], "rows": rows, "limits": [model.rating.iter().count(), 0],
        "tables": [
            "The measurement, and the model under each condition",
            "Latency breakdown: mean of each part in the model, and as measured",
        ],
    });
    chromium::run_on(&html, &known.to_string(), &["decide.test.mjs"], |_| ());
}
