//! `kind = "log-structured"`: writes go to `log`, and to `capacity` in full stripes.
//!
//! The defaults are those of vSAN's Express Storage Architecture (ESA). Its design is published by VMware and Broadcom;
//! costs and sizes of its software are not, so they are assumed, with a range.

use tier::{Kind as Tier, LogStructuredConfig, StructuredNodes};

use super::cluster::{network, node};
use super::keys::{Fallback, Keys};
use super::{KindReader, TierReader};
use crate::FigureKind;
use text::quantity::{Rate, Share};

pub(super) const READER: KindReader = KindReader {
    word: "log-structured",
    read,
};

const MOST_NODES: u64 = 64;

/// Bytes of a block before compression, and the unit of compressed blocks.
const BLOCK: f64 = 4096.0;
const SECTOR: f64 = 512.0;

const LFS: &str = "Broadcom KB 394410 (15 April 2025): the log-structured file system takes about 13.1 % of an object and its replicas, 11.6 % of both together";
const SPARE: &str = "free stripes for new data: 5 to 30 %; not published";
const CLEANS: &str =
    "share of free stripes below which stripes are emptied: 1 to 10 %; not published";

fn read(tier: &mut TierReader<'_, '_>) -> Tier {
    tier.children("capacity", 1..=1);
    tier.children("log", 1..=32);
    let keys = &mut tier.keys;
    let free = LogStructuredConfig::FREE;
    let size = |keys: &mut Keys<'_>, key: &str, range, default: u32| {
        let bytes = keys.bytes(key, range, default.into());
        if !bytes.is_multiple_of(4096) {
            keys.problem(key, "its units are of 4 KiB", "write a multiple of `4 KiB`");
        }
        bytes as u32
    };
    let overhead = Fallback {
        kind: FigureKind::Spec,
        ..Fallback::assumed("11.6 %", LFS)
    };
    let mut share = |key, fallback| {
        let Share(share) = keys.figure(key, Share(0.0)..=Share(0.5), fallback);
        share
    };
    let overhead = share("overhead", overhead);
    let spare = share("spare", Fallback::assumed("10 %", SPARE));
    let clean_from = share("clean_from", Fallback::assumed("2 %", CLEANS)).min(0.49);
    let (stored, compress_ps, decompress_ps) = compression(keys);
    Tier::LogStructured(LogStructuredConfig {
        stripe: size(keys, "stripe", 64 << 10..=16 << 20, free.stripe),
        stored,
        memory: keys.bytes("memory", 8 << 20..=1 << 40, free.memory),
        record: size(keys, "record", 8 << 10..=1 << 20, free.record),
        records_in_flight: keys.count("records_in_flight", 1..=1024, 8) as u16,
        metadata: size(keys, "metadata", 0..=128 << 10, free.metadata),
        reserved: overhead,
        overhead: spare,
        clean_from,
        filled: keys.flag("filled", true),
        compress_ps,
        decompress_ps,
        nodes: nodes(keys),
    })
}

/// Reads the compression ratio and its CPU time: bytes of a stored block, and picoseconds per byte for compressing and
/// decompressing.
fn compression(keys: &mut Keys<'_>) -> (u32, u64, u64) {
    let ratio = keys.get::<f64>("compression", 1.0..=8.0, 1.0);
    let stored = (BLOCK / ratio / SECTOR).ceil() * SECTOR;
    // Keys that have no effect are reported as unknown.
    if ratio == 1.0 {
        return (stored as u32, 0, 0);
    }
    let mut rate = |key, value, source| {
        let Rate(rate) = keys.rate(key, 1e7..=1e12, Fallback::assumed(value, source));
        (1e12 / rate).round() as u64
    };
    let compress = rate(
        "compress",
        "500 MB/s",
        "LZ4 on one core: its README says above 500 MB/s; 0.3 to 0.8 GB/s",
    );
    let decompress = rate(
        "decompress",
        "2 GB/s",
        "LZ4 on one core: its README says several GB/s; 1 to 4 GB/s",
    );
    (stored as u32, compress, decompress)
}

/// Reads the nodes. A single node has no network, and takes no CPU time unless `node` says so.
fn nodes(keys: &mut Keys<'_>) -> StructuredNodes {
    let count = keys.count("nodes", 1..=MOST_NODES, 1);
    let free = LogStructuredConfig::FREE.nodes;
    if count == 1 && !keys.has("node") {
        return free;
    }
    let log_crossings = keys.get::<f64>("log_crossings", 1.0..=4.0, 2.0);
    let stripe_crossings = keys.get::<f64>("stripe_crossings", 1.0..=4.0, 1.25);
    StructuredNodes {
        count: count as u16,
        log_crossings,
        stripe_crossings,
        network: network(&mut keys.section("network")),
        node: node(&mut keys.section("node")),
    }
}
