//! On-disk format of a ring of records: headers, superblocks, and the labels of backing drives, in little-endian bytes.
//!
//! A *record* is a header of 4 KiB followed by the data of its entries. Each header has a number, one more than that of
//! the previous record, and the checksum of the previous record. Leftovers of an earlier round of the ring, and records
//! after a gap, are therefore never taken for current records. A *superblock* states where to begin.
//!
//! Not here: the location of records and superblocks, which the owner of the ring defines, and reading them in
//! sequence.

use alloc::vec::Vec;

use model::data::crc32c;

/// Bytes of a header, and of a superblock.
pub const BLOCK: usize = 4096;

/// Bytes of a header before its entries.
pub const HEAD: usize = 64;

/// Bytes of an entry.
pub const ENTRY: usize = 16;

/// Maximum number of entries in a header.
pub const ENTRIES: usize = (BLOCK - HEAD) / ENTRY;

const RECORD: [u8; 8] = *b"DL-RECRD";
const SUPERBLOCK: [u8; 8] = *b"DL-RINGS";
const ATTACHED: [u8; 8] = *b"DL-BEHND";

/// Format version of both; only this version is written and read.
const VERSION: u32 = 1;

/// Content of an entry's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordContent {
    /// Their data is in the record.
    Data,
    /// They read as zeroes.
    Zeroes,
    /// They are deallocated.
    Trimmed,
    /// Their data is on the backing drives: earlier data and zeroes in the ring no longer apply.
    Passed,
}

/// A run of consecutive units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordEntry {
    /// First unit, below 2^40.
    pub unit: u64,
    /// Number of units.
    pub units: u32,
    /// Content of the units.
    pub content: RecordContent,
    /// [Checksum](model::data::sum) of their data; 0 without data.
    pub sum: u32,
}

/// Header of a record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordHeader {
    /// Epoch of the ring: a power cut begins a new one.
    pub epoch: u64,
    /// Number of the record.
    pub number: u64,
    /// All records up to this number were durable when this one was written: if one is missing, it was lost.
    pub flushed_through: u64,
    /// Checksum of the previous record, as returned by [`RecordHeader::encode`].
    pub previous: u32,
    /// Identifier of the pool.
    pub pool: u128,
    /// Entries, at most [`ENTRIES`].
    pub entries: Vec<RecordEntry>,
}

/// Start of the valid part of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Superblock {
    /// The superblock with the higher sequence counts.
    pub sequence: u64,
    /// Epoch of the ring.
    pub epoch: u64,
    /// Position of the first segment in use, counted from the ring's first use.
    pub tail: u64,
    /// Number of the first record there.
    pub tail_number: u64,
    /// Checksum of the record before that.
    pub previous: u32,
    /// All records up to this number were durable when this was written.
    pub flushed_through: u64,
    /// Identifier of the pool.
    pub pool: u128,
    /// Bytes per segment, and number of segments: a ring with other values cannot be read.
    pub segment: u32,
    /// See `segment`.
    pub segments: u32,
    /// The last epochs, newest first, each with the number of its first record; zero for none.
    pub epochs: [(u64, u64); 8],
}

/// Label of a backing drive: without the ring, the drive's data is not the newest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackingLabel {
    /// Identifier of the pool.
    pub pool: u128,
    /// Epoch of the ring when this was written: a ring of an earlier epoch is an old copy.
    pub epoch: u64,
    /// Index of this drive, and number of drives.
    pub drive: u16,
    /// See `drive`.
    pub drives: u16,
    /// Bytes on one drive before the next drive follows.
    pub chunk: u32,
}

/// Reads consecutive numbers.
pub(super) struct NumberReader<'a> {
    pub(super) bytes: &'a [u8],
}

impl NumberReader<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let (first, rest) = self.bytes.split_at(N.min(self.bytes.len()));
        taken[..first.len()].copy_from_slice(first);
        self.bytes = rest;
        taken
    }

    pub(super) fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(super) fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
}

/// Writes consecutive numbers.
pub(super) struct NumberWriter<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
}

impl NumberWriter<'_> {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// Writes the checksum into the last four bytes of a header's head, or of a superblock; it covers all other bytes.
pub(super) fn seal(block: &mut [u8; BLOCK], at: usize) -> u32 {
    block[at..at + 4].fill(0);
    let sum = crc32c(block);
    block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// Returns the checksum, if it is correct.
pub(super) fn sealed(block: &[u8; BLOCK], at: usize) -> Option<u32> {
    let mut copy = *block;
    let sum = seal(&mut copy, at);
    (copy == *block).then_some(sum)
}

impl RecordHeader {
    /// Returns the encoded bytes, and their checksum.
    pub fn encode(&self) -> ([u8; BLOCK], u32) {
        debug_assert!(self.entries.len() <= ENTRIES, "a header is overfull");
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&RECORD);
        pen.put(&VERSION.to_le_bytes());
        pen.put(&self.previous.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.number.to_le_bytes());
        pen.put(&self.flushed_through.to_le_bytes());
        pen.put(&(self.entries.len() as u32).to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        debug_assert_eq!(pen.at, HEAD - 4, "the sum is next");
        pen.at = HEAD;
        for entry in &self.entries {
            pen.put(&entry.unit.to_le_bytes()[..5]);
            pen.put(&[entry.content as u8, 0, 0]);
            pen.put(&entry.units.to_le_bytes());
            pen.put(&entry.sum.to_le_bytes());
        }
        let sum = seal(&mut block, HEAD - 4);
        (block, sum)
    }

    /// Decodes a header, and returns it with its checksum; `None` if it is invalid.
    pub fn decode(block: &[u8; BLOCK]) -> Option<(RecordHeader, u32)> {
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != RECORD || cursor.word() != VERSION {
            return None;
        }
        let sum = sealed(block, HEAD - 4)?;
        let mut header = RecordHeader {
            previous: cursor.word(),
            epoch: cursor.long(),
            number: cursor.long(),
            flushed_through: cursor.long(),
            pool: 0,
            entries: Vec::new(),
        };
        let count = cursor.word() as usize;
        header.pool = u128::from_le_bytes(cursor.take());
        if count > ENTRIES {
            return None;
        }
        cursor.bytes = &block[HEAD..];
        for _ in 0..count {
            let mut unit = [0; 8];
            unit[..5].copy_from_slice(&cursor.take::<5>());
            let content = match cursor.take::<3>()[0] {
                0 => RecordContent::Data,
                1 => RecordContent::Zeroes,
                2 => RecordContent::Trimmed,
                3 => RecordContent::Passed,
                _ => return None,
            };
            header.entries.push(RecordEntry {
                unit: u64::from_le_bytes(unit),
                content,
                units: cursor.word(),
                sum: cursor.word(),
            });
        }
        Some((header, sum))
    }
}

impl Superblock {
    /// Returns the encoded bytes.
    pub fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&SUPERBLOCK);
        pen.put(&VERSION.to_le_bytes());
        pen.put(&self.previous.to_le_bytes());
        pen.put(&self.sequence.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.tail.to_le_bytes());
        pen.put(&self.tail_number.to_le_bytes());
        pen.put(&self.flushed_through.to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.segment.to_le_bytes());
        pen.put(&self.segments.to_le_bytes());
        for (epoch, began) in self.epochs {
            pen.put(&epoch.to_le_bytes());
            pen.put(&began.to_le_bytes());
        }
        seal(&mut block, BLOCK - 4);
        block
    }

    /// Decodes a superblock; `None` if it is invalid.
    pub fn decode(block: &[u8; BLOCK]) -> Option<Superblock> {
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != SUPERBLOCK || cursor.word() != VERSION {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        let mut superblock = Superblock {
            previous: cursor.word(),
            sequence: cursor.long(),
            epoch: cursor.long(),
            tail: cursor.long(),
            tail_number: cursor.long(),
            flushed_through: cursor.long(),
            pool: u128::from_le_bytes(cursor.take()),
            segment: cursor.word(),
            segments: cursor.word(),
            epochs: Default::default(),
        };
        for epoch in &mut superblock.epochs {
            *epoch = (cursor.long(), cursor.long());
        }
        Some(superblock)
    }
}

impl BackingLabel {
    /// Returns the encoded bytes.
    pub fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = NumberWriter {
            bytes: &mut block,
            at: 0,
        };
        pen.put(&ATTACHED);
        pen.put(&VERSION.to_le_bytes());
        pen.put(&self.chunk.to_le_bytes());
        pen.put(&self.pool.to_le_bytes());
        pen.put(&self.epoch.to_le_bytes());
        pen.put(&self.drive.to_le_bytes());
        pen.put(&self.drives.to_le_bytes());
        seal(&mut block, BLOCK - 4);
        block
    }

    /// Decodes a label; `None` if it is invalid.
    pub fn decode(block: &[u8; BLOCK]) -> Option<BackingLabel> {
        let mut cursor = NumberReader { bytes: block };
        if cursor.take() != ATTACHED || cursor.word() != VERSION {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        Some(BackingLabel {
            chunk: cursor.word(),
            pool: u128::from_le_bytes(cursor.take()),
            epoch: cursor.long(),
            drive: u16::from_le_bytes(cursor.take()),
            drives: u16::from_le_bytes(cursor.take()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = RecordEntry> {
        let content = prop_oneof![
            Just(RecordContent::Data),
            Just(RecordContent::Zeroes),
            Just(RecordContent::Trimmed)
        ];
        (0u64..1 << 40, any::<u32>(), content, any::<u32>()).prop_map(
            |(unit, units, content, sum)| RecordEntry {
                unit,
                units,
                content,
                sum,
            },
        )
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written_and_not_with_a_bit_flipped(
            numbers in any::<(u64, u64, u64, u32, u128)>(),
            entries in prop::collection::vec(entry(), 0..=ENTRIES),
            bit in 0usize..BLOCK * 8,
        ) {
            let (epoch, number, flushed_through, previous, pool) = numbers;
            let header = RecordHeader { epoch, number, flushed_through, previous, pool, entries };
            let (mut block, sum) = header.encode();
            prop_assert_eq!(RecordHeader::decode(&block), Some((header, sum)));
            prop_assert_eq!(Superblock::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(RecordHeader::decode(&block), None);
        }

        #[test]
        fn a_superblock_is_read_as_it_was_written_and_not_with_a_bit_flipped(
            numbers in any::<(u64, u64, u64, u64, u64, u32, u128)>(),
            (segment, segments) in any::<(u32, u32)>(),
            epochs in any::<[(u64, u64); 8]>(),
            bit in 0usize..BLOCK * 8,
        ) {
            let (sequence, epoch, tail, tail_number, flushed_through, previous, pool) = numbers;
            let superblock = Superblock {
                sequence, epoch, tail, tail_number, previous, flushed_through, pool, segment, segments, epochs,
            };
            let mut block = superblock.encode();
            prop_assert_eq!(Superblock::decode(&block), Some(superblock));
            prop_assert_eq!(RecordHeader::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Superblock::decode(&block), None);
        }

        #[test]
        fn a_label_is_read_as_it_was_written_and_not_with_a_bit_flipped(
            numbers in any::<(u128, u64, u16, u16, u32)>(),
            bit in 0usize..BLOCK * 8,
        ) {
            let (pool, epoch, drive, drives, chunk) = numbers;
            let label = BackingLabel { pool, epoch, drive, drives, chunk };
            let mut block = label.encode();
            prop_assert_eq!(BackingLabel::decode(&block), Some(label));
            prop_assert_eq!(Superblock::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(BackingLabel::decode(&block), None);
        }

        #[test]
        fn bytes_that_are_none_are_refused(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            prop_assert_eq!(RecordHeader::decode(&block), None);
            prop_assert_eq!(Superblock::decode(&block), None);
            prop_assert_eq!(BackingLabel::decode(&block), None);
        }
    }
}
