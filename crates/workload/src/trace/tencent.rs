//! The Tencent CBS CSV (a cloud's block storage): time in whole seconds, offset and size in sectors of 512 B, type
//! (0 read, 1 write), volume.
//!
//! The resolution of its clock is one second: in a replay as recorded, all requests of one second arrive together,
//! because the file contains no more. `--depth` is a better pace for such a trace. Source: the README of the SNIA
//! IOTTA set, as quoted in the shared traces; no sample was available.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    title: "Tencent CBS CSV",
    about: "Tencent CBS CSV (its clock ticks in whole seconds: see --depth)",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::commas(line, text),
    header: Some(HEADER),
    request,
};

const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";

fn looks(head: &Head) -> bool {
    head.after_header(HEADER).is_some_and(|line| {
        let fields = Fields::commas(1, line);
        fields.count() == 5
            && direction(&fields).is_ok()
            && (0..3).all(|column| fields.number(column, "number").is_ok())
    })
}

fn direction(fields: &Fields) -> Result<Op, TraceError> {
    match fields.text(3) {
        b"0" => Ok(Op::Read),
        b"1" => Ok(Op::Write),
        _ => Err(fields.invalid_column(3, "type", "0 (read) or 1 (write)")),
    }
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    fields.expect(5, "time, offset, size, type, volume")?;
    let at_ns = u128::from(fields.number(0, "time in s")?) * 1_000_000_000;
    let offset = fields.sectors(1, "offset in sectors")?;
    let bytes = fields.sectors(2, "size in sectors")?;
    let op = direction(fields)?;
    volume.extend_from_slice(fields.text(4));
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
