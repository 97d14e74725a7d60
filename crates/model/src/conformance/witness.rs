//! Checks the obligations of a caller to a device: placed between a composition and its members in tests.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::command::{Command, CommandId, Completion};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::time::Time;

/// Forwards everything, and panics if the *caller* violates the contract: time that decreases (law 1), `advance` at a
/// time other than the next event (law 2), a submission while a completion is due (law 5). Also if an event was
/// skipped, or an id is used while it is outstanding.
#[derive(Clone, Debug)]
pub struct Witness<D> {
    device: D,
    now: Time,
    outstanding: BTreeSet<CommandId>,
    /// The last submission was at `now`, so an event at `now` may result from it.
    submitted_now: bool,
}

impl<D: Device> Witness<D> {
    /// Creates a witness in front of `device`.
    pub fn new(device: D) -> Witness<D> {
        Witness {
            device,
            now: Time::ZERO,
            outstanding: BTreeSet::new(),
            submitted_now: false,
        }
    }

    fn step_to(&mut self, now: Time) {
        assert!(
            now >= self.now,
            "law 1: called at {now:?} after {:?}",
            self.now
        );
        let event = self.device.next_event();
        assert!(
            event >= now,
            "law 2: called at {now:?}, the event at {event:?} was passed over"
        );
        if now > self.now {
            self.submitted_now = false;
        }
        self.now = now;
    }
}

impl<D: Device> Device for Witness<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        self.step_to(now);
        assert!(
            self.device.next_event() > now || self.submitted_now,
            "law 5: {command:?} submitted at {now:?} before the completions due then"
        );
        assert!(
            self.outstanding.insert(command.id),
            "law 3: id {} is still outstanding",
            command.id
        );
        self.submitted_now = true;
        self.device.submit(now, command);
    }

    fn next_event(&self) -> Time {
        self.device.next_event()
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        self.step_to(now);
        let event = self.device.next_event();
        assert!(
            event == now,
            "law 2: advance at {now:?}, the next event is at {event:?}"
        );
        assert!(
            horizon <= now || done.is_empty(),
            "law 8: a horizon of {horizon:?} later than {now:?}, with completions of before"
        );
        let first = done.len();
        let now = self.device.advance(now, horizon, done);
        self.now = now;
        self.submitted_now = false;
        for completion in &done[first..] {
            self.outstanding.remove(&completion.id);
        }
        now
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.step_to(now);
        self.now = self.device.power_cut(now, lost);
        self.outstanding.clear();
        self.submitted_now = false;
        self.now
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        assert!(
            now >= self.now,
            "law 1: inspected at {now:?} after {:?}",
            self.now
        );
        self.device.inspect(now, gauges);
    }
}
