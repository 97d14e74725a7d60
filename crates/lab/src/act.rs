//! One run of ACT on a drive behind a host path; its verdict by the test's rules; the score, which is the highest load
//! that passes; and the load at which a given share of reads is slow.
//!
//! The rules (S4-142 to S4-144): in no slice of the test may 5 % of reads take 1 ms or more, nor 1 % take 8 ms, nor
//! 0.1 % take 64 ms. Beside these a run fails if it does not do the work it stands for: large reads, large writes or
//! requests at less than 99 % of their rate. The program itself sees that only when a thread is ten seconds late, which
//! a run of seconds never is; version 3.0 did not look at all.

use std::fmt;
use std::ops::ControlFlow;

use model::host::{Engine, HostConfig, ProgramCosts};
use model::media::{DriveConfig, Precondition};
use model::{Device, Drive, Gauge, Span, Time};

use super::play::{on_cores, play, with_drive};
use statistics::{AnatomyBands, Histogram};
use text::digits::digits;
use text::problem::Problems;
use workload::act::{Act, Buckets, Config, Interval, KINDS, Kind, Stop};

/// Most reads, in percent, that may take 2^n milliseconds or more: (n, percent).
pub const LIMITS: [(usize, f64); 3] = [(0, 5.0), (3, 1.0), (6, 0.1)];

/// The part of a rate that counts as keeping it up.
const KEPT_UP: f64 = 0.99;

/// The highest load that is tried.
const HIGHEST_LOAD: u32 = 10_000;

/// All that a run depends on: the same plan gives the same [`Tested`].
#[derive(Clone, Debug, PartialEq)]
pub struct ActPlan {
    /// What messages call the drive.
    pub name: String,
    /// The drive.
    pub drive: DriveConfig,
    /// Its state at the start.
    pub state: Precondition,
    /// The host it is in, with all cores that ACT's threads are spread over.
    pub host: HostConfig,
    /// What ACT costs there.
    pub costs: ProgramCosts,
    /// The test.
    pub config: Config,
    /// Run before counting begins.
    pub warm_up: Span,
    /// The verdict looks at slices of this length; the whole run where that is shorter.
    pub slice: Span,
    /// Whether large blocks may come at less than their rate: version 3.0, of 2017, did not look.
    pub latency_only: bool,
    /// Feeds every random stream.
    pub seed: u64,
}

impl ActPlan {
    /// The same at another load.
    pub fn at_load(&self, load: f64) -> ActPlan {
        ActPlan {
            config: self.config.at_load(load),
            ..self.clone()
        }
    }
}

/// What came out of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// The test.
    pub config: Config,
    /// By [`Kind`].
    pub latencies: [Histogram; KINDS],
    /// Where the time of reads went, by band of latency; time in ACT's queues is [`model::Part::QueueSlot`].
    pub bands: AnatomyBands,
    /// Report intervals, the last perhaps unfinished.
    pub intervals: Vec<Interval>,
    /// Requests made in the counted time.
    pub requests: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Length of the counted time.
    pub counted: Span,
    /// Why the test ended early, and when after counting began.
    pub stopped: Option<(Span, Stop)>,
    /// Growth of gauges over the counted time, or their level at its end.
    pub gauges: Vec<(Gauge, f64)>,
    /// Length of a slice.
    pub slice: Span,
    /// As in [`ActPlan`].
    pub latency_only: bool,
}

/// Why a run fails.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// In some slice too many reads were this slow.
    Slow {
        /// Milliseconds.
        ms: u64,
        /// Percent that took as long or longer.
        percent: f64,
    },
    /// I/Os of this kind came at less than their rate.
    Behind {
        /// Which.
        kind: Kind,
        /// A second.
        achieved: f64,
        /// A second.
        asked: f64,
    },
    /// Fewer requests were made than asked for: ACT's host is too slow, not the drive.
    Generator {
        /// A second.
        achieved: f64,
        /// A second.
        asked: f64,
    },
    /// ACT ended the test.
    Stopped(Stop),
    /// I/Os failed.
    Errors(u64),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Slow { ms, percent } => write!(f, "{percent:.2} % of reads over {ms} ms"),
            Reason::Behind {
                kind,
                achieved,
                asked,
            } => {
                let what = match kind {
                    Kind::LargeRead => "large reads",
                    Kind::LargeWrite => "large writes",
                    Kind::Write => "writes",
                    Kind::Read | Kind::RawRead => "reads",
                };
                let (achieved, asked) = (digits(*achieved), digits(*asked));
                write!(f, "{achieved} {what}/s of {asked}")
            }
            Reason::Generator { achieved, asked } => {
                let (achieved, asked) = (digits(*achieved), digits(*asked));
                write!(
                    f,
                    "ACT made {achieved} requests/s of {asked}: the host is the limit"
                )
            }
            Reason::Stopped(Stop::TooManyQueued) => write!(f, "too many requests in queues"),
            Reason::Stopped(Stop::RequestsLag) => write!(f, "service threads cannot keep up"),
            Reason::Stopped(Stop::LargeReadsLag) => write!(f, "large reads cannot keep up"),
            Reason::Stopped(Stop::LargeWritesLag) => write!(f, "large writes cannot keep up"),
            Reason::Errors(count) => write!(f, "{count} I/Os failed"),
        }
    }
}

impl Tested {
    /// Latencies of one kind.
    pub fn latency(&self, kind: Kind) -> &Histogram {
        &self.latencies[kind as usize]
    }

    /// I/Os of one kind a second.
    pub fn rate(&self, kind: Kind) -> f64 {
        self.latency(kind).count() as f64 / self.counted.seconds().max(1e-9)
    }

    /// I/Os of one kind that the configuration asks for, a second.
    pub fn asked(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Read | Kind::RawRead => f64::from(self.config.record_reads_per_second()),
            Kind::LargeRead => self.config.large_reads_per_second(),
            Kind::LargeWrite => self.config.large_writes_per_second(),
            Kind::Write => f64::from(self.config.record_writes_per_second()),
        }
    }

    /// Percent of all reads that took 2^`power` milliseconds or more.
    pub fn percent_over(&self, power: usize) -> f64 {
        let mut all = Buckets::default();
        for interval in &self.intervals {
            all.merge(&interval.kinds[Kind::Read as usize]);
        }
        percent(&all, power)
    }

    /// By whole slice: percent of reads that took 2^n milliseconds or more, for n from 0 to 6.
    pub fn slices(&self) -> Vec<[f64; 7]> {
        let every = self.config.report_interval.ns().max(1);
        let whole = (self.counted.ns() / every).max(1) as usize;
        let in_slice = (self.slice.ns().div_ceil(every) as usize).clamp(1, whole);
        let intervals = &self.intervals[..self.intervals.len().min(whole)];
        let slices = intervals.chunks(in_slice);
        // As ACT's analysis does, an unfinished slice at the end is left out.
        let slices = slices.filter(|slice| slice.len() == in_slice || whole < in_slice);
        slices
            .map(|slice| {
                let mut sum = Buckets::default();
                for interval in slice {
                    sum.merge(&interval.kinds[Kind::Read as usize]);
                }
                std::array::from_fn(|power| percent(&sum, power))
            })
            .collect()
    }

    /// The worst of all slices.
    pub fn worst(&self) -> [f64; 7] {
        let mut worst = [0.0; 7];
        for slice in self.slices() {
            for (worst, percent) in worst.iter_mut().zip(slice) {
                *worst = f64::max(*worst, percent);
            }
        }
        worst
    }

    /// Why it fails; it passes if there is no reason.
    pub fn fails(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some((_, stop)) = self.stopped {
            reasons.push(Reason::Stopped(stop));
        }
        let worst = self.worst();
        for (power, limit) in LIMITS {
            if worst[power] >= limit {
                reasons.push(Reason::Slow {
                    ms: 1 << power,
                    percent: worst[power],
                });
            }
        }
        let seconds = self.counted.seconds().max(1e-9);
        // One I/O more or less at each end does not count.
        let behind =
            |achieved: f64, asked: f64| (achieved * seconds + 2.0) < KEPT_UP * asked * seconds;
        for kind in [Kind::LargeRead, Kind::LargeWrite] {
            let (achieved, asked) = (self.rate(kind), self.asked(kind));
            if !self.latency_only && behind(achieved, asked) {
                reasons.push(Reason::Behind {
                    kind,
                    achieved,
                    asked,
                });
            }
        }
        let asked = f64::from(self.config.requests_per_second());
        let made = self.requests as f64 / seconds;
        if behind(made, asked) {
            reasons.push(if self.config.has_queues() {
                Reason::Generator {
                    achieved: made,
                    asked,
                }
            } else {
                Reason::Behind {
                    kind: Kind::Read,
                    achieved: made,
                    asked,
                }
            });
        }
        if self.errors > 0 {
            reasons.push(Reason::Errors(self.errors));
        }
        reasons
    }

    /// Whether it passes.
    pub fn passes(&self) -> bool {
        self.fails().is_empty()
    }
}

fn percent(buckets: &Buckets, power: usize) -> f64 {
    match buckets.total() {
        0 => 0.0,
        total => buckets.over(power) as f64 * 100.0 / total as f64,
    }
}

/// Runs the plan; `progress` is called now and then with the share done, 0 to 1.
///
/// # Errors
/// The drive is too small for a large block, or has larger sectors than a record may be placed at.
pub fn test(plan: &ActPlan, progress: &(dyn Fn(f64) + Sync)) -> Result<Tested, Problems> {
    with_drive(&plan.drive, plan.state, plan.seed, |drive| {
        test_on(drive, plan, progress)
    })
}

fn test_on(
    drive: &mut Drive,
    plan: &ActPlan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Tested, Problems> {
    let config = &plan.config;
    let capacity = drive.capacity();
    if capacity.bytes < 2 * u64::from(config.large_block_bytes) {
        let what = format!("{} bytes hold no large blocks", capacity.bytes);
        return Err(Problems::whole(&plan.name, what));
    }
    let act = Act::new(
        config,
        plan.costs,
        capacity.bytes,
        capacity.block,
        plan.warm_up,
        plan.seed,
    );
    let mut host = plan.host.clone();
    host.engines[Engine::Sync as usize].application = plan.costs.transaction;
    let threads = on_cores(&host, (0..act.threads()).map(|_| (Engine::Sync, false)));
    let count_from = Time::ZERO + plan.warm_up;
    let host = (host, &*threads, plan.seed);
    let played = play(drive, host, act, count_from, &|act, now| {
        progress(act.share(now));
        ControlFlow::Continue(())
    })?;
    let act = played.workload;
    let counted = act.counted();
    Ok(Tested {
        config: config.clone(),
        latencies: act.latencies,
        bands: act.bands,
        intervals: act.intervals,
        requests: act.requests,
        errors: act.errors,
        counted,
        stopped: act
            .stopped
            .map(|(at, why)| (at.since(count_from.min(at)), why)),
        gauges: played.gauges,
        slice: plan.slice,
        latency_only: plan.latency_only,
    })
}

/// The highest load that passes, found by bisection, and the lowest that was seen to fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Multiples of 1x; 0 if not even that passes.
    pub load: u32,
    /// The run at that load, or the failing one at 1x.
    pub tested: Tested,
    /// The run at the next higher load, which fails; none if the highest load passes.
    pub fails: Option<(u32, Tested)>,
    /// All loads that were tried, and whether they passed.
    pub tried: Vec<(u32, bool)>,
}

/// Finds the score; `progress` is called after each round with the bounds that are left.
///
/// It takes for granted that a drive that fails at one load fails at all higher ones. Two loads are tried at a time,
/// on any number of cores, so the loads that are tried do not depend on those.
///
/// # Errors
/// As [`test()`].
pub fn score(
    plan: &ActPlan,
    progress: &(dyn Fn(u32, Option<u32>) + Sync),
) -> Result<Score, Problems> {
    highest(plan, &|tested| tested.passes(), progress)
}

/// How near [`at_share`] comes to the share, as a part of it.
const NEAR: f64 = 0.01;

/// Most loads that [`at_share`] tries between two whole multiples.
const MOST_BETWEEN: u32 = 12;

/// The run at the load at which `percent` of the reads take 1 ms or more: a load that was not published, from a share
/// that was. Loads need not be whole multiples of 1x: only the program that writes ACT's configuration files makes
/// them so.
///
/// It takes for granted that the share grows with the load. Near saturation a run's bursts differ with the smallest
/// change of load, so the share that is found may be some percent off; the nearest is taken.
///
/// # Errors
/// As [`test()`]; no load has so many slow reads, as where the thread that makes requests is the limit.
pub fn at_share(plan: &ActPlan, percent: f64) -> Result<Tested, Problems> {
    let share = |tested: &Tested| tested.worst()[0];
    let whole = highest(plan, &|tested| share(tested) < percent, &|_, _| {})?;
    let Some((load, fails)) = whole.fails else {
        let what = format!("no load makes {percent} % of the reads take 1 ms");
        return Err(Problems::whole(&plan.name, what));
    };
    let distance = |tested: &Tested| libm::log(share(tested).max(1e-9) / percent).abs();
    let mut ends = [f64::from(load) - 1.0, f64::from(load)];
    // The bracket's own shares, from which the next load follows; nothing is slow at no load.
    let mut shares = [
        if load > 1 { share(&whole.tested) } else { 0.0 },
        share(&fails),
    ];
    let mut best = match distance(&whole.tested) < distance(&fails) {
        true => whole.tested,
        false => fails,
    };
    for _ in 0..MOST_BETWEEN {
        if distance(&best) < NEAR || ends[1] - ends[0] < 1e-3 {
            break;
        }
        let [low, high] = shares.map(|share| libm::log(share.max(percent * 1e-2)));
        // Never nearer to an end than a tenth of the bracket: shares are no smooth line.
        let part = ((libm::log(percent) - low) / (high - low)).clamp(0.1, 0.9);
        let load = ends[0] + (ends[1] - ends[0]) * part;
        let tested = test(&plan.at_load(load), &|_| {})?;
        let end = usize::from(share(&tested) >= percent);
        (ends[end], shares[end]) = (load, share(&tested));
        if distance(&tested) < distance(&best) {
            best = tested;
        }
    }
    Ok(best)
}

/// The highest whole multiple of 1x for whose run `holds` is true.
fn highest(
    plan: &ActPlan,
    holds: &(dyn Fn(&Tested) -> bool + Sync),
    progress: &(dyn Fn(u32, Option<u32>) + Sync),
) -> Result<Score, Problems> {
    let mut passes: (u32, Option<Tested>) = (0, None);
    let mut fails: Option<(u32, Tested)> = None;
    let mut tried = Vec::new();
    loop {
        let high = fails.as_ref().map(|&(load, _)| load);
        progress(passes.0, high);
        let Some(loads) = next_loads(passes.0, high) else {
            break;
        };
        let run = |load: u32| test(&plan.at_load(f64::from(load)), &|_| {});
        let mut loads = vec![loads.0, loads.1];
        loads.dedup();
        for (&load, tested) in loads.iter().zip(super::each(&loads, |_, &load| run(load))) {
            let tested = tested?;
            let passed = holds(&tested);
            tried.push((load, passed));
            if fails.as_ref().is_some_and(|&(lowest, _)| load > lowest) {
                continue;
            }
            if passed {
                passes = (load, Some(tested));
            } else {
                fails = Some((load, tested));
            }
        }
    }
    let (load, tested) = match (passes, &fails) {
        ((load, Some(tested)), _) => (load, tested),
        ((_, None), Some((_, failing))) => (0, failing.clone()),
        ((_, None), None) => unreachable!("some load has been tried"),
    };
    tried.sort_unstable();
    Ok(Score {
        load,
        tested,
        fails,
        tried,
    })
}

/// The loads to try next, between one that passes and one that fails; equal if there is only one.
fn next_loads(passes: u32, fails: Option<u32>) -> Option<(u32, u32)> {
    match fails {
        None if passes >= HIGHEST_LOAD => None,
        None => {
            let low = (passes * 4).clamp(10, HIGHEST_LOAD);
            Some((low, (low * 4).min(HIGHEST_LOAD)))
        }
        Some(fails) => match fails - passes {
            0 | 1 => None,
            2 => Some((passes + 1, passes + 1)),
            gap => Some((passes + gap / 3, passes + gap - gap / 3)),
        },
    }
}
