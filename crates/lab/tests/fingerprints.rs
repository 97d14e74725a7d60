//! Results of each NAND drive of the catalogue with one mixed load, to the nanosecond: a figure that a drive does not
//! have must not change them. The drives are shrunk, so that all of them run in a short time.

use std::fmt::Write as _;

use lab::{Lab, Machine, Scenario};
use model::media::{DriveConfig, Medium, Precondition};
use workload::job::{Job, Mix};

/// Capacity of the shrunk drives in bytes.
const BYTES: u64 = 16_000_000_000;
const IOS: u64 = 6000;

#[test]
fn drives_do_to_the_nanosecond_what_they_did() {
    let host = catalogue::host("linux").expect("built in").config;
    let mut said = String::new();
    for name in catalogue::drive_names() {
        let config = catalogue::drive(name).expect("built in").config;
        if !matches!(config, DriveConfig::Nand(_)) {
            continue;
        }
        let machine = Machine::of(name, config.shrunk(BYTES), host.clone());
        let job = Job {
            mix: Mix::ReadWrite,
            read_percent: 30,
            random: true,
            norandommap: true,
            iodepth: 32,
            number_ios: Some(IOS),
            ..Job::default()
        };
        let scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], 1);
        let outcome = Lab::new().run(&scenario).expect("it runs");
        let thread = &outcome.threads[0];
        let of = |one: &lab::Measured| format!("{} {:.3} ns", one.ios, one.latency.mean_ns());
        let (read, write) = (of(&thread.read), of(&thread.write));
        writeln!(said, "{name}: reads {read}, writes {write}").expect("a string");
    }
    insta::assert_snapshot!(said);
}
