//! The SYSTOR '17 CSV (virtual desktops on a storage array), with or without its header line. Columns: issue time in
//! s, response time in s (may be empty), R or W, LUN, offset in bytes, size in bytes.
//!
//! Rows are in order of completion, so issue times are not sorted; the reader sorts them.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "systor",
    title: "SYSTOR '17 CSV",
    about: "SYSTOR '17 CSV, with response times",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::commas(line, text),
    header: Some(HEADER),
    request,
};

const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";
const SECOND: u64 = 1_000_000_000;

fn looks(head: &Head) -> bool {
    head.after_header(HEADER).is_some_and(|line| {
        let fields = Fields::commas(1, line);
        fields.count() == 6 && direction(&fields).is_ok() && fields.time(0, "time", SECOND).is_ok()
    })
}

fn direction(fields: &Fields) -> Result<Op, TraceError> {
    match fields.text(2) {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(fields.invalid_column(2, "type", "R or W")),
    }
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    fields.expect(6, "time, response, type, LUN, offset, size")?;
    let at_ns = fields.time(0, "time in s", SECOND)?;
    let response = if fields.text(1).is_empty() {
        None
    } else {
        let ns = fields.time(1, "response in s", SECOND)?;
        let below = "a time below 584 years";
        Some(u64::try_from(ns).map_err(|_| fields.invalid_column(1, "response in s", below))?)
    };
    let op = direction(fields)?;
    let offset = fields.number(4, "offset")?;
    let bytes = fields.number(5, "size")?;
    volume.extend_from_slice(fields.text(3));
    let mut found = RawRequest::new(at_ns, op, offset, bytes);
    found.latency_ns = response;
    Ok(found)
}
