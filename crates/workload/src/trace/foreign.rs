//! Files that look like block traces but have another format: their name, and advice.
//!
//! Sources: cache traces of Twitter (github.com/twitter/cache-trace) and Meta (CacheLib's kvcache), and YCSB's basic
//! database. Tools: bcc, bpftrace, strace(1), Process Monitor's CSV, RocksDB's `io_tracer`. Kernel and emulator:
//! `include/trace/events` of Linux' NVMe driver and block layer, QEMU's `block/trace-events`.

use super::Head;
use super::fields::Fields;

/// Returns the format's name and advice; `None` if it is unknown.
pub(super) fn advice(head: &Head) -> Option<(&'static str, &'static str)> {
    const KEYS: (&str, &str) = (
        "is a trace of a key-value cache: its requests have keys, not addresses on a drive",
        "trace the block device under the cache (blktrace, biosnoop), or give each key a place first",
    );
    const OPERATIONS: [&[u8]; 11] = [
        b"get", b"gets", b"set", b"add", b"replace", b"cas", b"append", b"prepend", b"delete",
        b"incr", b"decr",
    ];
    let first = head.lines.first()?;
    let header = Fields::commas(1, first);
    if header.position("key").is_some() && header.position("op").is_some() {
        return Some(KEYS);
    }
    if header.count() == 7 && OPERATIONS.contains(&header.text(5)) {
        return Some(KEYS);
    }
    let on = |mark: &[u8]| {
        let has = |line: &&[u8]| line.windows(mark.len()).any(|part| part == mark);
        head.lines.iter().take(50).any(has)
    };
    let system_calls: [&[u8]; 4] = [b"pread64(", b"pwrite64(", b"io_submit(", b"preadv2("];
    if first.starts_with(b"\"Time of Day\"") || on(b"\"ReadFile\"") {
        return Some((
            "is a log of Process Monitor: its offsets are in files, not on a drive",
            "record the disk with `xperf -on DISK_IO+DISK_IO_INIT`, and print it with `xperf -a dumper`",
        ));
    }
    if system_calls.iter().any(|call| on(call)) {
        return Some((
            "is output of strace: its offsets are in files, and the page cache may serve them",
            "trace the block device: blktrace, biosnoop, or the tracepoints block_rq_issue and block_rq_complete",
        ));
    }
    if on(b"nvme_setup_cmd:") || on(b"nvme_complete_rq:") {
        return Some((
            "holds tracepoints of the NVMe driver, which do not state the size of a logical block",
            "record the tracepoints block_rq_issue and block_rq_complete",
        ));
    }
    if on(b"File Operation: ") {
        return Some((
            "is a trace of RocksDB's files: its offsets are in files, not on a drive",
            "trace the block device below RocksDB: blktrace or biosnoop",
        ));
    }
    if let Some(named) = above_the_drive(first, &on) {
        return Some(named);
    }
    let is_bar = |line: &&&[u8]| line.ends_with(b"|") && line.contains(&b'|') && line.len() > 20;
    if head.lines.iter().filter(is_bar).count() >= 2 {
        return Some((
            "is a histogram, as biolatency and bitesize print it: it contains no individual requests",
            "record requests with biosnoop, blktrace or the tracepoints block_rq_issue and block_rq_complete",
        ));
    }
    None
}

/// Advice on requests that are recorded above the drive; `on` finds a mark in the first lines.
fn above_the_drive(
    first: &[u8],
    on: &dyn Fn(&[u8]) -> bool,
) -> Option<(&'static str, &'static str)> {
    if on(b"block_bio_queue:") || on(b"block_rq_insert:") || on(b"block_bio_remap:") {
        return Some((
            "holds tracepoints of the block layer before a request reaches the drive",
            "record the tracepoints block_rq_issue and block_rq_complete",
        ));
    }
    if on(b":blk_co_preadv ") || on(b":blk_co_pwritev ") {
        return Some((
            "is a trace of QEMU's block layer (blk_co_preadv, blk_co_pwritev), which is not read",
            "trace the drive in the guest, or print time, operation, offset and bytes in columns and name them with --columns",
        ));
    }
    let starts = |word: &[u8]| first.starts_with(word);
    let operations: [&[u8]; 4] = [b"READ ", b"UPDATE ", b"INSERT ", b"SCAN "];
    if operations.iter().any(|word| starts(word)) && on(b" usertable ") {
        return Some((
            "is a list of YCSB's operations: its requests have keys, not addresses on a drive",
            "trace the block device under the database: blktrace or biosnoop",
        ));
    }
    None
}
