//! The way up: a drive's answer is announced, handled, and reaped by its thread.

use alloc::vec::Vec;

use super::{HostPath, Timer, size_class};
use crate::anatomy::Part;
use crate::command::{CommandId, Completion};
use crate::device::Device;
use crate::host::Engine;
use crate::host::config::CompletionMode;
use crate::host::core::{NOBODY, Work};
use crate::time::{Span, Time};

impl<D: Device> HostPath<D> {
    /// The drive has completed a command behind a bridge.
    pub(super) fn cross_up(&mut self, now: Time, completion: &Completion) {
        let slot = &self.slots[completion.id as usize];
        let Some(bridge) = &self.config.bridge else {
            return;
        };
        let at = self.crossings.up(now, bridge, &slot.command);
        let mut answer = *completion;
        answer.anatomy.add(Part::Link, slot.bridged + at.since(now));
        answer.at = at;
        self.answers[completion.id as usize] = answer;
        self.timers.push(at, Timer::BridgedUp.of(completion.id));
    }

    /// The host sees that the drive has completed a command.
    pub(super) fn answered(
        &mut self,
        now: Time,
        completion: &Completion,
        done: &mut Vec<Completion>,
    ) {
        self.answers[completion.id as usize] = *completion;
        let slot = &self.slots[completion.id as usize];
        let (id, thread) = (completion.id, usize::from(slot.thread));
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
                return self.timers.push(at, Timer::PollBegins.of(id));
            }
        }
        if self.config.hypervisor.is_some() {
            let monitor = self.cores.len() - 1;
            return self.announce(monitor, now, id, done);
        }
        self.tell(now, id, done);
    }

    /// To the helper that waits for it, or to the thread's core.
    fn tell(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        if !self.tell_helper(now, id) {
            self.announce(self.core_of(id), now, id, done);
        }
    }

    /// Whether a helper waits for it; that takes its time to tell the job's thread.
    fn tell_helper(&mut self, now: Time, id: CommandId) -> bool {
        let thread = usize::from(self.slots[id as usize].thread);
        let costs = &self.config.engines[self.threads[thread].config.engine as usize];
        if !costs.has_helpers() {
            return false;
        }
        let at = now + costs.hand_off;
        self.helper_cpu += costs.hand_off;
        self.timers.push(at, Timer::HandedUp.of(id));
        true
    }

    /// The monitor has a completion ready: an interrupt into the guest tells it and all that wait, or it waits itself.
    pub(super) fn tell_guest(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        self.below_guest -= 1;
        self.untold.push(id);
        if !self.coalescing.tells(self.below_guest) {
            return;
        }
        let mut untold = core::mem::take(&mut self.untold);
        // All are there before a core looks, so that one interrupt finds them.
        for &id in &untold {
            if self.tell_helper(now, id) {
                continue;
            }
            let core = self.core_of(id);
            let polls = self.slots[id as usize].mode != CompletionMode::Interrupt;
            let one = &mut self.cores[core];
            if polls {
                one.to_reap.push_back(id);
            } else {
                one.announced.push_back(id);
            }
        }
        for id in untold.drain(..) {
            let core = self.core_of(id);
            let one = &self.cores[core];
            let has_work = !(one.announced.is_empty() && one.to_reap.is_empty());
            if has_work && one.work == Work::Idle {
                self.dispatch(core, now, done);
            }
        }
        self.untold = untold;
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
        let (id, event) = (payload >> 3, payload & 7);
        let core = self.core_of(id);
        if event == Timer::BridgedDown as u32 {
            return self.give_to_drive(now, id);
        }
        if event == Timer::BridgedUp as u32 {
            let answer = self.answers[id as usize];
            return self.answered(now, &answer, done);
        }
        if event == Timer::HandedDown as u32 {
            let guest = u32::from(self.config.hypervisor.is_some());
            self.below_guest += guest;
            self.of_guest += guest;
            return self.reach_drive(now, id);
        }
        if event == Timer::HandedUp as u32 {
            self.release_helper(now, id);
        }
        // Not by an interrupt: the helper, or the poll, has the result in hand.
        self.cores[core].to_reap.push_back(id);
        if self.cores[core].work == Work::Idle {
            self.dispatch(core, now, done);
        }
    }

    pub(super) fn release_helper(&mut self, now: Time, id: CommandId) {
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

    /// An interrupt, or the monitor's way up.
    pub(super) fn begin_announced(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let wake = self.wake(core, now);
        if self.is_monitor(core) {
            self.cores[core].announced.pop_front();
            let up = self
                .config
                .hypervisor
                .as_ref()
                .map_or(Span::ZERO, |one| one.up);
            return self.begin(core, now, Work::Up(id), wake + up);
        }
        let thread = self.slots[id as usize].thread;
        let one = &mut self.cores[core];
        let count = one.announced.len() as u32;
        let service = wake + self.config.interrupt + self.config.interrupt_each * u64::from(count);
        self.charge(thread, 1, service);
        let one = &mut self.cores[core];
        if count == 1 && one.to_submit.is_empty() && one.to_reap.is_empty() {
            one.announced.pop_front();
            return self.begin_reap(core, now, id, service);
        }
        self.begin(core, now, Work::Interrupt(count), service)
    }

    /// A thread takes a completion, after `before` on the same core.
    pub(super) fn begin_reap(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        before: Span,
    ) -> bool {
        let slot = &self.slots[id as usize];
        let (thread, mode) = (slot.thread, slot.mode);
        let costs = &self.config.engines[self.threads[usize::from(thread)].config.engine as usize];
        let polls = mode != CompletionMode::Interrupt;
        let one = &mut self.cores[core];
        let mut service = costs.reap;
        if polls {
            service += self.config.poll;
        } else if one.thread != thread {
            service += self.config.switch;
        }
        let waited = if polls && one.thread == NOBODY {
            // The core has polled since it had nothing else to do.
            now.since(one.idle_since.max(slot.poll_from))
        } else {
            Span::ZERO
        };
        one.busy += waited;
        one.thread = thread;
        let user = self.threads[usize::from(thread)].config.engine == Engine::UserSpace;
        self.charge(thread, usize::from(!user), service + waited);
        self.begin(core, now, Work::Reap(id), before + service)
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
        let (issued, below) = (slot.issued, slot.below);
        let (queued, bridged) = (slot.queued, slot.bridged);
        let submitted = slot.submitted;
        self.of_guest = self.of_guest.saturating_sub(1);
        // Copied before it is changed: a wide load right behind narrow stores stalls.
        done.push(self.answers[id as usize]);
        if let Some(answer) = done.last_mut() {
            let anatomy = &mut answer.anatomy;
            anatomy.add(Part::ThreadBusy, issued.since(submitted));
            anatomy.add(Part::HostSubmission, below.since(issued) - queued - bridged);
            anatomy.add(Part::QueueSlot, queued);
            anatomy.add(Part::HostCompletion, now.since(answer.at));
            answer.at = now;
        }
        let engine = self.threads[usize::from(thread)].config.engine;
        let application = self.config.engines[engine as usize].application;
        if application == Span::ZERO {
            return false;
        }
        self.charge(thread, 0, application);
        !self.begin(core, now, Work::Application(thread), application)
    }
}
