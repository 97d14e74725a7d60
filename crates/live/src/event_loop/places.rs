//! The endpoints: a place for each, with its load and whether it has output to send.

use slab::Slab;

use crate::clock::Wall;
use crate::port::{Endpoint, Load};

/// Transferred bytes of a connection at the last check, and the time since which they have not changed.
#[derive(Clone, Copy, Debug, Default)]
struct TransferProgress {
    bytes: u64,
    since: Wall,
}

/// Place of one endpoint.
#[derive(Default)]
pub(super) struct EndpointSlot {
    /// `None` after the endpoint has ended: its commands still complete, and the replies must not reach another
    /// endpoint.
    pub(super) endpoint: Option<Box<dyn Endpoint>>,
    pub(super) load: Load,
    /// Whether it has output to send.
    pub(super) dirty: bool,
    pub(super) polls: bool,
    pub(super) name: String,
    moved: TransferProgress,
}

impl EndpointSlot {
    /// Returns the time since which no byte has been received from or sent to its client, according to the checks.
    pub(super) fn still_since(&mut self, now: Wall) -> Wall {
        if self.moved.bytes != self.load.moved {
            self.moved = TransferProgress {
                bytes: self.load.moved,
                since: now,
            };
        }
        self.moved.since
    }
}

/// Places by number.
#[derive(Default)]
pub(super) struct EndpointTable {
    table: Slab<EndpointSlot>,
    /// Numbers of endpoints that ended in this turn, which may be reused in the next.
    ended: Vec<u32>,
    /// Bytes in flight over all endpoints.
    pub(super) held: u64,
    polling: Vec<u32>,
    dirty: Vec<u32>,
}

impl EndpointTable {
    /// Adds an endpoint and returns its number.
    pub(super) fn add(&mut self, name: String, endpoint: Box<dyn Endpoint>) -> u32 {
        let polls = endpoint.polls();
        let place = EndpointSlot {
            endpoint: Some(endpoint),
            polls,
            name,
            ..EndpointSlot::default()
        };
        let id = self.table.insert(place) as u32;
        if polls {
            self.polling.push(id);
        }
        id
    }

    /// Begins a new turn of the loop: releases the numbers of endpoints that ended in the last.
    pub(super) fn begin_turn(&mut self) {
        for id in self.ended.drain(..) {
            self.table.remove(id as usize);
        }
    }

    /// Returns the number of endpoints, including those that ended in this turn.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the bound of numbers: every endpoint's number is below it.
    pub(super) fn numbers(&self) -> u32 {
        self.table
            .iter()
            .next_back()
            .map_or(0, |(id, _)| id as u32 + 1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut EndpointSlot> {
        self.table.get_mut(id as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut EndpointSlot)> {
        self.table.iter_mut().map(|(id, place)| (id as u32, place))
    }

    /// Records the completion of a command of this size. Returns whether its endpoint still exists.
    #[inline]
    pub(super) fn answered(&mut self, id: u32, bytes: u32) -> bool {
        let Some(place) = self.table.get_mut(id as usize) else {
            return false;
        };
        place.load.commands = place.load.commands.saturating_sub(1);
        place.load.bytes = place.load.bytes.saturating_sub(bytes.into());
        self.held = self.held.saturating_sub(bytes.into());
        if place.endpoint.is_none() && place.load.commands == 0 {
            self.ended.push(id);
        }
        place.endpoint.is_some()
    }

    /// Marks an endpoint that has, or may have, output to send.
    #[inline]
    pub(super) fn mark(&mut self, id: u32) {
        if let Some(place) = self.table.get_mut(id as usize)
            && !std::mem::replace(&mut place.dirty, true)
        {
            self.dirty.push(id);
        }
    }

    pub(super) fn any_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the list of endpoints with output; pass the list to [`EndpointTable::keep`] after sending.
    pub(super) fn take_dirty(&mut self) -> Vec<u32> {
        let dirty = std::mem::take(&mut self.dirty);
        for &id in &dirty {
            if let Some(place) = self.table.get_mut(id as usize) {
                place.dirty = false;
            }
        }
        dirty
    }

    /// Keeps the memory of a list. Endpoints with new output meanwhile are sent in the next round.
    pub(super) fn keep(&mut self, mut list: Vec<u32>) {
        list.clear();
        list.append(&mut self.dirty);
        self.dirty = list;
    }

    /// Checks whether any endpoint polls for work that no descriptor announces.
    pub(super) fn any_polling(&self) -> bool {
        !self.polling.is_empty()
    }

    /// Returns the polling endpoint with this index.
    #[inline]
    pub(super) fn polling(&self, index: usize) -> Option<u32> {
        self.polling.get(index).copied()
    }

    /// Ends an endpoint and returns its name.
    pub(super) fn end(&mut self, id: u32) -> String {
        let place = &mut self.table[id as usize];
        place.endpoint = None;
        self.held = self.held.saturating_sub(place.load.give_up());
        if std::mem::take(&mut place.polls) {
            self.polling.retain(|&other| other != id);
        }
        if place.load.commands == 0 {
            self.ended.push(id);
        }
        std::mem::take(&mut place.name)
    }
}
