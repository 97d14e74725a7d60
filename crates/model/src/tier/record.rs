//! What a ring of records looks like on its medium: headers, superblocks, and the labels of drives behind it, in
//! little-endian bytes.
//!
//! A *record* is a header of 4 KiB and then the data of its entries, one after the other. Each header has a number, one
//! more than that of the record before it, and that record's checksum; so what was left over from an earlier round of the
//! ring, or lies beyond a gap, is never taken for a record of this one. A *superblock* says where to begin.
//!
//! Left out: where records and superblocks lie, which belongs to whose ring it is, and walking them.

use alloc::vec::Vec;

use crate::data::crc32c;

/// Bytes of a header, and of a superblock.
pub const BLOCK: usize = 4096;

/// Bytes of a header before its entries.
pub const HEAD: usize = 64;

/// Bytes of an entry.
pub const ENTRY: usize = 16;

/// Entries that a header has room for.
pub const ENTRIES: usize = (BLOCK - HEAD) / ENTRY;

const RECORD: [u8; 8] = *b"DL-RECRD";
const SUPERBLOCK: [u8; 8] = *b"DL-RINGS";
const ATTACHED: [u8; 8] = *b"DL-BEHND";

/// The version of both that this writes, and the only one that it reads.
const VERSION: u32 = 1;

/// What an entry says of its units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Their data are in the record.
    Data,
    /// They read as zeroes.
    Zeroes,
    /// They are deallocated.
    Trimmed,
    /// Their data are on the drives behind the ring: none from before count, nor zeroes.
    Passed,
}

/// A run of units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The first, below 2^40.
    pub unit: u64,
    /// How many.
    pub units: u32,
    /// What of them.
    pub content: Content,
    /// The [sum](crate::data::sum) of their data; 0 without data.
    pub sum: u32,
}

/// What a record begins with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Which life of the ring it is of: a power cut begins another.
    pub epoch: u64,
    /// Its number.
    pub number: u64,
    /// All records up to this number were durable when it was written: one that is missing was lost.
    pub flushed_through: u64,
    /// The checksum of the record before it, as [`Header::encode`] gives it.
    pub previous: u32,
    /// The pool's own number.
    pub pool: u128,
    /// What is in it, [`ENTRIES`] at most.
    pub entries: Vec<Entry>,
}

/// Where to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Superblock {
    /// Of two the one with the higher number counts.
    pub sequence: u64,
    /// The life of the ring.
    pub epoch: u64,
    /// The position of the first segment in use, counted from the ring's first use.
    pub tail: u64,
    /// The number of the first record there.
    pub tail_number: u64,
    /// The checksum of the record before that.
    pub previous: u32,
    /// All records up to this number were durable when it was written.
    pub flushed_through: u64,
    /// The pool's own number.
    pub pool: u128,
    /// Bytes of a segment, and how many there are: a ring of another shape cannot be read.
    pub segment: u32,
    /// See `segment`.
    pub segments: u32,
    /// The last epochs, newest first, each with the number of the record that it began with; a zero is none.
    pub epochs: [(u64, u64); 8],
}

/// What a drive behind a ring says of itself: without that ring what it has is not the newest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attached {
    /// The pool's own number.
    pub pool: u128,
    /// The life of the ring when this was written: a ring of an earlier one is an old copy.
    pub epoch: u64,
    /// Which of so many drives it is.
    pub drive: u16,
    /// See `drive`.
    pub drives: u16,
    /// Bytes on one drive before the next begins.
    pub chunk: u32,
}

/// Numbers, one after the other.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
}

impl Cursor<'_> {
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

/// Puts numbers one after the other.
pub(super) struct Pen<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
}

impl Pen<'_> {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// The last four bytes of a header's head, and of a superblock, are its checksum: that of all others.
pub(super) fn seal(block: &mut [u8; BLOCK], at: usize) -> u32 {
    block[at..at + 4].fill(0);
    let sum = crc32c(block);
    block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// The checksum, if it is right.
pub(super) fn sealed(block: &[u8; BLOCK], at: usize) -> Option<u32> {
    let mut copy = *block;
    let sum = seal(&mut copy, at);
    (copy == *block).then_some(sum)
}

impl Header {
    /// Its bytes, and their checksum.
    pub fn encode(&self) -> ([u8; BLOCK], u32) {
        debug_assert!(self.entries.len() <= ENTRIES, "a header is overfull");
        let mut block = [0; BLOCK];
        let mut pen = Pen {
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

    /// The header that these bytes are, and their checksum; nothing if they are none.
    pub fn decode(block: &[u8; BLOCK]) -> Option<(Header, u32)> {
        let mut cursor = Cursor { bytes: block };
        if cursor.take() != RECORD || cursor.word() != VERSION {
            return None;
        }
        let sum = sealed(block, HEAD - 4)?;
        let mut header = Header {
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
                0 => Content::Data,
                1 => Content::Zeroes,
                2 => Content::Trimmed,
                3 => Content::Passed,
                _ => return None,
            };
            header.entries.push(Entry {
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
    /// Its bytes.
    pub fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = Pen {
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

    /// The superblock that these bytes are; nothing if they are none.
    pub fn decode(block: &[u8; BLOCK]) -> Option<Superblock> {
        let mut cursor = Cursor { bytes: block };
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

impl Attached {
    /// Its bytes.
    pub fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut pen = Pen {
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

    /// What these bytes say; nothing if they are no such label.
    pub fn decode(block: &[u8; BLOCK]) -> Option<Attached> {
        let mut cursor = Cursor { bytes: block };
        if cursor.take() != ATTACHED || cursor.word() != VERSION {
            return None;
        }
        sealed(block, BLOCK - 4)?;
        Some(Attached {
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

    fn entry() -> impl Strategy<Value = Entry> {
        let content = prop_oneof![
            Just(Content::Data),
            Just(Content::Zeroes),
            Just(Content::Trimmed)
        ];
        (0u64..1 << 40, any::<u32>(), content, any::<u32>()).prop_map(
            |(unit, units, content, sum)| Entry {
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
            let header = Header { epoch, number, flushed_through, previous, pool, entries };
            let (mut block, sum) = header.encode();
            prop_assert_eq!(Header::decode(&block), Some((header, sum)));
            prop_assert_eq!(Superblock::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Header::decode(&block), None);
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
            prop_assert_eq!(Header::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Superblock::decode(&block), None);
        }

        #[test]
        fn a_label_is_read_as_it_was_written_and_not_with_a_bit_flipped(
            numbers in any::<(u128, u64, u16, u16, u32)>(),
            bit in 0usize..BLOCK * 8,
        ) {
            let (pool, epoch, drive, drives, chunk) = numbers;
            let label = Attached { pool, epoch, drive, drives, chunk };
            let mut block = label.encode();
            prop_assert_eq!(Attached::decode(&block), Some(label));
            prop_assert_eq!(Superblock::decode(&block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Attached::decode(&block), None);
        }

        #[test]
        fn bytes_that_are_none_are_refused(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            prop_assert_eq!(Header::decode(&block), None);
            prop_assert_eq!(Superblock::decode(&block), None);
            prop_assert_eq!(Attached::decode(&block), None);
        }
    }
}
