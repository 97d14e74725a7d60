//! Screening of `choose --all`: the drives that run in full after a short run of each, and the first answer.

use std::collections::BTreeSet;

use study::decide::choose::{self, Candidate, Measure, Unfit};
use study::decide::screening;

use crate::output::remark;

/// Returns the drives that run in full: contenders, and those that the user named. The first answer is printed to
/// standard error.
pub(crate) fn wanted(first: &[Candidate], named: &[String], by: Measure) -> BTreeSet<String> {
    let contenders = screening::contenders(first);
    let pairs = first.iter().zip(contenders);
    let wanted: BTreeSet<String> = pairs
        .filter(|(one, contends)| *contends || named.contains(&one.drive))
        .map(|(one, _)| one.drive.clone())
        .collect();
    remark("note", &first_answer(first, by, wanted.len()));
    wanted
}

/// Returns the drives that met all limits in their short run, if no drive did in full runs; they run in full as well.
pub(crate) fn left(found: &[Candidate]) -> BTreeSet<String> {
    let meets = |screened: bool| {
        let some = found
            .iter()
            .filter(move |one| one.meets && one.screened == screened);
        some.map(|one| one.drive.clone())
    };
    match meets(false).next() {
        Some(_) => BTreeSet::new(),
        None => meets(true).collect(),
    }
}

/// Returns the candidates of the full runs, and those of the short runs that did not run in full.
pub(crate) fn merged(
    first: Vec<Candidate>,
    full: Vec<Candidate>,
    refused: &[Unfit],
) -> Vec<Candidate> {
    let names = full.iter().map(|one| &one.drive);
    let again: BTreeSet<String> = names
        .chain(refused.iter().map(|one| &one.drive))
        .cloned()
        .collect();
    let rest = first.into_iter().filter(|one| !again.contains(&one.drive));
    rest.chain(full).collect()
}

/// Returns the first answer, from the short runs.
fn first_answer(first: &[Candidate], by: Measure, full: usize) -> String {
    let as_full = |one: &Candidate| Candidate {
        screened: false,
        ..one.clone()
    };
    let answer = choose::answer(first.iter().map(as_full).collect(), Vec::new(), by);
    let head = match answer.best_by(by) {
        Some(best) => format!("first answer by {}: {}", by.words(), best.drive),
        None => String::from("first answer: no drive is known to meet all limits"),
    };
    format!(
        "{head} (a short run with one seed); {full} of {} drives now run in full",
        first.len()
    )
}
