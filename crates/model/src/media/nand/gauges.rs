//! What a NAND drive counts, and what it reports of itself.
//!
//! Energy is idle power and so many joules for each sense, program, erase and byte over the link; leaves out that a sense
//! or program of few bits a cell takes less.

use super::Nand;
use crate::device::{Gauge, Gauges};
use crate::ftl::{Traffic, UNIT};
use crate::time::{Span, Time};

/// Bytes and counts for gauges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) host_read: u64,
    pub(super) host_written: u64,
    /// Units let into the buffer that were not there already.
    pub(super) units_taken: u64,
    /// Those that were programmed beside them to complete a page.
    pub(super) units_padded: u64,
    pub(super) senses: u64,
    pub(super) programs: u64,
    pub(super) medium_read: u64,
    pub(super) link_bytes: u64,
    /// Time the link took for data that have come in.
    pub(super) link_in: Span,
}

impl Nand {
    /// SMART's Percentage Used, with fractions: mean erases of a block against the rated ones.
    pub(super) fn percentage_used(&self) -> f64 {
        let erases = self.ftl.traffic().erased - self.baseline.erased;
        let blocks = f64::from(self.shape.dies) * f64::from(self.shape.blocks);
        let cycles = erases as f64 / blocks;
        self.config.percentage_used_at_start + 100.0 * cycles / f64::from(self.config.rated_cycles)
    }

    /// Reports all gauges.
    pub(super) fn report(&self, now: Time, gauges: &mut dyn Gauges) {
        let traffic = self.ftl.traffic();
        let programmed = |traffic: &Traffic| traffic.host + traffic.moved + traffic.padded;
        let written = programmed(traffic) - programmed(&self.baseline);
        let erases = traffic.erased - self.baseline.erased;
        let own = self.tally.units_taken + self.tally.units_padded;
        let caused = own as f64 + self.ftl.charged() - self.charged_before;
        let unit = f64::from(UNIT);
        let power = &self.config.power;
        let energy = power.idle * now.seconds()
            + power.read * self.tally.senses as f64
            + power.program * self.tally.programs as f64
            + power.erase * erases as f64
            + power.per_byte * self.tally.link_bytes as f64;
        let dies = f64::from(self.shape.dies);
        let busy: f64 = self.dies.iter().map(|die| die.busy_seconds(now)).sum();
        gauges.gauge(Gauge::HostBytesRead, self.tally.host_read as f64);
        gauges.gauge(Gauge::HostBytesWritten, self.tally.host_written as f64);
        gauges.gauge(Gauge::MediumBytesRead, self.tally.medium_read as f64);
        gauges.gauge(Gauge::MediumBytesWritten, written as f64 * unit);
        gauges.gauge(Gauge::CausedBytesWritten, caused * unit);
        gauges.gauge(
            Gauge::Erases,
            erases as f64 * f64::from(self.config.geometry.planes),
        );
        gauges.gauge(Gauge::EnergyJoules, energy);
        gauges.gauge(
            Gauge::ControllerBusySeconds,
            self.controller.busy(now).seconds(),
        );
        gauges.gauge(
            Gauge::LinkBusySeconds,
            self.tally
                .link_in
                .seconds()
                .max(self.link_out.busy(now).seconds()),
        );
        gauges.gauge(Gauge::MediumBusySeconds, busy / dies);
        gauges.gauge(Gauge::QueueDepth, f64::from(self.depth));
        gauges.gauge(Gauge::PercentageUsed, self.percentage_used());
        gauges.gauge(Gauge::BufferedBytes, self.buffer.used() as f64 * unit);
        gauges.gauge(Gauge::FreeShare, self.ftl.free_share());
    }
}
