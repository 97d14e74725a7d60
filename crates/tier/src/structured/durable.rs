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

use super::trip::TripPurpose;
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
            memory_bus: None,
            spread: 0.0,
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
    /// Part of the log with the newest record of each block.
    records: BTreeMap<u64, Range<u64>>,
    /// Writes that are not completed, and the number of writes so far.
    outstanding: BTreeMap<u32, Range<u64>>,
    count: u32,
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
            records: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            count: 0,
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

    /// Finds the part of the log that gets each block: the records in flight.
    fn find_records(&mut self) {
        let mut trips = self.tier().trips.clone();
        for trip in trips.all_mut() {
            let TripPurpose::Record { requests, .. } = &trip.what else {
                continue;
            };
            let record = trip.offset..trip.offset + trip.bytes;
            for &request in requests {
                let command = self.tier().requests[request].command;
                for block in LogStructured::blocks(&command).0 {
                    self.records.insert(block, record.clone());
                }
            }
        }
    }

    /// Checks that writes to the log overwrite no record that is still needed.
    fn observe_log(&mut self) {
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
        }
    }

    /// Follows what has changed since the last event.
    fn observe(&mut self) {
        self.find_records();
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
        (self.stripes, self.logged) = (stripes, logged);
        self.observe_log();
        let (mut stripes, logged) = (self.stripes.clone(), &self.logged);
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
        (self.stripes, self.in_memory) = (stripes, in_memory);
    }

    /// Submits a write of these blocks, unless an outstanding write has one of them.
    fn submit(&mut self, blocks: Range<u64>) {
        let is_shared = |it: &Range<u64>| it.start < blocks.end && blocks.start < it.end;
        if self.outstanding.values().any(is_shared) {
            return;
        }
        let bytes = (blocks.end - blocks.start) * BLOCK;
        let command = Command::write(self.count, blocks.start * BLOCK, bytes as u32);
        self.outstanding.insert(self.count, blocks);
        self.count += 1;
        self.pool.submit(self.now, command);
        self.observe();
    }

    /// Advances until at most `most` writes are outstanding.
    fn wait(&mut self, most: usize) {
        let mut ended = Vec::new();
        while self.outstanding.len() > most {
            self.now = self.pool.next_event();
            assert_ne!(
                self.now,
                Time::NEVER,
                "writes {:?} are never acknowledged",
                self.outstanding
            );
            self.pool.advance(self.now, self.now, &mut ended);
            for it in ended.drain(..) {
                self.acknowledged(it);
            }
            self.observe();
        }
    }

    /// An acknowledged write is in the log and in stripes in memory.
    fn acknowledged(&mut self, it: Completion) {
        let number = self.count;
        let blocks = self
            .outstanding
            .remove(&it.id)
            .expect("an outstanding write");
        assert_eq!(it.status, Status::Success, "after {number} writes");
        for block in blocks {
            let space = &self.tier().space;
            let slot = space.slot(block).map(|slot| space.stripe_of(slot));
            assert!(
                slot.is_some_and(|stripe| space.is_in_memory(stripe)),
                "{:?}: block {block} is acknowledged and in no stripe",
                self.now
            );
            self.stripes.remove(&block);
            self.logged.insert(block, self.records[&block].clone());
        }
    }
}

/// Writes: the maximum number of outstanding ones, and the blocks of each.
#[derive(Clone, Copy)]
struct WriteLoad {
    depth: usize,
    blocks: u64,
}

/// One outstanding write of one block.
const QD1: WriteLoad = WriteLoad {
    depth: 1,
    blocks: 1,
};

/// Writes four times the capacity, and checks the copies at each event.
fn overwrite(config: &LogStructuredConfig, capacity: Span, load: WriteLoad, frees_early: bool) {
    let mut copies = BlockCopies::new(config, capacity, frees_early);
    let places = copies.blocks() / load.blocks;
    for it in 0..4 * places {
        // Scattered, and a quarter of the writes in a fiftieth of the blocks.
        let place = match it % 4 {
            3 => it / 4 * 11 % (places / 50).max(1),
            _ => it * 7919 % places,
        };
        let first = place * load.blocks;
        copies.submit(first..first + load.blocks);
        copies.wait(load.depth - 1);
    }
    copies.wait(0);
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
            overwrite(&small(spare, filled), Span::from_us(capacity), QD1, false);
        }
    }
}

/// Cleanings in flight and admitted writes must not take the same free stripes.
#[test]
fn outstanding_writes_always_find_a_stripe() {
    for spare in [0.05, 0.1, 0.2] {
        for (depth, blocks) in [(4, 1), (16, 4), (64, 1)] {
            for capacity in [10, 1000] {
                let load = WriteLoad { depth, blocks };
                overwrite(&small(spare, true), Span::from_us(capacity), load, false);
            }
        }
    }
}

/// The checker finds a planted bug: cleaned stripes are free as soon as their blocks are in memory.
#[test]
#[should_panic(expected = "which is used again")]
fn a_stripe_that_is_free_too_early_is_found() {
    overwrite(&small(0.05, true), Span::from_us(100), QD1, true);
}
