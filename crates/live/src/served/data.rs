//! The data of a drive: store, volatile write cache, metadata of the blocks, and what cannot be read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use crate::store::{FileStore, Mark, MemoryStore, Ranges, Store, WriteCache};

/// Data and metadata that a drive stores.
#[derive(Debug)]
pub(super) struct DriveData {
    store: Store,
    /// File of the store, resized when the format changes.
    file: Option<File>,
    bytes: u64,
    /// Writes that are acknowledged but not yet in the store, on drives that lose them when power fails.
    cache: Option<WriteCache>,
    /// Maximum bytes of the cache before the drive is queried for the content of its buffer.
    most: u64,
    cache_enabled: bool,
    metadata: Option<Store>,
    /// Byte ranges (start, end) that cannot be read until they are written.
    unreadable: BTreeMap<u64, u64>,
    /// Counts changes of `unreadable`.
    changes: u16,
}

impl DriveData {
    /// Returns data in this store of `bytes` bytes; `volatile` is the size of a cache that power loss empties.
    pub(super) fn new(
        store: Store,
        file: Option<File>,
        bytes: u64,
        volatile: Option<u64>,
    ) -> DriveData {
        DriveData {
            store,
            file,
            bytes,
            cache: volatile.map(|_| WriteCache::default()),
            most: 2 * volatile.unwrap_or_default(),
            cache_enabled: true,
            metadata: None,
            unreadable: BTreeMap::new(),
            changes: 0,
        }
    }

    /// Allocates this many bytes of metadata for all blocks, zeroed if `anew`.
    pub(super) fn set_metadata(&mut self, bytes: u64, anew: bool) -> io::Result<()> {
        if let Some(file) = &self.file {
            if anew {
                file.set_len(self.bytes)?;
            }
            file.set_len(self.bytes + bytes)?;
        }
        self.metadata = match (&self.file, bytes) {
            (_, 0) => None,
            (Some(file), _) => Some(Store::File(FileStore::new(
                file.try_clone()?,
                self.bytes,
                bytes,
            ))),
            (None, _) => Some(Store::Memory(MemoryStore::new(bytes)?)),
        };
        Ok(())
    }

    #[inline]
    pub(super) fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        self.store.read(offset, data)?;
        if let Some(cache) = &self.cache {
            cache.overlay(offset, data);
        }
        Ok(())
    }

    /// Checks whether the range is known to read as zeroes because it has not been written.
    #[inline]
    pub(super) fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        self.store.is_hole(offset, bytes) && self.cache.as_ref().is_none_or(WriteCache::is_empty)
    }

    #[inline]
    pub(super) fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        match &mut self.cache {
            Some(cache) if self.cache_enabled && !fua => cache.write(offset, data),
            Some(cache) => {
                self.store.write(offset, data)?;
                cache.forget(offset, data.len() as u64);
            }
            None => self.store.write(offset, data)?,
        }
        // Only now: a block whose write the store rejected stays unreadable.
        if !self.unreadable.is_empty() {
            self.heal(offset, data.len() as u64);
        }
        Ok(())
    }

    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.store.zero(offset, bytes)?;
        self.heal(offset, bytes);
        if let Some(cache) = &mut self.cache {
            cache.forget(offset, bytes);
        }
        Ok(())
    }

    /// Returns a mark of the writes so far, for [`DriveData::flush`].
    pub(super) fn mark(&self) -> Mark {
        let cache = self.cache.as_ref();
        cache.map_or(Mark::default(), WriteCache::mark)
    }

    /// Moves to the store all data acknowledged before this mark.
    pub(super) fn flush(&mut self, before: Mark) -> io::Result<()> {
        match &mut self.cache {
            Some(cache) => cache.flush(&mut self.store, before),
            None => Ok(()),
        }
    }

    /// Checks whether the drive should be queried for the content of its buffer.
    pub(super) fn crowded(&self) -> bool {
        self.cache.as_ref().is_some_and(|it| it.bytes() > self.most)
    }

    /// Moves to the store all data that the drive no longer has in its buffer.
    pub(super) fn settle(&mut self, buffered: &Ranges) -> io::Result<()> {
        match &mut self.cache {
            Some(cache) => cache.settle(&mut self.store, buffered),
            None => Ok(()),
        }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush(self.mark())?;
        self.store.sync()
    }

    /// Drops the data that the drive had in its buffer when power failed. Returns the acknowledged bytes that are
    /// lost.
    pub(super) fn lose_power(&mut self, lost: &Ranges) -> u64 {
        self.cache_enabled = true;
        // If the store fails here, more is lost than the drive would lose.
        let _ = self.settle(lost);
        self.cache.as_mut().map_or(0, WriteCache::lose)
    }

    /// Zeroes all data and makes all of it readable.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if let Some(cache) = &mut self.cache {
            cache.lose();
        }
        self.heal(0, self.bytes);
        self.store.clear()
    }

    pub(super) fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    pub(super) fn cache_enabled(&self) -> bool {
        self.cache.is_some() && self.cache_enabled
    }

    pub(super) fn enable_cache(&mut self, enabled: bool) -> io::Result<()> {
        if !enabled {
            self.flush(self.mark())?;
        }
        self.cache_enabled = enabled;
        Ok(())
    }

    pub(super) fn extent(&self, offset: u64, limit: u64) -> (u64, bool) {
        let (end, data) = self.store.extent(offset, limit);
        let cached = self.cache.as_ref().and_then(|it| it.next(offset));
        // Data that is only in the cache counts too.
        match cached {
            Some(page) if page <= offset => ((page + 4096).min(limit), true),
            Some(page) if !data => (end.min(page), false),
            _ => (end, data),
        }
    }

    pub(super) fn read_metadata(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        match &self.metadata {
            Some(store) => store.read(offset, data),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn write_metadata(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        match &mut self.metadata {
            Some(store) => store.write(offset, data),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn zero_metadata(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        match &mut self.metadata {
            Some(store) => store.zero(offset, bytes),
            None => Ok(()),
        }
    }

    /// Makes the range unreadable until it is written.
    pub(super) fn spoil(&mut self, offset: u64, bytes: u64) {
        self.heal(offset, bytes);
        if bytes > 0 {
            self.unreadable.insert(offset, offset + bytes);
            self.changes = self.changes.wrapping_add(1);
        }
    }

    /// Makes the range readable again.
    pub(super) fn heal(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        while let Some((start, stop)) = self.first_unreadable(offset, end) {
            self.unreadable.remove(&start);
            self.changes = self.changes.wrapping_add(1);
            if start < offset {
                self.unreadable.insert(start, offset);
            }
            if stop > end {
                self.unreadable.insert(end, stop);
            }
        }
    }

    /// Returns an unreadable range that overlaps this one.
    fn first_unreadable(&self, offset: u64, end: u64) -> Option<(u64, u64)> {
        let (&start, &stop) = self.unreadable.range(..end).next_back()?;
        (stop > offset && start < end).then_some((start, stop))
    }

    #[inline]
    pub(super) fn readable(&self, offset: u64, bytes: u64) -> bool {
        self.unreadable.is_empty() || self.first_unreadable(offset, offset + bytes).is_none()
    }

    /// Returns a counter that changes with [`DriveData::unreadable`].
    pub(super) fn changes(&self) -> u16 {
        self.changes
    }

    pub(super) fn unreadable(&self) -> Vec<(u64, u64)> {
        self.unreadable
            .iter()
            .map(|(&start, &end)| (start, end))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_ranges_are_cut_by_writes() {
        let store = Store::Memory(MemoryStore::new(1 << 20).expect("memory"));
        let mut data = DriveData::new(store, None, 1 << 20, None);
        data.spoil(4096, 8192);
        assert!(data.readable(0, 4096) && !data.readable(0, 4608));
        data.write(8192, &[1; 512], false).expect("write");
        assert_eq!(data.unreadable(), [(4096, 8192), (8704, 12288)]);
        assert!(data.readable(8192, 512));
        data.spoil(0, 16384);
        assert_eq!(data.unreadable(), [(0, 16384)]);
        data.heal(0, 1 << 20);
        assert!(data.readable(0, 1 << 20));
    }
}
