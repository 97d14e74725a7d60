//! The SPC trace format (UMass Financial and WebSearch): application storage unit, LBA of 512 B, size in bytes, r or w,
//! time in s; further columns are allowed by the format and passed over.
//!
//! Source: the column list in the shared traces; no sample was at hand.

use std::ops::ControlFlow;

use model::Op;

use super::fields::Fields;
use super::input::Input;
use super::requests::{Found, Requests};
use super::{Fault, Format, Head};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    title: "SPC",
    about: "ASU, LBA of 512 B, bytes, r or w, time in s",
    looks,
    read,
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

fn direction(fields: &Fields) -> Result<Op, Fault> {
    match fields.text(3) {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(fields.wrong(3, "type", "r or w")),
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), Fault> {
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else {
            return Ok(());
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fields = Fields::commas(number, line);
        if fields.count() < 5 {
            fields.expect(5, "ASU, LBA, size, type, time")?;
        }
        let asu = fields.number(0, "ASU")?;
        let offset = fields.sectors(1, "LBA")?;
        let bytes = fields.number(2, "size")?;
        let op = direction(&fields)?;
        let at_ns = fields.time(4, "time in s", 1_000_000_000)?;
        let volume = requests.volume(fields.text(0), &fields.place(), || asu.to_string())?;
        let found = Found::new(at_ns, op, offset, bytes);
        if let ControlFlow::Break(()) = requests.push(volume, &found, || fields.place())? {
            return Ok(());
        }
    }
}
