//! The NAND drives of the catalogue behave as the sources describe. Row ids are those of `figures.csv`; rows to which
//! a parameter was fitted are marked. Tolerances are wide: the test checks the shape, not the last percent.

use lab::{Lab, Machine, Measured, Outcome, Scenario};
use model::media::Precondition;
use model::{Gauge, Span};
use workload::job::{BlockSizes, Job, Mix};

fn outcome(drive: &str, mix: Mix, bytes: u32, depth: u32, threads: u32, ios: u64) -> Outcome {
    let sheet = catalogue::drive(drive).expect("in the catalogue");
    let mut host = catalogue::host("xeon-2017")
        .expect("in the catalogue")
        .config;
    host.io_queues = std::num::NonZeroU16::new(sheet.io_queues);
    let job = Job {
        mix,
        random: true,
        block_sizes: [(); 3].map(|()| BlockSizes::Fixed(bytes)),
        block_align: [bytes; 3],
        iodepth: depth / threads,
        numjobs: threads,
        number_ios: Some(ios / u64::from(threads)),
        norandommap: true,
        ramp_time: Span::from_ms(20),
        ..Job::default()
    };
    let plan = Scenario::jobs(
        Machine::from_configs("a drive", sheet.config, host),
        Precondition::Steady,
        vec![job],
        1,
    );
    Lab::new()
        .run(&plan)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn iops(outcome: &Outcome, pick: impl Fn(&lab::ThreadOutcome) -> &Measured) -> f64 {
    outcome
        .threads
        .iter()
        .map(|thread| pick(thread).iops())
        .sum()
}

fn reads(drive: &str, bytes: u32, depth: u32) -> f64 {
    let ios = 4_000 + 2_000 * u64::from(depth);
    iops(
        &outcome(drive, Mix::Read, bytes, depth, depth.min(4), ios),
        |thread| &thread.read,
    )
}

fn writes(drive: &str, bytes: u32, depth: u32) -> f64 {
    let ios = 20_000 + 6_000 * u64::from(depth);
    iops(
        &outcome(drive, Mix::Write, bytes, depth, depth.min(4), ios),
        |thread| &thread.write,
    )
}

fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let error = got / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {got:.0}, expected {expected:.0} ({:+.1} %)",
        error * 100.0
    );
}

#[test]
fn random_reads() {
    // S1-007 (fitted).
    near("P3700 QD1", reads("p3700-800", 4096, 1), 12_800.0, 0.03);
    near(
        "9100 MAX QD1",
        reads("9100max-2400", 4096, 1),
        9_200.0,
        0.03,
    );
    // S1-017: the P3700 is ahead through most of the sweep; its peak is slightly lower (fitted).
    assert!(reads("p3700-800", 4096, 32) > 1.1 * reads("9100max-2400", 4096, 32));
    assert!(reads("p3700-800", 4096, 64) < reads("9100max-2400", 4096, 64));
    // S1-009: the Micron is ahead above 16 kB (fitted).
    assert!(reads("p3700-800", 16_384, 1) > reads("9100max-2400", 16_384, 1));
    assert!(reads("p3700-800", 65_536, 1) < reads("9100max-2400", 65_536, 1));
    // S1-011: the P4800X is 1.3 times as fast at QD64. (With 1 MB at QD1 it is 1.7 times as fast, where S1-010 has
    // 1.5: M0207 determines its path, and the ledger shows that S1-010 misses.)
    near(
        "QD64",
        reads("p4800x-375", 4096, 64) / reads("9100max-2400", 4096, 64),
        1.3,
        0.1,
    );
}

#[test]
fn random_writes() {
    let optane = writes("p4800x-375", 4096, 1);
    // S1-026 and S1-029 (fitted).
    near(
        "P3700 QD1",
        optane / writes("p3700-800", 4096, 1),
        1.3,
        0.05,
    );
    near(
        "9100 MAX QD1",
        optane / writes("9100max-2400", 4096, 1),
        2.0,
        0.05,
    );
    // S1-033: the P3700 saturates at about QD2; S1-034: the Micron soon overtakes it.
    let done = writes("p3700-800", 4096, 16);
    assert!(writes("p3700-800", 4096, 2) > 0.9 * done);
    assert!(writes("9100max-2400", 4096, 4) > done);
    // S1-031 (fitted), S1-032: half of the P4800X's rate, at QD8 and above.
    let peak = writes("9100max-2400", 4096, 64);
    near(
        "9100 MAX peak",
        peak / writes("p4800x-375", 4096, 64),
        0.5,
        0.1,
    );
    assert!(writes("9100max-2400", 4096, 8) > 0.9 * peak);
    // S1-025: the Micron is slow with writes below 4 KiB, the P3700 is not.
    assert!(writes("9100max-2400", 512, 1) < 0.4 * writes("9100max-2400", 4096, 1));
    assert!(writes("p3700-800", 512, 1) > 0.9 * writes("p3700-800", 4096, 1));
    // S4-091: two controllers of the P3608 write as fast as one P3700.
    near(
        "P3608",
        writes("p3608-1600", 4096, 64),
        writes("p3700-1600", 4096, 64),
        0.1,
    );
}

#[test]
fn steady_write_amplification_does_not_depend_on_depth() {
    let amplification = |depth: u32| {
        let outcome = outcome("p3700-1600", Mix::Write, 4096, depth, depth.min(4), 200_000);
        let gauge = |gauge| outcome.gauge(gauge).expect("reported");
        gauge(Gauge::MediumBytesWritten) / gauge(Gauge::HostBytesWritten)
    };
    near(
        "QD1 against QD32",
        amplification(1),
        amplification(32),
        0.03,
    );
}
