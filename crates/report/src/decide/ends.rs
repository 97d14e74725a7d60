//! Ends of drives in sentences: by the rated endurance, and by the cycles of the medium if these end much earlier.

use study::decide::life::{CyclesEnd, FirstEnd, LifePart, is_assumed, lasts};
use text::digits::{digits, duration};

use super::headline::short;

/// Years within which the end of a drive is part of the verdict of other subcommands.
const TERM: f64 = 5.0;

/// Returns which part of this drive or pool uses up its cycles or reaches its rated endurance when, if that is within
/// [`TERM`].
pub(super) fn early_end(end: Option<&FirstEnd>, drive: &str) -> Option<String> {
    let who = |member: &Option<String>| {
        let member = member.as_deref().filter(|member| *member != drive);
        member.map_or_else(|| String::from("it"), short)
    };
    let cycles = end.and_then(|end| end.cycles.as_ref());
    if let Some(cycles) = cycles.filter(|cycles| !lasts(cycles.years, TERM)) {
        return Some(format!(
            "{} {} without pause",
            who(&cycles.member),
            uses_up(cycles)
        ));
    }
    let end = end.filter(|end| !lasts(end.years, TERM))?;
    let who = who(&end.member);
    Some(match end.years > 0.0 {
        true => format!(
            "{who} reaches its rated endurance after {} without pause",
            years_of(end.years)
        ),
        false => format!("{who} is past its rated endurance already"),
    })
}

/// Returns the kind of cycles as text.
pub(super) fn cycles_kind(kind: &str) -> &'static str {
    match is_assumed(kind) {
        true => "assumed",
        false => "rated",
    }
}

/// Returns when cycles are used up, as the predicate of a sentence.
pub(super) fn uses_up(end: &CyclesEnd) -> String {
    format!(
        "uses up its {} cycles after {}",
        cycles_kind(end.kind),
        years_of(end.years)
    )
}

/// Returns when the cycles of these parts are used up, as the predicate of a sentence, if that is within these years and
/// much earlier than the rating.
pub(super) fn cycles_used_up(parts: &[LifePart], years: f64) -> Option<String> {
    CyclesEnd::from_parts(parts, years).map(|end| uses_up(&end))
}

/// Returns the end of a drive after these years, as the predicate of a sentence.
pub(super) fn wears_out(years: f64) -> String {
    match years > 0.0 {
        true => format!("wears out after {}", years_of(years)),
        false => String::from(WORN_OUT),
    }
}

/// Predicate of a drive that has reached the end of its endurance before the load begins.
pub(super) const WORN_OUT: &str = "is worn out already";

/// Returns years as text, in days or years.
pub(super) fn years_of(years: f64) -> String {
    match years {
        many if many >= 1000.0 => String::from("over 1,000 years"),
        years if years < 2.0 => duration_of(years * 365.0),
        years => format!("{} years", digits(years)),
    }
}

/// Returns days as text, in days or years.
pub(super) fn duration_of(days: f64) -> String {
    match days {
        days if days >= 730.0 => years_of(days / 365.0),
        days if days >= 3.0 => format!("{} days", digits(days)),
        days => duration(days * 86_400.0),
    }
}
