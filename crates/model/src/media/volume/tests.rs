//! Laws of devices; rounds, the store's width, and limits.

use alloc::string::String;

use proptest::prelude::*;

use super::*;
use crate::conformance;
use crate::media::{Medium, Precondition};

const MS: Span = Span::from_ms(1);

/// A small volume with all features: both limits with bursts, those of an instance, rounds, pauses, few slots.
fn small() -> VolumeConfig {
    let limit = |rate, burst, credits| {
        Some(Limit {
            rate,
            burst: Some(Burst {
                rate: burst,
                credits,
            }),
        })
    };
    VolumeConfig {
        bytes: 64 << 20,
        block: 512,
        path: IoPath {
            round: Span::from_us(20),
            each: Span::from_us(5),
            read_ps_per_byte: 500,
            write_ps_per_byte: 300,
            spread: 0.2,
            pace: Span::from_us(100),
            pause: Some(Pause {
                every: Span::from_ms(5),
                mean: MS,
            }),
        },
        store: Store {
            read: Span::from_us(200),
            write: Span::from_us(300),
            read_ps_per_byte: 1_000,
            write_ps_per_byte: 1_000,
            spread: 0.3,
            width: 8,
        },
        limits: Limits {
            iops: limit(20_000, 40_000, 500),
            bytes: limit(200_000_000, 400_000_000, 5_000_000),
            io_size: 65_536,
            window: MS,
        },
        instance: Limits {
            bytes: Some(Limit {
                rate: 300_000_000,
                burst: None,
            }),
            ..Limits::NONE
        },
    }
}

/// A volume without any times except those that a test sets.
fn bare() -> VolumeConfig {
    VolumeConfig {
        path: IoPath {
            round: Span::ZERO,
            each: Span::ZERO,
            read_ps_per_byte: 0,
            write_ps_per_byte: 0,
            spread: 0.0,
            pace: Span::ZERO,
            pause: None,
        },
        store: Store {
            read: Span::from_us(100),
            write: Span::from_us(100),
            read_ps_per_byte: 0,
            write_ps_per_byte: 0,
            spread: 0.0,
            width: MOST_WIDTH,
        },
        limits: Limits::NONE,
        instance: Limits::NONE,
        ..small()
    }
}

/// Runs `count` commands at a fixed queue depth; returns when each completed, and its anatomy.
fn closed(volume: &mut Volume, depth: u32, count: usize, bytes: u32) -> Vec<(Time, Anatomy)> {
    let (mut all, mut done) = (Vec::new(), Vec::new());
    for id in 0..depth {
        volume.submit(Time::ZERO, Command::read(id, 0, bytes));
    }
    while all.len() < count {
        let now = volume.next_event();
        volume.advance(now, now, &mut done);
        for completion in done.drain(..) {
            all.push((completion.at, completion.anatomy));
            volume.submit(now, Command::read(completion.id, 0, bytes));
        }
    }
    all
}

/// Returns completions per second of such a volume, over the second half of its run.
fn rate(config: VolumeConfig, depth: u32, count: usize, bytes: u32) -> f64 {
    let all = closed(&mut Volume::new(config, false, 1), depth, count, bytes);
    let (first, last) = (all[count / 2].0, all[count - 1].0);
    (count - 1 - count / 2) as f64 / last.since(first).seconds()
}

#[test]
fn it_is_a_drive() {
    assert_eq!(small().problems(), Vec::<String>::new());
    conformance::check_drive(|seed| small().build(Precondition::Fresh, seed));
}

#[test]
fn other_volumes_are_drives() {
    let one_at_a_time = |config: &mut VolumeConfig| config.store.width = 1;
    let narrow = |config: &mut VolumeConfig| {
        config.limits.window = Span::from_ns(1);
        config.limits.io_size = 512;
    };
    let at_once = |config: &mut VolumeConfig| {
        config.path = bare().path;
        config.limits = Limits::NONE;
    };
    let store_less = |config: &mut VolumeConfig| {
        config.store = Store {
            read: Span::ZERO,
            write: Span::ZERO,
            read_ps_per_byte: 0,
            write_ps_per_byte: 0,
            ..config.store
        };
    };
    let changes: [&dyn Fn(&mut VolumeConfig); 4] = [&one_at_a_time, &narrow, &at_once, &store_less];
    for change in changes {
        let mut config = small();
        change(&mut config);
        assert_eq!(config.problems(), Vec::<String>::new());
        conformance::Suite {
            seeds: 2,
            exact_depth: true,
            ..conformance::Suite::default()
        }
        .check(|seed| config.build(Precondition::Steady, seed));
    }
}

/// Acknowledged data is durable: a power cut loses nothing, and no outstanding command completes.
#[test]
fn a_power_cut_takes_nothing() {
    let suite = conformance::Suite::default();
    let lost: u64 = (0..4)
        .map(|seed| {
            suite
                .power_cuts(seed, small().build(Precondition::Fresh, seed))
                .unwrap_or_else(|violation| panic!("{violation}"))
        })
        .sum();
    assert_eq!(lost, 0);
}

/// Little's law for a store with slots: as many in service as there are slots, each for its time.
#[test]
fn as_many_are_served_as_there_are_places() {
    let mut config = bare();
    config.store.width = 4;
    for (depth, served) in [(1, 1.0), (3, 3.0), (4, 4.0), (32, 4.0)] {
        let found = rate(config.clone(), depth, 4_000, 4096);
        assert!(
            (found / (served * 10_000.0) - 1.0).abs() < 0.01,
            "{depth}: {found}"
        );
    }
}

/// In a round, all waiting commands proceed together and share the cost of the round: throughput grows with depth. The
/// last one of a round returns when the next round has begun, so that with N in flight each round has N - 1.
#[test]
fn a_round_is_shared_by_all_that_wait() {
    let mut config = bare();
    config.path.round = Span::from_us(50);
    config.path.each = Span::from_us(10);
    config.path.read_ps_per_byte = 1_000;
    config.store.read = Span::ZERO;
    for depth in [1, 4, 16, 64] {
        let together = f64::from((depth - 1).max(1));
        let round = 50.0 + together * (10.0 + 8.192);
        let found = rate(config.clone(), depth, 6_400, 8192);
        let expected = together * 1e6 / round;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{depth}: {found} for {expected}"
        );
    }
}

/// Work that takes longer than a pace lasts spans several paces, and varies less.
#[test]
fn long_work_differs_less_than_short() {
    let deviation = |work: Span| {
        let path = IoPath {
            spread: 0.3,
            pace: Span::from_us(100),
            ..bare().path
        };
        let mut thread = PacedThread::new(&path, 3);
        let mut now = Time::ZERO;
        let logs: Vec<f64> = (0..20_000)
            .map(|_| {
                let at = thread.work(now, work);
                let took = at.since(now);
                now = at;
                libm::log(took.seconds() / work.seconds())
            })
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        libm::sqrt(squares / logs.len() as f64)
    };
    let short = deviation(Span::from_us(2));
    assert!((short - 0.3).abs() < 0.03, "{short}");
    // A hundred paces long.
    let long = deviation(Span::from_ms(10));
    assert!((long - 0.03).abs() < 0.005, "{long}");
}

/// Half of the factors are below 1, and two thirds are within the deviation.
#[test]
fn a_spread_is_that_of_the_logarithm() {
    let mut stream = Stream::new(7, "spread");
    let logs: Vec<f64> = (0..100_000)
        .map(|_| libm::log(stream.lognormal(0.25)))
        .collect();
    let share = |within: f64| {
        let inside = logs.iter().filter(|log| log.abs() < within);
        inside.count() as f64 / logs.len() as f64
    };
    let below = logs.iter().filter(|log| **log < 0.0).count() as f64 / logs.len() as f64;
    assert!((below - 0.5).abs() < 0.01, "{below}");
    assert!((share(0.25) - 0.6827).abs() < 0.01, "{}", share(0.25));
    assert!((share(0.5) - 0.9545).abs() < 0.01, "{}", share(0.5));
    assert_eq!(stream.lognormal(0.0), 1.0);
}

/// Pauses take their share of the thread's work, and are visible in the waiting time.
#[test]
fn pauses_take_their_share() {
    let mut config = bare();
    config.store.read = Span::ZERO;
    config.path.each = Span::from_us(10);
    config.path.pause = Some(Pause {
        every: MS,
        mean: Span::from_us(500),
    });
    let found = rate(config, 4, 400_000, 4096);
    assert!((found / (100_000.0 / 1.5) - 1.0).abs() < 0.05, "{found}");
}

/// The anatomy of a delayed command attributes the delay to the limit.
#[test]
fn what_is_held_back_says_so() {
    let mut config = bare();
    config.limits.iops = Some(Limit {
        rate: 1_000,
        burst: None,
    });
    let all = closed(&mut Volume::new(config, false, 1), 8, 1_000, 4096);
    let (_, last) = all[999];
    assert!(last.get(Part::Throttle) > Span::from_us(7_800), "{last:?}");
    assert_eq!(last.get(Part::Medium), Span::from_us(100));
}

/// A larger I/O counts as several, and the stricter limit applies.
#[test]
fn large_ones_count_as_several_and_the_nearer_limit_decides() {
    let mut config = bare();
    let limit = |rate| Some(Limit { rate, burst: None });
    config.limits.iops = limit(1_000);
    config.limits.io_size = 16_384;
    assert!((rate(config.clone(), 16, 2_000, 65_536) - 250.0).abs() < 2.5);
    config.limits.bytes = limit(10_000_000);
    assert!((rate(config.clone(), 16, 2_000, 65_536) - 152.6).abs() < 1.5);
    config.instance.bytes = limit(5_000_000);
    assert!((rate(config, 16, 2_000, 65_536) - 76.3).abs() < 0.8);
}

/// After a power cut, discarded commands leave no debt.
#[test]
fn commands_that_are_gone_owe_nothing() {
    let mut config = bare();
    config.limits.iops = Some(Limit {
        rate: 1_000,
        burst: None,
    });
    let mut volume = Volume::new(config, false, 1);
    for id in 0..500 {
        volume.submit(Time::ZERO, Command::read(id, 0, 4096));
    }
    let now = Time::ZERO + Span::from_us(50);
    assert_eq!(volume.power_cut(now, &mut Vec::new()), now);
    assert_eq!(volume.next_event(), Time::NEVER);
    volume.submit(now, Command::read(0, 0, 4096));
    assert!(volume.next_event() <= now + MS, "{:?}", volume.next_event());
}

#[test]
fn what_is_no_volume_says_why() {
    let mut config = small();
    config.store.width = 0;
    config.path.spread = f64::NAN;
    config.limits.window = Span::ZERO;
    config.instance.bytes = Some(Limit {
        rate: 2_000,
        burst: Some(Burst {
            rate: 1_000,
            credits: 5,
        }),
    });
    let problems = config.problems();
    assert_eq!(
        problems,
        [
            "a spread must be from 0 to 200 %",
            "the store must serve from 1 to 65,536 I/Os at a time",
            "the volume's limits: the period of a limit must be above zero",
            "the instance's limits: the burst rate must be at least the rate after the burst",
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Over a long time a limit gives its rate, whatever the sizes and however short its window.
    #[test]
    fn in_the_long_run_a_limit_gives_its_rate(
        rate in 200u64..5_000_000, window_us in 1u64..20_000, sizes in prop::collection::vec(1u32..64, 1..8),
    ) {
        let limits = Limits {
            bytes: Some(Limit { rate: rate * 512, burst: None }),
            window: Span::from_us(window_us),
            ..Limits::NONE
        };
        let mut gate = Gate::new(&limits, true);
        let (mut last, mut moved) = (Time::ZERO, 0u64);
        for turn in 0..2_000 {
            let bytes = sizes[turn % sizes.len()] * 512;
            last = gate.pass(Time::ZERO, bytes);
            moved += u64::from(bytes);
        }
        // The initial tokens, and the maximum overdraft of the last I/O.
        let at_once = (rate * 512) as f64 * window_us as f64 * 1e-6 + 64.0 * 512.0;
        let given = (rate * 512) as f64 * last.seconds();
        prop_assert!((moved as f64 - given).abs() <= at_once + 1.0, "{moved} for {given}");
    }

    /// A burst lasts credits / (burst - rate), then the rate applies; idle time restores credits.
    #[test]
    fn a_burst_lasts_as_long_as_its_credits(
        rate in 100u64..2_000, times in 2u64..20, seconds in 1u64..30,
    ) {
        let burst = Burst { rate: rate * times, credits: rate * (times - 1) * seconds };
        let limits = Limits {
            iops: Some(Limit { rate, burst: Some(burst) }),
            window: MS,
            ..Limits::NONE
        };
        let mut gate = Gate::new(&limits, true);
        // The last I/O at the burst rate.
        let mut last = Time::ZERO;
        for _ in 0..burst.rate * seconds {
            last = gate.pass(Time::ZERO, 4096);
        }
        let gap = 1.0 / rate as f64;
        prop_assert!((last.seconds() - seconds as f64).abs() < 0.003 + 3.0 * gap, "{last:?}");
        let after: Vec<Time> = (0..10).map(|_| gate.pass(Time::ZERO, 4096)).collect();
        let steady = after[9].since(after[0]).seconds() / 9.0;
        prop_assert!((steady / gap - 1.0).abs() < 1e-3, "{steady} for {gap}");
        // Idle time of a tenth of a second saves a tenth of the rate.
        let rested = after[9] + Span::from_ms(100);
        let saved = (0..rate).take_while(|_| gate.pass(rested, 4096).since(rested).seconds() < 0.5 * gap);
        prop_assert!(saved.count() as u64 <= rate / 10 + rate / times + 2);
    }
}
