//! A drive in the memory of a used one equals a new drive.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::conformance::{Mix, Suite};
use crate::media::{Drive, DriveConfig, MediumDrive};
use crate::tier::raid0::Raid0Config;

/// Returns all completions of a mix of commands, and the FTL's counters.
fn served(drive: &mut Drive, seed: u64) -> (Vec<Completion>, String) {
    let mut mix = Mix::new(seed, drive.capacity().bytes, Suite::default());
    run(drive, &mut mix, Time::ZERO, Time::NEVER);
    let nands: Vec<&Nand> = match drive {
        Drive::Nand(nand) => vec![nand],
        Drive::Raid0(raid) => {
            let members = raid.members().iter();
            members
                .filter_map(|member| match member {
                    Drive::Nand(nand) => Some(&**nand),
                    _ => None,
                })
                .collect()
        }
        _ => Vec::new(),
    };
    let traffic: Vec<_> = nands
        .iter()
        .map(|nand| (nand.ftl().traffic(), nand.start.traffic_since(nand.ftl())))
        .collect();
    (Mix::log(&mix).to_vec(), format!("{traffic:?}"))
}

#[test]
fn a_reset_drive_equals_a_new_one() {
    let nand = |config: NandConfig| DriveConfig::Nand(Box::new(config));
    let slower = {
        let mut config = small();
        config.timing.read = Span::from_us(80);
        nand(config)
    };
    let shorter = {
        let mut config = small();
        config.collection.watermark = Watermark { low: 5 };
        nand(config)
    };
    let raid = DriveConfig::Raid0(Raid0Config {
        members: vec![nand(small()); 2],
        stripe: 128 << 10,
    });
    let small = nand(small());
    let paced = nand(super::paced(true));
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
        (&raid, Steady, 3),
        (&raid, Steady, 3),
        (&raid, Steady, 3),
        (&small, Steady, 3),
        (&paced, Steady, 3),
        (&paced, Steady, 3),
        (&paced, Steady, 3),
    ];
    let mut used = Drive::new(&small, Fresh, 9);
    let mut remembered = 0;
    for (index, (config, state, seed)) in plans.into_iter().enumerate() {
        used = used.reset(config, state, seed);
        let has = |nand: &Nand| nand.start.remembers();
        remembered += usize::from(matches!(&used, Drive::Nand(nand) if has(nand)));
        let mut new = Drive::new(config, state, seed);
        assert_eq!(served(&mut used, 7), served(&mut new, 7), "plan {index}");
    }
    // The third plan, and later ones with the same seed, with any state; and the last.
    assert_eq!(remembered, 4);
}
