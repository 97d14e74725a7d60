//! Gauges that devices report: for the counted part of a run, in total and by member, and over time.

use std::collections::BTreeMap;

use model::engine::{self, Workload};
use model::{Device, Gauge, Gauges, Span, Time};

/// Sums of the reported values, and the number of reports, in the order of [`Gauge`].
pub(crate) type Sums = BTreeMap<Gauge, (f64, u32)>;

/// Values that devices report: in total, and for each member of a pool.
#[derive(Clone, Default)]
pub(crate) struct Readings {
    whole: Sums,
    members: Vec<Sums>,
    /// The member that is reporting.
    inside: Option<usize>,
}

impl Readings {
    pub(crate) fn whole(&self) -> &Sums {
        &self.whole
    }
}

impl Gauges for Readings {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        let member = self.inside.and_then(|index| self.members.get_mut(index));
        for sums in [Some(&mut self.whole), member].into_iter().flatten() {
            let entry = sums.entry(gauge).or_default();
            entry.0 += value;
            entry.1 += 1;
        }
    }

    fn enter(&mut self, member: u16) {
        let index = usize::from(member);
        if self.members.len() <= index {
            self.members.resize_with(index + 1, Sums::new);
        }
        self.inside = Some(index);
    }

    fn leave(&mut self) {
        self.inside = None;
    }
}

pub(crate) fn read_gauges<D: Device>(device: &D, now: Time) -> Readings {
    let mut readings = Readings::default();
    device.inspect(now, &mut readings);
    readings
}

pub(crate) fn by_member(before: &Readings, after: &Readings) -> Vec<Vec<(Gauge, f64)>> {
    let pairs = before.members.iter().zip(&after.members);
    pairs.map(|(before, after)| growth(before, after)).collect()
}

pub(crate) fn growth(before: &Sums, after: &Sums) -> Vec<(Gauge, f64)> {
    after
        .iter()
        .map(|(&gauge, &(sum, count))| {
            let since = || sum - before.get(&gauge).map_or(0.0, |&(sum, _)| sum);
            let value = match gauge {
                // For several parts the mean, so that a busy share does not exceed 1.
                Gauge::ControllerBusySeconds
                | Gauge::LinkBusySeconds
                | Gauge::MediumBusySeconds => since() / f64::from(count),
                _ if gauge.cumulative() => since(),
                Gauge::PercentageUsed | Gauge::FreeShare | Gauge::Congestion | Gauge::Celsius => {
                    sum / f64::from(count)
                }
                _ => sum,
            };
            (gauge, value)
        })
        .collect()
}

/// Gauges over time. Each list has one entry per interval; the end of the run may cut the last interval short.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Length of an interval; zero if no series was requested.
    pub every: Span,
    /// By gauge: for cumulative gauges the growth in each interval, for levels the value at its end.
    pub gauges: Vec<(Gauge, Vec<f64>)>,
}

impl OverTime {
    /// Returns the series of a gauge, if it was reported.
    pub fn series(&self, gauge: Gauge) -> Option<&[f64]> {
        let found = self.gauges.iter().find(|(name, _)| *name == gauge);
        found.map(|(_, values)| &values[..])
    }
}

/// Runs a device and reads its gauges at every multiple of an interval.
pub(crate) struct Sampler {
    next: Time,
    before: Readings,
    taken: OverTime,
}

impl Sampler {
    /// Starts at the beginning of a run; reads nothing if `every` is zero.
    pub(crate) fn new<D: Device>(every: Span, device: &D) -> Sampler {
        let none = every == Span::ZERO;
        Sampler {
            next: if none {
                Time::NEVER
            } else {
                Time::ZERO + every
            },
            before: match none {
                true => Readings::default(),
                false => read_gauges(device, Time::ZERO),
            },
            taken: OverTime {
                every,
                gauges: Vec::new(),
            },
        }
    }

    /// As [`engine::run`], whose result does not depend on where the run is divided.
    pub(crate) fn run<D: Device, W: Workload>(
        &mut self,
        device: &mut D,
        workload: &mut W,
        start: Time,
        until: Time,
    ) -> Time {
        let mut now = start;
        while self.next <= until {
            now = engine::run(device, workload, now, self.next);
            if workload.finished() {
                return now;
            }
            let readings = read_gauges(device, self.next);
            self.take(readings);
            self.next += self.taken.every;
        }
        engine::run(device, workload, now, until)
    }

    fn take(&mut self, now: Readings) {
        let lists = &mut self.taken.gauges;
        for (gauge, value) in growth(&self.before.whole, &now.whole) {
            match lists.iter_mut().find(|(known, _)| *known == gauge) {
                Some((_, values)) => values.push(value),
                None => lists.push((gauge, vec![value])),
            }
        }
        self.before = now;
    }

    /// Ends the series with the values at the end of the run.
    pub(crate) fn end(mut self, now: &Readings) -> OverTime {
        if self.taken.every > Span::ZERO {
            self.take(now.clone());
        }
        self.taken
    }
}
