//! Gauges of members as reported for the whole pool: commands to members are not commands of the host.

use model::device::{Gauge, Gauges};

/// Forwards the gauges of a member, with its bytes under separate names and without its queue depth.
pub(super) struct MemberGauges<'a>(pub(super) &'a mut dyn Gauges);

impl Gauges for MemberGauges<'_> {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        let gauge = match gauge {
            Gauge::HostBytesRead => Gauge::BackBytesRead,
            Gauge::HostBytesWritten => Gauge::BackBytesWritten,
            Gauge::QueueDepth => return,
            other => other,
        };
        self.0.gauge(gauge, value);
    }

    fn enter(&mut self, member: u16) {
        self.0.enter(member);
    }

    fn leave(&mut self) {
        self.0.leave();
    }
}
