//! A run in phases: what was done before a fault, and after each.
//!
//! An I/O belongs to the phase in which it completes, and its latency is that from its submission to the host on, ramps
//! included. Left out: flushes and trims, save those that fail.

use model::{Capacity, Command, Completion, Device, Gauges, Op, Range, Span, Status, Time};
use statistics::Histogram;

use crate::faults::{Befalls, TriggerLog};
use crate::in_host::Host;

/// A part of a run: from one fault to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// What it begins with; the run itself if empty.
    pub after: String,
    /// When it begins.
    pub from: Time,
    /// When it ends.
    pub to: Time,
    /// Reads, and writes, that were done.
    pub ways: [PhaseWay; 2],
    /// Commands of any kind that failed.
    pub failed: u64,
}

/// What was done in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseWay {
    /// Bytes.
    pub bytes: u64,
    /// From submission to completion, of each I/O.
    pub latency: Histogram,
}

impl Phase {
    /// How long it was.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// A host whose work is counted in phases.
pub(crate) struct Phased<H> {
    host: H,
    /// By id of a command that is inside: what it is, and of how many bytes.
    inside: Vec<(Op, u32)>,
    phases: Vec<Phase>,
    current: usize,
    /// Faults that counts have triggered.
    struck: TriggerLog,
    /// How many of those begin phases already.
    seen: usize,
}

impl<H> Phased<H> {
    /// Faults of one time begin one phase; one at the very start begins none before it.
    pub(crate) fn new(host: H, faults: &[Befalls], struck: &TriggerLog) -> Phased<H> {
        let mut faults: Vec<&Befalls> = faults.iter().collect();
        faults.retain(|fault| fault.trigger.is_none());
        faults.sort_by_key(|fault| fault.at);
        let mut phased = Phased {
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

    /// A phase begins with a fault.
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

    /// Begins phases with the faults that counts have triggered since the last call. No I/O that completed after them has been
    /// counted.
    fn look(&mut self) {
        for (at, called) in self.struck.entries_after(self.seen) {
            self.seen += 1;
            self.begin(at, &called);
        }
    }

    /// The phases of a run that has ended at that time: those that it has reached.
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

impl<H: Host> Host for Phased<H> {
    fn cpu(&self, thread: usize) -> [Span; 2] {
        self.host.cpu(thread)
    }
}

impl<H: Host> Device for Phased<H> {
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
