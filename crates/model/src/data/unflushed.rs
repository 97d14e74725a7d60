//! A drive's volatile write cache, as seen from outside: what it has acknowledged and no flush has made durable.
//!
//! Which of it would survive a power cut is the drive's affair: any part may be on the medium already, in any order of
//! addresses. What is certain is only this: a read gives the newest; a flush puts on the medium all that was
//! acknowledged before it was submitted; and of two writes to one sector the later is never undone by the earlier.

use alloc::vec::Vec;

use super::contents::{Contents, Unwritable};
use crate::device::Range;

/// A write that a power cut now would leave done or undone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undecided {
    /// Its place among the drive's acknowledgements; what is still inside comes after all of them, in order of submission.
    pub order: u64,
    /// First byte on the drive.
    pub at: u64,
    /// Length.
    pub bytes: u64,
    /// What is written; nothing where it is zeroes.
    pub data: Option<Vec<u8>>,
    /// Whether it is still inside: then any part of it may be done.
    pub inside: bool,
}

impl Undecided {
    fn end(&self) -> u64 {
        self.at + self.bytes
    }

    /// Does a part of it.
    ///
    /// # Errors
    /// What the medium says.
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

    fn part(&self, from: u64, until: u64, mut memory: Vec<u8>) -> Undecided {
        let data = self.data.as_ref().map(|data| {
            memory.clear();
            memory.extend_from_slice(&data[(from - self.at) as usize..(until - self.at) as usize]);
            memory
        });
        Undecided {
            at: from,
            bytes: until - from,
            data,
            ..*self
        }
    }
}

/// Writes that are acknowledged and not durable, in order.
#[derive(Clone, Debug, Default)]
pub struct Unflushed {
    records: Vec<Undecided>,
    /// Memory of records that are no more.
    spare: Vec<Vec<u8>>,
}

impl Unflushed {
    /// Whether everything is durable.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What is in it, oldest first.
    pub fn records(&self) -> &[Undecided] {
        &self.records
    }

    /// Takes a write of so many bytes, or zeroes, that is acknowledged as the `order`-th.
    pub fn push(&mut self, order: u64, at: u64, bytes: u64, data: Option<&[u8]>) {
        let data = data.map(|data| {
            let mut memory = self.spare.pop().unwrap_or_default();
            memory.clear();
            memory.extend_from_slice(data);
            memory
        });
        self.records.push(Undecided {
            order,
            at,
            bytes,
            data,
            inside: false,
        });
    }

    /// Puts what is newer here over what was read from the medium.
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

    /// Whether the whole of a range is here, so that the medium need not be read.
    pub fn covers(&self, at: u64, bytes: u64) -> bool {
        let end = at + bytes;
        let mut until = at;
        // Each round finds at least one record that goes further, or ends.
        while until < end {
            let further = self
                .records
                .iter()
                .filter(|record| record.at <= until && record.end() > until);
            match further.map(Undecided::end).max() {
                Some(next) => until = next,
                None => return false,
            }
        }
        true
    }

    /// Newer data of the range are durable: nothing older of it may come after them.
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

    /// Puts on the medium all that was acknowledged as the `through`-th or before.
    ///
    /// # Errors
    /// What the medium says; then nothing leaves.
    pub fn flush(&mut self, through: u64, contents: &mut impl Contents) -> Result<(), Unwritable> {
        for record in self.records.iter().filter(|it| it.order <= through) {
            record.apply(record.at, record.end(), contents)?;
        }
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

    /// Power goes: of what is here only `lost` is lost, the rest was on its way to the medium and arrives.
    ///
    /// # Errors
    /// What the medium says.
    pub fn cut(&mut self, lost: &[Range], contents: &mut impl Contents) -> Result<(), Unwritable> {
        for range in lost {
            self.supersede(range.offset, range.bytes);
        }
        self.flush(u64::MAX, contents)
    }

    /// Puts on the medium all but these ranges, of which the newest data are in the drive's buffer.
    ///
    /// # Errors
    /// What the medium says; then nothing leaves.
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
        let gone = core::mem::replace(&mut self.records, stays);
        self.spare.extend(gone.into_iter().filter_map(|it| it.data));
        Ok(())
    }
}
