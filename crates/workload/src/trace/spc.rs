//! The SPC trace format (UMass Financial and WebSearch): application storage unit, LBA of 512 B, size in bytes, r or
//! w, time in s. The format allows further columns, which are skipped.
//!
//! Source: the column list in the shared traces; no sample was available.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    title: "SPC",
    about: "SPC: ASU, LBA, bytes, r or w, s",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::commas(line, text),
    header: None,
    request,
};

fn looks(head: &Head) -> bool {
    head.lines.first().is_some_and(|line| {
        let fields = Fields::commas(1, line);
        fields.count() >= 5
            && direction(&fields).is_ok()
            && fields.time(4, "time", 1).is_ok()
            && (0..3).all(|column| fields.number(column, "number").is_ok())
    })
}

fn direction(fields: &Fields) -> Result<Op, TraceError> {
    match fields.text(3) {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(fields.invalid_column(3, "type", "r or w")),
    }
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    if fields.count() < 5 {
        fields.expect(5, "ASU, LBA, size, type, time")?;
    }
    fields.number(0, "ASU")?;
    volume.extend_from_slice(fields.text(0));
    let offset = fields.sectors(1, "LBA")?;
    let bytes = fields.number(2, "size")?;
    let op = direction(fields)?;
    let at_ns = fields.time(4, "time in s", 1_000_000_000)?;
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
