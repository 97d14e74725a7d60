//! Ends of drives in sentences: by the rated endurance, and by the cycles of the medium if these end much earlier.

use study::decide::choose::Candidate;
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
    // In a pool, one member may end by its rating before another one by its cycles.
    let cycles = end.and_then(|end| end.cycles.as_ref().filter(|it| it.years < end.years));
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

/// Returns the member of a pool that a sentence on its end names: not the candidate itself, and not if all members are of
/// one drive.
fn other_member<'a>(one: &'a Candidate, drive: &'a str) -> Option<&'a str> {
    let differs = one.parts.iter().any(|part| part.drive != drive);
    (drive != one.drive && differs).then_some(drive)
}

/// Returns the member of a pool that reaches its rated endurance first, if it is not the candidate itself.
pub(super) fn ends_first(one: &Candidate) -> Option<&str> {
    one.ends_first
        .as_deref()
        .and_then(|drive| other_member(one, drive))
}

/// Returns the member of a pool that uses up its cycles first, if it is not the candidate itself.
fn cycles_first<'a>(one: &'a Candidate, end: &CyclesEnd) -> Option<&'a str> {
    let mut parts = one.parts.iter();
    let part = parts.find(|part| Some(&part.name) == end.member.as_ref())?;
    other_member(one, &part.drive)
}

/// Returns the subject of a sentence on the end of a candidate, after its name: itself, or a member.
pub(super) fn subject(member: Option<&str>) -> String {
    member.map_or_else(
        || String::from("It"),
        |member| format!("Its member {}", short(member)),
    )
}

/// Returns the name of a candidate with the member that ends first, if that is not itself.
pub(super) fn with_member(one: &Candidate) -> String {
    match ends_first(one) {
        Some(member) => format!("{} (its {})", short(&one.drive), short(member)),
        None => short(&one.drive),
    }
}

/// Returns when the cycles of a candidate or of one of its members are used up, as a subject and a predicate, if that is
/// within these years and much earlier than the rating.
pub(super) fn candidate_cycles(one: &Candidate, years: f64) -> Option<(Option<&str>, String)> {
    let end = CyclesEnd::from_parts(&one.parts, years)?;
    Some((cycles_first(one, &end), uses_up(&end)))
}

/// Returns when the drive in a place of a pool itself reaches its rated endurance, if another member does so first.
pub(super) fn itself(one: &Candidate) -> Option<String> {
    ends_first(one)?;
    let own = one.parts.iter().filter(|part| part.drive == one.drive);
    let years = own.filter_map(LifePart::years_to_rating);
    let years = years.min_by(f64::total_cmp)?;
    Some(format!(
        "{} itself reaches its rated endurance after {}.",
        short(&one.drive),
        years_of(years)
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacity tier is written up after 173 days, the cycles of the cache after 2 years.
    #[test]
    fn the_member_that_ends_first_is_named_whatever_ends_it() {
        let end = |years: f64| FirstEnd {
            member: Some(String::from("capacity")),
            years,
            cycles: Some(CyclesEnd {
                member: Some(String::from("cache")),
                years: 2.0,
                kind: "assumed",
            }),
        };
        assert_eq!(
            early_end(Some(&end(173.0 / 365.0)), "pool").as_deref(),
            Some("capacity reaches its rated endurance after 173 days without pause")
        );
        let later = early_end(Some(&end(4.5)), "pool").expect("an end within the term");
        assert!(
            later.starts_with("cache uses up its assumed cycles after 2 years"),
            "{later}"
        );
    }
}
