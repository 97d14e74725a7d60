//! A drive with the initial state `steady` is in steady state from its first I/O: its random write rate and its tail
//! latency equal those measured ten times later. If it collects garbage in bursts, this applies to times that contain
//! several bursts.

mod sample;

use lab::{Lab, Machine, Measured, Scenario, to_the_end};
use model::Span;
use model::host::HostConfig;
use model::media::{Medium, Precondition};
use tier::DriveConfig;
use workload::job::{Job, Mix};

/// Returns a section of random writes of `ms` milliseconds that begins after `part` times as long.
fn writes(drive: &DriveConfig, depth: u32, ms: u64, part: u64) -> Scenario {
    Scenario::jobs(
        Machine::from_configs("a drive", drive.clone(), HostConfig::default()),
        Precondition::Steady,
        vec![Job {
            mix: Mix::Write,
            random: true,
            norandommap: true,
            iodepth: depth,
            ramp_time: Span::from_ms(ms * part),
            runtime: Some(Span::from_ms(ms)),
            time_based: true,
            ..Job::default()
        }],
        1,
    )
}

fn has_nand(config: &DriveConfig) -> bool {
    match config {
        DriveConfig::Nand(_) => true,
        DriveConfig::Raid0(raid) => raid.members.iter().any(has_nand),
        _ => false,
    }
}

fn millis(written: &Measured, percent: f64) -> f64 {
    written.latency.quantile(percent).map_or(0.0, Span::us) * 1e-3
}

#[test]
fn the_first_second_of_a_steady_drive_is_as_its_tenth() {
    let names = sample::drives();
    let drives: Vec<_> = names
        .iter()
        .map(|name| (*name, catalogue::drive(name).expect("built in").config))
        .filter(|(_, config)| has_nand(config))
        .collect();
    assert!(
        drives.len() >= 11,
        "NAND drives of the catalogue: {}",
        drives.len()
    );
    // One second of a desktop drive has no more writes than a tenth of a second of the others.
    let plans: Vec<Scenario> = drives
        .iter()
        .flat_map(|(_, config)| {
            let (ms, later) = if sample::has_bursts(config) {
                (4000, 3)
            } else if config.volatile_write_cache() {
                (1000, 9)
            } else {
                (100, 9)
            };
            [0, later].map(|part| writes(config, 32, ms, part))
        })
        .collect();
    let outcomes = Lab::new().run_all(&plans, &to_the_end);
    let mut wrong = Vec::new();
    // A tenth of a second may contain only two collections of a die. Two such sections far from the start have tails
    // that differ by a factor of up to 1.45 (D7-P5510, three seeds).
    for ((name, _), pair) in drives.iter().zip(outcomes.chunks(2)) {
        let [first, tenth] = [0, 1].map(|at| {
            let outcome = pair[at].as_ref().expect("it runs");
            &outcome.threads[0].write
        });
        let rate = first.iops() / tenth.iops();
        let tail = millis(first, 99.0) / millis(tenth, 99.0);
        let line = format!(
            "{name}: {:.1} then {:.1} kIOPS, 99th percentile {:.2} then {:.2} ms",
            first.iops() * 1e-3,
            tenth.iops() * 1e-3,
            millis(first, 99.0),
            millis(tenth, 99.0)
        );
        println!("{line}");
        if !(0.95..1.05).contains(&rate) || !(0.67..1.5).contains(&tail) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
