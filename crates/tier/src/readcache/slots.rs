//! Slots of a cache: which line is in which slot, the state of each slot, and the selection of a slot to evict.
//!
//! A line is mapped when its slot is chosen, and valid when its data has been written there. A slot with commands in
//! progress is not evicted; if its line has been invalidated, the slot becomes free when they have ended.

use alloc::vec;
use alloc::vec::Vec;

use super::Policy;
use super::order::Order;
use crate::table::SparseTable;

/// State of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// The slot is empty.
    Free,
    /// The line is being read from the main pool.
    Reading,
    /// The line is being written to the slot.
    Writing,
    /// The slot contains its line.
    Valid,
    /// Data on its way to the slot is invalid; the slot becomes free afterwards.
    Dropped,
}

/// The slots of a cache.
#[derive(Clone, Debug)]
pub(super) struct CacheSlots {
    /// The miss at which a line is admitted, and the number of slots in use at and above which that applies; below it,
    /// lines are admitted at the first miss.
    fill_at_miss: (u32, u32),
    /// By line of the main pool: its slot; or, at and above [`MISSED`], its number of misses.
    map: SparseTable,
    /// By slot: its line.
    owner: Vec<u32>,
    state: Vec<Slot>,
    /// By slot: number of commands in progress.
    busy: Vec<u16>,
    order: Order,
    /// Empty slots; and, starting at `fresh`, those that were never used.
    free: Vec<u32>,
    fresh: u32,
}

/// The line of an empty slot.
const NOTHING: u32 = u32::MAX;
/// Values of the map at and above this count misses.
const MISSED: u32 = u32::MAX - 256;
/// Maximum number of slots: a policy may need twice as many positions, and a few more.
const MOST_SLOTS: u64 = (1 << 31) - 16;

impl CacheSlots {
    /// Creates `slots` slots, or the maximum number, for `lines` lines.
    pub(super) fn new(policy: Policy, slots: u64, lines: u64) -> CacheSlots {
        let slots = slots.min(MOST_SLOTS) as u32;
        CacheSlots {
            fill_at_miss: (1, 0),
            map: SparseTable::new(lines),
            owner: vec![NOTHING; slots as usize],
            state: vec![Slot::Free; slots as usize],
            busy: vec![0; slots as usize],
            order: Order::new(policy, slots, lines),
            free: Vec::new(),
            fresh: 0,
        }
    }

    /// Sets the miss at which lines are admitted, while this share of the slots is in use.
    pub(super) fn fill_at(&mut self, miss: u8, from: f64) {
        let slots = libm::ceil(from * self.owner.len() as f64) as u32;
        self.fill_at_miss = (miss.into(), slots);
    }

    /// Returns the miss at which a line is currently admitted.
    pub(super) fn fills_at(&self) -> u32 {
        let (miss, from) = self.fill_at_miss;
        match self.fresh - self.free.len() as u32 >= from {
            true => miss,
            false => 1,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.owner.len()
    }

    /// Whether a line has a slot, whatever the slot's state.
    pub(super) fn knows(&self, line: u64) -> bool {
        self.slot(line).is_some()
    }

    /// Calls `each` for readable slots and their lines, in the order of eviction; at most `most` slots are examined.
    pub(super) fn oldest_first(&self, most: usize, mut each: impl FnMut(u32, u64)) {
        self.order.oldest_first(most, |slot| {
            if self.state[slot as usize] == Slot::Valid {
                each(slot, self.line(slot));
            }
        });
    }

    /// Returns the slot of a line that can be read.
    #[inline]
    pub(super) fn valid(&self, line: u64) -> Option<u32> {
        let slot = self.slot(line)?;
        (self.state[slot as usize] == Slot::Valid).then_some(slot)
    }

    /// Returns the slot that a line is mapped to.
    #[inline]
    fn slot(&self, line: u64) -> Option<u32> {
        self.map.get(line).filter(|&slot| slot < MISSED)
    }

    /// Returns the line of a slot.
    pub(super) fn line(&self, slot: u32) -> u64 {
        u64::from(self.owner[slot as usize])
    }

    /// Records the use of a slot.
    #[inline]
    pub(super) fn used(&mut self, slot: u32) {
        self.order.used(slot);
    }

    /// Starts a command on `lines` slots, beginning with this one.
    pub(super) fn occupy(&mut self, slot: u32, lines: u32) {
        for slot in slot..slot + lines {
            self.busy[slot as usize] += 1;
        }
    }

    /// Ends a command on these slots.
    pub(super) fn leave(&mut self, slot: u32, lines: u32) {
        for slot in slot..slot + lines {
            self.busy[slot as usize] -= 1;
            if self.busy[slot as usize] == 0 && self.state[slot as usize] == Slot::Dropped {
                self.release(slot);
            }
        }
    }

    /// Empties a slot.
    fn release(&mut self, slot: u32) {
        self.state[slot as usize] = Slot::Free;
        self.owner[slot as usize] = NOTHING;
        self.order.forget(slot);
        if !self.order.is_in_turn() {
            self.free.push(slot);
        }
    }

    /// Invalidates a line in the cache, and data on its way there.
    pub(super) fn discard(&mut self, line: u64) {
        let Some(slot) = self.slot(line) else {
            return;
        };
        self.map.clear(line);
        match self.busy[slot as usize] {
            0 => self.release(slot),
            _ => self.state[slot as usize] = Slot::Dropped,
        }
    }

    /// Takes a slot for a line, if one is available: maps the line to it, and counts the command that is about to use
    /// it.
    pub(super) fn take(&mut self, line: u64, state: Slot) -> Option<u32> {
        self.order.wanted(line);
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if (self.fresh as usize) < self.owner.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            let (busy, owner) = (&self.busy, &self.owner);
            let in_use = |slot: u32| busy[slot as usize] > 0;
            let line_of = |slot: u32| u64::from(owner[slot as usize]);
            let slot = self.order.victim(in_use, line_of)?;
            match self.owner[slot as usize] {
                NOTHING => {}
                line => self.map.clear(line.into()),
            }
            slot
        };
        self.owner[slot as usize] = line as u32;
        self.state[slot as usize] = state;
        self.busy[slot as usize] = 1;
        self.map.set(line, slot);
        self.order.filled(slot);
        Some(slot)
    }

    /// Whether a line that is missed now must be admitted; one that is already being filled is not.
    pub(super) fn wanted(&mut self, line: u64) -> bool {
        let seen = match self.map.get(line) {
            Some(known) if known < MISSED => return false,
            Some(count) => count - MISSED + 1,
            None => 1,
        };
        let wanted = seen >= self.fills_at();
        if !wanted {
            self.map.set(line, MISSED + seen);
        }
        wanted
    }

    /// Returns the slot of a line for writing, if no command on it is in progress. Until that is done, the slot is not
    /// read.
    pub(super) fn rewrite(&mut self, line: u64) -> Option<u32> {
        let slot = self.valid(line)?;
        if self.busy[slot as usize] > 0 {
            return None;
        }
        self.state[slot as usize] = Slot::Writing;
        self.busy[slot as usize] = 1;
        self.order.used(slot);
        Some(slot)
    }

    /// The lines of these slots have been read from the main pool. Returns how many, starting with the first, are
    /// consecutive in the cache and on the main pool and must now be written; 0 if the first has been invalidated.
    pub(super) fn arrived(&mut self, slots: &[u32], good: bool) -> u32 {
        let first = slots[0];
        let line = u64::from(self.owner[first as usize]);
        if self.state[first as usize] != Slot::Reading || !good {
            if self.state[first as usize] == Slot::Reading {
                self.discard(line);
            }
            self.leave(first, 1);
            return 0;
        }
        let mut lines = 0;
        for &slot in slots {
            let follows = slot == first + lines
                && self.state[slot as usize] == Slot::Reading
                && u64::from(self.owner[slot as usize]) == line + u64::from(lines);
            if !follows {
                break;
            }
            self.state[slot as usize] = Slot::Writing;
            lines += 1;
        }
        lines
    }

    /// A line that is cached where it was read to has been read. Returns whether the slot contains it.
    pub(super) fn landed(&mut self, slot: u32, good: bool) -> bool {
        let expected = self.state[slot as usize] == Slot::Reading;
        match (expected, good) {
            (true, true) => self.state[slot as usize] = Slot::Valid,
            (true, false) => self.discard(self.line(slot)),
            (false, _) => {}
        }
        self.leave(slot, 1);
        expected && good
    }

    /// A write into slots has ended: they contain their lines, unless these have been invalidated.
    pub(super) fn written(&mut self, slots: core::ops::Range<u32>, good: bool) {
        for slot in slots {
            if self.state[slot as usize] == Slot::Writing {
                match good {
                    true => self.state[slot as usize] = Slot::Valid,
                    false => self.discard(u64::from(self.owner[slot as usize])),
                }
            }
            self.leave(slot, 1);
        }
    }

    /// Invalidates slots that cannot be read.
    pub(super) fn discard_slots(&mut self, slots: core::ops::Range<u32>) {
        for slot in slots {
            if self.state[slot as usize] == Slot::Valid {
                self.discard(u64::from(self.owner[slot as usize]));
            }
        }
    }

    /// No command is in progress any more; the content of the slots is still valid, or not.
    pub(super) fn power_cut(&mut self, survives: bool) {
        self.busy.fill(0);
        self.order.power_cut();
        for slot in 0..self.fresh {
            let state = self.state[slot as usize];
            if state != Slot::Free && (!survives || state != Slot::Valid) {
                if state != Slot::Dropped {
                    self.map.clear(u64::from(self.owner[slot as usize]));
                }
                self.release(slot);
            }
        }
    }
}
