//! On-disk format of an intent log's volume, in little-endian bytes.
//!
//! The *main pool* begins with positions for roots, which are written in turn. A *root* contains the locations of a
//! transaction group's tables, and the position of the log after the group. *Tables* are nodes of 4 KiB with 256
//! entries of 16 bytes; each entry has the checksum of the data that it references. A *log block* begins with a header
//! of 192 bytes, and each write in it with an entry of 192 bytes. A header has the next number after the previous
//! block, the checksum of the previous header, and the possible positions of the next block on each log device and on
//! the main pool. The chain can therefore be followed from the root to the first missing block, across log devices that
//! failed meanwhile. The last 8 KiB of each log device contain two copies of a label.
//!
//! Not here: reading and writing these structures.

use alloc::vec::Vec;

use model::data::crc32c;

use crate::record::{BLOCK, NumberReader, NumberWriter, seal, sealed};

/// Maximum bytes of a log block, and of a piece of a record's data in it.
pub(super) const LARGEST_BLOCK: u64 = 128 << 10;
/// Overhead of a log block in addition to its records, and of each record in addition to its data.
pub(super) const HEADER: u64 = 192;
/// A log block is written in whole units of this size.
pub(super) const UNIT: u64 = 4096;
/// Sectors are logged only as a whole.
pub(super) const SECTOR: u64 = 512;
const ROOT: [u8; 8] = *b"DL-GROUP";
const LABEL: [u8; 8] = *b"DL-ZILOG";
const LOG_BLOCK: [u8; 4] = *b"DLZB";
/// Format version of labels.
const VERSION: u32 = 1;
/// Format version of roots that is written; version 1, which lacks [`Root::labelled`], can be read too.
const ROOT_VERSION: u32 = 2;

/// Minimum number of positions for roots.
const FEWEST_ROOTS: u64 = 8;
/// Bytes at the end of a log device for two copies of its label.
pub(super) const LABELS: u64 = 2 * UNIT;
/// Entries per node of the tables.
pub(super) const ENTRIES: usize = 256;
/// Maximum number of log devices in a block's header.
pub(super) const MOST_LOGS: usize = 32;
/// Unit of a block's length.
const GRAIN: u64 = 64;

/// Returns the number of slots of the main pool that are reserved for roots.
pub(super) fn root_slots(record: u64) -> u32 {
    (FEWEST_ROOTS * UNIT).div_ceil(record) as u32
}

/// Returns the number of root positions on the main pool.
pub(super) fn root_places(record: u64) -> u64 {
    record.max(FEWEST_ROOTS * UNIT) / UNIT
}

/// Returns the offset of the root with this number.
pub(super) fn root_at(number: u64, record: u64) -> u64 {
    number % root_places(record) * UNIT
}

/// Returns the bytes of a log device's ring.
pub(super) fn ring_bytes(log: u64) -> u64 {
    (log / UNIT * UNIT).saturating_sub(LABELS)
}

/// Returns the offset of label copy 0 or 1 on a log device of `log` bytes.
pub(super) fn label_at(log: u64, copy: u64) -> u64 {
    ring_bytes(log) + copy * UNIT
}

/// Returns a pool's identifier, reduced to the size available in a log block.
pub(super) fn folded(pool: u128) -> u64 {
    (pool >> 64) as u64 ^ pool as u64
}

/// Position of the next log block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LogContinuation {
    /// Number of the next block, and the checksum of the previous header.
    pub(super) number: u64,
    pub(super) previous: u32,
    /// Possible positions of the next block. On each log device: in units of 4 KiB. On the main pool: the position
    /// after the previous block in bytes, 0 if it does not fit there; and the first slot to search.
    pub(super) heads: Vec<u32>,
    pub(super) main: u64,
    pub(super) cursor: u32,
}

/// Root of a transaction group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Root {
    pub(super) pool: u128,
    /// Epoch of the volume: each start begins a new one.
    pub(super) epoch: u32,
    /// Number of the group plus one.
    pub(super) number: u64,
    /// Bytes of a record and of the volume, slots of the main pool, and whether all records existed from the beginning.
    pub(super) record: u32,
    pub(super) size: u64,
    pub(super) slots: u32,
    pub(super) filled: bool,
    pub(super) onward: LogContinuation,
    /// By log device: minimum epoch of its label. A log device with an older label is an old copy.
    pub(super) labelled: Vec<u32>,
    /// Positions of the topmost nodes, in units of 4 KiB, with their checksums; 0 for none.
    pub(super) nodes: Vec<(u64, u32)>,
}

impl Root {
    /// Returns the encoded bytes.
    pub(super) fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&ROOT);
        pen.put(&ROOT_VERSION.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.number.to_le_bytes());
        pen.put(&self.size.to_le_bytes());
        pen.put(&self.record.to_le_bytes());
        pen.put(&self.slots.to_le_bytes());
        pen.put(&u32::from(self.filled).to_le_bytes());
        pen.put(&self.onward.number.to_le_bytes());
        pen.put(&self.onward.previous.to_le_bytes());
        pen.put(&self.onward.cursor.to_le_bytes());
        pen.put(&(self.onward.heads.len() as u32).to_le_bytes());
        pen.put(&(self.nodes.len() as u32).to_le_bytes());
        for head in &self.onward.heads {
            pen.put(&head.to_le_bytes());
        }
        for epoch in &self.labelled {
            pen.put(&epoch.to_le_bytes());
        }
        for (place, sum) in &self.nodes {
            pen.put(&place.to_le_bytes());
            pen.put(&sum.to_le_bytes());
        }
        seal(&mut block, BLOCK - 4);
        block
    }

    /// Decodes a root; `None` if it is invalid.
    pub(super) fn decode(block: &[u8; BLOCK]) -> Option<Root> {
        let mut cursor = NumberReader { bytes: block };
        let is_root = cursor.take() == ROOT;
        let version = cursor.word();
        if !is_root || !(1..=ROOT_VERSION).contains(&version) {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        let mut root = Root {
            epoch: cursor.word(),
            pool: u128::from_le_bytes(cursor.take()),
            number: cursor.long(),
            size: cursor.long(),
            record: cursor.word(),
            slots: cursor.word(),
            filled: cursor.word() != 0,
            ..Root::default()
        };
        let onward = &mut root.onward;
        onward.number = cursor.long();
        onward.previous = cursor.word();
        onward.cursor = cursor.word();
        let (heads, nodes) = (cursor.word() as usize, cursor.word() as usize);
        if heads > MOST_LOGS || nodes > ENTRIES {
            return None;
        }
        onward.heads = (0..heads).map(|_| cursor.word()).collect();
        root.labelled = match version {
            // One start may have been interrupted before it wrote the labels.
            1 => alloc::vec![root.epoch.saturating_sub(1); heads],
            _ => (0..heads).map(|_| cursor.word()).collect(),
        };
        root.nodes = (0..nodes).map(|_| (cursor.long(), cursor.word())).collect();
        Some(root)
    }
}

/// Header of a log block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LogBlockHeader {
    /// Identifier of the pool, [`folded`].
    pub(super) pool: u64,
    /// See [`Root::epoch`].
    pub(super) epoch: u32,
    /// Number of writes, and bytes including this header.
    pub(super) count: u16,
    pub(super) bytes: u32,
    /// All blocks up to this number were durable when this one was written: if one is missing, it was lost.
    pub(super) durable: u64,
    /// [Checksum](model::data::sum) of the bytes after this header.
    pub(super) sum: u32,
    /// Number of this block, checksum of the previous header, and possible positions of the next block.
    pub(super) onward: LogContinuation,
}

impl LogBlockHeader {
    /// Returns the encoded bytes, and their checksum.
    pub(super) fn encode(&self) -> ([u8; HEADER as usize], u32) {
        let mut bytes = [0; HEADER as usize];
        let mut pen = NumberWriter {
            bytes: &mut bytes,
            at: 0,
        };
        pen.put(&LOG_BLOCK);
        pen.put(&[0; 4]);
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.count.to_le_bytes());
        pen.put(&((u64::from(self.bytes) / GRAIN) as u16).to_le_bytes());
        pen.put(&self.onward.number.to_le_bytes());
        pen.put(&self.durable.to_le_bytes());
        pen.put(&self.onward.previous.to_le_bytes());
        pen.put(&self.sum.to_le_bytes());
        pen.put(&self.onward.main.to_le_bytes());
        pen.put(&self.onward.cursor.to_le_bytes());
        pen.put(&(self.onward.heads.len() as u32).to_le_bytes());
        for head in &self.onward.heads {
            pen.put(&head.to_le_bytes());
        }
        let sum = crc32c(&bytes);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        (bytes, sum)
    }

    /// Decodes the header at the start of these bytes, and returns it with its checksum; `None` if it is invalid.
    pub(super) fn decode(block: &[u8]) -> Option<(LogBlockHeader, u32)> {
        let mut bytes: [u8; HEADER as usize] = block.get(..HEADER as usize)?.try_into().ok()?;
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != LOG_BLOCK {
            return None;
        }
        let sum = cursor.word();
        bytes[4..8].fill(0);
        if crc32c(&bytes) != sum {
            return None;
        }
        let mut header = LogBlockHeader {
            pool: cursor.long(),
            epoch: cursor.word(),
            count: u16::from_le_bytes(cursor.take()),
            bytes: u32::from(u16::from_le_bytes(cursor.take())) * GRAIN as u32,
            ..LogBlockHeader::default()
        };
        header.onward.number = cursor.long();
        header.durable = cursor.long();
        header.onward.previous = cursor.word();
        header.sum = cursor.word();
        header.onward.main = cursor.long();
        header.onward.cursor = cursor.word();
        let heads = cursor.word() as usize;
        if heads > MOST_LOGS || u64::from(header.bytes) < HEADER {
            return None;
        }
        header.onward.heads = (0..heads).map(|_| cursor.word()).collect();
        Some((header, sum))
    }
}

/// Form of a write in a log block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogContent {
    /// The data is after the entry.
    Data,
    /// The data is in a record that a commit has written to the main pool.
    Named,
    /// The range reads as zeroes.
    Zeroes,
}

/// A write in a log block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LogEntry {
    pub(super) offset: u64,
    pub(super) bytes: u32,
    /// Transaction group of the write.
    pub(super) group: u64,
    pub(super) content: LogContent,
    /// For a reference: slot and checksum of the whole record.
    pub(super) slot: u32,
    pub(super) sum: u32,
}

impl LogEntry {
    /// Returns the encoded bytes.
    pub(super) fn encode(&self) -> [u8; HEADER as usize] {
        let mut bytes = [0; HEADER as usize];
        let mut pen = NumberWriter {
            bytes: &mut bytes,
            at: 0,
        };
        pen.put(&self.offset.to_le_bytes());
        pen.put(&self.group.to_le_bytes());
        pen.put(&self.bytes.to_le_bytes());
        pen.put(&[self.content as u8, 0, 0, 0]);
        pen.put(&self.slot.to_le_bytes());
        pen.put(&self.sum.to_le_bytes());
        bytes
    }

    /// Decodes the entry at the start of these bytes; `None` if it is invalid.
    pub(super) fn decode(block: &[u8]) -> Option<LogEntry> {
        let mut cursor = NumberReader {
            bytes: block.get(..HEADER as usize)?,
        };
        let (offset, group, bytes) = (cursor.long(), cursor.long(), cursor.word());
        let content = match cursor.take::<4>()[0] {
            0 => LogContent::Data,
            1 => LogContent::Named,
            2 => LogContent::Zeroes,
            _ => return None,
        };
        Some(LogEntry {
            offset,
            bytes,
            group,
            content,
            slot: cursor.word(),
            sum: cursor.word(),
        })
    }
}

/// Label of a log device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LogLabel {
    pub(super) pool: u128,
    /// See [`Root::epoch`], at the time of writing.
    pub(super) epoch: u32,
    /// Index of this log device, and number of log devices.
    pub(super) log: u16,
    pub(super) logs: u16,
}

impl LogLabel {
    /// Returns the encoded bytes.
    pub(super) fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&LABEL);
        pen.put(&VERSION.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.log.to_le_bytes());
        pen.put(&self.logs.to_le_bytes());
        seal(&mut block, BLOCK - 4);
        block
    }

    /// Decodes a label; `None` if it is invalid.
    pub(super) fn decode(block: &[u8; BLOCK]) -> Option<LogLabel> {
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != LABEL || cursor.word() != VERSION {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        Some(LogLabel {
            epoch: cursor.word(),
            pool: u128::from_le_bytes(cursor.take()),
            log: u16::from_le_bytes(cursor.take()),
            logs: u16::from_le_bytes(cursor.take()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_are_read_as_they_were_written_and_not_with_a_bit_flipped(
            (pool, epoch, number, size) in any::<(u128, u32, u64, u64)>(),
            (previous, cursor, sum, main) in any::<(u32, u32, u32, u64)>(),
            heads in prop::collection::vec(any::<u32>(), 0..=MOST_LOGS),
            nodes in prop::collection::vec(any::<(u64, u32)>(), 0..=ENTRIES),
            bit in 0usize..BLOCK * 8,
        ) {
            let labelled = heads.iter().map(|it| it ^ epoch).collect();
            let mut onward = LogContinuation { number, previous, heads, main: 0, cursor };
            let root = Root {
                pool, epoch, number, size, record: sum, slots: cursor, filled: epoch % 2 == 0,
                onward: onward.clone(), labelled, nodes,
            };
            let mut block = root.encode();
            prop_assert_eq!(Root::decode(&block), Some(root));
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Root::decode(&block), None);
            let label = LogLabel { pool, epoch, log: 1, logs: 3 };
            let mut block = label.encode();
            prop_assert_eq!(LogLabel::decode(&block), Some(label));
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(LogLabel::decode(&block), None);
            onward.main = main;
            let header = LogBlockHeader {
                pool: size, epoch, count: 3, bytes: 64 * 77, durable: number / 2, sum, onward,
            };
            let (mut bytes, checksum) = header.encode();
            prop_assert_eq!(LogBlockHeader::decode(&bytes), Some((header, checksum)));
            let bit = bit % (HEADER as usize * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(LogBlockHeader::decode(&bytes), None);
            let entry = LogEntry {
                offset: size, bytes: sum, group: number, content: LogContent::Named, slot: cursor, sum: previous,
            };
            prop_assert_eq!(LogEntry::decode(&entry.encode()), Some(entry));
        }

        #[test]
        fn bytes_that_are_none_are_refused(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            prop_assert_eq!(Root::decode(&block), None);
            prop_assert_eq!(LogBlockHeader::decode(&block), None);
            prop_assert_eq!(LogLabel::decode(&block), None);
        }
    }
}
