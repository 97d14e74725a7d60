//! Records in memory: which are dirty in which transaction group, which are being read, which are cached.
//!
//! A record is dirty in the open group, in the group being written, or in both; its whole size counts for each, as in
//! ZFS. Clean records stay until their memory is needed; the record that was written longest ago is evicted first.
//! Records that are only read are not cached (ZFS's ARC would cache them: here, a read always has the cost of a miss).
//! If the pool has data, a record in memory has a buffer with its newest data, or no buffer if the data is zeroes.

use alloc::collections::VecDeque;

use model::command::Payload;
use model::data::Buffers;
use model::engine::Slab;

use crate::table::SparseTable;

/// Marks the absence of a slot or a waiting request.
pub(super) const NONE: u32 = u32::MAX;

/// A record in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedRecord {
    /// Number of the record.
    pub(super) number: u32,
    /// Stamp of its position in the queue of clean records; 0 if it is not in the queue.
    stamp: u64,
    /// Whether it is dirty in the open group, and in the group being written.
    pub(super) open: bool,
    pub(super) syncing: bool,
    /// Whether it is being read from the main pool; and whether all of it has been written meanwhile.
    pub(super) reading: bool,
    pub(super) over: bool,
    /// Whether it has no data any more: all of it was trimmed.
    pub(super) hole: bool,
    /// Slot on the main pool where a commit has already written its state in the open group, and the checksum of that.
    pub(super) early: u32,
    pub(super) early_sum: u32,
    /// Buffer with its data.
    pub(super) data: Payload,
    /// Whether the buffer is in use by a write to the main pool: a change must copy the data first.
    lent: bool,
    /// The first request that waits for it to be read.
    pub(super) waiters: u32,
}

/// The records in memory, by handle.
#[derive(Clone, Debug)]
pub(super) struct Records {
    of: SparseTable,
    records: Slab<CachedRecord>,
    /// Handles with their stamps, the longest clean first.
    clean: VecDeque<(u32, u64)>,
    stamps: u64,
    held: u64,
    most: u64,
}

impl Records {
    /// Creates the table for `count` records, of which at most `most` are cached.
    pub(super) fn new(count: u64, most: u64) -> Records {
        Records {
            of: SparseTable::new(count),
            records: Slab::default(),
            clean: VecDeque::new(),
            stamps: 0,
            held: 0,
            most,
        }
    }

    /// Returns the handle of a record that is in memory or being read.
    #[inline]
    pub(super) fn find(&self, number: u64) -> Option<u32> {
        self.of.get(number)
    }

    #[inline]
    pub(super) fn get(&self, handle: u32) -> &CachedRecord {
        &self.records[handle]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: u32) -> &mut CachedRecord {
        &mut self.records[handle]
    }

    /// Returns the handle of a record, adding it to memory if necessary.
    pub(super) fn take(&mut self, number: u64) -> u32 {
        if let Some(handle) = self.find(number) {
            return handle;
        }
        self.held += 1;
        let handle = self.records.insert(CachedRecord {
            number: number as u32,
            stamp: 0,
            open: false,
            syncing: false,
            reading: false,
            over: false,
            hole: false,
            early: NONE,
            early_sum: 0,
            data: Payload::default(),
            lent: false,
            waiters: NONE,
        });
        self.of.set(number, handle);
        handle
    }

    /// Makes a record dirty in the open group; returns whether it was not before.
    pub(super) fn dirty(&mut self, handle: u32) -> bool {
        let record = &mut self.records[handle];
        record.stamp = 0;
        !core::mem::replace(&mut record.open, true)
    }

    /// Whether a record is changed in the open group, or in the group being written.
    pub(super) fn is_changed(&self, handle: u32) -> bool {
        self.records[handle].open || self.records[handle].syncing
    }

    /// If a record is idle, queues it for eviction, and evicts other records above the maximum.
    pub(super) fn settle(&mut self, handle: u32, buffers: &mut impl Buffers) {
        let record = &mut self.records[handle];
        if record.open || record.syncing || record.reading {
            return;
        }
        self.stamps += 1;
        record.stamp = self.stamps;
        self.clean.push_back((handle, self.stamps));
        while self.held > self.most || self.clean.len() as u64 > 2 * self.held + 64 {
            let Some((oldest, stamp)) = self.clean.pop_front() else {
                return;
            };
            let record = self.records[oldest];
            let busy = record.open || record.syncing || record.reading;
            if record.stamp == stamp && !busy {
                self.forget(oldest, buffers);
            }
        }
    }

    /// Returns the buffer of a record, to be written to the main pool unchanged, until [`Records::returned`].
    pub(super) fn lend(&mut self, handle: u32) -> Payload {
        let record = &mut self.records[handle];
        record.lent = true;
        record.data
    }

    /// A lent buffer has been written: the record keeps it, or it is released if the record has changed meanwhile.
    pub(super) fn returned(&mut self, handle: u32, data: Payload, buffers: &mut impl Buffers) {
        if !core::mem::take(&mut self.records[handle].lent) {
            buffers.release(data);
        }
    }

    /// Returns a buffer of the record into which `part` bytes can be written; all other bytes keep their content.
    pub(super) fn writable(
        &mut self,
        handle: u32,
        part: u32,
        whole: u32,
        buffers: &mut impl Buffers,
    ) -> Payload {
        let record = &mut self.records[handle];
        if core::mem::take(&mut record.lent) || record.data.buffer == 0 {
            let before = core::mem::replace(&mut record.data, buffers.take(whole));
            if part < whole {
                buffers.copy(before, record.data, whole);
            }
        }
        record.data
    }

    /// Removes the data of a record.
    pub(super) fn empty(&mut self, handle: u32, buffers: &mut impl Buffers) {
        let record = &mut self.records[handle];
        let data = core::mem::take(&mut record.data);
        if !core::mem::take(&mut record.lent) {
            buffers.release(data);
        }
    }

    /// Removes a record from memory.
    pub(super) fn forget(&mut self, handle: u32, buffers: &mut impl Buffers) {
        self.empty(handle, buffers);
        let number = u64::from(self.records[handle].number);
        self.of.clear(number);
        self.records.release(handle);
        self.held -= 1;
    }

    /// Releases all buffers.
    pub(super) fn release_buffers(&mut self, buffers: &mut impl Buffers) {
        for record in self.records.all_mut() {
            let data = core::mem::take(&mut record.data);
            // A lent buffer is released by its user.
            if !core::mem::take(&mut record.lent) {
                buffers.release(data);
            }
        }
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.of.reset();
        self.records = Slab::default();
        self.clean.clear();
        self.held = 0;
    }
}
