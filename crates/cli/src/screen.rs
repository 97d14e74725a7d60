//! Screening of `choose --all`: the drives that run in full after a short run of each, and the first answer.

use std::collections::BTreeSet;

use study::decide::choose::{self, Candidate, ChooseRequest, Measure, Unfit};
use study::decide::screening;

use crate::output::remark;

/// Runs a request on the drives with these names, or on all drives; adds those that cannot run it to the unfit ones.
pub(crate) type RunDrives<'a> =
    &'a dyn Fn(&ChooseRequest, Option<&BTreeSet<String>>, &mut Vec<Unfit>) -> Vec<Candidate>;

/// Question for which drives are screened.
#[derive(Clone, Copy)]
pub(crate) enum ScreeningAim<'a> {
    /// The best drive; the first answer is by this criterion.
    Best(Measure),
    /// The replacement of the drive with this name.
    Replace(&'a str),
}

/// Runs all drives briefly, and then in full those that can be the best and those that the user named, until no drive
/// is left that can be. The first answer is printed to standard error. `None` if the load cannot be screened.
pub(crate) fn screened(
    request: &ChooseRequest,
    named: &[String],
    aim: ScreeningAim<'_>,
    unfit: &mut Vec<Unfit>,
    run: RunDrives<'_>,
) -> Option<Vec<Candidate>> {
    let brief = screening::brief(request)?;
    let mut found = run(&brief, None, unfit);
    let shorts = found.clone();
    let mut wanted = contenders(&found, &shorts, request, aim);
    let names = found.iter().map(|one| &one.drive);
    wanted.extend(names.filter(|name| named.contains(name)).cloned());
    remark("note", &first_answer(&found, aim, wanted.len()));
    while !wanted.is_empty() {
        let mut refused = Vec::new();
        let full = run(request, Some(&wanted), &mut refused);
        found = merged(found, full, &refused);
        unfit.extend(refused);
        wanted = contenders(&found, &shorts, request, aim);
    }
    Some(found)
}

/// Returns the drives of short runs that must run in full.
fn contenders(
    found: &[Candidate],
    shorts: &[Candidate],
    request: &ChooseRequest,
    aim: ScreeningAim<'_>,
) -> BTreeSet<String> {
    let offered = request.load.offered_iops();
    let contenders = match aim {
        ScreeningAim::Best(_) => screening::contenders(found, offered),
        ScreeningAim::Replace(drive) => screening::replacements(found, shorts, drive, offered),
    };
    let pairs = found.iter().zip(contenders);
    pairs
        .filter(|(_, contends)| *contends)
        .map(|(one, _)| one.drive.clone())
        .collect()
}

/// Returns the candidates of the full runs, and those of the short runs that did not run in full.
fn merged(first: Vec<Candidate>, full: Vec<Candidate>, refused: &[Unfit]) -> Vec<Candidate> {
    let names = full.iter().map(|one| &one.drive);
    let again: BTreeSet<String> = names
        .chain(refused.iter().map(|one| &one.drive))
        .cloned()
        .collect();
    let rest = first.into_iter().filter(|one| !again.contains(&one.drive));
    rest.chain(full).collect()
}

/// Returns the first answer, from the short runs.
fn first_answer(first: &[Candidate], aim: ScreeningAim<'_>, full: usize) -> String {
    let next = format!("{full} of {} drives run in full next", first.len());
    let ScreeningAim::Best(by) = aim else {
        return format!("all drives ran briefly; {next}");
    };
    let as_full = |one: &Candidate| Candidate {
        // A limit that too few I/Os can judge may still be met.
        meets: Some(one.readings.iter().all(|it| it.met == Some(true))),
        screened: false,
        ..one.clone()
    };
    let answer = choose::answer(first.iter().map(as_full).collect(), Vec::new(), by);
    let head = match answer.best_by(by) {
        Some(best) => format!("first answer by {}: {}", by.words(), best.drive),
        None => {
            return format!(
                "no first answer yet: short runs do not show which drive is the best; {next}"
            );
        }
    };
    format!("{head} (a short run with one seed); {next}")
}
