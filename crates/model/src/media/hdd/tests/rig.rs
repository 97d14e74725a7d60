//! Commands for a disk: closed loop or open loop.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::*;
use crate::engine::{Workload, run};

/// A completed command: when it was submitted, when it completed, and its latency breakdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) submitted: Time,
    pub(super) at: Time,
    pub(super) anatomy: Anatomy,
}

impl Seen {
    pub(super) fn latency(&self) -> f64 {
        self.at.since(self.submitted).seconds()
    }
}

struct Source<M> {
    make: M,
    depth: u32,
    /// Mean interarrival time; without it, a completion triggers the next command.
    gap: Option<(Span, Stream)>,
    due: Time,
    left: u32,
    next: u32,
    sent: BTreeMap<u32, Time>,
    seen: Vec<Seen>,
}

impl<M: FnMut(u32) -> Command> Workload for Source<M> {
    fn next_arrival(&self) -> Time {
        if self.left == 0 {
            Time::NEVER
        } else {
            self.due
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        loop {
            if self.left == 0 || (self.gap.is_none() && self.sent.len() >= self.depth as usize) {
                self.due = Time::NEVER;
                return;
            }
            self.left -= 1;
            self.next += 1;
            self.sent.insert(self.next, now);
            submit(Command {
                id: self.next,
                ..(self.make)(self.next)
            });
            if let Some((gap, stream)) = &mut self.gap {
                self.due = now + Span::from_ns(1) + stream.exponential(*gap);
                return;
            }
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        assert_eq!(completion.status, Status::Success);
        let submitted = self.sent.remove(&completion.id).expect("it was sent");
        assert_eq!(completion.anatomy.total(), now.since(submitted));
        self.seen.push(Seen {
            submitted,
            at: now,
            anatomy: completion.anatomy,
        });
        if self.gap.is_none() {
            self.due = now;
        }
    }
}

fn go(
    disk: &mut Hdd,
    start: Time,
    (depth, gap): (u32, Option<Span>),
    count: u32,
    make: impl FnMut(u32) -> Command,
) -> Vec<Seen> {
    let mut source = Source {
        make,
        depth,
        gap: gap.map(|gap| (gap, Stream::new(3, "arrivals"))),
        due: start,
        left: count,
        next: 0,
        sent: BTreeMap::new(),
        seen: Vec::new(),
    };
    run(disk, &mut source, start, Time::NEVER);
    assert_eq!(source.seen.len(), count as usize);
    source.seen
}

/// Runs `count` commands, each created from its number, with a fixed queue depth.
pub(super) fn closed(
    disk: &mut Hdd,
    depth: u32,
    count: u32,
    make: impl FnMut(u32) -> Command,
) -> Vec<Seen> {
    go(disk, Time::ZERO, (depth, None), count, make)
}

/// Like `closed` at QD1, starting at this time.
pub(super) fn one_by_one(
    disk: &mut Hdd,
    start: Time,
    count: u32,
    make: impl FnMut(u32) -> Command,
) -> Vec<Seen> {
    go(disk, start, (1, None), count, make)
}

/// Runs `count` commands that arrive as a Poisson process.
pub(super) fn open(
    disk: &mut Hdd,
    gap: Span,
    count: u32,
    make: impl FnMut(u32) -> Command,
) -> Vec<Seen> {
    go(disk, Time::ZERO, (1, Some(gap)), count, make)
}

/// Returns commands per second, without the first.
pub(super) fn rate(seen: &[Seen]) -> f64 {
    let (first, last) = (seen[seen.len() / 10].at, seen[seen.len() - 1].at);
    (seen.len() - 1 - seen.len() / 10) as f64 / last.since(first).seconds()
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// Returns random 4 KiB offsets on a disk of `bytes` bytes.
pub(super) fn anywhere(bytes: u64) -> impl FnMut() -> u64 {
    let mut stream = Stream::new(7, "places");
    move || stream.uniform_below(bytes / 4096) * 4096
}

/// A disk of realistic size: 2 TB, no retries.
pub(super) fn large() -> HddConfig {
    let mut config = super::small();
    config.bytes = 2_000_000_000_000 / 4096 * 4096;
    config.disk.heads = 8;
    config.disk.zones = 20;
    config.disk.outer = 200_000_000;
    config.disk.inner = 100_000_000;
    config.disk.read_retry = 0.0;
    config.buffer.write = 32 << 20;
    config.buffer.writes = 128;
    config
}
