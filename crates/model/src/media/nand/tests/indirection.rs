//! Drives whose map has one entry for several units of 4 KiB.

use super::*;

const UNITS: u32 = 4;

fn coarse(mut config: NandConfig) -> NandConfig {
    let unit = UNITS * 4096;
    config.geometry.indirection = unit;
    config.geometry.capacity -= config.geometry.capacity % u64::from(unit);
    config
}

/// Returns the units admitted to the buffer for one write to a filled drive, and senses of the medium.
fn of_one_write(offset: u64, bytes: u32) -> (u64, u64) {
    let mut drive = Nand::new(coarse(small()), Precondition::Filled, 1);
    let write = |_, _| Command::write(0, offset, bytes);
    let mut load = Closed::new(1, 1, write);
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    drive.ftl().check();
    (
        drive.buffer.counts().taken_in,
        drive.shared.array.counts().senses,
    )
}

#[test]
fn a_smaller_write_is_read_merged_and_written_whole() {
    let (units, senses) = of_one_write(4096 * 41, 4096);
    assert_eq!(units, 4);
    assert!((1..=3).contains(&senses), "{senses}");
    // A part of a unit, and the whole next unit.
    let (units, senses) = of_one_write(4096 * 42, 6 * 4096);
    assert_eq!(units, 8);
    assert!((1..=2).contains(&senses), "{senses}");
    assert_eq!(of_one_write(4096 * 40, 4 * 4096), (4, 0));
}

/// In steady state small writes cost the same as whole units.
#[test]
fn small_writes_are_as_slow_as_whole_units() {
    let pace = |bytes: u32| {
        let mut drive = Nand::new(coarse(small()), Precondition::Steady, 5);
        let units = drive.capacity().bytes / u64::from(UNITS * 4096);
        let mut random = Stream::new(9, "writes");
        let write = move |id, _| {
            let offset = random.uniform_below(units) * u64::from(UNITS * 4096);
            Command::write(id, offset, bytes)
        };
        let mut load = Closed::new(32, units / 2, write);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.now.seconds()
    };
    let (small, whole) = (pace(4096), pace(UNITS * 4096));
    assert!((0.95..1.35).contains(&(small / whole)), "{small} {whole}");
}

#[test]
fn it_keeps_the_laws_too() {
    for state in [Precondition::Filled, Precondition::Steady] {
        crate::conformance::check_drive(|seed| Nand::new(coarse(everything(true)), state, seed));
    }
}

#[test]
fn old_data_are_not_put_at_risk() {
    let wrong = coarse(everything(false))
        .check()
        .expect_err("it is volatile");
    assert!(
        wrong[0].contains("requires a protected write buffer"),
        "{wrong:?}"
    );
    let mut uneven = coarse(small());
    uneven.geometry.capacity += 4096;
    assert!(uneven.check().is_err());
}
