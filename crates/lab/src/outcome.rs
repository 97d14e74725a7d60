//! What came out of a scenario, whatever its work was.

use model::{Gauge, Span, Time};
use statistics::{Histogram, ThreadOutcome};

use crate::act::tested::Tested;
use crate::gauges::OverTime;
use crate::member::Member;
use crate::phases::Phase;

/// What came out of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By thread, in the order of jobs and copies; a trace has all of its threads as one, and Aerospike's test none.
    pub threads: Vec<ThreadOutcome>,
    /// When the last I/O completed.
    pub end: Time,
    /// Cumulative gauges: growth over the counted part of the run. Levels: at its end.
    pub gauges: Vec<(Gauge, f64)>,
    /// The same, by member of a pool; of a drive it is empty. What members were asked is [`Gauge::BackBytesRead`] and
    /// [`Gauge::BackBytesWritten`].
    pub members: Vec<Vec<(Gauge, f64)>>,
    /// Gauges over time, from the beginning of the run on, if it has series ([`crate::Scenario::series_every`]).
    pub over_time: OverTime,
    /// Length of the counted part of the run.
    pub counted: Span,
    /// Whether it was stopped before its end ([`crate::GoOn`]).
    pub stopped: bool,
    /// Between the faults of [`crate::Scenario::faults`]; empty without any.
    pub phases: Vec<Phase>,
    /// What only this kind of work has.
    pub of: Of,
}

/// What only one kind of work has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Of {
    /// Jobs.
    #[default]
    Jobs,
    /// A trace.
    Trace(Box<Replayed>),
    /// Aerospike's test.
    Act(Box<Tested>),
}

/// What only a replayed trace has. Its one thread has no latency but [`statistics::Measured::latency`] and
/// [`statistics::Measured::completion`] (which are the same); it counts from the moment a request arrives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Response times as recorded, reads and writes; empty where the trace has none.
    pub recorded: [Histogram; 2],
    /// Requests whose addresses were folded into the drive.
    pub wrapped: u64,
    /// Reads and writes of no bytes, which were left out.
    pub empty: u64,
    /// Requests that were widened to whole blocks.
    pub widened: u64,
}

impl Outcome {
    /// A gauge of the drive or host, if it was reported.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges
            .iter()
            .find(|(name, _)| *name == gauge)
            .map(|&(_, value)| value)
    }

    /// What each member of a pool did; of a drive it is empty.
    pub fn members(&self) -> Vec<Member> {
        let members = self.members.iter();
        members.map(|it| Member::of(it, self.counted)).collect()
    }

    /// What only a replayed trace has; `None` for other work.
    pub fn replayed(&self) -> Option<&Replayed> {
        match &self.of {
            Of::Trace(replayed) => Some(replayed),
            Of::Jobs | Of::Act(_) => None,
        }
    }

    /// What only Aerospike's test has; `None` for other work.
    pub fn tested(&self) -> Option<&Tested> {
        match &self.of {
            Of::Act(tested) => Some(tested),
            Of::Jobs | Of::Trace(_) => None,
        }
    }

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
