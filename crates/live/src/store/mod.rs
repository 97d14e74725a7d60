//! Storage for the data of a served drive.
//!
//! A store holds bytes by offset. Bytes that were never written read as zeroes. Offsets and lengths are those of a
//! checked command: exceeding the end is an error of the caller.

mod cache;
mod file;
mod memory;
mod pages;
mod pool;
mod state;

use std::io;

pub use cache::{Mark, Ranges, WriteCache};
pub use file::FileStore;
pub use memory::MemoryStore;
pub use pool::{PoolState, pool_state_path};
pub use state::{SavedState, Share, save, state_path};

/// Permissions of the files of a store, and of a pool's folder: for the owner only, whatever the umask is.
pub(crate) const OWN_FILE: u32 = 0o600;
pub(crate) const OWN_FOLDER: u32 = 0o700;

/// Bytes of a page, the unit of caches and memory.
const PAGE: u64 = 4096;

/// Place of the data.
#[derive(Debug)]
pub enum Store {
    /// In memory; lost when the server ends.
    Memory(MemoryStore),
    /// In a sparse file.
    File(FileStore),
}

macro_rules! each {
    ($store:expr, $inner:ident => $call:expr) => {
        match $store {
            Store::Memory($inner) => $call,
            Store::File($inner) => $call,
        }
    };
}

impl Store {
    /// Reads at `offset` into all of `data`.
    ///
    /// # Errors
    /// Errors of the file; `data` is then undefined.
    #[inline]
    pub fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        each!(self, store => store.read(offset, data))
    }

    /// Writes `data` at `offset`: after a crash of this program each 4 KiB page is old or new.
    ///
    /// # Errors
    /// Errors of the file.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        each!(self, store => store.write(offset, data))
    }

    /// Zeroes the range, releasing memory or disk space if possible.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        each!(self, store => store.zero(offset, bytes))
    }

    /// Zeroes the whole store.
    ///
    /// # Errors
    /// Errors of the file or of memory.
    pub fn clear(&mut self) -> io::Result<()> {
        each!(self, store => store.clear())
    }

    /// Writes all data to the host's disk.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn sync(&mut self) -> io::Result<()> {
        each!(self, store => store.sync())
    }

    /// Checks whether the range was never written, or only with zeroes, if that is known without a system call: then
    /// it reads as zeroes.
    #[inline]
    pub fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        match self {
            Store::Memory(store) => store.is_hole(offset, bytes),
            Store::File(_) => false,
        }
    }

    /// Returns the end of the run of data, or of the hole, that contains `offset`, at most `limit`, and whether it is
    /// data.
    pub fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        each!(self, store => store.extent(offset, limit))
    }
}

/// Checks whether the host has no space left: its disk is full, or a quota or a limit of this process is reached.
pub(crate) fn no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Returns the pages of a range: number, offset and length within the page, and offset within the range.
fn pages(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64, usize)> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / PAGE;
        let stop = end.min((page + 1) * PAGE);
        let item = (page, at % PAGE, stop - at, (at - offset) as usize);
        at = stop;
        Some(item)
    })
}
