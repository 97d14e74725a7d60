//! The MSR Cambridge CSV: time as a Windows file time (100 ns since 1601), host, disk number, Read or Write, offset
//! in bytes, size in bytes, response time in 100 ns. A header line is skipped.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge CSV",
    about: "MSR Cambridge CSV, with response times",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::commas(line, text),
    header: Some(HEADER),
    request,
};

const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

fn looks(head: &Head) -> bool {
    head.after_header(HEADER).is_some_and(|line| {
        let fields = Fields::commas(1, line);
        fields.count() == 7 && direction(&fields).is_ok() && fields.number(0, "time").is_ok()
    })
}

fn direction(fields: &Fields) -> Result<Op, TraceError> {
    let text = fields.text(3);
    if text.eq_ignore_ascii_case(b"read") {
        Ok(Op::Read)
    } else if text.eq_ignore_ascii_case(b"write") {
        Ok(Op::Write)
    } else {
        Err(fields.invalid_column(3, "type", "Read or Write"))
    }
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    fields.expect(7, "time, host, disk, type, offset, size, response time")?;
    let at_ns = u128::from(fields.number(0, "time")?) * 100;
    let op = direction(fields)?;
    let offset = fields.number(4, "offset")?;
    let bytes = fields.number(5, "size")?;
    let response = fields.number(6, "response time")?;
    volume.extend_from_slice(fields.text(1));
    volume.push(b'_');
    volume.extend_from_slice(fields.text(2));
    let mut found = RawRequest::new(at_ns, op, offset, bytes);
    found.latency_ns = Some(response.saturating_mul(100));
    Ok(found)
}
