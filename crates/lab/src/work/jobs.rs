//! Jobs of a scenario: what each of their threads did.

use model::Device;
use text::problem::Problems;
use workload::Jobs;
use workload::job::Job;

use crate::outcome::{Of, Outcome};
use crate::play::{Surroundings, on_cores, play};
use crate::progress::GoOn;
use crate::scenario::Scenario;

/// Runs the jobs on a device whose clock begins at zero.
pub(crate) fn run(
    device: impl Device,
    scenario: &Scenario,
    jobs: &[Job],
    go_on: GoOn<'_>,
) -> Result<Outcome, Problems> {
    let host = scenario.machine.host();
    let (seed, every) = (scenario.seed, scenario.series_every);
    let costs = host.engines;
    let jobs = Jobs::new(jobs, device.capacity(), seed, every)?
        .with_after_doorbell(|engine| costs[engine as usize].after);
    let threads = on_cores(
        host,
        jobs.threads().map(|job| (job.engine, job.high_priority)),
    );
    let count_from = jobs.counts_from();
    let around = Surroundings {
        host,
        threads: &threads,
        seed,
        gauges_every: every,
    };
    let played = play(device, &around, jobs, count_from, &|jobs, now| {
        go_on(jobs.share(now))
    })?;
    let mut outcomes = played.workload.outcomes();
    for (outcome, [user, system]) in outcomes.iter_mut().zip(played.cpu) {
        outcome.cpu[0] += user;
        outcome.cpu[1] += system;
    }
    Ok(Outcome {
        threads: outcomes,
        end: played.end,
        gauges: played.gauges,
        members: played.members,
        over_time: played.over_time,
        counted: played.end.since(count_from),
        stopped: played.stopped,
        of: Of::Jobs,
    })
}
