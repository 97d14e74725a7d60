//! A client that keeps a pool busy, for tests of its behaviour over time.

use model::anatomy::Part;
use model::command::{Command, Completion, Status};
use model::random::Stream;

use super::*;

/// A pool with a client of a fixed queue depth.
pub(super) struct Client {
    pub(super) pool: Box<Pool<crate::Drive>>,
    pub(super) now: Time,
    pub(super) stream: Stream,
    pub(super) done: Vec<Completion>,
}

pub(super) fn client(config: WriteBackConfig, drives: &[DriveConfig]) -> Client {
    Client {
        pool: built(&group(config, drives)),
        now: Time::ZERO,
        stream: Stream::new(7, "client"),
        done: Vec::new(),
    }
}

impl Client {
    /// Runs until `count` commands have completed; returns the total delay by congestion, and the highest congestion
    /// level.
    pub(super) fn run(
        &mut self,
        depth: u32,
        count: u32,
        mut make: impl FnMut(&mut Stream, u32) -> Command,
    ) -> (Span, f64) {
        let (mut congested, mut level) = (Span::ZERO, 0.0_f64);
        let (mut issued, mut inside) = (0, 0);
        let mut free: Vec<u32> = (0..depth).collect();
        loop {
            while issued < count
                && let Some(id) = free.pop()
            {
                let command = make(&mut self.stream, issued);
                self.pool.submit(self.now, Command { id, ..command });
                (issued, inside) = (issued + 1, inside + 1);
            }
            if inside == 0 {
                return (congested, level);
            }
            level = level.max(self.gauge(Gauge::Congestion));
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut self.done);
            for completion in self.done.drain(..) {
                assert_eq!(completion.status, Status::Success);
                congested += completion.anatomy.get(Part::Congestion);
                free.push(completion.id);
                inside -= 1;
            }
        }
    }

    /// Runs until nothing is due.
    pub(super) fn settle(&mut self) {
        while self.pool.next_event() < Time::NEVER {
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut self.done);
        }
    }

    /// Runs one command alone; returns its completion.
    pub(super) fn alone(&mut self, command: Command) -> Completion {
        let mut done = Vec::new();
        self.pool.submit(self.now, command);
        while done.is_empty() {
            self.now = self
                .pool
                .advance(self.pool.next_event(), Time::NEVER, &mut done);
        }
        done[0]
    }

    pub(super) fn gauge(&self, wanted: Gauge) -> f64 {
        gauge(&*self.pool, self.now, wanted)
    }

    /// Returns bytes written and bytes destaged per second.
    pub(super) fn rates(&mut self, depth: u32, count: u32, span: u64) -> (f64, f64) {
        let (from, destaged) = (self.now, self.gauge(Gauge::DestagedBytes));
        self.run(depth, count, |stream, _| random_write(stream, span));
        let seconds = self.now.since(from).seconds();
        let written = f64::from(count) * f64::from(UNIT);
        (
            written / seconds,
            (self.gauge(Gauge::DestagedBytes) - destaged) / seconds,
        )
    }
}

pub(super) fn random_write(stream: &mut Stream, span: u64) -> Command {
    let unit = stream.uniform_below(span / u64::from(UNIT));
    Command::write(0, unit * u64::from(UNIT), UNIT)
}
