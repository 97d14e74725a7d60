//! The Tencent CBS CSV (a cloud's block storage): time in whole seconds, offset and size in sectors of 512 B, type
//! (0 read, 1 write), volume.
//!
//! Its clock ticks in seconds: all requests of one second arrive together when it is replayed as recorded. That is
//! what the file says; `--depth` paces such a trace better. Source: the README of the SNIA IOTTA set, as quoted in
//! the shared traces; no sample was at hand.

use std::ops::ControlFlow;

use model::Op;

use super::fields::Fields;
use super::input::Input;
use super::requests::{Found, Requests};
use super::{Fault, Format, Head, is_header};

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    title: "Tencent CBS CSV",
    about: "time in s, offset and size in sectors of 512 B, type (0 read, 1 write), volume",
    looks,
    read,
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

fn direction(fields: &Fields) -> Result<Op, Fault> {
    match fields.text(3) {
        b"0" => Ok(Op::Read),
        b"1" => Ok(Op::Write),
        _ => Err(fields.wrong(3, "type", "0 (read) or 1 (write)")),
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), Fault> {
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else {
            return Ok(());
        };
        if line.trim_ascii().is_empty() || number == 1 && is_header(line, HEADER) {
            continue;
        }
        let fields = Fields::commas(number, line);
        fields.expect(5, "time, offset, size, type, volume")?;
        let at_ns = u128::from(fields.number(0, "time in s")?) * 1_000_000_000;
        let offset = fields.sectors(1, "offset in sectors")?;
        let bytes = fields.sectors(2, "size in sectors")?;
        let op = direction(&fields)?;
        let text = fields.text(4);
        let name = || String::from_utf8_lossy(text).into_owned();
        let volume = requests.volume(text, &fields.place(), name)?;
        let found = Found::new(at_ns, op, offset, bytes);
        if let ControlFlow::Break(()) = requests.push(volume, &found, || fields.place())? {
            return Ok(());
        }
    }
}
