//! What a read cache is made of, and what of that is wrong. Sources: with each policy.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::memory::Memory;
use super::slots::Slots;
use super::{Feed, Policy, ReadCache};
use crate::engine::Slab;
use crate::tier::streams::Streams;
use crate::tier::table::Table;
use crate::tier::{Gather, Promise, TierSettings};
use crate::time::Span;

/// What becomes of lines that are written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Writes {
    /// They are written on both, and acknowledged when both have them.
    #[default]
    Through,
    /// They are dropped from the cache.
    Around,
}

impl Writes {
    /// All of them, with the words of files and expressions.
    pub const ALL: [(&str, Writes); 2] = [("through", Writes::Through), ("around", Writes::Around)];
}

/// What a read cache is made of. Its children: the cache, and what it caches.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReadCacheConfig {
    /// Bytes of a line: a power of two, 4 KiB to 1 MiB.
    pub line: u32,
    /// Which line is given up for another.
    pub policy: Policy,
    /// What becomes of lines that are written to.
    pub writes: Writes,
    /// At which miss a line is taken in: 1 is the first; at most 100.
    pub fill_at_miss: u8,
    /// Which share of the cache must be in use for that, 0 to 1: at the first miss before.
    pub fill_from: f64,
    /// Bytes read in order after which a reader passes by the cache, if it does.
    pub sequential_cutoff: Option<u64>,
    /// Whether what it holds is still known after a power cut.
    pub survives_power_cut: bool,
    /// A cache in memory before it, from which alone it is filled, and whose order `policy` is.
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
        let mut slots = Slots::new(policy, children[0] / line, lines);
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
            pending: Table::new(lines),
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

    /// Less memory is fed as much less, more often: at the same rate.
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
                "its line is no power of two from 4 KiB to 1 MiB",
            ));
        }
        if !(1..=100).contains(&self.fill_at_miss) {
            problems.push(String::from(
                "it takes lines in at the 1st to the 100th miss",
            ));
        }
        if !(0.0..=1.0).contains(&self.fill_from) {
            problems.push(String::from("a share of the cache is from 0 to 1"));
        }
        if let Some(feed) = self.feed
            && (feed.memory < self.line.into()
                || feed.every == Span::ZERO
                || feed.most == 0
                || feed.headroom == 0)
        {
            problems.push(String::from(
                "it is fed from memory that holds a line, now and then, with something",
            ));
        }
        match children {
            [cache, main] => {
                if *cache < u64::from(self.line) {
                    problems.push(String::from("its cache does not hold one line"));
                }
                if main / u64::from(self.line.max(1)) > u64::from(u32::MAX) {
                    problems.push(String::from("what it caches has more than 2^32 lines"));
                }
            }
            _ => problems.push(String::from(
                "it stands on two: its cache and what it caches",
            )),
        }
        problems
    }
}
