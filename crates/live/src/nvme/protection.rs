//! Protection information: a guard, an application tag and a reference tag with each block, in its metadata.
//!
//! Eight bytes, big endian, at one end of the metadata. Types 1 and 2 tie each block to its address, type 3 does not.
//! Left out: the 32- and 64-bit guards of later versions.
//! Source: NVM Express Base Specification 1.4, chapter 8.3.

use super::wire::Status;

/// The CRC of SCSI's T10 DIF, sixteen bytes at a time.
static GUARD: crc::Crc<u16, crc::Table<16>> =
    crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_T10_DIF);

/// Bytes of protection information.
pub const TUPLE: usize = 8;

/// What a namespace has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// 0: none; 1 to 3.
    pub kind: u8,
    /// In the first eight bytes of the metadata instead of the last.
    pub first: bool,
}

/// What a command says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// The controller makes it (writes) or takes it away (reads).
    pub act: bool,
    /// The guard is checked.
    pub guard: bool,
    /// The application tag is checked, where the mask has ones.
    pub application: bool,
    /// The reference tag is checked.
    pub reference: bool,
    /// Reference tag of the first block.
    pub reference_tag: u32,
    /// Application tag.
    pub application_tag: u16,
    /// Which of its bits count.
    pub application_mask: u16,
}

impl Checks {
    /// From dwords 12, 14 and 15.
    pub const fn of(cdw12: u32, cdw14: u32, cdw15: u32) -> Checks {
        Checks {
            act: cdw12 & 1 << 29 != 0,
            guard: cdw12 & 1 << 28 != 0,
            application: cdw12 & 1 << 27 != 0,
            reference: cdw12 & 1 << 26 != 0,
            reference_tag: cdw14,
            application_tag: cdw15 as u16,
            application_mask: (cdw15 >> 16) as u16,
        }
    }
}

impl Protection {
    /// From the byte in which a drive remembers it: as Identify Namespace has it.
    pub const fn of(bits: u8) -> Protection {
        Protection {
            kind: bits & 7,
            first: bits & 1 << 3 != 0,
        }
    }

    /// As that byte.
    pub const fn bits(self) -> u8 {
        self.kind | (self.first as u8) << 3
    }

    /// Whether its guard is longer than sixteen bits.
    pub const fn is_long(self) -> bool {
        false
    }

    /// Whether it has room in this much metadata.
    pub fn fits(self, metadata: u16) -> bool {
        self.kind == 0 || usize::from(metadata) >= TUPLE
    }

    /// Between what is stored and what hosts see: the eight bytes of blocks that were never written are stored as
    /// zeroes and seen as ones, which switch the checks off.
    pub fn turn(self, metadata: &mut [u8], each: usize) {
        if self.kind == 0 || each < TUPLE {
            return;
        }
        let at = self.place(each);
        for block in metadata.chunks_exact_mut(each) {
            for byte in &mut block[at..at + TUPLE] {
                *byte = !*byte;
            }
        }
    }

    /// Where the eight bytes are in this metadata.
    fn place(self, metadata: usize) -> usize {
        if self.first {
            0
        } else {
            metadata.saturating_sub(TUPLE)
        }
    }

    /// The guard of a block: over its data, and over metadata that comes before the eight bytes.
    fn guard_of(self, data: &[u8], metadata: &[u8]) -> u16 {
        let mut digest = GUARD.digest();
        digest.update(data);
        digest.update(&metadata[..self.place(metadata.len())]);
        digest.finalize()
    }

    /// The reference tag of the block this many after the first.
    fn reference(self, checks: &Checks, index: u32) -> u32 {
        if self.kind == 3 {
            checks.reference_tag
        } else {
            checks.reference_tag.wrapping_add(index)
        }
    }

    /// Whether the tags of a command fit its address.
    ///
    /// # Errors
    /// [`Status::INVALID_PROTECTION`]: with type 1 the reference tag is the low half of the address.
    pub fn admits(self, checks: &Checks, slba: u64) -> Result<(), Status> {
        let asked = checks.guard || checks.application || checks.reference;
        match self.kind {
            0 if checks.act || asked => Err(Status::INVALID_PROTECTION),
            1 if checks.reference && checks.reference_tag != slba as u32 => {
                Err(Status::INVALID_PROTECTION)
            }
            3 if checks.reference => Err(Status::INVALID_PROTECTION),
            _ => Ok(()),
        }
    }

    /// Makes the protection information of the block this many after the first.
    pub fn make(self, checks: &Checks, index: u32, data: &[u8], metadata: &mut [u8]) {
        let at = self.place(metadata.len());
        let guard = self.guard_of(data, metadata);
        let tuple = &mut metadata[at..at + TUPLE];
        tuple[0..2].copy_from_slice(&guard.to_be_bytes());
        tuple[2..4].copy_from_slice(&checks.application_tag.to_be_bytes());
        tuple[4..8].copy_from_slice(&self.reference(checks, index).to_be_bytes());
    }

    /// Checks the block this many after the first. All ones in the application tag (type 3: and the reference tag)
    /// switch the checks off: so blocks read that were never written.
    ///
    /// # Errors
    /// The check that failed first: guard, application tag, reference tag.
    pub fn check(
        self,
        checks: &Checks,
        index: u32,
        data: &[u8],
        metadata: &[u8],
    ) -> Result<(), Status> {
        let at = self.place(metadata.len());
        let Some(tuple) = metadata.get(at..at + TUPLE) else {
            return Ok(());
        };
        let guard = u16::from_be_bytes([tuple[0], tuple[1]]);
        let application = u16::from_be_bytes([tuple[2], tuple[3]]);
        let reference = u32::from_be_bytes([tuple[4], tuple[5], tuple[6], tuple[7]]);
        if application == u16::MAX && (self.kind != 3 || reference == u32::MAX) {
            return Ok(());
        }
        if checks.guard && guard != self.guard_of(data, metadata) {
            return Err(Status::GUARD_CHECK);
        }
        let differing = (application ^ checks.application_tag) & checks.application_mask;
        if checks.application && differing != 0 {
            return Err(Status::APPLICATION_TAG_CHECK);
        }
        if checks.reference && self.kind != 3 && reference != self.reference(checks, index) {
            return Err(Status::REFERENCE_TAG_CHECK);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_passes_and_each_damage_is_told_apart() {
        let all = Checks {
            guard: true,
            application: true,
            reference: true,
            reference_tag: 7,
            application_tag: 0x1234,
            application_mask: 0xffff,
            act: false,
        };
        for (kind, first, size) in [(1, false, 8), (1, true, 16), (2, false, 64), (2, true, 8)] {
            let protection = Protection { kind, first };
            let data = [0x5a; 512];
            let mut metadata = vec![9; size];
            protection.make(&all, 3, &data, &mut metadata);
            let check =
                |data: &[u8], metadata: &[u8], index| protection.check(&all, index, data, metadata);
            assert_eq!(check(&data, &metadata, 3), Ok(()));
            assert_eq!(check(&data, &metadata, 4), Err(Status::REFERENCE_TAG_CHECK));
            assert_eq!(check(&[0; 512], &metadata, 3), Err(Status::GUARD_CHECK));
            let at = protection.place(size);
            metadata[at + 2] ^= 1;
            assert_eq!(
                check(&data, &metadata, 3),
                Err(Status::APPLICATION_TAG_CHECK)
            );
            metadata[at + 2..at + 4].fill(0xff);
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

    #[test]
    fn the_guard_is_that_of_t10() {
        let bytes: Vec<u8> = (0..4101u32)
            .map(|index| ((index * index) >> 3) as u8)
            .collect();
        for length in [0, 1, 15, 16, 17, 512, 520, 4096, 4101] {
            assert_eq!(GUARD.checksum(&bytes[..length]), slowly(&bytes[..length]));
        }
        // The check value of the catalogue of CRCs for "123456789".
        assert_eq!(GUARD.checksum(b"123456789"), 0xd0db);
        let protection = Protection {
            kind: 3,
            first: false,
        };
        assert_eq!(protection.guard_of(b"123456789", &[0; 8]), 0xd0db);
    }
}
