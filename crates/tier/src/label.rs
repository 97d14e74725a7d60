//! On-disk label of a mirror member: the mirror's knowledge about its members, stored on each of them.
//!
//! Each member has two copies of 4 KiB at its end, which are written alternately, so that a torn write leaves the other
//! copy intact. Little-endian; the CRC-32C covers all preceding bytes. A label is written by a single write, which is
//! either complete or absent, so all its contents change atomically.

use model::data::crc32c;

use super::bits::Bits;

/// Bytes per copy.
pub(super) const BYTES: usize = 4096;
/// Bytes of both copies.
pub(super) const AREA: u64 = 2 * BYTES as u64;
/// Offsets of the bits and of the checksum.
const BITS: usize = 128;
const SUM: usize = BYTES - 4;
/// Maximum number of regions in a label.
pub(super) const REGIONS: u64 = ((SUM - BITS) / 8 * 64) as u64;

/// Upper limit of counters in a valid label: a million labels per second would take 146,000 years to reach it.
const COUNTS: u64 = 1 << 62;

const MAGIC: [u8; 8] = *b"DLMIRROR";
const VERSION: u32 = 2;
/// The previous version of the label, which contained neither when marks were cleared nor the opening in which it was
/// written.
const VERSION_1: u32 = 1;

/// The part that is equal on all members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LabelState {
    /// Members that have all acknowledged data, one bit each.
    pub(super) in_sync: u32,
    /// Incremented with each change of `in_sync`.
    pub(super) epoch: u64,
    /// Sequence of the last label that cleared marks: all writes since then are marked.
    pub(super) cleared: u64,
    /// The last opening of the pool in which these members were in sync.
    pub(super) opening: u64,
    /// For an array with parity: whether writes may be in progress, so that parity of marked stripes may be
    /// inconsistent with their data.
    pub(super) busy: bool,
    /// Regions in which members may differ: they were being written, or members have missed writes.
    pub(super) dirty: Bits,
}

impl LabelState {
    /// Copies another state.
    pub(super) fn copy(&mut self, other: &LabelState) {
        (self.in_sync, self.epoch) = (other.in_sync, other.epoch);
        (self.cleared, self.opening) = (other.cleared, other.opening);
        self.busy = other.busy;
        self.dirty.copy(&other.dirty);
    }
}

/// Content of a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MemberLabel {
    /// Identifier of the pool.
    pub(super) pool: u128,
    /// Index of this member, and number of members.
    pub(super) leg: u16,
    pub(super) legs: u16,
    /// Incremented with each label.
    pub(super) sequence: u64,
    /// Bytes per region.
    pub(super) region: u64,
    pub(super) state: LabelState,
}

fn take<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&from[at..at + N]);
    bytes
}

impl MemberLabel {
    /// Encodes the label as bytes.
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

    /// Returns the sequence number in a label, whether the label is valid or not.
    pub(super) fn claimed(from: &[u8; BYTES]) -> u64 {
        u64::from_le_bytes(take(from, 32))
    }

    /// Decodes a label with `regions` regions from bytes; `None` if it is invalid. A label with counters of [`COUNTS`]
    /// or more is invalid.
    pub(super) fn decode(from: &[u8; BYTES], regions: usize) -> Option<MemberLabel> {
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
        // A mirror always has at least one member in sync, and all of them exist.
        if in_sync == 0 || u64::from(in_sync) >> legs.min(32) != 0 {
            return None;
        }
        let mut dirty = Bits::new(regions);
        dirty.read(&from[BITS..SUM]);
        Some(MemberLabel {
            leg: u16::from_le_bytes(take(from, 12)),
            legs,
            pool: u128::from_le_bytes(take(from, 16)),
            sequence: number(32),
            region: number(40),
            state: LabelState {
                epoch: number(48),
                // The previous version does not contain this.
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
        let label = MemberLabel {
            pool: 0x1234_5678_9abc_def0_1122_3344_5566_7788,
            leg: 1,
            legs: 3,
            sequence: 77,
            region: 64 << 20,
            state: LabelState {
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
        assert_eq!(
            MemberLabel::decode(&bytes, REGIONS as usize),
            Some(label.clone())
        );
        for at in (0..BYTES).step_by(61) {
            let mut torn = bytes;
            torn[at] ^= 1;
            assert_eq!(MemberLabel::decode(&torn, REGIONS as usize), None);
        }
        assert_eq!(MemberLabel::decode(&[0; BYTES], 10), None);
        for in_sync in [0, 0b1001] {
            let mut beyond = label.clone();
            beyond.state.in_sync = in_sync;
            beyond.encode(&mut bytes);
            assert_eq!(
                MemberLabel::decode(&bytes, REGIONS as usize),
                None,
                "{in_sync:b}"
            );
        }
    }
}
