//! The ledger compared with the published figures, and the messages for a file with mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use report::reproduce as report;
use study::ledger::{self, PublishedValue};

/// Reports that a test is skipped, in a way that the test harness does not capture as it does `eprintln!`.
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

fn built_in() -> Vec<ledger::LedgerFile> {
    ledger::built_in().unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

/// Returns a file of published figures next to the checkout; `None`, with a message, if it is missing.
fn shared(name: &str) -> Option<Vec<BTreeMap<String, String>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published");
    let path = path.join(name);
    if !path.is_file() {
        skip!("there is no {}", path.display());
        return None;
    }
    let mut reader = csv::Reader::from_path(&path).expect("the file opens");
    let records = reader.deserialize();
    Some(
        records
            .map(|record| record.expect("a CSV record"))
            .collect(),
    )
}

/// Returns the rows of `figures.csv` and of the collections `pools.csv`, `measured.csv` and `underload.csv`: id to
/// value and unit; `None` if a file is missing.
fn published() -> Option<BTreeMap<String, (String, String)>> {
    let mut rows = shared("figures.csv")?;
    assert!(rows.len() > 400, "only {} rows", rows.len());
    rows.extend(shared("pools.csv")?);
    rows.extend(shared("measured.csv")?);
    rows.extend(shared("underload.csv")?);
    let cells = rows.into_iter().map(|mut row| {
        let mut cell = |name: &str| row.remove(name).unwrap_or_default();
        (cell("id"), (cell("value"), cell("unit")))
    });
    Some(cells.collect())
}

/// Checks the runs of a collection, identified by the columns in `run`: either all rows of a run may set a parameter or
/// none, and at most a third of the runs of each system may. Systems are identified by the columns in `system`. Returns
/// the number of systems with runs that may set a parameter.
fn whole_runs_may_set_and_at_most_a_third(file: &str, run: &[&str], system: &[&str]) -> usize {
    let files = built_in();
    let may_set: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.may_set)
        .map(String::as_str)
        .collect();
    let Some(rows) = shared(file) else {
        return 0;
    };
    type Cells<'a> = Vec<&'a str>;
    let mut runs: BTreeMap<Cells<'_>, (Cells<'_>, Vec<bool>)> = BTreeMap::new();
    for row in &rows {
        let cells = |columns: &[&str]| columns.iter().map(|&column| &*row[column]).collect();
        let source = ledger::source_of(&row["id"]);
        // A collection of one source does not name it.
        let said = row.get("source").map_or("LOAD", |said| said);
        assert_eq!(source, Some(said), "{}", row["id"]);
        let run = runs.entry(cells(run)).or_insert((cells(system), vec![]));
        run.1.push(may_set.contains(&*row["id"]));
    }
    let mut systems: BTreeMap<&[&str], (usize, usize)> = BTreeMap::new();
    for (run, (system, rows)) in &runs {
        let sets = rows.iter().any(|one| *one);
        assert!(!sets || rows.iter().all(|one| *one), "a part of {run:?}");
        let (all, setting) = systems.entry(system).or_default();
        *all += 1;
        *setting += usize::from(sets);
    }
    for (system, (all, setting)) in &systems {
        assert!(setting * 3 <= *all, "{system:?}: {setting} of {all}");
    }
    systems.values().filter(|(_, setting)| *setting > 0).count()
}

#[test]
fn of_each_collected_source_whole_runs_may_set_and_at_most_a_third() {
    let run = [
        "source",
        "drive_or_system",
        "topology",
        "rw",
        "bs",
        "qd",
        "jobs",
        "engine_or_tool",
        "conditions",
        "quality",
    ];
    let sources = whole_runs_may_set_and_at_most_a_third("pools.csv", &run, &["source"]);
    assert!(matches!(sources, 0 | 9), "{sources}");
    let run = [
        "source",
        "drive",
        "rw",
        "bs",
        "qd",
        "jobs",
        "engine",
        "conditions",
    ];
    let system = ["source", "drive"];
    let systems = whole_runs_may_set_and_at_most_a_third("measured.csv", &run, &system);
    assert!(matches!(systems, 0 | 7), "{systems}");
    let run = ["drive", "rw", "bs", "qd", "jobs", "engine", "conditions"];
    let systems = whole_runs_may_set_and_at_most_a_third("underload.csv", &run, &["drive"]);
    assert!(matches!(systems, 0 | 3), "{systems}");
}

/// Prefix of the ledger's own rows: makers' ratings, some of them also in `measured.csv`.
const RATINGS: &str = "S5-";

#[test]
fn every_published_row_stands_once_in_the_ledger() {
    let files = built_in();
    let Some(published) = published() else { return };
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        let rows = file.rows.iter().map(|row| &row.id);
        let rows = rows.chain(file.not_reproduced.iter().map(|(id, _)| id));
        for id in rows.filter(|id| !id.starts_with(RATINGS)) {
            *places.entry(id).or_default() += 1;
        }
    }
    let pending: Vec<&str> = files
        .iter()
        .flat_map(|file| &file.pending)
        .map(String::as_str)
        .collect();
    let unknown: Vec<&&str> = places
        .keys()
        .chain(&pending)
        .filter(|id| !published.contains_key(**id))
        .collect();
    assert!(
        unknown.is_empty(),
        "not in figures.csv or pools.csv: {unknown:?}"
    );
    let twice: Vec<_> = places.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "more than once in the ledger: {twice:?}");
    let nowhere: Vec<&String> = published
        .keys()
        .filter(|id| !places.contains_key(id.as_str()) && !pending.contains(&id.as_str()))
        .collect();
    assert!(
        nowhere.is_empty(),
        "neither in the ledger nor pending: {nowhere:?}"
    );
    let still = pending
        .iter()
        .filter(|id| !places.contains_key(**id))
        .count();
    if still > 0 {
        skip!("{still} rows of the ledger are pending");
    }
}

#[test]
fn published_values_are_those_of_the_sources() {
    let files = built_in();
    let Some(published) = published() else { return };
    let mut wrong = Vec::new();
    for row in files.iter().flat_map(|file| &file.rows) {
        let Some((value, unit)) = published.get(&row.id) else {
            continue;
        };
        if let Ok(number) = value.parse::<f64>()
            && row.published != PublishedValue::Number(number)
        {
            wrong.push(format!(
                "{}: {:?}, published is {value}",
                row.id, row.published
            ));
        }
        if row.unit != *unit {
            wrong.push(format!(
                "{}: unit `{}`, published is `{unit}`",
                row.id, row.unit
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ratings_are_those_of_the_measured_figures_they_name() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published/measured.csv");
    let Ok(mut reader) = csv::Reader::from_path(&path) else {
        skip!("there is no {}", path.display());
        return;
    };
    let figures: BTreeMap<String, (f64, String)> = reader
        .records()
        .map(|record| record.expect("a CSV record"))
        .filter_map(|record| {
            let value = record[10].parse().ok()?;
            Some((record[0].to_owned(), (value, record[11].to_owned())))
        })
        .collect();
    let mut named = 0;
    let mut wrong = Vec::new();
    let files = built_in();
    let rows = files.iter().flat_map(|file| &file.rows);
    for row in rows.filter(|row| row.id.starts_with(RATINGS)) {
        let words = row.conditions.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| word.len() == 5 && word.starts_with('M')) {
            named += 1;
            match figures.get(word) {
                Some((value, unit))
                    if row.published == PublishedValue::Number(*value) && row.unit == *unit => {}
                other => wrong.push(format!("{} names {word}: {other:?}", row.id)),
            }
        }
    }
    assert!(named > 10, "only {named} rows name a figure");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_collected_row_that_may_not_set_is_not_fitted() {
    let row = "[measure.one]\ndrive = \"optane-pmem-128\"\nhost = \"xeon-4215\"\nstate = \"fresh\"\n\
               fio = [\"--rw=write\"]\n\n[rows]\ntable = '''\n\
               id | published | unit | evidence | fixes | metric | what | conditions\n\
               P0436 | 301377 | IOPS | fitted | host.engine.sync.submit | one.write.iops | writes | none\n'''\n";
    let folder = std::env::temp_dir().join(format!("drivelab-may-set-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let read = |text: String| {
        let path = folder.join("mine.toml");
        std::fs::write(&path, text).expect("it can be written");
        ledger::from_disk(&[path])
    };
    let refused = read(format!("may-set = [\"P0437 to P0439\"]\n{row}"));
    let problems = refused.expect_err("P0436 is not on the list").render(false);
    let admitted = read(format!("may-set = [\"P0436 to P0439\"]\n{row}"));
    std::fs::remove_dir_all(&folder).expect("the test's own folder");
    assert!(
        problems.contains("P0436 is not among the rows that may set a parameter"),
        "{problems}"
    );
    assert!(admitted.is_ok(), "{admitted:?}");
}

/// A small ledger on the RAM disk, whose latency is known.
const SMALL: &str = r#"
[drives]
ram = "ram-disk"
optane = "p4800x-375"

[common]
state = "fresh"
host = "xeon-2017"
fio = ["--ioengine=libaio", "--direct=1"]

[measure.by_depth]
drive = "ram-disk"
fio = ["--rw=randread", "--bs=4k"]
sweep = { iodepth = [1, 2, 4, 8] }

[measure.writes]
drive = "ram-disk"
fio = ["--rw=randwrite", "--bs=4k", "--iodepth=4"]

[[not-reproduced]]
reason = "a price"
rows = ["S0-009 to S0-010"]

[rows]
table = '''
id     | published | unit | is     | evidence  | metric | what | conditions | note
S0-001 | 1         | x    |        | predicted | at(by_depth.read.iops, 4) / writes.write.iops | reads and writes at depth 4 | 4 KiB random |
S0-002 | a depth of 2 to 8 | QD   | 2 to 8 | predicted | knee(by_depth.read.iops) | depth at which reads saturate | 4 KiB random |
S0-003 | 1000      | us   |        | predicted | writes.write.mean_us | a mean that no RAM disk has | 4 KiB random | made up to miss
S0-004 | somewhere | QD   | < 9    | predicted | crossing(by_depth.read.iops, 1_000_000_000) | reads overtake what nothing overtakes | 4 KiB random |
S0-005 | 30        | DWPD |        | catalogue | optane.dwpd | P4800X, writes a day | rated |
'''
"#;

fn small() -> Vec<ledger::LedgerFile> {
    let file = ledger::file("small.toml", SMALL);
    vec![file.unwrap_or_else(|problems| panic!("{}", problems.render(false)))]
}

fn run(selection: &ledger::Selection) -> ledger::Reproduction {
    ledger::reproduce(&small(), selection, &lab::to_the_end)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_run_is_a_table_with_a_summary() {
    let all = run(&ledger::Selection::default());
    insta::assert_snapshot!(report::text(&all, Some(140)));
    for line in report::text(&all, Some(80)).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Three seeds of four depths and of the writes.
    assert_eq!(all.runs, 15);
    let verdicts: Vec<ledger::RowVerdict> =
        all.results.iter().map(|result| result.verdict).collect();
    use ledger::RowVerdict::{Holds, Misses, NoFigure};
    assert_eq!(verdicts, [Holds, Holds, Misses, NoFigure, Holds]);
}

#[test]
fn a_row_has_the_same_figure_whichever_others_are_run() {
    let all = run(&ledger::Selection::default());
    let one = run(&ledger::Selection {
        rows: vec!["S0-003".into()],
        ..ledger::Selection::default()
    });
    assert_eq!(one.results[..], all.results[2..3]);
    assert_eq!(one.runs, 3);
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let selection = |id: &str| ledger::Selection {
        rows: vec![id.into()],
        ..ledger::Selection::default()
    };
    let said = |id: &str| {
        let refused = ledger::reproduce(&small(), &selection(id), &lab::to_the_end);
        refused.expect_err("it is not there").to_string()
    };
    assert!(said("S0-009").contains("S0-009 is not reproduced: a price"));
    assert!(said("S0-006").contains("the ledger has no row S0-006"));
}

#[test]
fn the_page_shows_every_row_and_nothing_a_file_says_becomes_markup() {
    let page = report::page::html(&run(&ledger::Selection::default()));
    for id in ["S0-001", "S0-005", "S0-009 to S0-010"] {
        assert!(page.contains(id), "{id}");
    }
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "it loads nothing"
    );
    let trap = SMALL.replace("made up to miss", "<script>alert(1)</script>");
    let file = ledger::file("small.toml", &trap).expect("it is well formed");
    let trapped = ledger::reproduce(&[file], &ledger::Selection::default(), &lab::to_the_end)
        .expect("it runs");
    assert!(!report::page::html(&trapped).contains("<script>alert"));
}

#[test]
fn wide_charts_scroll_by_themselves_and_not_the_page() {
    let third = "S0-007 | 9 | us | | predicted | writes.write.mean_us | a mean | 4 KiB |\n'''\n";
    let text = SMALL.replace("'''\n", third).replacen(third, "'''\n", 1);
    let file = ledger::file("small.toml", &text).expect("well formed");
    let found = ledger::reproduce(&[file], &ledger::Selection::default(), &lab::to_the_end)
        .expect("it runs");
    let page = report::page::html(&found);
    let charts = page.matches("<svg class=\"chart\"").count();
    let scrolling = page
        .matches("<div class=\"scroll wide\"><svg class=\"chart\"")
        .count();
    assert!(
        page.contains("id=\"errors\""),
        "the distribution of errors is there"
    );
    assert_eq!(charts, scrolling);
}

#[test]
fn all_problems_of_a_file_come_at_once() {
    let text = r#"
[drives]
optane = "p4800x-357"

[measure.reads]
drive = "p4800x-375"
state = "stady"
host = "xeon-2017"
fio = ["--rw=randread", "--bs=4z"]
sweep = { iodepth = [4, 2] }

[measure.writes]
drive = "p4800x-375"
state = "steady"
host = "xeon-2017"
fio = ["--rw=randwrite"]
set = { "xpoint.power.limits" = "12 W" }
seed = 4

[measure.good]
drive = "p4800x-375"
state = "steady"
host = "xeon-2017"
fio = ["--rw=randwrite", "--bs=4k"]

[[not-reproduced]]
rows = ["S4-010 to S4-009"]

[rows]
table = '''
id     | published | unit | is    | tolerance | evidence  | metric | what | conditions
S4-1   | fast      | us   |       |           | predicted | good.write.p99 | a row | none
S4-002 | 5         | us   | about | 5         | fitted    | godo.write.p99_us | another | none
S4-128 | 5         | us   |       |           | guessed   | good.write.iops + | a fit that is not admitted | none
S4-109 | 5         | us   |       |           | predicted | good.write.p99_us | a row that a parameter was set from | none
'''
"#;
    let problems = ledger::file("wrong.toml", text).expect_err("it is full of mistakes");
    insta::assert_snapshot!(problems.render(false));
}

#[test]
fn a_load_that_is_looked_for_is_set_from_the_row_that_has_its_share() {
    let problems = |act: &str, published: f64, metric: &str, evidence: &str| {
        let text = format!(
            "[measure.one]\ndrive = \"p4800x-375\"\nhost = \"xeon-2017\"\nstate = \"steady\"\n\
             act = {{ version = 3, {act} }}\n\n[rows]\ntable = '''\n\
             id | evidence | fixes | published | unit | metric | what | conditions\n\
             S4-151 | {evidence} | {published} | % | one.{metric} | reads over 1 ms | ACT\n'''\n"
        );
        match ledger::file("mine.toml", &text) {
            Ok(_) => String::new(),
            Err(problems) => problems.render(false),
        }
    };
    let fitted = "fitted | act.load";
    let share = "over_1ms_percent = 0.82";
    let over = "act_over_1ms_percent";
    assert_eq!(problems(share, 0.82, over, fitted), "");
    assert_eq!(
        problems(share, 0.16, "act_over_2ms_percent", "predicted |"),
        ""
    );
    for (act, published, metric, evidence, expected) in [
        (
            share,
            0.82,
            over,
            "predicted |",
            "is the one at which 0.82 %",
        ),
        (share, 0.9, over, fitted, "is the one at which 0.82 %"),
        (share, 0.16, "act_over_2ms_percent", fitted, "no share"),
        ("load = 50", 0.82, over, fitted, "no share"),
        (
            "over_1ms_percent = 0.0",
            0.82,
            over,
            "predicted |",
            "0.01 to 50.0",
        ),
        (
            "load = 50, over_1ms_percent = 0.82",
            0.82,
            over,
            fitted,
            "searches for a load",
        ),
    ] {
        let found = problems(act, published, metric, evidence);
        assert!(found.contains(expected), "{act}, {metric}: {found}");
    }
}
