//! Stale slots: one bit per slot whose data has been overwritten, moved or deallocated since it was programmed.

use alloc::vec::Vec;
use core::ops::Range;

use super::changed::ChangeTracker;
use super::numbers::Slot;
use super::scattered::SparseArray;

/// Maximum number of stale slots whose bits are not set yet.
const LATER: usize = 32;

/// One bit per slot: its data has been overwritten, moved or deallocated since it was programmed. Garbage collection
/// (GC) can therefore read a victim's bits in sequence, instead of looking up each of its pages in the map.
///
/// The slots that host writes make stale are at random positions, and each bit costs a cache miss. They are set in
/// batches, so that the misses overlap.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    words: SparseArray<u64>,
    later: [Slot; LATER],
    count: usize,
    /// Pieces that may have changed since a state was saved.
    changed: ChangeTracker,
}

/// Words per piece of [`Stale::changed`]: if each word must be found, only changed words are restored.
const WORDS: u32 = if cfg!(target_pointer_width = "64") {
    64
} else {
    1
};

impl Stale {
    pub(super) fn none(slots: u32) -> Stale {
        Stale {
            words: SparseArray::zeroed(slots.div_ceil(64)),
            later: [Slot(0); LATER],
            count: 0,
            changed: ChangeTracker::default(),
        }
    }

    #[inline]
    pub(super) fn is(&self, slot: Slot) -> bool {
        self.words.get(slot.0 / 64) >> (slot.0 % 64) & 1 != 0
            || self.later[..self.count].contains(&slot)
    }

    #[inline]
    pub(super) fn insert(&mut self, slot: Slot) {
        let word = slot.0 / 64;
        self.words.change(word, |bits| bits | 1 << (slot.0 % 64));
        self.changed.mark((word / WORDS) as usize);
    }

    /// Like [`Stale::insert`], for several insertions in series: defers them, and sets a full batch at once.
    #[inline]
    pub(super) fn insert_later(&mut self, slot: Slot) {
        if self.count == LATER {
            self.catch_up();
        }
        self.later[self.count] = slot;
        self.count += 1;
    }

    #[inline]
    pub(super) fn catch_up(&mut self) {
        for slot in &self.later[..self.count] {
            let word = slot.0 / 64;
            self.words.change(word, |bits| bits | 1 << (slot.0 % 64));
            self.changed.mark((word / WORDS) as usize);
        }
        self.count = 0;
    }

    /// The slot, whose block was erased, is being programmed again.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) {
        let word = slot.0 / 64;
        self.words.change(word, |bits| bits & !(1 << (slot.0 % 64)));
        self.changed.mark((word / WORDS) as usize);
    }

    /// Clears all bits, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.words.clear(0..self.words.len());
        self.count = 0;
        self.changed = ChangeTracker::default();
    }

    /// Returns the memory range of the bits.
    pub(super) fn table(&self) -> Range<*const u8> {
        self.words.memory()
    }

    /// Returns the words that are not zero, and their positions, in order.
    pub(super) fn save(&self) -> Vec<(u32, u64)> {
        debug_assert_eq!(self.count, 0, "something was put off");
        let mut set = Vec::new();
        self.words.each(|at, word| set.push((at, word)));
        set.sort_unstable_by_key(|&(at, _)| at);
        set
    }

    /// Sets the saved bits; no bit may be set before.
    pub(super) fn restore(&mut self, saved: &[(u32, u64)]) {
        for &(at, word) in saved {
            self.words.set(at, word);
        }
    }

    /// Starts to record changes, for [`Stale::put_back`]: the current bits are those of a saved state.
    pub(super) fn watch(&mut self) {
        self.changed = ChangeTracker::none_of(self.words.len().div_ceil(WORDS) as usize);
    }

    /// Restores the saved bits again; they were current at [`Stale::watch`] or later.
    pub(super) fn put_back(&mut self, saved: &[(u32, u64)]) {
        self.count = 0;
        let words = &mut self.words;
        self.changed.drain(|piece| {
            let piece = piece as u32 * WORDS..((piece as u32 + 1) * WORDS).min(words.len());
            if piece.is_empty() {
                return;
            }
            words.clear(piece.clone());
            let first = saved.partition_point(|&(at, _)| at < piece.start);
            for &(at, word) in &saved[first..] {
                if at >= piece.end {
                    break;
                }
                words.set(at, word);
            }
        });
    }
}
