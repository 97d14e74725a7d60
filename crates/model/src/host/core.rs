//! One core: does one piece of work at a time, interrupts first, then submissions, then reaping.
//!
//! That order is what happens: an interrupt takes the core from whatever runs, and a thread that has reaped one I/O
//! issues the next before it reaps again. Work is not preempted once begun; pieces are shorter than a few microseconds.

use alloc::collections::VecDeque;

use super::completions::Completions;
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

/// A core that slept for so many mean gaps between noises does not draw them one by one, but from so many mean lengths before the
/// end of its sleep on.
const LONG_SLEEP: u64 = 64;
const FORGOTTEN: u64 = 64;

/// Nobody runs on the core.
pub(super) const NOBODY: u16 = u16::MAX;

/// One core, or the monitor's thread.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) work: Work,
    /// Commands to submit, in order of arrival.
    pub(super) to_submit: VecDeque<CommandId>,
    pub(super) completions: Completions,
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
            completions: Completions::default(),
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
        self.completions.clear();
        self.idle_since = now;
        self.thread = NOBODY;
    }

    /// Noise that began long before `now` and is over changes nothing, and of one draw after the other a sleep of hours makes
    /// millions: after so long it is drawn from shortly before `now` on. Gaps are exponential, and lengths beyond a part that is
    /// shorter than a gap, so that a core has forgotten by `now` that it was free then.
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

    /// When a thread that wakes up at `now` gets the core: noise that has begun keeps it.
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

    /// When work of this length ends if it begins at `now`: noise that has begun or comes meanwhile delays it.
    #[inline]
    pub(super) fn end_of(&mut self, now: Time, service: Span) -> Time {
        let end = now + service;
        // Almost always: noise is rare.
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

    /// The delays of threads that wake up after a sleep, mean and share of any, where noise of this length, fixed and
    /// exponential, comes 10 us after the last.
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

    /// One sleep is drawn noise by noise, the other is not; both find the core taken half of the time: for a mean length more
    /// if lengths are exponential, for half of it if they are all the same.
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
