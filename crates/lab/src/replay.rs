//! One replay: a trace on a drive behind a host path, and what came out, with what was recorded next to it.

use model::host::{Engine, HostConfig};
use model::media::{DriveConfig, Precondition};
use model::{Device, Drive, Span, Time};

use super::play::{host_of, on_cores, play, with_drive};
use super::{GoOn, Outcome, ThreadOutcome, in_parallel_until, to_the_end};
use statistics::Histogram;
use text::problem::Problems;
use workload::replay::{Beyond, Layout, Pace, Replay};
use workload::trace::Trace;

/// All that a replay depends on, besides the trace: the same plan and trace give the same [`Replayed`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayPlan {
    /// What messages call the drive.
    pub name: String,
    /// The drive.
    pub drive: DriveConfig,
    /// Its state at the start.
    pub state: Precondition,
    /// The host it is in.
    pub host: HostConfig,
    /// The interface its threads use.
    pub engine: Engine,
    /// Threads that issue the requests in turn; one for each core, at most one for each of a depth, if `None`.
    pub threads: Option<u16>,
    /// When requests are issued.
    pub pace: Pace,
    /// Addresses beyond the drive.
    pub beyond: Beyond,
    /// Feeds every random stream.
    pub seed: u64,
    /// Interval of [`super::Measured::series`]; zero for none.
    pub series_every: Span,
}

impl ReplayPlan {
    /// Threads that issue the requests.
    fn thread_count(&self) -> u16 {
        let cores = self.host.cores.max(1);
        let count = self.threads.unwrap_or(match self.pace {
            Pace::Recorded(_) => cores,
            Pace::Depth(depth) => u16::try_from(depth).unwrap_or(u16::MAX).min(cores),
        });
        count.max(1)
    }

    fn check(&self, trace: &Trace, workload: &Replay) -> Result<(), Problems> {
        if let Pace::Recorded(speed) = self.pace
            && !SPEEDS.contains(&speed)
        {
            let what = format!(
                "the speed is {speed}; it must be from {:e} to {:e}",
                SPEEDS.start(),
                SPEEDS.end()
            );
            return Err(Problems::whole("replay", what));
        }
        if workload.last_arrival() > LONGEST {
            let what = "at this speed the trace lasts longer than 100 years";
            return Err(Problems::whole(&trace.origin, what));
        }
        Ok(())
    }
}

/// What came out of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// As of any run; all threads together as one, and nothing but [`super::Measured::latency`] and
    /// [`super::Measured::completion`] (which are the same) as latency. It counts from the moment a request arrives.
    pub outcome: Outcome,
    /// Response times as recorded, reads and writes; empty where the trace has none.
    pub recorded: [Histogram; 2],
    /// Requests whose addresses were folded into the drive.
    pub wrapped: u64,
    /// Reads and writes of no bytes, which were left out.
    pub empty: u64,
    /// Requests that were widened to whole blocks.
    pub widened: u64,
}

/// Factors by which a trace can be sped up.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The longest run: 100 years.
const LONGEST: Time = Time::from_ns(100 * 365 * 24 * 3_600 * 1_000_000_000);

/// Replays a trace; `progress` is called now and then with the share done, 0 to 1.
///
/// # Errors
/// The trace does not fit the drive (see [`Layout::new`]), the speed is outside [`SPEEDS`], or the replay takes longer than virtual time lasts.
pub fn replay(
    trace: &Trace,
    plan: &ReplayPlan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Replayed, Problems> {
    replay_until(trace, plan, &to_the_end(progress))
}

/// [`replay`] that can be stopped.
///
/// # Errors
/// As [`replay`].
pub fn replay_until(
    trace: &Trace,
    plan: &ReplayPlan,
    go_on: GoOn<'_>,
) -> Result<Replayed, Problems> {
    with_drive(&plan.drive, plan.state, plan.seed, |drive| {
        replay_on(drive, trace, plan, go_on)
    })
}

fn replay_on(
    drive: &mut Drive,
    trace: &Trace,
    plan: &ReplayPlan,
    go_on: GoOn<'_>,
) -> Result<Replayed, Problems> {
    let layout = Layout::new(trace, &plan.name, drive.capacity(), plan.beyond)?;
    let count = plan.thread_count();
    let threads = on_cores(&plan.host, (0..count).map(|_| (plan.engine, false)));
    let workload = Replay::new(trace, &layout, plan.pace, count, plan.series_every);
    plan.check(trace, &workload)?;
    let host = (host_of(&plan.host, &plan.drive), &*threads, plan.seed);
    let played = play(drive, host, workload, Time::ZERO, &|workload, _| {
        go_on(workload.share())
    })?;
    let (workload, end, stopped) = (played.workload, played.end, played.stopped);
    let mut cpu = [Span::ZERO; 2];
    for [user, system] in played.cpu {
        cpu[0] += user;
        cpu[1] += system;
    }
    let over = end.since(Time::ZERO);
    let [read, write, trim, sync] = workload.measured.map(|mut measured| {
        measured.over = over;
        measured
    });
    let thread = ThreadOutcome {
        job: 0,
        copy: 0,
        group: 0,
        started: Time::ZERO,
        ended: end,
        read,
        write,
        trim,
        sync,
        depths: workload.depths,
        cpu,
        latency_depth: None,
        steady_at: None,
    };
    Ok(Replayed {
        outcome: Outcome {
            threads: vec![thread],
            end,
            gauges: played.gauges,
            counted: over,
            stopped,
        },
        recorded: workload.recorded,
        wrapped: layout.wrapped,
        empty: layout.empty,
        widened: layout.widened,
    })
}

/// Replays a trace by several plans on all cores; each result is that of [`replay_until`], in the order of the plans.
/// `go_on` is told the share of all that is done.
pub fn replay_all(
    trace: &Trace,
    plans: &[ReplayPlan],
    go_on: GoOn<'_>,
) -> Vec<Result<Replayed, Problems>> {
    in_parallel_until(plans, go_on, |plan, go_on| replay_until(trace, plan, go_on))
}
