//! A job thread: how its commands reach the drive, and the time of each step. All of these values are in the host's
//! configuration; they are combined here, so that a step needs no look-up.

use crate::host::Engine;
use crate::host::config::{CompletionMode, EngineCosts, HostConfig, ThreadConfig};
use crate::time::Span;

/// The component that passes a thread's commands to the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmissionPath {
    /// The thread itself.
    Direct,
    /// The thread's helper threads.
    Helpers,
    /// The kernel thread that polls the thread's submission queue.
    KernelThread,
}

/// A job thread.
#[derive(Clone, Debug)]
pub(super) struct HostThread {
    /// Index among the cores in use.
    pub(super) core: u16,
    pub(super) way: SubmissionPath,
    /// Whether it sleeps when it only has to wait.
    pub(super) sleeps: bool,
    /// How its completions are detected, by whether the command requests polling.
    modes: [CompletionMode; 2],
    /// Costs of its interface.
    pub(super) costs: EngineCosts,
    /// Time to notify a helper of a command, and for the helper to submit it.
    pub(super) hand_down: Span,
    /// Time for a kernel thread that polls its submission queue to find a command.
    pub(super) find: Span,
    /// The thread's own time for a submission, for each page of it, and for one that is not in a batch.
    submit: Span,
    per_page: Span,
    system_call: Span,
    /// Entering the kernel to poll for a completion, if the thread does: io_uring_setup(2) requires it for polled rings.
    poll_entry: Span,
    /// The thread's own additional time for an I/O to a file.
    file: Span,
    /// The thread's own time for a result, and whether that is system time: 0 no, 1 yes.
    pub(super) reap: Span,
    pub(super) reap_mode: usize,
    /// Latency of one crossing of the link to the drive's socket; zero if the thread is on that socket.
    pub(super) crossing: Span,
    /// CPU time in user and system mode.
    pub(super) cpu: [Span; 2],
    /// Number of its completions that were found and that it has not reaped; counted only on shared cores.
    pub(super) found: u32,
}

impl HostThread {
    /// Creates a thread on a core, given by its index among those in use.
    pub(super) fn new(config: &ThreadConfig, core: u16, host: &HostConfig) -> HostThread {
        let mut costs = host.engines[config.engine as usize];
        // Passthrough and drivers in user space have no scheduler.
        if !matches!(config.engine, Engine::UserSpace | Engine::IoUringCmd) {
            // Helpers and kernel threads also pay for the scheduler.
            let scheduler = host.scheduler.cost;
            costs.submit += scheduler;
        }
        let remote = host.remote_socket.filter(|_| config.socket != 0);
        let remote = remote.unwrap_or_default();
        costs.reap += remote.complete;
        let polled = if config.sq_poll { host.sq_poll } else { None };
        let way = match polled {
            Some(_) => SubmissionPath::KernelThread,
            None if costs.has_helpers() => SubmissionPath::Helpers,
            None => SubmissionPath::Direct,
        };
        // Kernel threads run on the socket of their thread, as helpers do. Who submits pays for remote queue entries.
        let hand_down = match way {
            SubmissionPath::Helpers => costs.hand_off + remote.submit,
            SubmissionPath::Direct | SubmissionPath::KernelThread => {
                costs.submit += remote.submit;
                costs.hand_off
            }
        };
        let user = config.engine == Engine::UserSpace || way == SubmissionPath::KernelThread;
        let thread = HostThread {
            core,
            way,
            sleeps: host.mode(config, config.high_priority) == CompletionMode::Interrupt,
            modes: [false, true].map(|high_priority| host.mode(config, high_priority)),
            costs,
            hand_down,
            find: Span::ZERO,
            submit: costs.submit,
            per_page: host.per_page,
            system_call: costs.system_call,
            poll_entry: match config.engine.has_rings() {
                true => costs.system_call,
                false => Span::ZERO,
            },
            file: Span::ZERO,
            reap: costs.reap,
            reap_mode: usize::from(!user),
            crossing: remote.crossing,
            cpu: [Span::ZERO; 2],
            found: 0,
        };
        let Some(polled) = polled else {
            return thread;
        };
        HostThread {
            find: polled.find,
            submit: polled.leave,
            per_page: Span::ZERO,
            system_call: Span::ZERO,
            reap: polled.reap + remote.complete,
            ..thread
        }
    }

    /// Whether its commands take time to cross the link between the sockets.
    pub(super) fn crosses_link(&self) -> bool {
        self.crossing != Span::ZERO
    }

    /// The thread's I/Os are to a file, which costs the submitter `takes` each.
    pub(super) fn opens_file(&mut self, takes: Span) {
        match self.way {
            SubmissionPath::KernelThread => self.costs.submit += takes,
            SubmissionPath::Helpers => self.hand_down += takes,
            SubmissionPath::Direct => self.file = takes,
        }
    }

    /// Returns how the completion of a command of this thread is detected.
    #[inline]
    pub(super) fn mode(&self, high_priority: bool) -> CompletionMode {
        self.modes[usize::from(high_priority)]
    }

    /// Returns the thread's own time after the doorbell, before it waits. A batch shares the system call that polls for
    /// its completions.
    #[inline]
    pub(super) fn work_after(&self, mode: CompletionMode, batched: bool) -> Span {
        if mode == CompletionMode::Interrupt || batched {
            return self.costs.after;
        }
        self.costs.after + self.poll_entry
    }

    /// Returns the thread's own time for a submission of `pages` pages.
    #[inline]
    pub(super) fn submission(&self, pages: u64, batched: bool) -> Span {
        let call = if batched {
            Span::ZERO
        } else {
            self.system_call
        };
        // A flush has no pages, and no extent is looked up for it.
        self.submit + self.per_page * pages + self.file * pages.min(1) + call
    }
}
