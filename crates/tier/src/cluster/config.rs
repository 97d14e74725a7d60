//! Settings of a cluster, and its durability guarantee.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use model::time::Span;

use super::Cluster;
use super::placement::Placement;
use crate::Reads;
use crate::{DurabilityPoint, Loss, Promise, TierSettings};

/// Maximum number of nodes.
const MOST_NODES: u16 = 64;
/// Maximum number of replicas: vSAN tolerates at most three failures with mirrors.
const MOST_REPLICAS: u16 = 4;

/// Network between nodes.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Network {
    /// Time per byte at a port, in each direction.
    pub ps_per_byte: u64,
    /// Additional delay from one node to another.
    pub delay: Span,
    /// CPU time per message at the node that receives it.
    pub message: Span,
}

/// CPU time and power of a node, without its drives.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeConfig {
    /// Number of cores that work for the cluster; at least one.
    pub cores: u16,
    /// CPU time of the client's node per command.
    pub client: Span,
    /// CPU time of the owner per command; the owner is on the client's node, too.
    pub owner: Span,
    /// CPU time of a replica's node per piece.
    pub store: Span,
    /// CPU time of the client's node per byte: checksum and copying.
    pub ps_per_byte: u64,
    /// Idle power in watts.
    pub idle_watts: f64,
    /// Additional watts per busy core.
    pub core_watts: f64,
}

impl NodeConfig {
    pub(crate) fn data(&self, bytes: u64) -> Span {
        Span::per_bytes(self.ps_per_byte, bytes)
    }
}

/// Settings of a cluster. Its children are the groups, node by node, with an equal number in each.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClusterConfig {
    /// Number of nodes.
    pub nodes: u16,
    /// Number of nodes that each simulated node represents: a divisor of the number of nodes.
    pub fold: u16,
    /// Number of nodes on which each component is stored.
    pub replicas: u16,
    /// Bytes per component, the unit of placement: a multiple of 4096.
    pub component: u64,
    /// Policy for selecting the replica to read.
    pub reads: Reads,
    /// Network between nodes.
    pub network: Network,
    /// Costs of each node.
    pub node: NodeConfig,
}

/// Minimum component size when the tier is scaled down.
const SMALL_COMPONENT: u64 = 4 << 20;

impl ClusterConfig {
    /// Two nodes, two replicas, and no costs.
    pub const FREE: ClusterConfig = ClusterConfig {
        nodes: 2,
        fold: 1,
        replicas: 2,
        component: 1 << 30,
        reads: Reads::Address,
        network: Network {
            ps_per_byte: 0,
            delay: Span::ZERO,
            message: Span::ZERO,
        },
        node: NodeConfig {
            cores: 1,
            client: Span::ZERO,
            owner: Span::ZERO,
            store: Span::ZERO,
            ps_per_byte: 0,
            idle_watts: 0.0,
            core_watts: 0.0,
        },
    };

    /// Returns the number of simulated nodes.
    pub fn simulated(&self) -> u16 {
        (self.nodes / self.fold.max(1)).max(1)
    }

    /// Returns the durability guarantee as a short text: all nodes are equal.
    pub fn promise_words(&self, durable: DurabilityPoint) -> String {
        let what = match self.replicas {
            1 => String::from("a group dies"),
            2 => String::from("groups of two nodes that share an object die"),
            count => format!("groups of {count} nodes that share an object die"),
        };
        format!("{}, lost if {what}", durable.words())
    }

    /// Returns the effect of a fault of one node in a run, if fewer nodes are simulated than exist.
    pub fn fold_fault_words(&self) -> Option<String> {
        (self.fold > 1).then(|| {
            format!(
                "{} of {} nodes are simulated and represent all. A fault of a node's drive therefore affects the same drive of {} nodes at \
                 once, and can lose data that a fault of one node would not; with fold=1 it affects one node",
                self.simulated(),
                self.nodes,
                self.fold
            )
        })
    }

    /// Returns the limits of the results of a run, if fewer nodes are simulated than exist.
    pub fn fold_words(&self) -> Option<String> {
        (self.fold > 1).then(|| {
            format!(
                "{} of {} nodes simulated, for all: capacity, IOPS, MB/s and watts are 1/{fold} of the cluster's, and so is the load to be given",
                self.simulated(),
                self.nodes,
                fold = self.fold
            )
        })
    }
}

impl TierSettings for ClusterConfig {
    type Tier = Cluster;

    fn build(&self, children: &[u64]) -> Cluster {
        Cluster::new(self, children)
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        Placement::new(self, children).bytes()
    }

    /// Any two nodes share components: data is lost when as many nodes have lost a group as there are replicas. With
    /// `fold`, a simulated node represents several nodes, and its faults affect all of them.
    fn promise(&self, children: &[Promise]) -> Promise {
        let groups = (children.len() / usize::from(self.simulated())).max(1);
        let nodes = children
            .chunks(groups)
            .map(|groups| Promise::joined(groups, 1));
        let nodes: Vec<Promise> = nodes.collect();
        let all = (0..self.fold.max(1)).flat_map(|_| nodes.iter().map(|it| it.loss.clone()));
        let durable = Promise::joined(&nodes, 1).durable;
        Promise {
            durable,
            loss: Loss::out_of(self.replicas, all.collect()),
        }
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if self.nodes == 0 || self.nodes > MOST_NODES {
            problems.push(format!("a cluster must have 1 to {MOST_NODES} nodes"));
        }
        if self.fold == 0 || !self.nodes.is_multiple_of(self.fold.max(1)) {
            problems.push(format!(
                "its fold of {} does not divide its {} nodes",
                self.fold, self.nodes
            ));
        }
        if self.replicas == 0 || self.replicas > self.nodes.min(MOST_REPLICAS) {
            problems.push(format!(
                "replicas are on different nodes, and at most {MOST_REPLICAS}: there are not {} of them on {}",
                self.replicas, self.nodes
            ));
        }
        if self.component == 0 || !self.component.is_multiple_of(4096) {
            problems.push(String::from("its component must be a multiple of 4 KiB"));
        }
        if self.node.cores == 0 {
            problems.push(String::from("a node must have at least one core"));
        }
        if children.is_empty() || !children.len().is_multiple_of(usize::from(self.simulated())) {
            problems.push(format!(
                "its {} groups are not as many on each of {} nodes",
                children.len(),
                self.simulated()
            ));
        }
        if problems.is_empty() && self.capacity(children) == 0 {
            problems.push(String::from(
                "a group is too small for a component of each replica",
            ));
        }
        problems
    }

    fn shrink(&mut self, factor: f64) {
        let wanted = libm::ceil(self.component as f64 * factor) as u64;
        let least = SMALL_COMPONENT.min(self.component);
        self.component = wanted.max(least).next_multiple_of(4096);
    }

    /// Power of all simulated nodes.
    fn idle_watts(&self) -> f64 {
        self.node.idle_watts * f64::from(self.simulated())
    }
}
