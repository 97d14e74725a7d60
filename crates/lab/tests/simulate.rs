//! Closed loops, rate limits, mixes, stonewalls and sweeps on a RAM disk, whose times have a closed form.

use lab::{Lab, Machine, Outcome, Scenario, to_the_end};
use model::host::{Engine, HostConfig};
use model::media::Precondition;
use model::media::ram::RamConfig;
use model::{Span, Time};
use tier::DriveConfig;
use workload::job::{
    BlockSizes, Extent, Job, LatencyTarget, Mix, Rate, RateProcess, SteadyMetric, SteadyState,
    ThinkTime, TimedIo,
};

const SERVICE_US: u64 = 10;

fn plan(jobs: Vec<Job>) -> Scenario {
    Scenario::jobs(
        Machine::from_configs(
            "a drive",
            DriveConfig::Ram(RamConfig {
                bytes: 1 << 30,
                per_command: Span::from_us(SERVICE_US),
                picoseconds_per_byte: 0,
                memory_bus: None,
                spread: 0.0,
            }),
            HostConfig::default(),
        ),
        Precondition::Fresh,
        jobs,
        1,
    )
}

fn run(jobs: Vec<Job>) -> Outcome {
    Lab::new().run(&plan(jobs)).expect("the jobs fit")
}

fn timed(seconds: u64) -> Job {
    Job {
        random: true,
        runtime: Some(Span::from_ms(seconds * 1000)),
        time_based: true,
        ..Job::default()
    }
}

#[test]
fn one_server_gives_one_over_its_time_at_any_depth() {
    for depth in [1, 4, 32] {
        let outcome = run(vec![Job {
            iodepth: depth,
            ..timed(1)
        }]);
        let read = &outcome.threads[0].read;
        let expected = 1e6 / SERVICE_US as f64;
        assert!(
            (read.iops() / expected - 1.0).abs() < 1e-3,
            "{}",
            read.iops()
        );
        // Little's law: depth = throughput x latency.
        let depth_seen = read.iops() * read.latency.mean_ns() * 1e-9;
        assert!(
            (depth_seen / f64::from(depth) - 1.0).abs() < 1e-3,
            "{depth_seen}"
        );
    }
}

#[test]
fn a_pass_covers_the_range_once() {
    for random in [false, true] {
        let outcome = run(vec![Job {
            random,
            mix: Mix::Write,
            size: Some(Extent::Bytes(4 << 20)),
            loops: 3,
            ..Job::default()
        }]);
        assert_eq!(outcome.threads[0].write.bytes, 3 * (4 << 20));
    }
}

/// fio skips the remainder after the last whole block: of 220 KiB in blocks of 2,300 B it writes 97.
#[test]
fn a_pass_ends_with_the_last_whole_block() {
    for random in [false, true] {
        let outcome = run(vec![Job {
            random,
            mix: Mix::Write,
            size: Some(Extent::Bytes(220 << 10)),
            block_sizes: [2300; 3].map(BlockSizes::Fixed),
            block_align: [2300; 3],
            whole_pages: true,
            fdatasync: 1,
            ..Job::default()
        }]);
        let thread = &outcome.threads[0];
        assert_eq!((thread.write.ios, thread.write.errors), (97, 0));
        assert_eq!(thread.write.bytes, 97 * 2300);
        assert_eq!(thread.sync.ios, 97 - 1);
    }
}

#[test]
fn number_ios_ends_the_run() {
    let outcome = run(vec![Job {
        number_ios: Some(123),
        iodepth: 7,
        ..Job::default()
    }]);
    assert_eq!(outcome.threads[0].read.ios, 123);
}

/// I/O counts of fio 3.33 for 64 MiB.
#[test]
fn number_ios_is_of_each_loop_and_ends_nothing_that_is_time_based() {
    let ios = |number_ios, job: Job| {
        let job = Job {
            number_ios: Some(number_ios),
            size: Some(Extent::Bytes(64 << 20)),
            iodepth: 1,
            ..job
        };
        run(vec![job]).threads[0].read.ios
    };
    let loops = |loops| Job {
        loops,
        ..Job::default()
    };
    assert_eq!(ios(100, loops(3)), 300);
    assert_eq!(ios(10_000, loops(3)), 30_000);
    assert_eq!(ios(20_000, loops(1)), 16_384);
    assert_eq!(ios(20_000, loops(3)), 3 * 16_384);
    for random in [false, true] {
        let round = Job {
            io_size: Some(Job::ROUND),
            random,
            ..Job::default()
        };
        assert_eq!(ios(20_000, round), 20_000);
    }
    let timed = Job {
        time_based: true,
        runtime: Some(Span::from_ms(200)),
        ..Job::default()
    };
    assert!(ios(100, timed) > 10_000);
}

/// I/O counts of fio 3.33 for a file of 128 MiB in blocks of 4 KiB.
#[test]
fn what_leaves_out_stretches_ends_with_its_range_and_goes_round_a_file() {
    let ios = |skip: i64, mib: u64, job: Job| {
        let job = Job {
            skip: skip << 10,
            size: Some(Extent::Bytes(mib << 20)),
            filesize: Some(128 << 20),
            ..job
        };
        run(vec![job]).threads[0].read.ios
    };
    assert_eq!(ios(12, 64, Job::default()), 4_096);
    assert_eq!(ios(10, 64, Job::default()), 4_682);
    assert_eq!(ios(2, 64, Job::default()), 10_923);
    assert_eq!(ios(12, 128, Job::default()), 32_768);
    let twice = Job {
        loops: 2,
        ..Job::default()
    };
    assert_eq!(ios(12, 64, twice), 8_192);
    let round = Job {
        io_size: Some(Extent::Bytes(200 << 20)),
        ..Job::default()
    };
    assert_eq!(ios(12, 64, round), 51_200);
}

/// fio takes a percentage of the file, limited to the part after the offset.
#[test]
fn percentages_are_of_the_file_and_end_with_it() {
    let moved = |job: Job| {
        let job = Job {
            block_sizes: [(); 3].map(|()| BlockSizes::Fixed(1 << 20)),
            ..job
        };
        run(vec![job]).threads[0].read.bytes >> 20
    };
    for (percent, mib) in [(100.0, 512), (60.0, 512), (25.0, 256)] {
        let behind = Job {
            offset: Extent::Percent(50.0),
            size: Some(Extent::Percent(percent)),
            ..Job::default()
        };
        assert_eq!(moved(behind), mib);
    }
    let of_a_file = Job {
        filesize: Some(64 << 20),
        size: Some(Extent::Percent(50.0)),
        ..Job::default()
    };
    assert_eq!(moved(of_a_file), 32);
}

/// A direction without a rate limit continues meanwhile.
#[test]
fn a_rate_of_one_direction_does_not_hold_up_the_other() {
    let outcome = run(vec![Job {
        mix: Mix::ReadWrite,
        rate: [Some(Rate::Iops(100)), None, None],
        iodepth: 4,
        ..timed(2)
    }]);
    let thread = &outcome.threads[0];
    assert_eq!(thread.read.ios, 200);
    let all = thread.read.ios + thread.write.ios;
    assert!(all > 199_000, "{all} I/Os at {SERVICE_US} us");
}

#[test]
fn linear_rates_are_exact() {
    let outcome = run(vec![Job {
        rate: [Some(Rate::Iops(5000)), None, None],
        ..timed(2)
    }]);
    assert_eq!(outcome.threads[0].read.ios, 10_000);
    assert_eq!(
        outcome.threads[0].read.latency.max(),
        Some(Span::from_us(SERVICE_US))
    );
}

#[test]
fn poisson_arrivals_at_one_server_wait_as_pollaczek_and_khinchine_say() {
    // M/D/1 at 60 %: mean wait = rho / (2 (1 - rho)) services.
    let rho = 0.6;
    let outcome = run(vec![Job {
        rate: [
            Some(Rate::Iops((rho * 1e6 / SERVICE_US as f64) as u64)),
            None,
            None,
        ],
        rate_process: RateProcess::Poisson,
        iodepth: 1000,
        ..timed(20)
    }]);
    let expected = SERVICE_US as f64 * 1e3 * (1.0 + rho / (2.0 * (1.0 - rho)));
    let mean = outcome.threads[0].read.latency.mean_ns();
    assert!(
        (mean / expected - 1.0).abs() < 0.01,
        "{mean} for {expected}"
    );
}

#[test]
fn mixes_keep_their_ratio() {
    let outcome = run(vec![Job {
        mix: Mix::ReadWrite,
        read_percent: 70,
        iodepth: 4,
        ..timed(2)
    }]);
    let thread = &outcome.threads[0];
    let share = thread.read.ios as f64 / (thread.read.ios + thread.write.ios) as f64;
    assert!((share - 0.7).abs() < 0.005, "{share}");
}

#[test]
fn a_stonewall_waits_for_all_before_it() {
    let jobs = vec![
        timed(1),
        Job {
            runtime: Some(Span::from_ms(2000)),
            ..timed(2)
        },
        Job {
            stonewall: true,
            startdelay: Span::from_ms(500),
            ..timed(1)
        },
    ];
    let outcome = run(jobs);
    assert_eq!(outcome.threads[0].started, Time::ZERO);
    // The threads are woken in turn.
    let apart = outcome.threads[1].started;
    assert!(Time::ZERO < apart && apart < Time::ZERO + Span::from_us(100));
    assert_eq!(
        outcome.threads[2].started,
        outcome.threads[1].ended + Span::from_ms(500)
    );
    assert_eq!(outcome.threads[2].group, 1);
}

#[test]
fn the_ramp_is_not_counted_and_prolongs_the_run() {
    let outcome = run(vec![Job {
        ramp_time: Span::from_ms(500),
        ..timed(1)
    }]);
    let thread = &outcome.threads[0];
    assert!(thread.ended >= Time::from_ns(1_500_000_000));
    let expected = 1_000_000 / SERVICE_US;
    assert!(
        thread.read.ios.abs_diff(expected) <= 1,
        "{}",
        thread.read.ios
    );
    assert!((outcome.counted.seconds() - 1.0).abs() < 1e-3);
}

#[test]
fn thinking_pauses_after_each_group_of_blocks() {
    let outcome = run(vec![Job {
        think: Some(ThinkTime {
            pause: Span::from_us(100),
            blocks: 10,
            ..ThinkTime::default()
        }),
        ..timed(1)
    }]);
    // Ten services and one pause per 200 us.
    assert!(outcome.threads[0].read.ios.abs_diff(50_000) <= 10);
}

#[test]
fn syncs_come_after_so_many_writes_and_at_the_end() {
    let outcome = run(vec![Job {
        mix: Mix::Write,
        number_ios: Some(100),
        fsync: 8,
        end_fsync: true,
        iodepth: 4,
        ..Job::default()
    }]);
    let thread = &outcome.threads[0];
    assert_eq!(thread.write.ios, 100);
    assert_eq!(thread.sync.ios, 100 / 8 + 1);
}

#[test]
fn a_sync_takes_its_turn_in_the_depth() {
    let mut plan = plan(vec![Job {
        mix: Mix::Write,
        number_ios: Some(1000),
        fsync: 1,
        ..Job::default()
    }]);
    plan.machine = plan.machine.with_host(|host| {
        host.engines[Engine::Libaio as usize].submit = Span::from_us(SERVICE_US);
    });
    let outcome = Lab::new().run(&plan).expect("the jobs fit");
    // 10 us to submit a write and 10 to serve it; then 10 to submit the sync, which ends at that time. Nothing
    // overlaps, and the last write ends the job.
    let steps = 1000 * 2 + 999;
    assert_eq!(outcome.end, Time::ZERO + Span::from_us(steps * SERVICE_US));
}

#[test]
fn recorded_ios_are_played_when_due() {
    let records: Vec<TimedIo> = (0..100)
        .map(|index| TimedIo {
            at: Span::from_us(index * 50),
            op: model::Op::Read,
            offset: index * 4096,
            bytes: 4096,
        })
        .collect();
    let outcome = run(vec![Job {
        records: Some(records.into()),
        iolog: Some(workload::job::IoLog {
            path: "trace".into(),
            no_stall: false,
            time_scale: 200,
        }),
        iodepth: 16,
        ..Job::default()
    }]);
    assert_eq!(outcome.threads[0].read.ios, 100);
    assert_eq!(outcome.end, Time::from_ns(99 * 25_000 + SERVICE_US * 1000));
}

#[test]
fn all_problems_come_at_once() {
    let jobs = vec![
        Job {
            name: String::from("far"),
            offset: Extent::Bytes(2 << 30),
            ..Job::default()
        },
        Job {
            name: String::from("odd"),
            block_sizes: std::array::from_fn(|_| workload::job::BlockSizes::Fixed(1000)),
            ..Job::default()
        },
        Job {
            name: String::from("large"),
            size: Some(Extent::Bytes(2048)),
            ..Job::default()
        },
    ];
    let problems = Lab::new().run(&plan(jobs)).expect_err("nothing fits");
    insta::assert_snapshot!(problems, @r"
    error: job far: offset 2147483648 of copy 0 lies beyond the drive's 1073741824 B
      help: a smaller offset, offset_increment or numjobs
    error: job odd: a read block of 1000 B is not a multiple of the drive's 512 B sectors
      help: direct I/O moves whole sectors: bs is a multiple of 512
    error: job large: a read block of 4096 B is larger than the range of 2048 B
      help: a larger size or a smaller bs
    ");
}

#[test]
fn a_sweep_is_the_same_on_any_number_of_threads() {
    let plans: Vec<Scenario> = [1, 2, 3, 8, 16]
        .into_iter()
        .map(|depth| {
            plan(vec![Job {
                mix: Mix::ReadWrite,
                iodepth: depth,
                numjobs: 2,
                runtime: Some(Span::from_ms(50)),
                ..timed(1)
            }])
        })
        .collect();
    let on = |threads: usize| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool")
            .install(|| Lab::new().run_all(&plans, &to_the_end))
    };
    let one = on(1);
    assert!(one == on(2));
    assert!(one == on(5));
    let alone: Vec<_> = plans.iter().map(|plan| Lab::new().run(plan)).collect();
    assert!(one == alone);
}

#[test]
fn the_latency_target_finds_the_depth() {
    // One server: at depth n every I/O takes n services.
    let outcome = run(vec![Job {
        iodepth: 64,
        latency_target: Some(LatencyTarget {
            target: Span::from_us(SERVICE_US * 23),
            window: Span::from_ms(20),
            percentile: 99.0,
            run: false,
        }),
        ..timed(60)
    }]);
    assert_eq!(outcome.threads[0].latency_depth, Some(23));
    assert!(outcome.end < Time::from_ns(1_000_000_000), "it stops then");
}

#[test]
fn a_steady_job_ends_early() {
    let outcome = run(vec![Job {
        steady_state: Some(SteadyState {
            metric: SteadyMetric::Bandwidth,
            slope: false,
            limit: 5.0,
            percent: true,
            duration: Span::from_ms(5000),
            ramp: Span::from_ms(1000),
            interval: Span::from_ms(1000),
        }),
        ..timed(60)
    }]);
    let at = outcome.threads[0].steady_at.expect("a RAM disk is steady");
    assert_eq!(at.ns() / 1_000_000_000, 6);
}

#[test]
fn a_synchronous_interface_keeps_one_in_flight() {
    let outcome = run(vec![Job {
        iodepth: 32,
        engine: model::host::Engine::Sync,
        ..timed(1)
    }]);
    let read = &outcome.threads[0].read;
    assert_eq!(read.latency.max(), Some(Span::from_us(SERVICE_US)));
    assert_eq!(read.submission.count(), 0, "fio does not tell it apart");
}

#[test]
fn a_batch_is_reaped_together() {
    let outcome = run(vec![Job {
        iodepth: 8,
        iodepth_batch: 4,
        iodepth_batch_complete_min: 4,
        number_ios: Some(4000),
        ..Job::default()
    }]);
    // Eight I/Os wait at one server of 10 us and are reaped four at a time. Each batch is issued when the server has
    // four left, so its I/Os complete 50 to 80 us later and are all reaped after 80.
    let read = &outcome.threads[0].read;
    assert_eq!(read.ios, 4000);
    assert_eq!(
        read.latency.quantile(50.0),
        Some(Span::from_us(8 * SERVICE_US))
    );
    let spread = read.latency.deviation_ns() / read.latency.mean_ns();
    assert!(spread < 0.05, "{spread}");
}

#[test]
fn low_depth_lets_the_queue_run_down() {
    let outcome = run(vec![Job {
        iodepth: 8,
        iodepth_low: 1,
        number_ios: Some(7_000),
        ..Job::default()
    }]);
    // Refilled from 1 to 8: one seventh of the I/Os is issued at each depth from 2 to 8 (classes 2-3, 4-7, 8).
    let depths = outcome.threads[0].depths;
    let share = |class: usize| depths[class] as f64 / 7_000.0;
    assert!((share(1) - 2.0 / 7.0).abs() < 0.01, "{depths:?}");
    assert!((share(2) - 4.0 / 7.0).abs() < 0.01, "{depths:?}");
    assert!((share(3) - 1.0 / 7.0).abs() < 0.01, "{depths:?}");
}

#[test]
fn each_block_is_trimmed_and_then_written() {
    let outcome = run(vec![Job {
        mix: Mix::TrimWrite,
        number_ios: Some(1000),
        ..Job::default()
    }]);
    let thread = &outcome.threads[0];
    assert_eq!((thread.trim.ios, thread.write.ios), (500, 500));
}
