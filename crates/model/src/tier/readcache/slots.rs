//! What a cache holds: which line is in which slot, what goes on there, and which slot is given up for another line.
//!
//! A line is mapped when its slot is chosen, and valid when its data have been written there. A slot in which something goes
//! on is not given up; if its line has become worthless it is free when that has ended.

use alloc::vec;
use alloc::vec::Vec;

use super::Policy;
use super::order::Order;
use crate::tier::table::Table;

/// What goes on in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// It holds nothing.
    Free,
    /// Its line is being read from main.
    Reading,
    /// Its line is being written to it.
    Writing,
    /// It holds its line.
    Valid,
    /// What is on its way to it is worthless; then it is free.
    Dropped,
}

/// The slots of a cache.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// At which miss a line is taken in, while at least so many slots are in use; at the first before.
    fill_at_miss: (u32, u32),
    /// By line of main: its slot; or, from [`MISSED`] on, how often it was missed.
    map: Table,
    /// By slot: its line.
    owner: Vec<u32>,
    state: Vec<Slot>,
    /// By slot: how much goes on in it.
    busy: Vec<u16>,
    order: Order,
    /// Slots that hold nothing; and, from `fresh` on, those that never did.
    free: Vec<u32>,
    fresh: u32,
}

/// The line of a slot that holds none.
const NOTHING: u32 = u32::MAX;
/// Values of the map from here on count misses.
const MISSED: u32 = u32::MAX - 256;
/// Most slots: an order may have as many places again, and a few.
const MOST_SLOTS: u64 = (1 << 31) - 16;

impl Slots {
    /// So many slots, or as many as can be told apart, for so many lines.
    pub(super) fn new(policy: Policy, slots: u64, lines: u64) -> Slots {
        let slots = slots.min(MOST_SLOTS) as u32;
        Slots {
            fill_at_miss: (1, 0),
            map: Table::new(lines),
            owner: vec![NOTHING; slots as usize],
            state: vec![Slot::Free; slots as usize],
            busy: vec![0; slots as usize],
            order: Order::new(policy, slots, lines),
            free: Vec::new(),
            fresh: 0,
        }
    }

    /// Lines are taken in at this miss, while this share of the slots is in use.
    pub(super) fn fill_at(&mut self, miss: u8, from: f64) {
        let slots = libm::ceil(from * self.owner.len() as f64) as u32;
        self.fill_at_miss = (miss.into(), slots);
    }

    /// At which miss a line is taken in now.
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

    /// Whether a line has a slot, whatever goes on there.
    pub(super) fn knows(&self, line: u64) -> bool {
        self.slot(line).is_some()
    }

    /// Slots that may be read, and their lines, from the one that is given up first; at most so many are looked at.
    pub(super) fn oldest_first(&self, most: usize, mut each: impl FnMut(u32, u64)) {
        self.order.oldest_first(most, |slot| {
            if self.state[slot as usize] == Slot::Valid {
                each(slot, self.line(slot));
            }
        });
    }

    /// The slot that holds a line and may be read.
    #[inline]
    pub(super) fn valid(&self, line: u64) -> Option<u32> {
        let slot = self.slot(line)?;
        (self.state[slot as usize] == Slot::Valid).then_some(slot)
    }

    /// The slot that a line is mapped to.
    #[inline]
    fn slot(&self, line: u64) -> Option<u32> {
        self.map.get(line).filter(|&slot| slot < MISSED)
    }

    /// The line that a slot is for.
    pub(super) fn line(&self, slot: u32) -> u64 {
        u64::from(self.owner[slot as usize])
    }

    /// It has been used now.
    #[inline]
    pub(super) fn used(&mut self, slot: u32) {
        self.order.used(slot);
    }

    /// Something goes on in so many slots from this one on.
    pub(super) fn occupy(&mut self, slot: u32, lines: u32) {
        for slot in slot..slot + lines {
            self.busy[slot as usize] += 1;
        }
    }

    /// It has ended.
    pub(super) fn leave(&mut self, slot: u32, lines: u32) {
        for slot in slot..slot + lines {
            self.busy[slot as usize] -= 1;
            if self.busy[slot as usize] == 0 && self.state[slot as usize] == Slot::Dropped {
                self.release(slot);
            }
        }
    }

    /// It holds nothing any more.
    fn release(&mut self, slot: u32) {
        self.state[slot as usize] = Slot::Free;
        self.owner[slot as usize] = NOTHING;
        self.order.forget(slot);
        if !self.order.is_in_turn() {
            self.free.push(slot);
        }
    }

    /// What the cache holds of a line, or is about to, is worthless.
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

    /// A slot for a line, if one can be had: the line is mapped to it from now on, and what is about to happen in it is
    /// counted.
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

    /// Whether a line that is missed now is to be taken in; one that is on its way already is not.
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

    /// The slot that holds a line, to be written to, if nothing else goes on in it. Until that is done, neither old nor new
    /// is read from it.
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

    /// The lines of these slots have been read from main. How many, from the first on, follow each other in the cache and on
    /// main and are now to be written; 0 if the first has become worthless.
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

    /// A line that is kept where it was read to has been read. Whether the slot holds it.
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

    /// A write into slots has ended: they hold their lines, unless that has become worthless.
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

    /// What these hold cannot be read.
    pub(super) fn discard_slots(&mut self, slots: core::ops::Range<u32>) {
        for slot in slots {
            if self.state[slot as usize] == Slot::Valid {
                self.discard(u64::from(self.owner[slot as usize]));
            }
        }
    }

    /// Nothing goes on any more; what the slots hold is still known, or not.
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
