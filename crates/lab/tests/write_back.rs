//! Write pressure on a disk group: when it starts, and the write rate afterwards. The drives of the catalogue have a
//! small part of their size, with unchanged rates.

use lab::{Lab, Machine, Outcome, Scenario};
use model::media::{Medium, Precondition};
use model::{Gauge, Span};
use tier::DriveConfig;
use workload::job::{Job, Mix};

/// Factor by which sizes are reduced.
const SCALE: u64 = 200;

/// Returns the built-in disk group with other settings, reduced in size.
fn group(settings: &[(&str, &str)]) -> DriveConfig {
    let changes: Vec<(String, String)> = settings
        .iter()
        .map(|(key, value)| (format!("tier.group.{key}"), (*value).to_owned()))
        .collect();
    let pool = catalogue::drive_with("group", &changes)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    pool.config.shrunk(pool.config.capacity_bytes() / SCALE)
}

/// Returns HCIBench's 100 % random write of 4 KiB, 4 x 32 outstanding, over half of the group, for `runtime`
/// milliseconds after `ramp`.
fn writes(config: &DriveConfig, ramp: u64, runtime: u64) -> Outcome {
    let job = Job {
        mix: Mix::Write,
        random: true,
        norandommap: true,
        read_percent: 0,
        size: Some(workload::job::Extent::Bytes(
            config.capacity_bytes() / 8192 * 4096,
        )),
        ramp_time: Span::from_ms(ramp),
        runtime: Some(Span::from_ms(runtime)),
        time_based: true,
        iodepth: 32,
        ..Job::default()
    };
    let host = catalogue::host("xeon-2017").expect("built in").config;
    let machine = Machine::from_configs("group", config.clone(), host);
    let scenario = Scenario::jobs(machine, Precondition::Steady, vec![job; 4], 1);
    Lab::new().run(&scenario).expect("it runs")
}

/// Returns bytes per second.
fn rate(outcome: &Outcome, gauge: Gauge) -> f64 {
    outcome.gauge(gauge).expect("reported") / outcome.counted.seconds()
}

#[test]
fn pressure_comes_when_the_buffer_is_full_and_then_it_writes_as_fast_as_it_destages() {
    let config = group(&[]);
    let early = writes(&config, 0, 100);
    let late = writes(&config, 4000, 1000);
    let (before, after) = (
        rate(&early, Gauge::HostBytesWritten),
        rate(&late, Gauge::HostBytesWritten),
    );
    assert_eq!(early.gauge(Gauge::Congestion), Some(0.0));
    assert!(late.gauge(Gauge::Congestion) > Some(20.0));
    let freed = rate(&late, Gauge::DestagedBytes) + rate(&late, Gauge::AbsorbedBytes);
    assert!((after / freed - 1.0).abs() < 0.03, "{after} {freed}");
    assert!(before > 1.5 * after, "{before} {after}");
    // For any law: half the delay throttles twice as many writes.
    let gentle = group(&[("congestion_delay", "2.5 ms")]);
    let gentle = writes(&gentle, 4000, 1000);
    let other = rate(&gentle, Gauge::HostBytesWritten);
    assert!((other / after - 1.0).abs() < 0.02, "{other} {after}");
    assert!(gentle.gauge(Gauge::Congestion) > late.gauge(Gauge::Congestion));
}
