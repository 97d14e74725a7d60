//! Counters of an XPoint drive, and the gauges that it reports.
//!
//! Energy is idle power plus an energy per byte that the medium reads or writes for the host. The energy of refresh and
//! wear levelling is not modelled.

use super::XPoint;
use super::config::UNIT;
use crate::device::{Gauge, Gauges};
use crate::time::Time;

/// Counters since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct XPointCounts {
    pub(super) host_read: u64,
    pub(super) host_written: u64,
    /// Bytes read from the medium.
    pub(super) bytes_read: u64,
    pub(super) units_written: u64,
    /// Commands by controller front end.
    pub(super) dispatched: [u64; 2],
    pub(super) last_dispatch: [Time; 2],
    pub(super) in_flight: u32,
}

impl XPoint {
    /// Reports the gauges of [`crate::Device::inspect`].
    pub(super) fn report(&self, now: Time, gauges: &mut dyn Gauges) {
        let counts = &self.counts;
        let power = &self.config.power;
        let unit = f64::from(UNIT);
        let background = self.medium.moved_units() as f64 + self.refreshed.units(now, &self.config);
        let read = counts.bytes_read as f64 + background * unit;
        let written = (counts.units_written as f64 + background) * unit;
        gauges.gauge(Gauge::HostBytesRead, counts.host_read as f64);
        gauges.gauge(Gauge::HostBytesWritten, counts.host_written as f64);
        gauges.gauge(Gauge::MediumBytesRead, read);
        gauges.gauge(Gauge::MediumBytesWritten, written);
        let caused = counts.units_written as f64 + self.medium.moved_units() as f64;
        gauges.gauge(Gauge::CausedBytesWritten, caused * unit);
        let joules = now.seconds() * power.idle_watts
            + counts.bytes_read as f64 * power.read_joules_per_byte
            + counts.units_written as f64 * unit * power.write_joules_per_byte;
        gauges.gauge(Gauge::EnergyJoules, joules);
        let timing = &self.config.timing;
        let interval = timing.controller_interval;
        // If there are two of them, their mean counts.
        let sides = if timing.duplex { 2 } else { 1 };
        let mut busy = [0.0; 2];
        for side in 0..sides {
            // A front end is still busy with the last command that it dispatched.
            let rest = interval
                .saturating_sub(timing.controller)
                .saturating_sub(now.since(counts.last_dispatch[side]));
            let front = (interval * counts.dispatched[side]).saturating_sub(rest);
            busy[0] += front.seconds() / sides as f64;
            busy[1] += self.paths[side].busy(now).seconds() / sides as f64;
        }
        gauges.gauge(Gauge::ControllerBusySeconds, busy[0]);
        gauges.gauge(Gauge::LinkBusySeconds, busy[1]);
        gauges.gauge(Gauge::MediumBusySeconds, self.medium.busy_seconds(now));
        gauges.gauge(Gauge::QueueDepth, f64::from(counts.in_flight));
        gauges.gauge(Gauge::PercentageUsed, self.endurance.percentage_used());
    }
}
