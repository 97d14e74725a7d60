//! What the fuzz targets check, besides that nothing panics.

pub mod crashes;
pub mod live;
pub mod nvme;
pub mod tiers;
pub mod tls;
pub mod vhost_user;

use std::sync::Arc;

use lab::act::{ActTest, tested};
use lab::{Lab, Machine, Scenario, TraceReplay, Work};
use model::host::{HostConfig, ProgramCosts};
use model::media::ram::RamConfig;
use model::media::Precondition;
use tier::DriveConfig;
use model::{Op, Span};
use report::fio::{Formats, Report, print};
use serde_json::Value;
use study::decide::fleet::{self, UserRating};
use workload::act;
use workload::fio::{JobSet, Surroundings, read_text};
use workload::replay::{OutOfRangePolicy, Pace};
use workload::trace::{self, Format, Options};

/// Most requests of one input: enough to reach every state of a reader.
const MOST: usize = 20_000;

/// A configuration of ACT is read or refused; what is read has rates that make sense, and runs for a moment.
pub fn act_config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let config = match act::from_text("fuzz", &text, None, 2) {
        Ok(config) => config,
        Err(problems) => return assert!(!problems.to_string().is_empty()),
    };
    assert!(config.large_reads_per_second().is_finite());
    assert!(config.large_writes_per_second() >= 0.0);
    let test = ActTest {
        config: act::Config {
            duration: Span::from_ms(5),
            report_interval: Span::from_ms(1),
            ..config
        },
        warm_up: Span::ZERO,
        slice: Span::from_ms(5),
        latency_only: false,
    };
    let drive = DriveConfig::Ram(RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_us(5),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    });
    let machine = Machine::from_configs("fuzz", drive, HostConfig::default());
    let machine = machine.with_costs(ProgramCosts::default());
    let scenario = Scenario::new(machine, Precondition::Fresh, Work::Act(test), 1);
    let tested = tested(&Lab::new(), &scenario).expect("a block fits");
    assert_eq!(tested.errors, 0);
}

/// A drive's or host's file is read or refused with a reason; a drive that is read has a size and blocks, and its figures
/// each a source. Files that it names elsewhere on the disk are not looked for.
pub fn catalogue_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let elsewhere = |line: &str| {
        let names = line.contains("family") || line.contains("members");
        names && (line.contains(['/', '\\']) || line.contains(".toml"))
    };
    if text.lines().any(elsewhere) {
        return;
    }
    match catalogue::drive_from_text("fuzz.toml", &text) {
        Ok(drive) => {
            assert!(drive.capacity > 0 && !drive.management.lba_formats.is_empty());
            assert!(drive.figures.iter().all(|figure| !figure.source.is_empty()));
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
    if let Err(problems) = catalogue::host_from_text("fuzz.toml", &text) {
        assert!(!problems.to_string().is_empty());
    }
}

/// A pool's file is read or refused with a reason; one that is read is a pool that can be built. Files that it names
/// elsewhere on the disk are not looked for.
pub fn pool_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let elsewhere = |line: &str| {
        line.contains("drive") && (line.contains(['/', '\\']) || line.contains(".toml"))
    };
    if !text.lines().any(elsewhere) {
        check_pool(catalogue::drive_from_text("fuzz.toml", &text));
    }
}

/// The same of an expression.
pub fn pool_expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let elsewhere = text.contains(['/', '\\']) || text.contains(".toml");
    if !elsewhere && catalogue::is_expression(&text) {
        check_pool(catalogue::drive(&text));
    }
}

fn check_pool(found: Result<catalogue::DriveSheet, text::problem::Problems>) {
    match found {
        Ok(sheet) => {
            let Some(config) = sheet.pool_config() else {
                return;
            };
            assert_eq!(config.problems(), [""; 0]);
            assert!(sheet.capacity > 0 && sheet.capacity == config.bytes());
            assert!(!config.volumes().is_empty());
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// A ledger file is read or refused; what is read has rows that can be judged.
pub fn ledger(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match study::ledger::file("fuzz", &text) {
        Ok(file) => {
            for row in &file.rows {
                let _ = study::ledger::judge(row.judgement, &row.published, 1.0);
            }
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// Recipes of fits are read or refused; what is read has figures, and something to set them from.
pub fn fit_recipes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match study::fit::read_recipes("fuzz", &text) {
        Ok(recipes) => {
            for recipe in &recipes {
                assert!(!recipe.figures.is_empty());
                assert!(!recipe.rows.is_empty() || !recipe.remarks.is_empty());
            }
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// fio's results are read or refused; what is read has jobs and positive figures.
pub fn fio_results(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match study::fit::read("fuzz", &text) {
        Ok(runs) => {
            for run in runs {
                assert!(!run.jobs.is_empty());
                assert!(run.targets.iter().all(|target| target.value > 0.0));
            }
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
    // Measurements have fio's results in them: what is read is written as it was, and its figures are found or refused.
    if let Ok(document) = study::measure::Document::read("fuzz", &text) {
        let again = study::measure::Document::read("fuzz", &document.text());
        assert_eq!(
            again.as_ref().map(study::measure::Document::text).ok(),
            Some(document.text())
        );
    }
}

/// Text of `zilstat` or `zpool iostat` is read or refused. What is read has finite figures, and no log is said to be
/// unneeded that has a rate.
pub fn zilstat(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = match study::decide::zpool_iostat::read_statistics("zil.txt", &text) {
        Ok(read) => read,
        Err(problems) => return assert!(!problems.to_string().is_empty()),
    };
    assert!(read.intervals > 0);
    assert!((0.0..1e30).contains(&read.mean_mb_s));
    assert!((0.0..1e30).contains(&read.most_mb_s));
    assert!(read.mean_mb_s <= read.most_mb_s * 1.001);
    assert!(read.synchronous_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    assert!(read.synchronous_writes.is_none_or(|writes| (0.0..1e30).contains(&writes)));
    assert!(!read.needs_no_log() || read.rate().is_none());
}

/// SMART data is read or refused. What is read has figures in their bounds, and an answer that fits its first line and its
/// table, and says nothing that a terminal would act on.
pub fn smart(bytes: &[u8]) {
    let dump = match study::smart::read("fuzz.json", bytes) {
        Ok(dump) => dump,
        Err(problems) => return assert!(!problems.to_string().is_empty()),
    };
    for health in &dump.drives {
        let figures = [&health.written, &health.used_percent];
        assert!(figures.iter().any(|figure| figure.is_some()));
        assert!(
            figures
                .into_iter()
                .flatten()
                .all(|figure| (0.0..=1e20).contains(&figure.value))
        );
    }
    let rating = UserRating {
        model: None,
        bytes: 6e14,
    };
    // Hard disks alone are refused.
    let Ok(answer) = fleet::fleet(vec![dump], Default::default(), &[rating], &[]) else {
        return;
    };
    assert!(
        answer
            .drives
            .is_sorted_by_key(|one| one.ends_in_years.unwrap_or(f64::INFINITY))
    );
    let first = report::decide::fleet::answer(&answer);
    assert!(first.chars().count() <= 160, "{first}");
    let tables = report::decide::fleet::tables(&answer);
    let table = report::decide::table::text_of(&tables, None);
    let notes = report::decide::fleet::method(&answer, "drivelab life", None);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let all = [first, table, notes].concat();
    assert!(
        !all.contains(|c: char| c.is_control() && c != '\n'),
        "{all}"
    );
    assert!(
        !report::decide::fleet::json(&answer, "")
            .to_string()
            .is_empty()
    );
    assert!(!report::csv::fleet(&answer).is_empty());
}

/// A trace is read or refused; what is read is in order and can be replayed to the last request.
pub fn trace(format: Option<&'static Format>, bytes: &[u8]) {
    // Of a text that does not say it.
    let columns = "time=1,op=2,offset=3,size=4,volume=5,latency=6";
    let columns = format.and_then(|_| trace::Columns::new(columns, Some("us")).ok());
    let options = Options {
        format,
        columns,
        most_records: MOST,
        ..Options::default()
    };
    let trace = match trace::read_from(bytes, "fuzz", &options) {
        Ok(trace) => trace,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    assert_eq!(trace.records[0].arrival_ns(), 0);
    assert!(trace.records.is_sorted_by_key(|record| record.arrival_ns()));
    let summary = trace.summary();
    let counted = summary.read.requests + summary.write.requests + summary.other.requests;
    assert_eq!(counted, trace.records.len() as u64);
    let end = trace
        .records
        .iter()
        .map(|record| record.request())
        .filter(|request| request.op != Op::Flush);
    assert!(end.into_iter().all(|request| {
        request.offset + u64::from(request.bytes) <= summary.ends[usize::from(request.volume)]
    }));
    replays(&trace);
}

/// A drive of 8 GiB in a host that costs nothing.
fn machine() -> Machine {
    let drive = DriveConfig::Ram(RamConfig {
        bytes: 1 << 33,
        per_command: Span::from_us(1),
        picoseconds_per_byte: 1,
        memory_bus: None,
        spread: 0.0,
    });
    Machine::from_configs("ram", drive, HostConfig::default())
}

fn replays(trace: &trace::Trace) {
    let replay = TraceReplay {
        threads: Some(1),
        pace: Pace::Depth(7),
        beyond: OutOfRangePolicy::Wrap,
        ..TraceReplay::new(Arc::new(trace.clone()))
    };
    let scenario = Scenario::new(machine(), Precondition::Fresh, Work::Trace(replay), 1);
    // What is longer than a command can be is refused.
    let Ok(outcome) = Lab::new().run(&scenario) else {
        return;
    };
    let thread = &outcome.threads[0];
    let kinds = [&thread.read, &thread.write, &thread.trim, &thread.sync];
    let done: u64 = kinds.iter().map(|kind| kind.ios).sum();
    assert!(
        kinds.iter().all(|kind| kind.errors == 0),
        "a request was put beyond the drive"
    );
    let empty = outcome.replayed().expect("a trace").empty;
    assert_eq!(done + empty, trace.records.len() as u64);
}

/// A job file is read or refused with a reason; what is read runs or is refused, and its output is JSON.
pub fn fio_job(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let surroundings = Surroundings {
        environment: &|name| (name.len() % 2 == 0).then(|| "4k".into()),
        // Includes find the file itself, so that they nest.
        read: &|_| Ok(bytes.to_vec()),
        processors: 8,
    };
    match read_text("fuzz", &text, &surroundings) {
        Err(problems) => assert!(!problems.to_string().is_empty()),
        Ok(set) => {
            assert!(!set.jobs.is_empty());
            runs(set);
        }
    }
}

fn runs(mut set: JobSet) {
    set.jobs.truncate(3);
    for job in &mut set.jobs {
        // As much as shows how it goes on.
        job.numjobs = job.numjobs.min(2);
        job.iodepth = job.iodepth.min(64);
        job.number_ios = Some(job.number_ios.unwrap_or(100).min(100));
        job.runtime = Some(
            job.runtime
                .map_or(Span::from_ms(20), |runtime| runtime.min(Span::from_ms(20))),
        );
        job.startdelay = job.startdelay.min(Span::from_ms(5));
        job.ramp_time = job.ramp_time.min(Span::from_ms(5));
        // Nobody has read the file it names.
        job.iolog = None;
    }
    let scenario = Scenario {
        machine: machine(),
        state: Precondition::Fresh,
        work: Work::Jobs(set.jobs.clone()),
        seed: 1,
        warm_seed: None,
        series_every: Span::from_ms(1),
        faults: Vec::new(),
        heat: None,
    };
    let Ok(outcome) = Lab::new().run(&scenario) else {
        return;
    };
    let report = Report {
        members: &[],
        jobs: &set.jobs,
        globals: &set.globals,
        outcome: &outcome,
        drive: "ram",
        series_every: scenario.series_every,
    };
    let formats = |list: &str| list.parse::<Formats>().expect("formats that there are");
    assert!(!print(&report, formats("normal")).is_empty());
    let json = print(&report, formats("json+"));
    let root: Value = serde_json::from_str(&json).expect("JSON");
    assert!(!has_null(&root), "a figure is none: {json}");
}

/// Whether there is a null, which is what becomes of a number that is none.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}
