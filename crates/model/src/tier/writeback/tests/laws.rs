//! The laws of all devices, and what a cache may not lose.

use super::*;
use crate::media::{nand, xpoint};
use crate::tier::laws::{gives_what_was_written, holds_the_laws};

fn xpoint() -> DriveConfig {
    DriveConfig::XPoint(Box::new(xpoint::tests::config()))
}

/// With a buffer that needs power.
fn nand() -> DriveConfig {
    let mut config = nand::tests::small();
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

/// With times as short as those of the laws' clients.
fn quick(known: Cleaning) -> Cleaning {
    match known {
        Cleaning::Fill => Cleaning::Fill,
        Cleaning::Steady(_) => Cleaning::Steady(Span::from_us(100)),
        Cleaning::Rate(law) => Cleaning::Rate(Rate {
            proportional: Span::from_us(4000),
            integral_s2: law.integral_s2 * 1e-8,
            update: Span::from_us(500),
            least: 40_960_000,
            ..law
        }),
        Cleaning::Idle(_) => Cleaning::Idle(Idle {
            wake: Span::from_us(200),
            quiet: Span::from_us(10),
            stale: Span::from_us(500),
        }),
    }
}

/// What others have built, on a small ring, with short times.
fn presets() -> [WriteBackConfig; 5] {
    let mut acp = WriteBackConfig::OPEN_CAS;
    acp.destage.cleaning = WriteBackConfig::ACP;
    // So much that many pass it in a short run.
    let past = WriteBackConfig {
        durability: Durability::Ack,
        passing: Some(Passing {
            sequential: 64 << 10,
            sequential_from: 0.0,
            from: 0.05,
            fua_from: 0.1,
        }),
        ..WriteBackConfig::BCACHE
    };
    [
        past,
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
        commit: known.commit.map(|_| Commit {
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
