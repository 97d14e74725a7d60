//! Reads that arrive during a program: waiting, suspension, and when that is not worthwhile.

use alloc::vec::Vec;

use super::*;

fn suspending() -> NandConfig {
    let mut config = small();
    config.timing.suspend = Some(Suspend {
        latency: Span::from_us(30),
        resume: Span::from_us(10),
        most: 4,
        ..Suspend::default()
    });
    config
}

/// A page of buffered writes, whose program begins at about 20 us on the first die, and a read of that die at `at_us`.
fn read_during_program(config: NandConfig, at_us: u64) -> Completion {
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let mut commands: Vec<_> = (0..8)
        .map(|id| (0, Command::write(id, (1000 + u64::from(id)) * 4096, 4096)))
        .collect();
    // Filled: page 0 is on die 0, which is also the first to be programmed.
    commands.push((at_us, Command::read(8, 0, 4096)));
    at_times(&mut drive, &commands)[8]
}

#[test]
fn a_read_waits_for_a_program_or_suspends_it() {
    let waits = read_during_program(small(), 500);
    let behind = waits.anatomy.get(Part::BehindProgram);
    assert!(behind > Span::from_us(800), "{behind:?}");
    let config = suspending();
    let suspends = read_during_program(config, 500);
    assert_eq!(suspends.anatomy.get(Part::BehindProgram), Span::from_us(30));
    assert_eq!(suspends.anatomy.get(Part::Medium), Span::from_us(60));
}

#[test]
fn a_suspended_program_still_takes_all_its_time() {
    // Without capacitors, a flush ends when the page is on the medium.
    let flush_after = |reads: u32| {
        let mut config = suspending();
        config.buffer.protected = false;
        let mut drive = Nand::new(config, Precondition::Filled, 1);
        let mut commands: Vec<_> = (0..8)
            .map(|id| (0, Command::write(id, (1000 + u64::from(id)) * 4096, 4096)))
            .collect();
        commands.push((50, Command::flush(8)));
        for read in 0..reads {
            commands.push((
                200 + 250 * u64::from(read),
                Command::read(9 + read, 0, 4096),
            ));
        }
        at_times(&mut drive, &commands)[8].at
    };
    // Each read uses the die for the suspension, its sense and the resumption.
    let stolen = Span::from_us(30 + 60 + 10);
    assert_eq!(flush_after(2), flush_after(0) + stolen * 2);
}

#[test]
fn a_program_that_ends_before_it_could_be_stopped_is_let_end() {
    let waits = |config: NandConfig, at_us| {
        let read = read_during_program(config, at_us);
        read.anatomy.get(Part::BehindProgram)
    };
    let left = waits(small(), 500);
    let end = 500 + left.ns() / 1000;
    // Suspending takes 30 us.
    for rest in [2, 15, 29] {
        let waited = waits(suspending(), end - rest);
        assert_eq!(waited, waits(small(), end - rest));
        assert!(waited < Span::from_us(30), "{waited:?}");
    }
    for rest in [31, 45, 400] {
        assert_eq!(waits(suspending(), end - rest), Span::from_us(30));
    }
}
