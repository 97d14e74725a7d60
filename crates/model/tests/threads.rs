//! Job threads on one core: one that sleeps runs soon, none gets more than its share, and polled rings cost a system
//! call.

use model::device::{Capacity, Range};
use model::engine::{Workload, run};
use model::host::{CompletionMode, Engine, EngineCosts, HostConfig, HostPath, ThreadConfig};
use model::media::ram::{Ram, RamConfig};
use model::{Command, Completion, Device, Gauges, Span, Time};

/// CPU time of one I/O: application, submission, interrupt and reaping.
const EACH: Span = Span::from_ns(3100);

fn host(threads: u16, engine: Engine) -> HostPath<Ram> {
    let costs = EngineCosts {
        application: Span::from_us(1),
        system_call: Span::from_ns(if polls(engine) { 400 } else { 0 }),
        submit: Span::from_us(1),
        reap: Span::from_us(1),
        ..EngineCosts::default()
    };
    let config = HostConfig {
        cores: 1,
        engines: [costs; Engine::COUNT],
        interrupt: Span::from_ns(100),
        completion: CompletionMode::Polling,
        ..HostConfig::default()
    };
    let thread = ThreadConfig {
        engine,
        ..ThreadConfig::default()
    };
    let threads = vec![thread; usize::from(threads)];
    let drive = Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_ns(10),
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    });
    HostPath::new(config, &threads, 1, drive)
}

/// Whether the test polls with this engine.
fn polls(engine: Engine) -> bool {
    engine != Engine::Libaio
}

/// Keeps a number of reads in flight in each thread.
struct Closed {
    /// Thread of each id.
    owners: Vec<u16>,
    left: u32,
    ready: Vec<u32>,
    ready_at: Time,
    high_priority: bool,
    /// Thread and latency of each completion.
    log: Vec<(u16, Span)>,
}

impl Closed {
    /// Runs `count` reads with these depths on one core.
    fn run(depths: &[u32], count: u32) -> Vec<(u16, Span)> {
        Closed::run_with(Engine::Libaio, depths, count).log
    }

    fn run_with(engine: Engine, depths: &[u32], count: u32) -> Closed {
        let threads = (0..).zip(depths);
        let owners: Vec<u16> = threads
            .flat_map(|(thread, &depth)| vec![thread; depth as usize])
            .collect();
        let mut load = Closed {
            ready: (0..owners.len() as u32).collect(),
            owners,
            left: count,
            ready_at: Time::ZERO,
            high_priority: polls(engine),
            log: Vec::new(),
        };
        let mut host = host(depths.len() as u16, engine);
        run(&mut host, &mut load, Time::ZERO, Time::NEVER);
        load
    }
}

impl Workload for Closed {
    fn next_arrival(&self) -> Time {
        match self.ready.is_empty() {
            true => Time::NEVER,
            false => self.ready_at,
        }
    }

    fn arrive(&mut self, _now: Time, submit: &mut impl FnMut(Command)) {
        for id in self.ready.drain(..) {
            if self.left == 0 {
                continue;
            }
            self.left -= 1;
            let mut command = Command::read(id, u64::from(id) * 4096, 4096);
            command.queue = self.owners[id as usize];
            command.high_priority = self.high_priority;
            submit(command);
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        let owner = self.owners[completion.id as usize];
        self.log.push((owner, completion.anatomy.total()));
        self.ready.push(completion.id);
        self.ready_at = now;
    }
}

#[test]
fn a_thread_that_sleeps_does_not_wait_for_all_busy_ones() {
    let mut depths = vec![32; 8];
    depths.push(1);
    let log = Closed::run(&depths, 100_000);
    let mean_us = |of: &dyn Fn(u16) -> bool| {
        let settled = &log[20_000..];
        let latencies: Vec<f64> = settled
            .iter()
            .filter(|(thread, _)| of(*thread))
            .map(|(_, latency)| latency.us())
            .collect();
        latencies.iter().sum::<f64>() / latencies.len() as f64
    };
    let (busy, slept) = (
        mean_us(&|thread| thread < 8),
        mean_us(&|thread| thread == 8),
    );
    // The busy threads share eight ninths of the core and wait for all of their 256 reads.
    let wanted = 256.0 * EACH.us() * 9.0 / 8.0;
    assert!((0.9..1.1).contains(&(busy / wanted)), "{busy} us");
    // In the order of arrival, the ninth thread would wait as long.
    assert!(slept < 12.0 * EACH.us(), "{slept} us");
}

#[test]
fn a_thread_that_sleeps_gets_no_more_than_its_share() {
    for (depths, fair) in [(&[1, 32][..], 0.5), (&[1, 16, 16, 16], 0.25)] {
        let log = Closed::run(depths, 40_000);
        let own = log.iter().filter(|(thread, _)| *thread == 0).count();
        let share = own as f64 / log.len() as f64;
        assert!(
            (0.7 * fair..1.1 * fair).contains(&share),
            "{depths:?}: {share}"
        );
    }
}

#[test]
fn threads_that_all_sleep_are_served_in_order() {
    let log = Closed::run(&[1; 6], 6_000);
    for round in log[60..].chunks_exact(6) {
        let mut threads: Vec<u16> = round.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        assert_eq!(threads, [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_polled_ring_enters_the_kernel_to_reap() {
    let each_ns = |engine| {
        let load = Closed::run_with(engine, &[16], 20_000);
        load.ready_at.ns() as f64 / 20_000.0
    };
    // pvsync2 submits and polls within one system call of 400 ns.
    for (engine, wanted) in [
        (Engine::Pvsync2, 3400.0),
        (Engine::IoUring, 3800.0),
        (Engine::IoUringCmd, 3800.0),
    ] {
        let each = each_ns(engine);
        assert!(
            (wanted - 10.0..wanted + 10.0).contains(&each),
            "{engine:?}: {each} ns"
        );
    }
}

/// A drive with events of its own: one at each submission, and one in each of the following 99 nanoseconds.
struct BusyDrive {
    drive: Ram,
    next: Time,
    left: u32,
}

impl Device for BusyDrive {
    fn capacity(&self) -> Capacity {
        self.drive.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        (self.next, self.left) = (now, 99);
        self.drive.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.next.min(self.drive.next_event())
    }
    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.drive.next_event() == now {
                self.drive.advance(now, now, done);
            }
            if self.next == now {
                self.next = match self.left {
                    0 => Time::NEVER,
                    _ => now + Span::from_ns(1),
                };
                self.left = self.left.saturating_sub(1);
            }
            if !done.is_empty() || self.next_event() >= horizon {
                return now;
            }
            now = self.next_event();
        }
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.drive.power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
    }
}

/// A thread submits at every time around the completion of another thread's read.
#[test]
fn a_drive_does_not_continue_beyond_a_completion() {
    let each = Span::from_ns(20);
    let costs = EngineCosts {
        application: each,
        submit: each,
        reap: each,
        ..EngineCosts::default()
    };
    let config = HostConfig {
        cores: 2,
        engines: [costs; Engine::COUNT],
        interrupt: each,
        ..HostConfig::default()
    };
    let thread = |core| ThreadConfig {
        core,
        ..ThreadConfig::default()
    };
    for second in (0..200).map(Time::from_ns) {
        let drive = BusyDrive {
            drive: Ram::new(RamConfig {
                bytes: 1 << 30,
                per_command: Span::from_ns(10),
                picoseconds_per_byte: 0,
                memory_bus: None,
                spread: 0.0,
            }),
            next: Time::NEVER,
            left: 0,
        };
        let mut host = HostPath::new(config.clone(), &[thread(0), thread(1)], 1, drive);
        host.submit(Time::ZERO, Command::read(0, 0, 4096));
        let mut arrival = second;
        let mut completions = 0;
        while completions < 2 {
            let next = host.next_event();
            if arrival <= next {
                let command = Command::read(1, 4096, 4096);
                host.submit(
                    arrival,
                    Command {
                        queue: 1,
                        ..command
                    },
                );
                arrival = Time::NEVER;
                continue;
            }
            let mut done = Vec::new();
            let now = host.advance(next, arrival, &mut done);
            for it in &done {
                assert_eq!(it.at, now, "the second read at {second:?}");
            }
            completions += done.len();
        }
    }
}
