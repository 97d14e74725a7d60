//! Text of the kernel's tracepoints `block_rq_issue` and `block_rq_complete`, as ftrace (`trace`, `trace_pipe`),
//! `trace-cmd report` and `perf script` print it.
//!
//! Line: `TASK-PID [CPU] FLAGS SECONDS: EVENT: MAJOR,MINOR LETTERS BYTES (COMMAND) SECTOR + SECTORS ... [PROCESS]`. A
//! completion has no bytes. The text before the event, except its time, differs between tracers, and the event's name
//! may have the prefix `block:` (perf). As for blkparse, a request is one that was issued, and its latency is the
//! time to its completion; `block_rq_requeue` puts it back. A request whose completion is split is completed by its
//! first part. Not included: pass-through commands and all other events. Source: `include/trace/events/block.h` of
//! Linux.

use std::ops::ControlFlow;

use model::Op;

use super::fields::{Fields, decimal};
use super::input::Input;
use super::issued::IssueTable;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError, blkparse};

pub(super) const FORMAT: Format = Format {
    name: "ftrace",
    title: "text of the kernel's block tracepoints",
    about: "ftrace, trace-cmd and perf script: block_rq_issue and block_rq_complete",
    looks: |head| head.lines.iter().any(|line| event_of(line).is_some()),
    read,
};

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum FtraceEvent {
    Issue,
    Complete,
    Requeue,
}

/// Finds the event of a line; returns it with the text before and after its name.
fn event_of(line: &[u8]) -> Option<(FtraceEvent, &[u8], &[u8])> {
    const NAMES: [(&[u8], FtraceEvent); 3] = [
        (b"block_rq_issue:", FtraceEvent::Issue),
        (b"block_rq_complete:", FtraceEvent::Complete),
        (b"block_rq_requeue:", FtraceEvent::Requeue),
    ];
    NAMES.into_iter().find_map(|(name, event)| {
        let at = line.windows(name.len()).position(|part| part == name)?;
        Some((event, &line[..at], &line[at + name.len()..]))
    })
}

/// Returns the time in ns: the last column before the event that is a time in seconds and ends with a colon.
fn time_of(before: &[u8]) -> Option<u64> {
    let columns = before.split(u8::is_ascii_whitespace);
    let mut times = columns.filter_map(|column| decimal(column.strip_suffix(b":")?, SECOND));
    u64::try_from(times.next_back()?).ok()
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut issued = IssueTable::default();
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else { break };
        let text = line.trim_ascii();
        // Header lines of ftrace; the task's name may contain any text.
        if text.starts_with(b"#") {
            continue;
        }
        let Some((event, before, after)) = event_of(text) else {
            if !text.is_empty() {
                requests.note(
                    "lines other than block_rq_issue, block_rq_complete and block_rq_requeue",
                );
            }
            continue;
        };
        let fields = Fields::blanks(number, after);
        let Some(ns) = time_of(before) else {
            return Err(fields
                .fault("no time in seconds before the event, such as 1008.400196:")
                .help("trace-cmd report, perf script and ftrace print it by default"));
        };
        if let ControlFlow::Break(()) = record_event(event, &fields, ns, requests, &mut issued)? {
            break;
        }
    }
    issued.finish(requests);
    Ok(())
}

/// Key of outstanding flushes, which have no sector.
const NO_SECTOR: u64 = u64::MAX;

fn record_event(
    event: FtraceEvent,
    fields: &Fields,
    ns: u64,
    requests: &mut Requests,
    issued: &mut IssueTable,
) -> Result<ControlFlow<()>, TraceError> {
    let Some(device) = blkparse::device(fields.text(0)) else {
        return Err(fields.invalid_column(0, "device", "major and minor number, such as 259,0"));
    };
    // The command in parentheses may be empty or consist of several words.
    let mut columns = 0..fields.count();
    let plus = columns.find(|&column| fields.text(column) == b"+");
    let Some(plus) = plus.filter(|&plus| plus > 0) else {
        return Err(fields.fault("has no `sector + sectors`"));
    };
    let sector = fields.number(plus - 1, "sector")?;
    let bytes = fields.sectors(plus + 1, "sectors")?;
    let letters = fields.text(1);
    let asked = match blkparse::operation(letters) {
        // The kernel may report a flush as a write of zero bytes.
        Some(_) if letters.starts_with(b"F") && bytes == 0 => Some((Op::Flush, false)),
        asked => asked,
    };
    let Some((op, fua)) = asked else {
        if event == FtraceEvent::Issue {
            requests.note("pass-through commands");
        }
        return Ok(ControlFlow::Continue(()));
    };
    let at = match op {
        Op::Flush => (device, NO_SECTOR),
        _ => (device, sector),
    };
    match event {
        FtraceEvent::Complete => issued.complete(at, ns, requests),
        FtraceEvent::Requeue => issued.requeue(at, requests),
        FtraceEvent::Issue => {
            let name = || String::from_utf8_lossy(fields.text(0)).into_owned();
            let volume = requests.volume(fields.text(0), &fields.place(), name)?;
            // A flush has no address; the kernel may print the largest possible sector for it.
            let place = match op {
                Op::Flush => (0, 0),
                _ => (fields.sectors(plus - 1, "sector")?, bytes),
            };
            let mut found = RawRequest::new(u128::from(ns), op, place.0, place.1);
            found.fua = fua;
            return Ok(match requests.push(volume, &found, || fields.place())? {
                ControlFlow::Break(()) => ControlFlow::Break(()),
                ControlFlow::Continue(index) => {
                    issued.issue(at, index, ns);
                    ControlFlow::Continue(())
                }
            });
        }
    }
    Ok(ControlFlow::Continue(()))
}
