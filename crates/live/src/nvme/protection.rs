//! Protection information: a guard, an application tag and a reference tag for each block, in its metadata.
//!
//! Protection information has eight or sixteen bytes, big endian, at one end of the metadata. It consists of a guard of
//! 16, 32 or 64 bits, an application tag, and one field that holds both a storage tag (for the host's own use) and the
//! reference tag. Types 1 and 2 tie each block to its address, type 3 does not.
//!
//! Source: NVM Express Base Specification 1.4, chapter 8.3; NVM Command Set
//! Specification 1.0, chapter 5.2 (longer guards, storage tags).

use super::wire::{Sqe, Status};

/// The CRC of SCSI's T10 DIF, sixteen bytes at a time.
static GUARD_16: crc::Crc<u16, crc::Table<16>> =
    crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_T10_DIF);

/// The CRC of NVMe's 64-bit guard.
static GUARD_64: crc::Crc<u64, crc::Table<16>> =
    crc::Crc::<u64, crc::Table<16>>::new(&crc::Algorithm {
        width: 64,
        poly: 0xad93_d235_94c9_3659,
        init: u64::MAX,
        refin: true,
        refout: true,
        xorout: u64::MAX,
        check: 0xae8b_1486_0a79_9888,
        residue: 0,
    });

/// Length of the guard, which determines the other fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GuardSize {
    /// Sixteen bits, the CRC of T10 DIF: eight bytes of protection information.
    #[default]
    Short,
    /// 32 bits, CRC-32C: sixteen bytes of protection information.
    Middle,
    /// 64 bits: sixteen bytes of protection information.
    Long,
}

impl GuardSize {
    /// Returns the code in Identify (PIF).
    pub const fn code(self) -> u8 {
        match self {
            GuardSize::Short => 0,
            GuardSize::Middle => 1,
            GuardSize::Long => 2,
        }
    }

    /// Returns the bytes of the guard.
    const fn bytes(self) -> usize {
        match self {
            GuardSize::Short => 2,
            GuardSize::Middle => 4,
            GuardSize::Long => 8,
        }
    }

    /// Returns the bytes of the protection information.
    pub const fn tuple(self) -> usize {
        match self {
            GuardSize::Short => 8,
            GuardSize::Middle | GuardSize::Long => 16,
        }
    }

    /// Returns the bits that storage and reference tag share.
    const fn space(self) -> u32 {
        (self.tuple() - self.bytes() - 2) as u32 * 8
    }
}

/// Protection information that the metadata of a format can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tuple {
    /// Length of the guard.
    pub guard: GuardSize,
    /// Bits of the storage tag; the remaining bits are the reference tag.
    pub storage: u8,
    /// Whether it is reported as a "qualified" format, as defined since version 1.1 of the specification.
    pub qualified: bool,
}

/// Protection information of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// Type 1 to 3; 0: none.
    pub kind: u8,
    /// Whether it is in the first bytes of the metadata (false: in the last).
    pub first: bool,
    /// Protection information that the format can hold.
    pub tuple: Tuple,
}

/// Protection checks that a command requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// Whether the controller generates (writes) or removes (reads) the protection information.
    pub act: bool,
    /// Whether the guard is checked.
    pub guard: bool,
    /// Whether the application tag is checked, where the mask has ones.
    pub application: bool,
    /// Whether the reference tag is checked.
    pub reference: bool,
    /// Whether the storage tag is checked.
    pub storage: bool,
    /// Storage tag, and reference tag of the first block, as many low bits as there is space for.
    pub tags: u128,
    /// Expected application tag.
    pub application_tag: u16,
    /// Mask of the application tag's bits that are checked.
    pub application_mask: u16,
}

impl Checks {
    /// Decodes dwords 2, 3, 12, 14 and 15.
    pub const fn from_sqe(sqe: &Sqe) -> Checks {
        let (cdw12, cdw15) = (sqe.cdw12.get(), sqe.cdw15.get());
        Checks {
            act: cdw12 & 1 << 29 != 0,
            guard: cdw12 & 1 << 28 != 0,
            application: cdw12 & 1 << 27 != 0,
            reference: cdw12 & 1 << 26 != 0,
            storage: cdw12 & 1 << 24 != 0,
            tags: sqe.cdw14.get() as u128
                | (sqe.cdw3.get() as u128) << 32
                | (sqe.cdw2.get() as u128 & 0xffff) << 64,
            application_tag: cdw15 as u16,
            application_mask: (cdw15 >> 16) as u16,
        }
    }
}

impl Protection {
    /// Decodes the byte in which a drive saves it, which is that of Identify Namespace.
    pub const fn from_bits(bits: u8, tuple: Tuple) -> Protection {
        Protection {
            kind: bits & 7,
            first: bits & 1 << 3 != 0,
            tuple,
        }
    }

    /// Returns that byte.
    pub const fn bits(self) -> u8 {
        self.kind | (self.first as u8) << 3
    }

    /// Checks whether the guard is longer than sixteen bits.
    pub fn is_long(self) -> bool {
        self.tuple.guard != GuardSize::Short
    }

    /// Returns the bytes of the protection information.
    pub const fn bytes(self) -> usize {
        self.tuple.guard.tuple()
    }

    /// Checks whether it fits into this much metadata.
    pub fn fits(self, metadata: u16) -> bool {
        self.kind == 0 || usize::from(metadata) >= self.bytes()
    }

    /// Converts between the stored form and the form that hosts see: metadata of blocks that were never written is
    /// stored as zeroes and seen as ones, which disable the checks.
    pub fn turn(self, metadata: &mut [u8], each: usize) {
        if self.kind == 0 || each < self.bytes() {
            return;
        }
        let at = self.place(each);
        for block in metadata.chunks_exact_mut(each) {
            for byte in &mut block[at..at + self.bytes()] {
                *byte = !*byte;
            }
        }
    }

    /// Returns its offset in this metadata.
    fn place(self, metadata: usize) -> usize {
        if self.first {
            0
        } else {
            metadata.saturating_sub(self.bytes())
        }
    }

    /// Returns the guard of a block: over its data, and over metadata that precedes the guard.
    fn guard_of(self, data: &[u8], metadata: &[u8]) -> u64 {
        let before = &metadata[..self.place(metadata.len())];
        match self.tuple.guard {
            GuardSize::Short => {
                let mut digest = GUARD_16.digest();
                digest.update(data);
                digest.update(before);
                digest.finalize().into()
            }
            GuardSize::Middle => crc32c::crc32c_append(crc32c::crc32c(data), before).into(),
            GuardSize::Long => {
                let mut digest = GUARD_64.digest();
                digest.update(data);
                digest.update(before);
                digest.finalize()
            }
        }
    }

    /// Returns the bits of the reference tag.
    fn reference_bits(self) -> u32 {
        self.tuple.guard.space() - u32::from(self.tuple.storage)
    }

    /// Returns storage and reference tag of the block this many after the first.
    fn tags(self, checks: &Checks, index: u32) -> (u128, u128) {
        let bits = self.reference_bits();
        let all = checks.tags & mask(self.tuple.guard.space());
        let first = all & mask(bits);
        let reference = if self.kind == 3 {
            first
        } else {
            (first + u128::from(index)) & mask(bits)
        };
        (all >> bits, reference)
    }

    /// Returns the reference tag that follows from a block's address.
    pub fn reference_of(self, lba: u64) -> u128 {
        u128::from(lba) & mask(self.reference_bits())
    }

    /// Checks that the tags of a command match its address.
    ///
    /// # Errors
    /// [`Status::INVALID_PROTECTION`]: with type 1 the reference tag is the low part of the address.
    pub fn admits(self, checks: &Checks, slba: u64) -> Result<(), Status> {
        let asked = checks.guard || checks.application || checks.reference;
        match self.kind {
            0 if checks.act || asked => Err(Status::INVALID_PROTECTION),
            1 if checks.reference && self.tags(checks, 0).1 != self.reference_of(slba) => {
                Err(Status::INVALID_PROTECTION)
            }
            3 if checks.reference => Err(Status::INVALID_PROTECTION),
            _ => Ok(()),
        }
    }

    /// Advances the tags of a command by `blocks` blocks.
    pub fn advance(self, sqe: &mut Sqe, blocks: u32) {
        let (storage, reference) = self.tags(&Checks::from_sqe(sqe), blocks);
        let tags = storage << self.reference_bits() | reference;
        sqe.cdw14 = (tags as u32).into();
        sqe.cdw3 = ((tags >> 32) as u32).into();
        sqe.cdw2 = ((tags >> 64) as u32).into();
    }

    /// Generates the protection information of the block this many after the first.
    pub fn make(self, checks: &Checks, index: u32, data: &[u8], metadata: &mut [u8]) {
        let at = self.place(metadata.len());
        let guard = self.guard_of(data, metadata).to_be_bytes();
        let (storage, reference) = self.tags(checks, index);
        let tags = (storage << self.reference_bits() | reference).to_be_bytes();
        let tuple = &mut metadata[at..at + self.bytes()];
        let (front, rest) = tuple.split_at_mut(self.tuple.guard.bytes());
        front.copy_from_slice(&guard[8 - front.len()..]);
        rest[..2].copy_from_slice(&checks.application_tag.to_be_bytes());
        let rest = &mut rest[2..];
        rest.copy_from_slice(&tags[16 - rest.len()..]);
    }

    /// Checks the block this many after the first. All ones in the application tag (type 3: and the reference tag)
    /// disable the checks; blocks that were never written read like that.
    ///
    /// # Errors
    /// The first check that failed: guard, application tag, storage tag, reference tag.
    pub fn check(
        self,
        checks: &Checks,
        index: u32,
        data: &[u8],
        metadata: &[u8],
    ) -> Result<(), Status> {
        let at = self.place(metadata.len());
        let Some(tuple) = metadata.get(at..at + self.bytes()) else {
            return Ok(());
        };
        let number = |bytes: &[u8]| {
            let digits = bytes.iter();
            digits.fold(0u128, |sum, &byte| sum << 8 | u128::from(byte))
        };
        let (guard, rest) = tuple.split_at(self.tuple.guard.bytes());
        let application = number(&rest[..2]) as u16;
        let tags = number(&rest[2..]);
        let bits = self.reference_bits();
        let (storage, reference) = (tags >> bits, tags & mask(bits));
        if application == u16::MAX && (self.kind != 3 || reference == mask(bits)) {
            return Ok(());
        }
        if checks.guard && number(guard) != u128::from(self.guard_of(data, metadata)) {
            return Err(Status::GUARD_CHECK);
        }
        let differing = (application ^ checks.application_tag) & checks.application_mask;
        if checks.application && differing != 0 {
            return Err(Status::APPLICATION_TAG_CHECK);
        }
        let expected = self.tags(checks, index);
        if checks.storage && storage != expected.0 {
            return Err(Status::STORAGE_TAG_CHECK);
        }
        if checks.reference && self.kind != 3 && reference != expected.1 {
            return Err(Status::REFERENCE_TAG_CHECK);
        }
        Ok(())
    }
}

/// Returns a mask of this number of ones.
fn mask(bits: u32) -> u128 {
    (1u128 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(guard: GuardSize, storage: u8) -> Tuple {
        Tuple {
            guard,
            storage,
            qualified: false,
        }
    }

    #[test]
    fn what_is_made_passes_and_each_damage_is_told_apart() {
        for (kind, first, size, tuple) in [
            (1, false, 8, tuple(GuardSize::Short, 0)),
            (1, true, 16, tuple(GuardSize::Short, 0)),
            (2, false, 64, tuple(GuardSize::Short, 12)),
            (2, true, 8, tuple(GuardSize::Short, 0)),
            (1, false, 16, tuple(GuardSize::Middle, 16)),
            (2, true, 64, tuple(GuardSize::Middle, 64)),
            (1, false, 16, tuple(GuardSize::Long, 0)),
            (1, false, 24, tuple(GuardSize::Long, 16)),
        ] {
            let protection = Protection { kind, first, tuple };
            let storage = u128::from(tuple.storage > 0) << protection.reference_bits();
            let all = Checks {
                guard: true,
                application: true,
                reference: true,
                storage: true,
                tags: 7 | storage,
                application_tag: 0x1234,
                application_mask: 0xffff,
                act: false,
            };
            let data = [0x5a; 512];
            let mut metadata = vec![9; size];
            protection.make(&all, 3, &data, &mut metadata);
            let check =
                |data: &[u8], metadata: &[u8], index| protection.check(&all, index, data, metadata);
            assert_eq!(check(&data, &metadata, 3), Ok(()));
            assert_eq!(check(&data, &metadata, 4), Err(Status::REFERENCE_TAG_CHECK));
            assert_eq!(check(&[0; 512], &metadata, 3), Err(Status::GUARD_CHECK));
            let other = Checks { tags: 7, ..all };
            let told = protection.check(&other, 3, &data, &metadata);
            let expected = if tuple.storage > 0 {
                Err(Status::STORAGE_TAG_CHECK)
            } else {
                Ok(())
            };
            assert_eq!(told, expected);
            let at = protection.place(size) + tuple.guard.bytes();
            metadata[at] ^= 1;
            assert_eq!(
                check(&data, &metadata, 3),
                Err(Status::APPLICATION_TAG_CHECK)
            );
            metadata[at..at + 2].fill(0xff);
            assert_eq!(check(&[0; 512], &metadata, 9), Ok(()));
        }
    }

    /// Bit by bit, as T10 defines it.
    fn slowly(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u16::from(byte) << 8, |crc: u16, _| {
                crc << 1 ^ if crc & 0x8000 != 0 { 0x8bb7 } else { 0 }
            })
        })
    }

    fn of(guard: GuardSize) -> Protection {
        Protection {
            kind: 3,
            first: false,
            tuple: tuple(guard, 0),
        }
    }

    #[test]
    fn the_guard_is_that_of_t10() {
        let bytes: Vec<u8> = (0..4101u32)
            .map(|index| ((index * index) >> 3) as u8)
            .collect();
        for length in [0, 1, 15, 16, 17, 512, 520, 4096, 4101] {
            let fast = GUARD_16.checksum(&bytes[..length]);
            assert_eq!(fast, slowly(&bytes[..length]));
        }
        // The check value of the catalogue of CRCs for "123456789".
        assert_eq!(of(GuardSize::Short).guard_of(b"123456789", &[0; 8]), 0xd0db);
    }

    /// The test cases of the NVM Command Set Specification: 4 KiB of zeroes, of ones, of ascending bytes, and of
    /// descending bytes.
    #[test]
    fn the_longer_guards_are_those_of_the_specification() {
        let cases: [Vec<u8>; 4] = [
            vec![0; 4096],
            vec![0xff; 4096],
            (0..4096u32).map(|index| index as u8).collect(),
            (0..4096u32).map(|index| !(index as u8)).collect(),
        ];
        let guards = |guard| {
            cases
                .each_ref()
                .map(|data| of(guard).guard_of(data, &[0; 16]))
        };
        assert_eq!(
            guards(GuardSize::Middle),
            [0x98f9_4189, 0x25c1_fe13, 0x9c71_fe32, 0x214941a8]
        );
        assert_eq!(
            guards(GuardSize::Long),
            [
                0x6482_d367_eb22_b64e,
                0xc0dd_ba73_02ec_a3ac,
                0x3e72_9f5f_6750_449c,
                0x9a2d_f64b_8e9e_517e
            ]
        );
        let bytes = b"123456789";
        assert_eq!(
            of(GuardSize::Long).guard_of(bytes, &[0; 16]),
            0xae8b_1486_0a79_9888
        );
    }
}
