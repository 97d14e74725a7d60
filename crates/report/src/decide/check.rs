//! Checks drives against an application's published minimum: `drivelab check`.

use serde_json::{Value, json};
use study::decide::check::{Answer, BySeed, Check};
use study::decide::work::Conditions;
use text::terminal::{Width, folded, paragraph, plain, right};

use super::{document, known_and_again, reading, seeds, with_unit};

/// Returns the answer, in one or two sentences.
pub fn answer(check: &Check, answers: &[Answer]) -> String {
    if !check.is_judged {
        return format!(
            "{} has no published minimum, so there is no verdict; what the drives do is below.",
            check.software
        );
    }
    let named = |passes: bool| -> Vec<String> {
        let some = answers.iter().filter(|one| one.passes == Some(passes));
        some.map(|one| match passes {
            true => one.drive.clone(),
            false => format!("{} ({})", one.drive, missed(one)),
        })
        .collect()
    };
    let (pass, fail) = (named(true), named(false));
    let passing = match pass.is_empty() {
        true => String::new(),
        false => format!("{} pass: {}.", check.software, pass.join(", ")),
    };
    let failing = match fail.is_empty() {
        true => String::new(),
        false => format!(
            " Not good enough for {}: {}.",
            check.software,
            fail.join(", ")
        ),
    };
    format!("{passing}{failing}").trim().to_owned()
}

fn missed(answer: &Answer) -> String {
    let missed = answer.minimum.iter();
    let missed = missed.filter(|one| one.reading.met != Some(true));
    let missed: Vec<String> = missed
        .map(|one| format!("{} is {}", one.reading.limit, reading(&one.reading)))
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
pub fn table(check: &Check, answers: &[Answer], width: Width) -> String {
    let mut table = plain();
    let mut header = vec![String::from("drive")];
    if check.is_judged {
        header.push(String::from("passes"));
    }
    if let Some(first) = answers.first() {
        let all = first.minimum.iter().chain(&first.figures);
        header.extend(all.map(|one| one.reading.limit.clone()));
    }
    header.push(String::from("model"));
    let columns = header.len();
    table.set_header(header);
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
        table.add_row(cells);
    }
    right(&mut table, 1..columns - 1);
    folded(&table, 1, width)
}

/// Returns the minimum, its source, and the method.
pub fn method(
    check: &Check,
    conditions: &Conditions,
    answers: &[Answer],
    command: &str,
    width: Width,
) -> String {
    let how = format!(
        "{} on {}, drives {} at the start, {}: each must pass; the worst is shown, and in brackets the range of all. \
         `drivelab check {} --print` has the load.",
        check.name,
        conditions.host.id,
        conditions.state.name(),
        seeds(conditions.seed, conditions.seeds),
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
pub fn json(check: &Check, conditions: &Conditions, answers: &[Answer], command: &str) -> Value {
    let asked = json!({
        "check": check,
        "host": conditions.host.id,
        "state": conditions.state.name(),
        "seed": conditions.seed,
        "seeds": conditions.seeds,
    });
    document("drivelab check", command, &asked, &answers)
}
