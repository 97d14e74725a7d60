//! Result of a scenario, for any kind of work.

use model::{Gauge, Span, Time};
use statistics::{Histogram, ThreadOutcome};
use workload::replay::SingleLatencies;

use crate::act::tested::ActResult;
use crate::faults::Rebuild;
use crate::gauges::OverTime;
use crate::member::MemberOutcome;
use crate::phases::Phase;

/// Result of running one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Results by thread, in the order of jobs and copies. A trace has one entry for all of its threads, ACT has
    /// none.
    pub threads: Vec<ThreadOutcome>,
    /// Completion time of the last I/O.
    pub end: Time,
    /// Cumulative gauges: growth over the counted part of the run. Levels: value at its end.
    pub gauges: Vec<(Gauge, f64)>,
    /// Gauges by member of a pool; empty for a drive. I/O sent to members is in [`Gauge::BackBytesRead`] and
    /// [`Gauge::BackBytesWritten`].
    pub members: Vec<Vec<(Gauge, f64)>>,
    /// Gauges over time, from the start of the run, if series were requested ([`crate::Scenario::series_every`]).
    pub over_time: OverTime,
    /// Length of the counted part of the run.
    pub counted: Span,
    /// Whether the run was stopped before its end ([`crate::ProgressCallback`]).
    pub stopped: bool,
    /// Phases between the faults of [`crate::Scenario::faults`]; empty without faults.
    pub phases: Vec<Phase>,
    /// Rebuilds of pool members that returned or were replaced ([`crate::Scenario::faults`]).
    pub rebuilds: Vec<Rebuild>,
    /// Results that only this kind of work has.
    pub of: OutcomeDetail,
}

/// Results that only one kind of work has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutcomeDetail {
    /// Jobs have no further results.
    #[default]
    Jobs,
    /// Results of a replayed trace.
    Trace(Box<ReplayResult>),
    /// Results of ACT.
    Act(Box<ActResult>),
}

/// Results that only a replayed trace has. Its one thread has no latencies except [`statistics::Measured::latency`]
/// and [`statistics::Measured::completion`], which are equal and count from the arrival of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayResult {
    /// Recorded response times, for reads and writes; empty if the trace has none.
    pub recorded: [Histogram; 2],
    /// Simulated latencies compared one by one with the recorded ones, for reads and writes.
    pub singles: [SingleLatencies; 2],
    /// Number of requests whose addresses were folded into the drive.
    pub wrapped: u64,
    /// Number of reads and writes of zero bytes, which were skipped.
    pub empty: u64,
    /// Number of requests that were extended to whole blocks.
    pub widened: u64,
}

impl Outcome {
    /// Returns a gauge of the drive or host, if it was reported.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges
            .iter()
            .find(|(name, _)| *name == gauge)
            .map(|&(_, value)| value)
    }

    /// Returns the results of each pool member; empty for a drive.
    pub fn members(&self) -> Vec<MemberOutcome> {
        let members = self.members.iter();
        members
            .map(|it| MemberOutcome::from_gauges(it, self.counted))
            .collect()
    }

    /// Returns the results that only a replayed trace has; `None` for other work.
    pub fn replayed(&self) -> Option<&ReplayResult> {
        match &self.of {
            OutcomeDetail::Trace(replayed) => Some(replayed),
            OutcomeDetail::Jobs | OutcomeDetail::Act(_) => None,
        }
    }

    /// Returns the results that only ACT has; `None` for other work.
    pub fn tested(&self) -> Option<&ActResult> {
        match &self.of {
            OutcomeDetail::Act(tested) => Some(tested),
            OutcomeDetail::Jobs | OutcomeDetail::Trace(_) => None,
        }
    }

    /// Returns the bytes programmed into the medium per byte that the host wrote; `None` if the host wrote nothing.
    /// Garbage collection counts against the writes that use the freed space.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.gauge(Gauge::HostBytesWritten)?;
        let caused = self.gauge(Gauge::CausedBytesWritten)?;
        (written > 0.0).then(|| caused / written)
    }

    /// Returns the mean power in watts over the counted part.
    pub fn watts(&self) -> Option<f64> {
        self.per_second(Gauge::EnergyJoules)
    }

    /// Returns the mean utilisation for a gauge of busy seconds, 0 to 1 (for [`Gauge::HostCpuSeconds`] the mean
    /// number of busy cores).
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
