//! The journal of a file system: one commit at a time. Tasks that arrive while a commit runs wait for the next one,
//! which serves all of them.
//!
//! ext4 (jbd2, `data=ordered`): descriptor and metadata blocks in one write. When that write completes, the commit
//! block follows; the drive flushes before it, and the block is written through the drive's cache
//! (`REQ_PREFLUSH | REQ_FUA`). XFS: one record of the log, written the same way. A drive without a volatile cache needs
//! neither flush nor FUA.
//!
//! Assumed: ext4's commit of one file has two blocks of metadata (1 to 4: its inode, and blocks that map or count its
//! blocks). XFS' record has 4 KiB (1 to 8 KiB). The journal has 128 MiB and is in the middle of the drive, where mke2fs
//! and mkfs.xfs put it. Fast commits and external journals are not modelled.

use alloc::vec::Vec;

use super::wait::seen;
use super::{FileTimer, Files, Owner};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op};
use crate::device::Device;
use crate::time::Time;

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Filesystem {
    /// ext4 with its journal in ordered mode.
    #[default]
    Ext4,
    /// XFS with an internal log.
    Xfs,
}

impl Filesystem {
    /// All file systems, in the order of declaration.
    pub const ALL: [Filesystem; 2] = [Filesystem::Ext4, Filesystem::Xfs];

    /// Returns the name as displayed.
    pub const fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
        }
    }

    /// Bytes that are written before the record that completes a commit; 0 if a commit consists of the record only.
    const fn blocks(self) -> u64 {
        match self {
            Filesystem::Ext4 => 3 * BLOCK,
            Filesystem::Xfs => 0,
        }
    }
}

/// Bytes of a block of the journal.
const BLOCK: u64 = 4096;

/// Length of the journal in bytes.
const LENGTH: u64 = 128 << 20;

/// Steps of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommitStep {
    /// The journal's thread wakes.
    Wake,
    /// Descriptor and metadata blocks are written.
    Blocks,
    /// The drive flushes.
    Flush,
    /// The record that completes the commit is written.
    Record,
}

/// The commit in progress.
#[derive(Clone, Debug)]
struct JournalCommit {
    step: CommitStep,
    began: Time,
    anatomy: Anatomy,
}

/// The journal of the file system.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    filesystem: Filesystem,
    /// The host's thread that writes the journal.
    thread: u16,
    /// Start of the journal on the drive, and the position up to which it is written.
    start: u64,
    length: u64,
    at: u64,
    running: Option<JournalCommit>,
    /// Commands that the current commit serves, and commands that wait for the next commit.
    served: Vec<CommandId>,
    waiting: Vec<CommandId>,
}

impl Journal {
    pub(super) fn new(filesystem: Filesystem, thread: u16, capacity: u64) -> Journal {
        let start = capacity / 2 / BLOCK * BLOCK;
        Journal {
            filesystem,
            thread,
            start,
            length: LENGTH.min((capacity - start) / BLOCK * BLOCK),
            at: 0,
            running: None,
            served: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Returns the host's thread that writes the journal. It also stands for the flusher.
    pub(super) fn thread(&self) -> u16 {
        self.thread
    }

    /// Resets the journal after a power cut.
    pub(super) fn clear(&mut self) {
        self.running = None;
        self.served.clear();
        self.waiting.clear();
    }

    /// Returns a write of the next `bytes` of the journal.
    fn next(&mut self, bytes: u64) -> Command {
        if self.at + bytes > self.length {
            self.at = 0;
        }
        let mut command = Command::new(0, Op::Write, self.start + self.at, bytes as u32);
        command.queue = self.thread;
        self.at += bytes;
        command
    }
}

impl<D: Device> Files<D> {
    /// A task waits for a commit that includes its metadata.
    pub(super) fn join_commit(&mut self, now: Time, id: CommandId) {
        self.journal.waiting.push(id);
        if self.journal.running.is_none() {
            self.begin_commit(now);
        }
    }

    fn begin_commit(&mut self, now: Time) {
        let journal = &mut self.journal;
        core::mem::swap(&mut journal.served, &mut journal.waiting);
        let mut anatomy = Anatomy::ZERO;
        anatomy.add(Part::HostSubmission, self.costs.wake);
        journal.running = Some(JournalCommit {
            step: CommitStep::Wake,
            began: now,
            anatomy,
        });
        self.timers.push(now + self.costs.wake, FileTimer::Journal);
    }

    /// The journal's thread has woken up.
    pub(super) fn journal_wakes(&mut self, now: Time) {
        let bytes = self.journal.filesystem.blocks();
        if bytes == 0 {
            return self.make_it_count(now);
        }
        self.commit().step = CommitStep::Blocks;
        let command = self.journal.next(bytes);
        self.send(now, Owner::Journal, command);
    }

    /// Returns the commit whose wait or command has ended.
    fn commit(&mut self) -> &mut JournalCommit {
        let commit = self.journal.running.as_mut();
        commit.expect("the journal waits for nothing unless a commit runs")
    }

    /// The data that the record covers has reached the drive: flushes it, then writes the record.
    fn make_it_count(&mut self, now: Time) {
        if self.host.is_write_through() {
            return self.write_record(now);
        }
        self.commit().step = CommitStep::Flush;
        let mut flush = Command::flush(0);
        flush.queue = self.journal.thread;
        self.send(now, Owner::Journal, flush);
    }

    fn write_record(&mut self, now: Time) {
        self.commit().step = CommitStep::Record;
        let mut record = self.journal.next(BLOCK);
        record.fua = !self.host.is_write_through();
        self.send(now, Owner::Journal, record);
    }

    /// A command of the journal has completed.
    pub(super) fn journal_answered(&mut self, now: Time, completion: &Completion) {
        let commit = self.commit();
        commit.anatomy.append(&seen(&completion.anatomy));
        match commit.step {
            CommitStep::Blocks => self.make_it_count(now),
            CommitStep::Flush => self.write_record(now),
            CommitStep::Wake | CommitStep::Record => self.end_commit(now),
        }
    }

    fn end_commit(&mut self, now: Time) {
        let Some(commit) = self.journal.running.take() else {
            unreachable!("what ends it is its own record");
        };
        let mut served = core::mem::take(&mut self.journal.served);
        for id in served.drain(..) {
            self.committed(now, id, commit.began, &commit.anatomy);
        }
        self.journal.served = served;
        if !self.journal.waiting.is_empty() {
            self.begin_commit(now);
        }
    }
}
