//! The data of one pool member, for the model's drives with data: a store of its own.
//!
//! While the host has no space for the pool's stores, writes wait in memory: see [`PoolSpace`]. Not supported: metadata of
//! blocks, which pools do not have; a write cache, which the drive with data has itself.

#[cfg(test)]
mod broken;

#[cfg(test)]
pub(super) use broken::openable;
use std::cell::RefCell;
use std::io;

use model::data::{Contents, DataBackedDrive, UnflushedWrites, Unreadable, Unwritable};
use model::management::ManagedDrive;
use tier::Drive;

use super::data::DriveData;
use super::room::PoolSpace;
use crate::store::no_room;

/// A member of a pool: a drive with its store.
pub(super) type PoolDrive = DataBackedDrive<ManagedDrive<Drive>, MemberDisk>;

/// A member's store.
#[derive(Debug)]
pub(super) struct MemberDisk {
    /// Name of the member in the pool.
    name: String,
    data: DriveData,
    /// State that all members of the pool share.
    room: PoolSpace,
    /// Writes that the store has no space for, and all later writes.
    waiting: UnflushedWrites,
    /// Last errors of the host that have not been reported: of a write, and of a read.
    failed: Option<io::Error>,
    unread: RefCell<Option<io::Error>>,
}

impl MemberDisk {
    /// Returns the store of this member, without a cache.
    pub(super) fn new(name: &str, data: DriveData, room: PoolSpace) -> MemberDisk {
        MemberDisk {
            name: name.to_owned(),
            data,
            room,
            waiting: UnflushedWrites::default(),
            failed: None,
            unread: RefCell::default(),
        }
    }

    /// Takes an error of the host since the last call, with the member's name.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        let written = self.take_failed_write();
        written.or_else(|| Some(self.named("read", self.unread.take()?)))
    }

    /// Takes an error of the host when it wrote to the store, with the member's name.
    pub(super) fn take_failed_write(&mut self) -> Option<io::Error> {
        let error = self.failed.take()?;
        Some(self.named("written", error))
    }

    fn named(&self, be: &str, error: io::Error) -> io::Error {
        let what = format!("{} cannot be {be}: {error}", self.name);
        io::Error::new(error.kind(), what)
    }

    /// Returns byte ranges (start, end) that cannot be read until they are written.
    pub(super) fn unreadable(&self) -> Vec<(u64, u64)> {
        self.data.unreadable()
    }

    /// Makes the range readable again.
    pub(super) fn heal(&mut self, at: u64, bytes: u64) {
        self.data.heal(at, bytes);
    }

    /// Returns the position of the oldest waiting write in the order over all members.
    pub(super) fn oldest_waiting(&self) -> Option<u64> {
        self.waiting.records().first().map(|it| it.order)
    }

    /// Writes the oldest waiting write.
    ///
    /// # Errors
    /// Errors of the host; the write then still waits.
    pub(super) fn write_oldest(&mut self) -> io::Result<()> {
        let Some(order) = self.oldest_waiting() else {
            return Ok(());
        };
        let mut store = StoreWriter {
            name: &self.name,
            data: &mut self.data,
            failed: None,
        };
        let written = self.waiting.flush(order, &mut store);
        match (written, store.failed) {
            (Ok(()), _) => Ok(()),
            (Err(Unwritable), error) => Err(error.unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// Drops the waiting writes, because of this error of the host.
    pub(super) fn give_up(&mut self, error: io::Error) {
        self.waiting = UnflushedWrites::default();
        self.failed = Some(error);
    }

    /// Writes data, or zeroes if there is none, to the store or to the waiting writes.
    fn put(&mut self, at: u64, bytes: u64, data: Option<&[u8]>) -> Result<(), Unwritable> {
        if !self.room.is_full() {
            match through(&self.name, &mut self.data, at, bytes, data) {
                Err(error) if no_room(&error) => self.room.fill(&self.name, &error),
                done => {
                    return done.map_err(|error| {
                        self.failed = Some(error);
                        Unwritable
                    });
                }
            }
        }
        let held = data.map_or(0, |data| data.len() as u64);
        let order = self.room.keep(held).ok_or(Unwritable)?;
        self.waiting.push(order, at, bytes, data);
        Ok(())
    }
}

/// Writes to the store of a member; the name is for tests.
fn through(
    _name: &str,
    to: &mut DriveData,
    at: u64,
    bytes: u64,
    data: Option<&[u8]>,
) -> io::Result<()> {
    #[cfg(test)]
    broken::check(_name, broken::Broken::Writes)?;
    match data {
        Some(data) => {
            #[cfg(test)]
            super::room::spend(bytes)?;
            to.write(at, data, true)
        }
        None => to.zero(at, bytes),
    }
}

/// Gives access to the store itself, for writes that have waited.
struct StoreWriter<'a> {
    name: &'a str,
    data: &'a mut DriveData,
    failed: Option<io::Error>,
}

impl StoreWriter<'_> {
    fn put(&mut self, at: u64, bytes: u64, data: Option<&[u8]>) -> Result<(), Unwritable> {
        through(self.name, self.data, at, bytes, data).map_err(|error| {
            self.failed = Some(error);
            Unwritable
        })
    }
}

impl Contents for StoreWriter<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.data.read(at, into).map_err(|_| Unreadable)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.put(at, data.len() as u64, Some(data))
    }

    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable> {
        self.put(at, bytes, None)
    }

    fn sync(&mut self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn spoil(&mut self, at: u64, bytes: u64) {
        self.data.spoil(at, bytes);
    }
}

impl Contents for MemberDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let bytes = into.len() as u64;
        if !self.data.readable(at, bytes) && !self.waiting.covers(at, bytes) {
            return Err(Unreadable);
        }
        let read = self.data.read(at, into);
        #[cfg(test)]
        let read = read.and(broken::check(&self.name, broken::Broken::Reads));
        read.map_err(|error| {
            self.unread.replace(Some(error));
            Unreadable
        })?;
        self.waiting.overlay(at, into);
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.put(at, data.len() as u64, Some(data))
    }

    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable> {
        self.put(at, bytes, None)
    }

    /// Nothing to do: data in the store survives a crash of this program. Only an orderly shutdown protects against a
    /// crash of the host.
    fn sync(&mut self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn spoil(&mut self, at: u64, bytes: u64) {
        self.waiting.supersede(at, bytes);
        self.data.spoil(at, bytes);
    }
}

impl MemberDisk {
    /// Writes all data to the host's disk.
    pub(super) fn sync_to_host(&mut self) -> io::Result<()> {
        self.data.sync()
    }
}
