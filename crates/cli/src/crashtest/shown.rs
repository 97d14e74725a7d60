//! The report of a crash test, as text and as JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use ::crashtest::{drives, report};
use crash::choice::all_of;
use crash::log::Event;
use crash::name::name;
use crash::search::SearchReport;
use crash::{EventKind, Log, Lost, Needs, Walk};
use serde_json::{Value, json};
use text::terminal::{Width, paragraph, plain, right};

use super::cause::{self, Lister};
use super::outcome::{FailureFacts, SearchOutcome, outcomes};
use super::refused::judged_nothing;
use super::second::SecondCuts;
use super::source::Source;

/// Columns where standard output is not a terminal.
const COLUMNS: u16 = 80;

/// Writes a list of moments.
pub(super) fn list(as_json: bool, source: &Source, out: &mut dyn Write) -> io::Result<()> {
    let mut table = plain();
    table.set_header([
        "moment",
        "power cut before",
        "acks",
        "writes",
        "pieces",
        "images",
    ]);
    right(&mut table, 2..6);
    let mut rows = Vec::new();
    let mut walk = Walk::new(&source.log, source.how);
    while let Some(moment) = walk.advance() {
        let (writes, pieces) = (walk.writes().count(), walk.undecided().len());
        let images = all_of(pieces);
        let before = before(&source.log, moment.event);
        if as_json {
            rows.push(json!({
                "moment": moment.number, "before": before, "acks": moment.acks,
                "writes": writes, "pieces": pieces, "images": images,
            }));
            continue;
        }
        let images = images.map_or(format!("2^{pieces}"), |it| it.to_string());
        let row = [moment.number as usize, 0, moment.acks, writes, pieces].map(|it| it.to_string());
        let [number, _, acks, writes, pieces] = row;
        table.add_row([number, before, acks, writes, pieces, images]);
    }
    match as_json {
        true => print_json(&with_head(source, json!({ "moments": rows })), out),
        false => {
            head(source, Some(COLUMNS), out)?;
            writeln!(out)?;
            let text = table.to_string();
            text.lines()
                .try_for_each(|line| writeln!(out, "{}", line.trim_end()))
        }
    }
}

/// Returns the event that a cut prevents.
fn before(log: &Log, event: usize) -> String {
    let Some(Event::Completed(number)) = log.events.get(event) else {
        return String::from("end of the log");
    };
    let it = &log.commands[*number as usize];
    match it.kind {
        EventKind::Flush => String::from("flush completes"),
        kind if it.failed => format!("{} at {} fails", kind.word(), it.offset),
        kind => format!("{} at {} completes", kind.word(), it.offset),
    }
}

/// Writes the description of an image.
pub(super) fn image(
    source: &Source,
    walk: &Walk<'_>,
    lost: &Lost,
    files: &mut Lister<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let moment = walk.moment();
    let before = before(&source.log, moment.event);
    writeln!(
        out,
        "image      {}: power cut before: {before}",
        name(walk, lost)
    )?;
    let mut first = 0;
    let ranges = walk.writes().map(|pieces| {
        let it = &source.log.commands[pieces[0].command as usize];
        (it.offset, it.offset + it.bytes)
    });
    let ranges: Vec<(u64, u64)> = ranges.collect();
    let owners = cause::texts_of(walk, lost, &ranges, files);
    for ((number, pieces), owner) in (1..).zip(walk.writes()).zip(owners) {
        let gone = (first..first + pieces.len())
            .filter(|it| lost.contains(*it))
            .count();
        first += pieces.len();
        let it = &source.log.commands[pieces[0].command as usize];
        let state = match gone {
            0 => String::from("kept"),
            gone if gone == pieces.len() => String::from("LOST"),
            gone => format!("{gone} of {} pieces LOST", pieces.len()),
        };
        let acknowledged = match pieces[0].in_flight {
            true => "in flight",
            false => "acknowledged, not flushed",
        };
        writeln!(
            out,
            "  {number:>4}     {}, {} B at {}: {acknowledged}: {state}",
            it.kind.word(),
            it.bytes,
            it.offset
        )?;
        if owner != format!("{} B at {}", it.bytes, it.offset) {
            writeln!(out, "           {owner}")?;
        }
    }
    writeln!(out, "needs      {}", Needs::from_loss(walk, lost))
}

/// Totals of a log.
struct Sums {
    writes: usize,
    bytes: u64,
    trims: usize,
    flushes: usize,
    fua: usize,
}

impl Sums {
    fn from_log(log: &Log) -> Sums {
        let count = |kinds: &[EventKind]| {
            let all = log.commands.iter();
            all.filter(|it| kinds.contains(&it.kind)).count()
        };
        let written = log.commands.iter().filter(|it| it.kind == EventKind::Write);
        Sums {
            writes: count(&[EventKind::Write, EventKind::Zeroes]),
            bytes: written.map(|it| it.bytes).sum(),
            trims: count(&[EventKind::Trim]),
            flushes: count(&[EventKind::Flush]),
            fua: log.commands.iter().filter(|it| it.fua).count(),
        }
    }
}

/// Returns a number with its noun.
fn counted(count: usize, what: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what}"),
        (_, "flush") => format!("{count} flushes"),
        _ => format!("{count} {what}s"),
    }
}

/// Writes the description of the log, and the number of images to try.
fn head(source: &Source, width: Width, out: &mut dyn Write) -> io::Result<()> {
    write_facts(&description(source), width, out)
}

/// Writes facts: heading and text.
fn write_facts(
    facts: &[(&'static str, String)],
    width: Width,
    out: &mut dyn Write,
) -> io::Result<()> {
    facts.iter().try_for_each(|(heading, text)| {
        let heading = format!("{heading:<11}");
        writeln!(out, "{}", paragraph(&heading, text, width))
    })
}

/// Returns the description of the log, of the assumptions and of the number of images: heading and text.
fn description(source: &Source) -> Vec<(&'static str, String)> {
    let log = &source.log;
    let sums = Sums::from_log(log);
    let recorded = format!(
        "{} on {}: {} ({}), {}, {}, {} with FUA, {}",
        text::digits::bytes_binary(log.head.bytes as f64),
        log.head.drive,
        counted(sums.writes, "write"),
        text::digits::bytes_decimal(sums.bytes as f64),
        counted(sums.trims, "trim"),
        counted(sums.flushes, "flush"),
        sums.fua,
        counted(log.acks.len(), "acknowledgement")
    );
    let how = source.how;
    let mut assumed = format!("{}: ", source.drive);
    assumed.push_str(match how.volatile {
        true => "may lose what it has acknowledged until it is flushed",
        false => "keeps what it has acknowledged",
    });
    // Writing to a string does not fail.
    let _ = match how.torn {
        true => write!(assumed, "; keeps or loses {} B as one", how.part),
        false => write!(assumed, "; keeps or loses a write as one"),
    };
    if how.flush_lies {
        assumed.push_str("; its flushes do nothing");
    }
    let mut undecided = Vec::new();
    let mut walk = Walk::new(log, how);
    while walk.advance().is_some() {
        undecided.push(walk.undecided().len());
    }
    undecided.sort_unstable();
    let (half, most) = (undecided[undecided.len() / 2], undecided.last().copied());
    let moments = format!(
        "{}; undecided pieces: {half} at the median moment, {} at most",
        undecided.len(),
        most.unwrap_or_default()
    );
    vec![
        ("log", recorded),
        ("assumed", assumed),
        ("moments", moments),
    ]
}

/// Returns the description of the log and of the search: heading and text.
pub(super) fn summary(outcome: &SearchOutcome<'_>) -> Vec<(&'static str, String)> {
    let (report, seconds) = (outcome.report, outcome.seconds);
    let counts = report.counts;
    let tried = format!(
        "{} images: all there are at {} of {} moments; {} equal to others, {} checked in {seconds:.1} s{}{}",
        counts.tried,
        counts.exhausted,
        counts.moments,
        counts.equal,
        counts.checked,
        match counts.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} not judged"),
        },
        match (report.stopped, report.reduction_stopped) {
            (false, false) => "",
            (true, false) => "; ended by --budget",
            (false, true) =>
                "; the reduction was stopped, and the failures may have smaller images",
            (true, true) => "; ended by --budget, and the failures may have smaller images",
        },
    );
    let mut facts = description(outcome.source);
    facts.push(("tried", tried));
    facts.extend(outcome.second.map(|it| ("second cut", second_cuts(it))));
    facts
}

/// Writes the report.
pub(super) fn write_report(
    outcome: &SearchOutcome<'_>,
    width: Width,
    out: &mut dyn Write,
) -> io::Result<()> {
    let search = outcome.report;
    let (width, counts) = (width.or(Some(COLUMNS)), search.counts);
    write_facts(&summary(outcome), width, out)?;
    outcome.all_failures().iter().try_for_each(|it| {
        let heading = report::heading(it.rank);
        writeln!(out, "{}", paragraph(heading, &it.title, width))?;
        for (heading, text) in &it.facts {
            let heading = format!("  {heading:<11}");
            writeln!(out, "{}", paragraph(&heading, text, width))?;
        }
        // Not wrapped, so that it can be copied.
        writeln!(out, "  again      {}", it.again)
    })?;
    if counts.flaky > 0 {
        let names = search.flaky.join(", ");
        let failures = counted(counts.flaky as usize, "failure");
        let line = format!("{failures} did not repeat: {names}");
        writeln!(out, "{}", paragraph("flaky      ", &line, width))?;
    }
    if is_held(outcome) {
        let heading = match search.stopped {
            true => "no failure ",
            false => "held       ",
        };
        writeln!(out, "{}", paragraph(heading, &held(search), width))?;
    }
    Ok(())
}

/// Checks whether images were judged, and none has failed, not even once.
fn is_held(outcome: &SearchOutcome<'_>) -> bool {
    outcome.verdict().is_none() && !judged_nothing(outcome.report.counts)
}

/// Returns what a search without failures has shown: less if `--budget` ended it.
pub(super) fn held(report: &SearchReport) -> String {
    let counts = report.counts;
    let line = match counts.skipped {
        0 => format!("no image of {} fails", counts.tried),
        skipped => format!("no image of the {} judged fails", counts.checked - skipped),
    };
    let untried = report.moments.iter().filter(|it| it.tried == 0).count();
    match (report.stopped, untried) {
        (false, _) => line,
        (true, 0) => format!(
            "{line}; --budget ended the search when all images of {} of {} moments had been tried",
            counts.exhausted, counts.moments
        ),
        (true, _) => format!(
            "{line}, but --budget ended the search before any image of {untried} of {} moments was tried",
            report.moments.len()
        ),
    }
}

/// Returns the description of the second cuts.
fn second_cuts(cuts: &SecondCuts) -> String {
    let images = cuts.recoveries.len();
    let moments = cuts.sum(|it| it.report.counts.moments.into());
    let tried = cuts.sum(|it| it.report.counts.tried);
    let checked = cuts.sum(|it| it.report.counts.checked);
    let mut text = format!(
        "during the recovery of {}: {moments} moments, {tried} images, {checked} checked in {:.1} s",
        counted(images, "image"),
        cuts.seconds
    );
    if !cuts.flaky.is_empty() {
        let names = cuts.flaky.join(", ");
        // Writing to a string does not fail.
        let _ = write!(text, "; failed when it was recorded: {names}");
    }
    let flaky = cuts.recoveries.iter().flat_map(|it| &it.report.flaky);
    let flaky: Vec<&str> = flaky.map(String::as_str).collect();
    if !flaky.is_empty() {
        let _ = write!(text, "; did not repeat: {}", flaky.join(", "));
    }
    if cuts.recoveries.iter().any(|it| it.report.stopped) {
        text.push_str("; ended by --budget");
    }
    text
}

fn with_head(source: &Source, mut rest: Value) -> Value {
    let (log, how) = (&source.log, source.how);
    let mut all = json!({
        "schema": "drivelab crashtest",
        "version": 1,
        "recorded_on": log.head.drive,
        "bytes": log.head.bytes,
        "drive": source.drive,
        "volatile": how.volatile,
        "part": how.part,
        "torn": how.torn,
        "flush_lies": how.flush_lies,
        "acknowledgements": log.acks.len(),
    });
    if let (Some(all), Some(rest)) = (all.as_object_mut(), rest.as_object_mut()) {
        all.append(rest);
    }
    all
}

fn print_json(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

/// Writes the report as JSON.
pub(super) fn json(outcome: &SearchOutcome<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (source, report) = (outcome.source, outcome.report);
    let (counts, failures) = (report.counts, outcome.all_failures());
    let rules = failures.iter().filter(|it| it.rank == 0);
    let rules: Vec<&str> = rules.map(|it| &*it.rule).collect();
    let mut rest = json!({
        "moments": counts.moments,
        "exhausted": counts.exhausted,
        "tried": counts.tried,
        "equal": counts.equal,
        "checked": counts.checked,
        "skipped": counts.skipped,
        "failed": counts.failed,
        "flaky": report.flaky,
        "flaky_count": outcome.flaky(),
        "stopped": report.stopped,
        "held": is_held(outcome),
        "violated": rules,
        "failures": json_failures(outcome, &failures),
    });
    if let Some(second) = outcome.second {
        let recoveries = outcomes(second, outcome.command).map(|(name, it)| {
            let counts = it.report.counts;
            json!({
                "image": name,
                "moments": counts.moments,
                "tried": counts.tried,
                "checked": counts.checked,
                "failed": counts.failed,
                "flaky": it.report.flaky,
                "stopped": it.report.stopped,
                "failures": json_failures(&it, &failures),
            })
        });
        let recoveries: Vec<Value> = recoveries.collect();
        rest["second_cuts"] = json!({ "recoveries": recoveries, "flaky": second.flaky });
    }
    print_json(&with_head(source, rest), out)
}

/// Returns the failures of this log, from those of all.
fn json_failures(outcome: &SearchOutcome<'_>, all: &[FailureFacts<'_>]) -> Vec<Value> {
    let (source, report) = (outcome.source, outcome.report);
    let own = |it: &&FailureFacts<'_>| {
        let mut failures = report.failures.iter();
        failures.any(|own| std::ptr::eq(own, it.failure))
    };
    { all.iter().filter(own) }
        .map(
            |FailureFacts {
                 failure,
                 cause,
                 rule,
                 ..
             }| {
                let mut value = json!({
                    "rule": rule,
                    "class": failure.class.word(),
                    "line": failure.line,
                    "images": failure.images,
                    "image": failure.name,
                    "moment": failure.moment.number,
                    "acks": failure.moment.acks,
                    "needs": failure.needs.loss.words(),
                    "torn": failure.needs.torn,
                    "image_needs": failure.image_needs.loss.words(),
                "reduced": failure.reduced,
                    "possible_on": drives::possible(failure.needs).0,
                });
                let cause = cause.iter().flat_map(|it| it.json(&source.log));
                if let Some(value) = value.as_object_mut() {
                    value.extend(cause.map(|(key, it)| (key.to_owned(), it)));
                }
                value
            },
        )
        .collect()
}
