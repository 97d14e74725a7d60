//! A file system and its page cache, between job threads and the host's path to the drive.
//!
//! A buffered write is a system call and a copy, and so is a read of pages in memory (`pages`). A read of other pages
//! waits for the drive, and reads ahead (`read`). The flusher thread writes dirty pages back, and writers wait while too
//! much is dirty (`writeback`). Hosts without a `[page_cache]` have writes and syncs only. A sync writes the pages that its thread made dirty, and waits for
//! them. If the file's metadata changed, it then waits for a commit of the journal (`journal`); otherwise it flushes
//! the drive. These steps run in series, each through the block layer, the interrupt and the wake-up of the host path.
//! fdatasync needs metadata only if a page was written for the first time (its extent is then marked as written, or the
//! file has grown). fsync also needs metadata if the time of the last change has advanced. Direct I/O to a file costs
//! some additional CPU time. A direct write to blocks that are allocated but were never written waits until its extent
//! is marked as written (converted). A kernel thread does that after the write, for one write of a file at a time.
//!
//! The flusher and the journal share a thread of the host. Threads that share a file write the pages that they changed
//! themselves. Not modelled: the cost of page faults and of evicting pages, partial writes of pages that are not in
//! memory (Linux reads them first), fragmented allocation, a full journal that must be checkpointed. Files of one file
//! system do not wait for each other.
//!
//! Source: Linux, Documentation/filesystems/ext4/journal.rst, Documentation/block/writeback_cache_control.rst,
//! fs/ext4/fsync.c, fs/jbd2/commit.c, fs/xfs/xfs_log.c. Assumed values are in `[files]` of a host and in `journal`.

mod config;
mod journal;
mod pages;
mod read;
mod sync;
mod wait;
mod writeback;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use self::config::{Blocking, Durable, FileConfig, FileCosts, PageCacheConfig};
pub use self::journal::Filesystem;
use self::journal::Journal;
use self::pages::Pages;
pub use self::read::Advice;
use self::read::{Fetch, ReadAheadWindow};
use self::writeback::{CacheCounts, Flusher, PageWrite};
use super::HostPath;
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::{EventPayload, Slab, Station, TypedEventQueue};
use crate::time::{Span, Time};

/// Bytes per page.
const PAGE: u64 = 4096;

/// Current state of a thread's file.
#[derive(Clone, Debug)]
struct ThreadFile {
    config: FileConfig,
    /// Dirty pages as pairs (first byte, byte after the last), in the order of writes.
    dirty: Vec<(u64, u64)>,
    /// All pages below this offset are written.
    written_to: u64,
    /// Whether a commit of metadata is due: for fdatasync, and for fsync only.
    grown: bool,
    touched: bool,
    /// Tick of the last change, plus one; 0 for none.
    tick: u64,
    /// When the next write to never-written blocks is due.
    converts_at: Time,
    /// Marks the extents of its writes, one after another.
    converter: Station,
    /// Until when its thread copies or looks for pages: one activity at a time.
    busy_until: Time,
    /// System time that is not included in any core of the host path.
    cpu: Span,
    /// Since when pages are in `dirty`, and whether the flusher must write all of them.
    dirty_since: Time,
    expired: bool,
    /// Dirty pages that the flusher is working on, in the order of the drive, and its requests.
    pass: VecDeque<(u64, u64)>,
    in_flight: Vec<u32>,
    /// Bytes written since the limits of dirty pages were checked.
    unchecked: u64,
    /// The I/O that waits for the drive, and I/Os that wait until it completes.
    blocker: Option<CommandId>,
    queued: VecDeque<CommandId>,
    /// Whether these are being resumed.
    resumes: bool,
    ahead: ReadAheadWindow,
    /// Whether the thread has issued an I/O.
    opened: bool,
}

/// Current stage of an outstanding command of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileStage {
    /// The data is being copied, or looked for.
    Enter,
    /// An earlier I/O of the thread waits for the drive.
    Queued,
    /// Pages are being read.
    Fetch,
    /// Too many pages are dirty.
    Throttled,
    /// A direct I/O is at the drive.
    Direct,
    /// The system looks for dirty pages.
    Sync,
    /// Dirty pages are being written.
    Data,
    /// The command waits for the journal.
    Commit,
    /// The drive flushes.
    Flush,
    /// The journal has committed, and the thread wakes; or an extent is being marked.
    Woken,
}

/// An outstanding command of a file.
#[derive(Clone, Copy, Debug)]
struct Task {
    command: Command,
    stage: FileStage,
    began: Time,
    /// When it started to wait, for the journal or for pages.
    joined: Time,
    /// The page that a read has reached.
    page: u64,
    /// Commands of this stage outstanding at the drive.
    left: u32,
    durable: Durable,
    /// Whether its extent must be marked as written.
    converts: bool,
    status: Status,
    anatomy: Anatomy,
}

/// The owner of an internal command, which is notified when it completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Task(CommandId),
    Journal,
    /// A request that writes pages.
    Write(u32),
    /// A request that reads pages.
    Fetch(u32),
}

/// The owner of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileTimer {
    Task(CommandId),
    Journal,
    /// The flusher wakes.
    Flusher,
    /// The flusher looks for pages that have been dirty for long.
    Look,
}

/// Used in place of a task's id; all task ids are smaller.
const JOURNAL: u32 = u32::MAX;
const FLUSHER: u32 = u32::MAX - 1;
const LOOK: u32 = u32::MAX - 2;

impl EventPayload for FileTimer {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            FileTimer::Task(id) => {
                debug_assert!(id < LOOK);
                id
            }
            FileTimer::Journal => JOURNAL,
            FileTimer::Flusher => FLUSHER,
            FileTimer::Look => LOOK,
        }
    }

    #[inline]
    fn unpack(packed: u32) -> FileTimer {
        match packed {
            JOURNAL => FileTimer::Journal,
            FLUSHER => FileTimer::Flusher,
            LOOK => FileTimer::Look,
            id => FileTimer::Task(id),
        }
    }
}

/// A host path with files: commands of threads without a file pass through.
#[derive(Clone, Debug)]
pub struct Files<D> {
    host: HostPath<D>,
    costs: FileCosts,
    /// Files by thread.
    files: Vec<Option<ThreadFile>>,
    /// Tasks by the submitter's id.
    tasks: Vec<Option<Task>>,
    /// First id of internal commands, and the owner of each.
    first: CommandId,
    owners: Slab<Owner>,
    journal: Journal,
    /// The page cache, if a thread uses it and the host states its memory.
    cache: Option<PageCacheConfig>,
    pages: Option<Pages>,
    flusher: Flusher,
    requests: Slab<PageWrite>,
    fetches: Slab<Fetch>,
    counts: CacheCounts,
    timers: TypedEventQueue<FileTimer>,
    below: Vec<Completion>,
}

impl<D: Device> Files<D> {
    /// Puts files in front of a host path. It must have one thread more than `files`: the last thread is the journal's.
    /// The ids of commands are below `ids`.
    pub fn new(
        costs: FileCosts,
        files: &[Option<FileConfig>],
        ids: CommandId,
        mut host: HostPath<D>,
    ) -> Files<D> {
        for (thread, file) in files.iter().enumerate() {
            if file.is_some_and(|file| !file.buffered) {
                host.opens_file(thread, costs.direct);
            }
        }
        let file = |config: &FileConfig| ThreadFile {
            config: *config,
            dirty: Vec::new(),
            written_to: 0,
            grown: false,
            touched: false,
            tick: 0,
            converts_at: Time::ZERO,
            converter: Station::default(),
            busy_until: Time::ZERO,
            cpu: Span::ZERO,
            dirty_since: Time::ZERO,
            expired: false,
            pass: VecDeque::new(),
            in_flight: Vec::new(),
            unchecked: 0,
            blocker: None,
            queued: VecDeque::new(),
            resumes: false,
            ahead: ReadAheadWindow::NONE,
            opened: false,
        };
        let buffered = files.iter().flatten().any(|file| file.buffered);
        let cache = host.page_cache().filter(|_| buffered);
        let capacity = host.capacity().bytes;
        let mut filesystems = files.iter().flatten().filter_map(|file| file.filesystem);
        let filesystem = filesystems.next().unwrap_or_default();
        Files {
            journal: Journal::new(filesystem, files.len() as u16, host.capacity().bytes),
            host,
            costs,
            files: files.iter().map(|one| one.as_ref().map(file)).collect(),
            tasks: alloc::vec![None; ids as usize],
            first: ids,
            owners: Slab::default(),
            cache,
            pages: cache.map(|config| Pages::new(config.memory, capacity)),
            flusher: Flusher::default(),
            requests: Slab::default(),
            fetches: Slab::default(),
            counts: CacheCounts::default(),
            timers: TypedEventQueue::default(),
            below: Vec::new(),
        }
    }

    /// Returns the CPU time of a thread in user and system mode.
    pub fn cpu(&self, thread: usize) -> [Span; 2] {
        let [user, system] = self.host.cpu(thread);
        let files = self.files.get(thread).and_then(Option::as_ref);
        [user, system + files.map_or(Span::ZERO, |file| file.cpu)]
    }

    /// Returns the file of a thread that issues commands here.
    fn file(&mut self, thread: u16) -> &mut ThreadFile {
        let file = self.files[usize::from(thread)].as_mut();
        file.expect("what has no file passes through")
    }

    /// Returns an outstanding command. Everything that waits for it ends with it, and a power cut removes both.
    fn task(&mut self, id: CommandId) -> &mut Task {
        let task = self.tasks[id as usize].as_mut();
        task.expect("a task stays until its last stage is over")
    }

    /// Sends an internal command.
    fn send(&mut self, now: Time, owner: Owner, mut command: Command) {
        let id = self.first + self.owners.insert(owner);
        command.id = id;
        self.host.submit(now, command);
    }

    /// Starts the command of a file.
    fn begin(&mut self, now: Time, command: Command) {
        let costs = self.costs;
        let reads = self.pages.is_some();
        if !self.file(command.queue).opened {
            self.open(command.queue);
        }
        let file = self.file(command.queue);
        let durable = match (command.op, file.config.each) {
            (Op::Flush, _) | (_, None) => file.config.sync,
            (_, Some(each)) => each,
        };
        let entering = match command.op {
            Op::Flush => Some((FileStage::Sync, costs.sync)),
            Op::Read | Op::Write if file.config.buffered && (reads || command.op == Op::Write) => {
                let copied =
                    Span::per_bytes(costs.copy_picoseconds_per_byte, u64::from(command.bytes));
                Some((FileStage::Enter, costs.cached + copied))
            }
            // The host path accounts for the cost of the file.
            _ => None,
        };
        let (stage, starts, takes) = match entering {
            None => (FileStage::Direct, now, Span::ZERO),
            Some((stage, takes)) => {
                let starts = now.max(file.busy_until);
                file.cpu += takes;
                file.busy_until = starts + takes;
                (stage, starts, takes)
            }
        };
        let mut converts = false;
        if command.op == Op::Write {
            file.note_change(now, &command, costs.tick);
            converts = file.converts(now);
            self.change_pages(now, &command);
        }
        let file = self.file(command.queue);
        // Data that needs a commit as well becomes durable with that commit.
        let fua = command.fua && !file.needs_commit(durable);
        let mut anatomy = Anatomy::ZERO;
        anatomy.add(Part::ThreadBusy, starts.since(now));
        anatomy.add(Part::HostSubmission, takes);
        self.tasks[command.id as usize] = Some(Task {
            command,
            stage,
            began: now,
            joined: now,
            page: command.offset / PAGE,
            left: u32::from(stage == FileStage::Direct),
            durable,
            converts,
            status: Status::Success,
            anatomy,
        });
        match stage {
            FileStage::Direct => self.host.submit(now, Command { fua, ..command }),
            _ => self
                .timers
                .push(starts + takes, FileTimer::Task(command.id)),
        }
    }

    /// A thread opens its file.
    fn open(&mut self, thread: u16) {
        let file = self.file(thread);
        file.opened = true;
        let (start, end) = file.config.range;
        if file.config.buffered
            && file.config.invalidates
            && let Some(pages) = &mut self.pages
        {
            pages.drop_clean(start / PAGE, end.div_ceil(PAGE));
        }
    }

    /// A buffered write changes pages in memory.
    fn change_pages(&mut self, now: Time, command: &Command) {
        if !self.file(command.queue).config.buffered {
            return;
        }
        let (start, end) = pages_of(command);
        let mut changed = self.pages.is_none() || self.file(command.queue).config.syncs;
        if let Some(pages) = &mut self.pages {
            for page in start / PAGE..end / PAGE {
                changed |= pages.change(page);
            }
        }
        let file = self.file(command.queue);
        if !changed {
            return;
        }
        if file.dirty.is_empty() {
            file.dirty_since = now;
        }
        match file.dirty.last_mut() {
            Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
            _ => file.dirty.push((start, end)),
        }
        if self.pages.is_some() {
            self.look_later(now);
        }
    }

    /// A command has completed below.
    fn answered(&mut self, now: Time, completion: &Completion, done: &mut Vec<Completion>) {
        let id = completion.id;
        if id >= self.first {
            let owner = self.owners[id - self.first];
            self.owners.release(id - self.first);
            match owner {
                Owner::Journal => self.journal_answered(now, completion),
                Owner::Task(task) => self.task_answered(now, task, completion, done),
                Owner::Write(request) => self.pages_written(now, request, completion, done),
                Owner::Fetch(fetch) => self.fetched(now, fetch, completion, done),
            }
        } else if self.tasks[id as usize].is_some() {
            self.task_answered(now, id, completion, done);
        } else {
            done.push(*completion);
        }
    }

    /// A timer is due.
    fn due(&mut self, now: Time, timer: FileTimer, done: &mut Vec<Completion>) {
        match timer {
            FileTimer::Journal => self.journal_wakes(now),
            FileTimer::Task(id) => self.task_goes_on(now, id, done),
            FileTimer::Flusher => self.flush_pages(now),
            FileTimer::Look => self.look(now),
        }
    }
}

/// Returns the first byte of the pages that a command touches, and the byte after the last.
fn pages_of(command: &Command) -> (u64, u64) {
    (
        command.offset - command.offset % PAGE,
        command.end().next_multiple_of(PAGE),
    )
}

impl ThreadFile {
    /// Records the changes that a write makes to the file's metadata.
    fn note_change(&mut self, now: Time, command: &Command, tick: Span) {
        let (_, end) = pages_of(command);
        match now.ns().checked_div(tick.ns()) {
            Some(before) => {
                self.touched |= before + 1 != self.tick;
                self.tick = before + 1;
            }
            None => self.touched = true,
        }
        if self.config.appends && end > self.written_to {
            self.grown = true;
            self.written_to = end;
        }
    }

    /// Whether a write that begins now is to blocks that were never written.
    fn converts(&mut self, now: Time) -> bool {
        let Some(every) = self.config.converts_every.filter(|_| !self.config.buffered) else {
            return false;
        };
        let due = self.converts_at <= now;
        if due {
            self.converts_at += every;
        }
        due
    }

    /// Whether a sync must wait for the journal.
    fn needs_commit(&self, durable: Durable) -> bool {
        let changed = self.grown || durable == Durable::All && self.touched;
        self.config.filesystem.is_some() && changed
    }

    /// Returns the dirty pages as ranges, in the order of the drive, and forgets them.
    fn take_dirty(&mut self) -> Vec<(u64, u64)> {
        let mut dirty = core::mem::take(&mut self.dirty);
        dirty.extend(self.pass.drain(..).filter(|range| range.0 < range.1));
        dirty.sort_unstable();
        dirty.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            if joins {
                before.1 = before.1.max(next.1);
            }
            joins
        });
        dirty
    }
}

impl<D: Device> Device for Files<D> {
    fn capacity(&self) -> Capacity {
        self.host.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        let has_file = matches!(self.files.get(usize::from(command.queue)), Some(Some(_)));
        let known = (command.id as usize) < self.tasks.len();
        // The drive rejects commands that are invalid for every drive.
        if has_file && known && command.fits(self.capacity().bytes) {
            return self.begin(now, command);
        }
        self.host.submit(now, command);
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.host.next_event().min(self.timers.next())
    }

    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.host.next_event() == now {
                let mut below = core::mem::take(&mut self.below);
                let until = horizon.min(self.timers.next()).max(now);
                now = self.host.advance(now, until, &mut below);
                for completion in &below {
                    self.answered(now, completion, done);
                }
                below.clear();
                self.below = below;
            }
            while let Some(whose) = self.timers.pop_due(now) {
                self.due(now, whose, done);
            }
            let next = self.next_event();
            if next > now {
                if next >= horizon || !done.is_empty() {
                    return now;
                }
                now = next;
            }
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.host.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        // The page cache is volatile: its content was never acknowledged as durable.
        for file in self.files.iter_mut().flatten() {
            file.dirty.clear();
            file.converter.clear(now);
            file.pass.clear();
            file.in_flight.clear();
            file.queued.clear();
            (file.expired, file.blocker, file.resumes) = (false, None, false);
        }
        if let Some(pages) = &mut self.pages {
            pages.clear();
        }
        self.flusher.clear();
        self.requests = Slab::default();
        self.fetches = Slab::default();
        self.tasks.fill(None);
        self.owners = Slab::default();
        self.journal.clear();
        self.timers = TypedEventQueue::default();
        self.host.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.host.inspect(now, gauges);
        let cpu = self.files.iter().flatten().map(|file| file.cpu.seconds());
        gauges.gauge(Gauge::HostCpuSeconds, cpu.sum());
        // Threads that sync while they write keep little in memory.
        let mut files = self.files.iter().flatten().map(|file| &file.config);
        let counted = files.any(|file| file.buffered && !file.syncs);
        let Some(pages) = self.pages.as_ref().filter(|_| counted) else {
            return;
        };
        let counts = &self.counts;
        for (gauge, bytes) in [
            (Gauge::PageCacheBytesRead, counts.read),
            (Gauge::PageCacheBytesFetched, counts.fetched),
            (Gauge::PageCacheBytesWritten, counts.written),
            (Gauge::PageCacheDirtyBytes, pages.unwritten()),
        ] {
            gauges.gauge(gauge, bytes as f64);
        }
        gauges.gauge(Gauge::PageCacheThrottledSeconds, counts.throttled.seconds());
    }
}
