//! Placement: the location of a component's replicas, and the node of its client.
//!
//! Components are distributed over the groups in turn, in rows of one component per group. The distance of a
//! component's other replicas from its first one, in nodes and groups, is equal within a row and increases from row to
//! row. Therefore each pair of nodes shares equally many components, and every group stores equally much. The client's
//! node also advances: over all rows, it is on each node equally often, whether that node has a replica or not. The
//! result equals the mean of random placement policies.

use model::device::Range;

use super::ClusterConfig;
use crate::Child;

/// Parameters of the placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// Number of nodes, and number of simulated nodes.
    nodes: u64,
    here: u64,
    /// Number of groups per node.
    groups: u64,
    replicas: u64,
    component: u64,
    rows: u64,
}

/// Location of a replica.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) replica: u16,
    pub(super) group: Child,
    /// The simulated node.
    pub(super) node: u16,
    /// Whether that is another node than the client's.
    pub(super) remote: bool,
    /// Offset of the component on the group.
    pub(super) base: u64,
}

impl Placement {
    pub(super) fn new(config: &ClusterConfig, children: &[u64]) -> Placement {
        let here = u64::from(config.simulated());
        let smallest = children.iter().copied().min().unwrap_or(0);
        Placement {
            nodes: config.nodes.into(),
            here,
            groups: (children.len() as u64 / here).max(1),
            replicas: config.replicas.into(),
            component: config.component,
            rows: smallest / config.component.max(1) / u64::from(config.replicas.max(1)),
        }
    }

    /// Returns the addressable bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.rows * self.here * self.groups * self.component
    }

    pub(super) fn groups(&self) -> usize {
        self.groups as usize
    }

    /// Returns the distance of a replica from the first one in this row: in nodes, and in groups of the node.
    fn shift(&self, row: u64, replica: u64) -> (u64, u64) {
        match replica {
            0 => (0, 0),
            _ => {
                let others = self.nodes - 1;
                (1 + (row + replica - 1) % others, row / others % self.groups)
            }
        }
    }

    /// Returns row, node and group of a component's first replica.
    fn column(&self, unit: u64) -> (u64, u64, u64) {
        let (row, column) = (
            unit / (self.here * self.groups),
            unit % (self.here * self.groups),
        );
        (row, column % self.here, column / self.here)
    }

    /// Returns the simulated node of a component's client.
    pub(super) fn client(&self, unit: u64) -> u16 {
        let (row, node, _) = self.column(unit);
        ((node + row % self.nodes) % self.here) as u16
    }

    pub(super) fn site(&self, unit: u64, replica: u16) -> Site {
        let (row, node, group) = self.column(unit);
        let (nodes, groups) = self.shift(row, replica.into());
        let (node, group) = ((node + nodes) % self.here, (group + groups) % self.groups);
        Site {
            replica,
            group: (node * self.groups + group) as Child,
            node: node as u16,
            remote: nodes != row % self.nodes,
            base: (row * self.replicas + u64::from(replica)) * self.component,
        }
    }

    /// Returns a site for a whole group, for a client on this node.
    pub(super) fn whole_group(&self, group: Child, client: u16) -> Site {
        let node = group / self.groups as u16;
        Site {
            replica: 0,
            group,
            node,
            remote: node != client,
            base: 0,
        }
    }

    /// Calls `tell` for the parts of the cluster's addresses in a range of a group, with component, replica and range
    /// of each part.
    pub(super) fn components(
        &self,
        group: usize,
        range: Range,
        mut tell: impl FnMut(u64, u16, Range),
    ) {
        let end = range.offset + range.bytes;
        let (node, group) = (group as u64 / self.groups, group as u64 % self.groups);
        for slot in range.offset / self.component..end.div_ceil(self.component) {
            let (row, replica) = (slot / self.replicas, slot % self.replicas);
            if row >= self.rows {
                return;
            }
            let (nodes, groups) = self.shift(row, replica);
            let node = (node + self.nodes * self.here - nodes) % self.here;
            let group = (group + self.groups - groups) % self.groups;
            let unit = row * self.here * self.groups + group * self.here + node;
            let from = range.offset.max(slot * self.component);
            let until = end.min((slot + 1) * self.component);
            let range = Range {
                offset: unit * self.component + (from - slot * self.component),
                bytes: until - from,
            };
            tell(unit, replica as u16, range);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn placement(nodes: u16, fold: u16, groups: usize, replicas: u16) -> Placement {
        let config = ClusterConfig {
            nodes,
            fold,
            replicas,
            component: 4096,
            ..ClusterConfig::FREE
        };
        Placement::new(
            &config,
            &vec![4096 * 600; groups * usize::from(nodes / fold)],
        )
    }

    #[test]
    fn replicas_are_on_different_nodes_fill_every_slot_once_and_are_found_again() {
        for (nodes, groups, replicas) in [(2, 1, 2), (3, 2, 2), (4, 2, 2), (5, 3, 3), (3, 1, 1)] {
            let placement = placement(nodes, 1, groups, replicas);
            let mut taken = vec![false; groups * usize::from(nodes) * 600];
            for unit in 0..placement.bytes() / 4096 {
                let sites: Vec<Site> = (0..replicas).map(|it| placement.site(unit, it)).collect();
                for (index, site) in sites.iter().enumerate() {
                    assert!(sites[..index].iter().all(|it| it.node != site.node));
                    assert_eq!(usize::from(site.group) / groups, usize::from(site.node));
                    assert_eq!(site.remote, site.node != placement.client(unit));
                    let slot = usize::from(site.group) * 600 + (site.base / 4096) as usize;
                    assert!(!core::mem::replace(&mut taken[slot], true));
                    let range = Range {
                        offset: site.base,
                        bytes: 512,
                    };
                    placement.components(site.group.into(), range, |found, replica, range| {
                        assert_eq!((found, replica), (unit, site.replica));
                        assert_eq!(range.offset, unit * 4096);
                    });
                }
            }
            assert!(taken.iter().filter(|it| !**it).count() < usize::from(replicas) * 600);
        }
    }

    #[test]
    fn pairs_of_groups_and_clients_come_equally_often_folded_or_not() {
        for fold in [1, 2, 4] {
            let placement = placement(4, fold, 2, 2);
            let here = 4 / u64::from(fold);
            // 24 rows contain every combination once for each column.
            let units = 0..24 * here * 2;
            let remote = |unit: u64| [0, 1].map(|it| placement.site(unit, it).remote);
            let both = units
                .clone()
                .filter(|&it| remote(it) == [true, true])
                .count();
            let one = units
                .clone()
                .filter(|&it| remote(it) != [true, true])
                .count();
            assert_eq!(both, one);
            let mut reads = vec![0; 2 * here as usize];
            units.for_each(|it| reads[usize::from(placement.site(it, 1).group)] += 1);
            assert_eq!(reads, vec![24; 2 * here as usize]);
        }
    }
}
