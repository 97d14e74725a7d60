//! A small disk, and the laws of devices.

use alloc::string::String;

mod figures;
mod flow;
mod rig;

use super::*;
use crate::conformance;

/// A disk of some tens of megabytes: 7200 revolutions per minute, two heads, eight zones, a cache of 1 MiB.
pub(super) fn small() -> HddConfig {
    HddConfig {
        bytes: 64 << 20,
        block: 512,
        disk: Disk {
            heads: 2,
            zones: 8,
            turn: Span::from_ns(8_333_333),
            sector: 4096,
            outer: 100_000_000,
            inner: 50_000_000,
            read_retry: 0.01,
        },
        seek: Seek {
            track: Span::from_us(600),
            average: Span::from_us(8000),
            full: Span::from_us(17_000),
            write_settle: Span::from_us(400),
        },
        controller: HddController {
            command: Span::from_us(20),
            access: Span::from_us(80),
        },
        link: Link {
            delay: Span::from_us(5),
            ps_per_byte: 1000,
        },
        queue: HddQueue {
            depth: 32,
            oldest: Span::from_ms(2000),
        },
        buffer: HddBuffer {
            segments: 8,
            segment: 1 << 20,
            read_ahead: 512 << 10,
            write: 1 << 20,
            writes: 64,
        },
        write_cache: true,
        spin_up: Span::from_ms(15_000),
        power: HddPower {
            idle: 5.0,
            seek: 9.0,
            transfer: 7.0,
        },
    }
}

#[test]
fn it_is_a_drive() {
    assert_eq!(small().problems(), Vec::<String>::new());
    conformance::check_drive(|seed| Hdd::new(small(), seed));
}

#[test]
fn other_disks_are_drives() {
    let one_at_a_time = |config: &mut HddConfig| config.queue.depth = 1;
    let without_cache = |config: &mut HddConfig| config.write_cache = false;
    let of_sectors = |config: &mut HddConfig| config.disk.sector = 512;
    let bare = |config: &mut HddConfig| {
        config.buffer.segments = 1;
        config.buffer.read_ahead = 0;
        config.controller.access = Span::ZERO;
        config.controller.command = Span::ZERO;
        config.link.delay = Span::ZERO;
        config.buffer.writes = 1;
    };
    let changes: [&dyn Fn(&mut HddConfig); 4] =
        [&one_at_a_time, &without_cache, &of_sectors, &bare];
    for change in changes {
        let mut config = small();
        change(&mut config);
        assert_eq!(config.problems(), Vec::<String>::new());
        conformance::Suite {
            seeds: 2,
            exact_depth: true,
            ..conformance::Suite::default()
        }
        .check(|seed| Hdd::new(config.clone(), seed));
    }
}

/// Seeds of the suite must lose data; otherwise the law of power cuts would hold trivially.
#[test]
fn a_power_cut_takes_the_write_cache() {
    let lost = |config: HddConfig| -> u64 {
        let suite = conformance::Suite::default();
        (0..4)
            .map(|seed| {
                suite
                    .power_cuts(seed, Hdd::new(config.clone(), seed))
                    .unwrap_or_else(|violation| panic!("{violation}"))
            })
            .sum()
    };
    assert!(lost(small()) > 1 << 20);
    let mut through = small();
    through.write_cache = false;
    assert_eq!(lost(through), 0);
}

#[test]
fn what_is_no_disk_says_why() {
    let wrong = |change: fn(&mut HddConfig)| {
        let mut config = small();
        change(&mut config);
        config.problems()
    };
    let average = "the average seek time must be between 1/3 and 8/15 of the way from the track-to-track to the full-stroke time";
    assert_eq!(
        wrong(|it| it.seek.average = Span::from_us(12_000)),
        [average]
    );
    assert_eq!(
        wrong(|it| it.seek.average = Span::from_us(5_000)),
        [average]
    );
    let several = wrong(|it| {
        it.disk.heads = 0;
        it.disk.inner = 200_000_000;
        it.power.seek = 1.0;
    });
    assert_eq!(several.len(), 3, "{several:?}");
}
