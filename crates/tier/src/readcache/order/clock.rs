//! CLOCK: slots in a circle, each with a mark that is set if it has been used since the hand last passed.
//!
//! A slot is marked when its line is read again, not when it is filled: lines that are read once are evicted first.

use alloc::vec;
use alloc::vec::Vec;

use super::SlotOrder;

#[derive(Clone, Debug)]
pub(in crate::readcache) struct Clock {
    marked: Vec<bool>,
    hand: u32,
}

impl SlotOrder for Clock {
    fn new(slots: u32, _lines: u64) -> Clock {
        Clock {
            marked: vec![false; slots as usize],
            hand: 0,
        }
    }

    #[inline]
    fn used(&mut self, slot: u32) {
        self.marked[slot as usize] = true;
    }

    fn victim(
        &mut self,
        in_use: impl Fn(u32) -> bool,
        _line_of: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        // Two rounds find a slot, unless all are in use.
        for _ in 0..2 * self.marked.len() {
            let slot = self.hand;
            self.hand = (slot + 1) % self.marked.len() as u32;
            let was = core::mem::replace(&mut self.marked[slot as usize], false);
            if !was && !in_use(slot) {
                return Some(slot);
            }
        }
        None
    }

    fn filled(&mut self, slot: u32) {
        self.marked[slot as usize] = false;
    }

    fn forget(&mut self, slot: u32) {
        self.marked[slot as usize] = false;
    }

    fn oldest_first(&self, most: usize, each: impl FnMut(u32)) {
        let slots = self.marked.len() as u32;
        let all = (self.hand..slots).chain(0..self.hand);
        all.take(most).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_up_what_was_not_used_since_the_hand_came_by() {
        let mut order = Clock::new(3, 3);
        let victim = |order: &mut Clock| order.victim(|_| false, u64::from);
        for slot in [0, 1, 2] {
            order.used(slot);
        }
        assert_eq!(victim(&mut order), Some(0));
        order.used(1);
        assert_eq!(victim(&mut order), Some(2));
        assert_eq!(order.victim(|_| true, u64::from), None);
    }
}
