//! A checker of durability: at every moment, each acknowledged block is on the capacity child or in a log.
//!
//! The checker observes the commands to the drives, the completions, and which stripes are in memory. It does not use
//! the tier's own count of free stripes or of the log's space. A stripe that leaves memory has its blocks; a stripe that
//! is taken into memory has none until it is written, because the tier may overwrite it at any time.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use model::device::Device;
use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};

use super::*;
use crate::{AnyTier, Kind, Member, Pool, PoolConfig, Target, TierConfig};
use crate::{Drive, DriveConfig};

const MIB: u64 = 1 << 20;
const LOG: u16 = 1;

/// A capacity of 8 MiB, whose commands take a time of their own, and a log of 8 MiB.
fn pool(config: &LogStructuredConfig, capacity: Span) -> PoolConfig<DriveConfig> {
    let drive = |per_command| {
        DriveConfig::Ram(RamConfig {
            bytes: 8 * MIB,
            per_command,
            picoseconds_per_byte: 100,
        })
    };
    let slice = |member: u16| Target::Slice {
        member,
        base: 0,
        bytes: 8 * MIB,
    };
    let member = |(name, drive): (&str, DriveConfig)| Member {
        name: String::from(name),
        drive,
    };
    let drives = [
        ("capacity", drive(capacity)),
        ("log", drive(Span::from_us(10))),
    ];
    let config = PoolConfig {
        members: drives.into_iter().map(member).collect(),
        tiers: vec![TierConfig {
            name: String::from("esa"),
            kind: Kind::LogStructured(config.clone()),
            children: vec![slice(0), slice(LOG)],
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

/// BlockCopies of the newest acknowledged version of each block.
struct BlockCopies {
    pool: Pool<Drive>,
    now: Time,
    /// Stripe with the block, and bytes of the log with it.
    stripes: BTreeMap<u64, u32>,
    logged: BTreeMap<u64, Range<u64>>,
    in_memory: BTreeSet<u32>,
    /// The last record of a client's write.
    record: Range<u64>,
    /// Stripes that were written before, and how often one of them was taken into memory again.
    used: BTreeSet<u32>,
    reused: u32,
}

impl BlockCopies {
    /// `frees_early`: whether the tier has the planted bug.
    fn new(config: &LogStructuredConfig, capacity: Span, frees_early: bool) -> BlockCopies {
        let pool = pool(config, capacity);
        let members = pool.members.iter();
        let members = members.map(|it| it.drive.build(Precondition::Fresh, 1));
        let mut tiers = pool.build_tiers();
        if let AnyTier::LogStructured(tier) = &mut tiers[0] {
            tier.space.frees_early = frees_early;
        }
        let mut pool = Pool::resume(&pool, members.collect(), tiers, ());
        pool.record();
        let mut copies = BlockCopies {
            pool,
            now: Time::ZERO,
            stripes: BTreeMap::new(),
            logged: BTreeMap::new(),
            in_memory: BTreeSet::new(),
            record: 0..0,
            used: BTreeSet::new(),
            reused: 0,
        };
        if config.filled {
            let per = u64::from(config.per());
            copies.stripes = (0..copies.blocks())
                .map(|it| (it, (it / per) as u32))
                .collect();
        }
        copies
    }

    fn blocks(&self) -> u64 {
        self.pool.capacity().bytes / BLOCK
    }

    fn tier(&self) -> &LogStructured {
        match &self.pool.tiers()[0] {
            AnyTier::LogStructured(tier) => tier,
            _ => unreachable!("the only tier"),
        }
    }

    /// Follows what has changed since the last event.
    fn observe(&mut self) {
        for it in self.pool.recorded() {
            let (from, bytes) = (it.command.offset, u64::from(it.command.bytes));
            if it.member != LOG || it.command.op != Op::Write {
                continue;
            }
            for (block, at) in &self.logged {
                let is_over = from < at.end && at.start < from + bytes;
                assert!(
                    !is_over || self.stripes.contains_key(block),
                    "{:?}: block {block} is only in a part of the log that is overwritten",
                    self.now
                );
            }
            // A block with its header takes two blocks of the log, metadata of a stripe one.
            if bytes == 2 * BLOCK {
                self.record = from..from + bytes;
            }
        }
        let space = &self.tier().space;
        let in_memory = (0..space.stripes()).filter(|&it| space.is_in_memory(it));
        let in_memory: BTreeSet<u32> = in_memory.collect();
        let (mut stripes, mut logged) = (self.stripes.clone(), self.logged.clone());
        for &written in self.in_memory.difference(&in_memory) {
            for block in space.live_blocks(written) {
                stripes.insert(block, written);
                logged.remove(&block);
            }
        }
        for &taken in in_memory.difference(&self.in_memory) {
            stripes.retain(|block, stripe| {
                let is_lost = *stripe == taken && !logged.contains_key(block);
                assert!(
                    !is_lost,
                    "{:?}: block {block} is only in stripe {taken}, which is used again",
                    self.now
                );
                *stripe != taken
            });
            self.reused += u32::from(!self.used.insert(taken));
        }
        (self.stripes, self.logged, self.in_memory) = (stripes, logged, in_memory);
    }

    /// Writes a block and waits until it is acknowledged.
    fn write(&mut self, block: u64) {
        let command = Command::write(0, block * BLOCK, BLOCK as u32);
        self.pool.submit(self.now, command);
        self.observe();
        let mut ended = Vec::new();
        while ended.is_empty() {
            self.now = self.pool.next_event();
            assert_ne!(self.now, Time::NEVER, "block {block} is never acknowledged");
            self.pool.advance(self.now, self.now, &mut ended);
            if !ended.is_empty() {
                assert_eq!(ended[0].status, Status::Success);
                self.stripes.remove(&block);
                self.logged.insert(block, self.record.clone());
            }
            self.observe();
        }
    }
}

/// Writes four times the capacity, and checks the copies at each event.
fn overwrite(config: &LogStructuredConfig, capacity: Span, frees_early: bool) {
    let mut copies = BlockCopies::new(config, capacity, frees_early);
    let blocks = copies.blocks();
    for it in 0..4 * blocks {
        // Scattered, and a quarter of the writes in a fiftieth of the blocks.
        let block = match it % 4 {
            3 => it / 4 * 11 % (blocks / 50),
            _ => it * 7919 % blocks,
        };
        copies.write(block);
    }
    assert!(copies.reused > 100, "{}", copies.reused);
}

fn small(spare: f64, filled: bool) -> LogStructuredConfig {
    LogStructuredConfig {
        stripe: 64 << 10,
        memory: 8 * MIB,
        overhead: spare,
        filled,
        ..LogStructuredConfig::FREE
    }
}

#[test]
fn acknowledged_blocks_are_durable_at_every_moment() {
    for (spare, filled) in [(0.05, true), (0.2, true), (0.2, false)] {
        for capacity in [10, 100, 1000] {
            overwrite(&small(spare, filled), Span::from_us(capacity), false);
        }
    }
}

/// The checker finds a planted bug: cleaned stripes are free as soon as their blocks are in memory.
#[test]
#[should_panic(expected = "which is used again")]
fn a_stripe_that_is_free_too_early_is_found() {
    overwrite(&small(0.05, true), Span::from_us(100), true);
}
