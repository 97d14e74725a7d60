//! `kind = "intent-log"`: a volume of ZFS, with `main` and an optional `log`.
//!
//! Settings have ZFS's names and defaults. Software costs are figures, in a table `cpu`.

use model::Span;
use tier::{Autotrim, IntentLogConfig, Kind, LogCpu, LogScale, Logbias, SyncPolicy};

use super::keys::{Fallback, Keys};
use super::{KindReader, TierReader};
use crate::FigureKind;
use text::quantity::Rate;

pub(super) const READER: KindReader = KindReader {
    word: "intent-log",
    read,
};

const COMPRESS: &str = "LZ4 on one core: its README says above 500 MB/s; 0.3 to 0.8 GB/s";
const DECOMPRESS: &str = "LZ4 on one core: its README says several GB/s; 1 to 4 GB/s";

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    let main = tier.children("main", 1..=1).first().copied().unwrap_or(0);
    tier.children("log", 0..=32);
    // Blocks of a raidz cannot be changed in place. ZFS also refuses raidz here: "log devices can be mirrored, raidz
    // is not supported".
    if tier.has_child_of("log", |kind| matches!(kind, Kind::Raidz(_))) {
        tier.keys.problem(
            "log",
            "a raidz cannot be a log: in ZFS a log is a drive or a mirror",
            "such as `mirror(2*p4801x-100)`, or several drives",
        );
    }
    let keys = &mut tier.keys;
    let record = keys.bytes("record", 4 * KIB..=1024 * KIB, 128 * KIB);
    if !record.is_power_of_two() {
        keys.problem(
            "record",
            "a record must be a power of two",
            "such as `128 KiB`",
        );
    }
    let block = keys.bytes("zil_maxblocksize", 8 * KIB..=128 * KIB, 128 * KIB);
    if !block.is_multiple_of(4 * KIB) {
        keys.problem(
            "zil_maxblocksize",
            "a log block must be a multiple of 4 KiB",
            "such as `128 KiB`",
        );
    }
    let ratio = match keys.has("compression") {
        true => keys.get::<f64>("compression", 1.0..=32.0, 1.0),
        false => 1.0,
    };
    // A record takes whole sectors of 4 KiB.
    let stored = ((record as f64 / ratio / 4096.0).ceil() * 4096.0) as u32;
    let mut config = IntentLogConfig {
        size: 0,
        ram: keys.bytes("ram", 10 << 20..=16 * TIB, 64 * GIB),
        record: record as u32,
        stored: (u64::from(stored) < record).then_some(stored),
        autotrim: autotrim(keys),
        run: keys.bytes("run", 4 * KIB..=16 << 20, 1 << 20) as u32,
        filled: keys.flag("filled", true),
        lanes: keys.count("lanes", 1..=1024, 1) as u16,
        sync: keys.choice("sync", &SyncPolicy::ALL, SyncPolicy::Standard),
        logbias: keys.choice("logbias", &Logbias::ALL, Logbias::Latency),
        slog_bulk: keys.bytes("zil_slog_bulk", 0..=TIB, 64 << 20),
        block: block as u32,
        txg: keys.span(
            "txg",
            Span::from_ms(1)..=Span::from_ms(600_000),
            Span::from_ms(5000),
        ),
        cpu: cpu(&mut keys.section("cpu"), ratio > 1.0),
        scale: LogScale::default(),
    };
    // The default leaves space for rewritten records.
    let most = config.most_bytes(main);
    let size = keys.bytes("size", 4 * KIB..=1024 * TIB, most.max(4 * KIB));
    config.size = size / record * record;
    Kind::IntentLog(config)
}

/// Reads whether freed space is trimmed, and how: names and defaults of OpenZFS's parameters.
fn autotrim(keys: &mut Keys<'_>) -> Option<Autotrim> {
    if !keys.has("autotrim") || !keys.flag("autotrim", false) {
        return None;
    }
    let law = Autotrim {
        groups: keys.count("zfs_trim_txg_batch", 1..=4096, 32) as u32,
        least: keys.bytes("zfs_trim_extent_bytes_min", 4096..=1 << 30, 32 * KIB) as u32,
        in_flight: keys.count("zfs_vdev_trim_max_active", 1..=1000, 2) as u16,
    };
    Some(law)
}

/// Reads the software costs. No source gives them individually. Until they are fitted they are assumed: their sum for
/// a committed 4 KiB write equals published measurements.
fn cpu(keys: &mut Keys<'_>, compresses: bool) -> LogCpu {
    let assumed = |value, source| Fallback {
        value,
        kind: FigureKind::Assumed,
        source,
    };
    let mut span = |key, value, source| {
        keys.figure::<Span>(key, Span::ZERO..=Span::from_ms(10), assumed(value, source))
    };
    let read = span("read", "4 us", "a look-up of the block and of its hash");
    let write = span(
        "write",
        "5 us",
        "a transaction, a look-up and a record of the write to be logged",
    );
    let commit = span(
        "commit",
        "30 us",
        "the list of commits, a task that is woken, and the one that waits",
    );
    let block = span(
        "block",
        "12 us",
        "a log block is allocated, filled and sent under one lock",
    );
    let copy = assumed("8 GB/s", "one core that copies memory");
    // Keys that have no effect are reported as unknown.
    let mut ps = |key, fallback, counts: bool| {
        if !counts {
            return 0;
        }
        let Rate(rate) = keys.rate(key, 1e7..=1e12, fallback);
        (1e12 / rate).round() as u64
    };
    LogCpu {
        read,
        write,
        copy_ps: ps("copy", copy, true),
        commit,
        block,
        compress_ps: ps("compress", assumed("500 MB/s", COMPRESS), compresses),
        decompress_ps: ps("decompress", assumed("2 GB/s", DECOMPRESS), compresses),
    }
}
