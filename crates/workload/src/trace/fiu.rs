//! FIU's traces (SyLab: IODedup, SRCMap and others), in columns separated by blanks. Columns: time in ns, process id,
//! process, first sector of 512 B, sectors, W or R, major and minor number of the device, MD5 of the content.
//!
//! Not included: processes and content. Source: the layout in SyLab's README, as two public readers quote it (`[ts in
//! ns] [pid] [process] [lba] [size in 512 Bytes blocks] [Write or Read] [major device number] [minor device number]
//! [MD5 per 4096 Bytes]`), with the example line `89968195792462 20782 gzip 283193184 8 R 6 0 56f11b71...`. No sample
//! was available.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "fiu",
    title: "FIU (SyLab) trace",
    about: "FIU's traces: ns, pid, process, sector, sectors, W or R, device, MD5",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    // Process names may contain blanks.
    split: |line, text| Fields::split_around(line, text, 2, 6),
    header: None,
    request: |fields, volume| {
        volume.extend_from_slice(fields.text(6));
        volume.push(b',');
        volume.extend_from_slice(fields.text(7));
        request(fields)
    },
};

fn looks(head: &Head) -> bool {
    head.lines.first().is_some_and(|line| {
        let fields = (LINES.split)(1, line);
        let sum = fields.text(8);
        let hexadecimal = sum.len() >= 32 && sum.iter().all(u8::is_ascii_hexdigit);
        hexadecimal && request(&fields).is_ok()
    })
}

fn request(fields: &Fields) -> Result<RawRequest, TraceError> {
    fields.expect(
        9,
        "time, pid, process, sector, sectors, W or R, major, minor, MD5",
    )?;
    let at_ns = u128::from(fields.number(0, "time in ns")?);
    let offset = fields.sectors(3, "first sector")?;
    let bytes = fields.sectors(4, "sectors")?;
    let op = match fields.text(5) {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(fields.invalid_column(5, "type", "W or R")),
    };
    fields.number(6, "major number")?;
    fields.number(7, "minor number")?;
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
