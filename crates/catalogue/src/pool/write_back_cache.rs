//! `kind = "write-back-cache"`: writes go to `cache` and are destaged to `capacity` later.
//!
//! `like` selects the rules and limits of a known cache; each can also be given individually. The behaviour of a
//! product is a figure, with its kind and source. A choice of the owner is a setting.

use std::ops::RangeInclusive;

use model::Span;
use tier::{
    BypassPolicy, Cleaning, CommitPolicy, Congestion, Destage, Durability, IdleCleaning,
    Kind as Tier, RateControl, WriteBackConfig,
};

use super::keys::{Fallback, Keys};
use super::{KindReader, TierReader};
use text::quantity::Share;

pub(super) const READER: KindReader = KindReader {
    word: "write-back-cache",
    read,
};

/// An existing cache, within the abilities of this tier.
struct WriteBackPreset {
    word: &'static str,
    config: WriteBackConfig,
    /// `destage_pause` and `destage_hurry`.
    pause: [Fallback; 2],
    /// `congestion_from`, `congestion_full` and `congestion_delay`.
    congestion: [Fallback; 3],
}

const LEVELS: &str = "VMware KB 315572 and 326870 have levels from 0 to 255 and an alarm at 200; where they begin is not published";
const ROUNDS: &str = "US 10,877,699 B2, claims 3 to 5: a round's pause falls with the square of the fill; its length is not published";
const NONE: &str = "no product: writes wait only if there is no space";

const NO_PAUSES: [Fallback; 2] = [
    Fallback::assumed("0 ns", NONE),
    Fallback::assumed("80 %", NONE),
];
const NEVER_PAUSES: [Fallback; 2] = [
    Fallback::assumed("0 ns", NONE),
    Fallback::assumed("100 %", NONE),
];
const NO_CONGESTION: [Fallback; 3] = [
    Fallback::assumed("80 %", NONE),
    Fallback::assumed("98 %", NONE),
    Fallback::assumed("0 ns", NONE),
];

/// All known caches.
const KNOWN: [WriteBackPreset; 7] = [
    WriteBackPreset {
        word: "plain",
        config: WriteBackConfig::PLAIN,
        pause: NO_PAUSES,
        congestion: NO_CONGESTION,
    },
    WriteBackPreset {
        word: "vsan",
        config: WriteBackConfig::VSAN,
        pause: [
            Fallback::assumed("5 ms", ROUNDS),
            Fallback::assumed("80 %", ROUNDS),
        ],
        congestion: [
            Fallback::assumed("80 %", LEVELS),
            Fallback::assumed("98 %", LEVELS),
            Fallback::assumed("5 ms", LEVELS),
        ],
    },
    // Linux 6.12, Documentation/admin-guide/device-mapper/writecache.rst: high_watermark 50, low_watermark 45,
    // autocommit_blocks 65536, autocommit_time 1000, writeback_jobs without a limit (the maximum of this tier).
    WriteBackPreset {
        word: "dm-writecache",
        config: WriteBackConfig::DM_WRITECACHE,
        pause: NO_PAUSES,
        congestion: NO_CONGESTION,
    },
    // The same document, type `p`: blocks are copied by the processor, and are durable then.
    WriteBackPreset {
        word: "dm-writecache-pmem",
        config: WriteBackConfig::DM_WRITECACHE_PMEM,
        pause: NO_PAUSES,
        congestion: NO_CONGESTION,
    },
    // Intel publishes no rule or limit of its cache: assumed.
    WriteBackPreset {
        word: "intel-rst",
        config: WriteBackConfig::INTEL_RST,
        pause: NEVER_PAUSES,
        congestion: NO_CONGESTION,
    },
    // Linux 6.12, drivers/md/bcache/writeback.h and Documentation/admin-guide/bcache.rst.
    WriteBackPreset {
        word: "bcache",
        config: WriteBackConfig::BCACHE,
        pause: NEVER_PAUSES,
        congestion: NO_CONGESTION,
    },
    // Open CAS Linux's admin guide; OCF's inc/cleaning.
    WriteBackPreset {
        word: "open-cas",
        config: WriteBackConfig::OPEN_CAS,
        pause: NEVER_PAUSES,
        congestion: NO_CONGESTION,
    },
];

const SHARES: RangeInclusive<Share> = Share(0.0)..=Share(1.0);
const PAUSES: RangeInclusive<Span> = Span::ZERO..=Span::from_ms(10_000);

fn read(tier: &mut TierReader<'_, '_>) -> Tier {
    let cache = tier.children("cache", 1..=1).first().copied();
    tier.children("capacity", 1..=64);
    let keys = &mut tier.keys;
    let words: [(&str, usize); KNOWN.len()] = std::array::from_fn(|at| (KNOWN[at].word, at));
    let like = &KNOWN[keys.choice("like", &words, 0)];
    let base = &like.config;
    let has = cache.unwrap_or(1 << 40).max(1 << 20);
    let limit = base.buffer_limit.min(has);
    let size = |keys: &mut Keys<'_>, key: &str, range: RangeInclusive<u64>, default: u32| {
        let bytes = keys.bytes(key, range, default.into());
        if !bytes.is_multiple_of(4096) {
            keys.problem(key, "its units are of 4 KiB", "write a multiple of `4 KiB`");
        }
        bytes as u32
    };
    let log_limit = match base.log_limit {
        u64::MAX => 0,
        bytes => bytes,
    };
    let durability = keys.choice("durability", &Durability::ALL, base.durability);
    let commit = commit(keys, base.commit, durability);
    let table = table(keys, base.table, durability);
    let mut start = keys.section("start");
    let start_with = start.share("buffer", 0.0..=1.0, base.start);
    drop(start);
    Tier::WriteBack(WriteBackConfig {
        buffer_limit: keys.bytes("buffer_limit", 1 << 18..=1 << 60, limit),
        segment: size(keys, "segment", 64 << 10..=64 << 20, base.segment),
        record: size(keys, "record", 8 << 10..=128 << 10, base.record),
        records_in_flight: keys.count("records_in_flight", 1..=1024, base.records_in_flight.into())
            as u16,
        durability,
        commit,
        table,
        chunk: size(keys, "chunk", 4096..=1 << 30, base.chunk),
        destage: destage(keys, &base.destage, like.pause),
        congestion: congestion(keys, like.congestion),
        passing: passing(keys, base.passing),
        // 0 means no limit.
        log_limit: match keys.bytes("log_limit", 0..=1 << 60, log_limit) {
            0 => u64::MAX,
            bytes => bytes,
        },
        start: start_with,
    })
}

/// Reads the two limits of a commit, which need each other: 0 means none.
fn commit(
    keys: &mut Keys<'_>,
    base: Option<CommitPolicy>,
    durability: Durability,
) -> Option<CommitPolicy> {
    // If an acknowledged write is durable, there is nothing to commit.
    let base = base.filter(|_| durability == Durability::Flush);
    let (slots, after) = base.map_or((0, Span::ZERO), |it| (it.slots, it.after));
    let slots = keys.count("commit_blocks", 0..=1 << 40, slots);
    let after = keys.span("commit_time", Span::ZERO..=Span::from_ms(3_600_000), after);
    if (slots > 0) != (after > Span::ZERO) {
        keys.problem(
            "commit_blocks",
            "a commit requires this key and `commit_time`",
            "write both, or 0 for both",
        );
    } else if slots > 0 && durability == Durability::Ack {
        keys.problem(
            "commit_blocks",
            "with `durability = \"ack\"` there is nothing to commit",
            "remove it, or write `durability = \"flush\"`",
        );
    }
    (slots > 0).then_some(CommitPolicy { slots, after })
}

/// Reads the size of the table piece that a commit writes; 0 means that there is no table.
fn table(keys: &mut Keys<'_>, base: u32, durability: Durability) -> u32 {
    let base = match durability {
        Durability::Flush => base,
        Durability::Ack => 0,
    };
    let bytes = keys.bytes("commit_table", 0..=128 << 10, base.into()) as u32;
    if !bytes.is_multiple_of(4096) {
        keys.problem(
            "commit_table",
            "the table's pieces must be multiples of 4 KiB",
            "write a multiple of `4 KiB`, or 0 for no table",
        );
    } else if bytes > 0 && durability == Durability::Ack {
        keys.problem(
            "commit_table",
            "with `durability = \"ack\"` no commit writes it",
            "remove it, or write `durability = \"flush\"`",
        );
    }
    bytes
}

fn destage(keys: &mut Keys<'_>, base: &Destage, pause: [Fallback; 2]) -> Destage {
    let [pause, hurry] = pause;
    let from = keys.share("destage_from", 0.0..=1.0, base.from);
    // The low watermark keeps its known distance from the high watermark.
    let lower = from - base.band.min(from);
    let until = keys.share("destage_until", 0.0..=1.0, lower);
    if until > from {
        keys.problem(
            "destage_until",
            "it is above `destage_from`",
            "destaging stops at a level below the level at which it starts",
        );
    }
    let merge = keys.bytes("destage_merge", 4096..=16 << 20, base.merge.into());
    let round = keys.bytes("destage_round", 4096..=1 << 30, base.round.into());
    for (key, bytes) in [("destage_merge", merge), ("destage_round", round)] {
        if bytes % 4096 != 0 {
            keys.problem(key, "its units are of 4 KiB", "write a multiple of `4 KiB`");
        }
    }
    let in_flight = keys.count("destage_in_flight", 1..=1024, base.in_flight.into());
    let hurry = keys.figure("destage_hurry", SHARES, hurry).0;
    if hurry < from {
        keys.problem(
            "destage_hurry",
            "it is below `destage_from`",
            "pauses must end at a higher fill level than rounds begin",
        );
    }
    Destage {
        from,
        band: from - until.min(from),
        pause: keys.figure("destage_pause", PAUSES, pause),
        hurry,
        round: round as u32,
        merge: merge as u32,
        in_flight: in_flight as u16,
        cleaning: cleaning(keys, base.cleaning),
    }
}

/// The cleaner that destages before the high watermark is reached.
#[derive(Clone, Copy, PartialEq)]
enum CleanerKind {
    Nobody,
    Rate,
    Alru,
    Acp,
}

const WHO: [(&str, CleanerKind); 4] = [
    ("none", CleanerKind::Nobody),
    ("rate", CleanerKind::Rate),
    ("alru", CleanerKind::Alru),
    ("acp", CleanerKind::Acp),
];

/// Reads only the keys of the selected cleaner. Other keys have no effect, so they are reported as unknown.
fn cleaning(keys: &mut Keys<'_>, base: Cleaning) -> Cleaning {
    let times = Span::from_us(1)..=Span::from_ms(86_400_000);
    let who = match base {
        Cleaning::Fill => CleanerKind::Nobody,
        Cleaning::Rate(_) => CleanerKind::Rate,
        Cleaning::Idle(_) => CleanerKind::Alru,
        Cleaning::Steady(_) => CleanerKind::Acp,
    };
    match keys.choice("clean", &WHO, who) {
        CleanerKind::Nobody => Cleaning::Fill,
        CleanerKind::Rate => {
            let known = match (base, WriteBackConfig::BCACHE.destage.cleaning) {
                (Cleaning::Rate(law), _) | (_, Cleaning::Rate(law)) => law,
                _ => return base,
            };
            let inverse = known.integral_s2 as u64;
            Cleaning::Rate(RateControl {
                target: keys.share("clean_target", 0.0..=1.0, known.target),
                proportional: keys.span("clean_proportional", times.clone(), known.proportional),
                integral_s2: keys.count("clean_integral", 1..=1 << 40, inverse) as f64,
                update: keys.span("clean_update", times, known.update),
                least: keys.bytes("clean_least", 1..=1 << 40, known.least),
            })
        }
        CleanerKind::Alru => {
            let known = match (base, WriteBackConfig::OPEN_CAS.destage.cleaning) {
                (Cleaning::Idle(law), _) | (_, Cleaning::Idle(law)) => law,
                _ => return base,
            };
            Cleaning::Idle(IdleCleaning {
                wake: keys.span("clean_wake", times.clone(), known.wake),
                quiet: keys.span("clean_quiet", times.clone(), known.quiet),
                stale: keys.span("clean_stale", times, known.stale),
            })
        }
        CleanerKind::Acp => {
            let known = match (base, WriteBackConfig::ACP) {
                (Cleaning::Steady(every), _) | (_, Cleaning::Steady(every)) => every,
                _ => return base,
            };
            Cleaning::Steady(keys.span("clean_wake", times, known))
        }
    }
}

/// Reads the limits above which writes bypass the buffer; none by default.
fn passing(keys: &mut Keys<'_>, base: Option<BypassPolicy>) -> Option<BypassPolicy> {
    let base = base.unwrap_or(BypassPolicy::NONE);
    let sequential = match base.sequential {
        u64::MAX => 0,
        bytes => bytes,
    };
    // 0 means never.
    let sequential = match keys.bytes("pass_sequential", 0..=1 << 50, sequential) {
        0 => u64::MAX,
        bytes => bytes,
    };
    let law = BypassPolicy {
        sequential,
        sequential_from: keys.share("pass_sequential_from", 0.0..=1.0, base.sequential_from),
        from: keys.share("pass_from", 0.0..=1.0, base.from),
        fua_from: keys.share("pass_fua_from", 0.0..=1.0, base.fua_from),
        fill_at_miss: keys.count("fill_at_miss", 1..=100, base.fill_at_miss.into()) as u8,
        fill_from: keys.share("fill_from", 0.0..=1.0, base.fill_from),
    };
    (!law.is_none()).then_some(law)
}

fn congestion(keys: &mut Keys<'_>, base: [Fallback; 3]) -> Congestion {
    let [from, full, delay] = base;
    let from = keys.figure("congestion_from", SHARES, from).0;
    let full = keys.figure("congestion_full", SHARES, full).0;
    if full < from {
        keys.problem(
            "congestion_full",
            "it is below `congestion_from`",
            "the level of full congestion must be above the level at which congestion starts",
        );
    }
    Congestion {
        from,
        full,
        delay: keys.figure("congestion_delay", PAUSES, delay),
    }
}
