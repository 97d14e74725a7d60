//! End of life of real drives, from their SMART data: `drivelab life --smart`.

use serde_json::{Value, json};
use study::decide::fleet::{FleetAnswer, FleetDrive, LimitingCounter, Remaining};
use text::digits::{bytes_decimal, digits};
use text::foreign::printable;
use text::terminal::{Width, paragraph};

use super::document;
use super::table::{AnswerColumn, AnswerTable};

/// Maximum characters of the first line.
const LINE: usize = 160;
/// Maximum characters of a drive's name in the tables.
const NAME: usize = 23;
/// Maximum characters of a drive's name in the first line.
const LONG_NAME: usize = 32;
/// Maximum number of drives that a note names.
const NAMED: usize = 4;
/// Maximum characters of a place in the table.
const PLACE: usize = 22;
const NONE: &str = "-";

/// Returns a name of at most `most` characters, truncated at the front, because capacities are at the end.
fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        true => {
            let end = text.chars().skip(count - most + 1);
            format!("…{}", end.collect::<String>())
        }
        false => text.to_owned(),
    }
}

/// Returns the drive's name in a table: its model, truncated at the front, and the end of its serial number.
fn name(one: &FleetDrive, most: usize) -> String {
    let health = &one.health;
    let Some(model) = &health.model else {
        return short(&printable(&health.label()), most);
    };
    let end = health.serial_end.as_ref();
    let end = end.map_or_else(String::new, |end| format!(" …{end}"));
    format!("{}{end}", short_model(model, most - end.chars().count()))
}

/// Returns the drive's name on a page.
pub(super) fn full_name(one: &FleetDrive) -> String {
    name(one, LONG_NAME)
}

/// Returns a model of at most `most` characters: without the words that most models have, then without the maker, then
/// truncated.
fn short_model(model: &str, most: usize) -> String {
    let fits = |text: &str| text.chars().count() <= most;
    if fits(model) {
        return model.to_owned();
    }
    let words: Vec<&str> = model
        .split(' ')
        .filter(|word| !["SSD", "NVME"].contains(&&*word.to_uppercase()))
        .collect();
    let all = words.join(" ");
    match (fits(&all), words.split_first()) {
        (false, Some((_, rest))) if !rest.is_empty() => short(&rest.join(" "), most),
        _ => short(&all, most),
    }
}

fn years_of(years: f64) -> String {
    match years {
        many if many > 999.0 => String::from(">999 y"),
        few if few < 0.01 => String::from("<0.01 y"),
        months if months < 1.0 => format!("{months:.2} y"),
        years => format!("{} y", digits(years)),
    }
}

fn remaining(one: Option<Remaining>) -> String {
    match one {
        None => String::from(NONE),
        Some(Remaining {
            years: Some(0.0), ..
        }) => String::from("passed"),
        Some(Remaining {
            years: Some(years), ..
        }) => years_of(years),
        Some(one) if one.least > 999.0 => String::from(">999 y"),
        Some(one) if one.least < 0.01 => String::from("> 0 y"),
        Some(one) => format!("> {}", years_of(one.least)),
    }
}

fn remaining_unless_failed(one: &FleetDrive, end: Option<Remaining>) -> String {
    match one.failed {
        Some(_) => String::from("failed"),
        None => remaining(end),
    }
}

/// Returns Percentage Used as text; 255 represents all values above it.
fn used(percent: f64) -> String {
    match percent >= 255.0 {
        true => String::from(">254 %"),
        false => format!("{percent:.0} %"),
    }
}

fn bytes(value: Option<f64>) -> String {
    match value {
        None => String::from(NONE),
        Some(value) if value >= 0.9995e18 => format!("{} EB", digits(value * 1e-18)),
        Some(value) => bytes_decimal(value),
    }
}

/// Returns the number of errors; a broken counter has more digits than fit into a column.
fn errors(value: Option<f64>) -> String {
    match value {
        None => String::from(NONE),
        Some(value) if value > 99_999.0 => String::from(">99,999"),
        Some(value) => digits(value),
    }
}

/// Returns which drive ends first, when, and from which figures: at most 160 characters.
pub fn answer(answer: &FleetAnswer) -> String {
    let count = answer.drives.len();
    let Some(first) = answer.drives.first() else {
        return String::from("There are no drives.");
    };
    let of = match count {
        1 => String::new(),
        count => format!(" first of {count},"),
    };
    let name = name(first, LONG_NAME);
    let past = match count {
        1 => String::new(),
        count => format!(", the most worn of {count} drives"),
    };
    let sentence = match first.end() {
        None => unknown(answer),
        Some((LimitingCounter::Failed, _)) => failure(&name, answer, first),
        Some((LimitingCounter::Rating, end)) => {
            let rating = first.rating.as_ref();
            let source = rating.map_or("", |rating| &*rating.of);
            let written = bytes(first.health.written.as_ref().map(|it| it.value));
            let rated = bytes(rating.map(|rating| rating.tb * 1e12));
            match end.years.unwrap_or(0.0) > 0.0 {
                true => format!(
                    "{name} ends{of} in {} powered on at its mean rate: {written} of {rated} ({source}) written, {} a day.",
                    years_in_words(end),
                    bytes(first.written_gb_a_day.map(|rate| rate * 1e9)),
                ),
                false => format!(
                    "{name} is past its rating{past}: {written} of {rated} ({source}) written."
                ),
            }
        }
        Some((LimitingCounter::PercentageUsed, end)) => {
            let percent = first.health.used_percent.as_ref();
            let percent = used(percent.map_or(0.0, |it| it.value));
            match end.years.unwrap_or(0.0) > 0.0 {
                true => format!(
                    "{name} ends{of} in {} powered on at its mean rate: Percentage Used is {percent} after {} hours.",
                    years_in_words(end),
                    hours(first),
                ),
                false => format!("{name} is past its end{past}: Percentage Used is {percent}."),
            }
        }
    };
    let sentence = after_warnings(answer, first, &name, sentence);
    let sentence = match answer.unreadable.len() {
        0 => sentence,
        count => {
            let more = format!("{sentence} {count} could not be read.");
            match more.chars().count() > LINE {
                true => sentence,
                false => more,
            }
        }
    };
    // Names from outside are already truncated; this holds for any figures.
    match sentence.chars().count() > LINE {
        true => sentence.chars().take(LINE - 1).chain(['…']).collect(),
        false => sentence,
    }
}

/// Returns the sentence on the first drive after its warnings (media errors, heat, spare blocks): they matter more than
/// wear. Warnings of other drives are counted after the sentence.
fn after_warnings(
    answer: &FleetAnswer,
    first: &FleetDrive,
    name: &str,
    sentence: String,
) -> String {
    if first.failed.is_some() {
        return sentence;
    }
    let fits = |text: &String| text.chars().count() <= LINE;
    let Some(main) = first.warnings.first() else {
        let warned = answer.drives.iter();
        let warned = warned.filter(|one| !one.warnings.is_empty() && one.failed.is_none());
        let warned: Vec<&FleetDrive> = warned.collect();
        let Some(one) = warned.first() else {
            return sentence;
        };
        let notes = match warned.len() {
            1 => vec![
                format!("{} {}.", full_name(one), one.warnings.join("; ")),
                format!("1 other drive {}.", one.warnings[0]),
                String::from("1 other drive has warnings."),
            ],
            many => vec![format!(
                "{many} others have media errors, heat or few spares."
            )],
        };
        let both = notes.iter().map(|note| format!("{sentence} {note}"));
        return both.into_iter().find(fits).unwrap_or(sentence);
    };
    let all = format!("{name} {}.", first.warnings.join("; "));
    let lead = format!("{name} {main}.");
    let end = first.end();
    let end = end.and_then(|(_, end)| match end.years? > 0.0 {
        true => Some(format!(
            "It ends in {} at its mean rate.",
            years_in_words(end)
        )),
        false => Some(String::from("It is past its end.")),
    });
    let brief = |lead: &str| end.as_ref().map(|end| format!("{lead} {end}"));
    let whole = [format!("{all} {sentence}")].into_iter();
    whole
        .chain(brief(&all))
        .chain([all.clone()])
        .chain(brief(&lead))
        .find(fits)
        .unwrap_or(lead)
}

/// Returns the sentence on a drive that has failed, and the number of others that have.
fn failure(name: &str, answer: &FleetAnswer, first: &FleetDrive) -> String {
    let failed = answer.drives.iter().filter(|one| one.failed.is_some());
    let others = match failed.count() {
        0 | 1 => String::new(),
        2 => String::from(" So has 1 more drive."),
        many => format!(" So have {} more drives.", many - 1),
    };
    let failed = first.failed.as_deref().unwrap_or_default();
    format!("{name} {failed}.{others}")
}

fn years_in_words(end: Remaining) -> String {
    let years = end.years.unwrap_or(0.0);
    let range = end
        .most
        .filter(|&most| most != end.least)
        .map(|most| format!(" ({} to {})", digits(end.least), digits(most)));
    let range = range.unwrap_or_default();
    match years {
        many if many > 999.0 => String::from("over 999 years"),
        few if few < 0.01 => String::from("under 4 days"),
        years if digits(years) == "1" => format!("1 year{range}"),
        years => format!("{} years{range}", digits(years)),
    }
}

fn hours(one: &FleetDrive) -> String {
    let hours = one.health.power_on_hours;
    hours.map_or_else(|| String::from(NONE), digits)
}

fn unknown(answer: &FleetAnswer) -> String {
    let unrated = answer.drives.iter().any(|one| one.rating.is_none());
    let still = answer
        .drives
        .iter()
        .any(|one| one.health.power_on_hours.unwrap_or(0.0) <= 0.0);
    let has_used = answer
        .drives
        .iter()
        .any(|one| one.health.used_percent.is_some());
    let who = match answer.drives.len() {
        1 => String::from("No end is known of this drive"),
        count => format!("No end is known of any of the {count} drives"),
    };
    let why = match (still, unrated) {
        (true, _) => "power-on hours are missing or 0, so there is no rate.",
        (false, true) if !has_used => {
            "its wear is not known, and there is no rating: give --tbw, such as --tbw 600TB."
        }
        (false, true) => {
            "Percentage Used gives none, and there is no rating: give --tbw, such as --tbw 600TB."
        }
        (false, false) => "nothing is written, or the counters are invalid.",
    };
    format!("{who}: {why}")
}

/// Returns a line for each drive with its written bytes, its wear and its two ends, then a line for each with its
/// state.
pub fn tables(answer: &FleetAnswer) -> Vec<AnswerTable> {
    let figures = |name: &str| AnswerColumn::figures(name);
    let columns = vec![
        AnswerColumn::words("drive"),
        figures("written"),
        figures("a day").headed("written per day"),
        figures("rated").headed("rated bytes"),
        figures("used").headed("Percentage Used"),
        figures("by rating").headed("ends by rating in"),
        figures("by used").headed("ends by Percentage Used in"),
    ];
    let mut ends = AnswerTable::new("Wear and end of each drive", 1, columns);
    for one in &answer.drives {
        ends.add([
            name(one, NAME),
            bytes(one.health.written.as_ref().map(|it| it.value)),
            bytes(one.written_gb_a_day.map(|rate| rate * 1e9)),
            bytes(one.rating.as_ref().map(|rating| rating.tb * 1e12)),
            one.health
                .used_percent
                .as_ref()
                .map_or_else(|| String::from(NONE), |it| used(it.value)),
            remaining_unless_failed(one, one.to_rating),
            remaining_unless_failed(one, one.to_used),
        ]);
    }
    let columns = vec![
        AnswerColumn::words("drive"),
        figures("hours on").headed("power-on hours"),
        figures("spare").headed("available spare"),
        figures("errors").headed("media errors"),
        figures("C").headed("temperature, °C"),
        AnswerColumn::words("in").headed("read from"),
    ];
    let mut state = AnswerTable::new("State of each drive", 1, columns);
    for one in &answer.drives {
        let health = &one.health;
        let spare = health.spare_percent.map(|it| format!("{it:.0} %"));
        state.add([
            name(one, NAME),
            hours(one),
            spare.unwrap_or_else(|| String::from(NONE)),
            errors(health.media_errors),
            health
                .temperature_celsius
                .map_or_else(|| String::from(NONE), |it| format!("{it:.0}")),
            short(&printable(&health.place), PLACE),
        ]);
    }
    vec![ends, state]
}

/// Returns ratings, rules and remarks of each drive, and how the ends were computed.
pub fn method(answer: &FleetAnswer, command: &str, width: Width) -> String {
    let mut lines = Vec::new();
    // Drives with the same notes share a line.
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for one in &answer.drives {
        let (label, notes) = (one.health.label(), notes(one));
        match all.iter_mut().find(|(same, _)| *same == notes) {
            Some((_, labels)) => labels.push(label),
            None => all.push((notes, vec![label])),
        }
    }
    for (notes, mut labels) in all {
        let more = labels.len().saturating_sub(NAMED);
        labels.truncate(NAMED);
        if more > 0 {
            labels.push(format!("{more} more"));
        }
        let line = format!("{}: {notes}.", labels.join(", "));
        lines.push(paragraph("", &printable(&line), width));
    }
    for why in &answer.left_out {
        let line = format!("Left out: {why}.");
        lines.push(paragraph("", &printable(&line), width));
    }
    for one in &answer.unreadable {
        let line = format!("Could not be read: {}: {}.", one.place, one.reason);
        lines.push(paragraph("", &printable(&line), width));
    }
    let how = "\"By rating\" is the time until the rated bytes are written, \"by used\" until Percentage Used is 100, both at the \
               mean rate since the drive was new. Years are of power-on time (8,760 hours): a drive that is off part of the time \
               lasts longer. NVMe drives may not count hours in low-power states. Percentage Used is a whole number \
               with an uncertainty of one percent; at 0 and 1 % it gives only a lower bound. At 100 %, the maker's estimate \
               of the endurance is used up; the drive need not fail. No model is run.";
    lines.push(paragraph("", how, width));
    lines.push(format!("Repeat: {command}"));
    lines.join("\n")
}

fn notes(one: &FleetDrive) -> String {
    let health = &one.health;
    let rating = match (&one.rating, &one.no_rating) {
        (Some(rating), _) => {
            let tb = bytes(Some(rating.tb * 1e12));
            format!("rated {tb} by {}", rating.how)
        }
        (None, Some(why)) => why.clone(),
        (None, None) => String::from("no rating"),
    };
    let figures = [&health.written, &health.used_percent];
    let rules = figures.into_iter().flatten().map(|it| it.rule.clone());
    let all = std::iter::once(rating)
        .chain(rules)
        .chain(health.remarks.iter().cloned());
    let all: Vec<String> = all.collect();
    all.join("; ")
}

/// Returns everything as JSON.
pub fn json(answer: &FleetAnswer, command: &str) -> Value {
    let asked = json!({ "left_out": answer.left_out, "unreadable": answer.unreadable });
    document("drivelab life smart", command, &asked, &answer.drives)
}

#[cfg(test)]
mod tests;
