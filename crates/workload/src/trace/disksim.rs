//! DiskSim's default ASCII trace: arrival time in ms (decimal), device, first block of 512 B, blocks, flags
//! (hexadecimal; bit 0 means a read), separated by blanks.
//!
//! Not included: the other flags (synchronous, time-critical and so on), which are hints to a scheduler. See
//! [`super::mqsim`] for the distinction from MQSim's format.

use model::Op;

use super::fields::Fields;
use super::lines::Lines;
use super::requests::RawRequest;
use super::{Format, Head, TraceError, mqsim};

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    title: "DiskSim ASCII",
    about: "DiskSim's ASCII: ms with decimals, device, block, blocks, flags",
    looks,
    read: |input, requests| LINES.read(input, requests),
};

const LINES: Lines = Lines {
    split: |line, text| Fields::blanks(line, text),
    header: None,
    request: |fields, volume| {
        let found = request(fields)?;
        fields.number(1, "device")?;
        volume.extend_from_slice(fields.text(1));
        Ok(found)
    },
};

fn looks(head: &Head) -> bool {
    let Some(line) = head.lines.first() else {
        return false;
    };
    let fields = Fields::blanks(1, line);
    if fields.count() != 5 || request(&fields).is_err() {
        return false;
    }
    !mqsim::whole_numbers(head) || mqsim::too_close(head)
}

fn request(fields: &Fields) -> Result<RawRequest, TraceError> {
    fields.expect(5, "time, device, block, blocks, flags")?;
    let at_ns = fields.time(0, "time in ms", 1_000_000)?;
    let offset = fields.sectors(2, "first block")?;
    let bytes = fields.sectors(3, "blocks")?;
    let flags = std::str::from_utf8(fields.text(4)).ok();
    let flags = flags.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let flags = flags.and_then(|text| u32::from_str_radix(text, 16).ok());
    let flags = flags.ok_or_else(|| fields.invalid_column(4, "flags", "a hexadecimal number"))?;
    let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}
