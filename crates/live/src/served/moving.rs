//! Data on their way between front ends and what keeps them, at the completion of a command.
//!
//! A drive alone has a store beside it, in which data are moved at the reply. A pool's members have moved them by then: what
//! is read and written is the buffer of the reply that is being handed over. Left out: metadata of blocks of a pool.

use std::io;

use model::Op;

use super::machine::Machine;
use super::{Outcome, Reply, Served, Slot};
use crate::store::{Mark, State};

impl Served {
    /// Who asked is about to move the data of this reply, by [`Served::read`] and [`Served::write`].
    #[inline]
    pub fn hand_over(&mut self, reply: &Reply) {
        if let Machine::Pool(pool) = &mut self.machine {
            pool.hand_over(reply.offset, reply.bytes, reply.payload);
        }
    }

    /// Who asked has moved them, or is gone.
    #[inline]
    pub fn take_back(&mut self, reply: &Reply) {
        if let Machine::Pool(pool) = &mut self.machine {
            pool.take_back(reply.payload);
        }
    }

    /// The writes until now, for a flush.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        match &self.machine {
            Machine::Drive(it) => it.data.mark(),
            Machine::Pool(_) => Mark::default(),
        }
    }

    /// What a command does that has no payload, and whether the medium can do the rest.
    pub(super) fn carry_out(&mut self, slot: &Slot) -> Outcome {
        let Machine::Drive(it) = &mut self.machine else {
            // Its members have done it.
            return Outcome::Success;
        };
        let done = match slot.op {
            Op::Read if !it.data.readable(slot.offset, slot.bytes.into()) => {
                return Outcome::UnrecoveredRead;
            }
            Op::Deallocate | Op::WriteZeroes => self.zero(slot.offset, slot.bytes.into()),
            Op::Flush => it.data.flush(slot.before),
            Op::Read | Op::Write => Ok(()),
        };
        match done {
            Ok(()) => Outcome::Success,
            Err(error) => self.not_taken(&error),
        }
    }

    /// Zeroes the store of a drive alone.
    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let Machine::Drive(it) = &mut self.machine else {
            return Ok(());
        };
        it.data.zero(offset, bytes)?;
        let format = it.drive.lba_format();
        let (block, metadata) = (u64::from(format.data), u64::from(format.metadata));
        it.data
            .zero_metadata(offset / block * metadata, bytes / block * metadata)
    }

    /// Data of a read that has succeeded, or a part of it; of a pool, only while its reply is handed over.
    ///
    /// # Errors
    /// [`Outcome::UnrecoveredRead`] if the store fails; `data` is then zeroes.
    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Outcome> {
        let error = match &mut self.machine {
            Machine::Drive(it) => match it.data.read(offset, data) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Machine::Pool(pool) => match pool.read(offset, data) {
                true => return Ok(()),
                false => io::ErrorKind::NotFound.into(),
            },
        };
        data.fill(0);
        self.failed_after_all(&error);
        Err(Outcome::UnrecoveredRead)
    }

    /// Whether a range that may be read is known to be zeroes because nothing else was written. A file is not asked.
    #[inline]
    pub fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.is_hole(offset, bytes),
            Machine::Pool(_) => false,
        }
    }

    /// Data of a write that has succeeded, or a part of it in whole blocks. A pool's members have them already.
    ///
    /// # Errors
    /// [`Outcome::NoSpace`] if the host has no room, [`Outcome::WriteFault`] if the store fails otherwise.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), Outcome> {
        let written = match &mut self.machine {
            Machine::Drive(it) => {
                let written = it.data.write(offset, data, fua);
                match it.data.crowded() {
                    true => written.and_then(|()| self.settle_data()),
                    false => written,
                }
            }
            Machine::Pool(pool) => match pool.has_written(offset, data.len()) {
                true => Ok(()),
                false => Err(io::ErrorKind::NotFound.into()),
            },
        };
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// Whether no block of the range is unreadable, as far as that is known of the whole.
    pub fn readable(&self, offset: u64, bytes: u64) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.readable(offset, bytes),
            Machine::Pool(_) => true,
        }
    }

    /// Makes the range unreadable until it is written (NVMe's Write Uncorrectable, a medium error). Not a pool's.
    pub fn spoil(&mut self, offset: u64, bytes: u64) {
        let bytes = bytes.min(self.bytes.saturating_sub(offset));
        if let Machine::Drive(it) = &mut self.machine {
            it.data.spoil(offset, bytes);
        }
    }

    /// The end of the run of data, or of the hole, that `offset` is in, and whether it is data; at most `limit`. Of a pool
    /// all may be data.
    pub fn extent(&mut self, offset: u64, limit: u64) -> (u64, bool) {
        match &self.machine {
            Machine::Drive(it) => it.data.extent(offset, limit),
            Machine::Pool(_) => (limit, true),
        }
    }

    /// Metadata of the blocks from `lba` on, on a format that has some.
    ///
    /// # Errors
    /// [`Outcome::UnrecoveredRead`] if the store fails, or the format has no metadata.
    pub fn read_metadata(&mut self, lba: u64, metadata: &mut [u8]) -> Result<(), Outcome> {
        let read = match &self.machine {
            Machine::Drive(it) => {
                let each = u64::from(it.drive.lba_format().metadata);
                it.data.read_metadata(lba * each, metadata)
            }
            Machine::Pool(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        read.map_err(|error| {
            self.failed_after_all(&error);
            Outcome::UnrecoveredRead
        })
    }

    /// Metadata of the blocks from `lba` on, on a format that has some. A crash of the server between this and the
    /// data leaves one without the other.
    ///
    /// # Errors
    /// As [`Served::write`]; [`Outcome::WriteFault`] if the format has no metadata.
    pub fn write_metadata(&mut self, lba: u64, metadata: &[u8]) -> Result<(), Outcome> {
        let written = match &mut self.machine {
            Machine::Drive(it) => {
                let each = u64::from(it.drive.lba_format().metadata);
                it.data.write_metadata(lba * each, metadata)
            }
            Machine::Pool(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// What a drive alone remembers as of now.
    pub(super) fn state(&self) -> Option<State> {
        let Machine::Drive(it) = &self.machine else {
            return None;
        };
        Some(State {
            drive: self.setup.sheet.id.clone(),
            serial: self.serial.clone(),
            bytes: self.bytes,
            clean: false,
            protection: self.protection,
            lifetime: it.drive.lifetime(self.now),
            ftl: self.ftl.0,
            ftl_since_bytes: self.ftl.1,
            unreadable: it.data.unreadable(),
            shares: self.shares.clone(),
            opening: None,
        })
    }
}
