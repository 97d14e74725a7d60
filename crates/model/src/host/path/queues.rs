//! Assignment of submission queues to cores, and the locks of shared queues.
//!
//! A drive has as many queue pairs as its controller offers. If there are more cores, cores share queues, and take a
//! lock to submit. An I/O scheduler with one lock has it for all cores. Not modelled: a different assignment by an administrator. Source: S4, on the 31 queues of Optane
//! drives.

use alloc::vec;
use alloc::vec::Vec;

use crate::engine::Station;
use crate::host::config::HostConfig;
use crate::time::{Span, Time};

/// The submission queues of the cores in use.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// For each core in use: its submission queue, and the lock of that queue if another core in use shares it.
    of: Vec<u16>,
    locks: Vec<Option<u16>>,
    stations: Vec<Station>,
    /// How long a submission holds a lock.
    held: Span,
}

impl Queues {
    /// Creates the queues for these cores. Queues are spread over all cores evenly, as Linux does; a guest has the
    /// queues of a virtual controller.
    pub(super) fn new(used: &[u16], config: &HostConfig) -> Queues {
        // Without threads on other sockets, the queues are spread over the cores of the drive's socket.
        let own = u32::from(config.cores.max(1));
        let cores = match used.last() {
            Some(&last) if u32::from(last) >= own => own * u32::from(config.sockets.max(1)),
            _ => own,
        };
        let each = |&core: &u16| match config.io_queues.map(u16::from) {
            Some(queues) if cores > u32::from(queues) && config.hypervisor.is_none() => {
                (u32::from(core) * u32::from(queues) / cores) as u16
            }
            Some(_) | None => core,
        };
        let of: Vec<u16> = used.iter().map(each).collect();
        let mut distinct = of.clone();
        distinct.dedup();
        if config.scheduler.kind.has_one_lock() && of.len() > 1 {
            return Queues {
                locks: vec![Some(0); of.len()],
                stations: vec![Station::default()],
                held: config.scheduler.cost.max(config.queue_lock),
                of,
            };
        }
        let lock = |queue: &u16| {
            let sharers = of.iter().filter(|other| *other == queue).count();
            (sharers > 1).then(|| distinct.partition_point(|other| other < queue) as u16)
        };
        Queues {
            locks: of.iter().map(lock).collect(),
            stations: vec![Station::default(); distinct.len()],
            held: config.queue_lock,
            of,
        }
    }

    /// Releases all locks; no core waits for one.
    pub(super) fn clear(&mut self, now: Time) {
        for station in &mut self.stations {
            station.clear(now);
        }
    }

    /// Returns the submission queue of a core in use.
    #[inline]
    pub(super) fn core_queue(&self, core: u16) -> u16 {
        self.of[usize::from(core)]
    }

    /// A core in use submits. Returns until when it waits for or holds the lock of its queue, if other cores share the
    /// queue.
    #[inline]
    pub(super) fn lock(&mut self, core: usize, now: Time) -> Option<Time> {
        let lock = self.locks[core]?;
        Some(self.stations[usize::from(lock)].book(now, self.held).1)
    }
}
