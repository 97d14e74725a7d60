//! A file system and its page cache between job threads and the host's way to the drive: thin, as far as writes and syncs
//! need it.
//!
//! A buffered write is a system call and a copy. A sync writes out the pages that its thread made dirty, waits for them,
//! and then, where the file's metadata changed, for a commit of the journal (`journal`); else it flushes the drive. What a
//! sync waits for comes in series, each through the block layer, the interrupt and the wake-up of the host path. fdatasync
//! wants metadata only where a page was written for the first time (its extent is then marked as written, or the file has
//! grown), fsync also where the time of the last change has ticked on. Direct I/O to a file pays a little CPU time; a direct
//! write to blocks that are allocated and were never written waits until its extent is marked, which a thread of the system
//! does behind it.
//!
//! Left out: reads through the page cache, write-back before a sync, the limit of dirty pages, allocation that fragments, a
//! journal that is full and must be checkpointed, threads that share a file. Each file has one thread.
//!
//! Source: Linux, Documentation/filesystems/ext4/journal.rst, Documentation/block/writeback_cache_control.rst,
//! fs/ext4/fsync.c, fs/jbd2/commit.c, fs/xfs/xfs_log.c; what is assumed is in `[files]` of a host and in `journal`.

mod journal;
mod sync;

use alloc::vec::Vec;

pub use self::journal::Filesystem;
use self::journal::Journal;
use super::HostPath;
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::{Due, Packed, Slab};
use crate::random::Stream;
use crate::time::{Span, Time};

/// CPU time of a file system and its page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FileCosts {
    /// A buffered write without its copy, system call included.
    pub cached: Span,
    /// Copying into the page cache, picoseconds a byte.
    pub copy_picoseconds_per_byte: u64,
    /// What a file adds to a direct I/O: its map of extents is looked up.
    pub direct: Span,
    /// A sync until its first page is on its way: looking for dirty pages, mapping them.
    pub sync: Span,
    /// Waking the journal's thread, and being woken by it: each.
    pub wake: Span,
    /// Marking an extent as written behind a direct write: a thread of the system wakes, and changes the file's map within a
    /// transaction of the journal.
    #[cfg_attr(feature = "serde", serde(default))]
    pub convert: Span,
    /// What that takes longer on average (exponential): it waits for the journal, and for others at the file's map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub convert_spread: Span,
}

/// What a sync has to make durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    /// Data, and what it takes to find it (fdatasync, `O_DSYNC`).
    Data,
    /// The times of the file too (fsync, `O_SYNC`).
    All,
}

/// The file of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileConfig {
    /// Where it is; a drive that is written through the page cache has none.
    pub filesystem: Option<Filesystem>,
    /// Whether writes go through the page cache.
    pub buffered: bool,
    /// Whether the file is written for the first time, in order: beyond what was written each page is new.
    pub appends: bool,
    /// Direct writes to blocks that were allocated and never written come as often as this on average (at zero all are):
    /// the time in which a file is written, over its blocks. `None`: all blocks are written.
    pub converts_every: Option<Span>,
    /// Whether each write is durable when it completes (`O_DSYNC`, `O_SYNC`).
    pub each: Option<Durable>,
    /// What a sync of its own makes durable.
    pub sync: Durable,
}

/// Bytes of a page.
const PAGE: u64 = 4096;

/// How often the clock ticks that a file's times are taken from (250 Hz).
const TICK: Span = Span::from_ms(4);

/// A thread's file as it is.
#[derive(Clone, Debug)]
struct ThreadFile {
    config: FileConfig,
    /// Dirty pages, first byte and the byte after the last, in the order of writes.
    dirty: Vec<(u64, u64)>,
    /// All pages below are written.
    written_to: u64,
    /// A commit of metadata is due: for fdatasync, and for fsync alone.
    grown: bool,
    touched: bool,
    /// The tick of its last change, plus one; 0 for none.
    tick: u64,
    /// When the next write to blocks that were never written is due.
    converts_at: Time,
    /// Until when its thread copies or looks for pages: one thing at a time.
    busy_until: Time,
    /// System time that no core of the host path knows of.
    cpu: Span,
}

/// What an outstanding command of a file does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The copy.
    Enter,
    /// A direct I/O is with the drive.
    Direct,
    /// The system looks for dirty pages.
    Sync,
    /// Dirty pages are being written.
    Data,
    /// It waits for the journal.
    Commit,
    /// The drive flushes.
    Flush,
    /// The journal has committed, and the thread wakes; or an extent is marked.
    Woken,
}

/// An outstanding command of a file.
#[derive(Clone, Copy, Debug)]
struct Task {
    command: Command,
    stage: Stage,
    began: Time,
    /// When it began to wait for the journal.
    joined: Time,
    /// Commands of this stage at the drive.
    left: u32,
    durable: Durable,
    /// Whether its extent has to be marked as written.
    converts: bool,
    status: Status,
    anatomy: Anatomy,
}

/// Who is told when a command of ours completes, or waits for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Task(CommandId),
    Journal,
}

/// In place of a task's id, all of which are smaller.
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

/// A host path with files: what has no file passes through.
#[derive(Clone, Debug)]
pub struct Files<D> {
    host: HostPath<D>,
    costs: FileCosts,
    /// What extents take longer to be marked.
    waits: Stream,
    /// By thread.
    files: Vec<Option<ThreadFile>>,
    /// By the submitter's id.
    tasks: Vec<Option<Task>>,
    /// The first id of our own commands, and who waits for each.
    first: CommandId,
    owners: Slab<Owner>,
    journal: Journal,
    timers: Due<Owner>,
    below: Vec<Completion>,
}

impl<D: Device> Files<D> {
    /// Puts files in front of a host path: of its threads, which must be one more than `files`: the last is the journal's.
    /// The ids of commands are below `ids`.
    pub fn new(
        costs: FileCosts,
        files: &[Option<FileConfig>],
        ids: CommandId,
        seed: u64,
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
            busy_until: Time::ZERO,
            cpu: Span::ZERO,
        };
        let mut filesystems = files.iter().flatten().filter_map(|file| file.filesystem);
        let filesystem = filesystems.next().unwrap_or_default();
        Files {
            journal: Journal::new(filesystem, files.len() as u16, host.capacity().bytes),
            host,
            costs,
            waits: Stream::new(seed, "marked extents"),
            files: files.iter().map(|one| one.as_ref().map(file)).collect(),
            tasks: alloc::vec![None; ids as usize],
            first: ids,
            owners: Slab::default(),
            timers: Due::default(),
            below: Vec::new(),
        }
    }

    /// CPU time of a thread in user and system mode.
    pub fn cpu(&self, thread: usize) -> [Span; 2] {
        let [user, system] = self.host.cpu(thread);
        let files = self.files.get(thread).and_then(Option::as_ref);
        [user, system + files.map_or(Span::ZERO, |file| file.cpu)]
    }

    /// The file of a thread whose commands begin here.
    fn file(&mut self, thread: u16) -> &mut ThreadFile {
        let file = self.files[usize::from(thread)].as_mut();
        file.expect("what has no file passes through")
    }

    /// An outstanding command: what waits for it goes with it, and power takes both.
    fn task(&mut self, id: CommandId) -> &mut Task {
        let task = self.tasks[id as usize].as_mut();
        task.expect("a task stays until its last stage is over")
    }

    /// Sends a command of our own.
    fn send(&mut self, now: Time, owner: Owner, mut command: Command) {
        let id = self.first + self.owners.insert(owner);
        command.id = id;
        self.host.submit(now, command);
    }

    /// Begins the command of a file.
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
            // The host path has what the file takes.
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
            file.write(now, &command);
            converts = file.converts(now);
        }
        // What must be committed besides is made durable with it.
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
    /// Keeps what a write changes.
    fn write(&mut self, now: Time, command: &Command) {
        let (start, end) = (
            command.offset - command.offset % PAGE,
            command.end().next_multiple_of(PAGE),
        );
        let tick = now.ns() / TICK.ns() + 1;
        self.touched |= tick != self.tick;
        self.tick = tick;
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

    /// Whether a write that begins now is one to blocks that were never written.
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

    /// Whether a sync has to wait for the journal.
    fn needs_commit(&self, durable: Durable) -> bool {
        let changed = self.grown || durable == Durable::All && self.touched;
        self.config.filesystem.is_some() && changed
    }

    /// Dirty pages as ranges in the order of the drive, which are then clean.
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
        // What no drive takes is refused by the drive.
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
        // The page cache is memory: what it had was promised to nobody.
        for file in self.files.iter_mut().flatten() {
            file.dirty.clear();
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
