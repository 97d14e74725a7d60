//! Threads that share a core: a thread that slept goes before those that have used more CPU time.
//!
//! Linux's scheduler gives the core to the runnable thread that has used the smallest share of it. A thread that sleeps
//! most of the time therefore runs soon after it wakes, however many others are runnable. Here, a thread slept if it has
//! no found completion when an interrupt finds one for it. That completion goes first if its thread has used no more CPU
//! time than the next of the other threads. Otherwise, and among threads that slept, completions are in the order of
//! arrival. A core with one thread is not affected.
//!
//! Not modelled: weights (nice), a limit on the credit of a long sleep, preemption of work that has started, and load
//! balancing: threads stay on their cores. No published row has such a load, so this is assumed. Source: Linux,
//! Documentation/scheduler/sched-eevdf.rst and sched-design-CFS.rst.

use core::hint::cold_path;

use super::HostPath;
use crate::command::CommandId;
use crate::device::Device;
use crate::time::Span;

impl<D: Device> HostPath<D> {
    /// The handler of an interrupt has found this number of completions.
    #[inline(always)]
    pub(super) fn interrupt_ended(&mut self, core: usize, count: usize) {
        let state = &mut self.cores[core];
        if state.shared {
            cold_path();
            return self.take_up_by_share(core, count);
        }
        state.completions.take_up(count);
    }

    #[inline(never)]
    fn take_up_by_share(&mut self, core: usize, count: usize) {
        for _ in 0..count {
            let Some(id) = self.cores[core].completions.first_announced() else {
                return;
            };
            let first = self.goes_first(core, id);
            self.cores[core].completions.take_up_one(first);
            let thread = self.outstanding[id as usize].to.thread;
            self.threads[usize::from(thread)].found += 1;
        }
    }

    /// Whether a found completion goes before those of threads that have not slept.
    fn goes_first(&self, core: usize, id: CommandId) -> bool {
        let thread = self.outstanding[id as usize].to.thread;
        let slept = self.thread(thread).found == 0;
        let next = self.cores[core].completions.first_found();
        slept && next.is_none_or(|next| self.used_by(id) <= self.used_by(next))
    }

    /// Returns the CPU time that the thread of a command has used.
    fn used_by(&self, id: CommandId) -> Span {
        let thread = self.outstanding[id as usize].to.thread;
        let [user, system] = self.thread(thread).cpu;
        user + system
    }

    /// A found completion leaves the queue of its core.
    #[inline(always)]
    pub(super) fn leaves_queue(&mut self, core: usize, id: CommandId) {
        if self.cores[core].shared {
            cold_path();
            let thread = self.outstanding[id as usize].to.thread;
            let found = &mut self.threads[usize::from(thread)].found;
            // Completions that were found without an interrupt are not counted.
            *found = found.saturating_sub(1);
        }
    }

    /// All work is discarded.
    pub(super) fn forget_found(&mut self) {
        for thread in &mut self.threads {
            thread.found = 0;
        }
    }
}
