//! The answer of `drivelab choose --like`: what replaces a drive, and what each replacement lacks.
//!
//! The sentences are on the replacement alone. A drive that is best by a criterion is not named: it may be the one that
//! is replaced.

use study::decide::choose::{Candidate, ChooseAnswer, ChooseRequest};
use study::decide::likeness::{Likeness, Replacements};
use study::decide::work::OwnPace;
use text::digits::{count, digits, microseconds};

use super::ends::{uses_up, wears_out, years_of};
use super::headline::{first_that_fits, short, some_of, untested};
use super::or_none;
use super::sentences::remarks;
use super::table::{AnswerColumn, AnswerTable};
use super::tied::AT_THEIR_RATE;

/// Maximum number of replacements in the table.
const MOST: usize = 8;

/// Returns the replacements with what each lacks, the figures of the drive itself, and what the runs do not show.
pub fn replacement(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    like: &Replacements,
) -> Vec<String> {
    let mut lines = vec![headline(request, like)];
    if let Some(wanted) = answer.candidate(&like.drive)
        && !like.others.is_empty()
    {
        lines.push(itself(wanted));
    }
    lines.extend(other_slots(like));
    lines.extend(remarks(answer));
    lines
}

/// Returns the rate at which all ran, after "replace X".
fn at_rate(request: &ChooseRequest, like: &Replacements) -> String {
    match (request.load.offered_iops(), like.at_half_of_its_maximum) {
        (Some(rate), true) => format!(" at {} IOPS, half of its maximum", count(rate)),
        (Some(rate), false) => format!(" at {} IOPS", count(rate)),
        (None, _) if request.load.is_trace() => String::from(" for this trace"),
        (None, _) => match request.load.own_pace() {
            OwnPace::AllJobs => String::from(AT_THEIR_RATE),
            OwnPace::SomeJobs => String::new(),
            OwnPace::NoJob => String::from(" at each drive's own maximum"),
        },
    }
}

/// Returns the verdict. Replacements that lack as little as the best, within the margin of ties, are named together.
fn headline(request: &ChooseRequest, like: &Replacements) -> String {
    let wanted = short(&like.drive);
    let Some(nearest) = like.others.first() else {
        return format!("No other drive ran that could replace {wanted}.");
    };
    let at = at_rate(request, like);
    let head = match (nearest.meets, &nearest.does_not_fit) {
        (true, None) => format!("To replace {wanted}{at}: "),
        (true, Some(_)) => format!("No drive that ran fits the slot of {wanted}; nearest{at}: "),
        (false, _) => format!("No drive that ran replaces {wanted}{at}; nearest: "),
    };
    let close = like.others.iter().filter(|one| one.is_close_to(nearest));
    let close: Vec<&Likeness> = close.collect();
    let some = |shown: usize, name: fn(&Likeness) -> String| {
        let each: Vec<String> = close.iter().take(shown).map(|one| name(one)).collect();
        let more = match close.len() - shown {
            0 => String::new(),
            1 => String::from("; 1 more is within 5 % of it"),
            more => format!("; {more} more are within 5 % of it"),
        };
        format!("{head}{}{more}.", each.join("; or "))
    };
    let texts = (1..=close.len()).rev().flat_map(|shown| {
        let forms: [fn(&Likeness) -> String; 3] = [
            |one| format!("{} ({}{})", short(&one.drive), lost(one), model(one)),
            |one| format!("{} ({})", short(&one.drive), lost(one)),
            |one| format!("{} ({})", short(&one.drive), worst(one)),
        ];
        forms.map(|form| some(shown, form))
    });
    first_that_fits(texts)
}

/// Returns the note on a model that no measurement tests, after other notes: "; model from data sheet".
fn model(one: &Likeness) -> String {
    let note = untested(one.model).trim_matches([' ', '(', ')']);
    match note.is_empty() {
        true => String::new(),
        false => format!("; {note}"),
    }
}

/// Returns that a replacement is no longer made itself.
fn old(one: &Likeness) -> Option<String> {
    let until = one.no_longer_made.as_ref()?;
    Some(format!("no longer made, {until}"))
}

/// Returns when a replacement ends, if it counts as a loss.
fn ending(one: &Likeness) -> Option<String> {
    let cycles = one.cycles.as_ref().map(uses_up);
    cycles.or_else(|| one.ends_after_years.map(wears_out))
}

/// Returns what a replacement lacks.
fn lost(one: &Likeness) -> String {
    let mut lost = one.lost.clone();
    lost.extend(ending(one));
    lost.extend(old(one));
    match lost.is_empty() {
        true => String::from("nothing is a fifth worse"),
        false => lost.join(", "),
    }
}

/// Returns what a replacement lacks, in few words: that it wears out, or its first loss, and the number of others.
fn worst(one: &Likeness) -> String {
    let mut lost = one.lost.clone();
    if let Some(ends) = ending(one) {
        lost.insert(0, ends);
    }
    if let Some(old) = old(one) {
        lost.insert(0, old);
    }
    match &lost[..] {
        [] => String::from("nothing is a fifth worse"),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}, {} more figures worse", rest.len()),
    }
}

/// Returns which candidates do not fit the slot of the drive, if others do.
fn other_slots(like: &Replacements) -> Option<String> {
    let others = like.others.iter();
    let (unfit, fit): (Vec<&Likeness>, Vec<&Likeness>) =
        others.partition(|one| one.does_not_fit.is_some());
    let names: Vec<String> = unfit.iter().map(|one| short(&one.drive)).collect();
    (!unfit.is_empty() && !fit.is_empty()).then(|| {
        format!(
            "Last, as they do not fit the slot of {} without an adapter: {}.",
            short(&like.drive),
            some_of(&names, MOST)
        )
    })
}

/// Returns the figures of the drive that is replaced.
fn itself(wanted: &Candidate) -> String {
    let mut figures = vec![format!("{} IOPS", count(wanted.iops))];
    figures.extend(wanted.p99_us.map(|us| format!("p99 {}", microseconds(us))));
    figures.extend(wanted.watts.map(|watts| format!("{} W", digits(watts))));
    let years = wanted.years.map(years_of);
    figures.extend(years.map(|years| format!("{years} to its rated endurance")));
    format!("{} itself: {}.", short(&wanted.drive), figures.join(", "))
}

/// Returns the closest replacements, with the ratios of their figures to those of the drive.
pub(super) fn ratios(like: &Replacements) -> AnswerTable {
    let figures = AnswerColumn::figures;
    let mut table = AnswerTable::new(
        "Figures of each replacement, as multiples of those of the replaced drive",
        1,
        vec![
            AnswerColumn::words(format!("over {}", like.drive)),
            figures("lacks").headed("worse by, on average"),
            figures("differs").headed("differs by, on average"),
            figures("IOPS"),
            figures("p99"),
            figures("mean"),
            figures("watts"),
            figures("endurance"),
            figures("capacity"),
            AnswerColumn::words("lost"),
        ],
    );
    for one in like.others.iter().take(MOST) {
        table.add([
            one.drive.clone(),
            digits(one.lacks),
            digits(one.factor),
            digits(one.iops),
            or_none(one.p99),
            or_none(one.mean),
            or_none(one.watts),
            or_none(one.endurance),
            or_none(one.capacity),
            lost(one),
        ]);
    }
    table
}
