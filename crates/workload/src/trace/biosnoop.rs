//! Output of `biosnoop` of bcc and of libbpf-tools. Columns: completion time in s, process, process id, disk, type,
//! sector of 512 B, bytes, (the pattern with -P,) (ms in the host's queue with -Q,) and ms from issue to completion.
//!
//! A request arrives when it was issued: at its completion time minus its latency. Both are rounded (bcc's latency to
//! 10 us), so requests that are closer than that may change their order. Types are R and W (bcc) or blkparse's
//! letters (libbpf-tools). bpftrace's `biosnoop.bt` prints neither sector nor bytes, so it is refused. Not included:
//! processes and the host's queue. Sources: tools/biosnoop.py and libbpf-tools/biosnoop.c of github.com/iovisor/bcc,
//! tools/biosnoop.bt of bpftrace.

use model::Op;

use super::fields::Fields;
use super::lines::each_line;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError, blkparse, input::Input};

pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    title: "biosnoop's output",
    about: "output of biosnoop (bcc or libbpf-tools), with response times",
    looks: |head| head.lines.iter().take(3).any(|line| is_heading(line)),
    read,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Requests issued before the first completion would arrive before time 0: all arrivals are shifted by this.
const BEFORE_NS: u128 = 3_600 * SECOND as u128;

fn is_heading(line: &[u8]) -> bool {
    let names = Fields::blanks(1, line);
    names.text(0).starts_with(b"TIME(") && names.position("COMM").is_some()
}

/// Returns the number of columns after the process's name: id, disk, type, sector, bytes, optional others, latency.
fn after_name(heading: &[u8]) -> Result<usize, &'static str> {
    let names = Fields::blanks(1, heading);
    match (names.position("COMM"), names.position("SECTOR")) {
        (Some(1), Some(5)) if names.position("BYTES") == Some(6) => Ok(names.count() - 2),
        _ => Err(
            "the output of this biosnoop has no columns SECTOR and BYTES (that of bpftrace has none)",
        ),
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut after = 6;
    each_line(
        input,
        requests,
        |line, text| Fields::blanks(line, text),
        |blanks, volume, _| {
            let line = blanks.line_text();
            if is_heading(line) {
                let help = "biosnoop of bcc (biosnoop-bpfcc) or of libbpf-tools says it";
                after = after_name(line).map_err(|what| blanks.fault(what).help(help))?;
                return Ok(None);
            }
            if line.starts_with(b"Tracing ") || line.starts_with(b"Attaching ") {
                return Ok(None);
            }
            // Process names may contain blanks.
            let fields = Fields::split_around(blanks.line(), line, 1, after);
            fields.expect(after + 2, "those that the heading names")?;
            let found = request(&fields)?;
            volume.extend_from_slice(fields.text(3));
            Ok(Some(found))
        },
    )
}

fn request(fields: &Fields) -> Result<RawRequest, TraceError> {
    let done_ns = fields.time(0, "time in s", SECOND)?;
    let last = fields.count() - 1;
    let latency_ns = fields.time(last, "latency in ms", MS)?;
    let Some((op, fua)) = blkparse::operation(fields.text(4)) else {
        return Err(fields.invalid_column(4, "type", "R, W or the letters of blkparse"));
    };
    let bytes = fields.number(6, "bytes")?;
    let (offset, bytes) = match op {
        Op::Flush => (0, 0),
        _ => (fields.sectors(5, "sector")?, bytes),
    };
    let issued_ns = (done_ns + BEFORE_NS).saturating_sub(latency_ns);
    let mut found = RawRequest::new(issued_ns, op, offset, bytes);
    found.fua = fua && op == Op::Write;
    found.latency_ns = u64::try_from(latency_ns).ok();
    Ok(found)
}
