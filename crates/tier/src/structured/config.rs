//! Settings of log-structured storage, and its durability guarantee.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::space::MOST_SLOTS;
use super::{BLOCK, LogStructured};
use crate::{
    Child, ClusterConfig, DurabilityPoint, Loss, Network, NodeConfig, Promise, TierSettings,
};

/// Minimum bytes of memory, and of all logs together.
const LEAST_BYTES: u64 = 8 << 20;

/// Nodes that share the work, and the network between them.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StructuredNodes {
    /// Number of nodes; with one, nothing crosses the network.
    pub count: u16,
    /// Bytes that cross the network for each byte of the log.
    pub log_crossings: f64,
    /// Bytes that cross the network for each byte of a stripe.
    pub stripe_crossings: f64,
    /// Network between the nodes.
    pub network: Network,
    /// Costs of each node.
    pub node: NodeConfig,
}

/// Settings of log-structured storage. Its children are the capacity, followed by the logs, which are used in turn.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogStructuredConfig {
    /// Bytes of a stripe, which is always written as a whole: a multiple of 4 KiB.
    pub stripe: u32,
    /// Bytes that a block of 4 KiB takes once it is compressed: a multiple of 512, at most 4096.
    pub stored: u32,
    /// Bytes of stripes and writes in memory at which writes wait.
    pub memory: u64,
    /// Maximum bytes of a write to a log.
    pub record: u32,
    /// Maximum number of writes in flight per log.
    pub records_in_flight: u16,
    /// Bytes of metadata that are logged for each stripe.
    pub metadata: u32,
    /// Share of the capacity that is for metadata: it has no stripes.
    pub reserved: f64,
    /// Share of the stripes that clients cannot use: they stay free.
    pub overhead: f64,
    /// Share of free stripes below which stripes with few live blocks are emptied.
    pub clean_from: f64,
    /// Whether all blocks were written in order before the run.
    pub filled: bool,
    /// Picoseconds per byte for compressing written data.
    pub compress_ps: u64,
    /// Picoseconds per byte for decompressing read data.
    pub decompress_ps: u64,
    /// Nodes and their network.
    pub nodes: StructuredNodes,
}

impl LogStructuredConfig {
    /// Stripes of 512 KiB, no compression, one node without costs.
    pub const FREE: LogStructuredConfig = LogStructuredConfig {
        stripe: 512 << 10,
        stored: BLOCK as u32,
        memory: 256 << 20,
        record: 128 << 10,
        records_in_flight: 8,
        metadata: 4096,
        reserved: 0.0,
        overhead: 0.116,
        clean_from: 0.02,
        filled: true,
        compress_ps: 0,
        decompress_ps: 0,
        nodes: StructuredNodes {
            count: 1,
            log_crossings: 1.0,
            stripe_crossings: 1.0,
            network: ClusterConfig::FREE.network,
            node: ClusterConfig::FREE.node,
        },
    };

    /// Returns the slots per stripe.
    pub(super) fn per(&self) -> u32 {
        (self.stripe / self.stored.max(1)).max(1)
    }

    /// Returns the number of stripes on a capacity child of this size.
    pub(super) fn stripes(&self, capacity: u64) -> u32 {
        let most = MOST_SLOTS / u64::from(self.per());
        let capacity = (capacity as f64 * (1.0 - self.reserved)) as u64;
        (capacity / u64::from(self.stripe.max(1))).min(most) as u32
    }

    /// Returns the number of free stripes below which cleaning starts.
    pub(super) fn cleans_below(&self, stripes: u32) -> u32 {
        ((f64::from(stripes) * self.clean_from) as u32).max(super::RESERVED + 2)
    }

    fn own_problems(&self, problems: &mut Vec<String>) {
        if !self.stored.is_multiple_of(512) || !(512..=BLOCK as u32).contains(&self.stored) {
            problems.push(String::from(
                "a stored block must have a multiple of 512 bytes, from 512 to 4096",
            ));
        }
        let stripes = 64 << 10..=16 << 20;
        if !self.stripe.is_multiple_of(4096) || !stripes.contains(&self.stripe) {
            problems.push(String::from(
                "its stripe must have a multiple of 4 KiB, from 64 KiB to 16 MiB",
            ));
        }
        let records = 8 << 10..=1 << 20;
        if !self.record.is_multiple_of(4096) || !records.contains(&self.record) {
            problems.push(String::from(
                "its record must have a multiple of 4 KiB, from 8 KiB to 1 MiB",
            ));
        }
        if self.records_in_flight == 0 || self.nodes.count == 0 || self.nodes.node.cores == 0 {
            problems.push(String::from(
                "it must have at least one node, one core and one log write in flight",
            ));
        }
        if self.memory < LEAST_BYTES.max(4 * u64::from(self.stripe)) {
            problems.push(format!(
                "its memory must have at least {LEAST_BYTES} bytes, and four stripes"
            ));
        }
        let shares = 0.0..0.9;
        if !shares.contains(&self.overhead)
            || !shares.contains(&self.reserved)
            || !(0.0..0.5).contains(&self.clean_from)
        {
            problems.push(String::from(
                "its metadata and its free stripes must be below 90 % each, and cleaning must start below 50 % of free stripes",
            ));
        }
    }
}

impl TierSettings for LogStructuredConfig {
    type Tier = LogStructured;

    fn build(&self, children: &[u64]) -> LogStructured {
        LogStructured::new(self, children)
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        let Some(&capacity) = children.first() else {
            return 0;
        };
        let slots = u64::from(self.stripes(capacity)) * u64::from(self.per());
        (slots as f64 * (1.0 - self.overhead)) as u64 * BLOCK
    }

    /// Acknowledged data is on the capacity child, or in a log and in memory. A crash alone leaves no stripe of the
    /// capacity child half written: stripes that were being written are written again from the log.
    fn promise(&self, children: &[Promise]) -> Promise {
        let capacity = children[0].loss.without_ram();
        let logs: Vec<Loss> = children[1..].iter().map(|log| log.loss.clone()).collect();
        let log_and_ram = Loss::all(vec![Loss::any(logs), Loss::Ram]);
        Promise {
            durable: DurabilityPoint::Acknowledged,
            loss: Loss::any(capacity.into_iter().chain([log_and_ram]).collect()),
        }
    }

    /// The tier works without any of its logs.
    fn does_without(&self, child: Child) -> bool {
        child != 0
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        self.own_problems(&mut problems);
        if !problems.is_empty() {
            return problems;
        }
        let Some((&capacity, logs)) = children.split_first() else {
            problems.push(String::from("it requires a capacity and at least one log"));
            return problems;
        };
        if logs.is_empty() || logs.len() > usize::from(super::MOST_LOGS) {
            problems.push(format!(
                "it requires from 1 to {} logs, not {}",
                super::MOST_LOGS,
                logs.len()
            ));
        }
        // Of each log, as much as the smallest has is used.
        let least = logs.iter().min().map_or(0, |bytes| bytes / BLOCK * BLOCK);
        let used = least.saturating_mul(logs.len() as u64);
        if used < LEAST_BYTES {
            problems.push(format!(
                "its logs have {used} usable bytes, {least} each as the smallest, and need at least {LEAST_BYTES}"
            ));
        }
        let stripes = self.stripes(capacity);
        let used = self.capacity(children).div_ceil(BLOCK);
        let free = u64::from(stripes).saturating_sub(used.div_ceil(u64::from(self.per())));
        let needed = u64::from(self.cleans_below(stripes)) + 2;
        if free < needed || used == 0 {
            problems.push(format!(
                "{free} stripes of {} bytes stay free, and it needs {needed}: a larger capacity or `overhead` has them",
                self.stripe
            ));
        }
        problems
    }

    fn shrink(&mut self, factor: f64) {
        let memory = libm::ceil(self.memory as f64 * factor) as u64;
        let least = LEAST_BYTES.max(4 * u64::from(self.stripe));
        self.memory = memory.max(least).min(self.memory);
    }

    fn idle_watts(&self) -> f64 {
        self.nodes.node.idle_watts * f64::from(self.nodes.count)
    }
}
