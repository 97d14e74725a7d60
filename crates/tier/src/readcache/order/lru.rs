//! LRU: the least recently used slot, in a list of the slots.

use super::SlotOrder;
use super::links::Links;

#[derive(Clone, Debug)]
pub(in crate::readcache) struct Lru(Links);

impl SlotOrder for Lru {
    fn new(slots: u32, _lines: u64) -> Lru {
        Lru(Links::new(slots, 1))
    }

    #[inline]
    fn used(&mut self, slot: u32) {
        self.0.put(slot, 0);
    }

    fn victim(
        &mut self,
        in_use: impl Fn(u32) -> bool,
        _line_of: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        self.0.oldest(0, |slot| !in_use(slot))
    }

    fn filled(&mut self, slot: u32) {
        self.0.put(slot, 0);
    }

    fn forget(&mut self, slot: u32) {
        self.0.unlink(slot);
    }

    fn oldest_first(&self, most: usize, each: impl FnMut(u32)) {
        self.0.oldest_first(0).take(most).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_up_the_slot_used_longest_ago_that_is_free() {
        let mut order = Lru::new(4, 4);
        let victim =
            |order: &mut Lru, busy: Option<u32>| order.victim(|slot| Some(slot) == busy, u64::from);
        assert_eq!(victim(&mut order, None), None);
        for slot in [0, 1, 2, 3] {
            order.filled(slot);
        }
        order.used(0);
        order.used(2);
        assert_eq!(victim(&mut order, None), Some(1));
        assert_eq!(victim(&mut order, Some(1)), Some(3));
        order.forget(1);
        order.used(3);
        assert_eq!(victim(&mut order, None), Some(0));
        assert_eq!(order.victim(|_| true, u64::from), None);
    }
}
