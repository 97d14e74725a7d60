//! `kind = "read-cache"`: keeps data that is read from `main` on `cache`.
//!
//! `like` selects the settings of a known cache, from its documentation. Each setting can also be given individually.

use model::Span;
use tier::{Feed, Kind, Policy, ReadCacheConfig, Writes};

use super::keys::Keys;
use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "read-cache",
    read,
};

/// An existing cache, within the abilities of this tier.
struct ReadCachePreset {
    word: &'static str,
    config: ReadCacheConfig,
}

const PLAIN: ReadCacheConfig = ReadCacheConfig {
    line: 64 << 10,
    policy: Policy::Lru,
    writes: Writes::Through,
    fill_at_miss: 1,
    fill_from: 0.0,
    sequential_cutoff: None,
    survives_power_cut: false,
    feed: None,
};

const L2ARC: Feed = Feed {
    memory: 4 << 30,
    every: Span::from_ms(1000),
    most: 32 << 20,
    headroom: 8,
};

/// All known caches.
const KNOWN: [ReadCachePreset; 6] = [
    ReadCachePreset {
        word: "plain",
        config: PLAIN,
    },
    // Open CAS Linux's admin guide: cache lines of 4 KiB, LRU, write-through, sequential cutoff 1 MiB once the cache is
    // full. Metadata are on the cache device, so that it is warm after a restart. (The cutoff holds from the start here.)
    ReadCachePreset {
        word: "open-cas",
        config: ReadCacheConfig {
            line: 4096,
            fill_from: 0.8,
            sequential_cutoff: Some(1 << 20),
            survives_power_cut: true,
            ..PLAIN
        },
    },
    // Documentation/admin-guide/bcache.rst of Linux 6.12: write-through by default, LRU, sequential_cutoff 4 MiB.
    // (Its extents of any size are lines of 4 KiB here; its buckets are not modelled.)
    ReadCachePreset {
        word: "bcache",
        config: ReadCacheConfig {
            line: 4096,
            sequential_cutoff: Some(4 << 20),
            survives_power_cut: true,
            ..PLAIN
        },
    },
    // Intel's Rapid Storage Technology with Optane Memory: assumed, because Intel publishes no rule or limit.
    ReadCachePreset {
        word: "intel-rst",
        config: ReadCacheConfig {
            line: 16 << 10,
            sequential_cutoff: Some(4 << 20),
            survives_power_cut: true,
            ..PLAIN
        },
    },
    // VMware's Flash Read Cache: write-through, cold after a restart, blocks of 4 KiB to 1 MiB (8 KiB is assumed).
    ReadCachePreset {
        word: "vfrc",
        config: ReadCacheConfig {
            line: 8192,
            ..PLAIN
        },
    },
    // OpenZFS be7657e, module/zfs/arc.c: l2arc_feed_secs 1, l2arc_write_max 32 MiB (8 before 2.3), l2arc_headroom 8,
    // l2arc_noprefetch 1, l2arc_rebuild_enabled 1; ARC in memory (4 GiB assumed); records of 128 KiB. Sequential
    // reads beyond one record count as prefetched.
    ReadCachePreset {
        word: "l2arc",
        config: ReadCacheConfig {
            line: 128 << 10,
            policy: Policy::Arc,
            writes: Writes::Around,
            sequential_cutoff: Some(128 << 10),
            survives_power_cut: true,
            feed: Some(L2ARC),
            ..PLAIN
        },
    },
];

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    tier.children("cache", 1..=1);
    tier.children("main", 1..=1);
    let keys = &mut tier.keys;
    let words: [(&str, usize); KNOWN.len()] = std::array::from_fn(|at| (KNOWN[at].word, at));
    let like = &KNOWN[keys.choice("like", &words, 0)].config;
    let line = keys.bytes("line", 4096..=1 << 20, u64::from(like.line));
    if !line.is_power_of_two() {
        keys.problem("line", "a line must be a power of two", "such as `64k`");
    }
    let misses = keys.count("fill_at_miss", 1..=100, u64::from(like.fill_at_miss));
    let fill_from = keys.share("fill_from", 0.0..=1.0, like.fill_from);
    // 0 means no cutoff.
    let cutoff = keys.bytes(
        "sequential_cutoff",
        0..=1 << 50,
        like.sequential_cutoff.unwrap_or(0),
    );
    Kind::ReadCache(ReadCacheConfig {
        line: line as u32,
        policy: keys.choice("policy", &Policy::ALL, like.policy),
        writes: keys.choice("writes", &Writes::ALL, like.writes),
        fill_at_miss: misses as u8,
        fill_from,
        sequential_cutoff: (cutoff > 0).then_some(cutoff),
        survives_power_cut: keys.flag("survives_power_cut", like.survives_power_cut),
        feed: feed(keys, like.feed, line),
    })
}

/// Reads the memory cache in front of the cache device, and the keys of its feed. Without memory these keys have no
/// effect, so they are reported as unknown.
fn feed(keys: &mut Keys<'_>, like: Option<Feed>, line: u64) -> Option<Feed> {
    let memory = keys.bytes("memory", 0..=1 << 50, like.map_or(0, |it| it.memory));
    if memory == 0 {
        return None;
    }
    let known = like.unwrap_or(L2ARC);
    if memory < line {
        keys.problem("memory", "it is smaller than one line", "0 is none");
    }
    let times = Span::from_us(1)..=Span::from_ms(86_400_000);
    Some(Feed {
        memory,
        every: keys.span("feed_every", times, known.every),
        most: keys.bytes("feed_most", 4096..=1 << 40, known.most),
        headroom: keys.count("feed_headroom", 1..=1 << 20, known.headroom.into()) as u32,
    })
}
