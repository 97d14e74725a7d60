//! Values identified by small numbers: commands and their pieces while they are in a device.

use alloc::vec::Vec;

/// Values by slot number; freed slots are reused, the last freed one first.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts a value into a free slot, and returns the slot's number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = value;
                slot
            }
            None => {
                self.slots.push(value);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Returns the values in all slots, including free ones.
    pub fn all_mut(&mut self) -> &mut [T] {
        &mut self.slots
    }

    /// Marks the slot as free; its value stays until the slot is reused.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}
