//! A job thread: how its commands reach the drive, and what each step of that takes. All of it stands in the host's
//! configuration; here it is together, so that no step has to look for it.

use crate::host::Engine;
use crate::host::config::{CompletionMode, EngineCosts, HostConfig, ThreadConfig};
use crate::time::Span;

/// Who hands a thread's commands to the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The thread itself.
    Direct,
    /// Its helper threads.
    Helpers,
    /// The kernel thread that polls its submission queue.
    KernelThread,
}

/// A job thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Index among the cores in use.
    pub(super) core: u16,
    pub(super) way: Way,
    /// Whether it sleeps when it has nothing to do but wait.
    pub(super) sleeps: bool,
    /// How its commands are noticed, by whether they ask for polling.
    modes: [CompletionMode; 2],
    /// What its interface costs.
    pub(super) costs: EngineCosts,
    /// How long a helper takes to be told of a command and to submit it.
    pub(super) hand_down: Span,
    /// How long a kernel thread that polls its submission queue takes to find a command.
    pub(super) find: Span,
    /// The thread's own time for a submission, for each page of it, and for one that is not in a batch.
    submit: Span,
    per_page: Span,
    system_call: Span,
    /// The same for an I/O to a file.
    file: Span,
    /// Its own time for a result, and whether that is the system's: 0 no, 1 yes.
    pub(super) reap: Span,
    pub(super) reap_mode: usize,
    /// CPU time in user and system mode.
    pub(super) cpu: [Span; 2],
}

impl Thread {
    /// A thread on a core, by its index among those in use.
    pub(super) fn new(config: &ThreadConfig, core: u16, host: &HostConfig) -> Thread {
        let costs = host.engines[config.engine as usize];
        let polled = if config.sq_poll { host.sq_poll } else { None };
        let way = match polled {
            Some(_) => Way::KernelThread,
            None if costs.has_helpers() => Way::Helpers,
            None => Way::Direct,
        };
        let user = config.engine == Engine::UserSpace || way == Way::KernelThread;
        let thread = Thread {
            core,
            way,
            sleeps: host.mode(config, config.high_priority) == CompletionMode::Interrupt,
            modes: [false, true].map(|high_priority| host.mode(config, high_priority)),
            costs,
            hand_down: costs.hand_off,
            find: Span::ZERO,
            submit: costs.submit,
            per_page: host.per_page,
            system_call: costs.system_call,
            file: Span::ZERO,
            reap: costs.reap,
            reap_mode: usize::from(!user),
            cpu: [Span::ZERO; 2],
        };
        let Some(polled) = polled else {
            return thread;
        };
        Thread {
            find: polled.find,
            submit: polled.leave,
            per_page: Span::ZERO,
            system_call: Span::ZERO,
            reap: polled.reap,
            ..thread
        }
    }

    /// Its I/Os are to a file, which takes whoever submits them so long.
    pub(super) fn opens_file(&mut self, takes: Span) {
        match self.way {
            Way::KernelThread => self.costs.submit += takes,
            Way::Helpers => self.hand_down += takes,
            Way::Direct => self.file = takes,
        }
    }

    /// How a command of it is noticed.
    #[inline]
    pub(super) fn mode(&self, high_priority: bool) -> CompletionMode {
        self.modes[usize::from(high_priority)]
    }

    /// Its own time for a submission of so many pages.
    #[inline]
    pub(super) fn submission(&self, pages: u64, batched: bool) -> Span {
        let call = if batched {
            Span::ZERO
        } else {
            self.system_call
        };
        // A flush has no pages and asks for none.
        self.submit + self.per_page * pages + self.file * pages.min(1) + call
    }
}
