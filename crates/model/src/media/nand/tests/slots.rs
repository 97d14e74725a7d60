//! Command slots of a SATA link: commands without one wait, and a flush is alone in the drive.

use core::num::NonZeroU32;

use super::*;

fn with_slots(slots: u32) -> NandConfig {
    let mut config = small();
    config.controller.slots = NonZeroU32::new(slots);
    config
}

/// Returns the time of 4,000 random reads of 4 KiB at this depth.
fn time_of_reads(config: NandConfig, depth: u32) -> Time {
    let pages = pages(&config);
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let mut load = Closed::new(depth, 4_000, random_4k(Op::Read, pages, 5));
    let end = run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    assert_eq!(load.finished, 4_000);
    end
}

#[test]
fn commands_without_a_slot_wait() {
    assert_eq!(time_of_reads(with_slots(1), 64), time_of_reads(small(), 1));
    let (with, without) = (time_of_reads(with_slots(8), 64), time_of_reads(small(), 64));
    assert!(with > without, "{with:?} {without:?}");
    let as_deep = time_of_reads(small(), 8);
    let ratio = with.since(Time::ZERO).seconds() / as_deep.since(Time::ZERO).seconds();
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // Slots that are never all taken change nothing.
    assert_eq!(time_of_reads(with_slots(64), 64), without);
}

/// Returns the latencies of two reads, a flush and two reads that arrive together.
fn around_a_flush(config: NandConfig) -> Vec<Span> {
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let make = |id, n| match n {
        2 => Command::flush(id),
        n => Command::read(id, n << 20, 4096),
    };
    let mut load = Closed::new(5, 5, make);
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let mut latencies = vec![Span::ZERO; 5];
    for (id, latency, _) in load.latencies {
        latencies[id as usize] = latency;
    }
    latencies
}

#[test]
fn a_flush_is_alone_in_the_drive() {
    let queued = around_a_flush(small());
    assert!(queued[2] < queued[0] && queued[2] < queued[1], "{queued:?}");
    let sata = around_a_flush(with_slots(32));
    assert_eq!(sata[..2], queued[..2]);
    assert!(sata[2] > sata[0].max(sata[1]), "{sata:?}");
    assert!(sata[3] > sata[2] && sata[4] > sata[2], "{sata:?}");
}

#[test]
fn written_data_may_cross_the_link_more_slowly() {
    let time = |op, slower| {
        let mut config = small();
        if slower {
            config.controller.link_write_ps_per_byte =
                Some(10 * config.controller.link_ps_per_byte);
        }
        let mut drive = Nand::new(config, Precondition::Filled, 1);
        let mut load = Closed::new(1, 1, |id, _| Command::new(id, op, 8192, 4096));
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        load.latencies[0].1
    };
    let rate = small().controller.link_ps_per_byte;
    let [fast, slow] = [1, 10].map(|times| Span::per_bytes(times * rate, 4096));
    assert_eq!(time(Op::Write, true), time(Op::Write, false) - fast + slow);
    assert_eq!(time(Op::Read, true), time(Op::Read, false));
}

#[test]
fn a_drive_with_slots_keeps_the_contract() {
    for state in [Precondition::Fresh, Precondition::Steady] {
        crate::conformance::check_drive(|seed| {
            let mut config = everything(true);
            config.controller.slots = NonZeroU32::new(3);
            Nand::new(config, state, seed)
        });
    }
}
