//! Claims of the published sources about XPoint drives, computed from runs of the catalogue's drives in the
//! catalogue's host. Row ids are those of the published figures.

use lab::{Lab, Machine, Measured, Scenario};
use model::Part;
use model::media::Precondition;
use workload::job::{BlockSizes, Job, Mix};

/// Returns a job of 4 KiB random reads at depth 1 that ends after `ios`.
fn job(ios: u64) -> Job {
    Job {
        random: true,
        number_ios: Some(ios),
        group_reporting: true,
        ..Job::default()
    }
}

fn sized(bytes: u32, align: u32, job: Job) -> Job {
    Job {
        block_sizes: [const { BlockSizes::Fixed(0) }; 3].map(|_| BlockSizes::Fixed(bytes)),
        block_align: [align; 3],
        ..job
    }
}

/// Runs jobs on a drive in the reviews' host; returns the totals of all threads, reads and writes.
fn run(drive: &str, jobs: Vec<Job>) -> [Measured; 2] {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let mut host = catalogue::host("xeon-2017").unwrap_or_else(|problems| panic!("{problems}"));
    host.config.io_queues = std::num::NonZeroU16::new(sheet.io_queues);
    let plan = Scenario::jobs(
        Machine::from_configs("a drive", sheet.config, host.config),
        Precondition::Steady,
        jobs,
        1,
    );
    let outcome = Lab::new()
        .run(&plan)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let mut sums = [Measured::default(), Measured::default()];
    for thread in &outcome.threads {
        for (sum, one) in sums.iter_mut().zip([&thread.read, &thread.write]) {
            sum.ios += one.ios;
            sum.bytes += one.bytes;
            sum.over = sum.over.max(one.over);
            sum.latency.merge(&one.latency);
            sum.bands.merge(&one.bands);
        }
    }
    sums
}

/// Runs 4 KiB I/O at this depth, spread over up to four threads as in S1-004; returns reads or writes.
fn at_depth(drive: &str, mix: Mix, depth: u32, ios: u64) -> Measured {
    let threads = depth.min(4);
    let jobs = (0..threads)
        .map(|thread| {
            // Proportional to the depth, so that all threads end together.
            let iodepth = depth / threads + u32::from(thread < depth % threads);
            Job {
                mix,
                iodepth,
                ..job(ios * u64::from(iodepth) / u64::from(depth))
            }
        })
        .collect();
    let [read, write] = run(drive, jobs);
    if mix == Mix::Read { read } else { write }
}

/// Runs depth 1 with this block size; returns bytes per second.
fn at_size(drive: &str, mix: Mix, bytes: u32, align: u32) -> f64 {
    let ios = (200_000_000 / u64::from(bytes)).clamp(300, 20_000);
    let [read, write] = run(drive, vec![sized(bytes, align, Job { mix, ..job(ios) })]);
    read.bytes_per_second() + write.bytes_per_second()
}

fn between(value: f64, range: std::ops::RangeInclusive<f64>, row: &str) {
    assert!(range.contains(&value), "{row}: {value} is not in {range:?}");
}

const P4800X: &str = "p4800x-375";

#[test]
fn random_reads_saturate_by_depth_8_and_meet_the_specification() {
    let iops: Vec<f64> = [1, 4, 6, 8, 16, 64]
        .map(|depth| at_depth(P4800X, Mix::Read, depth, 120_000).iops())
        .to_vec();
    between(iops[0], 104e3..=112e3, "S1-007: 108.3k at depth 1");
    assert!(
        iops[2] > 0.9 * iops[5],
        "S1-014: nearly all of it by depth 6"
    );
    assert!(iops[2] < 0.98 * iops[5], "S1-013: not saturated at depth 6");
    assert!(iops[3] > 0.99 * iops[5], "S1-013: saturated at depth 8");
    between(
        iops[4],
        550e3..=620e3,
        "S4-002, S2-067: 550k specified, 598k measured",
    );
}

#[test]
fn random_writes_saturate_by_depth_8_and_meet_the_specification() {
    let iops: Vec<f64> = [4, 8, 16]
        .map(|depth| at_depth(P4800X, Mix::Write, depth, 120_000).iops())
        .to_vec();
    assert!(iops[0] < 0.7 * iops[2], "not yet at depth 4");
    assert!(iops[1] > 0.9 * iops[2], "S1-032: depth 8 is enough");
    between(iops[2], 500e3..=560e3, "S4-005, S2-025: 500k specified");
}

#[test]
fn tails_keep_within_the_specification() {
    for (mix, depth, limit_us, row) in [
        (Mix::Read, 1, 60.0 + 4.0, "S4-003"),
        (Mix::Read, 16, 150.0, "S4-004"),
        (Mix::Write, 1, 100.0 + 4.0, "S4-006"),
        (Mix::Write, 16, 200.0, "S4-007"),
    ] {
        let measured = at_depth(P4800X, mix, depth, 1_100_000);
        let tail = measured.latency.percentile(99.999).expect("enough samples");
        // At depth 1 the host adds 4 us to the drive's own latency.
        between(tail.us(), limit_us / 3.0..=limit_us, row);
    }
    let measured = at_depth(P4800X, Mix::Write, 64, 1_100_000);
    let tail = measured.latency.percentile(99.999).expect("enough samples");
    let third = 1000.0 / 3.0;
    // No parameter is fitted to this row: the ledger allows a factor of 1.5, and the model is slightly above the row.
    between(
        tail.us(),
        0.85 * third..=1.05 * third,
        "S1-041: up to a third of a millisecond",
    );
}

#[test]
fn the_99th_percentile_is_the_median_at_depth_1_and_twice_it_at_64() {
    let at = |depth, ios, percents: [f64; 2]| {
        let measured = at_depth(P4800X, Mix::Read, depth, ios);
        let [low, high] =
            percents.map(|percent| measured.latency.quantile(percent).expect("samples").us());
        high / low
    };
    between(at(1, 200_000, [50.0, 99.0]), 1.0..=1.1, "S1-019");
    for depth in [16, 32, 64] {
        between(at(depth, 200_000, [50.0, 99.0]), 1.8..=2.2, "S1-020");
    }
    between(
        at(64, 1_100_000, [99.0, 99.999]),
        1.5..=2.5,
        "S1-021, fitted: a factor of two or so",
    );
}

#[test]
fn one_thread_is_bound_by_its_processor() {
    for (mix, row) in [(Mix::Read, "S4-116, S4-117"), (Mix::Write, "S4-121")] {
        let at = |depth| {
            let one = Job {
                mix,
                iodepth: depth,
                ..job(60_000)
            };
            let [read, write] = run(P4800X, vec![one]);
            read.bytes_per_second() + write.bytes_per_second()
        };
        between(at(64), 1.1e9..=1.3e9, row);
        assert!(at(4) > 0.95 * at(64), "{row}: saturated at depth 4");
        assert!(at(2) < 0.8 * at(64), "{row}: and not at depth 2");
    }
}

#[test]
fn large_reads_level_off_and_the_largest_command_bends_the_curve() {
    let sizes = [4096u32, 16_384, 65_536, 131_072, 1 << 20];
    let speed = sizes.map(|bytes| at_size(P4800X, Mix::Read, bytes, bytes));
    assert!(speed[1] / speed[0] > 2.3, "up to 16 KiB it grows fast");
    assert!(speed[2] / speed[1] < 1.8, "S1-008: then it levels off");
    assert!(
        speed[4] / speed[3] < 1.2,
        "S4-105: more moderate growth beyond 128 KiB"
    );
    // The rating, and at most a seventh more, as in the ledger.
    between(speed[4], 2.4e9..=2.76e9, "S4-009");
    let unaligned = sizes.map(|bytes| at_size(P4800X, Mix::Read, bytes, 512));
    for (aligned, unaligned) in speed.iter().zip(unaligned) {
        between(
            unaligned / aligned,
            0.8..=1.0,
            "S4-105: unaligned reads are still great",
        );
    }
}

#[test]
fn unaligned_large_writes_hit_a_limit_near_1300_megabytes_a_second() {
    let aligned = at_size(P4800X, Mix::Write, 1 << 20, 1 << 20);
    between(aligned, 1.9e9..=2.2e9, "S4-109");
    for bytes in [256 << 10, 512 << 10, 1 << 20] {
        let unaligned = at_size(P4800X, Mix::Write, bytes, 512);
        between(unaligned, 1.2e9..=1.4e9, "S4-108");
    }
}

#[test]
fn sequential_128k_saturates_at_depth_2() {
    for (mix, range, row) in [
        // S4-123 has 2.4 to 2.5 GB/s, in units of 10^9 or 2^30 bytes. Independent measurements gave 2.70 x 10^9
        // (M0207), to which the model is fitted.
        (Mix::Read, 2.4e9..=2.7e9, "S4-124, M0207"),
        (Mix::Write, 2.0e9..=2.3e9, "S4-128, S4-129"),
    ] {
        let at = |depth| {
            let one = Job {
                mix,
                random: false,
                iodepth: depth,
                ..job(4_000)
            };
            let [read, write] = run(P4800X, vec![sized(131_072, 131_072, one)]);
            read.bytes_per_second() + write.bytes_per_second()
        };
        let (two, many) = (at(2), at(16));
        between(many, range, row);
        assert!(two > 0.98 * many, "{row}: {two} of {many} at depth 2");
        assert!(at(1) < 0.9 * many, "{row}: not at depth 1");
    }
}

/// Runs sixteen threads at depth 1.
fn mixed(drive: &str, read_percent: u32) -> f64 {
    let threads = Job {
        mix: Mix::ReadWrite,
        read_percent,
        numjobs: 16,
        ..job(12_000)
    };
    run(drive, vec![threads]).iter().map(Measured::iops).sum()
}

#[test]
fn mixes_dip_a_little_and_a_larger_drive_dips_less() {
    let iops = |drive| [0, 10, 30, 50, 70, 100].map(|percent| mixed(drive, percent));
    let small = iops("900p-280");
    let large = iops("p4800x-750");
    let lowest = |iops: &[f64]| iops.iter().copied().fold(f64::INFINITY, f64::min);
    let minor = lowest(&small) / small[0].min(small[5]);
    between(minor, 0.9..=0.999, "S4-134: a minor dip in the middle");
    for (small, large) in small.iter().zip(large).skip(1).take(4) {
        between(
            large / small,
            1.0..=1.1,
            "S4-133: the 750 GB slightly faster",
        );
    }
    between(mixed(P4800X, 70), 500e3..=570e3, "S4-008");
}

#[test]
fn capacity_does_not_change_speed() {
    for (mix, depth) in [
        (Mix::Read, 1),
        (Mix::Read, 16),
        (Mix::Write, 1),
        (Mix::Write, 16),
    ] {
        let iops = |drive| at_depth(drive, mix, depth, 60_000).iops();
        between(
            iops("p4800x-750") / iops(P4800X),
            0.98..=1.02,
            "S4-059, S4-163",
        );
    }
}

#[test]
fn small_modules_are_bound_by_their_dies() {
    let drive_alone = |drive: &str, mix| {
        let measured = at_depth(drive, mix, 1, 20_000);
        let band = &measured.bands.percentile_bands(&[0.0, 100.0])[0];
        let host = [
            Part::ThreadBusy,
            Part::HostSubmission,
            Part::QueueSlot,
            Part::HostCompletion,
        ];
        let spent = Part::ALL.iter().zip(band.mean_ns);
        spent
            .filter(|(part, _)| !host.contains(part))
            .map(|(_, ns)| ns)
            .sum::<f64>()
            * 1e-3
    };
    between(
        drive_alone("optane-memory-32", Mix::Read),
        6.5..=7.5,
        "S0-051: 7 us",
    );
    between(
        drive_alone("optane-memory-32", Mix::Write),
        17.0..=19.0,
        "S0-052: 18 us",
    );
    let iops = |drive, mix| at_depth(drive, mix, 32, 60_000).iops();
    between(
        iops("optane-memory-32", Mix::Read),
        228e3..=252e3,
        "S0-004: 240k",
    );
    between(
        iops("optane-memory-16", Mix::Read),
        210e3..=230e3,
        "S0-081: 220,421",
    );
    between(
        iops("optane-memory-16", Mix::Write),
        35.6e3..=39.4e3,
        "S0-069: 37,564",
    );
    between(
        iops("optane-memory-32", Mix::Write),
        65e3..=75e3,
        "S0-005: 65k specified",
    );
}

/// Returns the power of a drive in a mix of this size, in watts.
fn watts(drive: &str, bytes: u32, read_percent: u32) -> f64 {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let mut host = catalogue::host("xeon-2017").unwrap_or_else(|problems| panic!("{problems}"));
    host.config.io_queues = std::num::NonZeroU16::new(sheet.io_queues);
    let one = Job {
        mix: Mix::ReadWrite,
        read_percent,
        iodepth: 32,
        numjobs: 16,
        ..sized(bytes, bytes, job(60_000))
    };
    let plan = Scenario::jobs(
        Machine::from_configs("a drive", sheet.config, host.config),
        Precondition::Steady,
        vec![one],
        1,
    );
    let outcome = Lab::new()
        .run(&plan)
        .unwrap_or_else(|problems| panic!("{problems}"));
    outcome.watts().expect("the run takes time")
}

#[test]
fn no_mix_draws_more_than_the_limit_allows() {
    for (drive, limit) in [("p5800x-400", 16.0), ("p5800x-800", 18.0)] {
        for bytes in [512, 4096] {
            for read_percent in [30, 50, 70] {
                let drawn = watts(drive, bytes, read_percent);
                assert!(
                    drawn < limit * 1.03,
                    "{drive}, {bytes} B, {read_percent} % reads: {drawn:.1} W"
                );
            }
        }
    }
}
