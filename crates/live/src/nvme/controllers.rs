//! The controllers of a subsystem: one for each host that has connected an admin queue.

use super::controller::{Controller, Features};

/// Controllers by their identifiers less one.
#[derive(Debug)]
pub(super) struct Controllers {
    table: Vec<Option<Box<Controller>>>,
    /// The last host of each controller.
    hosts: Vec<([u8; 16], String)>,
    next: usize,
    /// Number of controllers that have been created.
    created: u32,
}

impl Controllers {
    /// Returns a table for at most `most` controllers.
    pub(super) fn new(most: u16) -> Controllers {
        let mut table = Vec::new();
        table.resize_with(usize::from(most), || None);
        Controllers {
            hosts: vec![Default::default(); table.len()],
            table,
            next: 0,
            created: 0,
        }
    }

    /// Creates a controller for a host; `None` if there are too many. A host that reconnects gets its previous
    /// identifier, unless another host uses it; otherwise identifiers are reused as late as possible. `attached`: the
    /// attached namespaces.
    pub(super) fn create(
        &mut self,
        discovery: bool,
        defaults: Features,
        host_id: [u8; 16],
        host_nqn: &str,
        attached: u128,
    ) -> Option<&mut Controller> {
        let count = self.table.len();
        let free = |index: &usize| self.table[*index].is_none();
        let again = (0..count)
            .filter(free)
            .find(|&index| self.hosts[index].0 == host_id && self.hosts[index].1 == host_nqn);
        let index = match again {
            Some(index) => index,
            None => {
                let index = (0..count)
                    .map(|step| (self.next + step) % count)
                    .find(free)?;
                self.next = index + 1;
                index
            }
        };
        self.hosts[index] = (host_id, host_nqn.to_owned());
        self.created += 1;
        let mut fresh = Box::new(Controller::new(index as u16 + 1, discovery, defaults));
        fresh.life = u64::from(self.created) << 32;
        fresh.host_id = host_id;
        host_nqn.clone_into(&mut fresh.host_nqn);
        fresh.attached = attached;
        Some(self.table[index].insert(fresh))
    }

    /// Returns the controller with this identifier.
    #[inline]
    pub(super) fn get(&mut self, id: u16) -> Option<&mut Controller> {
        self.table
            .get_mut(usize::from(id).wrapping_sub(1))?
            .as_deref_mut()
    }

    /// Removes the controller `id`; an unknown `id` is ignored.
    pub(super) fn remove(&mut self, id: u16) {
        if let Some(place) = self.table.get_mut(usize::from(id).wrapping_sub(1)) {
            *place = None;
        }
    }

    /// Returns all controllers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.table.iter_mut().flatten().map(|it| &mut **it)
    }

    /// Returns the number of connected controllers.
    pub(super) fn connected(&self) -> usize {
        self.table.iter().flatten().count()
    }
}
