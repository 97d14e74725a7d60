//! A drive's volatile write cache, as seen from outside: acknowledged writes that no flush has made durable.
//!
//! The drive decides which of these would survive a power cut: any part may already be on the medium, in any order of
//! addresses. Only the following is certain. A read returns the newest data. A flush moves all data to the medium that
//! was acknowledged before the flush was submitted. An earlier write to a sector never replaces a later one.

use alloc::vec::Vec;

use super::contents::{Contents, Unwritable};
use crate::device::Range;

/// A write whose outcome after a power cut now is undecided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndecidedWrite {
    /// Position among the drive's acknowledgements; outstanding writes follow all of them, in order of submission.
    pub order: u64,
    /// First byte on the drive.
    pub at: u64,
    /// Length.
    pub bytes: u64,
    /// Data to be written; `None` for zeroes.
    pub data: Option<Vec<u8>>,
    /// Whether the write is outstanding: then any part of it may be done.
    pub inside: bool,
}

impl UndecidedWrite {
    fn end(&self) -> u64 {
        self.at + self.bytes
    }

    /// Applies a part of the write.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn apply(
        &self,
        from: u64,
        until: u64,
        contents: &mut impl Contents,
    ) -> Result<(), Unwritable> {
        let (from, until) = (from.max(self.at), until.min(self.end()));
        if from >= until {
            return Ok(());
        }
        match &self.data {
            Some(data) => {
                let part = (from - self.at) as usize..(until - self.at) as usize;
                contents.write(from, &data[part])
            }
            None => contents.zero(from, until - from),
        }
    }

    fn part(&self, from: u64, until: u64, mut memory: Vec<u8>) -> UndecidedWrite {
        let data = self.data.as_ref().map(|data| {
            memory.clear();
            memory.extend_from_slice(&data[(from - self.at) as usize..(until - self.at) as usize]);
            memory
        });
        UndecidedWrite {
            at: from,
            bytes: until - from,
            data,
            ..*self
        }
    }
}

/// Writes that are acknowledged and not durable, in order.
#[derive(Clone, Debug, Default)]
pub struct UnflushedWrites {
    records: Vec<UndecidedWrite>,
    /// Memory of removed records, for reuse.
    spare: Vec<Vec<u8>>,
    /// Bytes added since all of them were last moved as far as possible.
    added: u64,
}

impl UnflushedWrites {
    /// Whether everything is durable.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns its writes, oldest first.
    pub fn records(&self) -> &[UndecidedWrite] {
        &self.records
    }

    /// Returns the bytes added since the last flush or settling: an upper limit of new data in memory.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Counts from 0 again, also if data could not be moved.
    pub fn count_again(&mut self) {
        self.added = 0;
    }

    /// Adds a write of `bytes` bytes, or zeroes, with acknowledgement number `order`.
    pub fn push(&mut self, order: u64, at: u64, bytes: u64, data: Option<&[u8]>) {
        let data = data.map(|data| {
            let mut memory = self.spare.pop().unwrap_or_default();
            memory.clear();
            memory.extend_from_slice(data);
            memory
        });
        self.added += bytes;
        self.records.push(UndecidedWrite {
            order,
            at,
            bytes,
            data,
            inside: false,
        });
    }

    /// Replaces data that was read from the medium by newer data of these writes.
    pub fn overlay(&self, at: u64, into: &mut [u8]) {
        let end = at + into.len() as u64;
        for record in &self.records {
            let (from, until) = (record.at.max(at), record.end().min(end));
            if from < until {
                let into = &mut into[(from - at) as usize..(until - at) as usize];
                match &record.data {
                    Some(data) => into.copy_from_slice(
                        &data[(from - record.at) as usize..(until - record.at) as usize],
                    ),
                    None => into.fill(0),
                }
            }
        }
    }

    /// Whether these writes cover a whole range, so that the medium need not be read.
    pub fn covers(&self, at: u64, bytes: u64) -> bool {
        let end = at + bytes;
        let mut until = at;
        // Each round finds at least one record that extends further, or ends.
        while until < end {
            let further = self
                .records
                .iter()
                .filter(|record| record.at <= until && record.end() > until);
            match further.map(UndecidedWrite::end).max() {
                Some(next) => until = next,
                None => return false,
            }
        }
        true
    }

    /// Newer data of the range is durable: older data must not overwrite it.
    pub fn supersede(&mut self, at: u64, bytes: u64) {
        let end = at + bytes;
        if !self.records.iter().any(|it| it.at < end && it.end() > at) {
            return;
        }
        let records = core::mem::take(&mut self.records);
        for record in records {
            if record.at >= end || record.end() <= at {
                self.records.push(record);
                continue;
            }
            if record.at < at {
                let memory = self.spare.pop().unwrap_or_default();
                self.records.push(record.part(record.at, at, memory));
            }
            if record.end() > end {
                let memory = self.spare.pop().unwrap_or_default();
                self.records.push(record.part(end, record.end(), memory));
            }
            self.spare.extend(record.data);
        }
    }

    /// Moves all writes up to acknowledgement number `through` to the medium.
    ///
    /// # Errors
    /// Those of the medium; then no write is removed.
    pub fn flush(&mut self, through: u64, contents: &mut impl Contents) -> Result<(), Unwritable> {
        for record in self.records.iter().filter(|it| it.order <= through) {
            record.apply(record.at, record.end(), contents)?;
        }
        self.added = 0;
        let spare = &mut self.spare;
        self.records.retain_mut(|record| {
            let stays = record.order > through;
            if !stays {
                spare.extend(record.data.take());
            }
            stays
        });
        Ok(())
    }

    /// Power is cut: only `lost` is lost; all other writes reach the medium.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn cut(&mut self, lost: &[Range], contents: &mut impl Contents) -> Result<(), Unwritable> {
        for range in lost {
            self.supersede(range.offset, range.bytes);
        }
        self.flush(u64::MAX, contents)
    }

    /// Moves everything to the medium except these ranges, whose newest data is in the drive's buffer.
    ///
    /// # Errors
    /// Those of the medium; then no write is removed.
    pub fn settle(
        &mut self,
        mut buffered: Vec<Range>,
        contents: &mut impl Contents,
    ) -> Result<(), Unwritable> {
        buffered.sort_unstable_by_key(|range| range.offset);
        let mut stays = Vec::new();
        for record in &self.records {
            let mut at = record.at;
            let first = buffered.partition_point(|it| it.offset + it.bytes <= record.at);
            for range in &buffered[first..] {
                if range.offset >= record.end() {
                    break;
                }
                record.apply(at, range.offset, contents)?;
                let end = (range.offset + range.bytes).min(record.end());
                let (from, until) = (range.offset.max(at), end.max(at));
                if from < until {
                    let memory = self.spare.pop().unwrap_or_default();
                    stays.push(record.part(from, until, memory));
                }
                at = at.max(end);
            }
            record.apply(at, record.end(), contents)?;
        }
        self.added = 0;
        let gone = core::mem::replace(&mut self.records, stays);
        self.spare.extend(gone.into_iter().filter_map(|it| it.data));
        Ok(())
    }
}
