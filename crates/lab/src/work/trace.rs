//! Replays the trace of a scenario; returns the results together with the recorded values.

use model::{Device, Span, Time};
use statistics::ThreadOutcome;
use text::problem::Problems;
use workload::replay::{Layout, Pace, Replay};

use crate::faults::TriggerLog;
use crate::outcome::{Outcome, OutcomeDetail, ReplayResult};
use crate::play::{Surroundings, ThreadInterface, on_cores, play};
use crate::progress::ProgressCallback;
use crate::scenario::{Scenario, TraceReplay};

/// Allowed speed factors of a trace.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Maximum duration of a run: 100 years.
const LONGEST: Time = Time::from_ns(100 * 365 * 24 * 3_600 * 1_000_000_000);

/// Returns the number of threads that issue the requests.
fn thread_count(replay: &TraceReplay, cores: u16) -> u16 {
    let cores = cores.max(1);
    let count = replay.threads.unwrap_or(match replay.pace {
        Pace::Recorded(_) => cores,
        Pace::Depth(depth) => u16::try_from(depth).unwrap_or(u16::MAX).min(cores),
    });
    count.max(1)
}

fn check(replay: &TraceReplay, workload: &Replay<'_>) -> Result<(), Problems> {
    if let Pace::Recorded(speed) = replay.pace
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
        return Err(Problems::whole(&replay.trace.origin, what));
    }
    Ok(())
}

/// Replays the trace on a device whose clock starts at zero.
///
/// # Errors
/// The trace does not fit the drive (see [`Layout::new`]), the speed is outside [`SPEEDS`], or the replay takes
/// longer than the range of virtual time.
pub(crate) fn run(
    device: impl Device,
    scenario: &Scenario,
    replay: &TraceReplay,
    struck: &TriggerLog,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    let (machine, trace) = (&scenario.machine, &*replay.trace);
    let layout = Layout::new(trace, machine.name(), device.capacity(), replay.beyond)?;
    let host = machine.host();
    let count = thread_count(replay, host.cores);
    let threads = on_cores(
        host,
        (0..count).map(|_| ThreadInterface::with_interrupts(replay.engine)),
    );
    let workload = Replay::new(trace, &layout, replay.pace, count, scenario.series_every);
    check(replay, &workload)?;
    let around = Surroundings {
        host,
        threads: &threads,
        seed: scenario.seed,
        gauges_every: scenario.series_every,
        files: None,
        faults: &scenario.faults,
        struck,
    };
    let played = play(device, &around, workload, Time::ZERO, &|workload, _| {
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
        arrived: None,
    };
    Ok(Outcome {
        threads: vec![thread],
        end,
        gauges: played.gauges,
        members: played.members,
        over_time: played.over_time,
        counted: over,
        stopped,
        phases: played.phases,
        rebuilds: Vec::new(),
        of: OutcomeDetail::Trace(Box::new(ReplayResult {
            recorded: workload.recorded,
            singles: workload.singles,
            wrapped: layout.wrapped,
            empty: layout.empty,
            widened: layout.widened,
        })),
    })
}
