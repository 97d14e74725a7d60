//! The reported write amplification of a steady drive is the ratio of bytes programmed to the host's writes, starting
//! with the first twenty thousand writes. A drive that collects garbage in bursts makes the copies for up to 32,000
//! writes ahead, so its run is longer: then these copies are less than 1 % of all.

use lab::{Lab, Machine, Outcome, Scenario, to_the_end};
use model::Gauge;
use model::host::HostConfig;
use model::media::Precondition;
use tier::DriveConfig;
use workload::job::{Job, Mix};

/// Random 4 KiB writes at QD64, without a rate limit, on a steady drive. Its counters start with the first write.
fn writes(drive: &str, number: u64) -> Scenario {
    let config = catalogue::drive(drive).expect("built in").config;
    let job = Job {
        mix: Mix::Write,
        random: true,
        norandommap: true,
        iodepth: 64,
        number_ios: Some(number),
        ..Job::default()
    };
    Scenario::jobs(
        Machine::from_configs(drive, config, HostConfig::default()),
        Precondition::Steady,
        vec![job],
        1,
    )
}

/// Returns bytes programmed per byte written.
fn counted(outcome: &Outcome) -> f64 {
    let of = |gauge| outcome.gauge(gauge).expect("NAND reports it");
    of(Gauge::MediumBytesWritten) / of(Gauge::HostBytesWritten)
}

#[test]
fn what_is_reported_is_what_is_counted() {
    let names: Vec<&str> = catalogue::drive_names()
        .into_iter()
        .filter(|name| {
            let config = catalogue::drive(name).expect("built in").config;
            matches!(config, DriveConfig::Nand(_))
        })
        .collect();
    assert!(names.len() >= 38, "{} NAND drives", names.len());
    let plans: Vec<Scenario> = names
        .iter()
        .flat_map(|name| {
            let config = catalogue::drive(name).expect("built in").config;
            let bursts =
                matches!(config, DriveConfig::Nand(drive) if drive.collection.bursts.is_some());
            let longer = if bursts { 50 } else { 1 };
            [20_000, 60_000].map(|number| writes(name, longer * number))
        })
        .collect();
    let outcomes = Lab::new().run_all(&plans, &to_the_end);
    let mut wrong = Vec::new();
    for (plan, outcome) in plans.iter().zip(outcomes) {
        let outcome = outcome.expect("it runs");
        let reported = outcome.write_amplification().expect("it wrote");
        let counted = counted(&outcome);
        let line = format!(
            "{}: reported {reported:.3}, counted {counted:.3}",
            plan.machine.name()
        );
        println!("{line}, {:+.2} %", 100.0 * (reported / counted - 1.0));
        if (reported / counted - 1.0).abs() > 0.01 {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
