//! Movement of data between front ends and the stores, at the completion of a command.
//!
//! A single drive has a separate store, and data is moved at the reply. Trims and write-zeroes take effect at the reply
//! too. So commands that complete between two turns of the event loop change the data in the order of their replies,
//! which is the order of a recording. The members of a pool have already moved the data by then: reads and writes use the
//! buffer of the current reply. Not supported: metadata of blocks of a pool.

use std::io;

use model::Op;

use super::machine::Machine;
use super::{InFlightCommand, Outcome, Reply, ServedDevice};
use crate::store::{Mark, SavedState};

impl ServedDevice {
    /// Begins the transfer of this reply's data by [`ServedDevice::read`] and [`ServedDevice::write`]. A single drive also
    /// executes trims and write-zeroes now; the outcome of the reply changes if its store fails.
    #[inline]
    pub fn hand_over(&mut self, reply: &mut Reply) {
        match &mut self.machine {
            Machine::Pool(pool) => pool.hand_over(reply.offset, reply.bytes, reply.payload),
            Machine::Drive(_)
                if reply.outcome == Outcome::Success
                    && matches!(reply.op, Op::Deallocate | Op::WriteZeroes) =>
            {
                if let Err(error) = self.zero(reply.offset, reply.bytes.into()) {
                    reply.outcome = self.failed_after_all(&error);
                }
            }
            Machine::Drive(_) => {}
        }
        if reply.logged.is_some() {
            self.log_reply_begins();
        }
    }

    /// Ends the transfer: the data has been moved, or the client is gone. Logs the command as successful only if the
    /// store has accepted all data of a write.
    #[inline]
    pub fn take_back(&mut self, reply: &Reply) {
        if reply.logged.is_some() {
            self.log_completion(reply);
        }
        if let Machine::Pool(pool) = &mut self.machine {
            pool.take_back(reply.payload);
        }
    }

    /// Returns a mark of the writes so far, for a flush.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        match &self.machine {
            Machine::Drive(it) => it.data.mark(),
            Machine::Pool(_) => Mark::default(),
        }
    }

    /// Executes a flush, and checks whether the medium can execute the other commands.
    pub(super) fn carry_out(&mut self, slot: &InFlightCommand) -> Outcome {
        let Machine::Drive(it) = &mut self.machine else {
            // The members have executed it.
            return Outcome::Success;
        };
        let done = match slot.op {
            Op::Read if !it.data.readable(slot.offset, slot.bytes.into()) => {
                return Outcome::UnrecoveredRead;
            }
            Op::Flush => it.data.flush(slot.before),
            Op::Read | Op::Write | Op::Deallocate | Op::WriteZeroes => Ok(()),
        };
        match done {
            Ok(()) => Outcome::Success,
            Err(error) => self.not_taken(&error),
        }
    }

    /// Zeroes a range in the store of a single drive.
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

    /// Reads data of a successful read, or a part of it; for a pool, only during the transfer of its reply.
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

    /// Checks whether a readable range is known to be zeroes because it has not been written. Files are not queried.
    #[inline]
    pub fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.is_hole(offset, bytes),
            Machine::Pool(_) => false,
        }
    }

    /// Writes data of a successful write, or a part of it in whole blocks. A pool's members already have the data.
    ///
    /// # Errors
    /// [`Outcome::NoSpace`] if the host has no space, [`Outcome::WriteFault`] if the store fails otherwise.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), Outcome> {
        // A full cache is emptied before the write, so that a write that is rejected for it changes nothing.
        if let Machine::Drive(it) = &self.machine
            && it.data.crowded()
            && let Err(error) = self.settle_data()
        {
            return Err(self.failed_after_all(&error));
        }
        let written = match &mut self.machine {
            Machine::Drive(it) => it.data.write(offset, data, fua),
            Machine::Pool(pool) => match pool.has_written(offset, data.len()) {
                true => Ok(()),
                false => Err(io::ErrorKind::NotFound.into()),
            },
        };
        if self.recorder.is_some() {
            self.log_moved_data(written.is_ok(), data.len() as u64);
        }
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// Checks that no block of the range is known to be unreadable; for a pool this is known only for the whole.
    pub fn readable(&self, offset: u64, bytes: u64) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.readable(offset, bytes),
            Machine::Pool(_) => true,
        }
    }

    /// Makes the range unreadable until it is written (NVMe's Write Uncorrectable, a medium error). Not for pools.
    pub fn spoil(&mut self, offset: u64, bytes: u64) {
        let bytes = bytes.min(self.bytes.saturating_sub(offset));
        if let Machine::Drive(it) = &mut self.machine {
            it.data.spoil(offset, bytes);
        }
    }

    /// Returns the end of the run of data, or of the hole, that contains `offset`, at most `limit`, and whether it is
    /// data. In a pool, everything counts as data.
    pub fn extent(&mut self, offset: u64, limit: u64) -> (u64, bool) {
        match &self.machine {
            Machine::Drive(it) => it.data.extent(offset, limit),
            Machine::Pool(_) => (limit, true),
        }
    }

    /// Reads metadata of the blocks starting at `lba`, in a format that has metadata.
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

    /// Writes metadata of the blocks starting at `lba`, in a format that has metadata. If the server crashes between
    /// metadata and data, only one of them is written.
    ///
    /// # Errors
    /// As [`ServedDevice::write`]; [`Outcome::WriteFault`] if the format has no metadata.
    pub fn write_metadata(&mut self, lba: u64, metadata: &[u8]) -> Result<(), Outcome> {
        let written = match &mut self.machine {
            Machine::Drive(it) => {
                let each = u64::from(it.drive.lba_format().metadata);
                it.data.write_metadata(lba * each, metadata)
            }
            Machine::Pool(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        self.log_moved_data(written.is_ok(), 0);
        written.map_err(|error| self.failed_after_all(&error))
    }

    /// Returns the present state of a single drive, for saving.
    pub(super) fn state(&self) -> Option<SavedState> {
        let Machine::Drive(it) = &self.machine else {
            return None;
        };
        Some(SavedState {
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
