//! The laws of all devices, and data integrity of a cache.

use model::command::{Command, Op, Status};
use model::conformance::samples;

use super::client::client;
use super::*;
use crate::laws::{gives_what_was_written, holds_the_laws};

fn xpoint() -> DriveConfig {
    DriveConfig::XPoint(Box::new(samples::xpoint()))
}

/// A drive with a volatile buffer.
fn nand() -> DriveConfig {
    let mut config = samples::nand();
    config.buffer.protected = false;
    DriveConfig::Nand(Box::new(config))
}

const DURABILITIES: [Durability; 2] = [Durability::Ack, Durability::Flush];

#[test]
fn keeps_the_laws_over_ram_with_a_ring_that_wraps_often() {
    for durability in DURABILITIES {
        let config = WriteBackConfig {
            durability,
            ..small()
        };
        for cache in [600 << 10, 4 * MIB, 80 * MIB] {
            holds_the_laws(&group(
                config.clone(),
                &[ram(cache), slow(24 * MIB, 20), slow(25 * MIB, 20)],
            ));
        }
        holds_the_laws(&group(config, &[ram(MIB), slow(24 * MIB, 20)]));
    }
}

#[test]
fn keeps_the_laws_of_power_cuts_over_drives_with_volatile_buffers() {
    for durability in DURABILITIES {
        let config = WriteBackConfig {
            durability,
            segment: 256 << 10,
            ..small()
        };
        holds_the_laws(&group(config.clone(), &[nand(), nand()]));
        holds_the_laws(&group(config, &[xpoint(), nand(), nand()]));
    }
}

/// Shortens times to those of the laws' clients.
fn quick(known: Cleaning) -> Cleaning {
    match known {
        Cleaning::Fill => Cleaning::Fill,
        Cleaning::Steady(_) => Cleaning::Steady(Span::from_us(100)),
        Cleaning::Rate(law) => Cleaning::Rate(RateControl {
            proportional: Span::from_us(4000),
            integral_s2: law.integral_s2 * 1e-8,
            update: Span::from_us(500),
            least: 40_960_000,
            ..law
        }),
        Cleaning::Idle(_) => Cleaning::Idle(IdleCleaning {
            wake: Span::from_us(200),
            quiet: Span::from_us(10),
            stale: Span::from_us(500),
        }),
    }
}

/// Presets of other products, on a small ring, with short times.
fn presets() -> [WriteBackConfig; 6] {
    let mut acp = WriteBackConfig::OPEN_CAS;
    acp.destage.cleaning = WriteBackConfig::ACP;
    // Limits low enough that many writes bypass in a short run.
    let past = WriteBackConfig {
        durability: Durability::Ack,
        passing: Some(BypassPolicy {
            sequential: 64 << 10,
            sequential_from: 0.0,
            from: 0.05,
            fua_from: 0.1,
            ..BypassPolicy::NONE
        }),
        ..WriteBackConfig::BCACHE
    };
    let promotes = WriteBackConfig {
        passing: Some(BypassPolicy {
            fill_at_miss: 3,
            fill_from: 0.2,
            ..BypassPolicy::NONE
        }),
        ..WriteBackConfig::OPEN_CAS
    };
    [
        past,
        promotes,
        WriteBackConfig::DM_WRITECACHE,
        WriteBackConfig::BCACHE,
        WriteBackConfig::OPEN_CAS,
        acp,
    ]
    .map(|known| WriteBackConfig {
        segment: small().segment,
        record: small().record,
        records_in_flight: small().records_in_flight,
        chunk: small().chunk,
        destage: Destage {
            round: small().destage.round,
            merge: small().destage.merge,
            cleaning: quick(known.destage.cleaning),
            ..known.destage
        },
        commit: known.commit.map(|_| CommitPolicy {
            slots: 50,
            after: Span::from_us(300),
        }),
        ..known
    })
}

#[test]
fn keeps_the_laws_as_others_have_built_it() {
    for config in presets() {
        for cache in [600 << 10, 4 * MIB] {
            let drives = [ram(cache), slow(24 * MIB, 20), slow(25 * MIB, 20)];
            holds_the_laws(&group(config.clone(), &drives));
        }
        let config = WriteBackConfig {
            segment: 256 << 10,
            ..config
        };
        holds_the_laws(&group(config, &[xpoint(), nand(), nand()]));
    }
}

#[test]
fn a_read_gives_what_was_written_last_as_others_have_built_it() {
    for config in presets() {
        for cache in [400 << 10, 2 * MIB] {
            let drives = [ram(cache), ram(2 * MIB), ram(3 * MIB)];
            gives_what_was_written(&group(config.clone(), &drives));
        }
    }
}

#[test]
fn a_read_gives_what_was_written_last() {
    for (records_in_flight, in_flight, cache) in
        [(1, 1, 300 << 10), (3, 4, 400 << 10), (8, 2, 2 * MIB)]
    {
        for durability in DURABILITIES {
            let config = WriteBackConfig {
                records_in_flight,
                durability,
                destage: Destage {
                    in_flight,
                    from: 0.2,
                    ..small().destage
                },
                ..small()
            };
            let config = group(config, &[ram(cache), ram(2 * MIB), ram(3 * MIB)]);
            gives_what_was_written(&config);
        }
    }
}

/// The capacity tier has more units than 32-bit numbers: four disks of 16 TB and one of 20 TiB.
#[test]
fn units_that_are_16_tib_apart_are_two() {
    const TIB: u64 = 1 << 40;
    for disks in [&[20 * TIB][..], &[16_000_900_661_248; 4]] {
        let config = WriteBackConfig {
            durability: Durability::Flush,
            ..small()
        };
        let mut drives = Vec::from([ram(MIB)]);
        drives.extend(disks.iter().map(|&bytes| ram(bytes)));
        let mut client = client(config, &drives);
        let far = client.pool.capacity().bytes - u64::from(UNIT);
        let places = [0, UNIT.into(), 16 * TIB, 16 * TIB + u64::from(UNIT), far];
        for at in places {
            let done = client.alone(Command::write(0, at, UNIT));
            assert_eq!(done.status, Status::Success);
        }
        let all = places.len() as f64 * f64::from(UNIT);
        assert_eq!(client.gauge(Gauge::DirtyBytes), all);
        // Trimming one unit does not affect another.
        client.alone(Command::new(0, Op::Deallocate, 16 * TIB, UNIT));
        assert_eq!(client.gauge(Gauge::DirtyBytes), all - f64::from(UNIT));
        // Only the first of these is in the buffer.
        for at in [0, 16 * TIB, 16 * TIB + 2 * u64::from(UNIT), far - 16 * TIB] {
            client.alone(Command::read(0, at, UNIT));
        }
        assert_eq!(client.gauge(Gauge::HitBytes), f64::from(UNIT));
        // Writes that fill the ring cause them to be destaged, and do not replace any.
        client.run(4, 600, |_, at| {
            Command::write(0, 8 * TIB + u64::from(at) * u64::from(UNIT), UNIT)
        });
        assert_eq!(client.gauge(Gauge::AbsorbedBytes), f64::from(UNIT));
        for at in [0, far] {
            client.alone(Command::read(0, at, UNIT));
        }
        assert_eq!(client.gauge(Gauge::HitBytes), f64::from(UNIT));
        client.settle();
        let moved = (places.len() - 1 + 600) as f64 * f64::from(UNIT);
        let there = client.gauge(Gauge::DestagedBytes) + client.gauge(Gauge::DirtyBytes);
        assert_eq!(there, moved);
    }
}
