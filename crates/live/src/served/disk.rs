//! The data of one member of a pool, as the model's drives with data want them: a store of its own.
//!
//! While the host has no room for the pool's stores, what is written waits in memory: see [`Room`]. Left out: metadata of
//! blocks, which pools have none of; a write cache, which the drive with data has itself.

use std::io;

use model::data::{Contents, Unflushed, Unreadable, Unwritable};

use super::data::Data;
use super::room::Room;
use crate::store::no_room;

/// A member's store.
#[derive(Debug)]
pub(super) struct Disk {
    /// What the pool calls the member.
    name: String,
    data: Data,
    /// Shared with the other members of the pool.
    room: Room,
    /// Writes that the store has no room for, or that came after one.
    waiting: Unflushed,
    /// What the host could not do last, and nobody has heard of.
    failed: Option<io::Error>,
}

impl Disk {
    /// The data of this member, without a cache.
    pub(super) fn new(name: &str, data: Data, room: Room) -> Disk {
        Disk {
            name: name.to_owned(),
            data,
            room,
            waiting: Unflushed::default(),
            failed: None,
        }
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

    /// The place of the oldest write that waits, among those of all members.
    pub(super) fn oldest_waiting(&self) -> Option<u64> {
        self.waiting.records().first().map(|it| it.order)
    }

    /// Writes the oldest that waits.
    ///
    /// # Errors
    /// Those of the host; then it still waits.
    pub(super) fn write_oldest(&mut self) -> io::Result<()> {
        let Some(order) = self.oldest_waiting() else {
            return Ok(());
        };
        let mut store = Through {
            data: &mut self.data,
            failed: None,
        };
        let written = self.waiting.flush(order, &mut store);
        match (written, store.failed) {
            (Ok(()), _) => Ok(()),
            (Err(Unwritable), error) => Err(error.unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// Writes, or zeroes where there are no data: to the store, or to what waits.
    fn put(&mut self, at: u64, bytes: u64, data: Option<&[u8]>) -> Result<(), Unwritable> {
        if !self.room.is_full() {
            match through(&mut self.data, at, bytes, data) {
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

/// Writes to the store of a member.
fn through(to: &mut Data, at: u64, bytes: u64, data: Option<&[u8]>) -> io::Result<()> {
    match data {
        Some(data) => {
            #[cfg(test)]
            super::room::spend(bytes)?;
            to.write(at, data, true)
        }
        None => to.zero(at, bytes),
    }
}

/// The store itself, for what has waited.
struct Through<'a> {
    data: &'a mut Data,
    failed: Option<io::Error>,
}

impl Through<'_> {
    fn put(&mut self, at: u64, bytes: u64, data: Option<&[u8]>) -> Result<(), Unwritable> {
        through(self.data, at, bytes, data).map_err(|error| {
            self.failed = Some(error);
            Unwritable
        })
    }
}

impl Contents for Through<'_> {
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

impl Contents for Disk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let bytes = into.len() as u64;
        if !self.data.readable(at, bytes) && !self.waiting.covers(at, bytes) {
            return Err(Unreadable);
        }
        self.data.read(at, into).map_err(|_| Unreadable)?;
        self.waiting.overlay(at, into);
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.put(at, data.len() as u64, Some(data))
    }

    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable> {
        self.put(at, bytes, None)
    }

    /// Nothing to do: what the store has taken survives the death of this program, and against that of the host there is only
    /// an orderly end.
    fn sync(&mut self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn spoil(&mut self, at: u64, bytes: u64) {
        self.waiting.supersede(at, bytes);
        self.data.spoil(at, bytes);
    }
}

impl Disk {
    /// Brings everything to the host's disk.
    pub(super) fn sync_to_host(&mut self) -> io::Result<()> {
        self.data.sync()
    }
}
