//! Ring: a hand that overwrites slot after slot, whatever their content, like that of the L2ARC. An empty slot waits
//! for its turn like the others.

use super::SlotOrder;

#[derive(Clone, Debug)]
pub(in crate::readcache) struct FifoHand {
    slots: u32,
    hand: u32,
}

impl SlotOrder for FifoHand {
    const IN_TURN: bool = true;

    fn new(slots: u32, _lines: u64) -> FifoHand {
        FifoHand { slots, hand: 0 }
    }

    #[inline]
    fn used(&mut self, _slot: u32) {}

    fn victim(
        &mut self,
        in_use: impl Fn(u32) -> bool,
        _line_of: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        for _ in 0..self.slots {
            let slot = self.hand;
            self.hand = (slot + 1) % self.slots;
            if !in_use(slot) {
                return Some(slot);
            }
        }
        None
    }

    fn filled(&mut self, _slot: u32) {}

    fn forget(&mut self, _slot: u32) {}

    fn oldest_first(&self, most: usize, each: impl FnMut(u32)) {
        let all = (self.hand..self.slots).chain(0..self.hand);
        all.take(most).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_in_turn_what_is_not_in_use() {
        let mut order = FifoHand::new(3, 3);
        let victim = |order: &mut FifoHand, busy: u32| order.victim(|slot| slot == busy, u64::from);
        order.used(0);
        let taken = [9, 9, 2, 9].map(|busy| victim(&mut order, busy));
        assert_eq!(taken, [Some(0), Some(1), Some(0), Some(1)]);
    }
}
