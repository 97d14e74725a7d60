//! The cores in use, and when the work of each ends.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::host::core::{Core, CoreWork, NOBODY};
use crate::time::{Span, Time};

/// Cores by their index among those in use; the monitor's thread, if there is one, is the last.
#[derive(Clone, Debug)]
pub(super) struct HostCores {
    cores: Vec<Core>,
    /// When the work of each core ends, if there are several cores.
    due: Vec<Time>,
    /// The earliest of those times, and its core; at a tie the lowest core.
    soonest: Time,
    first: usize,
}

impl HostCores {
    pub(super) fn new(cores: Vec<Core>) -> HostCores {
        HostCores {
            due: match cores.len() {
                1 => Vec::new(),
                several => vec![Time::NEVER; several],
            },
            cores,
            soonest: Time::NEVER,
            first: 0,
        }
    }

    /// Returns the index of the monitor's thread, if there is one.
    pub(super) fn last(&self) -> usize {
        self.cores.len() - 1
    }

    /// Returns when the first piece of work ends.
    #[inline]
    pub(super) fn soonest(&self) -> Time {
        self.soonest
    }

    /// Returns the core whose work ends at [`HostCores::soonest`]; at a tie the lowest.
    #[inline]
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Returns when the work of a core ends.
    #[inline]
    pub(super) fn due(&self, core: usize) -> Time {
        match self.due.get(core) {
            Some(due) => *due,
            None => self.soonest,
        }
    }

    /// Discards all current and pending work of the cores at `now`; they are idle from `back`.
    pub(super) fn clear(&mut self, now: Time, back: Time) {
        for core in 0..self.cores.len() {
            let rest = self.rest_of(core, now);
            self.cores[core].clear(back, rest);
        }
        self.due.fill(Time::NEVER);
        (self.soonest, self.first) = (Time::NEVER, 0);
    }

    /// Returns how much of a core's work is still to be done at `now`.
    fn rest_of(&self, core: usize, now: Time) -> Span {
        match self.due(core) {
            Time::NEVER => Span::ZERO,
            due => due.since(now),
        }
    }

    #[inline]
    fn set_due(&mut self, core: usize, at: Time) {
        if self.due.is_empty() {
            self.soonest = at;
            return;
        }
        self.due[core] = at;
        if at < self.soonest || (at == self.soonest && core < self.first) {
            (self.soonest, self.first) = (at, core);
        } else if core == self.first {
            self.find_first();
        }
    }

    /// Finds the earliest end of work, after the previous earliest has become later.
    fn find_first(&mut self) {
        (self.soonest, self.first) = (Time::NEVER, 0);
        for (core, &due) in self.due.iter().enumerate() {
            if due < self.soonest {
                (self.soonest, self.first) = (due, core);
            }
        }
    }

    /// Starts work on an idle core; returns whether it has already ended (it took no time).
    #[inline]
    pub(super) fn begin(&mut self, core: usize, now: Time, work: CoreWork, service: Span) -> bool {
        let state = &mut self.cores[core];
        let end = state.end_of(now, service);
        state.work = work;
        state.busy += end - now;
        if end == now {
            return true;
        }
        self.set_due(core, end);
        false
    }

    /// Keeps a core busy with this work until `until`, whatever else arrives.
    pub(super) fn spin(&mut self, core: usize, now: Time, work: CoreWork, until: Time) {
        let state = &mut self.cores[core];
        state.work = work;
        state.busy += until - now;
        self.set_due(core, until);
    }

    /// Makes a core idle.
    #[inline]
    pub(super) fn rest(&mut self, core: usize, now: Time) {
        let state = &mut self.cores[core];
        state.work = CoreWork::Idle;
        state.thread = NOBODY;
        state.idle_since = now;
        self.set_due(core, Time::NEVER);
    }

    /// Adds the CPU time of all cores up to `now` to `seconds`.
    pub(super) fn add_busy_seconds(&self, now: Time, mut seconds: f64) -> f64 {
        for (index, core) in self.cores.iter().enumerate() {
            let ahead = self.rest_of(index, now);
            seconds += core.busy.saturating_sub(ahead).seconds();
        }
        seconds
    }
}

impl Index<usize> for HostCores {
    type Output = Core;

    #[inline]
    fn index(&self, core: usize) -> &Core {
        &self.cores[core]
    }
}

impl IndexMut<usize> for HostCores {
    #[inline]
    fn index_mut(&mut self, core: usize) -> &mut Core {
        &mut self.cores[core]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::config::Noise;
    use crate::random::Stream;

    #[test]
    fn the_soonest_end_is_known_whichever_core_rests() {
        let quiet = Noise {
            every: Span::ZERO,
            least: Span::ZERO,
            mean: Span::ZERO,
        };
        let core = |seed| Core::new(quiet, Stream::new(seed, "test"));
        let mut cores = HostCores::new((0..3).map(core).collect());
        for (core, us) in [(0, 30), (1, 10), (2, 20)] {
            assert!(!cores.begin(core, Time::ZERO, CoreWork::Sleep, Span::from_us(us)));
        }
        let at = |us| Time::ZERO + Span::from_us(us);
        assert_eq!((cores.soonest(), cores.first()), (at(10), 1));
        cores.rest(1, at(10));
        assert_eq!((cores.soonest(), cores.first()), (at(20), 2));
        cores.rest(0, at(15));
        // At a tie the lower core comes first.
        cores.begin(0, at(15), CoreWork::Sleep, Span::from_us(5));
        assert_eq!((cores.soonest(), cores.first()), (at(20), 0));
        cores.rest(0, at(20));
        assert_eq!((cores.soonest(), cores.first()), (at(20), 2));
        cores.rest(2, at(20));
        assert_eq!(cores.soonest(), Time::NEVER);
        // Work that takes no time causes no event.
        assert!(cores.begin(0, at(20), CoreWork::Sleep, Span::ZERO));
        assert_eq!(cores.soonest(), Time::NEVER);
        // Time that was booked and is not over does not count.
        cores.begin(1, at(20), CoreWork::Sleep, Span::from_us(10));
        assert!((cores.add_busy_seconds(at(24), 1.0) - 1.000_069).abs() < 1e-9);
    }
}
