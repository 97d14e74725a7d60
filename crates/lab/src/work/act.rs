//! Runs ACT.

use model::host::Engine;
use model::{Device, Time};
use text::problem::Problems;
use workload::act::Act;

use crate::act::tested::{ActResult, ActTest};
use crate::faults::TriggerLog;
use crate::outcome::{Outcome, OutcomeDetail};
use crate::play::{Surroundings, ThreadInterface, on_cores, play};
use crate::progress::ProgressCallback;
use crate::scenario::Scenario;

/// Runs the test on a device whose clock starts at zero.
///
/// # Errors
/// The drive is too small for a large block, or its sectors are larger than the alignment of records; or the costs of
/// the test on this host are unknown.
pub(crate) fn run(
    device: impl Device,
    scenario: &Scenario,
    test: &ActTest,
    struck: &TriggerLog,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    let (config, machine) = (&test.config, &scenario.machine);
    let capacity = device.capacity();
    if capacity.bytes < 2 * u64::from(config.large_block_bytes) {
        let what = format!("{} bytes hold no large blocks", capacity.bytes);
        return Err(Problems::whole(machine.name(), what));
    }
    let Some(costs) = machine.costs() else {
        let what = "the host has no [act] section with the CPU time of Aerospike's test";
        return Err(Problems::whole(machine.name(), what));
    };
    let act = Act::new(
        config,
        costs,
        capacity.bytes,
        capacity.block,
        test.warm_up,
        scenario.seed,
    );
    let mut host = machine.host().clone();
    host.engines[Engine::Sync as usize].application = costs.transaction;
    let threads = on_cores(
        &host,
        (0..act.threads()).map(|_| ThreadInterface::with_interrupts(Engine::Sync)),
    );
    let count_from = Time::ZERO + test.warm_up;
    let around = Surroundings {
        host: &host,
        threads: &threads,
        seed: scenario.seed,
        gauges_every: scenario.series_every,
        files: None,
        faults: &scenario.faults,
        struck,
    };
    let played = play(device, &around, act, count_from, &|act, now| {
        go_on(act.share(now))
    })?;
    let act = played.workload;
    let counted = act.counted();
    let tested = ActResult {
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
        warm_up: test.warm_up,
        slice: test.slice,
        latency_only: test.latency_only,
    };
    Ok(Outcome {
        threads: Vec::new(),
        end: played.end,
        gauges: played.gauges,
        members: played.members,
        over_time: played.over_time,
        counted,
        stopped: played.stopped,
        phases: played.phases,
        rebuilds: Vec::new(),
        of: OutcomeDetail::Act(Box::new(tested)),
    })
}
