//! `kind = "read-cache"`: what is read from `main` is kept on `cache`.
//!
//! `like` takes the settings of a known cache, as its documentation has them; each can be set by itself too.

use model::tier::{Kind, Policy, ReadCacheConfig, Writes};

use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "read-cache",
    read,
};

/// A cache that others have built, as far as this tier can be it.
struct Like {
    word: &'static str,
    config: ReadCacheConfig,
}

/// The caches that are known.
const KNOWN: [Like; 4] = [
    Like {
        word: "plain",
        config: ReadCacheConfig {
            line: 64 << 10,
            policy: Policy::Lru,
            writes: Writes::Through,
            fill_at_miss: 1,
            sequential_cutoff: None,
            survives_power_cut: false,
        },
    },
    // Open CAS Linux's admin guide: cache lines of 4 KiB, LRU, write-through, sequential cutoff 1 MiB once the cache is
    // full. Metadata are on the cache device, so that it is warm after a restart. (The cutoff holds from the start here.)
    Like {
        word: "open-cas",
        config: ReadCacheConfig {
            line: 4096,
            policy: Policy::Lru,
            writes: Writes::Through,
            fill_at_miss: 1,
            sequential_cutoff: Some(1 << 20),
            survives_power_cut: true,
        },
    },
    // Documentation/admin-guide/bcache.rst of Linux 6.12: write-through unless told otherwise, LRU, sequential_cutoff 4
    // MiB. (Its extents of any size are lines of 4 KiB here, its buckets are not modelled.)
    Like {
        word: "bcache",
        config: ReadCacheConfig {
            line: 4096,
            policy: Policy::Lru,
            writes: Writes::Through,
            fill_at_miss: 1,
            sequential_cutoff: Some(4 << 20),
            survives_power_cut: true,
        },
    },
    // VMware's Flash Read Cache: write-through, cold after a restart, blocks of 4 KiB to 1 MiB (8 KiB is assumed).
    Like {
        word: "vfrc",
        config: ReadCacheConfig {
            line: 8192,
            policy: Policy::Lru,
            writes: Writes::Through,
            fill_at_miss: 1,
            sequential_cutoff: None,
            survives_power_cut: false,
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
        keys.problem("line", "a line is a power of two", "such as `64k`");
    }
    let misses = keys.count("fill_at_miss", 1..=100, u64::from(like.fill_at_miss));
    // 0 is none.
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
        sequential_cutoff: (cutoff > 0).then_some(cutoff),
        survives_power_cut: keys.flag("survives_power_cut", like.survives_power_cut),
    })
}
