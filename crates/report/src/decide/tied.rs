//! Parts of the verdict of `drivelab choose` on one drive or on drives that the runs cannot distinguish: the tied drives,
//! which of them last, and the rate at which they ran.
//!
//! Where a criterion cannot distinguish drives, the one that lasts longest comes first.

use study::decide::choose::{
    BestCandidate, Candidate, ChooseAnswer, ChooseRequest, Measure, NAMED,
};
use study::decide::slo::LimitMetric;
use study::decide::work::OwnPace;
use text::digits::{count, digits};

use super::ends::{
    WORN_OUT, candidate_cycles, ends_first, subject, wears_out, with_member, years_of,
};
use super::headline::{first_that_fits, short, some_of, untested};
use super::phrases::{
    ChosenRate, dated, figure, made_until, none_lasts, selection_text, unranked, words,
};

/// Rate of jobs that have one of their own, in a verdict.
pub(super) const AT_THEIR_RATE: &str = " at the rate of the jobs";

/// Returns which models no measurement tests, by name and by number; empty if all are tested.
fn untested_models(all: &[&Candidate]) -> [String; 2] {
    let guessed = all.iter().filter(|one| !untested(one.model).is_empty());
    let guessed: Vec<String> = guessed.map(|one| short(&one.drive)).collect();
    let each = match guessed.is_empty() {
        true => String::new(),
        false => format!(" No measurement tests the model of {}.", guessed.join(", ")),
    };
    let number = match (guessed.len(), all.len()) {
        (0, _) => String::new(),
        (some, all) if some == all => String::from(" No measurement tests their models."),
        (some, all) => format!(" No measurement tests {some} of the {all} models."),
    };
    [each, number]
}

/// Returns the verdict on candidates that the runs cannot distinguish: all of them, or their number and the first.
/// `chosen` is their common rate in IOPS, if the program selected it.
pub(super) fn tied(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    best: &BestCandidate,
    chosen: Option<&ChosenRate>,
) -> String {
    let all = all_tied(request, answer, best);
    let names: Vec<String> = all.iter().map(|one| short(&one.drive)).collect();
    let by = words(request, best.by);
    let at = match chosen {
        Some(ChosenRate { iops, share }) => {
            format!(" at {iops} IOPS ({share} the fastest's maximum)")
        }
        None => at_own_maximum(request, &all, best.by),
    };
    // A log is for the latency of syncs, so a tie by IOPS says nothing on it; nor does one by years or power.
    let decides = match best.by {
        Measure::P99 => true,
        Measure::Iops => answer.syncs.is_none(),
        _ => false,
    };
    if decides && all.iter().any(|one| one.drive == NONE) {
        return tied_with_none(&all, by, &at);
    }
    let short_lived = match best.by {
        Measure::Years => best.value < request.years,
        _ => false,
    };
    let brief = briefly_worn(request, &all, best.by);
    let mut dated = names.clone();
    if let (Brief::None(_), Some(ends)) =
        (&brief, all[0].ends_after_years.filter(|ends| *ends > 0.0))
    {
        dated[0] = format!("{} ({})", dated[0], years_of(ends));
    }
    let brief = format!("{}{}", brief.text(), briefly_used_up(request, &all));
    let head = |names: &[String]| match short_lived {
        true => none_lasts(request, &names.join(" or "), best.value),
        false => format!(
            "Take {} by {by}{at}, too close to distinguish",
            names.join(" or ")
        ),
    };
    let [each, number] = untested_models(&all);
    let old = old_names(&all);
    let worn = format!("{}{old}", worn(request, answer, best));
    let counted_old = match old.is_empty() {
        true => String::new(),
        false => some_old(&all),
    };
    let brief = format!("{brief}{counted_old}");
    let missing = unranked(answer, best.by);
    let count = all.len();
    let counted = (1..=count).rev().flat_map(|shown| {
        let some = some_of(&dated, shown);
        [
            format!("{count} drives tie by {by}{at}: {some}.{brief}{each}"),
            format!("{count} drives tie by {by}{at}: {some}.{brief}{number}"),
        ]
    });
    let plain = head(&names);
    let whole = [
        format!(
            "{plain}: {}{missing}.{worn}{each}",
            selection_text(request, answer)
        ),
        format!("{plain}: {}.{worn}{each}", selection_text(request, answer)),
        format!("{plain}.{worn}{each}"),
        format!("{plain}.{worn}{number}"),
        format!("{}.{brief}{number}", head(&dated)),
    ];
    let whole = whole.into_iter().filter(|_| count <= 1 + NAMED);
    first_that_fits(whole.chain(counted))
}

/// Name of the candidate that leaves a place of a pool empty.
const NONE: &str = "none";

/// Returns the verdict if a pool without a drive in that place is as good as with one.
fn tied_with_none(all: &[&Candidate], by: &str, at: &str) -> String {
    let others = all.iter().filter(|one| one.drive != NONE);
    let names: Vec<String> = others.map(|one| short(&one.drive)).collect();
    let is_cold = all.iter().any(|one| one.starts_cold);
    let texts = (1..=names.len()).rev().map(|shown| {
        let some = some_of(&names, shown);
        match is_cold {
            true => format!(
                "No cache gains anything in these runs, which begin with an empty one: by {by}{at}, none ties with {some}."
            ),
            false => format!("You need none: by {by}{at}, none ties with {some}."),
        }
    });
    first_that_fits(texts)
}

/// Returns the best and its ties: first those that last the requested years, then the others by their end. Drives that
/// last equally long are in the order of their names, those that are still made first: with other seeds, another of them
/// may be the best.
fn all_tied<'a>(
    request: &ChooseRequest,
    answer: &'a ChooseAnswer,
    best: &BestCandidate,
) -> Vec<&'a Candidate> {
    let ties = best.ties.iter().map(|tie| tie.drive.as_str());
    let names = std::iter::once(best.drive.as_str()).chain(ties);
    let mut all: Vec<&Candidate> = names.filter_map(|name| answer.candidate(name)).collect();
    let ends = |one: &Candidate| one.ends_within(request.years).unwrap_or(f64::INFINITY);
    let is_old = |one: &Candidate| one.no_longer_made.is_some();
    all.sort_by(|a, b| {
        let order = ends(b).total_cmp(&ends(a));
        order
            .then(is_old(a).cmp(&is_old(b)))
            .then(a.drive.cmp(&b.drive))
    });
    all
}

/// Which of the tied candidates do not last.
enum Brief {
    /// The verdict states it, or all last.
    Nothing,
    /// None lasts.
    None(String),
    /// Some do not last.
    Some(String),
}

impl Brief {
    fn text(self) -> String {
        match self {
            Brief::Nothing => String::new(),
            Brief::None(text) | Brief::Some(text) => text,
        }
    }
}

/// Returns whether tied candidates last as long as requested, with the range of their ends if none does.
fn briefly_worn(request: &ChooseRequest, all: &[&Candidate], by: Measure) -> Brief {
    let ending: Vec<&&Candidate> = all
        .iter()
        .filter(|one| one.ends_within(request.years).is_some())
        .collect();
    let ends = ending.iter().filter_map(|one| one.ends_after_years);
    let ends: Vec<f64> = ends.collect();
    let members: Vec<Option<&str>> = ending.iter().map(|one| ends_first(one)).collect();
    let term = digits(request.years);
    if let (Some(member), true) = (common(&members), by != Measure::Years) {
        let (longest, shortest) = (ends[0], ends[ends.len() - 1]);
        return Brief::Some(format!(
            " Member {member} of {} does not last {term} years ({}).",
            of_them(ends.len(), all.len()),
            from_to(shortest, longest)
        ));
    }
    match (by, &ends[..]) {
        // That verdict states it.
        (Measure::Years, _) | (_, []) => Brief::Nothing,
        (_, [longest, .., shortest]) if ends.len() == all.len() => Brief::None(format!(
            " None lasts {term} years ({}).",
            from_to(*shortest, *longest)
        )),
        (_, [_]) => Brief::Some(format!(" One of them does not last {term} years.")),
        (_, some) => Brief::Some(format!(" {} of them do not last {term} years.", some.len())),
    }
}

/// Returns the pool member whose wear ends every candidate; `None` if they differ, or a candidate is a single drive.
fn common<'a>(members: &[Option<&'a str>]) -> Option<&'a str> {
    let first = members.first().copied().flatten()?;
    members.iter().all(|it| *it == Some(first)).then_some(first)
}

/// Returns a number of tied candidates.
fn of_them(some: usize, all: usize) -> String {
    match some {
        some if some == all => String::from("all"),
        1 => String::from("one of them"),
        some => format!("{some} of them"),
    }
}

/// Returns how many tied candidates use up their cycles within the requested years and much before their rating.
fn briefly_used_up(request: &ChooseRequest, all: &[&Candidate]) -> String {
    let used = all
        .iter()
        .filter_map(|one| candidate_cycles(one, request.years));
    let members: Vec<Option<&str>> = used.map(|(member, _)| member).collect();
    let term = digits(request.years);
    if let Some(member) = common(&members) {
        return format!(
            " Member {member} of {} uses up its cycles within {term} years.",
            of_them(members.len(), all.len())
        );
    }
    match members.len() {
        0 => String::new(),
        1 => format!(" One of them uses up its cycles within {term} years."),
        some => format!(" {some} of them use up their cycles within {term} years."),
    }
}

/// Returns which tied candidates are no longer made.
fn old_names(all: &[&Candidate]) -> String {
    let old: Vec<(&Candidate, String)> = all
        .iter()
        .filter_map(|one| Some((*one, made_until(one)?)))
        .collect();
    match &old[..] {
        [] => String::new(),
        [(one, until)] => format!(" {}: {until}.", short(&one.drive)),
        [(_, until), ..] if old.len() == all.len() && old.iter().all(|it| it.1 == *until) => {
            format!(" All are {until}.")
        }
        several => {
            let each = several
                .iter()
                .filter_map(|(one, _)| dated(&short(&one.drive), one));
            let each: Vec<String> = each.collect();
            format!(" No longer made: {}.", each.join(", "))
        }
    }
}

/// Returns how many tied candidates are no longer made.
fn some_old(all: &[&Candidate]) -> String {
    match all
        .iter()
        .filter(|one| one.no_longer_made.is_some())
        .count()
    {
        count if count == all.len() => String::from(" None is still made."),
        1 => String::from(" One is no longer made."),
        count => format!(" {count} are no longer made."),
    }
}

/// Returns a range of years as text; a common unit is printed once.
fn from_to(shortest: f64, longest: f64) -> String {
    let (least, most) = (years_of(shortest), years_of(longest));
    if least == most {
        return most;
    }
    let unit = most.rfind(' ').map_or("", |at| &most[at..]);
    format!("{} to {most}", least.strip_suffix(unit).unwrap_or(&least))
}

/// Returns the rate at which drives ran, if no option sets it: " at its own maximum, 460 k IOPS".
pub(super) fn at_own_maximum(
    request: &ChooseRequest,
    drives: &[&Candidate],
    by: Measure,
) -> String {
    let rates = || drives.iter().map(|one| one.iops);
    let ends = rates()
        .min_by(f64::total_cmp)
        .zip(rates().max_by(f64::total_cmp));
    let Some((least, most)) = ends else {
        return String::new();
    };
    if request.load.offered_iops().is_some() || request.load.is_trace() {
        return String::new();
    }
    match request.load.own_pace() {
        OwnPace::AllJobs => return String::from(AT_THEIR_RATE),
        // The drive sets the rate of the other jobs only.
        OwnPace::SomeJobs => return String::new(),
        OwnPace::NoJob => {}
    }
    let (least, most) = (count(least), count(most));
    match (drives.len(), by) {
        (1, Measure::Iops) => String::from(" at its own maximum"),
        (1, _) => format!(" at its own maximum, {most} IOPS"),
        _ if least == most => format!(" at their maximum of {most} IOPS"),
        _ => format!(" at their maximum of {least} to {most} IOPS"),
    }
}

/// Returns which of the drives in the verdict do not last the requested years.
pub(super) fn worn(request: &ChooseRequest, answer: &ChooseAnswer, best: &BestCandidate) -> String {
    // That verdict already states the end by the rating.
    if best.by == Measure::Years {
        return cycles(request, answer, best);
    }
    let term = digits(request.years);
    // Checkpoints and backups are bursts: nobody writes sequentially for years.
    let pause = match request.load.sequential_writes() {
        Some(_) => " if it never pauses",
        None => "",
    };
    let ends = |name: &str| {
        let one = answer.candidate(name)?;
        Some((one, one.ends_within(request.years)?))
    };
    let mut ends: Vec<(&Candidate, f64)> = best.names().filter_map(ends).collect();
    ends.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.drive.cmp(&b.0.drive)));
    match (&ends[..], best.by) {
        ([], Measure::Usd) => lasts(request, answer, best),
        ([], _) => cycles(request, answer, best),
        ([(one, years)], Measure::Usd) if best.ties.is_empty() => {
            drives_bought(request, one, *years)
        }
        ([(one, 0.0)], _) if best.ties.is_empty() => {
            format!(" {} {WORN_OUT}.", subject(ends_first(one)))
        }
        ([(one, 0.0)], _) => format!(" {} {WORN_OUT}.", with_member(one)),
        ([(one, years)], _) if best.ties.is_empty() => {
            match candidate_cycles(one, *years) {
                // Much earlier than the rating, which also ends within the term.
                Some((member, used)) => format!(
                    " {} {used}{pause}, its rating after {}.",
                    subject(member),
                    years_of(*years)
                ),
                None => {
                    let who = subject(ends_first(one));
                    format!(" {who} {} of the {term} years{pause}.", wears_out(*years))
                }
            }
        }
        ([(one, years)], _) => match by_cycles(one, *years) {
            Some(used) => format!(" {used}{pause}, its rating after {}.", years_of(*years)),
            None => format!(
                " {} {} of the {term} years{pause}.",
                with_member(one),
                wears_out(*years)
            ),
        },
        (several, _) => {
            let each = several.iter().map(|(one, years)| match *years > 0.0 {
                true => by_cycles(one, *years)
                    .unwrap_or_else(|| format!("{} after {}", with_member(one), years_of(*years))),
                false => format!("{} {WORN_OUT}", with_member(one)),
            });
            let each: Vec<String> = each.collect();
            format!(" None of these lasts {term} years: {}.", each.join(", ")).replacen(
                "None of these lasts",
                match ends.len() > best.ties.len() {
                    true => "None of these lasts",
                    false => "Not all of these last",
                },
                1,
            )
        }
    }
}

/// Returns the end of a candidate by its cycles, after its name, if that is much earlier than its rating, which ends after
/// these years.
fn by_cycles(one: &Candidate, years: f64) -> Option<String> {
    let (member, used) = candidate_cycles(one, years)?;
    let name = short(&one.drive);
    Some(match member {
        None => format!("{name} {used}"),
        Some(member) => format!("{name} (its {}) {used}", short(member)),
    })
}

/// Returns how many drives the cost contains, with the first end. If cycles decide that end much earlier than the rating,
/// the verdict has both costs, so it has both numbers.
fn drives_bought(request: &ChooseRequest, one: &Candidate, years: f64) -> String {
    let term = digits(request.years);
    let first = match ends_first(one) {
        Some(member) => format!("the first, member {},", short(member)),
        None => String::from("the first"),
    };
    match one.drives_bought_by_cycles {
        Some(by_cycles) => format!(
            " That buys {} or {by_cycles} drives in {term} years.",
            one.drives_bought
        ),
        None => format!(
            " That buys {} drives in {term} years: {first} {}.",
            one.drives_bought,
            wears_out(years)
        ),
    }
}

/// Returns whether the cheapest drive lasts, as one purchase is then the whole cost. A limit on the years states it.
fn lasts(request: &ChooseRequest, answer: &ChooseAnswer, best: &BestCandidate) -> String {
    let one = answer.candidate(&best.drive);
    if let Some((one, by_cycles)) = one.and_then(|it| Some((it, it.drives_bought_by_cycles?)))
        && best.ties.is_empty()
    {
        return format!(
            " That buys {} or {by_cycles} drives in {} years.",
            one.drives_bought,
            digits(request.years)
        );
    }
    let early = cycles(request, answer, best);
    let mut limits = request.slo.limits.iter();
    let is_stated = limits.any(|limit| limit.figure == LimitMetric::Years);
    let ends = answer
        .candidate(&best.drive)
        .and_then(|one| one.ends_after_years);
    match early.is_empty() && best.ties.is_empty() && !is_stated && ends.is_some() {
        true => format!(" It lasts the {} years.", digits(request.years)),
        false => early,
    }
}

/// Returns which drives of the verdict use up their cycles within the requested years and much before their rating.
fn cycles(request: &ChooseRequest, answer: &ChooseAnswer, best: &BestCandidate) -> String {
    let early = best.names().filter_map(|name| {
        let (member, used) = candidate_cycles(answer.candidate(name)?, request.years)?;
        Some(match (best.ties.is_empty(), member) {
            (true, member) => format!(" {} {used}.", subject(member)),
            (false, None) => format!(" {} {used}.", short(name)),
            (false, Some(member)) => {
                format!(" {} (its {}) {used}.", short(name), short(member))
            }
        })
    });
    early.collect()
}

/// Returns the figures by seed of the tied candidates.
pub(super) fn ties(request: &ChooseRequest, best: &BestCandidate) -> Option<String> {
    if best.ties.is_empty() {
        return None;
    }
    let by = best.by;
    let mut shown = vec![spread(request, &best.drive, by, best.value, best.by_seed)];
    let ties = best.ties.iter().filter(|_| best.ties.len() <= NAMED);
    shown.extend(ties.map(|tie| spread(request, &tie.drive, by, tie.value, tie.by_seed)));
    Some(format!("By seed: {}.", shown.join(", ")))
}

/// Returns the candidates that are tied with the best.
pub(super) fn or_ties(best: &BestCandidate) -> String {
    let ties = best.ties.iter().map(|tie| format!(" or {}", tie.drive));
    match best.ties.len() <= NAMED {
        true => ties.collect(),
        false => format!(" or any of {} others", best.ties.len()),
    }
}

/// Returns the range of a candidate that is tied with another.
fn spread(
    request: &ChooseRequest,
    drive: &str,
    by: Measure,
    value: f64,
    by_seed: [f64; 2],
) -> String {
    let [least, most] = by_seed.map(|value| figure(request, by, value));
    let unit = most.rfind(' ').map_or("", |at| &most[at..]);
    let least_alone = least.strip_suffix(unit).unwrap_or(&least);
    match least == most {
        true => format!("{drive} {}", figure(request, by, value)),
        false => format!("{drive} {least_alone} to {most}"),
    }
}
