//! Costs of short runs that start in one steady state: CPU-seconds of one run, and of many runs with different seeds
//! that share the state. `cargo bench -p drivelab-lab --bench warm [-- RUNS]`.

use std::time::Instant;

use lab::{Lab, Machine, Scenario, to_the_end};
use model::media::Precondition;
use workload::job::{Job, Mix};

fn scenario(drive: &str, seed: u64) -> Scenario {
    let drive = catalogue::drive(drive).expect("built in");
    let host = catalogue::host("xeon-2017").expect("built in");
    let job = Job {
        mix: Mix::Write,
        random: true,
        norandommap: true,
        iodepth: 4,
        number_ios: Some(300),
        ..Job::default()
    };
    let machine = Machine::new(&drive, &host);
    let mut scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], seed);
    scenario.warm_seed = Some(1);
    scenario
}

fn cpu_seconds(work: impl FnOnce()) -> f64 {
    let now = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let ns: u64 = text.split_whitespace().next()?.parse().ok()?;
        Some(ns as f64 * 1e-9)
    };
    let (before, wall) = (now(), Instant::now());
    work();
    match (before, now()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed().as_secs_f64(),
    }
}

fn main() {
    let runs = std::env::args().skip(1).find_map(|text| text.parse().ok());
    let runs: u64 = runs.unwrap_or(1_000);
    println!("300 random 4 KiB writes at QD4, steady; CPU-seconds");
    for drive in ["950pro-256", "p3700-1600", "9100max-2400"] {
        let one = cpu_seconds(|| {
            Lab::new().run(&scenario(drive, 1)).expect("it fits");
        });
        let lab = Lab::new();
        let many = cpu_seconds(|| {
            for seed in 1..=runs {
                lab.run_among(&scenario(drive, seed), &to_the_end)
                    .expect("it fits");
            }
        });
        println!(
            "{drive:<14} one {one:8.3}   {runs} {many:8.3}   each {:8.5}",
            many / runs as f64
        );
    }
}
