//! Counters of a NAND drive, and the gauges that it reports.
//!
//! Energy is idle power plus an energy per sense, program, erase and byte over the link. The lower energy of a sense or
//! program with few bits per cell is not modelled.

use super::Nand;
use crate::device::{Gauge, Gauges};
use crate::ftl::UNIT;
use crate::time::Time;

impl Nand {
    /// Returns SMART's Percentage Used, with fractions: mean erases of a block divided by the rated ones.
    pub(super) fn percentage_used(&self) -> f64 {
        let erases = self.start.traffic_since(&self.shared.ftl).erased;
        let blocks = f64::from(self.shape.dies) * f64::from(self.shape.blocks);
        let cycles = self.config.wear_factor * erases as f64 / blocks;
        self.config.percentage_used_at_start + 100.0 * cycles / f64::from(self.config.rated_cycles)
    }

    /// Whether the endurance is used up so far that the medium accepts no changes.
    #[inline]
    pub(super) fn is_read_only(&self) -> bool {
        let at = self.config.read_only_at_percent;
        at.is_some_and(|at| self.percentage_used() >= at)
    }

    /// Reports all gauges.
    pub(super) fn report(&self, now: Time, gauges: &mut dyn Gauges) {
        let (ftl, front, array) = (&self.shared.ftl, &self.shared.front, &self.shared.array);
        let traffic = self.start.traffic_since(ftl);
        let written = traffic.host + traffic.moved + traffic.padded;
        let (host, medium, buffer) = (front.host_bytes(), array.counts(), self.buffer.counts());
        let own = buffer.taken_in + buffer.padded;
        let caused = own as f64 + ftl.charged() - self.start.charged_before();
        let unit = f64::from(UNIT);
        let power = &self.config.power;
        let energy = power.idle * now.seconds()
            + power.read * medium.senses as f64
            + power.program * medium.programs as f64
            + power.erase * traffic.erased as f64
            + power.per_byte * (host.read + host.written) as f64;
        gauges.gauge(Gauge::HostBytesRead, host.read as f64);
        gauges.gauge(Gauge::HostBytesWritten, host.written as f64);
        gauges.gauge(Gauge::MediumBytesRead, medium.bytes_read as f64);
        gauges.gauge(Gauge::MediumBytesWritten, written as f64 * unit);
        gauges.gauge(Gauge::CausedBytesWritten, caused * unit);
        gauges.gauge(
            Gauge::Erases,
            traffic.erased as f64 * f64::from(self.config.geometry.planes),
        );
        gauges.gauge(Gauge::EnergyJoules, energy);
        gauges.gauge(
            Gauge::ControllerBusySeconds,
            front.controller_busy(now).seconds(),
        );
        gauges.gauge(Gauge::LinkBusySeconds, front.link_busy(now));
        gauges.gauge(Gauge::MediumBusySeconds, array.busy_seconds(now));
        gauges.gauge(Gauge::QueueDepth, f64::from(front.depth()));
        gauges.gauge(Gauge::PercentageUsed, self.percentage_used());
        gauges.gauge(Gauge::BufferedBytes, self.buffer.used() as f64 * unit);
        gauges.gauge(Gauge::FreeShare, ftl.free_share());
    }
}
