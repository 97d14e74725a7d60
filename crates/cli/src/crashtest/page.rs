//! The report of a crash test as a page.

use report::crash::{CrashPage, FailureText, FileRow, Point};

use super::outcome::SearchOutcome;
use super::refused::judged_nothing;
use super::shown;

const METHOD: &str = "The program ran once, and its writes were recorded. Power is cut before each completion that makes \
    data durable, and at the end: a cut at another time leaves no other image. At each crash point any subset of the \
    writes that the drive may lose is lost. A failure is checked twice and then reduced: the smallest loss and the \
    earliest crash point that fail in the same way. Ranges are named by the file system's own structures.";

/// Returns the bytes of the page.
pub(super) fn html(outcome: &SearchOutcome<'_>) -> String {
    let report = outcome.report;
    let failures = outcome.all_failures();
    let verdict = match outcome.verdict() {
        None if judged_nothing(report.counts) => String::from("Failed: no image was judged."),
        None => format!("Passed: {}.", shown::held(report)),
        Some(verdict) if failures.is_empty() => format!("Not passed: {verdict}."),
        Some(verdict) => format!("Failed: {verdict}."),
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
    let mut files = Vec::new();
    for (number, facts) in (1..).zip(&failures) {
        for (state, place) in facts.cause.iter().flat_map(|it| it.places()) {
            files.push(FileRow {
                owner: place.owner.to_string(),
                range: format!("{} B at {}", place.end - place.start, place.start),
                state,
                failure: number,
            });
        }
    }
    let failures = failures.into_iter().map(|it| FailureText {
        title: match it.rank {
            0 => it.title,
            _ => format!("also: {}", it.title),
        },
        facts: owned(it.facts),
        again: it.again,
    });
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
