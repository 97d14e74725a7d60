//! Phases of a run: results before the first fault, and after each fault.
//!
//! An I/O belongs to the phase in which it completes. Its latency counts from its submission to the host, and ramps
//! are included. Not included: flushes and trims, except those that fail.

use model::{Capacity, Command, Completion, Device, Gauges, Op, Range, Span, Status, Time};
use statistics::Histogram;

use crate::faults::{RunFault, TriggerLog};
use crate::in_host::Host;

/// A part of a run: from one fault to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Fault that starts the phase; empty for the start of the run.
    pub after: String,
    /// Start time.
    pub from: Time,
    /// End time.
    pub to: Time,
    /// Completed reads, and completed writes.
    pub ways: [PhaseWay; 2],
    /// Number of failed commands of any kind.
    pub failed: u64,
}

/// Results of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseWay {
    /// Transferred bytes.
    pub bytes: u64,
    /// Latency of each I/O, from submission to completion.
    pub latency: Histogram,
}

impl Phase {
    /// Returns the length of the phase.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// A host that counts its I/Os by phase.
pub(crate) struct PhasedHost<H> {
    host: H,
    /// By id of an outstanding command: its operation and bytes.
    inside: Vec<(Op, u32)>,
    phases: Vec<Phase>,
    current: usize,
    /// Log of faults that counts have triggered.
    struck: TriggerLog,
    /// Number of its entries that already started a phase.
    seen: usize,
}

impl<H> PhasedHost<H> {
    /// Starts counting. Simultaneous faults start one phase; a fault at the very start has no phase before it.
    pub(crate) fn new(host: H, faults: &[RunFault], struck: &TriggerLog) -> PhasedHost<H> {
        let mut faults: Vec<&RunFault> = faults.iter().collect();
        faults.retain(|fault| fault.trigger.is_none());
        faults.sort_by_key(|fault| fault.at);
        let mut phased = PhasedHost {
            host,
            inside: Vec::new(),
            phases: vec![phase(Time::ZERO)],
            current: 0,
            struck: struck.clone(),
            seen: 0,
        };
        for fault in faults {
            phased.begin(Time::ZERO + fault.at, &fault.called);
        }
        phased
    }

    /// Starts a phase with a fault.
    fn begin(&mut self, from: Time, called: &str) {
        let next = self.phases.partition_point(|it| it.from <= from);
        let at = match next.checked_sub(1) {
            Some(before) if self.phases[before].from == from => before,
            _ => {
                self.phases.insert(next, phase(from));
                next
            }
        };
        let after = &mut self.phases[at].after;
        let apart = if after.is_empty() { "" } else { ", " };
        *after = format!("{after}{apart}{called}");
    }

    /// Starts phases for the faults that counts have triggered since the last call. No I/O that completed after these
    /// faults has been counted yet.
    fn look(&mut self) {
        for (at, called) in self.struck.entries_after(self.seen) {
            self.seen += 1;
            self.begin(at, &called);
        }
    }

    /// Returns the phases that a run with this end time has reached.
    pub(crate) fn ended(self, end: Time) -> Vec<Phase> {
        let mut phases = self.phases;
        phases.retain(|phase| phase.from <= end);
        let starts: Vec<Time> = phases.iter().map(|phase| phase.from).collect();
        let ends = starts.into_iter().skip(1).chain([end]);
        for (phase, to) in phases.iter_mut().zip(ends) {
            phase.to = to;
        }
        phases
    }

    fn count(&mut self, completion: &Completion) {
        let ahead = |at: usize| self.phases.get(at + 1).map_or(Time::NEVER, |it| it.from);
        let mut current = self.current;
        while ahead(current) <= completion.at {
            current += 1;
        }
        self.current = current;
        let phase = &mut self.phases[current];
        let (op, bytes) = self.inside[completion.id as usize];
        match (completion.status, op) {
            (Status::Success, Op::Read | Op::Write) => {
                let way = &mut phase.ways[usize::from(op == Op::Write)];
                way.bytes += u64::from(bytes);
                way.latency.record(completion.anatomy.total());
            }
            (Status::Success, _) => {}
            _ => phase.failed += 1,
        }
    }
}

fn phase(from: Time) -> Phase {
    Phase {
        after: String::new(),
        from,
        to: from,
        ways: Default::default(),
        failed: 0,
    }
}

impl<H: Host> Host for PhasedHost<H> {
    fn cpu(&self, thread: usize) -> [Span; 2] {
        self.host.cpu(thread)
    }
}

impl<H: Host> Device for PhasedHost<H> {
    fn capacity(&self) -> Capacity {
        self.host.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        let slot = command.id as usize;
        if slot >= self.inside.len() {
            self.inside.resize(slot + 1, (Op::Read, 0));
        }
        self.inside[slot] = (command.op, command.bytes);
        self.host.submit(now, command);
    }

    fn next_event(&self) -> Time {
        self.host.next_event()
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let first = done.len();
        let reached = self.host.advance(now, horizon, done);
        self.look();
        for completion in &done[first..] {
            self.count(completion);
        }
        reached
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.host.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.host.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.host.inspect(now, gauges);
    }
}
