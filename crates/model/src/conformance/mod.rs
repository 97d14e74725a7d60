//! The laws of [`crate::device::Device`] as a test suite that every device can call in one line.
//!
//! [`check`] drives a device with random mixes of all operations (aligned, unaligned, beyond the end, in bursts, paced,
//! in a closed loop, with ids reused immediately) and checks every law. A composition of devices also has obligations
//! to its members: a [`Witness`] around a member panics if the member is called incorrectly. Devices with data are also
//! checked by [`check_data`].
//!
//! Each law has a planted bug in the tests below that the suite must find.

mod data;
mod jumbled;
mod mix;
mod power;
pub mod samples;
mod witness;

#[cfg(test)]
mod planted;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use data::check_data;
pub use jumbled::OutOfOrderDrive;
pub use mix::Mix;
pub use witness::Witness;

use crate::command::{Completion, Status};
use crate::device::{Device, Gauge, Gauges};
use crate::engine::{Workload, run};
use crate::time::{Span, Time};

/// A law that can be violated. The numbers are those of [`crate::device`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// 1. Time never decreases.
    TimeForward,
    /// 3. Each id completes once, at `now`.
    OneCompletion,
    /// 4. After `advance(now)` the next event is later than `now`.
    Progress,
    /// 6 and 8. Interrupting a run anywhere and continuing it gives the same result as the uninterrupted run, and so
    /// does stepping from event to event; equal seeds give equal runs.
    Resumable,
    /// 7. The anatomy sums to the latency.
    Anatomy,
    /// A command that is out of range or not a multiple of 512 B is rejected; all others succeed, or end with an
    /// unrecovered read error. (Write faults and missing devices occur only with fault injection.)
    Refusal,
    /// A device without commands becomes idle: `next_event()` is [`Time::NEVER`].
    Idle,
    /// Cumulative gauges only grow, and all bytes of the host are counted.
    Gauges,
    /// A server is busy at most 100 % of the time.
    Utilisation,
    /// 9. A power cut loses data that was in a buffer and that no flush has made durable, and the outstanding commands;
    ///    nothing else.
    PowerCut,
    /// Little's law: mean depth is arrival rate times mean latency, exactly over a run that begins and ends empty.
    Little,
}

/// A violated law and the observation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The law that is violated.
    pub law: Law,
    /// Observed behaviour.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {:?}: {}", self.law, self.what)
    }
}

/// Panics unless the devices that `make(seed)` builds keep all laws.
///
/// # Panics
/// With the violated law and how to reproduce it.
pub fn check<D: Device + Clone>(make: impl Fn(u64) -> D) {
    Suite::default().check(make);
}

/// Like [`check`], for a single drive: its [`Gauge::QueueDepth`] must also equal the number of outstanding commands.
///
/// # Panics
/// With the violated law and how to reproduce it.
pub fn check_drive<D: Device + Clone>(make: impl Fn(u64) -> D) {
    let suite = Suite {
        exact_depth: true,
        ..Suite::default()
    };
    suite.check(make);
}

/// Parameters of the test suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suite {
    /// Number of seeds.
    pub seeds: u64,
    /// Commands per seed.
    pub commands: u32,
    /// Maximum number of outstanding commands.
    pub depth: u32,
    /// `Command::queue` is below this (number of threads of a host path).
    pub queues: u16,
    /// Whether the single reported [`Gauge::QueueDepth`] is the number of outstanding commands.
    pub exact_depth: bool,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite {
            seeds: 6,
            commands: 1500,
            depth: 64,
            queues: 1,
            exact_depth: false,
        }
    }
}

impl Suite {
    /// Panics unless the devices that `make(seed)` builds keep all laws.
    ///
    /// # Panics
    /// With the violated law and how to reproduce it.
    pub fn check<D: Device + Clone>(&self, make: impl Fn(u64) -> D) {
        for seed in 0..self.seeds {
            if let Err(violation) = self.examine(seed, &make) {
                panic!("seed {seed}: {violation}");
            }
        }
    }

    /// Checks the laws for one device.
    ///
    /// # Errors
    /// The first violated law.
    pub fn examine<D: Device + Clone>(
        &self,
        seed: u64,
        make: impl Fn(u64) -> D,
    ) -> Result<(), Violation> {
        let device = make(seed);
        let mix = Mix::new(seed, device.capacity().bytes, *self);
        let watched = ConformanceRunner::new(device, mix.clone(), *self).watch()?;

        // The uninterrupted run by the engine itself, twice from the same seed.
        for attempt in 0..2 {
            let (mut device, mut mix) = (make(seed), mix.clone());
            run(&mut device, &mut mix, Time::ZERO, Time::NEVER);
            same(
                &watched,
                mix.log(),
                &format!("run {attempt} from the same seed"),
            )?;
        }
        self.cut(&watched, make(seed), mix)?;
        power::cuts(self, seed, make(seed)).map(drop)
    }

    /// Cuts the power of a device repeatedly, and returns how many bytes it lost in total.
    ///
    /// # Errors
    /// The first violated law.
    pub fn power_cuts<D: Device>(&self, seed: u64, device: D) -> Result<u64, Violation> {
        power::cuts(self, seed, device)
    }

    /// Interrupts the run at some of its completions, continues with a clone, and lets the original continue in
    /// parallel.
    fn cut<D: Device + Clone>(
        &self,
        watched: &[Completion],
        mut device: D,
        mut mix: Mix,
    ) -> Result<(), Violation> {
        let mut now = Time::ZERO;
        for part in 1..8 {
            let at = watched[watched.len() * part / 8].at;
            now = run(&mut device, &mut mix, now, at);
            device.inspect(now, &mut GaugeReadings::default());
            let (mut original, mut copy) = (device.clone(), mix.clone());
            // The discarded one runs first: any state that it shares with the other would become visible.
            run(&mut original, &mut copy, now, Time::NEVER);
            same(
                watched,
                copy.log(),
                &format!("a clone made at {now:?} that continues"),
            )?;
        }
        run(&mut device, &mut mix, now, Time::NEVER);
        same(
            watched,
            mix.log(),
            "the run cut in eight, after clones of it ran on",
        )
    }
}

fn same(expected: &[Completion], got: &[Completion], what: &str) -> Result<(), Violation> {
    for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
        if expected != got {
            return broken(
                Law::Resumable,
                format!(
                    "{what} differs from the unbroken run at completion {index}: {got:?} instead of {expected:?}"
                ),
            );
        }
    }
    if expected.len() != got.len() {
        return broken(
            Law::Resumable,
            format!(
                "{what} has {} completions instead of {}",
                got.len(),
                expected.len()
            ),
        );
    }
    Ok(())
}

fn broken<T>(law: Law, what: String) -> Result<T, Violation> {
    Err(Violation { law, what })
}

/// Events without a completion after which a device without commands counts as never idle.
const RESTLESS: u64 = 1_000_000;

/// Drives a device as [`run`] does, and checks each step.
struct ConformanceRunner<D> {
    device: D,
    mix: Mix,
    suite: Suite,
    now: Time,
    /// Integral of outstanding commands over time, and when it was last updated.
    depth_area: u128,
    latencies: u128,
    gauge_area: f64,
    before: GaugeReadings,
    quiet: u64,
}

impl<D: Device> ConformanceRunner<D> {
    fn new(device: D, mix: Mix, suite: Suite) -> ConformanceRunner<D> {
        let mut before = GaugeReadings::default();
        device.inspect(Time::ZERO, &mut before);
        ConformanceRunner {
            device,
            mix,
            suite,
            now: Time::ZERO,
            depth_area: 0,
            latencies: 0,
            gauge_area: 0.0,
            before,
            quiet: 0,
        }
    }

    /// Runs to the end; returns the completions.
    fn watch(mut self) -> Result<Vec<Completion>, Violation> {
        let first = self.before.clone();
        let mut done = Vec::new();
        loop {
            let event = self.device.next_event();
            let next = event.min(self.mix.next_arrival());
            if next == Time::NEVER {
                break;
            }
            self.step_to(next)?;
            if event == next {
                self.device.advance(next, next, &mut done);
                self.quiet += 1;
                for completion in done.drain(..) {
                    self.quiet = 0;
                    self.judge(&completion)?;
                    self.mix.complete(next, &completion);
                }
                let after = self.device.next_event();
                if after <= next {
                    return broken(
                        Law::Progress,
                        format!("advance({next:?}) left the next event at {after:?}"),
                    );
                }
            }
            if self.mix.next_arrival() == next {
                let device = &mut self.device;
                self.mix
                    .arrive(next, &mut |command| device.submit(next, command));
                let after = self.device.next_event();
                if after < next {
                    return broken(
                        Law::TimeForward,
                        format!("after a submission at {next:?} the next event is at {after:?}"),
                    );
                }
            }
            if self.quiet > RESTLESS {
                return broken(
                    Law::Idle,
                    format!("{RESTLESS} events in a row without a completion, at {next:?}"),
                );
            }
            self.gauges()?;
        }
        self.finish(&first)?;
        Ok(self.mix.into_log())
    }

    fn step_to(&mut self, next: Time) -> Result<(), Violation> {
        if next < self.now {
            return broken(
                Law::TimeForward,
                format!("at {:?} the next event is at {next:?}", self.now),
            );
        }
        let passed = next.since(self.now);
        self.depth_area += u128::from(passed.ns()) * u128::from(self.mix.outstanding());
        self.gauge_area += passed.ns() as f64 * self.before.sum(Gauge::QueueDepth);
        self.now = next;
        Ok(())
    }

    fn judge(&mut self, completion: &Completion) -> Result<(), Violation> {
        let now = self.now;
        let Some((submitted, expected)) = self.mix.expectation(completion.id) else {
            return broken(
                Law::OneCompletion,
                format!(
                    "id {} completed at {now:?} but is not outstanding",
                    completion.id
                ),
            );
        };
        if completion.at != now {
            return broken(
                Law::OneCompletion,
                format!("{completion:?} came out of advance({now:?})"),
            );
        }
        let latency = now.since(submitted);
        if completion.anatomy.total() != latency {
            return broken(
                Law::Anatomy,
                format!(
                    "parts sum to {:?}, the latency is {latency:?}: {completion:?}",
                    completion.anatomy.total()
                ),
            );
        }
        self.latencies += u128::from(latency.ns());
        if let Some(expected) = expected {
            let status = completion.status;
            let unrecovered = expected == Status::Success && status == Status::UnrecoveredReadError;
            if status != expected && !unrecovered {
                return broken(
                    Law::Refusal,
                    format!("{status:?} instead of {expected:?}: {completion:?}"),
                );
            }
        }
        Ok(())
    }

    /// Reads all gauges and compares them with the previous reading.
    fn gauges(&mut self) -> Result<(), Violation> {
        let mut readings = GaugeReadings::default();
        self.device.inspect(self.now, &mut readings);
        for &(gauge, value, _) in &readings.0 {
            let before = self.before.sum(gauge);
            if !value.is_finite() || value < 0.0 || (gauge.cumulative() && value < before) {
                return broken(
                    Law::Gauges,
                    format!("{gauge:?} went from {before} to {value} at {:?}", self.now),
                );
            }
        }
        if self.suite.exact_depth {
            let depth = readings.sum(Gauge::QueueDepth);
            let inside = self.mix.outstanding();
            if depth != f64::from(inside) {
                return broken(
                    Law::Little,
                    format!(
                        "at {:?} the device counts {depth} commands inside, there are {inside}",
                        self.now
                    ),
                );
            }
        }
        self.before = readings;
        Ok(())
    }

    /// Checks the laws that apply to the end of a run.
    fn finish(&mut self, first: &GaugeReadings) -> Result<(), Violation> {
        let lost = self.mix.outstanding();
        if lost > 0 || self.mix.left() > 0 {
            return broken(
                Law::OneCompletion,
                format!("the device is idle and {lost} commands never completed"),
            );
        }
        self.gauges()?;
        if self.before.sum(Gauge::QueueDepth) != 0.0 {
            return broken(Law::Little, "idle, yet the queue depth is not 0".into());
        }
        if self.depth_area != self.latencies
            || (self.suite.exact_depth && !near(self.gauge_area, self.latencies as f64))
        {
            return broken(
                Law::Little,
                format!(
                    "the integral of the depth is {} (by its gauge {}), the latencies sum to {}",
                    self.depth_area, self.gauge_area, self.latencies
                ),
            );
        }
        let elapsed = self.now.since(Time::ZERO);
        for gauge in [
            Gauge::ControllerBusySeconds,
            Gauge::LinkBusySeconds,
            Gauge::MediumBusySeconds,
        ] {
            self.utilisation(gauge, first, elapsed)?;
        }
        self.bytes(Gauge::HostBytesRead, first, self.mix.bytes_read())?;
        self.bytes(Gauge::HostBytesWritten, first, self.mix.bytes_written())
    }

    fn utilisation(
        &self,
        gauge: Gauge,
        first: &GaugeReadings,
        elapsed: Span,
    ) -> Result<(), Violation> {
        let busy = self.before.sum(gauge) - first.sum(gauge);
        let servers = f64::from(self.before.reports(gauge));
        if busy > elapsed.seconds() * servers + 1e-9 {
            return broken(
                Law::Utilisation,
                format!("{gauge:?} grew by {busy} s in {elapsed:?} of {servers} servers"),
            );
        }
        Ok(())
    }

    fn bytes(&self, gauge: Gauge, first: &GaugeReadings, moved: u64) -> Result<(), Violation> {
        let counted = self.before.sum(gauge) - first.sum(gauge);
        if self.before.reports(gauge) > 0 && counted != moved as f64 {
            return broken(
                Law::Gauges,
                format!("{gauge:?} counts {counted}, the host moved {moved}"),
            );
        }
        Ok(())
    }
}

/// Equal to nine digits.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

/// Gauges read at one moment: name, sum, number of reports.
#[derive(Clone, Default)]
struct GaugeReadings(Vec<(Gauge, f64, u32)>);

impl GaugeReadings {
    fn sum(&self, gauge: Gauge) -> f64 {
        self.0
            .iter()
            .find(|reading| reading.0 == gauge)
            .map_or(0.0, |reading| reading.1)
    }

    fn reports(&self, gauge: Gauge) -> u32 {
        self.0
            .iter()
            .find(|reading| reading.0 == gauge)
            .map_or(0, |reading| reading.2)
    }
}

impl Gauges for GaugeReadings {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match self.0.iter_mut().find(|reading| reading.0 == gauge) {
            Some(reading) => {
                reading.1 += value;
                reading.2 += 1;
            }
            None => self.0.push((gauge, value, 1)),
        }
    }
}
