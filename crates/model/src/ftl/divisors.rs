//! Divisors for addresses of a drive's array, as multiplications: a write in steady state divides twenty times, a read
//! eight times.

use strength_reduce::StrengthReducedU32 as Divisor;

use super::geometry::FtlGeometry;
use super::numbers::{Block, Die, Slot};

/// The numbers of a [`FtlGeometry`] that are used as divisors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisors {
    /// Slots per stripe.
    pub(super) stripe: Divisor,
    pub(super) dies: Divisor,
    pub(super) die_slots: Divisor,
    pub(super) block_slots: Divisor,
    page_slots: Divisor,
    channels: Divisor,
}

impl Divisors {
    /// Creates the divisors of a shape.
    pub(crate) fn new(shape: &FtlGeometry) -> Divisors {
        Divisors {
            stripe: Divisor::new(shape.stripe),
            dies: Divisor::new(shape.dies),
            die_slots: Divisor::new(shape.die_slots),
            block_slots: Divisor::new(shape.block_slots),
            page_slots: Divisor::new(shape.page_slots),
            channels: Divisor::new(shape.channels),
        }
    }

    /// Returns the die of a physical slot.
    #[inline]
    pub(crate) fn die_of(&self, slot: Slot) -> Die {
        Die(slot.0 / self.die_slots)
    }

    /// Returns the block of a slot.
    #[inline]
    pub(crate) fn block_of(&self, slot: Slot) -> Block {
        Block(slot.0 / self.block_slots)
    }

    /// Returns the first slot of the slot's multi-plane page: it identifies the page.
    #[inline]
    pub(crate) fn page_at(&self, slot: Slot) -> Slot {
        Slot(slot.0 - slot.0 % self.page_slots)
    }

    /// Returns the channel of a die.
    #[inline]
    pub(crate) fn channel_of(&self, die: Die) -> u32 {
        die.0 % self.channels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::NandGeometry;

    #[test]
    fn they_tell_what_division_tells() {
        for (planes, channels, page_bytes) in
            [(1, 1, 4096), (2, 3, 16384), (3, 4, 4096), (1, 5, 8192)]
        {
            let shape = NandGeometry {
                channels,
                dies_per_channel: 5,
                planes,
                blocks_per_plane: 24,
                pages_per_block: 17,
                page_bytes,
                reserved: 0.0,
                capacity: 4096 * 1000,
                indirection: 4096,
                stripe: 0,
            }
            .shape(4)
            .expect("possible");
            let by = Divisors::new(&shape);
            for slot in (0..shape.slots()).map(Slot) {
                assert_eq!(by.die_of(slot), Die(slot.0 / shape.die_slots));
                assert_eq!(by.block_of(slot), Block(slot.0 / shape.block_slots));
                assert_eq!(
                    by.page_at(slot),
                    Slot(slot.0 / shape.page_slots * shape.page_slots)
                );
            }
            for die in shape.every_die() {
                assert_eq!(by.channel_of(die), die.0 % shape.channels);
            }
        }
    }
}
