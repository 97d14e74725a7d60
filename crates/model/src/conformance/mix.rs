//! Random commands of every kind, as a [`Workload`]: closed loops, bursts, paced arrivals and pauses in turn; hot
//! spots, sequential runs and both ends of the device; a few commands that must be rejected.
//!
//! Not included: commands of more than 1 MiB that are in range (a device may split them; that would test nothing new).

use alloc::vec;
use alloc::vec::Vec;

use super::Suite;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::engine::Workload;
use crate::random::Stream;
use crate::time::{Span, Time};

/// How commands are submitted in one phase of the run.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// With this number of outstanding commands; each completion triggers a submission at the same moment.
    Closed(u32),
    /// All at one time.
    Burst,
    /// With this mean interarrival time.
    Paced(Span),
}

#[derive(Clone, Copy, Debug)]
struct ExpectedCompletion {
    submitted: Time,
    /// `None` if the contract does not define it (commands of zero bytes).
    status: Option<Status>,
    read: u32,
    written: u32,
}

/// A workload that covers all cases.
#[derive(Clone, Debug)]
pub struct Mix {
    suite: Suite,
    stream: Stream,
    capacity: u64,
    /// The id freed last is used first, so ids are reused immediately.
    free: Vec<CommandId>,
    inside: Vec<Option<ExpectedCompletion>>,
    outstanding: u32,
    left: u32,
    left_in_phase: u32,
    style: Style,
    due: Time,
    cursor: u64,
    bytes_read: u64,
    bytes_written: u64,
    log: Vec<Completion>,
}

impl Mix {
    /// Creates a mix for a device of `capacity` bytes.
    pub fn new(seed: u64, capacity: u64, suite: Suite) -> Mix {
        Mix {
            suite,
            stream: Stream::new(seed, "conformance"),
            capacity,
            free: (0..suite.depth).rev().collect(),
            inside: vec![None; suite.depth as usize],
            outstanding: 0,
            left: suite.commands,
            left_in_phase: 0,
            style: Style::Burst,
            due: Time::ZERO,
            cursor: 0,
            bytes_read: 0,
            bytes_written: 0,
            log: Vec::new(),
        }
    }

    /// Returns all completions so far.
    pub fn log(&self) -> &[Completion] {
        &self.log
    }

    pub(super) fn into_log(self) -> Vec<Completion> {
        self.log
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    pub(super) fn left(&self) -> u32 {
        self.left
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Returns when `id` was submitted and its expected status; `None` if it is not outstanding.
    pub(super) fn expectation(&self, id: CommandId) -> Option<(Time, Option<Status>)> {
        let expected = self.inside.get(id as usize).copied().flatten()?;
        Some((expected.submitted, expected.status))
    }

    fn begin_phase(&mut self, now: Time) {
        self.left_in_phase = 1 + self
            .stream
            .uniform_below(u64::from(self.suite.commands / 8).max(1))
            as u32;
        let depth = u64::from(self.suite.depth);
        self.style = match self.stream.uniform_below(4) {
            0 => Style::Closed(1),
            1 => Style::Closed(1 + self.stream.uniform_below(depth) as u32),
            2 => Style::Burst,
            _ => Style::Paced(Span::from_ns(100 + self.stream.uniform_below(100_000))),
        };
        // From a nanosecond to a second, with uniformly distributed magnitude.
        let bits = 1 + self.stream.uniform_below(30);
        self.due = now + Span::from_ns(1 + self.stream.uniform_below(1 << bits));
    }

    fn bytes(&mut self) -> u32 {
        let sectors = match self.stream.uniform_below(8) {
            0..3 => 8,
            3 => 1 + self.stream.uniform_below(8),
            4 => 8 * (1 + self.stream.uniform_below(32)),
            5 => 1 + self.stream.uniform_below(256),
            6 => 256,
            _ => 1 + self.stream.uniform_below(2048),
        };
        (sectors * 512) as u32
    }

    fn offset(&mut self, bytes: u32) -> u64 {
        let last = self.capacity.saturating_sub(u64::from(bytes)) / 512;
        let sector = match self.stream.uniform_below(8) {
            0..3 => self.stream.uniform_below(last + 1) & !7,
            3 => self.stream.uniform_below(last + 1),
            4 => self.stream.uniform_below(64).min(last),
            5 => last,
            _ => {
                let sector = if self.cursor > last { 0 } else { self.cursor };
                self.cursor = sector + u64::from(bytes) / 512;
                sector
            }
        };
        sector * 512
    }

    fn command(&mut self, id: CommandId) -> Command {
        let op = match self.stream.uniform_below(20) {
            0..9 => Op::Read,
            9..17 => Op::Write,
            17 => Op::Flush,
            18 => Op::Deallocate,
            _ => Op::WriteZeroes,
        };
        let bytes = self.bytes();
        let offset = self.offset(bytes);
        let mut command = Command::new(id, op, offset, bytes);
        match self.stream.uniform_below(60) {
            0 => command.offset = self.capacity,
            1 => command.offset = self.capacity - 512,
            2 => command.offset = u64::MAX - 511,
            3 => command.offset += 1 + self.stream.uniform_below(511),
            4 => command.bytes += 1 + self.stream.uniform_below(511) as u32,
            5 => command.bytes = u32::MAX - 511,
            6 => command.bytes = 0,
            _ => {}
        }
        command.fua = self.stream.chance(0.1);
        command.queue = self.stream.uniform_below(u64::from(self.suite.queues)) as u16;
        command.high_priority = self.stream.chance(0.1);
        command
    }

    fn expect(&self, now: Time, command: &Command) -> ExpectedCompletion {
        let valid = command.fits(self.capacity);
        let status = if command.op == Op::Flush {
            Some(Status::Success)
        } else if command.bytes == 0 {
            None
        } else if valid {
            Some(Status::Success)
        } else {
            Some(Status::LbaOutOfRange)
        };
        let moved = |op| {
            if valid && command.op == op {
                command.bytes
            } else {
                0
            }
        };
        ExpectedCompletion {
            submitted: now,
            status,
            read: moved(Op::Read),
            written: moved(Op::Write),
        }
    }

    fn issue(&mut self, now: Time, submit: &mut impl FnMut(Command)) -> bool {
        if self.left == 0 || self.left_in_phase == 0 {
            return false;
        }
        let Some(id) = self.free.pop() else {
            return false;
        };
        let command = self.command(id);
        self.inside[id as usize] = Some(self.expect(now, &command));
        self.outstanding += 1;
        self.left -= 1;
        self.left_in_phase -= 1;
        submit(command);
        true
    }
}

impl Workload for Mix {
    fn next_arrival(&self) -> Time {
        if self.left == 0 {
            Time::NEVER
        } else {
            self.due
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        if self.left_in_phase == 0 {
            self.begin_phase(now);
            return;
        }
        // If no completion is outstanding, `due` stays in the future; otherwise the next completion sets it.
        self.due = Time::NEVER;
        match self.style {
            Style::Closed(depth) => while self.outstanding < depth && self.issue(now, submit) {},
            Style::Burst => while self.issue(now, submit) {},
            Style::Paced(gap) => {
                if self.issue(now, submit) {
                    self.due = now + Span::from_ns(1) + self.stream.exponential(gap);
                }
            }
        }
        if self.left_in_phase == 0 {
            self.begin_phase(now);
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        if let Some(expected) = self
            .inside
            .get_mut(completion.id as usize)
            .and_then(Option::take)
        {
            self.free.push(completion.id);
            self.outstanding -= 1;
            if completion.status == Status::Success {
                self.bytes_read += u64::from(expected.read);
                self.bytes_written += u64::from(expected.written);
            }
        }
        self.log.push(*completion);
        if self.due == Time::NEVER {
            self.due = now;
        }
    }
}
