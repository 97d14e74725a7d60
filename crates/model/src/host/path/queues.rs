//! Which submission queue each core has, and which of them share one.
//!
//! A drive has as many queue pairs as its controller offers; with more cores than that, cores share them, and take a
//! lock to submit. Left out: queues that an administrator spreads otherwise. Source: S4, on the 31 queues of Optane drives.

use alloc::vec::Vec;

use crate::host::config::HostConfig;

/// By core in use: its submission queue, and the number of that queue's lock if another core in use has the same; and
/// how many locks there are. Queues are spread over all cores evenly, as Linux does; a guest has a virtual controller's queues.
pub(super) fn queues_of(used: &[u16], config: &HostConfig) -> (Vec<u16>, Vec<Option<u16>>, usize) {
    let queues: Vec<u16> = used
        .iter()
        .map(|&core| {
            let enough = config.io_queues == 0 || config.cores <= config.io_queues;
            if enough || config.hypervisor.is_some() {
                core
            } else {
                (u32::from(core) * u32::from(config.io_queues) / u32::from(config.cores)) as u16
            }
        })
        .collect();
    let mut distinct = queues.clone();
    distinct.dedup();
    let locks = queues
        .iter()
        .map(|queue| {
            let sharers = queues.iter().filter(|other| *other == queue).count();
            (sharers > 1).then(|| distinct.partition_point(|one| one < queue) as u16)
        })
        .collect();
    (queues, locks, distinct.len())
}
