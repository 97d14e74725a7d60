//! Which slot of a cache is given up next.
//!
//! `Lru`: the one used longest ago, a list through the slots. `Clock`: slots in a circle, each with a mark that says it has
//! been used since the hand last came by. Both pass over slots that are in use.

use alloc::vec;
use alloc::vec::Vec;

/// Which slot is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// The one used longest ago.
    #[default]
    Lru,
    /// One not used since the hand came by.
    Clock,
}

impl Policy {
    /// All of them, with the words of files and expressions.
    pub const ALL: [(&str, Policy); 2] = [("lru", Policy::Lru), ("clock", Policy::Clock)];
}

const NONE: u32 = u32::MAX;

/// The order of so many slots.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Lru {
        /// The slot used before and after this one, by slot; the last entry is both ends of the list.
        older: Vec<u32>,
        newer: Vec<u32>,
    },
    Clock {
        marked: Vec<bool>,
        hand: u32,
    },
}

impl Order {
    /// Slots not in the order until they are used.
    pub(super) fn new(policy: Policy, slots: u32) -> Order {
        let ends = slots as usize;
        match policy {
            Policy::Lru => {
                let mut order = vec![NONE; ends + 1];
                order[ends] = slots;
                Order::Lru {
                    older: order.clone(),
                    newer: order,
                }
            }
            Policy::Clock => Order::Clock {
                marked: vec![false; ends],
                hand: 0,
            },
        }
    }

    /// It has been used now.
    #[inline]
    pub(super) fn used(&mut self, slot: u32) {
        match self {
            Order::Lru { older, newer } => {
                let ends = older.len() - 1;
                if newer[slot as usize] == ends as u32 {
                    return;
                }
                unlink(older, newer, slot);
                let newest = older[ends];
                (older[slot as usize], newer[slot as usize]) = (newest, ends as u32);
                (newer[newest as usize], older[ends]) = (slot, slot);
            }
            Order::Clock { marked, .. } => marked[slot as usize] = true,
        }
    }

    /// It holds another line from now on. CLOCK marks it when it is read again: what is read once goes first.
    pub(super) fn filled(&mut self, slot: u32) {
        match self {
            Order::Lru { .. } => self.used(slot),
            Order::Clock { marked, .. } => marked[slot as usize] = false,
        }
    }

    /// It holds nothing any more.
    pub(super) fn forget(&mut self, slot: u32) {
        match self {
            Order::Lru { older, newer } => {
                unlink(older, newer, slot);
                (older[slot as usize], newer[slot as usize]) = (NONE, NONE);
            }
            Order::Clock { marked, .. } => marked[slot as usize] = false,
        }
    }

    /// Which slot to give up, of those that are not in use; `None` if none is found among the first few hundred.
    pub(super) fn victim(&mut self, in_use: impl Fn(u32) -> bool) -> Option<u32> {
        const LOOKED_AT: usize = 512;
        match self {
            Order::Lru { newer, .. } => {
                let ends = newer.len() - 1;
                let mut slot = newer[ends];
                for _ in 0..LOOKED_AT {
                    if slot as usize == ends {
                        return None;
                    }
                    if !in_use(slot) {
                        return Some(slot);
                    }
                    slot = newer[slot as usize];
                }
                None
            }
            Order::Clock { marked, hand } => {
                // Twice round finds one, unless all are in use.
                for _ in 0..2 * marked.len() {
                    let slot = *hand;
                    *hand = (slot + 1) % marked.len() as u32;
                    let was = core::mem::replace(&mut marked[slot as usize], false);
                    if !was && !in_use(slot) {
                        return Some(slot);
                    }
                }
                None
            }
        }
    }
}

/// Takes a slot out of the list, if it is in it.
#[inline]
fn unlink(older: &mut [u32], newer: &mut [u32], slot: u32) {
    let (before, after) = (older[slot as usize], newer[slot as usize]);
    if before != NONE {
        newer[before as usize] = after;
        older[after as usize] = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lru_gives_up_the_slot_used_longest_ago_that_is_free() {
        let mut order = Order::new(Policy::Lru, 4);
        assert_eq!(order.victim(|_| false), None);
        for slot in [0, 1, 2, 3, 0, 2] {
            order.used(slot);
        }
        assert_eq!(order.victim(|_| false), Some(1));
        assert_eq!(order.victim(|slot| slot == 1), Some(3));
        order.forget(1);
        order.used(3);
        assert_eq!(order.victim(|_| false), Some(0));
        assert_eq!(order.victim(|_| true), None);
    }

    #[test]
    fn clock_gives_up_what_was_not_used_since_the_hand_came_by() {
        let mut order = Order::new(Policy::Clock, 3);
        for slot in [0, 1, 2] {
            order.used(slot);
        }
        assert_eq!(order.victim(|_| false), Some(0));
        order.used(1);
        assert_eq!(order.victim(|_| false), Some(2));
        assert_eq!(order.victim(|_| true), None);
    }
}
