//! I/O schedulers: order and merging of requests that wait, and the laws of a device.

use std::cell::RefCell;
use std::rc::Rc;

use model::conformance::Suite;
use model::host::{Scheduler, SchedulerConfig, SchedulerKind};
use model::media::ram::{Ram, RamConfig};
use model::{Capacity, Command, Completion, Device, Gauges, Op, Part, Range, Span, Time};

const SERVICE: Span = Span::from_us(100);

/// A drive that records the commands that it receives.
#[derive(Clone)]
struct Recorder {
    drive: Ram,
    received: Rc<RefCell<Vec<(Op, u64, u32)>>>,
}

impl Device for Recorder {
    fn capacity(&self) -> Capacity {
        self.drive.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        let entry = (command.op, command.offset >> 10, command.bytes >> 10);
        self.received.borrow_mut().push(entry);
        self.drive.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.drive.next_event()
    }
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        self.drive.advance(now, horizon, done)
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.drive.power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
    }
}

fn config(kind: SchedulerKind, slots: u32) -> SchedulerConfig {
    SchedulerConfig {
        kind,
        cost: Span::ZERO,
        slots,
        rotational: false,
    }
}

fn ram() -> Ram {
    Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command: SERVICE,
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    })
}

/// Submits the commands at once; returns what the drive received, in KiB, and the completions.
fn order(config: SchedulerConfig, commands: &[Command]) -> (Vec<(Op, u64, u32)>, Vec<Completion>) {
    let received = Rc::default();
    let drive = Recorder {
        drive: ram(),
        received: Rc::clone(&received),
    };
    let mut scheduler = Scheduler::new(config, drive);
    for command in commands {
        scheduler.submit(Time::ZERO, *command);
    }
    let mut done = Vec::new();
    while scheduler.next_event() != Time::NEVER {
        let next = scheduler.next_event();
        scheduler.advance(next, next, &mut done);
    }
    let received = received.borrow().clone();
    (received, done)
}

fn reads(at: &[u64]) -> Vec<Command> {
    let ids = 0..at.len() as u32;
    ids.zip(at)
        .map(|(id, &kib)| Command::read(id, kib << 10, 4096))
        .collect()
}

fn offsets(received: &[(Op, u64, u32)]) -> Vec<u64> {
    received.iter().map(|it| it.1).collect()
}

#[test]
fn none_keeps_the_order_and_deadline_sorts_what_waits() {
    let commands = reads(&[800, 100, 900, 400, 1000]);
    let (fifo, _) = order(config(SchedulerKind::None, 1), &commands);
    assert_eq!(offsets(&fifo), [800, 100, 900, 400, 1000]);
    let (sorted, _) = order(config(SchedulerKind::MqDeadline, 1), &commands);
    // Up from the last address; then from the oldest.
    assert_eq!(offsets(&sorted), [800, 900, 1000, 100, 400]);
    // While slots are free nothing waits.
    let (free, _) = order(config(SchedulerKind::MqDeadline, 8), &commands);
    assert_eq!(offsets(&free), [800, 100, 900, 400, 1000]);
}

#[test]
fn adjacent_requests_that_wait_are_merged() {
    let commands = reads(&[800, 104, 100, 108, 500]);
    let (received, done) = order(config(SchedulerKind::MqDeadline, 1), &commands);
    let lengths: Vec<(u64, u32)> = received.iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(lengths, [(800, 4), (100, 12), (500, 4)]);
    assert_eq!(done.len(), 5, "each command completes");
    for one in &done {
        assert_eq!(one.anatomy.total(), one.at.since(Time::ZERO));
    }
    let waited = done.iter().find(|one| one.id == 1).expect("merged");
    assert_eq!(waited.anatomy.get(Part::QueueSlot), SERVICE);
    let (kept, _) = order(config(SchedulerKind::None, 1), &commands);
    assert_eq!(kept.len(), 5);
}

#[test]
fn reads_come_before_writes_which_are_not_starved() {
    let mut commands = vec![Command::read(0, 0, 4096)];
    commands.extend((1..4).map(|id| Command::write(id, u64::from(id) << 20, 4096)));
    let more = (4..84).map(|id| Command::read(id, u64::from(id) << 20, 4096));
    commands.extend(more);
    let (received, _) = order(config(SchedulerKind::MqDeadline, 1), &commands);
    let first = received.iter().position(|it| it.0 == Op::Write);
    let first = first.expect("writes");
    assert!((17..60).contains(&first), "{first}");
    let (fifo, _) = order(config(SchedulerKind::None, 1), &commands);
    assert_eq!(fifo[1].0, Op::Write);
}

#[test]
fn bfq_serves_one_process_after_the_other() {
    let mut commands = Vec::new();
    for id in 0..40u32 {
        let queue = (id % 2) as u16;
        let offset = (u64::from(queue) << 29) + (u64::from(id) << 20);
        let command = Command::read(id, offset, 1 << 20);
        commands.push(Command { queue, ..command });
    }
    let (received, _) = order(config(SchedulerKind::Bfq, 1), &commands);
    let turns = received
        .windows(2)
        .filter(|it| it[0].1 >> 19 != it[1].1 >> 19);
    let turns = turns.count();
    assert!((2..8).contains(&turns), "{turns} changes for 8 MiB each");
    let (fifo, _) = order(config(SchedulerKind::None, 1), &commands);
    let changes = fifo.windows(2).filter(|it| it[0].1 >> 19 != it[1].1 >> 19);
    assert_eq!(changes.count(), 39);
}

#[test]
fn every_scheduler_keeps_the_laws() {
    for kind in SchedulerKind::ALL {
        for (slots, rotational) in [(0, false), (1, true), (4, false)] {
            let config = SchedulerConfig {
                rotational,
                ..config(kind, slots)
            };
            let suite = Suite {
                queues: 3,
                ..Suite::default()
            };
            suite.check(|_| Scheduler::new(config, ram()));
        }
    }
}
