//! The way down: from a core that has done its part of a submission to the drive.

use super::{HostPath, Slot, Timer, size_class};
use crate::anatomy::Anatomy;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Device;
use crate::host::config::CompletionMode;
use crate::host::core::Work;
use crate::time::{Span, Time};

impl<D: Device> HostPath<D> {
    /// A core has done its part of a submission; returns whether it has begun more of it: to wait for the queue's lock,
    /// or to carry the command through the monitor.
    pub(super) fn submitted(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let Slot {
            thread, command, ..
        } = self.slots[id as usize];
        if self.config.write_through && command.op == Op::Flush {
            self.end_flush(core, now, id);
            return false;
        }
        let costs = self.config.engines[self.threads[usize::from(thread)].config.engine as usize];
        if self.threads[usize::from(thread)].helpers_free == 0 {
            self.slots[id as usize].below = now;
            self.threads[usize::from(thread)].waiting.push_back(id);
        } else if costs.has_helpers() {
            self.hand_down(now, id, costs.hand_off);
        } else if let Some(lock) = self.locks[core] {
            let (_, leaves) =
                self.lock_stations[usize::from(lock)].book(now, self.config.queue_lock);
            let spun = leaves.since(now);
            self.slots[id as usize].queued += spun;
            self.charge(thread, 1, spun);
            if spun != Span::ZERO {
                let one = &mut self.cores[core];
                one.work = Work::Lock(id);
                one.busy += spun;
                self.set_due(core, leaves);
                return true;
            }
            self.reach_drive(now, id);
        } else {
            return self.pass_down(core, now, id);
        }
        false
    }

    /// The system finds nothing to flush; the thread goes on with the result in hand.
    fn end_flush(&mut self, core: usize, now: Time, id: CommandId) {
        let slot = &mut self.slots[id as usize];
        slot.below = now;
        slot.poll_from = now;
        self.answers[id as usize] = Completion {
            id,
            at: now,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        };
        if self.config.hypervisor.is_some() {
            self.of_guest += 1;
        }
        if slot.submitted == now {
            // A host of no cost: it completes when it is advanced, as all do.
            return self.timers.push(now, Timer::PollBegins.of(id));
        }
        self.cores[core].to_reap.push_back(id);
    }

    /// To the drive; in a virtual machine through the monitor, by a trap of the guest's core or, where many are in
    /// flight, by the ring in which the monitor's thread will find it.
    fn pass_down(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let Some(hypervisor) = &self.config.hypervisor else {
            self.reach_drive(now, id);
            return false;
        };
        let must = self.below_guest == 0 || self.coalescing.traps(self.of_guest);
        self.below_guest += 1;
        self.of_guest += 1;
        if !must {
            let monitor = self.cores.len() - 1;
            self.cores[monitor].to_submit.push_back(id);
            return false;
        }
        let slot = &self.slots[id as usize];
        let service = hypervisor.kick + self.carry_down(&slot.command);
        self.charge(slot.thread, 1, service);
        if self.begin(core, now, Work::Down(id), service) {
            self.reach_drive(now, id);
            return false;
        }
        true
    }

    pub(super) fn hand_down(&mut self, now: Time, id: CommandId, hand_off: Span) {
        let thread = usize::from(self.slots[id as usize].thread);
        if self.threads[thread].helpers_free != u16::MAX {
            self.threads[thread].helpers_free -= 1;
        }
        let mut takes = hand_off;
        if let Some(hypervisor) = &self.config.hypervisor {
            takes += hypervisor.kick + self.carry_down(&self.slots[id as usize].command);
        }
        self.helper_cpu += takes;
        self.timers.push(now + takes, Timer::HandedDown.of(id));
    }

    pub(super) fn reach_drive(&mut self, now: Time, id: CommandId) {
        if let Some(bridge) = &self.config.bridge {
            let slot = &mut self.slots[id as usize];
            let at = self.crossings.down(now, bridge, &slot.command);
            slot.bridged = at.since(now);
            return self.timers.push(at, Timer::BridgedDown.of(id));
        }
        self.give_to_drive(now, id);
    }

    pub(super) fn give_to_drive(&mut self, now: Time, id: CommandId) {
        let slot = &mut self.slots[id as usize];
        slot.below = now;
        slot.poll_from = now;
        let thread = &self.threads[usize::from(slot.thread)];
        if slot.mode == CompletionMode::HybridPolling {
            slot.poll_from =
                now + Span::from_ns(u64::from(thread.mean_ns[size_class(&slot.command)] / 2));
        }
        let command = Command {
            queue: self.queues[usize::from(thread.core)],
            ..slot.command
        };
        self.device.submit(now, command);
    }
}
