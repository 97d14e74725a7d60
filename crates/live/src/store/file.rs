//! Data in one sparse file, with `pread` and `pwrite`.
//!
//! A memory mapping is not used: a kill during a copy into a mapping tears a block, while the kernel finishes a page
//! of `pwrite` before it handles signals. Data accepted by `pwrite` survives a crash of this program;
//! [`FileStore::sync`] protects against a crash of the host.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fdatasync, seek};

/// Zeroes to write where the file system cannot punch holes.
static ZEROES: [u8; 65_536] = [0; 65_536];

/// Data in a file.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    /// Offset of the store in the file, and its length.
    base: u64,
    bytes: u64,
}

impl FileStore {
    /// Returns a store of `bytes` bytes at offset `base` of this file, which must be long enough.
    pub fn new(file: File, base: u64, bytes: u64) -> FileStore {
        FileStore { file, base, bytes }
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.zero(0, self.bytes)
    }

    pub(super) fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(data, self.base + offset)
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, self.base + offset)
    }

    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, punch, self.base + offset, bytes) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeroes(offset, bytes),
            Err(error) => Err(error.into()),
        }
    }

    fn write_zeroes(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(ZEROES.len() as u64);
            self.file
                .write_all_at(&ZEROES[..now as usize], self.base + offset + done)?;
            done += now;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        Ok(fdatasync(&self.file)?)
    }

    pub(super) fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        let (from, base) = (self.base + offset, self.base);
        match seek(&self.file, SeekFrom::Data(from)) {
            Ok(data) if data > from => ((data - base).min(limit), false),
            Ok(_) => match seek(&self.file, SeekFrom::Hole(from)) {
                Ok(hole) => ((hole - base).min(limit).max(offset + 1), true),
                Err(_) => (limit, true),
            },
            Err(rustix::io::Errno::NXIO) => (limit, false),
            // The file system cannot report holes, so everything may be data.
            Err(_) => (limit, true),
        }
    }
}
