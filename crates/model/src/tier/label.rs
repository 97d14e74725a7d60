//! The label of a mirror's leg: what the mirror knew of its legs, on each of them.
//!
//! Two copies of 4 KiB at the end of each leg, written by turns, so that one that is torn leaves the other. Little-endian;
//! CRC-32C over all before it. A label is one write, and it is either there or not, so all that it says changes at once.

use super::bits::Bits;
use crate::data::crc32c;

/// Bytes of a copy.
pub(super) const BYTES: usize = 4096;
/// Bytes of both.
pub(super) const AREA: u64 = 2 * BYTES as u64;
/// Where the bits begin, and the sum is.
const BITS: usize = 128;
const SUM: usize = BYTES - 4;
/// Most regions that a label can tell apart.
pub(super) const REGIONS: u64 = ((SUM - BITS) / 8 * 64) as u64;

/// No label has ever counted as far: a million labels a second would take 146,000 years.
const COUNTS: u64 = 1 << 62;

const MAGIC: [u8; 8] = *b"DLMIRROR";
const VERSION: u32 = 2;
/// That of the version before, which did not say when marks went, nor in which opening of the pool it was written.
const VERSION_1: u32 = 1;

/// What is the same on all legs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// The legs that have all that was acknowledged, a bit each.
    pub(super) in_sync: u32,
    /// Grows with each change of them.
    pub(super) epoch: u64,
    /// The sequence of the last label that took marks away: what was written since is marked.
    pub(super) cleared: u64,
    /// The last opening of the pool in which these legs were in sync.
    pub(super) opening: u64,
    /// Of an array with parity: writes may be under way, so parity of what is marked may not fit its data.
    pub(super) busy: bool,
    /// Regions in which legs may differ: one was being written, or legs have missed what was.
    pub(super) dirty: Bits,
}

impl State {
    /// Becomes the same as another.
    pub(super) fn copy(&mut self, other: &State) {
        (self.in_sync, self.epoch) = (other.in_sync, other.epoch);
        (self.cleared, self.opening) = (other.cleared, other.opening);
        self.busy = other.busy;
        self.dirty.copy(&other.dirty);
    }
}

/// What a label says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Label {
    /// The pool's own number.
    pub(super) pool: u128,
    /// Which leg of how many.
    pub(super) leg: u16,
    pub(super) legs: u16,
    /// Grows with each label.
    pub(super) sequence: u64,
    /// Bytes of a region.
    pub(super) region: u64,
    pub(super) state: State,
}

fn take<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&from[at..at + N]);
    bytes
}

impl Label {
    /// As bytes.
    pub(super) fn encode(&self, into: &mut [u8; BYTES]) {
        into.fill(0);
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            into[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&self.leg.to_le_bytes());
        put(&self.legs.to_le_bytes());
        put(&self.pool.to_le_bytes());
        put(&self.sequence.to_le_bytes());
        put(&self.region.to_le_bytes());
        put(&self.state.epoch.to_le_bytes());
        put(&self.state.cleared.to_le_bytes());
        put(&self.state.in_sync.to_le_bytes());
        put(&self.state.opening.to_le_bytes());
        put(&[u8::from(self.state.busy)]);
        self.state.dirty.write(&mut into[BITS..SUM]);
        let sum = crc32c(&into[..SUM]);
        into[SUM..].copy_from_slice(&sum.to_le_bytes());
    }

    /// What a label counts as its own age, right or not: its sequence.
    pub(super) fn claimed(from: &[u8; BYTES]) -> u64 {
        u64::from_le_bytes(take(from, 32))
    }

    /// From bytes, if they are a label of so many regions; any others are none, and none counts as far as [`COUNTS`].
    pub(super) fn decode(from: &[u8; BYTES], regions: usize) -> Option<Label> {
        let whole = crc32c(&from[..SUM]) == u32::from_le_bytes(take(from, SUM));
        let version = u32::from_le_bytes(take(from, 8));
        if !whole || from[..8] != MAGIC || ![VERSION, VERSION_1].contains(&version) {
            return None;
        }
        let number = |at| u64::from_le_bytes(take(from, at));
        if [32, 48, 56, 68]
            .map(number)
            .iter()
            .any(|&count| count >= COUNTS)
        {
            return None;
        }
        let legs = u16::from_le_bytes(take(from, 14));
        let in_sync = u32::from_le_bytes(take(from, 64));
        // A mirror is written with one leg in sync at least, and never with one that it has not.
        if in_sync == 0 || u64::from(in_sync) >> legs.min(32) != 0 {
            return None;
        }
        let mut dirty = Bits::new(regions);
        dirty.read(&from[BITS..SUM]);
        Some(Label {
            leg: u16::from_le_bytes(take(from, 12)),
            legs,
            pool: u128::from_le_bytes(take(from, 16)),
            sequence: number(32),
            region: number(40),
            state: State {
                epoch: number(48),
                // Nothing is known of what the version before took away.
                cleared: match version {
                    VERSION => number(56),
                    _ => number(32),
                },
                in_sync,
                opening: number(68),
                busy: from[76] != 0,
                dirty,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_as_it_was_written_and_any_flipped_bit_makes_it_none() {
        let mut dirty = Bits::new(REGIONS as usize);
        dirty.set(3..5);
        dirty.set(REGIONS as usize - 1..REGIONS as usize);
        let label = Label {
            pool: 0x1234_5678_9abc_def0_1122_3344_5566_7788,
            leg: 1,
            legs: 3,
            sequence: 77,
            region: 64 << 20,
            state: State {
                in_sync: 0b101,
                epoch: 9,
                cleared: 8,
                opening: 3,
                busy: true,
                dirty,
            },
        };
        let mut bytes = [0xaa; BYTES];
        label.encode(&mut bytes);
        assert_eq!(Label::decode(&bytes, REGIONS as usize), Some(label.clone()));
        for at in (0..BYTES).step_by(61) {
            let mut torn = bytes;
            torn[at] ^= 1;
            assert_eq!(Label::decode(&torn, REGIONS as usize), None);
        }
        assert_eq!(Label::decode(&[0; BYTES], 10), None);
        for in_sync in [0, 0b1001] {
            let mut beyond = label.clone();
            beyond.state.in_sync = in_sync;
            beyond.encode(&mut bytes);
            assert_eq!(Label::decode(&bytes, REGIONS as usize), None, "{in_sync:b}");
        }
    }
}
