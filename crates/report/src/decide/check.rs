//! Checks drives against an application's published minimum: `drivelab check`.

use serde_json::{Value, json};
use study::decide::check::{BySeed, Check, CheckAnswer};
use study::decide::work::Conditions;
use text::terminal::{Width, paragraph};

use super::headline::{first_that_fits, fits, named, short, some_of};
use super::table::{AnswerColumn, AnswerTable};
use super::{document, known_and_again, reading, seeds, with_unit};

/// Returns the question, as the title of the page.
pub(super) fn title(check: &Check) -> String {
    match check.is_judged {
        true => format!("Which drives meet the minimum of {}", check.software),
        false => format!("Drives under the load of {}", check.software),
    }
}

/// Returns which drives pass, and which do not, with the limits that they miss: in one line, or in one for each
/// verdict.
pub fn sentences(check: &Check, answers: &[CheckAnswer]) -> Vec<String> {
    let software = &check.software;
    if !check.is_judged {
        return vec![without_minimum(software, answers)];
    }
    let of = |passes: bool| {
        answers
            .iter()
            .filter(move |one| (one.passes == Some(true)) == passes)
    };
    let name = |one: &CheckAnswer| named(&one.drive, one.model);
    let pass: Vec<String> = of(true).map(name).collect();
    let fail: Vec<String> = of(false).map(name).collect();
    let why: Vec<String> = of(false)
        .map(|one| format!("{} ({})", name(one), missed(one)))
        .collect();
    let unchecked = check.unchecked.as_ref();
    let unchecked = unchecked.map_or_else(String::new, |what| format!(" Not checked: {what}."));
    let passing = (!pass.is_empty()).then(|| {
        let count = pass.len();
        let whole = format!(
            "Meets {software}'s minimum: {}.{unchecked}",
            pass.join(", ")
        );
        let some = (1..=count).rev().map(|shown| {
            format!(
                "{count} drives meet {software}'s minimum: {}.{unchecked}",
                some_of(&pass, shown)
            )
        });
        first_that_fits(std::iter::once(whole).chain(some))
    });
    let failing = (!fail.is_empty()).then(|| {
        let count = fail.len();
        let whole = [
            format!("Does not meet {software}'s minimum: {}.", why.join(", ")),
            format!("Does not meet {software}'s minimum: {}.", fail.join(", ")),
        ];
        let some = (1..=count).rev().map(|shown| {
            format!(
                "{count} drives do not meet {software}'s minimum: {}.",
                some_of(&fail, shown)
            )
        });
        first_that_fits(whole.into_iter().chain(some))
    });
    match (passing, failing) {
        (Some(passing), Some(failing)) => {
            let both = format!("{passing} {failing}");
            match fits(&both) {
                true => vec![both],
                false => vec![passing, failing],
            }
        }
        (one, other) => one.into_iter().chain(other).collect(),
    }
}

/// Returns the figures of the drives under the load of software without a known minimum, in the order of the check. The best
/// drive by the first latency comes first.
fn without_minimum(software: &str, answers: &[CheckAnswer]) -> String {
    let latency = |one: &CheckAnswer| {
        let mut figures = one.figures.iter().map(|it| &it.reading);
        figures.find(|it| it.is_latency).and_then(|it| it.value)
    };
    let mut all: Vec<&CheckAnswer> = answers.iter().collect();
    let value = |one: &CheckAnswer| latency(one).unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| value(a).total_cmp(&value(b)));
    let figures = |one: &CheckAnswer, some: usize| {
        let shown = one.figures.iter().map(|it| &it.reading).take(some);
        let shown = shown.map(|it| format!("{} {}", it.limit, reading(it)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let head = format!("This program knows no published minimum of {software}.");
    let each = |count: usize, some: usize, names: fn(&CheckAnswer) -> String| {
        let shown = all.iter().take(count);
        let shown = shown.map(|one| format!("{}: {}", names(one), figures(one, some)));
        let shown: Vec<String> = shown.collect();
        let more = match all.len() - count.min(all.len()) {
            0 => String::new(),
            more => format!("; {more} more below"),
        };
        format!("{head} {}{more}.", shown.join("; "))
    };
    let whole = |one: &CheckAnswer| named(&one.drive, one.model);
    let brief = |one: &CheckAnswer| short(&one.drive);
    let texts = (1..=all.len()).rev().flat_map(|count| {
        let some = [3, 2, 1].map(|some| each(count, some, whole));
        some.into_iter().chain([each(count, 1, brief)])
    });
    first_that_fits(texts.chain([head.clone()]))
}

/// Returns the missed limits. A limit that only some seeds miss is marked.
fn missed(answer: &CheckAnswer) -> String {
    let missed = answer.minimum.iter();
    let missed = missed.filter(|one| one.reading.met != Some(true));
    let missed: Vec<String> = missed
        .map(|one| {
            let some = match one.depends_on_seed {
                true => " with the worst seed",
                false => "",
            };
            format!("{} is {}{some}", one.reading.limit, reading(&one.reading))
        })
        .collect();
    missed.join(", ").replace(" !", "")
}

/// Returns a figure with its range over seeds.
fn cell(one: &BySeed) -> String {
    let unit = one.reading.unit;
    let shown = reading(&one.reading);
    match one
        .by_seed
        .map(|ends| ends.map(|value| with_unit(value, unit)))
    {
        Some([least, most]) if least != most => format!("{shown} ({least} to {most})"),
        _ => shown,
    }
}

/// Returns a table with a line for each drive.
pub fn tables(check: &Check, answers: &[CheckAnswer]) -> Vec<AnswerTable> {
    let mut columns = vec![AnswerColumn::words("drive")];
    if check.is_judged {
        columns.push(AnswerColumn::figures("passes"));
    }
    if let Some(first) = answers.first() {
        let all = first.minimum.iter().chain(&first.figures);
        columns.extend(all.map(|one| AnswerColumn::figures(&one.reading.limit)));
    }
    columns.push(AnswerColumn::words("model"));
    let mut table = AnswerTable::new("Figures of each drive", 1, columns);
    for one in answers {
        let mut cells = vec![one.drive.clone()];
        if check.is_judged {
            cells.push(String::from(if one.passes == Some(true) {
                "yes"
            } else {
                "no"
            }));
        }
        cells.extend(one.minimum.iter().chain(&one.figures).map(cell));
        cells.push(one.model.to_owned());
        table.add(cells);
    }
    vec![table]
}

/// Returns the minimum, its source, and the method.
pub fn method(
    check: &Check,
    conditions: &Conditions,
    answers: &[CheckAnswer],
    command: &str,
    width: Width,
) -> String {
    let how = format!(
        "{} on {}, drives {} at the start, {}{}, and in brackets the range of all. `drivelab check {} --print` has the load.",
        check.name,
        conditions.host.id,
        conditions.state.name(),
        seeds(conditions.seed, conditions.seeds),
        match check.is_judged {
            true => ": each must pass; the worst is shown",
            false => " together",
        },
        check.name,
    );
    let lines = vec![
        paragraph("Published: ", &check.published, width),
        paragraph("Source: ", &check.source, width),
        paragraph("", &how, width),
    ];
    let drives = answers.iter();
    let drives = drives.map(|one| (&*one.drive, one.model, &*one.model_text));
    known_and_again(lines, drives, command, width)
}

/// Returns everything as JSON.
pub fn json(
    check: &Check,
    conditions: &Conditions,
    answers: &[CheckAnswer],
    command: &str,
) -> Value {
    let asked = json!({
        "check": check,
        "host": conditions.host.id,
        "state": conditions.state.name(),
        "seed": conditions.seed,
        "seeds": conditions.seeds,
    });
    document("drivelab check", command, &asked, &answers)
}
