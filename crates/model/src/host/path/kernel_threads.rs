//! Kernel threads that poll the submission queues of io_uring (SQPOLL). Each job thread that requests this has one, on
//! its own core, and makes no system calls.
//!
//! The job's thread puts a command into the ring. The kernel thread finds it a moment later and does the work that the
//! system would have done on the job's core, one command after another. A completion of the drive is announced on the
//! kernel thread's core: by an interrupt, or by its own polling if the job requests that (hipri) and the host supports
//! it. The job's thread checks the completion ring continuously, as fio does, so neither core sleeps.
//!
//! Not modelled: kernel threads that share a core with others or serve several rings, and that go to sleep
//! (`sq_thread_idle`) under loads that pause for a second. Source: io_uring_setup(2) and fio's engine, which define the
//! order of events; figures are in `[sq_poll]` of a host's file.

use alloc::vec::Vec;

use crate::engine::Station;
use crate::time::{Span, Time};

/// The kernel threads of all job threads.
#[derive(Clone, Debug)]
pub(super) struct KernelThreads {
    /// Kernel thread of each job thread, if it has one.
    of: Vec<Option<u16>>,
    stations: Vec<Station>,
}

impl KernelThreads {
    /// Creates one for each job thread that has one.
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

    /// The kernel thread of a job thread works for `service`, after its pending work. Returns when that ends.
    pub(super) fn work(&mut self, now: Time, thread: u16, service: Span) -> Time {
        match self.of[usize::from(thread)] {
            Some(own) => self.stations[usize::from(own)].book(now, service).1,
            None => now,
        }
    }

    /// Like `work`, for a command that has been put into the ring: if there is no other work, finding it takes `find`.
    pub(super) fn find(&mut self, now: Time, thread: u16, find: Span, service: Span) -> Time {
        let idle = |own: u16| self.stations[usize::from(own)].free_at() <= now;
        let turns = self.of[usize::from(thread)].is_some_and(idle);
        let takes = if turns { find + service } else { service };
        self.work(now, thread, takes)
    }

    /// Removes all pending work.
    pub(super) fn clear(&mut self, now: Time) {
        for station in &mut self.stations {
            station.clear(now);
        }
    }

    /// Returns the number of cores that these threads occupy all the time.
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
