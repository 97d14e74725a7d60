//! At the end of a pass over its range, a job of fio waits for all outstanding I/Os and counts them together.
//! Observed in the log of fio 3.33 with `--size=256m --bs=128k --iodepth=32 --loops=2`: the last 32 I/Os of each pass
//! take up to twice as long as the others.

use std::collections::VecDeque;

use model::engine::Workload;
use model::{Anatomy, Capacity, Command, Completion, Part, Span, Status, Time};
use workload::Jobs;
use workload::job::{Extent, Job};

const SERVICE: Span = Span::from_us(10);

/// Returns the sum of latencies at each completion, in microseconds, of a job on a drive that serves one I/O after
/// another.
fn latencies(job: Job) -> Vec<u64> {
    let jobs = [job];
    let capacity = Capacity {
        bytes: 1 << 30,
        block: 4096,
    };
    let mut jobs = Jobs::new(&jobs, capacity, 1, Span::ZERO).expect("fits");
    let mut queue: VecDeque<(Time, Command)> = VecDeque::new();
    let mut free = Time::ZERO;
    let mut counted = Vec::new();
    let mut before = 0;
    while !jobs.finished() {
        let done = queue.front().map_or(Time::NEVER, |_| free);
        let now = done.min(jobs.next_arrival());
        assert_ne!(now, Time::NEVER, "it stands still");
        if done == now {
            let (submitted, command) = queue.pop_front().expect("one is done");
            let mut anatomy = Anatomy::ZERO;
            anatomy.add(Part::Medium, now.since(submitted));
            jobs.complete(
                now,
                &Completion {
                    id: command.id,
                    at: now,
                    status: Status::Success,
                    anatomy,
                },
            );
            free = now + SERVICE;
            let all = jobs.clone().outcomes().remove(0).read.latency;
            let sum = (all.mean_ns() * all.count() as f64).round() as u64 / 1000;
            counted.push(sum - before);
            before = sum;
        }
        if jobs.next_arrival() == now {
            if queue.is_empty() {
                free = now + SERVICE;
            }
            jobs.arrive(now, &mut |command| queue.push_back((now, command)));
        }
    }
    counted
}

fn job(time_based: bool) -> Job {
    Job {
        iodepth: 4,
        size: Some(Extent::Bytes(16 * 4096)),
        loops: 2,
        time_based,
        runtime: time_based.then(|| Span::from_us(319)),
        ..Job::default()
    }
}

#[test]
fn the_last_of_a_pass_are_counted_together_and_the_next_begins_with_an_empty_queue() {
    let mut pass = vec![10, 20, 30];
    pass.extend([40; 9]);
    // 70, 60, 50 and 40 µs: each I/O waits for the last.
    pass.extend([0, 0, 0, 220]);
    let twice = [pass.clone(), pass].concat();
    assert_eq!(latencies(job(false)), twice);
}

/// fio repeats its range without a pause if time ends the job.
#[test]
fn a_job_that_time_ends_knows_no_passes() {
    let found = latencies(job(true));
    assert_eq!(found[..3], [10, 20, 30]);
    assert!(found[3..].iter().all(|&us| us == 40), "{found:?}");
}
