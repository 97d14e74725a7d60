//! The cache of a pool, whose size workloads are scaled by. Not considered: a cache below another.

use tier::{DriveConfig, Kind, PoolConfig};

/// A cache in a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PoolCache {
    /// Bytes of data that the cache can hold.
    pub(crate) bytes: u64,
    /// Bytes of a cache line.
    pub(crate) line: u64,
    /// Whether the cache is for writes.
    pub(crate) writes: bool,
}

/// Returns the topmost cache of a pool; `None` if there is none.
pub(crate) fn cache_of(drive: &DriveConfig) -> Option<PoolCache> {
    let DriveConfig::Pool(pool) = drive else {
        return None;
    };
    let of = |index: usize| cache_in(pool, index);
    (0..pool.tiers.len()).rev().find_map(of)
}

fn cache_in(pool: &PoolConfig<DriveConfig>, tier: usize) -> Option<PoolCache> {
    let bytes = || pool.child_bytes(tier).first().copied();
    match &pool.tiers[tier].kind {
        Kind::ReadCache(config) => Some(PoolCache {
            bytes: bytes()?,
            line: u64::from(config.line),
            writes: false,
        }),
        Kind::WriteBack(config) => Some(PoolCache {
            bytes: bytes()?.min(config.buffer_limit),
            line: 4096,
            writes: true,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Option<PoolCache> {
        let sheet = catalogue::drive(name).unwrap_or_else(|problems| panic!("{problems}"));
        cache_of(&sheet.config)
    }

    #[test]
    fn what_has_a_cache_is_known() {
        let group = cache("group").expect("a write buffer");
        assert!(group.writes && (390e9..400e9).contains(&(group.bytes as f64)));
        let read = cache("read-cache(cache=p4800x-375, main=d7-p5510-3840)").expect("a read cache");
        assert!(!read.writes);
        assert_eq!(read.line, 64 << 10);
        assert_eq!(cache("s2-slog"), None);
        assert_eq!(cache("p4800x-375"), None);
    }
}
