//! A drive in the memory of a used one equals a new drive.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::conformance::{Mix, Suite};
use crate::media::MediumDrive;

/// Returns all completions of a mix of commands, and the FTL's counters.
fn served(drive: &mut Nand, seed: u64) -> (Vec<Completion>, String) {
    let mut mix = Mix::new(seed, drive.capacity().bytes, Suite::default());
    run(drive, &mut mix, Time::ZERO, Time::NEVER);
    let traffic = (
        drive.ftl().traffic(),
        drive.start.traffic_since(drive.ftl()),
    );
    (Mix::log(&mix).to_vec(), format!("{traffic:?}"))
}

#[test]
fn a_reset_drive_equals_a_new_one() {
    let slower = {
        let mut config = small();
        config.timing.read = Span::from_us(80);
        config
    };
    let shorter = {
        let mut config = small();
        config.collection.watermark = Watermark { low: 5 };
        config
    };
    let small = small();
    let paced = super::paced(true);
    use Precondition::{Filled, Fresh, Steady};
    // Three times the same, so that its warm-up is computed, computed and saved, and reused.
    let plans = [
        (&small, Steady, 1),
        (&slower, Steady, 1),
        (&small, Steady, 1),
        (&small, Filled, 1),
        (&small, Steady, 1),
        (&shorter, Steady, 1),
        (&small, Steady, 2),
        (&small, Fresh, 2),
        (&small, Steady, 3),
        (&paced, Steady, 3),
        (&paced, Steady, 3),
        (&paced, Steady, 3),
    ];
    let mut used = Nand::new(small.clone(), Fresh, 9);
    let mut remembered = 0;
    for (index, (config, state, seed)) in plans.into_iter().enumerate() {
        used = used.reset(config, state, seed);
        remembered += usize::from(used.start.remembers());
        let mut new = Nand::new(config.clone(), state, seed);
        assert_eq!(served(&mut used, 7), served(&mut new, 7), "plan {index}");
    }
    // The third plan, and later ones with the same seed, with any state; and the last.
    assert_eq!(remembered, 4);
}
