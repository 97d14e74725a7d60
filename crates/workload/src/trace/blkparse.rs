//! Default output of `blkparse`, and SNIA's traces in this form. Columns: device, processor, number, time in s,
//! process id, action, letters of the kind, and for requests `sector + sectors [process]`.
//!
//! As in the binary format ([`super::blktrace`]), a request is one that was issued to the driver (D). Its latency is
//! the time to its completion (C), and queued requests (Q) are counted. The summary at the end is skipped. Not
//! included: pass-through commands, messages, merges, splits, remaps and plugs. Source: blkparse(1), "OUTPUT
//! DESCRIPTION AND FORMATTING" (the default is `%D %2c %8s %5T.%9t %5p %2a %3d`, followed by the details of the
//! action), and the kernel's `blk_fill_rwbs` for the letters.

use std::ops::ControlFlow;

use model::Op;

use super::fields::{Fields, whole};
use super::input::Input;
use super::issued::IssueTable;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    title: "blkparse's text",
    about: "blkparse's text: requests by issue (D), latency to completion (C)",
    looks: |head| {
        let event = |line: &&[u8]| is_event(&Fields::blanks(1, line));
        head.lines
            .iter()
            .find(|line| !is_remark(line))
            .is_some_and(event)
    },
    read,
};

const SECOND: u64 = 1_000_000_000;

/// Parses a device number pair into one number; `None` if the text is not a device.
pub(super) fn device(text: &[u8]) -> Option<u64> {
    let comma = text.iter().position(|&byte| byte == b',')?;
    let (major, minor) = (whole(&text[..comma])?, whole(&text[comma + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

fn is_event(fields: &Fields) -> bool {
    device(fields.text(0)).is_some()
        && whole(fields.text(1)).is_some()
        && fields.time(3, "", SECOND).is_ok()
        && (1..=2).contains(&fields.text(5).len())
}

/// Checks whether a line is a remark that blkparse prints before the events.
fn is_remark(line: &[u8]) -> bool {
    line.starts_with(b"Input file ") || line.starts_with(b"==")
}

/// Checks whether a line belongs to the summary that blkparse prints after the events.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total (")
}

/// Parses letters such as `R`, `WS`, `WFS`, `FN` and `D`; returns the operation, and whether it has FUA.
pub(super) fn operation(letters: &[u8]) -> Option<(Op, bool)> {
    let flush = letters.first() == Some(&b'F');
    let rest = if flush { &letters[1..] } else { letters };
    Some(match rest.first() {
        Some(b'D') => (Op::Deallocate, false),
        Some(b'W') => (Op::Write, rest.get(1) == Some(&b'F')),
        Some(b'R') => (Op::Read, false),
        Some(b'F' | b'N') | None if flush => (Op::Flush, false),
        _ => return None,
    })
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut issued = IssueTable::default();
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else { break };
        let text = line.trim_ascii();
        if text.is_empty() || is_remark(text) {
            continue;
        }
        if is_summary(text) {
            break;
        }
        let fields = Fields::blanks(number, line);
        if let ControlFlow::Break(()) = event(&fields, requests, &mut issued)? {
            break;
        }
    }
    issued.finish(requests);
    Ok(())
}

fn event(
    fields: &Fields,
    requests: &mut Requests,
    issued: &mut IssueTable,
) -> Result<ControlFlow<()>, TraceError> {
    let Some(device) = device(fields.text(0)) else {
        return Err(fields.invalid_column(0, "device", "major and minor number, such as 8,0"));
    };
    let ns = fields.time(3, "time in s", SECOND)?;
    let ns =
        u64::try_from(ns).map_err(|_| fields.invalid_column(3, "time in s", "below 584 years"))?;
    if matches!(fields.text(5), b"C" | b"D" | b"R") && !has_known_details(fields) {
        return Err(fields.invalid_column(8, "sign", "`+` between sector and sectors"));
    }
    match fields.text(5) {
        b"D" => return issue(fields, (device, ns), requests, issued),
        b"Q" => requests.note("requests queued"),
        b"C" if fields.text(8) == b"+" => {
            let sector = fields.number(7, "sector")?;
            issued.complete((device, sector), ns, requests);
        }
        b"C" if matches!(operation(fields.text(6)), Some((Op::Flush, _))) => {
            issued.complete((device, NO_SECTOR), ns, requests);
        }
        b"R" if fields.text(8) == b"+" => {
            let sector = fields.number(7, "sector")?;
            issued.requeue((device, sector), requests);
        }
        _ => {}
    }
    Ok(ControlFlow::Continue(()))
}

/// Checks whether the details of a request have a form that blkparse prints: `sector + sectors`, or for commands without
/// a place at most one number before the packet `(...)`, the process or the error `[...]`.
fn has_known_details(fields: &Fields) -> bool {
    let first = |column| fields.text(column).first();
    let begins = |first: &u8, letters: &[u8]| letters.contains(first);
    first(7).is_none_or(|it| begins(it, b"([")) || first(8).is_some_and(|it| begins(it, b"+(["))
}

/// Key of outstanding flushes, which have no sector.
const NO_SECTOR: u64 = u64::MAX;

fn issue(
    fields: &Fields,
    (device, ns): (u64, u64),
    requests: &mut Requests,
    issued: &mut IssueTable,
) -> Result<ControlFlow<()>, TraceError> {
    let letters = fields.text(6);
    let flush = letters.starts_with(b"F");
    let has_place = fields.text(8) == b"+";
    let (sector, offset, bytes) = if has_place {
        let sector = fields.number(7, "sector")?;
        let offset = fields.sectors(7, "sector")?;
        (sector, offset, fields.sectors(9, "sectors")?)
    } else {
        (NO_SECTOR, 0, 0)
    };
    // The kernel may report a flush as a write of zero bytes.
    let (op, fua) = match operation(letters) {
        _ if flush && bytes == 0 => (Op::Flush, false),
        Some(asked) if has_place => asked,
        _ => {
            requests.note("pass-through commands");
            return Ok(ControlFlow::Continue(()));
        }
    };
    let (offset, bytes) = if op == Op::Flush {
        (0, 0)
    } else {
        (offset, bytes)
    };
    let name = || String::from_utf8_lossy(fields.text(0)).into_owned();
    let volume = requests.volume(fields.text(0), &fields.place(), name)?;
    let mut found = RawRequest::new(u128::from(ns), op, offset, bytes);
    found.fua = fua;
    match requests.push(volume, &found, || fields.place())? {
        ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
        ControlFlow::Continue(index) => {
            issued.issue((device, sector), index, ns);
            Ok(ControlFlow::Continue(()))
        }
    }
}
