//! A file's command from stage to stage: copy, dirty pages, journal or flush, and the way back.

use alloc::vec::Vec;

use super::{Durable, Files, Owner, Stage, Task};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Device;
use crate::time::Time;

/// The largest piece in which dirty pages go to the drive: 256 pages, as many as one of Linux's `bio` names.
const PIECE: u64 = 1 << 20;

/// What a command below took, seen from above it: what kept its thread from issuing it is part of the wait.
pub(super) fn seen(anatomy: &Anatomy) -> Anatomy {
    let busy = anatomy.get(Part::ThreadBusy);
    let mut seen = *anatomy;
    seen.take(Part::ThreadBusy);
    seen.add(Part::HostSubmission, busy);
    seen
}

impl<D: Device> Files<D> {
    /// A task's own time has passed.
    pub(super) fn task_goes_on(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let task = *self.task(id);
        match task.stage {
            Stage::Enter => self.entered(now, id, task, done),
            Stage::Sync => self.write_out(now, id, done),
            Stage::Woken => self.complete(now, id, done),
            // These wait for the drive or the journal.
            Stage::Direct | Stage::Data | Stage::Commit | Stage::Flush => {}
        }
    }

    /// A write has been copied.
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

    /// Sends a task's dirty pages to the drive, or goes on if there are none.
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
                // One system call for all of it.
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

    /// Data is with the drive: metadata, a flush, or nothing is left.
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
        // All of a stage were sent at one time: the last has the time of the stage.
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

    /// A thread of the system marks the extent of a direct write.
    fn convert(&mut self, now: Time, id: CommandId) {
        let takes = self.costs.convert + self.waits.exponential(self.costs.convert_spread);
        let task = self.task(id);
        task.anatomy.add(Part::HostCompletion, takes);
        task.stage = Stage::Woken;
        self.timers.push(now + takes, Owner::Task(id));
    }

    /// The journal has committed what a task waited for, in `took`, which began at `began`.
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
