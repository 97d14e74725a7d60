//! Counters of a disk, and the gauges that it reports.
//!
//! Power is that of the idle disk, and more while the arm moves or data passes under a head. Spin-up power is not
//! modelled.

use super::Hdd;
use super::head::HeadWork;
use crate::device::{Gauge, Gauges};
use crate::time::Time;

/// Counters in bytes and nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HddCounts {
    pub(super) host_read: u64,
    pub(super) host_written: u64,
    pub(super) medium_read: u64,
    pub(super) medium_written: u64,
    /// Head time for reads and for writes.
    pub(super) reading: u64,
    pub(super) writing: u64,
    /// Time of seeks.
    pub(super) seek: u64,
    /// Time of data transfer, read-ahead included.
    pub(super) transfer: u64,
}

impl HddCounts {
    /// Counts the part of work in progress that has been done up to `now`.
    pub(super) fn worked(&mut self, work: &HeadWork, now: Time) {
        let passed = now.since(work.began).ns();
        match work.access.writes {
            false => self.reading += passed,
            true => self.writing += passed,
        }
        self.seek += passed.min(work.trip.seek);
        self.transfer += passed.saturating_sub(work.trip.seek + work.trip.turn);
    }
}

impl Hdd {
    /// Reports all gauges.
    pub(super) fn report(&self, now: Time, gauges: &mut dyn Gauges) {
        let counts = self.counted(now);
        let power = &self.config.power;
        let energy = power.idle * now.seconds()
            + (power.seek - power.idle) * counts.seek as f64 * 1e-9
            + (power.transfer - power.idle) * counts.transfer as f64 * 1e-9;
        let busy = (counts.reading + counts.writing) as f64 * 1e-9;
        gauges.gauge(Gauge::HostBytesRead, counts.host_read as f64);
        gauges.gauge(Gauge::HostBytesWritten, counts.host_written as f64);
        gauges.gauge(Gauge::MediumBytesRead, counts.medium_read as f64);
        gauges.gauge(Gauge::MediumBytesWritten, counts.medium_written as f64);
        gauges.gauge(Gauge::CausedBytesWritten, counts.medium_written as f64);
        gauges.gauge(Gauge::EnergyJoules, energy);
        gauges.gauge(
            Gauge::ControllerBusySeconds,
            self.controller.busy(now).seconds(),
        );
        gauges.gauge(Gauge::LinkBusySeconds, self.link.busy(now).seconds());
        gauges.gauge(Gauge::MediumBusySeconds, busy);
        let depth = self.taken as usize + self.outside.len();
        gauges.gauge(Gauge::QueueDepth, depth as f64);
        gauges.gauge(Gauge::BufferedBytes, self.cache.bytes() as f64);
    }
}
