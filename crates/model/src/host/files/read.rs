//! Reads through the page cache, and read-ahead.
//!
//! A read goes through its pages in order. A page that is not in memory is read from the drive, and the read waits for
//! it. Reads in sequence read ahead: the first window is computed from the request, each later window is two or four
//! times as large, up to `read_ahead`. A page in the window is marked; the read that reaches it starts the next window
//! and does not wait for it. A request larger than `read_ahead` is one window of at most 1 MiB.
//!
//! fio advises the system about its accesses (`fadvise_hint`): windows of sequential jobs are twice as large, and random
//! jobs read exactly what they ask for. Not modelled: a file whose last page ends its windows within another file's
//! range, page faults of mapped files, reads that a partial write of a page needs.
//!
//! Source: Linux, mm/readahead.c (windows, marker), mm/filemap.c (waits), mm/fadvise.c,
//! Documentation/ABI/stable/sysfs-block (`read_ahead_kb`).

use alloc::vec::Vec;

use super::pages::PageState;
use super::wait::waited;
use super::writeback::PIECE;
use super::{FileStage, Files, Owner, PAGE};
use crate::command::{Command, CommandId, Completion, Status};
use crate::device::Device;
use crate::time::Time;

/// A program's advice about its accesses (`posix_fadvise`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Advice {
    /// None: reads in sequence are detected.
    #[default]
    Normal,
    /// Windows of read-ahead are twice as large.
    Sequential,
    /// No read-ahead.
    Random,
}

/// Read-ahead of one open file, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadWindow {
    /// The last window.
    start: u64,
    size: u64,
    /// Pages of the window after its marked page.
    after: u64,
    /// The marked page that has not been reached.
    marker: Option<u64>,
    /// Last page of the previous read.
    previous: Option<u64>,
}

impl ReadAheadWindow {
    pub(super) const NONE: ReadAheadWindow = ReadAheadWindow {
        start: 0,
        size: 0,
        after: 0,
        marker: None,
        previous: None,
    };

    /// The read at `page` misses, and still needs `wanted` pages. Returns the window to read: first page and length.
    fn miss(&mut self, page: u64, wanted: u64, most: u64) -> (u64, u64) {
        if page > 0
            && (page == self.start + self.size - self.after || page == self.start + self.size)
        {
            return self.next(most);
        }
        let in_sequence = match self.previous {
            Some(previous) => page.wrapping_sub(previous) <= 1,
            None => page == 0,
        };
        if !in_sequence && wanted <= most {
            return (page, wanted);
        }
        self.start = page;
        self.size = first_window(wanted, most);
        self.after = match self.size > wanted {
            true => self.size - wanted,
            false => self.size,
        };
        self.mark();
        (self.start, self.size)
    }

    /// The read has reached the marked page, or the end of the window. Returns the next window.
    fn next(&mut self, most: u64) -> (u64, u64) {
        self.start += self.size;
        let grown = match self.size < most / 16 {
            true => self.size * 4,
            false => self.size * 2,
        };
        self.size = grown.min(most);
        self.after = self.size;
        self.mark();
        (self.start, self.size)
    }

    fn mark(&mut self) {
        self.marker = Some(self.start + self.size - self.after);
    }
}

/// Returns the first window of a sequence of reads, in pages.
fn first_window(wanted: u64, most: u64) -> u64 {
    let size = wanted.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// A request that reads pages.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    start: u64,
    end: u64,
    /// Reads that wait for its pages.
    waiters: Vec<CommandId>,
}

impl<D: Device> Files<D> {
    /// Continues a read at the page that it has reached. It completes, or waits for a page.
    pub(super) fn read_on(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        let thread = task.command.queue;
        let last = (task.command.end() - 1) / PAGE;
        let mut page = task.page;
        while page <= last {
            if self.state(page).is_none() {
                self.read_missing(now, thread, page, last + 1 - page);
            }
            if self.file(thread).ahead.marker == Some(page) {
                self.read_ahead(now, thread, last + 1 - page);
            }
            if let Some(PageState::Reading(fetch)) = self.state(page) {
                self.task(id).page = page;
                self.block(now, id, FileStage::Fetch);
                self.fetches[fetch].waiters.push(id);
                return;
            }
            if let Some(pages) = &mut self.pages {
                pages.touch(page);
            }
            page += 1;
        }
        self.file(thread).ahead.previous = Some(last);
        self.complete(now, id, done);
    }

    fn state(&self, page: u64) -> Option<PageState> {
        self.pages.as_ref()?.state(page)
    }

    /// Returns the longest window of a file, in pages, for a read that still needs `wanted` pages; 0 for none. A larger
    /// request is one window, if the block layer accepts it.
    fn most_ahead(&mut self, thread: u16, wanted: u64) -> u64 {
        let most = self.cache.map_or(0, |config| config.read_ahead / PAGE);
        match self.file(thread).config.advice {
            _ if most == 0 => 0,
            Advice::Random => 0,
            Advice::Normal => most.max(wanted.min(PIECE / PAGE)),
            Advice::Sequential => (most * 2).max(wanted.min(PIECE / PAGE)),
        }
    }

    /// Reads a page that is not in memory, with the pages that follow it.
    fn read_missing(&mut self, now: Time, thread: u16, page: u64, wanted: u64) {
        let (start, size) = match self.most_ahead(thread, wanted) {
            0 => (page, wanted),
            most => self.file(thread).ahead.miss(page, wanted, most),
        };
        // The window of a file that several threads read may be elsewhere.
        let (start, size) = match (start..start + size).contains(&page) {
            true => (start, size),
            false => (page, wanted),
        };
        self.fetch(now, thread, start, start + size);
    }

    /// Starts the next window.
    fn read_ahead(&mut self, now: Time, thread: u16, wanted: u64) {
        let most = self.most_ahead(thread, wanted);
        let ahead = &mut self.file(thread).ahead;
        ahead.marker = None;
        if most > 0 {
            let (start, size) = ahead.next(most);
            self.fetch(now, thread, start, start + size);
        }
    }

    /// Reads the pages of a range that are not in memory, in as few requests as possible.
    fn fetch(&mut self, now: Time, thread: u16, start: u64, end: u64) {
        let limit = self.capacity().bytes.div_ceil(PAGE);
        let end = end
            .min(limit)
            .min(self.file(thread).config.range.1.div_ceil(PAGE));
        let mut page = start;
        while page < end {
            let missing = |page: &u64| self.state(*page).is_none();
            let Some(first) = (page..end).find(missing) else {
                return;
            };
            let most = end.min(first + PIECE / PAGE);
            let held = (first..most).find(|page| !missing(page));
            page = held.unwrap_or(most);
            self.fetch_run(now, thread, first, page);
        }
    }

    fn fetch_run(&mut self, now: Time, thread: u16, first: u64, after: u64) {
        let start = first * PAGE;
        let end = (after * PAGE).min(self.capacity().bytes);
        let fetch = self.fetches.insert(Fetch {
            start: first,
            end: after,
            waiters: Vec::new(),
        });
        if let Some(pages) = &mut self.pages {
            for page in first..after {
                pages.read(page, fetch);
            }
        }
        self.counts.fetched += end - start;
        let mut command = Command::read(0, start, (end - start) as u32);
        command.queue = thread;
        // The system call is that of the program's read.
        command.batched = true;
        self.send(now, Owner::Fetch(fetch), command);
    }

    /// A request that read pages has completed.
    pub(super) fn fetched(
        &mut self,
        now: Time,
        slot: u32,
        completion: &Completion,
        done: &mut Vec<Completion>,
    ) {
        let fetch = &mut self.fetches[slot];
        let (start, end) = (fetch.start, fetch.end);
        let mut waiters = core::mem::take(&mut fetch.waiters);
        self.fetches.release(slot);
        let failed = completion.status != Status::Success;
        if let Some(pages) = &mut self.pages {
            for page in start..end {
                pages.arrived(page, slot, failed);
            }
        }
        for id in waiters.drain(..) {
            let task = self.task(id);
            task.anatomy.append(&waited(now, task.joined, completion));
            if failed {
                task.status = completion.status;
                self.complete(now, id, done);
            } else {
                self.read_on(now, id, done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 128 KiB, in pages.
    const MOST: u64 = 32;

    #[test]
    fn reads_in_sequence_read_further_ahead_each_time() {
        let mut ahead = ReadAheadWindow::NONE;
        assert_eq!(ahead.miss(0, 1, MOST), (0, 4), "16 KiB");
        assert_eq!(ahead.marker, Some(1));
        assert_eq!(ahead.next(MOST), (4, 8));
        assert_eq!(ahead.marker, Some(4), "all of it is ahead");
        assert_eq!(ahead.next(MOST), (12, 16));
        assert_eq!(ahead.next(MOST), (28, 32), "128 KiB");
        assert_eq!(ahead.next(MOST), (60, 32));
    }

    #[test]
    fn single_reads_and_large_reads_do_not_read_ahead() {
        let mut ahead = ReadAheadWindow::NONE;
        assert_eq!(ahead.miss(500, 2, MOST), (500, 2));
        ahead.previous = Some(501);
        assert_eq!(ahead.miss(900, 1, MOST), (900, 1));
        assert_eq!(
            ahead.miss(502, 1, MOST),
            (502, 4),
            "after the previous read"
        );
        // A read of 1 MiB is one request.
        let mut large = ReadAheadWindow::NONE;
        assert_eq!(large.miss(0, 256, 256), (0, 256));
    }
}
