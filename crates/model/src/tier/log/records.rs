//! Records in memory: which are dirty in which transaction group, which are being read, which are kept.
//!
//! A record is dirty in the open group, in the one that is being written, or in both; it counts its whole size for each,
//! as ZFS counts it. What is clean again stays until the room is wanted, what was written longest ago goes first; what is
//! only read is not kept (ZFS's ARC would: a read here costs what it costs without it). Where there are data a record in
//! memory has a buffer with the newest of them, or none if they are zeroes.

use alloc::collections::VecDeque;

use crate::command::Payload;
use crate::data::Buffers;
use crate::engine::Slab;
use crate::tier::table::Table;

/// No slot, or no waiter.
pub(super) const NONE: u32 = u32::MAX;

/// A record in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Which.
    pub(super) number: u32,
    /// Of its place in the queue of the clean; 0 if it has none.
    stamp: u64,
    /// Dirty in the open group, and in the one that is being written.
    pub(super) open: bool,
    pub(super) syncing: bool,
    /// It is being read from main; and all of it has been written meanwhile.
    pub(super) reading: bool,
    pub(super) over: bool,
    /// It has no data any more: all of it was trimmed.
    pub(super) hole: bool,
    /// Where on main a commit has put it already as it is in the open group, and the sum of that.
    pub(super) early: u32,
    pub(super) early_sum: u32,
    /// Its data.
    pub(super) data: Payload,
    /// They are on their way to main from where they are: what changes them gets a copy first.
    lent: bool,
    /// The first of those that wait for it to be read.
    pub(super) waiters: u32,
}

/// The records in memory, by handles.
#[derive(Clone, Debug)]
pub(super) struct Records {
    of: Table,
    records: Slab<Record>,
    /// Handles with their stamps, those clean for longest first.
    clean: VecDeque<(u32, u64)>,
    stamps: u64,
    held: u64,
    most: u64,
}

impl Records {
    /// For so many records, of which at most so many are kept.
    pub(super) fn new(count: u64, most: u64) -> Records {
        Records {
            of: Table::new(count),
            records: Slab::default(),
            clean: VecDeque::new(),
            stamps: 0,
            held: 0,
            most,
        }
    }

    /// The handle of a record that is in memory, or on its way there.
    #[inline]
    pub(super) fn find(&self, number: u64) -> Option<u32> {
        self.of.get(number)
    }

    #[inline]
    pub(super) fn get(&self, handle: u32) -> &Record {
        &self.records[handle]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: u32) -> &mut Record {
        &mut self.records[handle]
    }

    /// The handle of a record, which is in memory from now on.
    pub(super) fn take(&mut self, number: u64) -> u32 {
        if let Some(handle) = self.find(number) {
            return handle;
        }
        self.held += 1;
        let handle = self.records.insert(Record {
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

    /// It is dirty in the open group; whether it was not before.
    pub(super) fn dirty(&mut self, handle: u32) -> bool {
        let record = &mut self.records[handle];
        record.stamp = 0;
        !core::mem::replace(&mut record.open, true)
    }

    /// Whether it is changed in the open group, or in the one that is being written.
    pub(super) fn is_changed(&self, handle: u32) -> bool {
        self.records[handle].open || self.records[handle].syncing
    }

    /// Nothing goes on with it, if so: it waits to be forgotten, and so many others go as are too many.
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

    /// Its data, to be written to main as they are now, until [`Records::returned`].
    pub(super) fn lend(&mut self, handle: u32) -> Payload {
        let record = &mut self.records[handle];
        record.lent = true;
        record.data
    }

    /// What was lent has been written: the record's still, or nobody's if it has changed meanwhile.
    pub(super) fn returned(&mut self, handle: u32, data: Payload, buffers: &mut impl Buffers) {
        if !core::mem::take(&mut self.records[handle].lent) {
            buffers.give_back(data);
        }
    }

    /// The buffer of its data, that `part` bytes of it can be written into: all of the others are what they were.
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

    /// It has no data any more.
    pub(super) fn empty(&mut self, handle: u32, buffers: &mut impl Buffers) {
        let record = &mut self.records[handle];
        let data = core::mem::take(&mut record.data);
        if !core::mem::take(&mut record.lent) {
            buffers.give_back(data);
        }
    }

    /// It is not in memory any more.
    pub(super) fn forget(&mut self, handle: u32, buffers: &mut impl Buffers) {
        self.empty(handle, buffers);
        let number = u64::from(self.records[handle].number);
        self.of.clear(number);
        self.records.release(handle);
        self.held -= 1;
    }

    /// What their data are in is not needed any more.
    pub(super) fn give_back(&mut self, buffers: &mut impl Buffers) {
        for record in self.records.all_mut() {
            let data = core::mem::take(&mut record.data);
            // What is lent gives back who has it.
            if !core::mem::take(&mut record.lent) {
                buffers.give_back(data);
            }
        }
    }

    /// All of them are gone.
    pub(super) fn clear(&mut self) {
        self.of.reset();
        self.records = Slab::default();
        self.clean.clear();
        self.held = 0;
    }
}
