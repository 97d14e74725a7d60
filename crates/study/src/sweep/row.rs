//! The row of a scenario: the conditions that repeat it, and the results. Columns are described in `docs/sweep.md`.
//! Those of results have the names and meanings of `docs/csv.md`, with the direction as a prefix.

use lab::{Outcome, ThreadOutcome};
use statistics::Measured;
use text::problem::Problems;

use crate::review::measure::{Keep, figures, measurement};
use crate::review::results::{DirectionResult, LatencySummary};

use super::cast::options;
use super::space::{ScenarioSettings, SettingValue, Space, SweepSetting};
use super::table::{Cell, Column, ColumnType, SweepRow};

/// Returns the results of a thread in one direction.
type DirectionAccessor = fn(&ThreadOutcome) -> &Measured;

/// Directions that may be counted, each with the prefix of its columns.
const DIRECTIONS: [(&str, DirectionAccessor); 4] = [
    ("read", |thread| &thread.read),
    ("write", |thread| &thread.write),
    ("trim", |thread| &thread.trim),
    ("flush", |thread| &thread.sync),
];

/// Columns with the conditions that repeat a scenario.
const CONDITIONS: [(&str, ColumnType); 12] = [
    ("scenario", ColumnType::Whole),
    ("point", ColumnType::Whole),
    ("drive", ColumnType::Text),
    ("set", ColumnType::Text),
    ("host", ColumnType::Text),
    ("state", ColumnType::Text),
    ("job_file", ColumnType::Text),
    ("job", ColumnType::Text),
    ("seed", ColumnType::Whole),
    ("warm_seed", ColumnType::Whole),
    ("version", ColumnType::Text),
    ("command", ColumnType::Text),
];

/// Columns of each direction.
const OF_A_DIRECTION: [(&str, ColumnType); 12] = [
    ("ios", ColumnType::Whole),
    ("errors", ColumnType::Whole),
    ("iops", ColumnType::Number),
    ("mb_s", ColumnType::Number),
    ("mean_us", ColumnType::Number),
    ("min_us", ColumnType::Number),
    ("p50_us", ColumnType::Number),
    ("p99_us", ColumnType::Number),
    ("p99_9_us", ColumnType::Number),
    ("p99_99_us", ColumnType::Number),
    ("p99_999_us", ColumnType::Number),
    ("max_us", ColumnType::Number),
];

/// Columns of all directions together.
const MEANWHILE: [&str; 7] = [
    "seconds",
    "watts",
    "write_amplification",
    "controller_busy",
    "link_busy",
    "medium_busy",
    "host_cores",
];

/// Splits a value into its leading number and the rest.
fn number_and_unit(words: &str) -> Option<(f64, &str)> {
    let end = words
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(words.len());
    let number = words[..end].parse().ok()?;
    Some((number, words[end..].trim()))
}

/// Returns a unit as the ending of a column's name.
fn ending(unit: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let unit: String = unit.chars().map(plain).collect();
    match unit.is_empty() {
        true => unit,
        false => format!("_{}", unit.to_lowercase()),
    }
}

/// How a varied setting is shown in a column of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VariedColumn {
    what: SweepSetting,
    column: Column,
}

impl VariedColumn {
    fn new(what: &SweepSetting, choices: &[&SettingValue]) -> VariedColumn {
        let whole = choices.iter().all(|it| it.words.parse::<i64>().is_ok());
        let units: Option<Vec<&str>> = choices
            .iter()
            .map(|it| number_and_unit(&it.words).map(|(_, unit)| unit))
            .collect();
        // fio's options keep their suffixes: `4k` is not a quantity of `k`.
        let unit = units.and_then(|units| {
            let first = units.first().copied().unwrap_or_default();
            let one = units.iter().all(|unit| *unit == first);
            let may = first.is_empty() || matches!(what, SweepSetting::Set(_));
            (one && may).then_some(first)
        });
        let (kind, ending) = match (whole, unit) {
            (true, _) => (ColumnType::Whole, String::new()),
            (false, Some(unit)) => (ColumnType::Number, ending(unit)),
            (false, None) => (ColumnType::Text, String::new()),
        };
        let name = format!("{}{ending}", what.name());
        let what = what.clone();
        let column = Column { name, kind };
        VariedColumn { what, column }
    }

    fn cell(&self, picked: &ScenarioSettings<'_>) -> Cell {
        let Some(choice) = picked.value(&self.what) else {
            return Cell::Empty;
        };
        match self.column.kind {
            ColumnType::Whole => choice.words.parse().map_or(Cell::Empty, Cell::Whole),
            ColumnType::Number => number_and_unit(&choice.words)
                .map_or(Cell::Empty, |(number, _)| Cell::Number(number)),
            ColumnType::Text => Cell::Text(choice.words.clone()),
        }
    }
}

/// Returns the settings that have a column of their own: changed figures and options that vary between scenarios.
pub(super) fn varied(space: &Space) -> Vec<VariedColumn> {
    let varied = space.varied().into_iter();
    let own =
        varied.filter(|(what, _)| matches!(what, SweepSetting::Set(_) | SweepSetting::Job(_)));
    own.map(|(what, choices)| VariedColumn::new(what, &choices))
        .collect()
}

/// Returns all columns.
pub(super) fn columns(varied: &[VariedColumn]) -> Vec<Column> {
    let plain = |name: &str, kind: ColumnType| Column {
        name: name.to_owned(),
        kind,
    };
    let conditions = CONDITIONS.iter().map(|&(name, kind)| plain(name, kind));
    let mut columns: Vec<Column> = conditions.collect();
    columns.extend(varied.iter().map(|varied| varied.column.clone()));
    columns.push(plain("problem", ColumnType::Text));
    columns.extend(MEANWHILE.iter().map(|name| plain(name, ColumnType::Number)));
    for (direction, _) in DIRECTIONS {
        let own = OF_A_DIRECTION.iter();
        columns.extend(own.map(|&(name, kind)| plain(&format!("{direction}_{name}"), kind)));
    }
    columns
}

/// Returns a word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Returns the command that repeats a scenario, in the folder of the sweep's file.
pub(super) fn command(picked: &ScenarioSettings<'_>, warm_seed: Option<u64>) -> String {
    let words = |what: &SweepSetting| picked.value(what).map(|choice| choice.words.as_str());
    let mut command = String::from("drivelab run");
    let mut add = |word: &str| {
        command.push(' ');
        command.push_str(&quoted(word));
    };
    if let Some(file) = words(&SweepSetting::JobFile) {
        add(file);
    }
    if let Some(drive) = words(&SweepSetting::Drive) {
        add(drive);
    }
    for (key, choice) in picked.set() {
        add(&format!("--set={key}={}", choice.words));
    }
    for (option, what) in [
        ("host", SweepSetting::Host),
        ("state", SweepSetting::State),
        ("seed", SweepSetting::Seed),
    ] {
        if let Some(words) = words(&what) {
            add(&format!("--{option}={words}"));
        }
    }
    if let Some(seed) = warm_seed {
        add(&format!("--warm-seed={seed}"));
    }
    for option in options(picked) {
        add(&option);
    }
    command
}

/// Returns the row of a scenario with the result `outcome`.
pub(super) fn row(
    index: usize,
    picked: &ScenarioSettings<'_>,
    warm_seed: Option<u64>,
    varied: &[VariedColumn],
    outcome: &Result<Outcome, Problems>,
) -> SweepRow {
    let mut row = conditions(index, picked, warm_seed);
    row.extend(varied.iter().map(|varied| varied.cell(picked)));
    match outcome {
        Ok(outcome) => {
            row.push(Cell::Empty);
            results(outcome, &mut row);
        }
        Err(problems) => {
            let said: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
            row.push(Cell::Text(said.join("; ").replace('\n', " ")));
            let rest = MEANWHILE.len() + DIRECTIONS.len() * OF_A_DIRECTION.len();
            row.resize(row.len() + rest, Cell::Empty);
        }
    }
    row
}

fn conditions(index: usize, picked: &ScenarioSettings<'_>, warm_seed: Option<u64>) -> SweepRow {
    let text = |what: &SweepSetting| {
        let choice = picked.value(what);
        choice.map_or(Cell::Empty, |choice| Cell::Text(choice.words.clone()))
    };
    let whole = |number: Option<u64>| {
        let number = number.and_then(|number| i64::try_from(number).ok());
        number.map_or(Cell::Empty, Cell::Whole)
    };
    let set = picked
        .set()
        .map(|(key, choice)| format!("{key}={}", choice.words));
    let set: Vec<String> = set.collect();
    let seed = picked
        .value(&SweepSetting::Seed)
        .and_then(|it| it.words.parse().ok());
    vec![
        whole(Some(index as u64)),
        whole(picked.point.map(|point| point as u64)),
        text(&SweepSetting::Drive),
        if set.is_empty() {
            Cell::Empty
        } else {
            Cell::Text(set.join("; "))
        },
        text(&SweepSetting::Host),
        text(&SweepSetting::State),
        text(&SweepSetting::JobFile),
        Cell::Text(options(picked).join(" ")),
        whole(seed),
        whole(warm_seed.or(seed)),
        Cell::Text(version::VERSION.into()),
        Cell::Text(command(picked, warm_seed)),
    ]
}

fn number(number: Option<f64>) -> Cell {
    number.map_or(Cell::Empty, Cell::Number)
}

fn results(outcome: &Outcome, row: &mut SweepRow) {
    let all = measurement(&[outcome], Keep::default());
    let meanwhile = [
        Some(all.seconds),
        all.watts,
        all.write_amplification,
        all.controller_busy,
        all.link_busy,
        all.medium_busy,
        all.host_cores,
    ];
    row.extend(meanwhile.map(number));
    for (_, direction) in DIRECTIONS {
        match figures(outcome.threads.iter().map(direction), Keep::default()) {
            Some(figures) => of_a_direction(&figures, row),
            None => row.resize(row.len() + OF_A_DIRECTION.len(), Cell::Empty),
        }
    }
}

fn of_a_direction(figures: &DirectionResult, row: &mut SweepRow) {
    let count = |count: u64| i64::try_from(count).map_or(Cell::Empty, Cell::Whole);
    row.extend([count(figures.ios), count(figures.errors)]);
    let LatencySummary {
        mean_us,
        min_us,
        p50_us,
        p99_us,
        p99_9_us,
        p99_99_us,
        p99_999_us,
        max_us,
        ..
    } = figures.latency;
    let numbers = [
        Some(figures.iops),
        Some(figures.mb_s),
        Some(mean_us),
        Some(min_us),
        p50_us,
        p99_us,
        p99_9_us,
        p99_99_us,
        p99_999_us,
        Some(max_us),
    ];
    row.extend(numbers.map(number));
}
