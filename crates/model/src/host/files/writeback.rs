//! Write-back: the flusher thread writes dirty pages in large requests, and writers wait while too much is dirty.
//!
//! The flusher runs while more than `dirty_background_ratio` of memory is dirty, while a writer waits, and for files
//! that have been dirty for `dirty_expire`. It takes a file's dirty pages in the order of the drive, in requests of at
//! most 1 MiB. It changes to the next file after 64 MiB (assumed; Linux: what the drive writes in half a second).
//! A writer checks the limits after 32 pages (`ratelimit_pages`). It waits while dirty pages and pages that are being
//! written exceed the set point of Linux' control loop: three quarters of the way from `dirty_background_ratio` to
//! `dirty_ratio`.
//!
//! Simplified: Linux makes a writer sleep for a time that it computes from the drive's write rate, up to 200 ms, so
//! that the total stays near the set point. Here, the writer sleeps until the total is below the set point. Rates agree,
//! single pauses are shorter. Not modelled: limits by drive and by control group, throttling of write-back (wbt).
//!
//! Source: Linux, Documentation/admin-guide/sysctl/vm.rst, mm/page-writeback.c (defaults, set point, `ratelimit_pages`),
//! fs/fs-writeback.c.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::pages::PageState;
use super::{FileStage, FileTimer, Files, Owner, PAGE, PageCacheConfig};
use crate::anatomy::Part;
use crate::command::{Command, CommandId, Completion};
use crate::device::Device;
use crate::time::{Span, Time};

/// Largest request in which dirty pages are written: 256 pages, the maximum of a Linux `bio`.
pub(super) const PIECE: u64 = 1 << 20;

/// Bytes that the flusher writes of one file before it changes to the next.
const TURN: u64 = 64 << 20;

/// Bytes that a writer writes between two checks of the limits.
const UNCHECKED: u64 = 32 * PAGE;

impl PageCacheConfig {
    fn percent(&self, percent: u8) -> u64 {
        self.memory / 100 * u64::from(percent)
    }

    /// Bytes of dirty pages above which the flusher runs.
    pub(super) fn background(&self) -> u64 {
        self.percent(self.dirty_background_ratio)
    }

    /// Bytes that are dirty or being written above which writers wait.
    pub(super) fn set_point(&self) -> u64 {
        let (low, limit) = (self.background(), self.percent(self.dirty_ratio));
        low + (limit - low) / 4 * 3
    }
}

/// A request that writes pages of a file.
#[derive(Clone, Debug)]
pub(super) struct PageWrite {
    /// Thread of the file.
    pub(super) file: u16,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the flusher sent the request.
    by_flusher: bool,
    /// Syncs that wait for the request.
    pub(super) waiters: Vec<CommandId>,
}

/// The flusher thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Flusher {
    runs: bool,
    in_flight: u16,
    /// The file that it writes, and the bytes that it may still write before the next file.
    file: usize,
    left: u64,
    /// When it next looks for pages that have been dirty for long; `None` if no page is dirty.
    looks_at: Option<Time>,
    /// Writers that wait.
    throttled: VecDeque<CommandId>,
}

impl<D: Device> Files<D> {
    /// Sends a request for pages of a file. The waiters are tasks that continue when it completes.
    pub(super) fn write_pages(
        &mut self,
        now: Time,
        mut command: Command,
        file: u16,
        waiters: Vec<CommandId>,
    ) {
        let by_flusher = waiters.is_empty();
        let (start, end) = (command.offset, command.end());
        if let Some(pages) = &mut self.pages {
            for page in start / PAGE..end.div_ceil(PAGE) {
                pages.leaves(page);
            }
        }
        let request = self.requests.insert(PageWrite {
            file,
            start,
            end,
            by_flusher,
            waiters,
        });
        if by_flusher {
            self.file(file).in_flight.push(request);
        }
        command.queue = if by_flusher {
            self.journal.thread()
        } else {
            file
        };
        self.send(now, Owner::Write(request), command);
    }

    /// A request that wrote pages has completed.
    pub(super) fn pages_written(
        &mut self,
        now: Time,
        slot: u32,
        completion: &Completion,
        done: &mut Vec<Completion>,
    ) {
        let request = &mut self.requests[slot];
        let (file, by_flusher) = (request.file, request.by_flusher);
        let (start, end) = (request.start, request.end);
        let waiters = core::mem::take(&mut request.waiters);
        self.requests.release(slot);
        if let Some(pages) = &mut self.pages {
            for page in start / PAGE..end.div_ceil(PAGE) {
                pages.written(page);
            }
        }
        if by_flusher {
            self.file(file).in_flight.retain(|&other| other != slot);
            self.flusher.in_flight -= 1;
        }
        for id in waiters {
            self.task_answered(now, id, completion, done);
        }
        self.release_writers(now);
        if by_flusher {
            self.flush_pages(now);
        }
    }

    /// Pages of a file are dirty since now: the flusher will look at them when they are old.
    pub(super) fn look_later(&mut self, now: Time) {
        let Some(config) = self.cache else { return };
        let every = config.dirty_writeback.ns();
        if self.flusher.looks_at.is_some() || every == 0 {
            return;
        }
        let old = (now + config.dirty_expire).ns();
        let at = Time::from_ns(old.div_ceil(every) * every);
        self.flusher.looks_at = Some(at);
        self.timers.push(at, FileTimer::Look);
    }

    /// The flusher looks for files that have been dirty for long.
    pub(super) fn look(&mut self, now: Time) {
        let Some(config) = self.cache else { return };
        self.flusher.looks_at = None;
        let mut oldest = None;
        for file in self.files.iter_mut().flatten() {
            if file.dirty.is_empty() {
                continue;
            }
            if file.dirty_since + config.dirty_expire <= now {
                file.expired = true;
                file.pass = file.take_dirty().into();
            } else {
                oldest = Some(oldest.map_or(file.dirty_since, |at: Time| at.min(file.dirty_since)));
            }
        }
        if let Some(since) = oldest {
            self.look_later(since);
        }
        self.wake_flusher(now);
    }

    /// Wakes the flusher if it has work.
    pub(super) fn wake_flusher(&mut self, now: Time) {
        if !self.flusher.runs && self.has_to_flush() {
            self.flusher.runs = true;
            self.timers.push(now + self.costs.wake, FileTimer::Flusher);
        }
    }

    fn has_to_flush(&self) -> bool {
        let (Some(config), Some(pages)) = (&self.cache, &self.pages) else {
            return false;
        };
        pages.dirty() > config.background()
            || !self.flusher.throttled.is_empty()
            || self.files.iter().flatten().any(|file| file.expired)
    }

    /// The flusher sends requests until enough are in flight.
    pub(super) fn flush_pages(&mut self, now: Time) {
        let most = self.cache.map_or(0, |config| config.write_requests);
        let mut sent = false;
        while self.flusher.runs && self.flusher.in_flight < most {
            let next = if self.has_to_flush() {
                self.next_piece()
            } else {
                None
            };
            let Some((file, start, end)) = next else {
                self.flusher.runs = false;
                break;
            };
            self.flusher.in_flight += 1;
            let mut command = Command::write(0, start, (end - start) as u32);
            command.batched = sent;
            sent = true;
            self.write_pages(now, command, file, Vec::new());
        }
    }

    /// Returns the file and the range of the flusher's next request; `None` if no page is dirty.
    fn next_piece(&mut self) -> Option<(u16, u64, u64)> {
        let only_expired = match (&self.cache, &self.pages) {
            (Some(config), Some(pages)) => {
                pages.dirty() <= config.background() && self.flusher.throttled.is_empty()
            }
            _ => return None,
        };
        for _ in 0..=self.files.len() {
            let index = self.flusher.file;
            let allowed = self.flusher.left > 0;
            let file = self.files[index].as_mut();
            let file = file.filter(|file| allowed && (file.expired || !only_expired));
            if let Some(file) = file
                && let Some(pages) = &self.pages
            {
                if let Some((start, end)) = file.next_piece(only_expired, |page| pages.state(page))
                {
                    self.flusher.left = self.flusher.left.saturating_sub(end - start);
                    return Some((index as u16, start, end));
                }
                file.expired = false;
            }
            self.flusher.file = (index + 1) % self.files.len();
            self.flusher.left = TURN;
        }
        None
    }

    /// Whether the writer must wait, because too many pages are dirty.
    pub(super) fn throttles(&mut self, thread: u16, bytes: u32) -> bool {
        let (Some(config), Some(pages)) = (&self.cache, &self.pages) else {
            return false;
        };
        let exceeds = pages.unwritten() > config.set_point();
        let file = self.file(thread);
        file.unchecked += u64::from(bytes);
        if file.unchecked < UNCHECKED {
            return false;
        }
        file.unchecked = 0;
        exceeds
    }

    /// A writer starts to wait.
    pub(super) fn throttle(&mut self, now: Time, id: CommandId) {
        self.block(now, id, FileStage::Throttled);
        self.flusher.throttled.push_back(id);
        self.wake_flusher(now);
    }

    /// Writers continue if few enough pages are dirty.
    fn release_writers(&mut self, now: Time) {
        let (Some(config), Some(pages)) = (&self.cache, &self.pages) else {
            return;
        };
        if pages.unwritten() > config.set_point() {
            return;
        }
        let wake = self.costs.wake;
        while let Some(id) = self.flusher.throttled.pop_front() {
            let task = self.task(id);
            let waited = now.since(task.joined);
            task.anatomy.add(Part::Congestion, waited);
            task.anatomy.add(Part::HostCompletion, wake);
            task.stage = FileStage::Woken;
            self.counts.throttled += waited;
            self.timers.push(now + wake, FileTimer::Task(id));
        }
    }
}

impl super::ThreadFile {
    /// Returns the next dirty pages in the order of the drive, at most [`PIECE`] bytes. With `only_expired`, pages that
    /// were changed after the flusher looked are left.
    fn next_piece(
        &mut self,
        only_expired: bool,
        state: impl Fn(u64) -> Option<PageState>,
    ) -> Option<(u64, u64)> {
        if self.pass.is_empty() && !only_expired {
            self.pass = self.take_dirty().into();
        }
        while let Some(range) = self.pass.front_mut() {
            let is_dirty = |page: &u64| state(*page) == Some(PageState::Dirty);
            let mut pages = range.0 / PAGE..range.1 / PAGE;
            let Some(first) = pages.find(is_dirty) else {
                self.pass.pop_front();
                continue;
            };
            let most = PIECE / PAGE - 1;
            let more = pages.take(most as usize).take_while(is_dirty).count() as u64;
            range.0 = (first + 1 + more) * PAGE;
            return Some((first * PAGE, range.0));
        }
        None
    }
}

impl Flusher {
    /// Resets the flusher after a power cut.
    pub(super) fn clear(&mut self) {
        *self = Flusher::default();
    }
}

/// Bytes that went through the cache, and time that writers waited, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheCounts {
    /// Read by programs through the cache.
    pub(super) read: u64,
    /// Read from the drive for them, and ahead of them.
    pub(super) fetched: u64,
    /// Written by programs into the cache.
    pub(super) written: u64,
    /// Time that writers waited.
    pub(super) throttled: Span,
}
