//! Rate-limited jobs do not issue in step: together, their load on a drive resembles random arrivals.

use lab::{Lab, Machine, Outcome, Scenario};
use model::Span;
use model::media::Precondition;
use workload::job::{Job, Mix, Rate, RateProcess};

/// Runs reads on a P4800X, 9,600 per second over all threads.
fn reads(threads: u32, rate_process: RateProcess) -> Outcome {
    let plan = Scenario::jobs(
        Machine::from_configs(
            "a drive",
            catalogue::drive("p4800x-375").expect("built in").config,
            catalogue::host("xeon-2017").expect("built in").config,
        ),
        Precondition::Steady,
        vec![Job {
            mix: Mix::Read,
            random: true,
            norandommap: true,
            numjobs: threads,
            rate: [Some(Rate::Iops(9_600 / u64::from(threads))), None, None],
            rate_process,
            runtime: Some(Span::from_ms(1000)),
            time_based: true,
            ..Job::default()
        }],
        1,
    );
    Lab::new().run(&plan).expect("it runs")
}

fn mean_us(outcome: &Outcome) -> f64 {
    let threads = outcome.threads.iter().map(|thread| &thread.read);
    let (sum, ios) = threads.fold((0.0, 0), |(sum, ios), read| {
        (
            sum + read.latency.mean_ns() * read.ios as f64,
            ios + read.ios,
        )
    });
    sum / ios as f64 * 1e-3
}

#[test]
fn many_paced_jobs_meet_what_random_arrivals_meet() {
    let random = mean_us(&reads(1, RateProcess::Poisson));
    for threads in [1, 16, 64] {
        let outcome = reads(threads, RateProcess::Linear);
        let mean = mean_us(&outcome);
        println!("{threads}: {mean:.2} us, at random {random:.2} us");
        assert!(
            (mean / random - 1.0).abs() < 0.06,
            "{threads}: {mean} against {random} us"
        );
        let started: Vec<_> = outcome
            .threads
            .iter()
            .map(|thread| thread.started.ns())
            .collect();
        assert_eq!(started[0], 0);
        let gaps = started.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| gap < 100_000), "{started:?}");
    }
}
