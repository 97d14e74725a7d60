//! Rated cycles of every NAND drive of the catalogue, compared with the load of its rating: a drive under that load ends at
//! its rating by its own counter.
//!
//! The load is the enterprise workload of JESD219 for data-centre drives; for those with an indirection unit above 4 KiB
//! it is random writes of one unit, the block size of their rated random writes. Desktop drives are rated by a client
//! workload that is not included, with an assumed write amplification of 2. Drives are simulated with fewer blocks.

use catalogue::DriveSheet;
use lab::Lab;
use model::Span;
use model::media::{Medium, Precondition};

use super::super::fill::SMALL;
use super::super::named;
use super::super::work::{Conditions, Load};
use super::*;

/// Share by which the ends may differ: the runs are short, and the drives have fewer blocks.
const TOLERANCE: f64 = 0.15;

/// Returns the write amplification of a smaller drive under a load.
fn amplification(sheet: &DriveSheet, load: Load, lab: &Lab) -> f64 {
    let mut small = sheet.clone();
    small.config = sheet.config.shrunk(SMALL);
    small.capacity = small.config.capacity_bytes();
    let conditions = Conditions {
        host: catalogue::host("linux").expect("built in"),
        state: Precondition::Steady,
        seed: 1,
        seeds: 1,
    };
    let load = load.at_most(Span::from_ms(300));
    let answer = life(&small, Some(&load), 5.0, &conditions, lab, &lab::to_the_end);
    let answer = answer.expect("the load fits");
    let written = answer.parts[0].written.as_ref().expect("a load");
    written.write_amplification.expect("it writes")[0]
}

#[test]
fn every_drive_under_the_load_of_its_rating_ends_at_its_rating() {
    let lab = Lab::default();
    let (mut tested, mut wrong) = (0, Vec::new());
    for name in catalogue::drive_names() {
        let sheet = catalogue::drive(name).expect("built in");
        let cycles = part(name, &sheet, 5.0, None).cycles;
        let Some(rated) = cycles.and_then(|it| it.rated_write_amplification) else {
            continue;
        };
        let figure = sheet.figure("nand.wear.rated_cycles").expect("a figure");
        let source = figure.source.clone();
        let found = if source.contains("--load jesd219") {
            let text = named::text("jesd219").expect("a named load").to_owned();
            let load = Load::of_text("jesd219", text).expect("a job");
            amplification(&sheet, load, &lab)
        } else if source.contains("random writes of 16 KiB") {
            let text = "[a]\nioengine=libaio\ndirect=1\nrw=randwrite\nbs=16k\niodepth=32\nnorandommap=1\ntime_based=1\n\
                        ramp_time=200ms\nruntime=1s\n";
            let load = Load::of_text("16 KiB", text.to_owned()).expect("a job");
            amplification(&sheet, load, &lab)
        } else {
            2.0
        };
        tested += 1;
        if (found / rated - 1.0).abs() > TOLERANCE {
            wrong.push(format!(
                "{name}: {found:.2}, rated by {rated:.2} ({source})"
            ));
        }
    }
    assert!(tested > 50, "{tested}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
