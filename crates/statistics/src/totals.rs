//! Figures of a whole run from the gauges of its devices.

use model::Gauge;

use crate::Outcome;

impl Outcome {
    /// Bytes that the medium programs for each byte the host wrote, collection counted against the writes that use the
    /// room it makes; `None` if it wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.gauge(Gauge::HostBytesWritten)?;
        let caused = self.gauge(Gauge::CausedBytesWritten)?;
        (written > 0.0).then(|| caused / written)
    }

    /// Mean power in watts over the counted part.
    pub fn watts(&self) -> Option<f64> {
        self.per_second(Gauge::EnergyJoules)
    }

    /// Mean utilisation of what a gauge of busy seconds counts, 0 to 1 (for [`Gauge::HostCpuSeconds`] the mean number
    /// of busy cores).
    pub fn utilisation(&self, busy: Gauge) -> Option<f64> {
        self.per_second(busy)
    }

    fn per_second(&self, gauge: Gauge) -> Option<f64> {
        let seconds = self.counted.seconds();
        (seconds > 0.0).then(|| Some(self.gauge(gauge)? / seconds))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    #[test]
    fn totals_come_from_gauges() {
        let outcome = Outcome {
            gauges: vec![
                (Gauge::HostBytesWritten, 100.0),
                (Gauge::MediumBytesWritten, 900.0),
                (Gauge::CausedBytesWritten, 250.0),
                (Gauge::EnergyJoules, 20.0),
                (Gauge::LinkBusySeconds, 1.5),
            ],
            counted: Span::from_ms(2000),
            ..Outcome::default()
        };
        assert_eq!(outcome.write_amplification(), Some(2.5));
        assert_eq!(outcome.watts(), Some(10.0));
        assert_eq!(outcome.utilisation(Gauge::LinkBusySeconds), Some(0.75));
        assert_eq!(outcome.utilisation(Gauge::MediumBusySeconds), None);
        assert_eq!(Outcome::default().watts(), None);
    }
}
