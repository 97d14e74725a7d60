//! Google's synthesised traces of storage servers (Thesios, ASPLOS '24): a CSV with column names, and one row per
//! request to a server with one disk.
//!
//! The replay contains the I/O that reaches the disk: reads that miss the server's cache, of `disk_io_size_bytes`,
//! with `disk_time` as the recorded response time; and writes, of `request_io_size_bytes`. Reads that hit the cache
//! are counted. Requests arrive at `start_time` (decimal seconds). [`Extents`] places the files. Not included: names,
//! priorities and `io_zone`. Source: README.md of github.com/google-research-datasets/thesios, "Data Description"; no
//! sample was available.

use model::Op;

use super::extents::Extents;
use super::fields::Fields;
use super::lines::each_line;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError, input::Input};

pub(super) const FORMAT: Format = Format {
    name: "google",
    title: "Google (Thesios) CSV",
    about: "Google's storage traces (Thesios): what reaches the server's disk",
    looks: |head| {
        let first = head.lines.first();
        first.is_some_and(|line| GoogleColumns::named(&Fields::commas(1, line)).is_some())
    },
    read,
};

const SECOND: u64 = 1_000_000_000;

struct GoogleColumns {
    file: usize,
    offset: usize,
    op: usize,
    hit: usize,
    asked: usize,
    disk_size: usize,
    start: usize,
    disk_time: usize,
}

impl GoogleColumns {
    fn named(names: &Fields) -> Option<GoogleColumns> {
        Some(GoogleColumns {
            file: names.position("filename")?,
            offset: names.position("file_offset")?,
            op: names.position("op_type")?,
            hit: names.position("cache_hit")?,
            asked: names.position("request_io_size_bytes")?,
            disk_size: names.position("disk_io_size_bytes")?,
            start: names.position("start_time")?,
            disk_time: names.position("disk_time")?,
        })
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut columns: Option<GoogleColumns> = None;
    let mut extents = Extents::default();
    each_line(
        input,
        requests,
        |line, text| Fields::commas(line, text),
        |fields, volume, requests| {
            // Concatenated shards have lines with column names in between.
            if let Some(named) = GoogleColumns::named(fields) {
                columns = Some(named);
                return Ok(None);
            }
            let Some(columns) = &columns else {
                let what = "the names of the columns are missing";
                let right = "a first line with filename, file_offset, op_type, cache_hit and so on";
                return Err(fields.fault(what).help(right));
            };
            let Some(mut found) = request(fields, columns, requests)? else {
                return Ok(None);
            };
            volume.extend_from_slice(b"disk");
            let file = fields.text(columns.file);
            found.offset = extents.place((volume, file), found.offset, found.bytes, requests);
            Ok(Some(found))
        },
    )
}

/// Returns the disk request of a row, with its offset in its file; `None` if there is none.
fn request(
    fields: &Fields,
    columns: &GoogleColumns,
    requests: &mut Requests,
) -> Result<Option<RawRequest>, TraceError> {
    let at_ns = fields.time(columns.start, "start_time in s", SECOND)?;
    let offset = fields.number(columns.offset, "file_offset")?;
    match fields.text(columns.op) {
        b"WRITE" => {
            let bytes = fields.number(columns.asked, "request_io_size_bytes")?;
            Ok(Some(RawRequest::new(at_ns, Op::Write, offset, bytes)))
        }
        b"READ" => {
            if fields.number(columns.hit, "cache_hit")? == 1 {
                requests.note("reads that the server's cache answered, left out");
                return Ok(None);
            }
            let bytes = fields.number(columns.disk_size, "disk_io_size_bytes")?;
            let mut found = RawRequest::new(at_ns, Op::Read, offset, bytes);
            let response = fields.time(columns.disk_time, "disk_time in s", SECOND)?;
            found.latency_ns = u64::try_from(response).ok();
            Ok(Some(found))
        }
        _ => Err(fields.invalid_column(columns.op, "op_type", "READ or WRITE")),
    }
}
