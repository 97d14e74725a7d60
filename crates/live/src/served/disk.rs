//! The data of one member of a pool, as the model's drives with data want them: a store of its own.
//!
//! Left out: metadata of blocks, which pools have none of; a write cache, which the drive with data has itself.

use std::io;

use model::data::{Contents, Unreadable, Unwritable};

use super::data::Data;

/// A member's store.
#[derive(Debug)]
pub(super) struct Disk {
    data: Data,
    /// What the host could not do last, and nobody has heard of.
    failed: Option<io::Error>,
}

impl Disk {
    /// The data in this store, without a cache.
    pub(super) fn new(data: Data) -> Disk {
        Disk { data, failed: None }
    }

    /// What the host could not do since this was asked last.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Ranges in bytes (start, end) that cannot be read until they are written.
    pub(super) fn unreadable(&self) -> Vec<(u64, u64)> {
        self.data.unreadable()
    }

    /// The range can be read again.
    pub(super) fn heal(&mut self, at: u64, bytes: u64) {
        self.data.heal(at, bytes);
    }

    fn noted(&mut self, done: io::Result<()>) -> Result<(), Unwritable> {
        done.map_err(|error| {
            self.failed = Some(error);
            Unwritable
        })
    }
}

impl Contents for Disk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        if !self.data.readable(at, into.len() as u64) {
            return Err(Unreadable);
        }
        self.data.read(at, into).map_err(|_| Unreadable)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        let done = self.data.write(at, data, true);
        self.noted(done)
    }

    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable> {
        let done = self.data.zero(at, bytes);
        self.noted(done)
    }

    /// Nothing to do: what the store has taken survives the death of this program, and against that of the host there is only
    /// an orderly end.
    fn sync(&mut self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn spoil(&mut self, at: u64, bytes: u64) {
        self.data.spoil(at, bytes);
    }
}

impl Disk {
    /// Brings everything to the host's disk.
    pub(super) fn sync_to_host(&mut self) -> io::Result<()> {
        self.data.sync()
    }
}
