//! Virtual time: the loop that advances from event to event, and building blocks of devices.

mod agenda;
mod due;
mod events;
mod slab;
mod station;
mod wheel;

pub use agenda::Agenda;
pub use due::{EventPayload, TypedEventQueue};
pub use events::EventQueue;
pub use slab::Slab;
pub use station::Station;
pub use wheel::Wheel;

use alloc::vec::Vec;

use crate::command::{Command, Completion};
use crate::device::Device;
use crate::time::Time;

/// A source of commands that receives their completions: a fio job, a trace, a test.
pub trait Workload {
    /// Returns the time at which the next command arrives without waiting for a completion; [`Time::NEVER`] if there is
    /// none.
    fn next_arrival(&self) -> Time;

    /// Submits the commands due at `now` by calling `submit`; afterwards `next_arrival()` is later than `now`.
    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command));

    /// Receives a completion; a closed-loop workload makes its next command due (`next_arrival() == now`).
    fn complete(&mut self, now: Time, completion: &Completion);

    /// Whether no command will follow and none is outstanding. The run then ends even if the device continues with
    /// background work.
    fn finished(&self) -> bool {
        false
    }
}

/// Runs `workload` on `device`, starting at `start`. It ends when the workload has finished, when neither has an event
/// left, or when the next event would be after `until`. Returns the time of the last event (or `start`). It can be
/// called again to continue: the result equals that of a single run.
pub fn run<D: Device, W: Workload>(
    device: &mut D,
    workload: &mut W,
    start: Time,
    until: Time,
) -> Time {
    let mut now = start;
    let mut done = Vec::with_capacity(256);
    let end = Time::from_ns(until.ns().saturating_add(1));
    loop {
        let event = device.next_event();
        let arrival = workload.next_arrival();
        let next = event.min(arrival);
        if next > until || next == Time::NEVER || workload.finished() {
            return now;
        }
        debug_assert!(next >= now, "time went back from {now:?} to {next:?}");
        now = next;
        // Completions precede arrivals at a tie, so that a slot freed now can be reused now.
        if event == now {
            now = device.advance(now, arrival.min(end), &mut done);
            for completion in &done {
                workload.complete(now, completion);
            }
            done.clear();
        }
        if workload.next_arrival() == now {
            workload.arrive(now, &mut |command| device.submit(now, command));
        }
    }
}
