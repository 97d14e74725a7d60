//! Results of one pool member in a run. Not included: its latencies, which are in the latency breakdown of the pool.

use model::{Gauge, Span};

/// Results of a pool member in the counted part of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberOutcome {
    /// Bytes read from the member.
    pub bytes_read: f64,
    /// Bytes written to the member.
    pub bytes_written: f64,
    /// Busy share of its busiest part, 0 to 1: controller, link or medium (mean over the dies).
    pub busy: f64,
    /// Bytes programmed into its medium per byte written to the member; `None` if nothing was written or it does not
    /// report this.
    pub write_amplification: Option<f64>,
    /// Mean power in watts.
    pub watts: Option<f64>,
    /// Percentage of its rated endurance used at the end.
    pub percentage_used: Option<f64>,
}

impl MemberOutcome {
    /// Computes the results from gauges over a time of length `counted`.
    pub(crate) fn from_gauges(gauges: &[(Gauge, f64)], counted: Span) -> MemberOutcome {
        let known = |wanted: Gauge| {
            let found = gauges.iter().find(|(gauge, _)| *gauge == wanted);
            found.map(|&(_, value)| value)
        };
        let seconds = counted.seconds().max(1e-12);
        let busy = [
            Gauge::ControllerBusySeconds,
            Gauge::LinkBusySeconds,
            Gauge::MediumBusySeconds,
        ];
        let busy = busy.into_iter().filter_map(known).fold(0.0, f64::max);
        let bytes_written = known(Gauge::BackBytesWritten).unwrap_or(0.0);
        MemberOutcome {
            bytes_read: known(Gauge::BackBytesRead).unwrap_or(0.0),
            bytes_written,
            busy: (busy / seconds).min(1.0),
            write_amplification: known(Gauge::CausedBytesWritten)
                .filter(|_| bytes_written > 0.0)
                .map(|caused| caused / bytes_written),
            watts: known(Gauge::EnergyJoules).map(|joules| joules / seconds),
            percentage_used: known(Gauge::PercentageUsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_part_counts_and_nothing_is_busier_than_always() {
        let gauges = [
            (Gauge::BackBytesWritten, 4096.0),
            (Gauge::CausedBytesWritten, 12_288.0),
            (Gauge::EnergyJoules, 14.0),
            (Gauge::LinkBusySeconds, 0.5),
            (Gauge::MediumBusySeconds, 1.5),
        ];
        let two = MemberOutcome::from_gauges(&gauges, Span::from_ms(2000));
        assert_eq!(two.busy, 0.75);
        assert_eq!(two.write_amplification, Some(3.0));
        assert_eq!(two.watts, Some(7.0));
        assert_eq!(two.percentage_used, None);
        assert_eq!(
            MemberOutcome::from_gauges(&gauges, Span::from_ms(1000)).busy,
            1.0
        );
        let reads = MemberOutcome::from_gauges(&gauges[1..], Span::from_ms(1000));
        assert_eq!(reads.write_amplification, None);
    }
}
