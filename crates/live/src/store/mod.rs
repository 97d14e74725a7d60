//! Where a served drive keeps its data.
//!
//! A store holds bytes by offset. What was never written reads as zeroes. Offsets and lengths are those of a checked command: beyond the end is an error of the caller.

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
pub use state::{Share, State, save, state_path};

/// Permissions of the files of a store, and of a pool's folder: the owner's alone, whatever the umask.
pub(crate) const OWN_FILE: u32 = 0o600;
pub(crate) const OWN_FOLDER: u32 = 0o700;

/// Bytes of a page, in which caches and memory keep data.
const PAGE: u64 = 4096;

/// Where the data is.
#[derive(Debug)]
pub enum Store {
    /// In memory; gone when the server ends.
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
    /// Those of the file; `data` is then undefined.
    #[inline]
    pub fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        each!(self, store => store.read(offset, data))
    }

    /// Writes `data` at `offset`: after a crash of this program each 4 KiB page is old or new.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        each!(self, store => store.write(offset, data))
    }

    /// Makes the range zeroes, giving memory or disk space back where that is possible.
    ///
    /// # Errors
    /// Those of the file.
    pub fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        each!(self, store => store.zero(offset, bytes))
    }

    /// Makes all of it zeroes.
    ///
    /// # Errors
    /// Those of the file or of memory.
    pub fn clear(&mut self) -> io::Result<()> {
        each!(self, store => store.clear())
    }

    /// Brings everything to the host's disk.
    ///
    /// # Errors
    /// Those of the file.
    pub fn sync(&mut self) -> io::Result<()> {
        each!(self, store => store.sync())
    }

    /// Whether the range was never written, or only with zeroes, as far as that is known without asking the kernel: it reads
    /// as zeroes.
    #[inline]
    pub fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        match self {
            Store::Memory(store) => store.is_hole(offset, bytes),
            Store::File(_) => false,
        }
    }

    /// The end of the run of data, or of the hole, that `offset` is in, and whether it is data. At most `limit`.
    pub fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        each!(self, store => store.extent(offset, limit))
    }
}

/// Whether the host has no room for more: its disk, a quota, a limit of this process.
pub(crate) fn no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A page that a range touches: its number, the range within it, and where that is in the range.
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
