//! Parts of sentences of `drivelab choose`: figures with their units, limits, and the drives that meet them.

use study::decide::choose::{
    AmpleRoom, BestCandidate, Candidate, ChooseAnswer, ChooseRequest, Measure,
};
use study::decide::cost;
use text::digits::{count, digits, microseconds};

use super::ends::{cycles_kind, years_of};

/// Returns the verdict by years if no candidate lasts as long as requested.
pub(super) fn none_lasts(request: &ChooseRequest, longest: &str, years: f64) -> String {
    let head = format!("None lasts {} years at this load", digits(request.years));
    match years > 0.0 {
        true => format!("{head}. Longest: {longest}, {}", years_of(years)),
        false => format!("{head}: the rated endurance of all is used up already"),
    }
}

/// Returns the number of candidates that meet the limits, of how many, and the limits.
pub(super) fn selection_text(request: &ChooseRequest, answer: &ChooseAnswer) -> String {
    let meet = answer.candidates.iter().filter(|one| one.is_met()).count();
    let all = answer.candidates.len() + answer.unfit.len();
    if let Some(ample) = &answer.ample_room {
        return with_ample_room(request, answer, ample);
    }
    let Some(what) = conditions(request, meet == 1) else {
        return match answer.candidates.len() {
            1 => String::from("the only one that ran"),
            ran => format!("the best of the {ran} that ran"),
        };
    };
    // Of a drive with a short run only, it is unknown whether it meets the limits.
    let short = answer.candidates.iter().filter(|one| one.screened).count();
    if short > 0 {
        let full = answer.candidates.len() - short;
        return match meet {
            1 => format!("the only one (of {full} run in full) {what}"),
            _ => format!("the best of the {meet} (of {full} run in full) {what}"),
        };
    }
    match meet {
        1 => format!("the only one (of {all}) {what}"),
        _ if meet == all => format!("the best of the {all} {what}"),
        _ => format!("the best of the {meet} (of {all}) {what}"),
    }
}

/// Returns the number of drives with ample room, and what leaves it.
fn with_ample_room(request: &ChooseRequest, answer: &ChooseAnswer, ample: &AmpleRoom) -> String {
    let count = ample.drives.len();
    let short = answer.candidates.iter().filter(|one| one.screened).count();
    let all = answer.candidates.len() + answer.unfit.len();
    let of = match short {
        0 if count == all => String::new(),
        0 => format!(" (of {all})"),
        _ => format!(" (of {} run in full)", answer.candidates.len() - short),
    };
    let what = match (request.slo.limits.is_empty(), request.load.offered_iops()) {
        (true, Some(rate)) => format!(
            "at {} IOPS{}",
            text::digits::count(rate),
            asked_bytes(request)
        ),
        (true, None) => String::new(),
        (false, _) => conditions(request, false).unwrap_or_default(),
    };
    let term = digits(request.years);
    let (head, lasting) = match (count, ample.do_not_last) {
        (1, _) => (
            format!("the only one{of}"),
            format!(" that lasts {term} years"),
        ),
        (_, 0) => (format!("the best of the {count}{of}"), String::new()),
        _ => (
            format!("the best of the {count}{of}"),
            format!(" that last {term} years"),
        ),
    };
    if ample.busy.is_none() && !request.slo.limits.iter().any(|it| it.figure.is_latency()) {
        let what = conditions(request, count == 1).unwrap_or_default();
        let lasting = lasting.replacen(" that", " and", 1);
        return format!("{head} {what}{lasting}");
    }
    format!("{head} with ample room {what}{lasting}")
}

/// Returns a requested rate in bytes in parentheses: " (6.94 MB/s written)"; empty without one.
fn asked_bytes(request: &ChooseRequest) -> String {
    let bytes = request.load.asked_bytes();
    bytes.map_or_else(String::new, |bytes| format!(" ({bytes})"))
}

/// Returns limits and the rate, after "those": "within p99 < 1 ms at 50 k IOPS".
fn conditions(request: &ChooseRequest, one: bool) -> Option<String> {
    let bytes = asked_bytes(request);
    let rate = request.load.offered_iops().map(count);
    match (request.slo.limits.is_empty(), rate) {
        (true, None) => None,
        (true, Some(rate)) => {
            let keep = if one { "keeps" } else { "keep" };
            Some(format!("that {keep} up with {rate} IOPS{bytes}"))
        }
        (false, None) => Some(format!("within {}", limits(request))),
        (false, Some(rate)) => Some(format!("within {} at {rate} IOPS{bytes}", limits(request))),
    }
}

/// Returns the name of a criterion in sentences: at a rate, the one with most IOPS per watt is the one with least power.
pub(super) fn words(request: &ChooseRequest, by: Measure) -> &'static str {
    match (by, request.load.offered_iops()) {
        (Measure::Watt, Some(_)) => "power",
        _ => by.words(),
    }
}

/// Returns the figure of the best drive with its unit; at a rate, its power instead of its IOPS per watt.
pub(super) fn best_figure(
    request: &ChooseRequest,
    answer: &ChooseAnswer,
    best: &BestCandidate,
) -> String {
    let watts = answer.candidate(&best.drive).and_then(|one| one.watts);
    match (best.by, request.load.offered_iops(), watts) {
        (Measure::Watt, Some(_), Some(watts)) => format!("{} W", digits(watts)),
        (Measure::Usd, ..) => cost(request, answer, best),
        _ => figure(request, best.by, best.value),
    }
}

/// Returns the cost of the best drive: that by its rating, and that by its cycles if these end much earlier.
fn cost(request: &ChooseRequest, answer: &ChooseAnswer, best: &BestCandidate) -> String {
    let by_rating = figure(request, Measure::Usd, best.value);
    let one = answer.candidate(&best.drive);
    match one.and_then(|one| one.usd_in_all_by_cycles) {
        Some(by_cycles) => format!(
            "{by_rating}, or {} if {} cycles decide",
            figure(request, Measure::Usd, by_cycles),
            one.map_or("assumed", |one| kind_of_costly_cycles(one, request.years))
        ),
        None => by_rating,
    }
}

/// Returns the kind of the cycles that a cost by cycles depends on: rated only if those of each such part are.
pub(super) fn kind_of_costly_cycles(one: &Candidate, years: f64) -> &'static str {
    let mut deciding = one
        .parts
        .iter()
        .filter(|part| cost::bought_by_cycles(part, years).is_some());
    let is_assumed = deciding.any(|part| {
        let cycles = part.cycles.as_ref();
        cycles.is_none_or(|cycles| cycles_kind(cycles.kind) == "assumed")
    });
    if is_assumed { "assumed" } else { "rated" }
}

/// Returns the drives that meet the limits and have no figure for a criterion, with the name of the figure; `None` if
/// there are none.
pub(super) fn without_figure(
    answer: &ChooseAnswer,
    by: Measure,
) -> Option<(&'static str, Vec<&Candidate>)> {
    let what = match by {
        Measure::Usd => "price",
        Measure::Watt => "known power",
        Measure::Years => "rating",
        Measure::P99 => "known p99",
        Measure::Iops => return None,
    };
    let met = answer.candidates.iter().filter(|one| one.is_met());
    let all: Vec<&Candidate> = met.filter(|one| by.value(one).is_none()).collect();
    (!all.is_empty()).then_some((what, all))
}

/// Returns the number of these drives, after a number of drives: "; 2 of them have no price".
pub(super) fn unranked(answer: &ChooseAnswer, by: Measure) -> String {
    match without_figure(answer, by) {
        None => String::new(),
        Some((what, all)) if all.len() == 1 => format!("; 1 of them has no {what}"),
        Some((what, all)) => format!("; {} of them have no {what}", all.len()),
    }
}

/// Returns that a drive is no longer made, as a note after its name.
pub(super) fn made_until(one: &Candidate) -> Option<String> {
    let old = one.no_longer_made.as_ref()?;
    Some(match old.drive == one.drive {
        true => format!("no longer made, {}", old.until),
        false => format!("{} no longer made, {}", old.drive, old.until),
    })
}

/// Returns a name with the date after which the drive is no longer made, and with that drive if it is a member.
pub(super) fn dated(name: &str, one: &Candidate) -> Option<String> {
    let old = one.no_longer_made.as_ref()?;
    Some(match old.drive == one.drive {
        true => format!("{name} ({})", old.until),
        false => format!("{name} ({}, {})", old.drive, old.until),
    })
}

/// Returns the limits as text.
pub(super) fn limits(request: &ChooseRequest) -> String {
    let texts = request.slo.limits.iter().map(|limit| limit.text.clone());
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns a figure with its unit; fewer years than requested are marked.
pub(super) fn figure(request: &ChooseRequest, by: Measure, value: f64) -> String {
    match by {
        Measure::Usd => format!("{} USD", digits(value)),
        Measure::Watt => format!("{} IOPS/W", count(value)),
        Measure::Iops => format!("{} IOPS", count(value)),
        Measure::P99 => microseconds(value),
        Measure::Years if value <= 0.0 => String::from("worn out already"),
        Measure::Years if value < request.years => {
            format!("{}, not {} years", years_of(value), digits(request.years))
        }
        Measure::Years => years_of(value),
    }
}

/// Common rate of logs that the program selected, as text.
pub(super) struct ChosenRate {
    /// I/Os per second.
    pub(super) iops: String,
    /// Share of the fastest log's maximum: `half of`, `a quarter of`.
    pub(super) share: String,
}

/// Returns the common rate of logs, if the program selected it: p99 and wear depend on it.
pub(super) fn chosen_rate(request: &ChooseRequest, answer: &ChooseAnswer) -> Option<ChosenRate> {
    let own = answer.candidates.iter().filter_map(|one| {
        let own = one.own_maximum.as_ref()?;
        Some(own.iops_by_seed[0])
    });
    let most = own.max_by(f64::total_cmp)?;
    let rate = request.load.offered_iops()?;
    // The program halves rates, and rounds them to two digits.
    let mut ratio = most / rate.max(1e-9);
    let mut halvings = 1;
    // The bound between 2 and 4 on a scale of factors.
    while ratio > 2.8 && halvings < 20 {
        ratio /= 2.0;
        halvings += 1;
    }
    Some(ChosenRate {
        iops: count(rate),
        share: match halvings {
            1 => String::from("half of"),
            2 => String::from("a quarter of"),
            3 => String::from("an eighth of"),
            more => format!("1/{} of", 1_u64 << more),
        },
    })
}
