//! Any job that passes the checks runs to its end, issues the configured I/Os, stays in its range, and gives the same
//! outcome again.

use lab::{Lab, Machine, Outcome, Scenario, Work};
use model::Span;
use model::host::{Engine, EngineCosts, HostConfig};
use model::media::Precondition;
use model::media::ram::RamConfig;
use proptest::prelude::*;
use tier::DriveConfig;
use workload::job::{
    BlockSizes, Distribution, Extent, Job, LatencyTarget, Mix, Rate, RateProcess, Sequencer,
    SyncMode, ThinkTime,
};

const IOS: u64 = 300;

fn block_sizes() -> impl Strategy<Value = BlockSizes> {
    prop_oneof![
        (1u32..64).prop_map(|n| BlockSizes::Fixed(n * 512)),
        (1u32..8, 0u32..32).prop_map(|(min, more)| BlockSizes::Range {
            min: min * 512,
            max: (min + more) * 512,
            step: min * 512,
        }),
        Just(BlockSizes::Split(vec![
            (4096, 70.0),
            (16384, 25.0),
            (512, 5.0)
        ])),
    ]
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let centre = prop::option::of(0.0f64..=1.0);
    prop_oneof![
        Just(Distribution::Random),
        (0.1f64..3.0, centre.clone())
            .prop_map(|(theta, centre)| Distribution::Zipf { theta, centre }),
        (0.05f64..0.95, centre.clone())
            .prop_map(|(power, centre)| Distribution::Pareto { power, centre }),
        (1.0f64..60.0, centre)
            .prop_map(|(deviation, centre)| Distribution::Normal { deviation, centre }),
        Just(Distribution::Zoned(vec![(60.0, 10.0), (40.0, 90.0)])),
        Just(Distribution::ZonedAbsolute(vec![
            (60.0, 65536),
            (40.0, 1 << 30)
        ])),
    ]
}

prop_compose! {
    fn shape()(
        mix in prop_oneof![
            Just(Mix::Read), Just(Mix::Write), Just(Mix::Trim), Just(Mix::ReadWrite), Just(Mix::TrimWrite)
        ],
        random: bool,
        read_percent in 0u32..=100,
        sequence in 1u32..5,
        identical: bool,
        skip in -8i64..8,
        sizes in block_sizes(),
        spread in distribution(),
        norandommap: bool,
        percentage_random in 0u32..=100,
    ) -> Job {
        Job {
            mix,
            random,
            read_percent,
            sequence,
            sequencer: if identical { Sequencer::Identical } else { Sequencer::Sequential },
            skip: skip * 512,
            block_sizes: [sizes.clone(), sizes.clone(), sizes],
            block_align: [512; 3],
            distribution: [spread.clone(), spread.clone(), spread],
            norandommap,
            percentage_random: [percentage_random; 3],
            ..Job::default()
        }
    }
}

prop_compose! {
    fn job()(
        shape in shape(),
        depths in (1u32..20, 1u32..20, 1u32..20, 0u32..20),
        numjobs in 1u32..4,
        paces in prop::option::of((any::<bool>(), 1000u64..100_000)),
        poisson: bool,
        think in prop::option::of((1u64..200, 1u32..20, any::<bool>())),
        syncs in (0u32..6, 0u32..6, any::<bool>(), any::<bool>()),
        engine in prop::sample::select(&Engine::ALL[..]),
        high_priority: bool,
        target in prop::option::of(20u64..400),
    ) -> Job {
        Job {
            iodepth: depths.0,
            iodepth_batch: depths.1,
            iodepth_batch_complete_min: depths.2,
            iodepth_low: depths.3,
            numjobs,
            rate: [paces.map(|(bytes, rate)| if bytes { Rate::Bytes(rate * 4096) } else { Rate::Iops(rate) }); 3],
            rate_process: if poisson { RateProcess::Poisson } else { RateProcess::Linear },
            think: think.map(|(pause, blocks, by_issue)| ThinkTime {
                pause: Span::from_us(pause),
                spin: Span::from_us(pause / 2),
                blocks,
                iotime: Span::ZERO,
                by_issue,
            }),
            fsync: syncs.0,
            fdatasync: syncs.1,
            end_fsync: syncs.2,
            sync: if syncs.3 { SyncMode::Sync } else { SyncMode::None },
            engine,
            high_priority,
            latency_target: target.map(|us| LatencyTarget {
                target: Span::from_us(us),
                window: Span::from_ms(1),
                percentile: 90.0,
                run: true,
            }),
            offset: Extent::Bytes(64 << 10),
            size: Some(Extent::Bytes(1 << 20)),
            io_size: Some(Extent::Bytes(1 << 40)),
            number_ios: Some(IOS),
            ..shape
        }
    }
}

fn run(jobs: Vec<Job>) -> Outcome {
    let costs = EngineCosts {
        application: Span::from_ns(300),
        submit: Span::from_us(1),
        reap: Span::from_ns(700),
        ..EngineCosts::default()
    };
    let plan = Scenario {
        machine: Machine::from_configs(
            "a drive",
            DriveConfig::Ram(RamConfig {
                bytes: (64 << 10) + (1 << 20),
                per_command: Span::from_us(5),
                picoseconds_per_byte: 100,
                memory_bus: None,
                spread: 0.0,
            }),
            HostConfig {
                cores: 2,
                engines: [costs; Engine::COUNT],
                interrupt: Span::from_ns(500),
                ..HostConfig::default()
            },
        ),
        state: Precondition::Fresh,
        work: Work::Jobs(jobs),
        seed: 5,
        warm_seed: None,
        series_every: Span::from_ms(1),
        faults: Vec::new(),
        heat: None,
    };
    Lab::new().run(&plan).expect("the jobs fit")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_job_runs_to_its_end(jobs in prop::collection::vec(job(), 1..3), stonewall: bool) {
        let mut jobs = jobs;
        for job in &mut jobs[1..] {
            job.stonewall = stonewall;
        }
        let outcome = run(jobs.clone());
        for thread in &outcome.threads {
            let job = &jobs[thread.job];
            let done = [&thread.read, &thread.write, &thread.trim];
            let ios: u64 = done.iter().map(|one| one.ios).sum();
            if thread.latency_depth == Some(0) {
                // Even depth 1 does not meet the target: the job ends, as in fio.
                prop_assert!(ios <= IOS);
            } else {
                prop_assert_eq!(ios, IOS);
            }
            prop_assert!(done.iter().all(|one| one.errors == 0), "left its range");
            prop_assert_eq!(thread.depths.iter().sum::<u64>(), ios);
            for one in done {
                prop_assert_eq!(one.latency.count(), one.ios);
                prop_assert_eq!(one.series.iter().map(|interval| interval.ios).sum::<u64>(), one.ios);
                // Little's law: the total time of outstanding I/Os is at most the depth times the run time.
                let in_flight = one.latency.mean_ns() * one.ios as f64;
                let room = thread.ended.since(thread.started).ns() as f64 * f64::from(job.iodepth);
                prop_assert!(in_flight <= room * (1.0 + 1e-9));
            }
            prop_assert!(job.end_fsync <= (thread.sync.ios > 0));
        }
        prop_assert!(outcome == run(jobs), "the same plan gives the same outcome");
    }
}
