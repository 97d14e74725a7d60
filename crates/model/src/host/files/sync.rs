//! Stages of a file's command: copy, dirty pages, journal or flush, and completion.

use alloc::vec::Vec;

use super::wait::{seen, waited};
use super::writeback::PIECE;
use super::{Blocking, Durable, FileStage, FileTimer, Files, Owner, Task};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Device;
use crate::time::Time;

impl<D: Device> Files<D> {
    /// The time of a task's own stage has passed.
    pub(super) fn task_goes_on(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        match task.stage {
            FileStage::Enter => self.entered(now, id, task, done),
            FileStage::Sync => self.write_out(now, id, done),
            FileStage::Woken => self.complete(now, id, done),
            // These stages wait for the drive, the journal, or the thread's previous I/O.
            FileStage::Direct
            | FileStage::Data
            | FileStage::Commit
            | FileStage::Flush
            | FileStage::Fetch
            | FileStage::Throttled
            | FileStage::Queued => {}
        }
    }

    /// The copy of a write has ended, or the look-up of a read.
    fn entered(&mut self, now: Time, id: CommandId, task: Task, done: &mut Vec<Completion>) {
        let thread = task.command.queue;
        let file = self.file(thread);
        if file.blocker.is_some() && file.config.blocking != Blocking::Never {
            file.queued.push_back(id);
            let task = self.task(id);
            (task.stage, task.joined) = (FileStage::Queued, now);
            return;
        }
        if task.command.op == Op::Read {
            return self.read_on(now, id, done);
        }
        if self.file(thread).config.each.is_some() {
            return self.write_out(now, id, done);
        }
        if self.throttles(thread, task.command.bytes) {
            return self.throttle(now, id);
        }
        self.wake_flusher(now);
        self.complete(now, id, done);
    }

    /// A command waits for the drive within its system call.
    pub(super) fn block(&mut self, now: Time, id: CommandId, stage: FileStage) {
        let task = self.task(id);
        (task.stage, task.joined) = (stage, now);
        let thread = task.command.queue;
        self.file(thread).blocker = Some(id);
    }

    /// The thread continues with the commands that it could not issue while one was blocked.
    fn unblock(&mut self, now: Time, thread: u16, done: &mut Vec<Completion>) {
        let file = self.file(thread);
        if core::mem::replace(&mut file.resumes, true) {
            return;
        }
        while let file = self.file(thread)
            && file.blocker.is_none()
            && let Some(next) = file.queued.pop_front()
        {
            let part = match file.config.blocking {
                Blocking::Helper => Part::QueueSlot,
                Blocking::Thread | Blocking::Never => Part::ThreadBusy,
            };
            let task = self.task(next);
            task.anatomy.add(part, now.since(task.joined));
            let task = *task;
            self.entered(now, next, task, done);
        }
        self.file(thread).resumes = false;
    }

    fn commits(&mut self, thread: u16, durable: Durable) -> bool {
        self.file(thread).needs_commit(durable)
    }

    fn stage(&mut self, id: CommandId, stage: FileStage, left: u32) {
        let task = self.task(id);
        task.stage = stage;
        task.left = left;
    }

    /// Writes a task's dirty pages to the drive, or continues if there are none. It also waits for pages of its file that
    /// the flusher is writing.
    fn write_out(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let thread = self.task(id).command.queue;
        let capacity = self.capacity().bytes;
        let mut dirty = self.file(thread).take_dirty();
        let mut sent = self.file(thread).in_flight.len() as u32;
        for index in 0..sent as usize {
            let request = self.file(thread).in_flight[index];
            self.requests[request].waiters.push(id);
        }
        let mut first = true;
        self.task(id).joined = now;
        self.stage(id, FileStage::Data, sent);
        for &(start, end) in &dirty {
            let end = end.min(capacity);
            let mut at = start;
            while at < end {
                let bytes = PIECE.min(end - at);
                let mut command = Command::write(0, at, bytes as u32);
                // One system call for all of them.
                command.batched = !first;
                first = false;
                sent += 1;
                self.stage(id, FileStage::Data, sent);
                self.write_pages(now, command, thread, alloc::vec![id]);
                at += bytes;
            }
        }
        dirty.clear();
        self.file(thread).dirty = dirty;
        if sent == 0 {
            self.after_data(now, id, done);
        }
    }

    /// Data has reached the drive: continues with metadata or a flush, or completes the task.
    fn after_data(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = self.task(id);
        let (thread, durable) = (task.command.queue, task.durable);
        if self.commits(thread, durable) {
            let file = self.file(thread);
            (file.grown, file.touched) = (false, false);
            self.stage(id, FileStage::Commit, 0);
            self.task(id).joined = now;
            return self.join_commit(now, id);
        }
        if self.host.is_write_through() {
            return self.complete(now, id, done);
        }
        let mut flush = Command::flush(0);
        flush.queue = thread;
        flush.batched = true;
        self.stage(id, FileStage::Flush, 1);
        self.send(now, Owner::Task(id), flush);
    }

    /// A command of a task has completed at the drive.
    pub(super) fn task_answered(
        &mut self,
        now: Time,
        id: CommandId,
        completion: &Completion,
        done: &mut Vec<Completion>,
    ) {
        let task = self.task(id);
        if completion.status != Status::Success {
            task.status = completion.status;
        }
        task.left -= 1;
        if task.left > 0 {
            return;
        }
        // The commands of a stage were sent at one time, except those of the flusher: the last one has the latency of the
        // stage.
        task.anatomy.append(&match task.stage {
            FileStage::Direct => completion.anatomy,
            FileStage::Data => waited(now, task.joined, completion),
            _ => seen(&completion.anatomy),
        });
        let (stage, command, durable) = (task.stage, task.command, task.durable);
        let converts = task.converts;
        match stage {
            FileStage::Data => self.after_data(now, id, done),
            FileStage::Direct => {
                let durable_write = command.op == Op::Write && command.fua;
                match durable_write && self.commits(command.queue, durable) {
                    true => self.after_data(now, id, done),
                    false if converts => self.convert(now, id),
                    false => self.complete(now, id, done),
                }
            }
            _ => self.complete(now, id, done),
        }
    }

    /// A kernel thread wakes and marks the extent of a direct write, after those of earlier writes of the file.
    fn convert(&mut self, now: Time, id: CommandId) {
        let (wake, takes) = (self.costs.wake, self.costs.convert);
        let thread = self.task(id).command.queue;
        let (_, marked) = self.file(thread).converter.book(now + wake, takes);
        let task = self.task(id);
        task.anatomy.add(Part::HostCompletion, marked.since(now));
        task.stage = FileStage::Woken;
        self.timers.push(marked, FileTimer::Task(id));
    }

    /// The journal has committed the metadata that a task waited for. The commit began at `began`, and took `took`.
    pub(super) fn committed(&mut self, now: Time, id: CommandId, began: Time, took: &Anatomy) {
        let wake = self.costs.wake;
        let task = self.task(id);
        task.anatomy.add(Part::Tier, began.since(task.joined));
        task.anatomy.append(took);
        task.anatomy.add(Part::HostCompletion, wake);
        task.stage = FileStage::Woken;
        self.timers.push(now + wake, FileTimer::Task(id));
    }

    pub(super) fn complete(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        self.tasks[id as usize] = None;
        debug_assert_eq!(task.anatomy.total(), now.since(task.began));
        done.push(Completion {
            id,
            at: now,
            status: task.status,
            anatomy: task.anatomy,
        });
        let thread = task.command.queue;
        let bytes = u64::from(task.command.bytes);
        let buffered = self.file(thread).config.buffered;
        match task.command.op {
            Op::Read if buffered => self.counts.read += bytes,
            Op::Write if buffered => self.counts.written += bytes,
            _ => {}
        }
        let file = self.file(thread);
        if file.blocker == Some(id) {
            file.blocker = None;
            self.unblock(now, thread, done);
        }
    }
}
