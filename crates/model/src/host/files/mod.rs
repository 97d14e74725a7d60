//! A file system and its page cache, between job threads and the host's path to the drive: a thin model that covers
//! writes and syncs.
//!
//! A buffered write is a system call and a copy. A sync writes the pages that its thread made dirty, and waits for
//! them. If the file's metadata changed, it then waits for a commit of the journal (`journal`); otherwise it flushes
//! the drive. These steps run in series, each through the block layer, the interrupt and the wake-up of the host path.
//! fdatasync needs metadata only if a page was written for the first time (its extent is then marked as written, or the
//! file has grown). fsync also needs metadata if the time of the last change has advanced. Direct I/O to a file costs
//! some additional CPU time. A direct write to blocks that are allocated but were never written waits until its extent
//! is marked as written (converted). A kernel thread does that after the write, for one write of a file at a time.
//!
//! Not modelled: reads through the page cache, write-back before a sync, the limit of dirty pages, fragmented
//! allocation, and a full journal that must be checkpointed. Each file has one thread, and files of one file system do
//! not wait for each other.
//!
//! Source: Linux, Documentation/filesystems/ext4/journal.rst, Documentation/block/writeback_cache_control.rst,
//! fs/ext4/fsync.c, fs/jbd2/commit.c, fs/xfs/xfs_log.c. Assumed values are in `[files]` of a host and in `journal`.

mod journal;
mod sync;

use alloc::vec::Vec;

pub use self::journal::Filesystem;
use self::journal::Journal;
use super::HostPath;
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::{Due, Packed, Slab, Station};
use crate::time::{Span, Time};

/// CPU time of a file system and its page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FileCosts {
    /// A buffered write without its copy, including the system call.
    pub cached: Span,
    /// Copying into the page cache, in picoseconds per byte.
    pub copy_picoseconds_per_byte: u64,
    /// Additional time of a direct I/O to a file: the lookup in its extent map.
    pub direct: Span,
    /// A sync until its first page is submitted: finding dirty pages, mapping them.
    pub sync: Span,
    /// Time to wake the journal's thread, and to be woken by it: each.
    pub wake: Span,
    /// Marking an extent as written after a direct write: a kernel thread, which wakes first (`wake`), changes the
    /// file's map within a transaction of the journal.
    #[cfg_attr(feature = "serde", serde(default))]
    pub convert: Span,
    /// Tick of the clock that sets a file's times; zero: each write changes them.
    pub tick: Span,
}

/// The data and metadata that a sync makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    /// Data, and the metadata needed to find it (fdatasync, `O_DSYNC`).
    Data,
    /// Also the times of the file (fsync, `O_SYNC`).
    All,
}

/// The file of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileConfig {
    /// File system; `None` for a drive that is written through the page cache.
    pub filesystem: Option<Filesystem>,
    /// Whether writes go through the page cache.
    pub buffered: bool,
    /// Whether the file is written sequentially for the first time: each page beyond the written part is new.
    pub appends: bool,
    /// Mean time between direct writes to blocks that were allocated and never written: the time in which a file is
    /// written, divided by its blocks. Zero: all writes are of this kind. `None`: all blocks have been written.
    pub converts_every: Option<Span>,
    /// Whether each write is durable when it completes (`O_DSYNC`, `O_SYNC`).
    pub each: Option<Durable>,
    /// Data and metadata that an explicit sync makes durable.
    pub sync: Durable,
}

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
}

/// Current stage of an outstanding command of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The data is being copied.
    Enter,
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
    stage: Stage,
    began: Time,
    /// When it started to wait for the journal.
    joined: Time,
    /// Commands of this stage outstanding at the drive.
    left: u32,
    durable: Durable,
    /// Whether its extent must be marked as written.
    converts: bool,
    status: Status,
    anatomy: Anatomy,
}

/// The owner of an internal command or timer, which is notified when it completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Task(CommandId),
    Journal,
}

/// Used in place of a task's id; all task ids are smaller.
const JOURNAL: u32 = u32::MAX;

impl Packed for Owner {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Owner::Task(id) => {
                debug_assert!(id != JOURNAL);
                id
            }
            Owner::Journal => JOURNAL,
        }
    }

    #[inline]
    fn unpack(packed: u32) -> Owner {
        match packed {
            JOURNAL => Owner::Journal,
            id => Owner::Task(id),
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
    timers: Due<Owner>,
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
        };
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
            timers: Due::default(),
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
        let file = self.file(command.queue);
        let durable = match (command.op, file.config.each) {
            (Op::Flush, _) | (_, None) => file.config.sync,
            (_, Some(each)) => each,
        };
        let entering = match command.op {
            Op::Flush => Some((Stage::Sync, costs.sync)),
            Op::Write if file.config.buffered => {
                let copied =
                    Span::per_bytes(costs.copy_picoseconds_per_byte, u64::from(command.bytes));
                Some((Stage::Enter, costs.cached + copied))
            }
            // The host path accounts for the cost of the file.
            _ => None,
        };
        let (stage, starts, takes) = match entering {
            None => (Stage::Direct, now, Span::ZERO),
            Some((stage, takes)) => {
                let starts = now.max(file.busy_until);
                file.cpu += takes;
                file.busy_until = starts + takes;
                (stage, starts, takes)
            }
        };
        let mut converts = false;
        if command.op == Op::Write {
            file.write(now, &command, costs.tick);
            converts = file.converts(now);
        }
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
            left: u32::from(stage == Stage::Direct),
            durable,
            converts,
            status: Status::Success,
            anatomy,
        });
        match stage {
            Stage::Direct => self.host.submit(now, Command { fua, ..command }),
            _ => self.timers.push(starts + takes, Owner::Task(command.id)),
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
            }
        } else if self.tasks[id as usize].is_some() {
            self.task_answered(now, id, completion, done);
        } else {
            done.push(*completion);
        }
    }

    /// A timer of a task or of the journal is due.
    fn due(&mut self, now: Time, whose: Owner, done: &mut Vec<Completion>) {
        match whose {
            Owner::Journal => self.journal_wakes(now),
            Owner::Task(id) => self.task_goes_on(now, id, done),
        }
    }
}

impl ThreadFile {
    /// Records the changes that a write makes.
    fn write(&mut self, now: Time, command: &Command, tick: Span) {
        let (start, end) = (
            command.offset - command.offset % PAGE,
            command.end().next_multiple_of(PAGE),
        );
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
        if self.config.buffered {
            match self.dirty.last_mut() {
                Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
                _ => self.dirty.push((start, end)),
            }
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

    /// Returns the dirty pages as ranges, in the order of the drive, and marks them clean.
    fn take_dirty(&mut self) -> Vec<(u64, u64)> {
        let mut dirty = core::mem::take(&mut self.dirty);
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
        }
        self.tasks.fill(None);
        self.owners = Slab::default();
        self.journal.clear();
        self.timers = Due::default();
        self.host.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.host.inspect(now, gauges);
        let cpu = self.files.iter().flatten().map(|file| file.cpu.seconds());
        gauges.gauge(Gauge::HostCpuSeconds, cpu.sum());
    }
}
