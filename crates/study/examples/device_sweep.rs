//! Sweeps a catalogued drive by itself, with a constant in the place of a host: what it was calibrated with.
//!
//! ```text
//! cargo run --release -p drivelab-study --example device_sweep -- p4800x-375 [host microseconds]
//! ```

use model::engine::{Workload, run};
use model::media::{Drive, Precondition};
use model::{Command, Completion, Device, Op, Span, Stream, Time};
use study::catalogue;
use study::statistics::Histogram;

/// `depth` slots, each of which waits for its completion, then for the host, then issues the next.
struct Slots {
    stream: Stream,
    bytes: u32,
    align: u64,
    random: bool,
    read_percent: u64,
    host: Span,
    capacity: u64,
    cursor: u64,
    left: u64,
    /// When each slot issues next, in order of time (the host's time is the same for all).
    due: std::collections::VecDeque<(Time, u32)>,
    reads: Histogram,
    writes: Histogram,
    is_read: Vec<bool>,
    ended: Time,
}

impl Workload for Slots {
    fn next_arrival(&self) -> Time {
        match self.due.front() {
            Some(&(at, _)) if self.left > 0 => at,
            _ => Time::NEVER,
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        while self.left > 0 && self.due.front().is_some_and(|due| due.0 == now) {
            let Some((_, id)) = self.due.pop_front() else {
                return;
            };
            let places = (self.capacity - u64::from(self.bytes)) / self.align + 1;
            let offset = if self.random {
                self.stream.below(places) * self.align
            } else {
                let offset = self.cursor % places;
                self.cursor += u64::from(self.bytes) / self.align;
                offset * self.align
            };
            let read = self.stream.below(100) < self.read_percent;
            self.is_read[id as usize] = read;
            let op = if read { Op::Read } else { Op::Write };
            submit(Command::new(id, op, offset, self.bytes));
            self.left -= 1;
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        let latency = completion.anatomy.total();
        if self.is_read[completion.id as usize] {
            self.reads.record(latency);
        } else {
            self.writes.record(latency);
        }
        self.due.push_back((now + self.host, completion.id));
        self.ended = now;
    }
}

struct Point {
    name: String,
    bytes: u32,
    align: u64,
    random: bool,
    read_percent: u64,
    depth: u32,
    ios: u64,
}

fn measure(drive: &str, point: &Point, host: Span) {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let mut device = Drive::new(&sheet.config, Precondition::Steady, 7);
    let mut slots = Slots {
        stream: Stream::new(7, "sweep"),
        bytes: point.bytes,
        align: point.align,
        random: point.random,
        read_percent: point.read_percent,
        host,
        capacity: device.capacity().bytes,
        cursor: 0,
        left: point.ios,
        due: (0..point.depth).map(|id| (Time::ZERO, id)).collect(),
        reads: Histogram::default(),
        writes: Histogram::default(),
        is_read: vec![false; point.depth as usize],
        ended: Time::ZERO,
    };
    run(&mut device, &mut slots, Time::ZERO, Time::NEVER);
    let rate = point.ios as f64 / slots.ended.seconds();
    print!(
        "{:34} {:8.0} IOPS {:7.0} MB/s",
        point.name,
        rate,
        rate * f64::from(point.bytes) * 1e-6
    );
    for (name, histogram) in [("read", &slots.reads), ("write", &slots.writes)] {
        if histogram.count() == 0 {
            continue;
        }
        print!("  {name}: mean {:6.1}", histogram.mean_ns() * 1e-3);
        for percent in [50.0, 99.0, 99.9, 99.99, 99.999] {
            match histogram.percentile(percent) {
                Some(span) => print!("  p{percent} {:6.1}", span.us()),
                None => print!("  p{percent}      -"),
            }
        }
    }
    println!();
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |name: String, bytes: u32, align: u64, random, read_percent, depth, ios| {
        points.push(Point {
            name,
            bytes,
            align,
            random,
            read_percent,
            depth,
            ios,
        });
    };
    for read_percent in [100, 0] {
        let what = if read_percent == 100 { "read" } else { "write" };
        for align in [0u64, 512] {
            for shift in 9..=20 {
                let bytes = 1u32 << shift;
                let align = if align == 0 { u64::from(bytes) } else { align };
                let name = format!("QD1 {what} {bytes} B, aligned to {align}");
                add(name, bytes, align, true, read_percent, 1, 20_000);
            }
        }
        for depth in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64] {
            let ios = if matches!(depth, 1 | 16 | 64) {
                4_000_000
            } else {
                200_000
            };
            add(
                format!("4K rand {what} QD{depth}"),
                4096,
                4096,
                true,
                read_percent,
                depth,
                ios,
            );
        }
        for depth in [1, 2, 4, 16] {
            add(
                format!("128K seq {what} QD{depth}"),
                131_072,
                131_072,
                false,
                read_percent,
                depth,
                20_000,
            );
        }
        add(
            format!("64K seq {what} QD16"),
            65_536,
            65_536,
            false,
            read_percent,
            16,
            40_000,
        );
    }
    for read_percent in (0..=100).step_by(10) {
        add(
            format!("4K mix {read_percent} % reads, 16 threads"),
            4096,
            4096,
            true,
            read_percent,
            16,
            300_000,
        );
    }
    points
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let drive = arguments.next().unwrap_or_else(|| "p4800x-375".into());
    let host = arguments
        .next()
        .and_then(|us| us.parse::<f64>().ok())
        .unwrap_or(3.7);
    println!("{drive}, host {host} us (latencies in us, of the drive alone)");
    for point in points() {
        measure(&drive, &point, Span::from_seconds(host * 1e-6));
    }
}
