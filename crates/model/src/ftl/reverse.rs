//! The reverse map (P2L): 4 bytes per slot, naming the page programmed there.
//!
//! With 64-bit addresses it is one table, which the operating system allocates as it is touched. With 32-bit addresses
//! (WebAssembly in a web page), the table of a drive of 2 TB or more exceeds the maximum size of a vector. There it is
//! stored in pieces, which are allocated when written. A test checks that both give equal results.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::numbers::Slot;

#[cfg(target_pointer_width = "64")]
pub(super) type Reverse = FlatReverseMap;
#[cfg(not(target_pointer_width = "64"))]
pub(super) type Reverse = PagedReverseMap;

/// The map as one table.
#[cfg(any(test, target_pointer_width = "64"))]
#[derive(Clone, Debug)]
pub(super) struct FlatReverseMap(Vec<u32>);

#[cfg(any(test, target_pointer_width = "64"))]
impl FlatReverseMap {
    /// Creates a table for `slots` slots, all zero.
    pub(super) fn zeroed(slots: u32) -> FlatReverseMap {
        FlatReverseMap(vec![0; slots as usize])
    }

    /// Returns the number of slots.
    #[inline]
    pub(super) fn slots(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the entry of a slot.
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u32 {
        self.0[slot.index()]
    }

    /// Sets the entry of a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, entry: u32) {
        self.0[slot.index()] = entry;
    }

    /// Sets the entries of these slots to zero.
    pub(super) fn clear(&mut self, slots: Range<usize>) {
        self.0[slots].fill(0);
    }

    /// Appends the entries of these slots.
    pub(super) fn copy_to(&self, slots: Range<usize>, entries: &mut Vec<u32>) {
        entries.extend_from_slice(&self.0[slots]);
    }

    /// Sets the entries of these slots.
    pub(super) fn copy_from(&mut self, slots: Range<usize>, entries: &[u32]) {
        self.0[slots].copy_from_slice(entries);
    }
}

/// Slots per piece: 16 KiB.
#[cfg(any(test, not(target_pointer_width = "64")))]
const PIECE: usize = 1 << 12;

/// The map as a table of pieces; an empty piece is all zero.
#[cfg(any(test, not(target_pointer_width = "64")))]
#[derive(Clone, Debug)]
pub(super) struct PagedReverseMap {
    pieces: Vec<Vec<u32>>,
    slots: u32,
}

#[cfg(any(test, not(target_pointer_width = "64")))]
impl PagedReverseMap {
    /// As [`FlatReverseMap::zeroed`].
    pub(super) fn zeroed(slots: u32) -> PagedReverseMap {
        PagedReverseMap {
            pieces: vec![Vec::new(); (slots as usize).div_ceil(PIECE)],
            slots,
        }
    }

    /// As [`FlatReverseMap::slots`].
    #[inline]
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// As [`FlatReverseMap::get`].
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u32 {
        self.entry(slot.index())
    }

    fn entry(&self, slot: usize) -> u32 {
        let piece = &self.pieces[slot / PIECE];
        piece.get(slot % PIECE).copied().unwrap_or(0)
    }

    /// As [`FlatReverseMap::set`].
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, entry: u32) {
        self.put(slot.index(), entry);
    }

    fn put(&mut self, slot: usize, entry: u32) {
        let piece = &mut self.pieces[slot / PIECE];
        if piece.is_empty() {
            if entry == 0 {
                return;
            }
            *piece = vec![0; PIECE];
        }
        piece[slot % PIECE] = entry;
    }

    /// Calls `tell` for each piece of these slots, with the slots within the piece.
    fn parts(slots: Range<usize>, mut tell: impl FnMut(usize, Range<usize>)) {
        let mut at = slots.start;
        while at < slots.end {
            let from = at % PIECE;
            let until = (from + slots.end - at).min(PIECE);
            tell(at / PIECE, from..until);
            at += until - from;
        }
    }

    /// As [`FlatReverseMap::clear`].
    pub(super) fn clear(&mut self, slots: Range<usize>) {
        PagedReverseMap::parts(slots, |piece, within| {
            if let Some(held) = self.pieces[piece].get_mut(within) {
                held.fill(0);
            }
        });
    }

    /// As [`FlatReverseMap::copy_to`].
    pub(super) fn copy_to(&self, slots: Range<usize>, entries: &mut Vec<u32>) {
        entries.reserve(slots.len());
        PagedReverseMap::parts(slots, |piece, within| {
            match self.pieces[piece].get(within.clone()) {
                Some(held) => entries.extend_from_slice(held),
                None => entries.resize(entries.len() + within.len(), 0),
            }
        });
    }

    /// As [`FlatReverseMap::copy_from`].
    pub(super) fn copy_from(&mut self, slots: Range<usize>, mut entries: &[u32]) {
        PagedReverseMap::parts(slots, |piece, within| {
            let (these, others) = entries.split_at(within.len());
            entries = others;
            let held = &mut self.pieces[piece];
            if held.is_empty() && these.iter().any(|&entry| entry != 0) {
                *held = vec![0; PIECE];
            }
            if let Some(held) = held.get_mut(within) {
                held.copy_from_slice(these);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn pieces_say_what_one_table_says() {
        let slots = 3 * PIECE as u32 + 17;
        let (mut whole, mut pieces) = (
            FlatReverseMap::zeroed(slots),
            PagedReverseMap::zeroed(slots),
        );
        assert_eq!((whole.slots(), pieces.slots()), (slots, slots));
        let mut random = Stream::new(3, "reverse map");
        for _ in 0..2000 {
            let slot = random.uniform_below(u64::from(slots)) as usize;
            let range = slot..(slot + 100).min(slots as usize);
            match random.uniform_below(4) {
                0 => {
                    whole.clear(range.clone());
                    pieces.clear(range.clone());
                }
                1 => {
                    let entries: Vec<u32> = range.clone().map(|it| it as u32 % 7).collect();
                    whole.copy_from(range.clone(), &entries);
                    pieces.copy_from(range.clone(), &entries);
                }
                _ => {
                    let entry = random.uniform_below(1 << 32) as u32;
                    whole.set(Slot(slot as u32), entry);
                    pieces.set(Slot(slot as u32), entry);
                }
            }
            let (mut one, mut other) = (Vec::new(), Vec::new());
            whole.copy_to(range.clone(), &mut one);
            pieces.copy_to(range, &mut other);
            assert_eq!(one, other);
        }
        for slot in (0..slots).map(Slot) {
            assert_eq!(whole.get(slot), pieces.get(slot));
        }
        assert!(
            PagedReverseMap::zeroed(slots)
                .pieces
                .iter()
                .all(Vec::is_empty)
        );
    }
}
