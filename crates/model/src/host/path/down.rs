//! The way down: from a core that has done its part of a submission to the drive.

use core::hint::cold_path;

use super::{HostPath, SubmissionPath, Timer, pages};
use crate::anatomy::Anatomy;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Device;
use crate::host::bridge::crossing_down;
use crate::host::config::CompletionMode;
use crate::host::core::CoreWork;
use crate::time::{Span, Time};

impl<D: Device> HostPath<D> {
    /// A core has done its part of a submission. Returns whether it has begun further work for it: to wait for the
    /// queue's lock, or to carry the command through the monitor.
    #[inline(always)]
    pub(super) fn submitted(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let outstanding = &mut self.outstanding[id as usize];
        let thread = outstanding.to.thread;
        if self.config.write_through && outstanding.command.op == Op::Flush {
            cold_path();
            self.end_flush(core, now, id);
            return false;
        }
        match outstanding.to.way {
            SubmissionPath::KernelThread => self.leave_in_ring(now, id),
            SubmissionPath::Helpers if self.helpers.all_taken(thread) => {
                outstanding.below = now;
                self.helpers.wait(thread, id);
            }
            SubmissionPath::Helpers => self.hand_down(now, id),
            SubmissionPath::Direct => {
                let Some(leaves) = self.queues.lock(core, now) else {
                    if self.config.hypervisor.is_some() {
                        cold_path();
                        return self.pass_down(core, now, id);
                    }
                    return self.submitted_here(core, now, id, thread);
                };
                let spun = leaves.since(now);
                outstanding.queued += spun;
                self.charge(thread, 1, spun);
                if spun == Span::ZERO {
                    return self.submitted_behind_lock(core, now, id);
                }
                self.cores.spin(core, now, CoreWork::Lock(id), leaves);
                return true;
            }
        }
        false
    }

    /// Like `submitted`, for cores that share a queue; this core has its lock.
    #[inline(never)]
    pub(super) fn submitted_behind_lock(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let thread = self.outstanding[id as usize].to.thread;
        self.submitted_here(core, now, id, thread)
    }

    /// The core has rung the doorbell itself, for its thread; returns whether it has begun the work that follows.
    #[inline(always)]
    fn submitted_here(&mut self, core: usize, now: Time, id: CommandId, thread: u16) -> bool {
        self.reach_drive(now, id);
        let outstanding = &self.outstanding[id as usize];
        let thread = &mut self.threads[usize::from(thread)];
        let after = thread.work_after(outstanding.to.mode, outstanding.command.batched);
        if after == Span::ZERO {
            return false;
        }
        thread.cpu[1] += after;
        !self.cores.begin(core, now, CoreWork::Return, after)
    }

    /// The system has nothing to flush; the thread continues with the result.
    #[inline(never)]
    fn end_flush(&mut self, core: usize, now: Time, id: CommandId) {
        let outstanding = &mut self.outstanding[id as usize];
        outstanding.below = now;
        outstanding.poll_from = now;
        outstanding.answer = Completion {
            id,
            at: now,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        };
        if self.config.hypervisor.is_some() {
            self.guest.begin_above();
        }
        if outstanding.submitted == now {
            // On a host without costs, the flush completes when the host is advanced, like all commands.
            return self.timers.push(now, (Timer::PollBegins, id));
        }
        self.cores[core].completions.find(id);
    }

    /// Passes a command to the drive through the monitor of a virtual machine. The guest's core traps into the monitor;
    /// if many commands are in flight, it leaves the command in the ring, where the monitor's thread will find it.
    #[inline(never)]
    fn pass_down(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let Some(hypervisor) = &self.config.hypervisor else {
            unreachable!("only a guest's core passes a command to a monitor");
        };
        if !self.guest.begin_in_ring() {
            let monitor = self.cores.last();
            self.cores[monitor].to_submit.push_back(id);
            return false;
        }
        let outstanding = &self.outstanding[id as usize];
        let service = hypervisor.kick + self.carry_down(&outstanding.command);
        self.charge(outstanding.to.thread, 1, service);
        if self.cores.begin(core, now, CoreWork::Down(id), service) {
            self.carried_down(now, id);
            return false;
        }
        true
    }

    /// A helper takes a command; this includes the time to notify the helper.
    #[inline(never)]
    pub(super) fn hand_down(&mut self, now: Time, id: CommandId) {
        let thread = self.outstanding[id as usize].to.thread;
        self.helpers.take(thread);
        let mut takes = self.thread(thread).hand_down;
        if let Some(hypervisor) = &self.config.hypervisor {
            takes += hypervisor.kick + self.carry_down(&self.outstanding[id as usize].command);
        }
        self.helpers.charge(takes);
        self.timers.push(now + takes, (Timer::HandedDown, id));
    }

    /// The kernel thread will find the command in the ring, and submits it.
    #[inline(never)]
    fn leave_in_ring(&mut self, now: Time, id: CommandId) {
        let outstanding = &self.outstanding[id as usize];
        let (thread, command) = (outstanding.to.thread, outstanding.command);
        let issuer = self.thread(thread);
        let find = issuer.find;
        let mut takes = issuer.costs.submit + self.config.per_page * pages(&command);
        if let Some(hypervisor) = &self.config.hypervisor {
            takes += hypervisor.kick + self.carry_down(&command);
        }
        let leaves = self.kernel_threads.find(now, thread, find, takes);
        self.timers.push(leaves, (Timer::HandedDown, id));
    }

    #[inline(always)]
    fn reach_drive(&mut self, now: Time, id: CommandId) {
        if self.crosses {
            cold_path();
            return self.cross_down(now, id);
        }
        self.give_to_drive(now, id);
    }

    /// A command crosses the link between sockets, if its thread is not on the drive's, and the bridge, if there is one.
    #[inline(never)]
    fn cross_down(&mut self, now: Time, id: CommandId) {
        let outstanding = &mut self.outstanding[id as usize];
        let thread = &self.threads[usize::from(outstanding.to.thread)];
        let mut at = now + crossing_down(thread.crossing, &outstanding.command);
        if let Some(bridge) = &self.config.bridge {
            at = self.crossings.down(at, bridge, &outstanding.command);
        }
        outstanding.bridged = at.since(now);
        if at == now {
            return self.give_to_drive(now, id);
        }
        self.timers.push(at, (Timer::BridgedDown, id));
    }

    /// The monitor, a helper or a kernel thread has carried a command down.
    #[inline(never)]
    pub(super) fn carried_down(&mut self, now: Time, id: CommandId) {
        self.reach_drive(now, id);
    }

    /// A command has crossed the bridge on its way down.
    #[inline(never)]
    pub(super) fn bridged_down(&mut self, now: Time, id: CommandId) {
        self.give_to_drive(now, id);
    }

    #[inline(always)]
    fn give_to_drive(&mut self, now: Time, id: CommandId) {
        let outstanding = &mut self.outstanding[id as usize];
        outstanding.below = now;
        outstanding.poll_from = now;
        if outstanding.to.mode == CompletionMode::HybridPolling {
            cold_path();
            outstanding.poll_from = now
                + self
                    .learnt
                    .sleep(outstanding.to.thread, &outstanding.command);
        }
        let command = Command {
            queue: self.queues.core_queue(outstanding.to.core),
            ..outstanding.command
        };
        self.device.submit(now, command);
        self.device_next = self.device.next_event();
    }
}
