//! Data lost in a power cut: the content of a volatile buffer; nothing with a protected one.

use super::*;
use crate::conformance::Suite;
use crate::device::Range;
use crate::ftl::PageLocation;

fn lost(make: impl Fn(u64) -> Nand) -> u64 {
    let suite = Suite::default();
    let bytes = (0..4).map(|seed| suite.power_cuts(seed, make(seed)).expect("law 9"));
    bytes.sum()
}

#[test]
fn a_volatile_buffer_is_lost_and_a_protected_one_is_not() {
    for state in [Precondition::Fresh, Precondition::Steady] {
        assert!(lost(|seed| Nand::new(everything(false), state, seed)) > 0);
        assert_eq!(lost(|seed| Nand::new(everything(true), state, seed)), 0);
    }
}

/// Acknowledged, overwritten, flushed, and cut: only data after the flush is lost, and the map no longer contains it.
#[test]
fn what_came_after_a_flush_is_lost_and_the_map_knows() {
    let mut drive = Nand::new(everything(false), Precondition::Fresh, 1);
    let mut now = Time::ZERO;
    let mut finish = |drive: &mut Nand, command: Command| {
        drive.submit(now, command);
        let mut done = Vec::new();
        while done.is_empty() {
            now = drive.next_event();
            drive.advance(now, now, &mut done);
        }
        now
    };
    finish(&mut drive, Command::write(0, 0, 4096));
    finish(&mut drive, Command::write(0, 40960, 8192));
    finish(&mut drive, Command::flush(0));
    let acknowledged = finish(&mut drive, Command::write(0, 40960, 4096));
    let mut lost = Vec::new();
    drive.power_cut(acknowledged, &mut lost);
    let expected = Range {
        offset: 40960,
        bytes: 4096,
    };
    assert_eq!(lost, [expected]);
    let mut at_risk = Vec::new();
    drive.at_risk(&mut at_risk);
    assert_eq!(at_risk, []);
    let place = |page| matches!(drive.ftl().locate(Page(page)), PageLocation::Flash(_));
    assert_eq!([0, 10, 11].map(place), [true, false, true]);
    drive.ftl().check();
}
