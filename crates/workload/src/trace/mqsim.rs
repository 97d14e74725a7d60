//! The ASCII traces of MQSim and of SSDsim: arrival time in ns, device, first sector of 512 B, sectors, type (0
//! write, 1 read), separated by blanks.
//!
//! Both programs write the same columns in the same units with the same codes. Content cannot distinguish them and
//! need not: one reader serves both names, and detection reports `mqsim`. DiskSim's ASCII format has five columns
//! too, but its times are in ms and are written with decimals. Rule: a time with a decimal point is DiskSim's. Whole
//! times are nanoseconds, unless this would mean more than one request per 100 ns; in this case the reader refuses
//! and names both.

use model::Op;

use super::fields::{Fields, whole};
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError};

pub(super) const MQSIM: Format = Format {
    name: "mqsim",
    title: "MQSim or SSDsim ASCII (they read alike)",
    about: "MQSim's ASCII: ns, device, sector, sectors, 0 write or 1 read",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

pub(super) const SSDSIM: Format = Format {
    name: "ssdsim",
    title: "SSDsim ASCII",
    about: "SSDsim's ASCII: the same columns, so content says mqsim for both",
    looks: |_| false,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::blanks(line, text),
    header: None,
    request,
};

/// Minimum plausible mean distance between requests of a real trace.
const CLOSEST_NS: u64 = 100;

/// Checks whether the first line has five columns of whole numbers, and no time of the head has decimals.
pub(super) fn whole_numbers(head: &Head) -> bool {
    let decimals = |line: &&[u8]| Fields::blanks(1, line).text(0).contains(&b'.');
    !head.lines.iter().any(decimals)
        && head.lines.first().is_some_and(|line| {
            let fields = Fields::blanks(1, line);
            fields.count() == 5 && (0..5).all(|column| whole(fields.text(column)).is_some())
        })
}

/// Checks whether whole times cannot be nanoseconds because the requests would be too close together.
pub(super) fn too_close(head: &Head) -> bool {
    let times = || {
        head.lines
            .iter()
            .filter_map(|line| whole(Fields::blanks(1, line).text(0)))
    };
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return false;
    };
    let gaps = head.lines.len() as u64 - 1;
    gaps >= 10 && last > first && (last - first) / gaps < CLOSEST_NS
}

fn looks(head: &Head) -> bool {
    let kind = |line: &&[u8]| matches!(Fields::blanks(1, line).text(4), b"0" | b"1");
    whole_numbers(head) && head.lines.first().is_some_and(kind)
}

fn request(fields: &Fields, volume: &mut Vec<u8>) -> Result<RawRequest, TraceError> {
    fields.expect(5, "time, device, sector, sectors, type")?;
    let at_ns = u128::from(fields.number(0, "time in ns")?);
    let op = match fields.text(4) {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return Err(fields.invalid_column(4, "type", "0 (write) or 1 (read)")),
    };
    let offset = fields.sectors(2, "first sector")?;
    let bytes = fields.sectors(3, "sectors")?;
    fields.number(1, "device")?;
    volume.extend_from_slice(fields.text(1));
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
