//! The report of a crash test as a page.

use report::crash::{CrashPage, FailureText, FileRow, Point};

use super::second::SecondCuts;
use super::shown::{self, SearchOutcome};

const METHOD: &str = "The program ran once, and its writes were recorded. Power is cut before each completion that makes \
    data durable, and at the end: a cut at another time leaves no other image. At each crash point any subset of the \
    writes that the drive may lose is lost. A failure is checked twice and then reduced: the smallest loss and the \
    earliest crash point that fail in the same way. Ranges are named by the file system's own structures.";

/// Returns the bytes of the page.
pub(super) fn html(outcome: &SearchOutcome<'_>) -> String {
    let report = outcome.report;
    let failed = report.failures.len() + outcome.second.map_or(0, SecondCuts::failures);
    let verdict = match failed {
        0 => format!("Passed: no image of {} fails.", report.counts.tried),
        1 => String::from("Failed: 1 rule does not hold."),
        count => format!("Failed: {count} rules do not hold."),
    };
    let points = report.moments.iter().map(|it| Point {
        tried: it.tried,
        failed: it.failed,
        acks: it.acks as u64,
        exhausted: it.exhausted,
    });
    let owned = |facts: Vec<(&str, String)>| {
        let facts = facts
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text));
        facts.collect::<Vec<(String, String)>>()
    };
    let failures = outcome.all_failures().map(|it| FailureText {
        title: it.title,
        facts: owned(it.facts),
        again: it.again,
    });
    let second = outcome.second.iter().flat_map(|it| &it.recoveries);
    let causes = (outcome.causes.iter()).chain(second.flat_map(|it| &it.causes));
    let mut files = Vec::new();
    for (number, cause) in (1..).zip(causes) {
        for (state, place) in cause.iter().flat_map(|it| it.places()) {
            files.push(FileRow {
                owner: place.owner.to_string(),
                range: format!("{} B at {}", place.end - place.start, place.start),
                state,
                failure: number,
            });
        }
    }
    report::crash::html(&CrashPage {
        title: format!("Crash test on {}", outcome.source.drive),
        verdict: vec![verdict, format!("Checker: {}", outcome.command.command)],
        facts: owned(shown::summary(outcome)),
        points: points.collect(),
        failures: failures.collect(),
        files,
        method: METHOD.to_owned(),
    })
}
