//! Stages of a file's command: copy, dirty pages, journal or flush, and completion.

use alloc::vec::Vec;

use super::{Durable, Files, Owner, Stage, Task};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Device;
use crate::time::Time;

/// Largest piece in which dirty pages are written to the drive: 256 pages, the maximum of a Linux `bio`.
const PIECE: u64 = 1 << 20;

/// Converts the latency of a command below to that seen from above: time that kept its thread from issuing it is part
/// of the wait.
pub(super) fn seen(anatomy: &Anatomy) -> Anatomy {
    let busy = anatomy.get(Part::ThreadBusy);
    let mut seen = *anatomy;
    seen.take(Part::ThreadBusy);
    seen.add(Part::HostSubmission, busy);
    seen
}

impl<D: Device> Files<D> {
    /// The time of a task's own stage has passed.
    pub(super) fn task_goes_on(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        match task.stage {
            Stage::Enter => self.entered(now, id, task, done),
            Stage::Sync => self.write_out(now, id, done),
            Stage::Woken => self.complete(now, id, done),
            // These stages wait for the drive or the journal.
            Stage::Direct | Stage::Data | Stage::Commit | Stage::Flush => {}
        }
    }

    /// The copy of a write has ended.
    fn entered(&mut self, now: Time, id: CommandId, task: Task, done: &mut Vec<Completion>) {
        match self.file(task.command.queue).config.each {
            Some(_) => self.write_out(now, id, done),
            None => self.complete(now, id, done),
        }
    }

    fn commits(&mut self, thread: u16, durable: Durable) -> bool {
        self.file(thread).needs_commit(durable)
    }

    fn stage(&mut self, id: CommandId, stage: Stage, left: u32) {
        let task = self.task(id);
        task.stage = stage;
        task.left = left;
    }

    /// Writes a task's dirty pages to the drive, or continues if there are none.
    fn write_out(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let thread = self.task(id).command.queue;
        let capacity = self.capacity().bytes;
        let mut dirty = self.file(thread).take_dirty();
        let mut sent = 0;
        for &(start, end) in &dirty {
            let end = end.min(capacity);
            let mut at = start;
            while at < end {
                let bytes = PIECE.min(end - at);
                let mut command = Command::write(0, at, bytes as u32);
                command.queue = thread;
                // One system call for all of them.
                command.batched = sent > 0;
                sent += 1;
                self.stage(id, Stage::Data, sent);
                self.send(now, Owner::Task(id), command);
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
            self.stage(id, Stage::Commit, 0);
            self.task(id).joined = now;
            return self.join_commit(now, id);
        }
        if self.host.is_write_through() {
            return self.complete(now, id, done);
        }
        let mut flush = Command::flush(0);
        flush.queue = thread;
        flush.batched = true;
        self.stage(id, Stage::Flush, 1);
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
        // All commands of a stage were sent at one time: the last one has the latency of the stage.
        task.anatomy.append(&match task.stage {
            Stage::Direct => completion.anatomy,
            _ => seen(&completion.anatomy),
        });
        let (stage, command, durable) = (task.stage, task.command, task.durable);
        let converts = task.converts;
        match stage {
            Stage::Data => self.after_data(now, id, done),
            Stage::Direct => {
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
        task.stage = Stage::Woken;
        self.timers.push(marked, Owner::Task(id));
    }

    /// The journal has committed the metadata that a task waited for. The commit began at `began`, and took `took`.
    pub(super) fn committed(&mut self, now: Time, id: CommandId, began: Time, took: &Anatomy) {
        let wake = self.costs.wake;
        let task = self.task(id);
        task.anatomy.add(Part::Tier, began.since(task.joined));
        task.anatomy.append(took);
        task.anatomy.add(Part::HostCompletion, wake);
        task.stage = Stage::Woken;
        self.timers.push(now + wake, Owner::Task(id));
    }

    fn complete(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        self.tasks[id as usize] = None;
        debug_assert_eq!(task.anatomy.total(), now.since(task.began));
        done.push(Completion {
            id,
            at: now,
            status: task.status,
            anatomy: task.anatomy,
        });
    }
}
