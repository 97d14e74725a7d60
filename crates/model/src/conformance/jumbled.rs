//! A drive that completes commands in random order, after random times.
//!
//! For tests of compositions of drives: they detect code that relies on an order that no drive guarantees.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Status};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::random::Stream;
use crate::time::{Span, Time};

/// A drive of the given capacity that guarantees no order.
#[derive(Clone, Debug)]
pub struct OutOfOrderDrive {
    bytes: u64,
    stream: Stream,
    /// Outstanding commands: when each completes, its id, and when it was submitted.
    inside: BTreeSet<(Time, CommandId, Time)>,
}

impl OutOfOrderDrive {
    /// Creates a drive of `bytes` bytes.
    pub fn new(seed: u64, bytes: u64) -> OutOfOrderDrive {
        OutOfOrderDrive {
            bytes,
            stream: Stream::new(seed, "jumbled"),
            inside: BTreeSet::new(),
        }
    }
}

impl Device for OutOfOrderDrive {
    fn capacity(&self) -> Capacity {
        Capacity {
            bytes: self.bytes,
            block: 512,
        }
    }

    fn submit(&mut self, now: Time, command: Command) {
        // One in four takes long.
        let most = [5_000, 5_000, 5_000, 300_000][self.stream.uniform_below(4) as usize];
        let at = now + Span::from_ns(1 + self.stream.uniform_below(most));
        self.inside.insert((at, command.id, now));
    }

    fn next_event(&self) -> Time {
        self.inside.first().map_or(Time::NEVER, |first| first.0)
    }

    fn advance(&mut self, now: Time, _horizon: Time, done: &mut Vec<Completion>) -> Time {
        while let Some(&(at, id, since)) = self.inside.first()
            && at == now
        {
            self.inside.pop_first();
            let mut anatomy = Anatomy::ZERO;
            anatomy.add(Part::Medium, at.since(since));
            done.push(Completion {
                id,
                at,
                status: Status::Success,
                anatomy,
            });
        }
        now
    }

    fn power_cut(&mut self, now: Time, _lost: &mut Vec<Range>) -> Time {
        self.inside.clear();
        now
    }

    fn inspect(&self, _now: Time, _gauges: &mut dyn Gauges) {}
}
