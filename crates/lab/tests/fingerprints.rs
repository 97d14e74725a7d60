//! Results of each NAND drive of the catalogue with two loads, to the nanosecond: a figure that a drive does not have
//! must not change them. The loads are 4 KiB reads and writes at random, and 128 KiB reads in order. The drives are
//! shrunk, so that all of them run in a short time.

use std::fmt::Write as _;

use lab::{Lab, Machine, Scenario};
use model::media::{Medium, Precondition};
use tier::DriveConfig;
use workload::job::{BlockSizes, Job, Mix};

/// Capacity of the shrunk drives in bytes.
const BYTES: u64 = 16_000_000_000;
/// Number of 4 KiB I/Os and of 128 KiB reads.
const IOS: u64 = 6000;
const LARGE_IOS: u64 = 500;

#[test]
fn drives_do_to_the_nanosecond_what_they_did() {
    let host = catalogue::host("linux").expect("built in").config;
    let mut said = String::new();
    for name in catalogue::drive_names() {
        let config = catalogue::drive(name).expect("built in").config;
        if !matches!(config, DriveConfig::Nand(_)) {
            continue;
        }
        let machine = Machine::from_configs(name, config.shrunk(BYTES), host.clone());
        let mixed = Job {
            mix: Mix::ReadWrite,
            read_percent: 30,
            random: true,
            norandommap: true,
            iodepth: 32,
            number_ios: Some(IOS),
            ..Job::default()
        };
        let in_order = Job {
            block_sizes: [const { BlockSizes::Fixed(128 << 10) }; 3],
            iodepth: 32,
            number_ios: Some(LARGE_IOS),
            ..Job::default()
        };
        let measured = |state, job| {
            let scenario = Scenario::jobs(machine.clone(), state, vec![job], 1);
            let outcome = Lab::new().run(&scenario).expect("it runs");
            outcome.threads[0].clone()
        };
        let of = |one: &lab::Measured| format!("{} {:.3} ns", one.ios, one.latency.mean_ns());
        let thread = measured(Precondition::Steady, mixed);
        let (read, write) = (of(&thread.read), of(&thread.write));
        let large = of(&measured(Precondition::Filled, in_order).read);
        writeln!(
            said,
            "{name}: reads {read}, writes {write}, in order {large}"
        )
        .expect("a string");
    }
    insta::assert_snapshot!(said);
}
