//! A closed loop on a drive without a host, and its measurements.

use model::engine::{Workload, run};
use model::media::xpoint::{XPoint, XPointConfig};
use model::{Command, Completion, Device, Gauge, Gauges, Op, Stream, Time};

/// A closed loop without a host: each completion triggers a submission.
pub(super) struct Loop {
    stream: Stream,
    bytes: u32,
    align: u64,
    pub(super) span: u64,
    read_percent: u64,
    left: u64,
    free: Vec<u32>,
    due: Time,
    log: Vec<Completion>,
    /// Whether each id is a read, and the completions.
    reads: Vec<bool>,
    read_log: Vec<bool>,
}

impl Loop {
    pub(super) fn new(depth: u32, read_percent: u64, bytes: u32, align: u64, ios: u64) -> Loop {
        Loop {
            stream: Stream::new(1, "loop"),
            bytes,
            align,
            span: 1 << 36,
            read_percent,
            left: ios,
            free: (0..depth).collect(),
            due: Time::ZERO,
            log: Vec::new(),
            reads: vec![false; depth as usize],
            read_log: Vec::new(),
        }
    }

    pub(super) fn run(mut self, config: &XPointConfig) -> Run {
        let mut device = XPoint::new(config.clone(), 42);
        let bytes = u64::from(self.bytes) * self.left;
        let end = run(&mut device, &mut self, Time::ZERO, Time::NEVER);
        Run {
            log: self.log,
            reads: self.read_log,
            bytes_per_second: bytes as f64 / end.seconds(),
            end,
            device,
        }
    }
}

pub(super) struct Run {
    pub(super) log: Vec<Completion>,
    pub(super) reads: Vec<bool>,
    pub(super) bytes_per_second: f64,
    pub(super) end: Time,
    pub(super) device: XPoint,
}

impl Run {
    pub(super) fn latencies(&self) -> Vec<u64> {
        let mut latencies: Vec<u64> = self.log.iter().map(|it| it.anatomy.total().ns()).collect();
        latencies.sort_unstable();
        latencies
    }

    /// Returns the latencies of reads, or of writes.
    pub(super) fn latencies_of(&self, reads: bool) -> Vec<u64> {
        let both = self.log.iter().zip(&self.reads);
        let mut latencies: Vec<u64> = both
            .filter(|(_, read)| **read == reads)
            .map(|(it, _)| it.anatomy.total().ns())
            .collect();
        latencies.sort_unstable();
        latencies
    }

    pub(super) fn mean_ns(&self) -> f64 {
        self.latencies().iter().sum::<u64>() as f64 / self.log.len() as f64
    }

    pub(super) fn gauge(&self, gauge: Gauge) -> f64 {
        let mut wanted = Wanted { gauge, value: None };
        self.device.inspect(self.end, &mut wanted);
        wanted.value.expect("the gauge is reported")
    }
}

struct Wanted {
    gauge: Gauge,
    value: Option<f64>,
}

impl Gauges for Wanted {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == self.gauge {
            self.value = Some(value);
        }
    }
}

impl Workload for Loop {
    fn next_arrival(&self) -> Time {
        self.due
    }

    fn arrive(&mut self, _now: Time, submit: &mut impl FnMut(Command)) {
        while self.left > 0
            && let Some(id) = self.free.pop()
        {
            let places = (self.span - u64::from(self.bytes)) / self.align;
            let offset = self.stream.uniform_below(places) * self.align;
            let read = self.stream.uniform_below(100) < self.read_percent;
            let op = if read { Op::Read } else { Op::Write };
            self.reads[id as usize] = read;
            submit(Command::new(id, op, offset, self.bytes));
            self.left -= 1;
        }
        self.due = Time::NEVER;
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        self.log.push(*completion);
        self.read_log.push(self.reads[completion.id as usize]);
        self.free.push(completion.id);
        if self.left > 0 {
            self.due = now;
        }
    }
}
