//! Kernel threads that poll the submission queues of io_uring (SQPOLL): each job's thread that asks for it has one, on a
//! core of its own, and makes no system calls.
//!
//! The job's thread leaves a command in the ring; the kernel thread finds it a moment later and does what the system would
//! have done on the job's core, one command after the other. What the drive completes is announced on the kernel thread's
//! core: by an interrupt, or by its own polling where the job asks for that (hipri) and the host does it. The job's thread
//! looks at the ring of results all the time, as fio does, so neither core sleeps.
//!
//! Left out: kernel threads that share a core with others or several rings, and that go to sleep (`sq_thread_idle`) under
//! loads that pause for a second.
//! Source: io_uring_setup(2) and fio's engine; the order of events is theirs, figures stand in `[sq_poll]` of a host's file.

use alloc::vec::Vec;

use crate::engine::Station;
use crate::time::{Span, Time};

/// The kernel threads of all job threads.
#[derive(Clone, Debug)]
pub(super) struct KernelThreads {
    /// By job thread: its kernel thread, if it has one.
    of: Vec<Option<u16>>,
    stations: Vec<Station>,
}

impl KernelThreads {
    /// One for each job thread that has one.
    pub(super) fn new(have: impl Iterator<Item = bool>) -> KernelThreads {
        let mut count = 0;
        let of = have
            .map(|has| {
                has.then(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        KernelThreads {
            of,
            stations: alloc::vec![Station::default(); usize::from(count)],
        }
    }

    /// The kernel thread of a job thread works for so long, after what it has to do already; when that ends.
    pub(super) fn work(&mut self, now: Time, thread: u16, service: Span) -> Time {
        match self.of[usize::from(thread)] {
            Some(own) => self.stations[usize::from(own)].book(now, service).1,
            None => now,
        }
    }

    /// The same for a command that has been left in the ring: if there is nothing else to do, finding it takes `find`.
    pub(super) fn find(&mut self, now: Time, thread: u16, find: Span, service: Span) -> Time {
        let idle = |own: u16| self.stations[usize::from(own)].free_at() <= now;
        let turns = self.of[usize::from(thread)].is_some_and(idle);
        let takes = if turns { find + service } else { service };
        self.work(now, thread, takes)
    }

    /// They have nothing to do.
    pub(super) fn clear(&mut self, now: Time) {
        for station in &mut self.stations {
            station.clear(now);
        }
    }

    /// Cores that are taken by them: all the time.
    pub(super) fn cores(&self) -> f64 {
        self.stations.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_thread_does_one_thing_after_the_other_for_its_own_thread() {
        let mut threads = KernelThreads::new([true, false, true].into_iter());
        let us = Span::from_us;
        let at = |micros| Time::ZERO + us(micros);
        assert_eq!(threads.work(at(0), 0, us(3)), at(3));
        assert_eq!(threads.work(at(1), 0, us(3)), at(6));
        assert_eq!(threads.find(at(1), 2, us(1), us(2)), at(4));
        assert_eq!(threads.find(at(2), 2, us(1), us(2)), at(6));
        assert!((threads.cores() - 2.0).abs() < 1e-12);
        threads.clear(at(2));
        assert_eq!(threads.work(at(2), 0, us(3)), at(5));
    }
}
