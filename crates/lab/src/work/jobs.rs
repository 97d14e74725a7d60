//! Runs the jobs of a scenario, and returns the results of each of their threads.

use model::host::{FileConfig, HostConfig};
use model::{Device, Span};
use text::problem::Problems;
use workload::Jobs;
use workload::job::{Job, Mix};

use crate::faults::TriggerLog;
use crate::outcome::{Outcome, OutcomeDetail};
use crate::play::{Surroundings, ThreadFiles, ThreadInterface, on_cores, play};
use crate::progress::ProgressCallback;
use crate::scenario::Scenario;

/// Runs the jobs on a device whose clock starts at zero.
pub(crate) fn run(
    device: impl Device,
    scenario: &Scenario,
    jobs: &[Job],
    struck: &TriggerLog,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    let host = scenario.machine.host();
    let (seed, every) = (scenario.seed, scenario.series_every);
    let costs = host.engines;
    let jobs =
        Jobs::new(jobs, device.capacity(), seed, every)?.with_after_doorbell(|job| {
            match job.sq_poll {
                true => Span::ZERO,
                false => costs[job.engine as usize].after,
            }
        });
    sq_polling(host, &jobs)?;
    let interfaces = jobs.threads().zip(sockets(host, &jobs)?);
    let threads = on_cores(
        host,
        interfaces.map(|(job, socket)| ThreadInterface {
            engine: job.engine,
            high_priority: job.high_priority,
            sq_poll: job.sq_poll,
            socket,
        }),
    );
    let files = files(host, &jobs)?;
    let count_from = jobs.counts_from();
    let around = Surroundings {
        host,
        threads: &threads,
        seed,
        gauges_every: every,
        files: files.as_ref(),
        faults: &scenario.faults,
        struck,
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
        phases: played.phases,
        rebuilds: Vec::new(),
        of: OutcomeDetail::Jobs,
    })
}

/// Refuses jobs with a submission queue polled by a kernel thread, if the host does not specify its costs.
fn sq_polling(host: &HostConfig, jobs: &Jobs<'_>) -> Result<(), Problems> {
    let with = jobs.threads().find(|job| job.sq_poll);
    let (Some(job), None) = (with, &host.sq_poll) else {
        return Ok(());
    };
    let what = format!(
        "{}: sqthread_poll requires a host with a section [sq_poll]",
        job.name
    );
    Err(helped(
        what,
        "sqthread_poll=0, or a host that has it (linux, xeon-2017)",
    ))
}

/// Returns the socket of each thread: the threads of a job take its nodes in turn.
fn sockets(host: &HostConfig, jobs: &Jobs<'_>) -> Result<Vec<u16>, Problems> {
    let count = host.sockets.max(1);
    let mut sockets = Vec::new();
    for (copy, job) in jobs.copies() {
        let nodes = job.cpu_nodes.on_host(count);
        if let Some(node) = nodes.iter().find(|&&node| node >= count) {
            let what = match count {
                1 => format!(
                    "{}: numa_cpu_nodes={node}, but the host has one socket: node 0",
                    job.name
                ),
                _ => format!(
                    "{}: numa_cpu_nodes={node}, but the host has the nodes 0 to {}",
                    job.name,
                    count - 1
                ),
            };
            return Err(helped(
                what,
                "a node of the host, or a host with two sockets (linux, xeon-2017)",
            ));
        }
        let socket = nodes[copy as usize % nodes.len().max(1)];
        if socket > 0 && host.remote_socket.is_none() {
            let what = format!(
                "{}: numa_cpu_nodes={socket} requires a host with a section [remote_socket]",
                job.name
            );
            return Err(helped(
                what,
                "numa_cpu_nodes=0, or a host that has it (linux, xeon-2017)",
            ));
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Creates a problem of the jobs.
fn helped(what: String, help: &str) -> Problems {
    let mut problems = Problems::whole("jobs", what);
    problems.0[0].help = Some(help.into());
    problems
}

/// Returns the files of the jobs' threads, if there are any. Writes that are synced need no page cache.
fn files(host: &HostConfig, jobs: &Jobs<'_>) -> Result<Option<ThreadFiles>, Problems> {
    let files = jobs.threads().map(Job::file).zip(jobs.ranges());
    let of_range = |(file, range): (Option<FileConfig>, _)| Some(FileConfig { range, ..file? });
    let files: Vec<_> = files.map(of_range).collect();
    if files.iter().all(Option::is_none) {
        return Ok(None);
    }
    let Some(costs) = host.files else {
        let with = jobs.threads().find(|job| job.file().is_some());
        let what = format!(
            "{}: buffered I/O (direct=0), or a file in a file system, on a host whose file has no [files]",
            with.map_or("jobs", |job| &*job.name)
        );
        return Err(helped(
            what,
            "direct=1 or --filesystem none, or a host with files (linux, xeon-2017)",
        ));
    };
    let needs = |job: &&Job| !(job.direct || job.mix == Mix::Write && job.syncs());
    if let (Some(job), None) = (jobs.threads().find(needs), host.page_cache) {
        let what = format!(
            "{}: buffered I/O (direct=0) on a host whose file has no [page_cache]",
            job.name
        );
        return Err(helped(
            what,
            "direct=1, or a host with a page cache (linux, xeon-2017), or that section in the file of the host",
        ));
    }
    Ok(Some(ThreadFiles {
        costs,
        files,
        ids: jobs.ids(),
    }))
}
