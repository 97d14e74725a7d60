//! Parts of sentences of `drivelab choose`: figures with their units, limits, and the drives that meet them.

use study::decide::choose::{ChooseAnswer, ChooseRequest, Measure};
use text::digits::{count, digits, microseconds};

use super::ends::years_of;

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

/// Returns limits and the rate, after "those": "within p99 < 1 ms at 50 k IOPS".
fn conditions(request: &ChooseRequest, one: bool) -> Option<String> {
    let rate = request.load.offered_iops().map(count);
    match (request.slo.limits.is_empty(), rate) {
        (true, None) => None,
        (true, Some(rate)) => {
            let keep = if one { "keeps" } else { "keep" };
            Some(format!("that {keep} up with {rate} IOPS"))
        }
        (false, None) => Some(format!("within {}", limits(request))),
        (false, Some(rate)) => Some(format!("within {} at {rate} IOPS", limits(request))),
    }
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
