//! The laws of devices, and which reads hit.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use model::conformance::{self, OutOfOrderDrive, Witness};
use model::data::{DataBackedDrive, Image};
use model::device::Device;
use model::media::ram::{Ram, RamConfig};
use model::media::{Medium, Precondition};
use model::random::Stream;
use model::time::Span;

use super::*;
use crate::{Kind, Member, Pool, PoolConfig, Target, TierConfig};

const MIB: u64 = 1 << 20;

fn config() -> ReadCacheConfig {
    ReadCacheConfig {
        line: 4096,
        policy: Policy::Lru,
        writes: Writes::Through,
        fill_at_miss: 1,
        fill_from: 0.0,
        sequential_cutoff: None,
        survives_power_cut: false,
        feed: None,
    }
}

/// Fed every 10 ms with at most four lines, from a memory of `lines` lines.
fn fed(lines: u64) -> ReadCacheConfig {
    ReadCacheConfig {
        policy: Policy::Arc,
        writes: Writes::Around,
        sequential_cutoff: Some(4096),
        feed: Some(Feed {
            memory: lines * 4096,
            every: Span::from_ms(10),
            most: 4 * 4096,
            headroom: 2,
        }),
        ..config()
    }
}

/// A RAM disk of 1 us in front of one of 100 us.
fn pool(tier: ReadCacheConfig, cache: u64, main: u64) -> PoolConfig<RamConfig> {
    let sizes = [(cache, 1), (main, 100)];
    let member = |&(bytes, us): &(u64, u64)| Member {
        name: String::from("ram"),
        drive: RamConfig {
            bytes,
            per_command: Span::from_us(us),
            picoseconds_per_byte: 10,
            memory_bus: None,
            spread: 0.0,
        },
    };
    let slice = |(index, &(bytes, _)): (usize, &(u64, u64))| Target::Slice {
        member: index as u16,
        base: 0,
        bytes,
    };
    let config = PoolConfig {
        members: sizes.iter().map(member).collect(),
        tiers: vec![TierConfig {
            name: String::from("cached"),
            kind: Kind::ReadCache(tier),
            children: sizes.iter().enumerate().map(slice).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

#[test]
fn keeps_the_laws_with_each_policy_and_a_cache_much_too_small() {
    for (_, policy) in Policy::ALL {
        for (_, writes) in Writes::ALL {
            for (line, fill_at_miss, feeds) in
                [(4096, 1, false), (65536, 2, false), (4096, 1, true)]
            {
                let tier = ReadCacheConfig {
                    policy,
                    writes,
                    line,
                    fill_at_miss,
                    survives_power_cut: line == 4096,
                    feed: fed(64).feed.filter(|_| feeds),
                    ..config()
                };
                let config = pool(tier, MIB, 24 * MIB);
                conformance::check(|seed| {
                    let members = config.members.iter();
                    let build = |it: &Member<RamConfig>| it.drive.build(Precondition::Fresh, seed);
                    Pool::new(&config, members.map(|it| Witness::new(build(it))).collect())
                });
            }
        }
    }
}

/// Whatever the cache does, a read returns the newest data.
#[test]
fn a_read_gives_what_was_written_last() {
    for (_, writes) in Writes::ALL {
        for (line, fill_at_miss, feeds, main) in [
            (4096, 1, false, 2 * MIB),
            (4096, 2, false, 2 * MIB),
            (65536, 1, false, 2 * MIB - 4096),
            (4096, 1, true, 2 * MIB),
            (65536, 1, true, 2 * MIB - 4096),
        ] {
            let feed = fed(64).feed.filter(|_| feeds);
            let policy = if feeds { Policy::Arc } else { Policy::Lru };
            let tier = ReadCacheConfig {
                writes,
                line,
                fill_at_miss,
                feed,
                policy,
                ..config()
            };
            let config = pool(tier, 256 << 10, main);
            conformance::check_data(|seed, buffers| {
                let kept = |it: &Member<RamConfig>| {
                    let drive = OutOfOrderDrive::new(seed, it.drive.bytes);
                    DataBackedDrive::new(drive, Image::default(), buffers.clone(), false)
                };
                let members = config.members.iter().map(kept);
                Pool::resume(
                    &config,
                    members.collect(),
                    config.build_tiers(),
                    buffers.clone(),
                )
            });
        }
    }
}

/// A pool that receives commands at QD1.
struct Quiet {
    pool: Pool<Ram>,
    now: Time,
}

fn quiet(tier: ReadCacheConfig, cache: u64, main: u64) -> Quiet {
    Quiet {
        pool: pool(tier, cache, main).build(Precondition::Fresh, 1),
        now: Time::ZERO,
    }
}

/// Executes one command alone; returns its latency.
fn alone(quiet: &mut Quiet, op: Op, offset: u64, bytes: u32) -> Span {
    let Quiet { pool, now } = quiet;
    pool.submit(*now, Command::new(0, op, offset, bytes));
    let mut done = Vec::new();
    let mut latency = Span::ZERO;
    while pool.next_event() < Time::NEVER {
        *now = pool.advance(pool.next_event(), Time::NEVER, &mut done);
        for completion in done.drain(..) {
            assert_eq!(completion.status, Status::Success);
            latency = completion.anatomy.total();
        }
    }
    latency
}

fn is_hit(latency: Span) -> bool {
    latency < Span::from_us(50)
}

#[test]
fn the_second_read_of_a_line_hits_and_a_write_keeps_or_drops_it() {
    for (_, writes) in Writes::ALL {
        let tier = ReadCacheConfig { writes, ..config() };
        let mut pool = quiet(tier, MIB, 8 * MIB);
        assert!(!is_hit(alone(&mut pool, Op::Read, 8192, 4096)));
        assert!(is_hit(alone(&mut pool, Op::Read, 8192, 4096)));
        assert!(is_hit(alone(&mut pool, Op::Read, 8704, 512)));
        assert!(!is_hit(alone(&mut pool, Op::Write, 8192, 512)));
        let kept = writes == Writes::Through;
        assert_eq!(is_hit(alone(&mut pool, Op::Read, 8192, 4096)), kept);
        alone(&mut pool, Op::Deallocate, 0, 16384);
        assert!(!is_hit(alone(&mut pool, Op::Read, 8192, 4096)));
    }
}

#[test]
fn a_line_is_taken_in_at_the_miss_that_was_asked_for() {
    let tier = ReadCacheConfig {
        fill_at_miss: 3,
        ..config()
    };
    let mut pool = quiet(tier, MIB, 8 * MIB);
    let hits: Vec<bool> = (0..5)
        .map(|_| is_hit(alone(&mut pool, Op::Read, 4096, 4096)))
        .collect();
    assert_eq!(hits, [false, false, false, true, true]);
}

#[test]
fn what_is_read_in_order_passes_by_beyond_the_cutoff() {
    let tier = ReadCacheConfig {
        sequential_cutoff: Some(64 << 10),
        ..config()
    };
    let mut pool = quiet(tier, MIB, 8 * MIB);
    for step in 0..32 {
        alone(&mut pool, Op::Read, step * 8192, 8192);
    }
    let mut held = |at: u64| is_hit(alone(&mut pool, Op::Read, at, 4096));
    assert!(held(60 << 10));
    assert!(!held(128 << 10));
}

#[test]
fn a_power_cut_forgets_unless_it_is_told_otherwise() {
    for survives in [false, true] {
        let tier = ReadCacheConfig {
            survives_power_cut: survives,
            ..config()
        };
        let mut pool = quiet(tier, MIB, 8 * MIB);
        alone(&mut pool, Op::Read, 0, 65536);
        pool.pool.power_cut(pool.now, &mut Vec::new());
        assert_eq!(is_hit(alone(&mut pool, Op::Read, 0, 65536)), survives);
    }
}

#[derive(Default)]
struct Ratio(f64, f64);

impl Gauges for Ratio {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::HitBytes => self.0 = value,
            Gauge::MissBytes => self.1 = value,
            _ => {}
        }
    }
}

/// Random reads over four times the cache: the hit rate equals the cached share, with any policy.
#[test]
fn uniform_reads_hit_as_often_as_the_cache_is_large() {
    for (_, policy) in Policy::ALL {
        let tier = ReadCacheConfig { policy, ..config() };
        let mut pool = quiet(tier, 4 * MIB, 16 * MIB);
        let mut stream = Stream::new(1, "reads");
        let mut ratio = |commands: u32| {
            let mut before = Ratio::default();
            pool.pool.inspect(pool.now, &mut before);
            for _ in 0..commands {
                alone(&mut pool, Op::Read, stream.uniform_below(4096) * 4096, 4096);
            }
            let mut after = Ratio::default();
            pool.pool.inspect(pool.now, &mut after);
            (after.0 - before.0) / (after.0 + after.1 - before.0 - before.1)
        };
        ratio(8000);
        let hits = ratio(30_000);
        assert!((hits - 0.25).abs() < 0.01, "{policy:?}: {hits}");
    }
}

fn run_until(quiet: &mut Quiet, until: Time) {
    while quiet.pool.next_event() < until {
        let next = quiet.pool.next_event();
        quiet.now = quiet.pool.advance(next, next, &mut Vec::new());
    }
}

/// Runs until the feeder finds nothing to write.
fn rest(quiet: &mut Quiet) {
    run_until(quiet, Time::NEVER);
}

fn back_written(quiet: &Quiet) -> f64 {
    struct Written(f64);
    impl Gauges for Written {
        fn gauge(&mut self, gauge: Gauge, value: f64) {
            if gauge == Gauge::BackBytesWritten {
                self.0 += value;
            }
        }
    }
    let mut written = Written(0.0);
    quiet.pool.inspect(quiet.now, &mut written);
    written.0
}

/// Data that was read is in memory immediately, and is written to the cache only by the feeder, four lines at a time.
#[test]
fn memory_answers_and_the_feeder_writes_what_it_would_give_up_next() {
    let mut pool = quiet(fed(16), MIB, 8 * MIB);
    for line in 0..8 {
        assert!(!is_hit(alone_now(&mut pool, line * 8192)));
    }
    assert_eq!(alone_now(&mut pool, 0), Span::ZERO);
    assert_eq!(back_written(&pool), 0.0);
    // Only the first round is due.
    let round = pool.pool.next_event();
    run_until(&mut pool, round + Span::from_ms(1));
    assert_eq!(back_written(&pool), 4.0 * 4096.0);
    rest(&mut pool);
    assert_eq!(back_written(&pool), 8.0 * 4096.0);
    // Memory has space for sixteen lines: these evict all others, and lines that were fed are on the cache.
    for line in 100..140 {
        alone_now(&mut pool, line * 8192);
    }
    let latency = alone_now(&mut pool, 3 * 8192);
    assert!(is_hit(latency) && latency > Span::ZERO, "{latency:?}");
}

/// A read, without running the feeder.
fn alone_now(quiet: &mut Quiet, offset: u64) -> Span {
    let Quiet { pool, now } = quiet;
    pool.submit(*now, Command::read(0, offset, 4096));
    let mut done = Vec::new();
    while done.is_empty() {
        *now = pool.advance(pool.next_event(), Time::NEVER, &mut done);
    }
    done[0].anatomy.total()
}

#[test]
fn what_is_read_in_order_or_written_is_not_fed() {
    let mut pool = quiet(fed(16), MIB, 8 * MIB);
    for line in 0..8 {
        alone_now(&mut pool, line * 4096);
    }
    rest(&mut pool);
    // The first read of a stream is not recognised as sequential.
    assert_eq!(back_written(&pool), 4096.0);
    let mut pool = quiet(fed(16), MIB, 8 * MIB);
    alone_now(&mut pool, 8192);
    alone(&mut pool, Op::Write, 8192, 4096);
    assert!(!is_hit(alone(&mut pool, Op::Read, 8192, 4096)));
    let before = back_written(&pool);
    alone(&mut pool, Op::Write, 8192, 4096);
    rest(&mut pool);
    assert_eq!(back_written(&pool), before + 4096.0);
    assert!(!is_hit(alone_now(&mut pool, 8192)));
}

#[test]
fn the_hand_overwrites_in_turn_and_nothing_is_fed_twice() {
    let mut tier = fed(64);
    if let Some(feed) = &mut tier.feed {
        feed.headroom = 100;
    }
    let mut pool = quiet(tier, 16 * 4096, 8 * MIB);
    for line in 0..40 {
        alone_now(&mut pool, line * 8192);
    }
    rest(&mut pool);
    assert_eq!(back_written(&pool), 40.0 * 4096.0);
    pool.pool.power_cut(pool.now, &mut Vec::new());
    // Cold in memory, and in the cache too: it is configured not to survive.
    assert!(!is_hit(alone_now(&mut pool, 39 * 8192)));
}

#[test]
fn lines_are_chosen_only_once_the_cache_is_as_full_as_was_asked_for() {
    let tier = ReadCacheConfig {
        fill_at_miss: 3,
        fill_from: 0.5,
        ..config()
    };
    let mut pool = quiet(tier, 64 * 4096, 8 * MIB);
    let mut hits_at = |line: u64| {
        let read = |_| is_hit(alone(&mut pool, Op::Read, line * 8192, 4096));
        (0..4).map(read).position(|hit| hit)
    };
    for line in 0..32 {
        assert_eq!(hits_at(line), Some(1), "{line}");
    }
    assert_eq!(hits_at(32), Some(3));
}
