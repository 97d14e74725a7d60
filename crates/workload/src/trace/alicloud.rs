//! Alibaba Cloud's block traces (January 2020, elastic block service): virtual disk, R or W, offset in bytes, length
//! in bytes, arrival time at the server in microseconds since 1970.
//!
//! Source: README.md of github.com/alibaba/block-traces, "Schema", `io_traces.csv`.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "alicloud",
    title: "AliCloud CSV",
    about: "Alibaba Cloud's block traces: device,R or W,offset,length,us",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::commas(line, text),
    header: Some(HEADER),
    request,
};

const HEADER: &str = "device_id,opcode,offset,length,timestamp";

fn looks(head: &Head) -> bool {
    head.after_header(HEADER).is_some_and(|line| {
        let fields = Fields::commas(1, line);
        let numbers = [0, 2, 3, 4];
        fields.count() == 5
            && direction(&fields).is_ok()
            && numbers
                .iter()
                .all(|&column| fields.number(column, "").is_ok())
    })
}

fn direction(fields: &Fields) -> Result<Op, TraceError> {
    match fields.text(1) {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(fields.invalid_column(1, "opcode", "R or W")),
    }
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    fields.expect(5, "device_id, opcode, offset, length, timestamp")?;
    let op = direction(fields)?;
    let offset = fields.number(2, "offset")?;
    let bytes = fields.number(3, "length")?;
    let at_ns = u128::from(fields.number(4, "timestamp in us")?) * 1_000;
    volume.extend_from_slice(fields.text(0));
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
