//! What else is on a cache besides the ring, and on the drives behind it: where superblocks and labels are.

use super::ring::UNIT;

/// Bits of a unit's number, of which an entry of a record has as many: 4 PiB.
pub(super) const UNIT_BITS: u32 = 40;

/// A number below 2^24 and a unit as one number, in the order of the first, then of the second.
#[inline]
pub(super) fn packed(number: u32, unit: u64) -> u64 {
    u64::from(number) << UNIT_BITS | unit
}

/// The two again.
#[inline]
pub(super) fn unpacked(packed: u64) -> (u32, u64) {
    let unit = packed & ((1 << UNIT_BITS) - 1);
    ((packed >> UNIT_BITS) as u32, unit)
}

/// Superblocks at the beginning of the cache, written by turns.
pub(super) const SUPERBLOCK_COPIES: u64 = 4;
/// Their bytes.
pub(super) const SUPERBLOCKS: u64 = SUPERBLOCK_COPIES * UNIT as u64;

/// Bytes of an entry of the table behind the ring, where there is one: as large as dm-writecache's.
pub(super) const TABLE_ENTRY: u64 = 16;

/// Bytes of the table behind a ring of so many slots, in whole units.
pub(super) fn table_bytes(slots: u64) -> u64 {
    (slots * TABLE_ENTRY).next_multiple_of(u64::from(UNIT))
}

/// Where it begins.
pub(super) fn table_at(slots: u64) -> u64 {
    SUPERBLOCKS + slots * u64::from(UNIT)
}

/// Bytes at the end of each drive of the capacity tier for two copies of its label.
const LABELS: u64 = 2 * UNIT as u64;

/// Where the labels begin on a drive of so many bytes.
pub(super) fn label_at(bytes: u64) -> u64 {
    let unit = u64::from(UNIT);
    (bytes / unit * unit).saturating_sub(LABELS)
}
