//! One core: does one piece of work at a time, interrupts first, then submissions, then reaping.
//!
//! That order is what happens: an interrupt takes the core from whatever runs, and a thread that has reaped one I/O
//! issues the next before it reaps again. Work is not preempted once begun; pieces are shorter than a few microseconds.

use alloc::collections::VecDeque;

use super::config::Noise;
use crate::command::CommandId;
use crate::random::Stream;
use crate::time::{Span, Time};

/// A piece of work under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Work {
    /// None: the core sleeps, or polls.
    #[default]
    Idle,
    /// The thread's own work after reaping.
    Application(u16),
    /// A command on its way down.
    Submit(CommandId),
    /// A command holds (or waits for) the lock of its queue.
    Lock(CommandId),
    /// The thread does what follows the doorbell.
    Return,
    /// The handler takes this many completions.
    Interrupt(u32),
    /// A thread takes a completion.
    Reap(CommandId),
    /// Nobody has work: the core switches away from the thread that waits.
    Sleep,
    /// The monitor carries a command to the drive.
    Down(CommandId),
    /// The monitor carries a completion to the guest.
    Up(CommandId),
}

/// Nobody runs on the core.
pub(super) const NOBODY: u16 = u16::MAX;

/// One core, or the monitor's thread.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) work: Work,
    /// Commands to submit, in order of arrival.
    pub(super) to_submit: VecDeque<CommandId>,
    /// Completions that the drive has announced and nobody has looked at.
    pub(super) announced: VecDeque<CommandId>,
    /// Completions that wait for their thread.
    pub(super) to_reap: VecDeque<CommandId>,
    pub(super) idle_since: Time,
    /// Who ran last without a pause.
    pub(super) thread: u16,
    /// CPU time so far, the current work included to its end.
    pub(super) busy: Span,
    noise: Noise,
    noise_at: Time,
    noise_length: Span,
    stream: Stream,
}

impl Core {
    pub(super) fn new(noise: Noise, stream: Stream) -> Core {
        let mut core = Core {
            work: Work::Idle,
            to_submit: VecDeque::new(),
            announced: VecDeque::new(),
            to_reap: VecDeque::new(),
            idle_since: Time::ZERO,
            thread: NOBODY,
            busy: Span::ZERO,
            noise,
            noise_at: Time::NEVER,
            noise_length: Span::ZERO,
            stream,
        };
        if noise.every != Span::ZERO {
            core.draw_noise(Time::ZERO);
        }
        core
    }

    /// Whatever it does, or has to do, is gone; `rest` of the work under way was still to come. It is idle from `now` on.
    pub(super) fn clear(&mut self, now: Time, rest: Span) {
        self.busy = self.busy.saturating_sub(rest);
        self.work = Work::Idle;
        self.to_submit.clear();
        self.announced.clear();
        self.to_reap.clear();
        self.idle_since = now;
        self.thread = NOBODY;
    }

    fn draw_noise(&mut self, from: Time) {
        self.noise_at = from + self.stream.exponential(self.noise.every);
        self.noise_length = self.stream.exponential(self.noise.mean);
    }

    /// When a thread that wakes up at `now` gets the core: noise that has begun keeps it.
    #[inline]
    pub(super) fn free_at(&mut self, now: Time) -> Time {
        let mut free = now;
        while self.noise_at < free {
            let over = self.noise_at + self.noise_length;
            free = free.max(over);
            self.draw_noise(over.max(self.noise_at + Span::from_ns(1)));
        }
        free
    }

    /// When work of this length ends if it begins at `now`: noise that has begun or comes meanwhile delays it.
    #[inline]
    pub(super) fn end_of(&mut self, now: Time, service: Span) -> Time {
        let mut end = now + service;
        while self.noise_at < end {
            let over = self.noise_at + self.noise_length;
            if over > now {
                end += over.since(self.noise_at.max(now));
            }
            self.draw_noise(over.max(self.noise_at + Span::from_ns(1)));
        }
        end
    }
}
