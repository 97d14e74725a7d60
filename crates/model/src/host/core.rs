//! One core: executes one piece of work at a time; interrupts first, then submissions, then reaping.
//!
//! Real systems have that order: an interrupt preempts whatever runs, and a thread that has reaped one I/O issues the
//! next before it reaps again. Work is not preempted once started; pieces are shorter than a few microseconds.
//!
//! If several threads share the core, a thread that slept reaps before threads that have used more CPU time
//! (`path/shares`).

use alloc::collections::VecDeque;

use super::completions::Completions;
use super::config::Noise;
use crate::command::CommandId;
use crate::random::Stream;
use crate::time::{Span, Time};

/// The piece of work that a core executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum CoreWork {
    /// No work: the core sleeps, or polls.
    #[default]
    Idle,
    /// The thread's own work after reaping.
    Application(u16),
    /// A command on its way down.
    Submit(CommandId),
    /// A command holds (or waits for) the lock of its queue.
    Lock(CommandId),
    /// The thread's work after the doorbell.
    Return,
    /// The handler takes this number of completions.
    Interrupt(u32),
    /// A thread takes a completion.
    Reap(CommandId),
    /// No thread has work: the core switches away from the thread that waits.
    Sleep,
    /// The monitor carries a command to the drive.
    Down(CommandId),
    /// The monitor carries a completion to the guest.
    Up(CommandId),
}

/// A core that slept for this number of mean gaps between noise events does not draw them one by one. It starts to draw
/// them at this number of mean lengths before the end of its sleep.
const LONG_SLEEP: u64 = 64;
const FORGOTTEN: u64 = 64;

/// No thread runs on the core.
pub(super) const NOBODY: u16 = u16::MAX;

/// One core, or the monitor's thread.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) work: CoreWork,
    /// Commands to submit, in order of arrival.
    pub(super) to_submit: VecDeque<CommandId>,
    pub(super) completions: Completions,
    /// Whether several threads run on the core.
    pub(super) shared: bool,
    pub(super) idle_since: Time,
    /// The thread that ran last without a pause.
    pub(super) thread: u16,
    /// CPU time so far, including the current work up to its end.
    pub(super) busy: Span,
    noise: Noise,
    noise_at: Time,
    noise_length: Span,
    stream: Stream,
}

impl Core {
    pub(super) fn new(noise: Noise, stream: Stream) -> Core {
        let mut core = Core {
            work: CoreWork::Idle,
            to_submit: VecDeque::new(),
            completions: Completions::default(),
            shared: false,
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

    /// Discards all current and pending work; `rest` of the current work was still to be done. The core is idle from
    /// `now`.
    pub(super) fn clear(&mut self, now: Time, rest: Span) {
        self.busy = self.busy.saturating_sub(rest);
        self.work = CoreWork::Idle;
        self.to_submit.clear();
        self.completions.clear();
        self.idle_since = now;
        self.thread = NOBODY;
    }

    /// Skips noise that began and ended long before `now`, because it has no effect. A sleep of hours would otherwise
    /// need millions of draws. After a long sleep, noise is drawn starting shortly before `now`. Gaps are exponential,
    /// and so are lengths beyond a fixed part that is shorter than a gap, so the state at `now` does not depend on the
    /// core having been free at the start.
    fn sleep_through_noise(&mut self, now: Time) {
        let past = now.since(self.noise_at.min(now));
        let length = self.noise.least + self.noise.mean;
        let forgotten = length.max(self.noise_length) * FORGOTTEN;
        if past > (self.noise.every * LONG_SLEEP).max(forgotten) {
            self.draw_noise(self.noise_at + (past - forgotten));
        }
    }

    fn draw_noise(&mut self, from: Time) {
        self.noise_at = from + self.stream.exponential(self.noise.every);
        self.noise_length = self.noise.least + self.stream.exponential(self.noise.mean);
    }

    /// Returns when a thread that wakes up at `now` gets the core: noise that has begun delays it.
    #[inline]
    pub(super) fn free_at(&mut self, now: Time) -> Time {
        if self.noise_at >= now {
            return now;
        }
        self.free_of_noise(now)
    }

    #[cold]
    fn free_of_noise(&mut self, now: Time) -> Time {
        self.sleep_through_noise(now);
        let mut free = now;
        while self.noise_at < free {
            let over = self.noise_at + self.noise_length;
            free = free.max(over);
            self.draw_noise(over.max(self.noise_at + Span::from_ns(1)));
        }
        free
    }

    /// Returns when work of this length ends if it begins at `now`: noise that has begun or begins meanwhile delays it.
    #[inline]
    pub(super) fn end_of(&mut self, now: Time, service: Span) -> Time {
        let end = now + service;
        // The usual case: noise is rare.
        if self.noise_at >= end {
            return end;
        }
        self.end_with_noise(now, end)
    }

    #[cold]
    fn end_with_noise(&mut self, now: Time, mut end: Time) -> Time {
        self.sleep_through_noise(now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Delays of threads that wake up after a sleep: their mean, and the share of threads with any delay. Noise of this
    /// length (fixed and exponential part) begins 10 us after the last.
    fn delays(sleep_us: u64, seed: u64, [least, mean]: [u64; 2]) -> (f64, f64) {
        let noise = Noise {
            every: Span::from_us(10),
            least: Span::from_us(least),
            mean: Span::from_us(mean),
        };
        let mut core = Core::new(noise, Stream::new(seed, "noise"));
        let (mut sum, mut some, mut now) = (0.0, 0.0, Time::ZERO);
        let count = 20_000;
        for _ in 0..count {
            now += Span::from_us(sleep_us);
            let free = core.free_at(now);
            sum += free.since(now).us();
            some += f64::from(u8::from(free > now));
            now = free;
        }
        (sum / f64::from(count), some / f64::from(count))
    }

    /// One sleep is drawn noise by noise, the other is not. In both cases, the core is busy half of the time. The delay
    /// is one mean length if lengths are exponential, and half of it if they are all equal.
    #[test]
    fn noise_after_a_long_sleep_is_that_after_a_short_one() {
        let threshold_us = 10 * LONG_SLEEP;
        for (length, rest_us) in [([0, 10], 10.0), ([10, 0], 5.0), ([5, 5], 6.25)] {
            for (sleep_us, seed) in [(threshold_us / 4, 1), (threshold_us * 1_000, 2)] {
                let (mean_us, share) = delays(sleep_us, seed, length);
                assert!((share - 0.5).abs() < 0.015, "{sleep_us}: {share}");
                let wanted_us = rest_us / 2.0;
                assert!((mean_us - wanted_us).abs() < 0.3, "{sleep_us}: {mean_us}");
            }
        }
    }
}
