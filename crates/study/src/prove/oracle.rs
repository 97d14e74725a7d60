//! Allowed results of reads: every version of each sector that was written, and which of them the durability guarantee
//! requires.
//!
//! A sector contains its address, the number of the step that wrote it, and a checksum of both, so that its content
//! identifies its origin. A version may be read unless another one is certainly later (submitted after the completion
//! of this one) and durable.

use std::collections::BTreeMap;

/// Bytes of a sector.
pub(super) const SECTOR: usize = 512;

/// Writes the content of a sector.
pub(super) fn stamp(sector: u64, version: u32, into: &mut [u8]) {
    into.fill(version as u8);
    into[..8].copy_from_slice(&sector.to_le_bytes());
    into[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = model::data::crc32c(&into[..12]);
    into[12..16].copy_from_slice(&sum.to_le_bytes());
}

/// Content of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SectorContent {
    Zeroes,
    Version(u32),
    /// Content of another sector.
    Others,
    /// Content that was never written.
    Garbage,
}

fn look(sector: u64, bytes: &[u8]) -> SectorContent {
    let number = |at: usize| {
        let (mut four, from) = ([0; 4], &bytes[at..at + 4]);
        four.copy_from_slice(from);
        u32::from_le_bytes(four)
    };
    let version = number(8);
    // Compared as a whole, which is several times as fast as byte by byte.
    let filled = |with: u8, from: usize| bytes[from..] == [with; SECTOR][from..];
    if bytes[0] == 0 && filled(0, 0) {
        return SectorContent::Zeroes;
    }
    let whole = number(12) == model::data::crc32c(&bytes[..12]);
    if !whole || !filled(version as u8, 16) {
        SectorContent::Garbage
    } else if bytes[..8] == sector.to_le_bytes() {
        SectorContent::Version(version)
    } else {
        SectorContent::Others
    }
}

/// Kind of wrong content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WrongContent {
    /// A version older than the guaranteed one, or none.
    Lost,
    /// The content of another sector.
    Others,
    /// Content that was never written.
    Garbage,
}

#[derive(Clone, Copy, Debug)]
struct WriteRecord {
    version: u32,
    zeroes: bool,
    submitted: u32,
    /// Time of its completion; the maximum while it is in flight.
    ended: u32,
    acknowledged: bool,
    durable: bool,
}

/// All writes, by sector. Times are counts of submissions and completions.
#[derive(Clone, Default, Debug)]
pub(super) struct Oracle {
    sectors: BTreeMap<u64, Vec<WriteRecord>>,
    clock: u32,
}

impl Oracle {
    pub(super) fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    /// Returns the written sectors.
    pub(super) fn sectors(&self) -> impl Iterator<Item = u64> {
        self.sectors.keys().copied()
    }

    pub(super) fn submitted(&mut self, version: u32, zeroes: bool, at: u64, sectors: u64) {
        let submitted = self.tick();
        for sector in at..at + sectors {
            self.sectors.entry(sector).or_default().push(WriteRecord {
                version,
                zeroes,
                submitted,
                ended: u32::MAX,
                acknowledged: false,
                durable: false,
            });
        }
    }

    pub(super) fn ended(&mut self, version: u32, at: u64, sectors: u64, well: bool, durable: bool) {
        let ended = self.tick();
        for sector in at..at + sectors {
            let all = self.sectors.get_mut(&sector).into_iter().flatten();
            for written in all.filter(|it| it.version == version) {
                written.ended = ended;
                written.acknowledged = well;
                written.durable = well && durable;
            }
        }
    }

    /// Makes content that was read after a power cut the only allowed version.
    pub(super) fn settle(&mut self, sector: u64, bytes: &[u8]) {
        let (version, zeroes) = match look(sector, bytes) {
            SectorContent::Zeroes => (0, true),
            SectorContent::Version(version) => (version, false),
            // It has already been judged.
            SectorContent::Others | SectorContent::Garbage => return,
        };
        let found = WriteRecord {
            version,
            zeroes,
            submitted: 1,
            ended: 1,
            acknowledged: true,
            durable: true,
        };
        self.sectors.insert(sector, vec![found]);
    }

    /// Records the completion of a flush that was submitted at this time.
    pub(super) fn flushed(&mut self, submitted: u32) {
        for written in self.sectors.values_mut().flatten() {
            written.durable |= written.acknowledged && written.ended < submitted;
        }
    }

    /// Checks whether a sector may have this content after a power cut now.
    pub(super) fn judge(&self, sector: u64, bytes: &[u8]) -> Result<(), WrongContent> {
        self.allowed(sector, bytes, |written| written.durable)
    }

    /// Checks whether a read that was submitted at this time, and has completed now, may return this content.
    pub(super) fn judge_read(
        &self,
        sector: u64,
        bytes: &[u8],
        submitted: u32,
    ) -> Result<(), WrongContent> {
        self.allowed(sector, bytes, |written| {
            written.acknowledged && written.ended < submitted
        })
    }

    fn allowed(
        &self,
        sector: u64,
        bytes: &[u8],
        holds: impl Fn(&WriteRecord) -> bool,
    ) -> Result<(), WrongContent> {
        let seen = look(sector, bytes);
        let written = self.sectors.get(&sector).map_or(&[][..], |it| it);
        let stands = |ended: u32| {
            !written
                .iter()
                .any(|later| later.submitted > ended && holds(later))
        };
        let well = match seen {
            SectorContent::Others => return Err(WrongContent::Others),
            SectorContent::Garbage => return Err(WrongContent::Garbage),
            SectorContent::Zeroes => {
                let zeroes = written.iter().filter(|it| it.zeroes);
                stands(0) || zeroes.into_iter().any(|it| stands(it.ended))
            }
            SectorContent::Version(version) => {
                let mut same = written
                    .iter()
                    .filter(|it| it.version == version && !it.zeroes);
                same.any(|it| stands(it.ended))
            }
        };
        if well {
            Ok(())
        } else {
            Err(WrongContent::Lost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_or_newer_is_right_and_anything_else_is_wrong() {
        let sector = |version: u32| {
            let mut bytes = [0; SECTOR];
            if version > 0 {
                stamp(5, version, &mut bytes);
            }
            bytes
        };
        let mut oracle = Oracle::default();
        let judge = |oracle: &Oracle, version| oracle.judge(5, &sector(version));
        assert_eq!(judge(&oracle, 0), Ok(()));
        assert_eq!(judge(&oracle, 1), Err(WrongContent::Lost));
        oracle.submitted(1, false, 4, 3);
        assert_eq!((judge(&oracle, 0), judge(&oracle, 1)), (Ok(()), Ok(())));
        oracle.ended(1, 4, 3, true, false);
        assert_eq!(judge(&oracle, 0), Ok(()));
        let read = oracle.tick();
        assert_eq!(
            oracle.judge_read(5, &sector(0), read),
            Err(WrongContent::Lost)
        );
        let flush = oracle.tick();
        oracle.submitted(2, false, 5, 1);
        oracle.ended(2, 5, 1, true, false);
        oracle.flushed(flush);
        let seen = [0, 1, 2].map(|version| judge(&oracle, version));
        assert_eq!(seen, [Err(WrongContent::Lost), Ok(()), Ok(())]);
        let mut torn = sector(1);
        torn[300] ^= 4;
        assert_eq!(oracle.judge(5, &torn), Err(WrongContent::Garbage));
        assert_eq!(oracle.judge(6, &sector(1)), Err(WrongContent::Others));
    }
}
