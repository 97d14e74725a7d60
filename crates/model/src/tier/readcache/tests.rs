//! The laws, and which reads hit.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::conformance::{self, Jumbled, Witness};
use crate::data::{Image, Kept};
use crate::device::Device;
use crate::media::ram::{Ram, RamConfig};
use crate::media::{Medium, Precondition};
use crate::random::Stream;
use crate::tier::{Kind, Member, Pool, PoolConfig, Target, TierConfig};
use crate::time::Span;

const MIB: u64 = 1 << 20;

fn config() -> ReadCacheConfig {
    ReadCacheConfig {
        line: 4096,
        policy: Policy::Lru,
        writes: Writes::Through,
        fill_at_miss: 1,
        sequential_cutoff: None,
        survives_power_cut: false,
    }
}

/// A RAM disk of 1 us before one of 100 us.
fn pool(tier: ReadCacheConfig, cache: u64, main: u64) -> PoolConfig<RamConfig> {
    let sizes = [(cache, 1), (main, 100)];
    let member = |&(bytes, us): &(u64, u64)| Member {
        name: String::from("ram"),
        drive: RamConfig {
            bytes,
            per_command: Span::from_us(us),
            picoseconds_per_byte: 10,
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
            for (line, fill_at_miss) in [(4096, 1), (65536, 2)] {
                let tier = ReadCacheConfig {
                    policy,
                    writes,
                    line,
                    fill_at_miss,
                    survives_power_cut: line == 4096,
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

/// Whatever the cache does, a read gives what was written last.
#[test]
fn a_read_gives_what_was_written_last() {
    for (_, writes) in Writes::ALL {
        for (line, fill_at_miss) in [(4096, 1), (4096, 2), (65536, 1)] {
            let tier = ReadCacheConfig {
                writes,
                line,
                fill_at_miss,
                ..config()
            };
            let config = pool(tier, 256 << 10, 2 * MIB);
            conformance::check_data(|seed, buffers| {
                let kept = |it: &Member<RamConfig>| {
                    let drive = Jumbled::new(seed, it.drive.bytes);
                    Kept::new(drive, Image::default(), buffers.clone(), false)
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

/// A pool to which one command after the other is given.
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

/// One command alone; how long it took.
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

/// Reads at random over four times the cache: as many hit as the cache has of them, with any policy.
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
                alone(&mut pool, Op::Read, stream.below(4096) * 4096, 4096);
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
