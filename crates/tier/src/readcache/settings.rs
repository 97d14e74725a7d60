//! Settings of a read cache, and their validation. Sources: with each policy.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use model::engine::Slab;
use model::time::Span;

use super::memory::Memory;
use super::slots::CacheSlots;
use super::{Feed, Policy, ReadCache};
use crate::streams::Streams;
use crate::table::SparseTable;
use crate::{Gather, Promise, TierSettings};

/// Handling of lines that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Writes {
    /// They are written to both, and acknowledged when both have them.
    #[default]
    Through,
    /// They are dropped from the cache.
    Around,
}

impl Writes {
    /// All settings, with their words in files and expressions.
    pub const ALL: [(&str, Writes); 2] = [("through", Writes::Through), ("around", Writes::Around)];
}

/// Settings of a read cache. Its children: the cache, and the cached main pool.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReadCacheConfig {
    /// Bytes per line: a power of two, 4 KiB to 1 MiB.
    pub line: u32,
    /// Eviction policy.
    pub policy: Policy,
    /// Handling of lines that are written.
    pub writes: Writes,
    /// The miss at which a line is admitted: 1 is the first; at most 100.
    pub fill_at_miss: u8,
    /// Share of the cache in use above which `fill_at_miss` applies, 0 to 1; below it, lines are admitted at the first
    /// miss.
    pub fill_from: f64,
    /// Sequential bytes after which a reader bypasses the cache; `None` for never.
    pub sequential_cutoff: Option<u64>,
    /// Whether the content of the cache is still valid after a power cut.
    pub survives_power_cut: bool,
    /// A memory cache in front of it, the only source that fills it; `policy` is then the order of the memory.
    pub feed: Option<Feed>,
}

impl TierSettings for ReadCacheConfig {
    type Tier = ReadCache;

    fn build(&self, children: &[u64]) -> ReadCache {
        let line = u64::from(self.line);
        let bytes = self.capacity(children);
        let lines = bytes.div_ceil(line);
        let policy = match self.feed {
            Some(_) => Policy::Ring,
            None => self.policy,
        };
        let mut slots = CacheSlots::new(policy, children[0] / line, lines);
        slots.fill_at(self.fill_at_miss, self.fill_from);
        let memory = |feed| Box::new(Memory::new(feed, self.policy, line, lines));
        ReadCache {
            line,
            writes: self.writes,
            cutoff: self.sequential_cutoff.unwrap_or(u64::MAX),
            survives: self.survives_power_cut,
            bytes,
            slots,
            memory: self.feed.map(memory),
            streams: Streams::default(),
            requests: Gather::default(),
            pieces: Slab::default(),
            fills: Slab::default(),
            spare: Vec::new(),
            tried: Slab::default(),
            pending: SparseTable::new(lines),
            hit: 0,
            missed: 0,
        }
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        children.get(1).copied().unwrap_or(0)
    }

    fn promise(&self, children: &[Promise]) -> Promise {
        children[1].clone()
    }

    /// If there is less memory, less is fed at a time, but more often: the rate is unchanged.
    fn shrink(&mut self, factor: f64) {
        if let Some(feed) = &mut self.feed {
            let smaller = |bytes: u64| {
                let line = u64::from(self.line);
                (libm::ceil(bytes as f64 * factor) as u64).max(line)
            };
            let most = smaller(feed.most);
            feed.every = feed.every.scale(most as f64 / feed.most as f64);
            (feed.memory, feed.most) = (smaller(feed.memory), most);
        }
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.line.is_power_of_two() || !(4096..=1 << 20).contains(&self.line) {
            problems.push(String::from(
                "its line must be a power of two from 4 KiB to 1 MiB",
            ));
        }
        if !(1..=100).contains(&self.fill_at_miss) {
            problems.push(String::from(
                "it must admit a line at the 1st to the 100th miss",
            ));
        }
        if !(0.0..=1.0).contains(&self.fill_from) {
            problems.push(String::from("a share of the cache must be from 0 to 1"));
        }
        if let Some(feed) = self.feed
            && (feed.memory < self.line.into()
                || feed.every == Span::ZERO
                || feed.most == 0
                || feed.headroom == 0)
        {
            problems.push(String::from(
                "its feeder requires a memory of at least one line, an interval and an amount above zero",
            ));
        }
        match children {
            [cache, main] => {
                if *cache < u64::from(self.line) {
                    problems.push(String::from("its cache must hold at least one line"));
                }
                if main / u64::from(self.line.max(1)) > u64::from(u32::MAX) {
                    problems.push(String::from("the main pool must have at most 2^32 lines"));
                }
            }
            _ => problems.push(String::from(
                "it requires two children: its cache and the main pool",
            )),
        }
        problems
    }
}
