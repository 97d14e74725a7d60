//! The row of a scenario: the conditions that repeat it, and the results. Columns are described in `docs/sweep.md`.
//! Those of results have the names and meanings of `docs/csv.md`, with the direction as a prefix.

use lab::{Outcome, ThreadOutcome};
use statistics::Measured;
use text::problem::Problems;

use crate::review::measure::{Keep, figures, measurement};
use crate::review::results::{Figures, Latency};

use super::cast::options;
use super::space::{Choice, Picked, Space, What};
use super::table::{Cell, Column, Kind, Row};

/// Returns the results of a thread in one direction.
type Direction = fn(&ThreadOutcome) -> &Measured;

/// Directions that may be counted, each with the prefix of its columns.
const DIRECTIONS: [(&str, Direction); 4] = [
    ("read", |thread| &thread.read),
    ("write", |thread| &thread.write),
    ("trim", |thread| &thread.trim),
    ("flush", |thread| &thread.sync),
];

/// Columns with the conditions that repeat a scenario.
const CONDITIONS: [(&str, Kind); 12] = [
    ("scenario", Kind::Whole),
    ("point", Kind::Whole),
    ("drive", Kind::Text),
    ("set", Kind::Text),
    ("host", Kind::Text),
    ("state", Kind::Text),
    ("job_file", Kind::Text),
    ("job", Kind::Text),
    ("seed", Kind::Whole),
    ("warm_seed", Kind::Whole),
    ("version", Kind::Text),
    ("command", Kind::Text),
];

/// Columns of each direction.
const OF_A_DIRECTION: [(&str, Kind); 12] = [
    ("ios", Kind::Whole),
    ("errors", Kind::Whole),
    ("iops", Kind::Number),
    ("mb_s", Kind::Number),
    ("mean_us", Kind::Number),
    ("min_us", Kind::Number),
    ("p50_us", Kind::Number),
    ("p99_us", Kind::Number),
    ("p99_9_us", Kind::Number),
    ("p99_99_us", Kind::Number),
    ("p99_999_us", Kind::Number),
    ("max_us", Kind::Number),
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
pub(super) struct Varied {
    what: What,
    column: Column,
}

impl Varied {
    fn of(what: &What, choices: &[&Choice]) -> Varied {
        let whole = choices.iter().all(|it| it.words.parse::<i64>().is_ok());
        let units: Option<Vec<&str>> = choices
            .iter()
            .map(|it| number_and_unit(&it.words).map(|(_, unit)| unit))
            .collect();
        // fio's options keep their suffixes: `4k` is not a quantity of `k`.
        let unit = units.and_then(|units| {
            let first = units.first().copied().unwrap_or_default();
            let one = units.iter().all(|unit| *unit == first);
            let may = first.is_empty() || matches!(what, What::Set(_));
            (one && may).then_some(first)
        });
        let (kind, ending) = match (whole, unit) {
            (true, _) => (Kind::Whole, String::new()),
            (false, Some(unit)) => (Kind::Number, ending(unit)),
            (false, None) => (Kind::Text, String::new()),
        };
        let name = format!("{}{ending}", what.name());
        let what = what.clone();
        let column = Column { name, kind };
        Varied { what, column }
    }

    fn cell(&self, picked: &Picked<'_>) -> Cell {
        let Some(choice) = picked.of(&self.what) else {
            return Cell::Empty;
        };
        match self.column.kind {
            Kind::Whole => choice.words.parse().map_or(Cell::Empty, Cell::Whole),
            Kind::Number => number_and_unit(&choice.words)
                .map_or(Cell::Empty, |(number, _)| Cell::Number(number)),
            Kind::Text => Cell::Text(choice.words.clone()),
        }
    }
}

/// Returns the settings that have a column of their own: changed figures and options that vary between scenarios.
pub(super) fn varied(space: &Space) -> Vec<Varied> {
    let varied = space.varied().into_iter();
    let own = varied.filter(|(what, _)| matches!(what, What::Set(_) | What::Job(_)));
    own.map(|(what, choices)| Varied::of(what, &choices))
        .collect()
}

/// Returns all columns.
pub(super) fn columns(varied: &[Varied]) -> Vec<Column> {
    let plain = |name: &str, kind: Kind| Column {
        name: name.to_owned(),
        kind,
    };
    let conditions = CONDITIONS.iter().map(|&(name, kind)| plain(name, kind));
    let mut columns: Vec<Column> = conditions.collect();
    columns.extend(varied.iter().map(|varied| varied.column.clone()));
    columns.push(plain("problem", Kind::Text));
    columns.extend(MEANWHILE.iter().map(|name| plain(name, Kind::Number)));
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
pub(super) fn command(picked: &Picked<'_>, warm_seed: Option<u64>) -> String {
    let words = |what: &What| picked.of(what).map(|choice| choice.words.as_str());
    let mut command = String::from("drivelab run");
    let mut add = |word: &str| {
        command.push(' ');
        command.push_str(&quoted(word));
    };
    if let Some(file) = words(&What::JobFile) {
        add(file);
    }
    if let Some(drive) = words(&What::Drive) {
        add(drive);
    }
    for (key, choice) in picked.set() {
        add(&format!("--set={key}={}", choice.words));
    }
    for (option, what) in [
        ("host", What::Host),
        ("state", What::State),
        ("seed", What::Seed),
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
    picked: &Picked<'_>,
    warm_seed: Option<u64>,
    varied: &[Varied],
    outcome: &Result<Outcome, Problems>,
) -> Row {
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

fn conditions(index: usize, picked: &Picked<'_>, warm_seed: Option<u64>) -> Row {
    let text = |what: &What| {
        let choice = picked.of(what);
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
    let seed = picked.of(&What::Seed).and_then(|it| it.words.parse().ok());
    vec![
        whole(Some(index as u64)),
        whole(picked.point.map(|point| point as u64)),
        text(&What::Drive),
        if set.is_empty() {
            Cell::Empty
        } else {
            Cell::Text(set.join("; "))
        },
        text(&What::Host),
        text(&What::State),
        text(&What::JobFile),
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

fn results(outcome: &Outcome, row: &mut Row) {
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

fn of_a_direction(figures: &Figures, row: &mut Row) {
    let count = |count: u64| i64::try_from(count).map_or(Cell::Empty, Cell::Whole);
    row.extend([count(figures.ios), count(figures.errors)]);
    let Latency {
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
