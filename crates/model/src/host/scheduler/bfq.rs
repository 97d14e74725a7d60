//! BFQ: one process at a time has the drive, until its budget is used or it has nothing more to do.
//!
//! A process is what shares a submission queue: a core of the host. Its requests are sent in the order of their
//! addresses. The budget is 8 MiB or 125 ms. The next process is the one with the least service so far. On a hard disk,
//! the drive stays idle for up to 8 ms after a sequential process has no more requests, because its next one is
//! probably near.
//!
//! Simplified: all weights and budgets are equal, and the raised weight of interactive processes (`low_latency`) is
//! missing. Source: Documentation/block/bfq-iosched.rst, block/bfq-iosched.c (`bfq_default_max_budget`, `bfq_timeout`,
//! `bfq_slice_idle`).

use alloc::collections::{BTreeMap, BTreeSet};

use super::BlockRequest;
use crate::engine::Slab;
use crate::time::{Span, Time};

const BUDGET: u64 = 8 << 20;
const TIMEOUT: Span = Span::from_ms(125);
const IDLE: Span = Span::from_ms(8);

/// Requests of one submission queue, and their service.
#[derive(Clone, Debug, Default)]
struct Process {
    sorted: BTreeSet<(u64, u32)>,
    /// Service so far, bytes.
    served: u64,
    in_flight: u32,
    /// End of its last request, and whether that request followed the one before.
    end: u64,
    in_sequence: bool,
}

/// Processes, and the one that has the drive.
#[derive(Clone, Debug)]
pub(super) struct Bfq {
    idles: bool,
    processes: BTreeMap<u16, Process>,
    current: Option<u16>,
    budget: u64,
    began: Time,
    /// Until when the drive waits for the current process.
    idle_until: Option<Time>,
    /// Service of the process that was selected last: a process that was idle begins there.
    virtual_time: u64,
}

impl Bfq {
    pub(super) fn new(rotational: bool) -> Bfq {
        Bfq {
            idles: rotational,
            processes: BTreeMap::new(),
            current: None,
            budget: 0,
            began: Time::ZERO,
            idle_until: None,
            virtual_time: 0,
        }
    }

    pub(super) fn insert(&mut self, slot: u32, request: &BlockRequest) {
        let at_least = self.virtual_time;
        let process = self.processes.entry(request.command.queue).or_default();
        if process.sorted.is_empty() && process.in_flight == 0 {
            process.served = process.served.max(at_least);
        }
        process.sorted.insert((request.command.offset, slot));
        if self.current == Some(request.command.queue) {
            self.idle_until = None;
        }
    }

    pub(super) fn remove(&mut self, slot: u32, request: &BlockRequest) {
        if let Some(process) = self.processes.get_mut(&request.command.queue) {
            process.sorted.remove(&(request.command.offset, slot));
        }
    }

    /// Selects and removes the next request; `None` while the drive waits for a process.
    pub(super) fn next(&mut self, now: Time, requests: &Slab<BlockRequest>) -> Option<u32> {
        if let Some(until) = self.idle_until {
            if now < until {
                return None;
            }
            self.idle_until = None;
            self.current = None;
        }
        if let Some(current) = self.current {
            let process = self.processes.get_mut(&current)?;
            if process.sorted.is_empty() {
                if self.idles && process.in_sequence && process.in_flight > 0 {
                    // Its next request may come when this one completes.
                    return None;
                }
                self.current = None;
            } else if self.budget == 0 || now.since(self.began) >= TIMEOUT {
                self.current = None;
            }
        }
        let current = match self.current {
            Some(current) => current,
            None => self.select(now)?,
        };
        let process = self.processes.get_mut(&current)?;
        let after = process.sorted.range((process.end, 0)..).next();
        let next = *after.or_else(|| process.sorted.first())?;
        process.sorted.remove(&next);
        let command = &requests[next.1].command;
        process.in_sequence = command.offset == process.end;
        process.end = command.end();
        process.in_flight += 1;
        process.served += u64::from(command.bytes);
        self.budget = self.budget.saturating_sub(u64::from(command.bytes));
        Some(next.1)
    }

    /// Selects the process with the least service.
    fn select(&mut self, now: Time) -> Option<u16> {
        let waiting = self.processes.iter().filter(|it| !it.1.sorted.is_empty());
        let (&next, process) = waiting.min_by_key(|it| (it.1.served, *it.0))?;
        self.virtual_time = self.virtual_time.max(process.served);
        self.current = Some(next);
        self.budget = BUDGET;
        self.began = now;
        Some(next)
    }

    pub(super) fn completed(&mut self, now: Time, request: &BlockRequest) {
        let Some(process) = self.processes.get_mut(&request.command.queue) else {
            return;
        };
        process.in_flight = process.in_flight.saturating_sub(1);
        let rests = process.in_flight == 0 && process.sorted.is_empty();
        let current = self.current == Some(request.command.queue);
        if self.idles && rests && current && process.in_sequence && self.budget > 0 {
            self.idle_until = Some(now + IDLE);
        }
    }

    /// Until when the drive waits for a process.
    pub(super) fn idles_until(&self) -> Time {
        self.idle_until.unwrap_or(Time::NEVER)
    }
}
