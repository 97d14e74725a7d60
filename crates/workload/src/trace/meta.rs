//! Meta's traces of its bulk storage (Tectonic): reads and writes of parts of blocks, in either layout published.
//!
//! With Baleen (FAST '24): `block_id io_offset io_size op_time op_name ...` between blanks, `op_time` in decimal seconds,
//! `op_name` 1, 2, 5 for reads (GET), 3, 4, 6 for writes (PUT); lines that begin with `#` are comments, the last of which
//! names the columns. Without names a line of 9 columns has the host in the 8th, one of 10 the shard in the 8th and the
//! host in the 10th (the traces of 2021 and 2023). With CacheLib: a CSV with names, among them `op_time` in seconds,
//! `block_id`, `io_size`, `io_offset`, `op_name` (`getChunkData...` or `putChunk...`), `host_name` and `rs_shard_id`.
//!
//! A block is told by its id and shard, and lies where [`Extents`] puts it; a host is a volume. A row whose `op_count` is
//! above 1 stands for several requests of one second and is replayed once. Leaves out who asked. Sources: the README of
//! ftp.pdl.cmu.edu/pub/datasets/Baleen24 ("Format"), with its example line; the description of the traces that CacheLib
//! publishes in libCacheSim's list of data sets. No sample was at hand.

use model::Op;

use super::extents::Extents;
use super::fields::Fields;
use super::lines::each_line;
use super::requests::{Found, Requests};
use super::{Fault, Format, Head, input::Input};

pub(super) const FORMAT: Format = Format {
    name: "meta",
    title: "Meta (Tectonic) trace",
    about: "Meta's block traces, as published with Baleen or with CacheLib",
    looks,
    read,
};

const SECOND: u64 = 1_000_000_000;

/// Which column is what.
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
    /// As a line of names says; `None` if it is none.
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

    /// Of a file without names.
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

/// The names in a line of them, which may be a comment.
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

fn direction(fields: &Fields, column: usize) -> Result<Op, Fault> {
    match fields.text(column) {
        b"1" | b"2" | b"5" => Ok(Op::Read),
        b"3" | b"4" | b"6" => Ok(Op::Write),
        name if name.starts_with(b"getChunk") => Ok(Op::Read),
        name if name.starts_with(b"putChunk") => Ok(Op::Write),
        _ => Err(fields.wrong(column, "op_name", "1 to 6, getChunk... or putChunk...")),
    }
}

/// A request that lies where it does in its block.
fn request(fields: &Fields, columns: &MetaColumns) -> Result<Found, Fault> {
    let at_ns = fields.time(columns.time, "op_time in s", SECOND)?;
    let op = direction(fields, columns.op)?;
    let offset = fields.number(columns.offset, "io_offset")?;
    let bytes = fields.number(columns.size, "io_size")?;
    Ok(Found::new(at_ns, op, offset, bytes))
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), Fault> {
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
