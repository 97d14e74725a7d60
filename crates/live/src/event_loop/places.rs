//! The endpoints: a place for each, what it has under way, and whether it has something to send.

use slab::Slab;

use crate::clock::Wall;
use crate::port::{Endpoint, Load};

/// How far a connection had come when it was looked at, and since when it has not gone on.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    bytes: u64,
    since: Wall,
}

/// One endpoint's place.
#[derive(Default)]
pub(super) struct Place {
    /// None once it has ended: replies to its commands are still to come, and must not reach another.
    pub(super) endpoint: Option<Box<dyn Endpoint>>,
    pub(super) load: Load,
    /// Has something to send.
    pub(super) dirty: bool,
    pub(super) polls: bool,
    pub(super) name: String,
    moved: Moved,
}

impl Place {
    /// Since when not a byte has come from its client or gone to it, as far as that was looked at.
    pub(super) fn still_since(&mut self, now: Wall) -> Wall {
        if self.moved.bytes != self.load.moved {
            self.moved = Moved {
                bytes: self.load.moved,
                since: now,
            };
        }
        self.moved.since
    }
}

/// All of them, by their numbers.
#[derive(Default)]
pub(super) struct Places {
    table: Slab<Place>,
    /// Ended in this turn: their numbers may be used again in the next.
    ended: Vec<u32>,
    /// Bytes that all endpoints together have in flight.
    pub(super) held: u64,
    polling: Vec<u32>,
    dirty: Vec<u32>,
}

impl Places {
    /// A place for an endpoint: its number.
    pub(super) fn add(&mut self, name: String, endpoint: Box<dyn Endpoint>) -> u32 {
        let polls = endpoint.polls();
        let place = Place {
            endpoint: Some(endpoint),
            polls,
            name,
            ..Place::default()
        };
        let id = self.table.insert(place) as u32;
        if polls {
            self.polling.push(id);
        }
        id
    }

    /// A new turn of the loop: the numbers of those that ended in the last are free.
    pub(super) fn begin_turn(&mut self) {
        for id in self.ended.drain(..) {
            self.table.remove(id as usize);
        }
    }

    /// How many there are, those that ended in this turn too.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The numbers that are or were in use: every endpoint's is below this.
    pub(super) fn numbers(&self) -> u32 {
        self.table
            .iter()
            .next_back()
            .map_or(0, |(id, _)| id as u32 + 1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Place> {
        self.table.get_mut(id as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Place)> {
        self.table.iter_mut().map(|(id, place)| (id as u32, place))
    }

    /// A command of so many bytes has been answered; whether its endpoint is still there to hear of it.
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

    /// It has something to send, or may have.
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

    /// Those that have something to send; give the list back to [`Places::keep`] when they have sent it.
    pub(super) fn take_dirty(&mut self) -> Vec<u32> {
        let dirty = std::mem::take(&mut self.dirty);
        for &id in &dirty {
            if let Some(place) = self.table.get_mut(id as usize) {
                place.dirty = false;
            }
        }
        dirty
    }

    /// Keeps the memory of a list. Those that had something new to send meanwhile come in the next round.
    pub(super) fn keep(&mut self, mut list: Vec<u32>) {
        list.clear();
        list.append(&mut self.dirty);
        self.dirty = list;
    }

    /// Whether some look for work that no descriptor announces.
    pub(super) fn any_polling(&self) -> bool {
        !self.polling.is_empty()
    }

    /// The one of this index among those that do.
    #[inline]
    pub(super) fn polling(&self, index: usize) -> Option<u32> {
        self.polling.get(index).copied()
    }

    /// An endpoint ends: its name.
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
