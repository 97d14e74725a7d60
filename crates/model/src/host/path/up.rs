//! The way up: the drive's completion is announced, handled, and reaped by its thread.

use alloc::vec::Vec;
use core::hint::cold_path;

use super::{CompletionTarget, HostPath, SubmissionPath, Timer};
use crate::anatomy::Part;
use crate::command::{CommandId, Completion};
use crate::device::Device;
use crate::host::config::CompletionMode;
use crate::host::core::{CoreWork, NOBODY};
use crate::time::{Span, Time};

impl<D: Device> HostPath<D> {
    /// The drive has completed a command behind a bridge, or of a thread on another socket.
    #[inline(never)]
    pub(super) fn cross_up(
        &mut self,
        now: Time,
        id: CommandId,
        to: CompletionTarget,
        done: &mut Vec<Completion>,
    ) {
        let outstanding = &mut self.outstanding[id as usize];
        let mut at = match &self.config.bridge {
            Some(bridge) => self.crossings.up(now, bridge, &outstanding.command),
            None => now,
        };
        at += self.threads[usize::from(to.thread)].crossing;
        if at == now {
            return self.answered(now, id, to, done);
        }
        let answer = &mut outstanding.answer;
        answer
            .anatomy
            .add(Part::Link, outstanding.bridged + at.since(now));
        answer.at = at;
        self.timers.push(at, (Timer::BridgedUp, id));
    }

    /// The host sees that the drive has completed a command of this thread.
    #[inline(always)]
    pub(super) fn answered(
        &mut self,
        now: Time,
        id: CommandId,
        to: CompletionTarget,
        done: &mut Vec<Completion>,
    ) {
        if to.mode == CompletionMode::HybridPolling {
            cold_path();
            let outstanding = &self.outstanding[id as usize];
            let took = now.since(outstanding.below);
            self.learnt.learn(to.thread, &outstanding.command, took);
            if now < outstanding.poll_from {
                let at = outstanding.poll_from;
                return self.timers.push(at, (Timer::PollBegins, id));
            }
        }
        if self.config.hypervisor.is_some() {
            cold_path();
            return self.announce_to_monitor(now, id, done);
        }
        // Passes it to the receiver: the thread's core, unless another component waits for it.
        if to.way == SubmissionPath::Direct {
            let interrupts = to.mode == CompletionMode::Interrupt;
            return self.announce(usize::from(to.core), now, id, interrupts, done);
        }
        cold_path();
        self.tell_other(now, id);
    }

    /// A command has crossed the bridge on its way up.
    fn bridged_up(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let outstanding = &self.outstanding[id as usize];
        self.answered(now, id, outstanding.to, done);
    }

    /// Announces the completion to the monitor.
    #[inline(never)]
    fn announce_to_monitor(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        self.announce(self.cores.last(), now, id, true, done);
    }

    /// Passes the completion to the helper that waits for it, which takes time to notify the job's thread. A kernel
    /// thread puts it into the completion ring after its interrupt, or in the next iteration of its poll. Returns
    /// whether a helper or kernel thread takes it.
    fn tell_other(&mut self, now: Time, id: CommandId) -> bool {
        let outstanding = &self.outstanding[id as usize];
        let (thread, polled) = (outstanding.to.thread, outstanding.command.high_priority);
        let issuer = self.thread(thread);
        let told = match issuer.way {
            SubmissionPath::Direct => return false,
            SubmissionPath::Helpers => {
                let hand_off = issuer.costs.hand_off;
                self.helpers.charge(hand_off);
                now + hand_off
            }
            SubmissionPath::KernelThread => {
                let takes = match self.config.polls(polled) {
                    true => self.config.poll,
                    false => self.config.interrupt + self.config.interrupt_each,
                };
                self.kernel_threads.work(now, thread, takes)
            }
        };
        self.timers.push(told, (Timer::HandedUp, id));
        true
    }

    /// The monitor has a completion ready: an interrupt into the guest announces it and all that are waiting, or it
    /// waits itself.
    #[inline(never)]
    pub(super) fn tell_guest(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let Some(told) = self.guest.complete(id) else {
            return;
        };
        // All are announced before a core looks for completions, so that one interrupt finds them.
        for &id in &told {
            if self.tell_other(now, id) {
                continue;
            }
            let core = self.core_of(id);
            let polls = self.outstanding[id as usize].to.mode != CompletionMode::Interrupt;
            let state = &mut self.cores[core];
            if polls {
                state.completions.find(id);
            } else {
                state.completions.announce(id);
            }
        }
        for &id in &told {
            let core = self.core_of(id);
            let state = &self.cores[core];
            if !state.completions.is_empty() && state.work == CoreWork::Idle {
                self.run_core(core, now, done, false);
            }
        }
        self.guest.reuse(told);
    }

    /// Puts a completion where the core will find it, with or without an interrupt, and wakes the core.
    #[inline(always)]
    fn announce(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        interrupts: bool,
        done: &mut Vec<Completion>,
    ) {
        let state = &mut self.cores[core];
        if interrupts {
            state.completions.announce(id);
        } else {
            state.completions.find(id);
        }
        if state.work == CoreWork::Idle {
            self.run_core(core, now, done, false);
        }
    }

    /// Processes a timer that is due.
    #[inline(never)]
    pub(super) fn timer(
        &mut self,
        now: Time,
        timer: Timer,
        id: CommandId,
        done: &mut Vec<Completion>,
    ) {
        match timer {
            Timer::BridgedDown => self.bridged_down(now, id),
            Timer::BridgedUp => self.bridged_up(now, id, done),
            Timer::HandedDown => {
                if self.config.hypervisor.is_some() {
                    self.guest.begin();
                }
                self.carried_down(now, id);
            }
            Timer::HandedUp => {
                self.release_helper(now, id);
                self.find_result(now, id, done);
            }
            Timer::PollBegins => self.find_result(now, id, done),
        }
    }

    /// The thread finds a result without an interrupt: the helper, or the poll, has it.
    fn find_result(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let core = self.core_of(id);
        let state = &mut self.cores[core];
        state.completions.find(id);
        if state.work == CoreWork::Idle {
            self.run_core(core, now, done, false);
        }
    }

    /// The helper of this command can take the next one.
    fn release_helper(&mut self, now: Time, id: CommandId) {
        let thread = self.outstanding[id as usize].to.thread;
        if let Some(next) = self.helpers.release(thread) {
            let outstanding = &mut self.outstanding[next as usize];
            outstanding.queued += now.since(outstanding.below);
            self.hand_down(now, next);
        }
    }

    /// Starts an interrupt, or the monitor's work on the way up.
    #[inline(always)]
    pub(super) fn begin_announced(&mut self, core: usize, now: Time, id: CommandId) -> bool {
        let wake = self.wake(core, now);
        if self.is_monitor(core) {
            cold_path();
            self.cores[core].completions.take_announced();
            let up = self
                .config
                .hypervisor
                .as_ref()
                .map_or(Span::ZERO, |monitor| monitor.up);
            return self.cores.begin(core, now, CoreWork::Up(id), wake + up);
        }
        let thread = self.outstanding[id as usize].to.thread;
        let state = &mut self.cores[core];
        let count = state.completions.announced() as u32;
        let service = wake + self.config.interrupt + self.config.interrupt_each * u64::from(count);
        self.threads[usize::from(thread)].cpu[1] += service;
        if count == 1 && state.to_submit.is_empty() && state.completions.none_found() {
            state.completions.take_announced();
            return self.begin_reap(core, now, id, service);
        }
        self.cores
            .begin(core, now, CoreWork::Interrupt(count), service)
    }

    /// Starts a thread's work of taking a completion, after `before` on the same core.
    #[inline(always)]
    pub(super) fn begin_reap(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        before: Span,
    ) -> bool {
        let outstanding = &self.outstanding[id as usize];
        let thread = outstanding.to.thread;
        let reaper = &mut self.threads[usize::from(thread)];
        let mut service = reaper.reap;
        let state = &mut self.cores[core];
        if outstanding.to.mode != CompletionMode::Interrupt {
            service += self.config.poll;
            if state.thread == NOBODY {
                // The core has polled since it became idle. With a kernel thread, the job's thread polls from the
                // moment at which it has put its command into the ring.
                let poll_from = match reaper.way {
                    SubmissionPath::KernelThread => Time::ZERO,
                    SubmissionPath::Direct | SubmissionPath::Helpers => outstanding.poll_from,
                };
                let waited = now.since(state.idle_since.max(poll_from));
                state.busy += waited;
                reaper.cpu[reaper.reap_mode] += waited;
            }
        } else if state.thread != thread {
            service += self.config.switch;
        }
        state.thread = thread;
        reaper.cpu[reaper.reap_mode] += service;
        let work = CoreWork::Reap(id);
        self.cores.begin(core, now, work, before + service)
    }

    /// The thread has the result; returns whether the core continues with the thread's own work.
    #[inline(always)]
    pub(super) fn reaped(
        &mut self,
        core: usize,
        now: Time,
        id: CommandId,
        done: &mut Vec<Completion>,
    ) -> bool {
        let outstanding = &self.outstanding[id as usize];
        let thread = outstanding.to.thread;
        let (issued, below) = (outstanding.issued, outstanding.below);
        let (queued, bridged) = (outstanding.queued, outstanding.bridged);
        let submitted = outstanding.submitted;
        self.guest.end();
        // Copied before it is changed, because a wide load directly after narrow stores stalls. Copied directly to its
        // destination, because `push` would copy it twice.
        done.extend_from_slice(core::slice::from_ref(&outstanding.answer));
        if let Some(answer) = done.last_mut() {
            let anatomy = &mut answer.anatomy;
            anatomy.add(Part::ThreadBusy, issued - submitted);
            anatomy.add(Part::HostSubmission, below - issued - queued - bridged);
            anatomy.add(Part::QueueSlot, queued);
            anatomy.add(Part::HostCompletion, now - answer.at);
            answer.at = now;
        }
        let reaper = &mut self.threads[usize::from(thread)];
        let application = reaper.costs.application;
        if application == Span::ZERO {
            return false;
        }
        reaper.cpu[0] += application;
        let work = CoreWork::Application(thread);
        !self.cores.begin(core, now, work, application)
    }
}
