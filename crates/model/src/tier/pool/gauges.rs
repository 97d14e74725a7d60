//! What members say of themselves, as it counts for the whole: what they are asked is not what the host asked.

use crate::device::{Gauge, Gauges};

/// Passes on what a member reports, with its bytes under names of their own and without its depth.
pub(super) struct Back<'a>(pub(super) &'a mut dyn Gauges);

impl Gauges for Back<'_> {
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
