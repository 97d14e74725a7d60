//! Meta's traces of its bulk storage (Tectonic): reads and writes of parts of blocks, in both published layouts.
//!
//! Layout of Baleen (FAST '24): `block_id io_offset io_size op_time op_name ...`, separated by blanks. `op_time` is
//! in decimal seconds; `op_name` is 1, 2, 5 for reads (GET), and 3, 4, 6 for writes (PUT). Lines that begin with `#`
//! are comments; the last one contains the column names. Without names, a line of 9 columns has the host in the 8th;
//! a line of 10 has the shard in the 8th and the host in the 10th (the traces of 2021 and 2023). Layout of CacheLib:
//! a CSV with column names, including `op_time` in seconds, `block_id`, `io_size`, `io_offset`, `op_name`
//! (`getChunkData...` or `putChunk...`), `host_name` and `rs_shard_id`.
//!
//! A block is identified by its id and shard, and [`Extents`] places it; a host is a volume. A row with `op_count`
//! above 1 represents several requests of one second and is replayed once. Not included: the client of a request.
//! Sources: the README of ftp.pdl.cmu.edu/pub/datasets/Baleen24 ("Format"), with its example line; the description of
//! the traces that CacheLib publishes in libCacheSim's list of data sets. No sample was available.

use model::Op;

use super::extents::Extents;
use super::fields::Fields;
use super::lines::each_line;
use super::requests::{RawRequest, Requests};
use super::{Format, Head, TraceError, input::Input};

pub(super) const FORMAT: Format = Format {
    name: "meta",
    title: "Meta (Tectonic) trace",
    about: "Meta's block traces, as published with Baleen or with CacheLib",
    looks,
    read,
};

const SECOND: u64 = 1_000_000_000;

/// Columns of a row.
#[derive(Clone, Copy)]
struct MetaColumns {
    block: usize,
    offset: usize,
    size: usize,
    time: usize,
    op: usize,
    shard: Option<usize>,
    count: Option<usize>,
    host: Option<usize>,
}

impl MetaColumns {
    /// Reads a line of column names; `None` if the line contains no such names.
    fn named(names: &Fields) -> Option<MetaColumns> {
        Some(MetaColumns {
            block: names.position("block_id")?,
            offset: names.position("io_offset")?,
            size: names.position("io_size")?,
            time: names.position("op_time")?,
            op: names.position("op_name")?,
            shard: names.position("rs_shard_id"),
            count: names.position("op_count"),
            host: names.position("host_name"),
        })
    }

    /// Returns the columns of a file without names.
    fn by_count(count: usize) -> MetaColumns {
        let (shard, op_count, host) = match count {
            9 => (None, Some(8), Some(7)),
            10 => (Some(7), Some(8), Some(9)),
            _ => (None, None, None),
        };
        MetaColumns {
            block: 0,
            offset: 1,
            size: 2,
            time: 3,
            op: 4,
            shard,
            count: op_count,
            host,
        }
    }
}

fn split(line: usize, text: &[u8]) -> Fields<'_> {
    if text.contains(&b',') {
        Fields::commas(line, text)
    } else {
        Fields::blanks(line, text)
    }
}

/// Reads the names in a line, which may be a comment.
fn names(text: &[u8]) -> Option<MetaColumns> {
    let text = text.strip_prefix(b"#").unwrap_or(text);
    MetaColumns::named(&split(1, text))
}

fn looks(head: &Head) -> bool {
    let mut lines = head.lines.iter();
    if lines.clone().take(4).any(|line| names(line).is_some()) {
        return true;
    }
    lines
        .find(|line| !line.starts_with(b"#"))
        .is_some_and(|line| {
            let fields = Fields::blanks(1, line);
            (8..=10).contains(&fields.count())
                && fields.text(3).contains(&b'.')
                && request(&fields, &MetaColumns::by_count(fields.count())).is_ok()
        })
}

fn direction(fields: &Fields, column: usize) -> Result<Op, TraceError> {
    match fields.text(column) {
        b"1" | b"2" | b"5" => Ok(Op::Read),
        b"3" | b"4" | b"6" => Ok(Op::Write),
        name if name.starts_with(b"getChunk") => Ok(Op::Read),
        name if name.starts_with(b"putChunk") => Ok(Op::Write),
        _ => Err(fields.invalid_column(column, "op_name", "1 to 6, getChunk... or putChunk...")),
    }
}

/// Reads a request with its offset in its block.
fn request(fields: &Fields, columns: &MetaColumns) -> Result<RawRequest, TraceError> {
    let at_ns = fields.time(columns.time, "op_time in s", SECOND)?;
    let op = direction(fields, columns.op)?;
    let offset = fields.number(columns.offset, "io_offset")?;
    let bytes = fields.number(columns.size, "io_size")?;
    Ok(RawRequest::new(at_ns, op, offset, bytes))
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut columns = None;
    let mut extents = Extents::default();
    let mut block = Vec::new();
    each_line(input, requests, split, |fields, volume, requests| {
        if fields.line_text().starts_with(b"#") || fields.position("block_id").is_some() {
            columns = names(fields.line_text()).or(columns);
            return Ok(None);
        }
        let columns = columns.get_or_insert_with(|| MetaColumns::by_count(fields.count()));
        let last = columns.time.max(columns.op).max(columns.size);
        if fields.count() <= last {
            return Err(fields.fault(format!(
                "has {} columns, not {} or more",
                fields.count(),
                last + 1
            )));
        }
        let mut found = request(fields, columns)?;
        block.clear();
        block.extend_from_slice(fields.text(columns.block));
        if let Some(shard) = columns.shard {
            block.push(b'_');
            block.extend_from_slice(fields.text(shard));
        }
        let several = |column| fields.number(column, "").is_ok_and(|count| count > 1);
        if columns.count.is_some_and(several) {
            requests.note("rows that stand for several requests (op_count), replayed once");
        }
        volume.extend_from_slice(columns.host.map_or(b"blocks", |host| fields.text(host)));
        found.offset = extents.place((volume, &block), found.offset, found.bytes, requests);
        Ok(Some(found))
    })
}
