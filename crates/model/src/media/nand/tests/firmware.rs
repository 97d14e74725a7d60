//! Firmware costs: tables saved after a flush, and its part in garbage collection.

use alloc::vec::Vec;

use super::*;

#[test]
fn capacitors_make_flush_and_fua_nearly_free() {
    for protected in [true, false] {
        let mut config = small();
        config.buffer.protected = protected;
        let program = config.timing.program;
        let mut drive = Nand::new(config, Precondition::Fresh, 1);
        let mut durable = Command::write(2, 8192, 4096);
        durable.fua = true;
        let done = at_times(
            &mut drive,
            &[
                (0, Command::write(0, 0, 4096)),
                (100, Command::flush(1)),
                (10_000, durable),
                (20_000, Command::flush(3)),
            ],
        );
        let latency = |id: usize| done[id].anatomy.total();
        assert!(latency(0) < Span::from_us(20));
        assert!(latency(3) < Span::from_us(20), "nothing is left to flush");
        for id in [1, 2] {
            assert_eq!(
                latency(id) > program,
                !protected,
                "command {id}: {:?}",
                latency(id)
            );
            assert!(latency(id) < program * 2);
        }
    }
}

/// Without capacitors, and with tables that take this long to save.
fn volatile(save_tables: Span) -> Nand {
    let mut config = small();
    config.buffer.protected = false;
    config.buffer.save_tables = save_tables;
    Nand::new(config, Precondition::Fresh, 1)
}

#[test]
fn a_flush_has_the_tables_saved_behind_the_data() {
    let flush = |save: Span| {
        let commands = [
            (0, Command::write(0, 0, 4096)),
            (100, Command::flush(1)),
            (50_000, Command::flush(2)),
        ];
        let done = at_times(&mut volatile(save), &commands);
        (done[1].anatomy.total(), done[2].anatomy.total())
    };
    let save = Span::from_us(1500);
    let (without, nothing) = flush(Span::ZERO);
    assert_eq!(
        flush(save),
        (without + save, nothing),
        "once for each write"
    );
}

/// A write with force unit access waits for its own tables, and for a save in progress. Without the figure it waits for
/// its data alone.
#[test]
fn a_write_with_force_unit_access_has_its_tables_saved_behind_the_data() {
    let forced = |tables: Span| {
        let mut config = small();
        config.buffer.protected = false;
        config.buffer.save_tables = Span::from_us(1500);
        config.buffer.fua_tables = tables;
        let mut drive = Nand::new(config, Precondition::Fresh, 1);
        let mut first = Command::write(0, 0, 8192);
        let mut second = Command::write(2, 1 << 20, 4096);
        (first.fua, second.fua) = (true, true);
        let commands = [
            (0, first),
            (20_000, Command::flush(1)),
            (40_000, second),
            (40_100, Command::write(3, 2 << 20, 4096)),
            (40_101, Command::flush(4)),
        ];
        let done = at_times(&mut drive, &commands);
        [0, 1, 2, 4].map(|id: usize| done[id].anatomy.total())
    };
    let tables = Span::from_us(700);
    let (without, with) = (forced(Span::ZERO), forced(tables));
    assert_eq!(with[0], without[0] + tables);
    assert!(with[1] < Span::from_us(20), "nothing is left to save");
    assert!(
        without[1] >= Span::from_us(1500),
        "its tables are not saved yet"
    );
    assert_eq!(with[2], without[2] + tables);
    assert!(
        with[3] > without[3],
        "the flush waits for the save in progress"
    );
}

#[test]
fn tables_are_saved_for_data_that_have_left_the_buffer_by_themselves() {
    let save = Span::from_us(1500);
    let fill: Vec<_> = (0..8)
        .map(|n| (0, Command::write(n, u64::from(n) * 4096, 4096)))
        .chain([(100_000, Command::flush(8))])
        .collect();
    let done = at_times(&mut volatile(save), &fill);
    assert_eq!(done[8].anatomy.get(Part::Medium), save);
}

#[test]
fn flushes_that_wait_share_the_next_save() {
    let save = Span::from_us(3000);
    // A write and its flush; two more pairs arrive while the tables of the first are saved.
    let pairs = [0, 2_000, 2_100].into_iter().zip(0..);
    let commands: Vec<_> = pairs
        .flat_map(|(at, n)| {
            let write = Command::write(2 * n, u64::from(n) * 65_536, 4096);
            [(at, write), (at + 50, Command::flush(2 * n + 1))]
        })
        .collect();
    let done = at_times(&mut volatile(save), &commands);
    let ends = |n: usize| done[2 * n + 1].at;
    assert_eq!(ends(1), ends(0) + save);
    assert_eq!(ends(2), ends(1));
}

/// Two groups of writers that take turns at the save become one: the flushes of the second group reach the medium soon
/// after the save of the first has begun. A flush that comes later waits for the next save.
#[test]
fn a_flush_joins_a_save_that_has_just_begun() {
    let save = Span::from_us(8000);
    let program = small().timing.program.ns() / 1000;
    let starts = [0, 500, 1_000, 3 * program].into_iter().zip(0..);
    let last = (100_000, Command::flush(8));
    let commands: Vec<_> = starts
        .flat_map(|(at, n)| {
            let write = Command::write(2 * n, u64::from(n) * 65_536, 4096);
            [(at, write), (at + 5, Command::flush(2 * n + 1))]
        })
        .chain([last])
        .collect();
    let done = at_times(&mut volatile(save), &commands);
    let ends = |n: usize| done[2 * n + 1].at;
    assert!(
        done[8].anatomy.total() < Span::from_us(20),
        "nothing is left"
    );
    let joined = [&commands[..6], &[(50_000, Command::flush(6))]].concat();
    let again = at_times(&mut volatile(save), &joined);
    let after = again[6].anatomy.total();
    assert!(
        after < Span::from_us(20),
        "those that joined are saved: {after:?}"
    );
    let alone = at_times(&mut volatile(save), &commands[..2])[1].at;
    assert_eq!(ends(0), alone, "others that join do not delay a save");
    for n in [1, 2] {
        assert_eq!(ends(n), ends(0), "writer {n} shares the first save");
    }
    assert_eq!(ends(3), ends(0) + save, "the late flush has the next save");
}

#[test]
fn the_firmware_bounds_what_is_written_at_random_and_nothing_else() {
    let speed = |per_unit: u64, state| {
        let mut config = small();
        config.collection.per_unit = Span::from_us(per_unit);
        write_speed(&mut Nand::new(config, state, 1), 20_000, 40_000)
    };
    let (free, amplification) = speed(0, Precondition::Steady);
    // Three times the time that the dies themselves take per moved unit.
    let per_unit = 3e6 / (free * (amplification - 1.0));
    let (bound, as_much) = speed(per_unit as u64, Precondition::Steady);
    assert!((as_much / amplification - 1.0).abs() < 0.02);
    assert!((bound / (free / 3.0) - 1.0).abs() < 0.05, "{free} {bound}");
    // As long as there is free space nothing is moved.
    let room = |per_unit| {
        let mut config = small();
        config.collection.per_unit = Span::from_us(per_unit);
        write_speed(
            &mut Nand::new(config, Precondition::Fresh, 1),
            1_000,
            20_000,
        )
        .0
    };
    assert_eq!(room(0), room(per_unit as u64));
}
