//! Combined results of one load with several seeds: the figures that are compared with limits, each with its interval,
//! and what the slowest I/Os waited for.

use model::{Gauge, Part, Span};
use serde::Serialize;
use statistics::{AnatomyBands, Histogram, Measured};
use tier::DriveConfig;

use super::load::Height;
use super::slo::{Limit, LimitMetric, LimitScope};
use crate::review::measure::{Keep, measurement};
use crate::review::results::{Measurement, rounded};
use lab::{Outcome, ThreadOutcome};

/// One direction over all threads and runs.
#[derive(Clone, Debug, Default)]
struct DirectionTally {
    latency: Histogram,
    bands: AnatomyBands,
}

/// A figure with its 95 % confidence interval, if known.
type Estimate = (f64, Option<[f64; 2]>);

type DirectionSelector = fn(&ThreadOutcome) -> &Measured;

/// Directions that have latencies, in the order of [`Tally::flows`].
const DIRECTIONS: [(LimitScope, &str, DirectionSelector); 3] = [
    (LimitScope::Read, "reads", |thread| &thread.read),
    (LimitScope::Write, "writes", |thread| &thread.write),
    (LimitScope::Sync, "syncs", |thread| &thread.sync),
];

impl DirectionTally {
    fn from_runs(runs: &[&Outcome], direction: DirectionSelector) -> DirectionTally {
        let mut all = DirectionTally::default();
        for (index, run) in runs.iter().enumerate() {
            let mut latency = Histogram::default();
            for measured in run.threads.iter().map(direction) {
                latency.merge(&measured.latency);
                all.bands.merge(&measured.bands);
            }
            match index {
                0 => all.latency = latency,
                _ => all.latency.follow(&latency),
            }
        }
        all
    }

    fn figure(&self, figure: LimitMetric) -> Option<Estimate> {
        match figure {
            LimitMetric::Percentile(percent) => {
                let known = self.latency.percentile_interval(percent)?;
                let ends = [known.low.us(), known.high.us()];
                Some((known.value.us(), Some(ends)))
            }
            _ if self.latency.count() == 0 => None,
            _ => {
                let mean = self.latency.mean_ns() / 1e3;
                let error = self.latency.mean_error();
                // No latency is below the lowest one, so the mean is not either.
                let lowest = self.latency.quantile(0.0).map_or(0.0, Span::us).min(mean);
                let ends =
                    error.map(|error| [(mean * (1.0 - error)).max(lowest), mean * (1.0 + error)]);
                Some((mean, ends))
            }
        }
    }
}

/// A figure that is compared with a limit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reading {
    /// Text of the limit.
    pub limit: String,
    /// Unit of the limit.
    pub unit: &'static str,
    /// The figure in that unit; null if unknown (too few I/Os, or no rating).
    pub value: Option<f64>,
    /// 95 % confidence interval, if known.
    pub interval: Option<[f64; 2]>,
    /// Whether it meets the limit; null if unknown.
    pub met: Option<bool>,
    /// Margin as a share of the bound, negative outside.
    pub room: Option<f64>,
    /// Whether it is a latency.
    #[serde(skip)]
    pub is_latency: bool,
    /// Whether it is known without a run.
    #[serde(skip)]
    pub is_exact: bool,
    /// For a latency without a direction: the slowest direction.
    pub slowest: Option<&'static str>,
    /// For an unknown latency: the direction with too few I/Os.
    pub too_few: Option<&'static str>,
}

impl Reading {
    /// Returns the comparison of a figure that no run has with its limit.
    pub(super) fn of_value(limit: &Limit, value: f64) -> Reading {
        Reading {
            is_exact: true,
            ..Reading::new(limit, Some(value))
        }
    }

    fn new(limit: &Limit, value: Option<f64>) -> Reading {
        Reading {
            limit: limit.text.clone(),
            unit: limit.unit,
            value: value.map(rounded),
            interval: None,
            met: value.map(|value| limit.holds(value)),
            room: value.map(|value| rounded(limit.room(value))),
            is_latency: limit.figure.is_latency(),
            is_exact: false,
            slowest: None,
            too_few: None,
        }
    }
}

/// Main latency part of the slowest I/Os of a direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wait {
    /// `reads`, `writes` or `syncs`.
    pub direction: &'static str,
    /// Percentile at and above which I/Os are counted.
    pub from_percent: f64,
    /// The latency part that took most of their time.
    pub part: &'static str,
    /// Share of that part, 0 to 1.
    pub share: f64,
    /// Place of the part: `host`, `link`, `controller`, `dies`, `pool` or `limit`.
    pub place: &'static str,
}

/// Combined runs of one load.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Figures as in a review.
    pub measurement: Measurement,
    flows: [DirectionTally; 3],
}

impl Tally {
    /// Combines these runs of one load.
    pub fn from_runs(runs: &[&Outcome]) -> Tally {
        Tally {
            measurement: measurement(runs, Keep::default()),
            flows: DIRECTIONS.map(|(_, _, direction)| DirectionTally::from_runs(runs, direction)),
        }
    }

    /// Returns the IOPS of reads and writes.
    pub fn iops(&self) -> f64 {
        self.measurement.iops()
    }

    /// Returns the figure of a limit; `years` is the drive's known lifetime at this load.
    pub fn reading(&self, limit: &Limit, years: Option<f64>) -> Reading {
        let mut slowest = None;
        let figure = match limit.figure {
            LimitMetric::Mean | LimitMetric::Percentile(_) => {
                self.slowest(limit).map(|(name, figure)| {
                    slowest = (limit.of == LimitScope::All).then_some(name);
                    figure
                })
            }
            LimitMetric::Iops => Some((self.rate(limit.of, |one| one.iops), None)),
            LimitMetric::Bandwidth => Some((self.rate(limit.of, |one| one.mb_s), None)),
            LimitMetric::Watts => self.measurement.watts.map(|watts| (watts, None)),
            LimitMetric::Years => years.map(|years| (years, None)),
            // No run has it.
            LimitMetric::Capacity => None,
        };
        let (value, interval) = figure.unzip();
        Reading {
            interval: interval.flatten().map(|ends| ends.map(rounded)),
            slowest,
            too_few: self.too_few(limit),
            ..Reading::new(limit, value)
        }
    }

    /// Returns a latency of one direction in microseconds; `None` without such I/Os, or with too few for a percentile.
    pub fn latency_us(&self, of: LimitScope, figure: LimitMetric) -> Option<f64> {
        let at = DIRECTIONS.iter().position(|(known, ..)| *known == of)?;
        let (value, _) = self.flows[at].figure(figure)?;
        Some(rounded(value))
    }

    fn rate(
        &self,
        of: LimitScope,
        figure: fn(&crate::review::results::DirectionResult) -> f64,
    ) -> f64 {
        let reads = self.measurement.read.as_ref().map_or(0.0, figure);
        let writes = self.measurement.write.as_ref().map_or(0.0, figure);
        match of {
            LimitScope::All => reads + writes,
            LimitScope::Read => reads,
            LimitScope::Write | LimitScope::Sync => writes,
        }
    }

    /// Returns the directions with I/Os that a latency's limit applies to.
    fn wanted(&self, limit: &Limit) -> impl Iterator<Item = (&'static str, &DirectionTally)> {
        let of_limit = limit.of;
        let all = DIRECTIONS.iter().zip(&self.flows);
        let wanted = all.filter(move |((of, ..), flow)| {
            (of_limit == LimitScope::All || of_limit == *of) && flow.latency.count() > 0
        });
        wanted.map(|((_, name, _), flow)| (*name, flow))
    }

    /// Returns the first direction that has too few I/Os for a latency's limit.
    fn too_few(&self, limit: &Limit) -> Option<&'static str> {
        let mut wanted = self.wanted(limit).filter(|_| limit.figure.is_latency());
        let found = wanted.find(|(_, flow)| flow.figure(limit.figure).is_none());
        found.map(|(name, _)| name)
    }

    /// Returns the largest figure among the directions that a latency's limit applies to; `None` if one of them has
    /// too few I/Os.
    fn slowest(&self, limit: &Limit) -> Option<(&'static str, Estimate)> {
        let mut worst: Option<(&str, Estimate)> = None;
        for (name, flow) in self.wanted(limit) {
            let figure = flow.figure(limit.figure)?;
            if worst.is_none_or(|(_, (value, _))| figure.0 > value) {
                worst = Some((name, figure));
            }
        }
        worst
    }

    /// Returns what the I/Os that exceed a limit waited for: those of its slowest direction, at and above its
    /// percentile.
    pub fn wait(&self, limit: &Limit) -> Option<Wait> {
        let (direction, _) = self.slowest(limit)?;
        let index = DIRECTIONS
            .iter()
            .position(|(_, name, _)| *name == direction)?;
        let from = match limit.figure {
            LimitMetric::Percentile(percent) => percent,
            _ => 0.0,
        };
        let bands = self.flows[index].bands.percentile_bands(&[from, 100.0]);
        let band = bands.first().filter(|band| band.count > 0)?;
        let all: f64 = band.mean_ns.iter().sum();
        let parts = Part::ALL.iter().zip(band.mean_ns);
        let (part, most) = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Wait {
            direction,
            from_percent: from,
            part: part.name(),
            share: rounded(most / all.max(1e-9)),
            place: place(*part),
        })
    }

    /// Returns the host's write rate in bytes per second.
    pub fn written_bytes_a_second(&self) -> f64 {
        let writes = self.measurement.write.as_ref();
        writes.map_or(0.0, |writes| writes.mb_s * 1e6)
    }
}

/// Replaces sums of gauges over several drives: the busiest member of a pool, and the mean of a RAID-0's drives.
pub(super) fn tell_busiest(
    measurement: &mut Measurement,
    outcomes: &[&Outcome],
    drive: &DriveConfig,
) {
    let members = outcomes.first().map_or(0, |outcome| outcome.members.len());
    let striped = match drive {
        DriveConfig::Raid0(config) => config.members.len().max(1) as f64,
        _ => 1.0,
    };
    let seconds: f64 = outcomes.iter().map(|one| one.counted.seconds()).sum();
    let of_member = |member: usize, busy: Gauge| {
        let gauges = outcomes.iter().flat_map(|one| &one.members[member]);
        let sum: f64 = gauges
            .filter(|(gauge, _)| *gauge == busy)
            .map(|(_, value)| value)
            .sum();
        sum / seconds.max(1e-9)
    };
    for (share, busy) in [
        (
            &mut measurement.controller_busy,
            Gauge::ControllerBusySeconds,
        ),
        (&mut measurement.link_busy, Gauge::LinkBusySeconds),
        (&mut measurement.medium_busy, Gauge::MediumBusySeconds),
    ] {
        if let Some(all) = share {
            let most = (0..members)
                .map(|member| of_member(member, busy))
                .reduce(f64::max);
            *all = rounded(most.unwrap_or(*all / striped));
        }
    }
}

/// Returns the IOPS of these runs at a height. In an open loop, the sum of the threads' own rates is used. Threads
/// start one after another, and in a short run these delays are a notable share of the time from the first start to
/// the last completion. A rate over that whole time would be below the arrival rate.
pub(super) fn rate_at(height: Height, outcomes: &[&Outcome]) -> f64 {
    match height {
        Height::Arrivals(_) => own_rates(outcomes),
        Height::InFlight(_) => measurement(outcomes, Keep::default()).iops(),
    }
}

/// Returns the sum of the threads' rates, each over the thread's own time; the mean of the runs.
pub(super) fn own_rates(outcomes: &[&Outcome]) -> f64 {
    let threads = outcomes.iter().flat_map(|outcome| &outcome.threads);
    let rates = threads
        .flat_map(|thread| [&thread.read, &thread.write])
        .filter(|one| one.over != Span::ZERO)
        .map(|one| one.ios as f64 / one.over.seconds());
    rates.sum::<f64>() / outcomes.len().max(1) as f64
}

/// Utilisation at and above which a part is saturated.
const FULL: f64 = 0.95;

/// Returns what is saturated, if anything: the busiest of `controller`, `link`, `dies` and the `host`'s cores with
/// this number of threads, and its utilisation.
pub fn busiest(measured: &Measurement, threads: u32) -> Option<(&'static str, f64)> {
    let host = measured
        .host_cores
        .map(|cores| cores / f64::from(threads.max(1)));
    let all = [
        ("controller", measured.controller_busy),
        ("link", measured.link_busy),
        ("dies", measured.medium_busy),
        ("host", host),
    ];
    let full = all
        .into_iter()
        .filter_map(|(place, busy)| Some((place, busy?)));
    full.filter(|(_, busy)| *busy >= FULL)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns the place in which a part of the latency is spent.
pub(super) fn place(part: Part) -> &'static str {
    match part {
        Part::ThreadBusy | Part::HostSubmission | Part::QueueSlot | Part::HostCompletion => "host",
        Part::Tier | Part::Congestion | Part::Network => "pool",
        Part::Link | Part::Transfer => "link",
        Part::Controller => "controller",
        Part::Throttle => "limit",
        Part::Collision
        | Part::BehindRead
        | Part::BehindProgram
        | Part::BehindErase
        | Part::BehindCollection
        | Part::BehindRefresh
        | Part::Medium
        | Part::BufferFull => "dies",
    }
}
