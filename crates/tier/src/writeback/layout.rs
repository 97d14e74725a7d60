//! On-disk layout outside of the ring: superblocks and table on the cache, and labels on the backing drives.

use super::ring::UNIT;

/// Bits of a unit's number in an entry of a record: 4 PiB.
pub(super) const UNIT_BITS: u32 = 40;

/// Packs a number below 2^24 and a unit into one number, ordered by the first, then by the second.
#[inline]
pub(super) fn packed(number: u32, unit: u64) -> u64 {
    u64::from(number) << UNIT_BITS | unit
}

/// Unpacks the two numbers.
#[inline]
pub(super) fn unpacked(packed: u64) -> (u32, u64) {
    let unit = packed & ((1 << UNIT_BITS) - 1);
    ((packed >> UNIT_BITS) as u32, unit)
}

/// Number of superblocks at the beginning of the cache, which are written in turn.
pub(super) const SUPERBLOCK_COPIES: u64 = 4;
/// Bytes of all superblocks.
pub(super) const SUPERBLOCKS: u64 = SUPERBLOCK_COPIES * UNIT as u64;

/// Bytes per entry of the optional table after the ring: equal to dm-writecache's.
pub(super) const TABLE_ENTRY: u64 = 16;

/// Returns the bytes of the table after a ring of `slots` slots, in whole units.
pub(super) fn table_bytes(slots: u64) -> u64 {
    (slots * TABLE_ENTRY).next_multiple_of(u64::from(UNIT))
}

/// Returns the offset of the table.
pub(super) fn table_at(slots: u64) -> u64 {
    SUPERBLOCKS + slots * u64::from(UNIT)
}

/// Bytes at the end of each drive of the capacity tier for two copies of its label.
const LABELS: u64 = 2 * UNIT as u64;

/// Returns the offset of the labels on a drive of `bytes` bytes.
pub(super) fn label_at(bytes: u64) -> u64 {
    let unit = u64::from(UNIT);
    (bytes / unit * unit).saturating_sub(LABELS)
}
