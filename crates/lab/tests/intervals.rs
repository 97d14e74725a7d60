//! Coverage of percentile intervals on modelled drives, whose slow I/Os come in clusters.

use lab::{Lab, Machine, Scenario};
use model::host::HostConfig;
use model::media::{Medium, Precondition};
use statistics::Histogram;
use workload::job::{Job, Mix};

const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5];
const SEEDS: u64 = 40;
const IOS: u64 = 6_000;

/// Drives of a few gigabytes, with a short preconditioning; percentage of reads; depth.
const LOADS: [(&str, u32, u32); 4] = [
    ("600p-256", 100, 16),
    ("p3700-1600", 70, 16),
    ("9100max-2400", 0, 16),
    ("p4800x-375", 0, 16),
];

/// A case with few dies that all collect garbage. The relative timing of their collections persists for about 400,000
/// I/Os. A shorter run therefore has one of many possible tails, and its slices agree with each other. No interval
/// from one run can show this (`docs/decisions/0043-histograms-and-intervals.md`). This test ensures that the
/// coverage does not become worse.
const FALLS_SHORT: (&str, u32, u32) = ("960evo-250", 0, 4);
const OF_THOSE_THAT_FALL_SHORT: u64 = 24;

/// Returns the latencies of all I/Os with one seed.
fn latencies(drive: &str, reads: u32, depth: u32, seed: u64) -> Histogram {
    let sheet = catalogue::drive(drive).expect("built in");
    let plan = Scenario::jobs(
        Machine::from_configs(
            "a drive",
            sheet.config.shrunk(4 << 30),
            HostConfig::default(),
        ),
        Precondition::Steady,
        vec![Job {
            mix: Mix::ReadWrite,
            read_percent: reads,
            random: true,
            norandommap: true,
            iodepth: depth,
            number_ios: Some(IOS),
            ..Job::default()
        }],
        seed,
    );
    let outcome = Lab::new().run(&plan).expect("it fits");
    let mut all = outcome.threads[0].read.latency.clone();
    all.merge(&outcome.threads[0].write.latency);
    all
}

/// Returns, by percentile, the number of seeds whose interval contains the percentile of all seeds together.
fn coverage((drive, reads, depth): (&str, u32, u32)) -> Vec<(f64, u64)> {
    let runs: Vec<Histogram> = (1..=SEEDS)
        .map(|seed| latencies(drive, reads, depth, seed))
        .collect();
    let mut truth = Histogram::default();
    runs.iter().for_each(|run| truth.merge(run));
    let held = |percent: f64| {
        let value = truth.quantile(percent).expect("there are samples");
        let holds = |run: &&Histogram| {
            let known = run.percentile_interval(percent).expect("ten lie beyond");
            known.low <= value && value <= known.high
        };
        (percent, runs.iter().filter(holds).count() as u64)
    };
    PERCENTILES.map(held).to_vec()
}

/// Of 40 intervals of 95 %, two miss on average; more than eight miss with a probability of 1/2000. If the samples
/// are treated as independent, 26 of the intervals for the 99.5th percentile of the 600P miss.
#[test]
fn intervals_hold_the_truth_where_slow_ios_come_in_clusters() {
    let found = LOADS.map(|load| (load, coverage(load)));
    let held = || {
        found
            .iter()
            .flat_map(|(_, held)| held)
            .map(|&(_, held)| held)
    };
    assert!(held().all(|held| held >= 32), "{found:?}");
    let all = (LOADS.len() * PERCENTILES.len()) as u64 * SEEDS;
    assert!(held().sum::<u64>() * 100 >= all * 94, "{found:?}");
}

#[test]
fn tails_that_outlast_a_run_fall_short_no_further() {
    let found = coverage(FALLS_SHORT);
    let least = found.iter().map(|&(_, held)| held).min();
    assert!(least >= Some(OF_THOSE_THAT_FALL_SHORT), "{found:?}");
}
