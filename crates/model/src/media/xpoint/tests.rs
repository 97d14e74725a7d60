//! Laws, structure and corner cases of an XPoint drive.

use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::conformance;
pub(super) use crate::conformance::samples::xpoint as config;
use crate::time::Span;

#[test]
fn keeps_the_laws() {
    conformance::check_drive(|seed| XPoint::new(config(), seed));
}

#[test]
fn keeps_the_laws_with_one_die_and_a_slow_controller() {
    conformance::check_drive(|seed| {
        let mut config = config();
        config.channels = 1;
        config.dies_per_channel = 1;
        config.die_bytes = 512 << 20;
        config.timing.controller_interval = Span::from_us(4);
        config.timing.controller = Span::from_ns(600);
        XPoint::new(config, seed)
    });
}

#[test]
fn keeps_the_laws_under_the_governor_and_write_protection() {
    conformance::check_drive(|seed| {
        let mut config = config();
        config.power.limit_watts = 5.4;
        config.power.governor_window = Span::from_us(50);
        config.wear.endurance_bytes = 100_000_000;
        config.wear.percentage_used_at_start = 104.0;
        XPoint::new(config, seed)
    });
}

#[test]
fn keeps_the_laws_when_nothing_takes_time() {
    conformance::check_drive(|seed| {
        let mut config = config();
        config.timing = XPointTiming {
            link: Span::ZERO,
            link_ps_per_byte: 0,
            data_fetch: Span::ZERO,
            controller: Span::ZERO,
            further_block: Span::ZERO,
            controller_interval: Span::ZERO,
            controller_slots: 3,
            write_buffers: 2,
            table_places: 70,
            read_path_ps_per_byte: 0,
            read_part: UNIT,
            read_completion: Span::ZERO,
            read_spread: Span::ZERO,
            write_path_ps_per_byte: 0,
            turnaround: Span::ZERO,
            duplex: false,
            die_read: Span::ZERO,
            decode: Span::ZERO,
            die_write: Span::ZERO,
        };
        XPoint::new(config, seed)
    });
}

/// Returns when four simultaneous reads of 128 KiB complete, with this number of slots.
fn completions(slots: u32) -> Vec<u64> {
    let mut config = config();
    config.timing.controller_slots = slots;
    config.recovery.reads_per_recovery = 0;
    let mut drive = XPoint::new(config, 1);
    for id in 0..4 {
        let read = Command::read(id, u64::from(id) << 20, 128 << 10);
        drive.submit(Time::ZERO, read);
    }
    let (mut at, mut done) = (Vec::new(), Vec::new());
    while drive.next_event() != Time::NEVER {
        let now = drive.next_event();
        drive.advance(now, now, &mut done);
        at.extend(done.drain(..).map(|it| it.at.ns()));
    }
    at
}

#[test]
fn each_unit_takes_a_slot_and_commands_that_find_none_wait_in_order() {
    let (one, all) = (completions(32), completions(128));
    // One after another, or nearly all of them at the end.
    assert!(one[1] * 3 < one[3] * 2, "{one:?}");
    assert!(all[1] * 5 > all[3] * 4, "{all:?}");
    // The path is saturated in both cases.
    assert!(one[3] < all[3] + all[3] / 4, "{one:?} {all:?}");
    // A command that needs more than all slots is worked on alone.
    assert_eq!(completions(3).len(), 4);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    /// Any drive keeps the laws, whichever part is slow and however frequent its background work is.
    #[test]
    fn any_drive_keeps_the_laws(
        channels in 1u32..9,
        dies_per_channel in 1u32..9,
        slots in 1u32..40,
        buffers in 1u32..40,
        transfer_units in 1u32..40,
        times in proptest::array::uniform5(0u64..20_000),
        places in 1u32..200,
        rates in proptest::array::uniform2(1u64..3_000),
        spread in 0.0f64..1.0,
        part in 9u32..13,
        completion in 0u64..3_000,
        refresh in 0u32..20,
        moves in 0u32..300,
        limit in 5.1f64..20.0,
        duplex: bool,
        seed: u64,
    ) {
        let mut config = config();
        config.channels = channels;
        config.dies_per_channel = dies_per_channel;
        config.die_bytes = 512 << 20;
        config.max_transfer = transfer_units * UNIT;
        let timing = &mut config.timing;
        timing.duplex = duplex;
        timing.controller_slots = slots;
        timing.write_buffers = buffers;
        timing.table_places = places;
        timing.controller = Span::from_ns(times[0]);
        timing.controller_interval = Span::from_ns(times[1]);
        timing.data_fetch = Span::from_ns(times[2]);
        timing.die_read = Span::from_ns(times[3]);
        timing.die_write = Span::from_ns(times[4]);
        timing.read_path_ps_per_byte = rates[0];
        let unit = Span::per_bytes(rates[0], u64::from(UNIT));
        timing.read_spread = Span::from_ns((unit.ns() as f64 * spread) as u64);
        timing.read_part = 1 << part;
        timing.read_completion = Span::from_ns(completion);
        timing.write_path_ps_per_byte = rates[1];
        timing.link_ps_per_byte = rates[0].min(rates[1]);
        config.refresh.batch_units = refresh;
        config.levelling.writes_per_move = moves;
        config.power.limit_watts = limit;
        proptest::prop_assert_eq!(config.problems(), Vec::<String>::new());
        let suite = conformance::Suite {
            commands: 400,
            exact_depth: true,
            ..conformance::Suite::default()
        };
        let examined = suite.examine(seed, |seed| XPoint::new(config.clone(), seed));
        proptest::prop_assert_eq!(examined, Ok(()));
    }
}
