//! The way up: from the drive's completion to the job's thread.

use super::*;

impl<D: Device> HostPath<D> {
    /// The drive has completed a command.
    pub(super) fn take_from_device(
        &mut self,
        now: Time,
        completion: &Completion,
        done: &mut Vec<Completion>,
    ) {
        let slot = &mut self.slots[completion.id as usize];
        slot.above = now;
        slot.status = completion.status;
        slot.anatomy = completion.anatomy;
        let (id, thread) = (completion.id, usize::from(slot.thread));
        let costs = &self.config.engines[self.threads[thread].config.engine as usize];
        if slot.mode == CompletionMode::HybridPolling {
            let mean = &mut self.threads[thread].mean_ns[size_class(&slot.command)];
            let took = now.since(slot.below).ns().min(u64::from(u32::MAX / 2)) as u32;
            *mean = if *mean == 0 {
                took
            } else {
                *mean - *mean / 32 + took / 32
            };
            if now < slot.poll_from {
                let at = slot.poll_from;
                return self.timers.push(at, id << 2 | Timer::PollBegins as u32);
            }
        }
        if costs.has_helpers() {
            self.helper_cpu += costs.hand_off;
            let at = now + costs.hand_off;
            return self.timers.push(at, id << 2 | Timer::HandedUp as u32);
        }
        let core = if self.config.hypervisor.is_some() {
            self.cores.len() - 1
        } else {
            usize::from(self.threads[thread].core)
        };
        self.announce(core, now, id, done);
    }

    /// Puts a completion where the core will find it, and wakes the core.
    pub(super) fn announce(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        done: &mut Vec<Completion>,
    ) {
        let interrupts =
            self.slots[id as usize].mode == CompletionMode::Interrupt || self.is_monitor(core);
        let one = &mut self.cores[core];
        if interrupts {
            one.announced.push_back(id);
        } else {
            one.to_reap.push_back(id);
        }
        if one.work == Work::Idle {
            self.dispatch(core, now, done);
        }
    }

    pub(super) fn timer(&mut self, now: Time, payload: u32, done: &mut Vec<Completion>) {
        let id = payload >> 2;
        let core = self.core_of(id);
        if payload & 3 == Timer::HandedDown as u32 {
            return self.pass_down(now, id, done);
        }
        if payload & 3 == Timer::HandedUp as u32 {
            self.release_helper(now, id);
        }
        // Not by an interrupt: the helper, or the poll, has the result in hand.
        self.cores[core].to_reap.push_back(id);
        if self.cores[core].work == Work::Idle {
            self.dispatch(core, now, done);
        }
    }

    fn release_helper(&mut self, now: Time, id: CommandId) {
        let thread = &mut self.threads[usize::from(self.slots[id as usize].thread)];
        if thread.helpers_free == u16::MAX {
            return;
        }
        thread.helpers_free += 1;
        let hand_off = self.config.engines[thread.config.engine as usize].hand_off;
        if let Some(next) = thread.waiting.pop_front() {
            let slot = &mut self.slots[next as usize];
            slot.queued += now.since(slot.below);
            self.hand_down(now, next, hand_off);
        }
    }

    /// The thread has the result; returns whether the core goes on with the thread's own work.
    pub(super) fn reaped(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        done: &mut Vec<Completion>,
    ) -> bool {
        let slot = &self.slots[id as usize];
        let thread = slot.thread;
        let mut anatomy = slot.anatomy;
        let issued = slot.issued;
        anatomy.add(Part::ThreadBusy, issued.since(slot.submitted));
        anatomy.add(Part::HostSubmission, slot.below.since(issued) - slot.queued);
        anatomy.add(Part::QueueSlot, slot.queued);
        anatomy.add(Part::HostCompletion, now.since(slot.above));
        done.push(Completion {
            id,
            at: now,
            status: slot.status,
            anatomy,
        });
        let engine = self.threads[usize::from(thread)].config.engine;
        let application = self.config.engines[engine as usize].application;
        if application == Span::ZERO {
            return false;
        }
        self.charge(thread, 0, application);
        !self.begin(core, now, Work::Application(thread), application)
    }
}
