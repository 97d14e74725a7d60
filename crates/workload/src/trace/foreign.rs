//! Files that look like block traces but have another format: their name, and advice.
//!
//! Sources: cache traces of Twitter (github.com/twitter/cache-trace) and Meta (CacheLib's kvcache), and the tools of
//! bcc and bpftrace.

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
    let is_bar = |line: &&&[u8]| line.ends_with(b"|") && line.contains(&b'|') && line.len() > 20;
    if head.lines.iter().filter(is_bar).count() >= 2 {
        return Some((
            "is a histogram, as biolatency and bitesize print it: it contains no individual requests",
            "record requests with biosnoop, blktrace or the tracepoints block_rq_issue and block_rq_complete",
        ));
    }
    None
}
