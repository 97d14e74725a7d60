//! First line of `explain`: the bottleneck of a run if the model agrees with it, otherwise its distance from the model.
//!
//! A condition that the file of results does not record is a supposition: it follows "if", with its check. A rate that
//! the drive cannot have is reported before any bottleneck, because the run then says nothing about the drive. A drop of
//! the rate that a log shows comes before any supposition: a condition that holds from the start does not cause it. Not in
//! the line: ratings (except of a new drive against steady state) and advice, which are in the second line.

use study::decide::explain::answer::{AGREES, ExplainAnswer, ModelComparison, NEAR, Trial};
use text::digits::{count, digits};

use super::headline::{first_that_fits, short, the_model};

/// Factor by which a fresh drive must be faster for the line to begin with the steady state.
const FRESH_IS_FASTER: f64 = 1.5;
/// Factor between the rates of a run and the model from which the model is not taken to be too slow (assumed).
const TOO_FAST: f64 = 3.0;
/// Share of the rating at and above which a run needs no reason for being slower than a fresh drive.
const AT_RATING: f64 = 0.9;

/// Returns the first line on a run.
pub(super) fn first_line(answer: &ExplainAnswer) -> String {
    let run = short(&answer.run);
    let bound = &answer.bound.text;
    let brief = brief(bound);
    let fall = answer.change.as_ref().and_then(|it| it.proven.as_deref());
    let texts = match &answer.model {
        None => {
            let both = fall.map(|fall| format!("{fall}; bound by {brief}"));
            let both = both.into_iter().chain(fall.map(String::from));
            let bound = [format!("bound by {bound}"), format!("bound by {brief}")];
            both.chain(bound).collect()
        }
        Some(model) => with_model(answer, model, bound, brief),
    };
    first_that_fits(texts.into_iter().map(|text| format!("{run}: {text}.")))
}

/// Returns the text before a colon outside of parentheses.
fn brief(bound: &str) -> &str {
    let mut open = 0_i32;
    for (at, letter) in bound.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            ':' if open == 0 && bound[at..].starts_with(": ") => return &bound[..at],
            _ => {}
        }
    }
    bound
}

/// Returns forms of the line, the longest first.
fn with_model(
    answer: &ExplainAnswer,
    model: &ModelComparison,
    bound: &str,
    brief: &str,
) -> Vec<String> {
    let named = the_model(model.model);
    if model.gap.beyond_model {
        return faster(answer, model, &named);
    }
    if model.as_asked_agrees {
        let state = in_steady_state(answer, model);
        let with_state = |bound: &str| {
            let state = state.as_ref()?;
            Some(format!("{state}; bound by {bound}; {named} agrees"))
        };
        let mut all: Vec<String> = [bound, brief].into_iter().filter_map(with_state).collect();
        all.extend(state);
        all.push(format!("bound by {bound}; {named} agrees"));
        all.push(format!("bound by {brief}; {named} agrees"));
        all.push(format!("bound by {brief}"));
        return all;
    }
    let measured = matches!(answer.bound.by, "rate" | "sync");
    let rate_agrees = libm::log(model.gap.of_model.max(1e-9)).abs() <= AGREES;
    let far = |named: &str| match rate_agrees {
        true => format!("its rate agrees with {named}, its latencies do not"),
        false => distance(model, named),
    };
    let (plain, far) = (far("the model"), far(&named));
    let fall = answer.change.as_ref().and_then(|it| it.proven.as_deref());
    if let Some(fall) = fall.filter(|_| !measured) {
        return vec![
            format!("{fall}; in the mean {far}"),
            format!("{fall}; in the mean {plain}"),
            fall.to_owned(),
        ];
    }
    let causes = suppositions(model);
    if measured || (rate_agrees && answer.bound.by != "unknown") {
        let mut all = vec![format!("bound by {bound}; {far}; {}", causes[0])];
        all.extend(
            causes
                .iter()
                .map(|it| format!("bound by {brief}; {far}; {it}")),
        );
        all.push(format!("bound by {brief}; {far}"));
        all.push(format!("bound by {brief}"));
        return all;
    }
    let then = then_bound(answer, model, brief);
    let then = then.map(|then| format!("{far}; {}; {then}", causes[0]));
    let mut all: Vec<String> = then.into_iter().collect();
    all.push(format!("{far}; {}", causes[0]));
    all.extend(causes.iter().map(|it| format!("{plain}; {it}")));
    all.push(plain);
    all
}

/// Returns the distance of the measured rate from the model's.
fn distance(model: &ModelComparison, named: &str) -> String {
    let times = model.gap.of_model;
    match times > 1.0 {
        true => format!("{} times as fast as {named}", digits(times)),
        false => format!(
            "{} times slower than {named}",
            digits(1.0 / times.max(1e-9))
        ),
    }
}

/// Returns the line on a run that is faster than its drive can be.
fn faster(answer: &ExplainAnswer, model: &ModelComparison, named: &str) -> Vec<String> {
    let buffered = answer
        .unlike
        .iter()
        .any(|it| it.starts_with("buffered I/O"));
    let causes = match buffered {
        true => "the page cache (no direct=1), or another drive",
        false => "another drive, or a cache in front of it",
    };
    let exceeds = model.gap.exceeds.as_ref();
    let slow = match exceeds.is_none() && model.gap.of_model < TOO_FAST {
        true => ", or a model that is too slow here",
        false => "",
    };
    let limit = exceeds.and_then(|it| {
        let times = digits(it.times?);
        Some(format!(", and {times} times what {} allows", it.what))
    });
    let limit = limit.unwrap_or_default();
    vec![
        format!("{}{limit}: {causes}{slow}", distance(model, named)),
        format!("{}: {causes}{slow}", distance(model, "the model")),
    ]
}

/// Returns the rate of a fresh drive, if that is why the run is slower than expected.
fn in_steady_state(answer: &ExplainAnswer, model: &ModelComparison) -> Option<String> {
    let asked = answer.measured.asked.as_ref()?;
    let writes = asked.rw.ends_with("write") || asked.rw.ends_with("rw");
    let fresh = model.conditions.iter().find(|trial| trial.key == "fresh")?;
    let rating = model.rating.as_ref();
    let at_rating = rating.is_some_and(|it| answer.measured.iops >= AT_RATING * it.iops);
    let held = matches!(answer.bound.by, "rate" | "sync");
    if model.state != "steady"
        || !writes
        || held
        || at_rating
        || fresh.iops < FRESH_IS_FASTER * model.as_asked.iops
    {
        return None;
    }
    let rated = rating.filter(|it| it.of_new_drive);
    let rated = rated.map(|it| format!(" (rated {} when new)", count(it.iops)));
    Some(format!(
        "steady state: a fresh drive does {} IOPS{}, this run {}",
        count(fresh.iops),
        rated.unwrap_or_default(),
        count(answer.measured.iops)
    ))
}

/// Returns the conditions that explain the difference as suppositions: with all checks, with the first, and without.
fn suppositions(model: &ModelComparison) -> Vec<String> {
    let named = |key: &String| model.conditions.iter().find(|trial| trial.key == *key);
    let trials: Vec<&Trial> = model.explained_by.iter().filter_map(named).collect();
    let Some(first) = trials.first() else {
        return ["no condition that is simulated explains it, nor do two together: perhaps another drive"]
            .map(String::from)
            .to_vec();
    };
    let head = match (first.check.len() > 1, model.agrees) {
        (true, _) => "no single condition explains it, two fit:",
        (false, true) => "it fits",
        (false, false) => "no condition explains all of it; the nearest:",
    };
    let causes = |trials: &[&Trial]| {
        let causes = trials.iter().map(|it| format!("if {}", it.supposition));
        causes.collect::<Vec<_>>().join(", or ")
    };
    let mut checks: Vec<&str> = Vec::new();
    for check in trials.iter().flat_map(|trial| &trial.check) {
        if !checks.contains(check) {
            checks.push(check);
        }
    }
    let check = checks.first().copied().unwrap_or_default();
    let (all, one) = (causes(&trials), causes(&trials[..1]));
    let also = match trials.len() {
        1 => "",
        _ => ", or as line 2 says",
    };
    vec![
        format!("{head} {all} (check: {})", checks.join("; ")),
        format!("{head} {all} (check: {})", check),
        format!("{head} {all}"),
        format!("{head} {one}{also} (check: {})", check),
        format!("{head} {one}{also}"),
    ]
}

/// Returns the bottleneck under the explaining condition; if none explains the run, the bottleneck by the file alone.
fn then_bound(answer: &ExplainAnswer, model: &ModelComparison, brief: &str) -> Option<String> {
    let by_file = model.as_asked.distance.is_none_or(|far| far > NEAR);
    match (answer.bound.by, model.explained_by.is_empty(), model.agrees) {
        ("unknown", ..) => None,
        (_, false, true) => Some(format!("then bound by {brief}")),
        (_, true, _) if by_file => Some(format!("by the file, bound by {}", answer.bound.text)),
        _ => None,
    }
}
