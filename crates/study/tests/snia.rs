//! The suite `snia`: rounds follow each other on one drive that keeps its state, and end in steady state.

mod suites;

use catalogue::DriveSheet;
use study::review::Suite;
use study::review::results::TimeSeries;

use suites::{result, run};

fn sheet(name: &str) -> DriveSheet {
    catalogue::drive(name).expect("built in")
}

#[test]
fn rounds_go_on_from_where_the_last_ended_until_they_are_steady() {
    let drives = ["p4800x-375", "960pro-512"];
    let found = run(drives.map(sheet).into(), Suite::Snia, 400);
    for drive in 0..drives.len() {
        let tracked = result(&found, "snia-steady/snia/r0-4k", drive);
        assert_eq!(tracked.each.len(), 3);
        for one in &tracked.each {
            let series = one.series.as_ref().expect("rounds");
            assert!((5..=25).contains(&series.iops.len()), "{series:?}");
            let last = &series.iops[series.iops.len() - 5..];
            let window = statistics::steady_state(last);
            assert_eq!(window.is_some(), series.steady_at_seconds.is_some());
            assert_eq!(series.every_seconds, 3360.0);
        }
        let reads = result(&found, "snia-iops/snia/r100-4k", drive);
        assert!(reads.iops() > tracked.iops(), "drive {drive}");
    }
    // Data written by earlier steps of the round is still there: flash is far below its rate when new; a medium that
    // is written in place is not.
    let beside_new = |drive| {
        let first = |name| {
            let series: Option<&TimeSeries> = result(&found, name, drive).series.as_ref();
            series.expect("over time").iops[0]
        };
        first("snia-steady/snia/r0-4k") / first("snia-saturation/random-write")
    };
    assert!(beside_new(1) < 0.4, "{}", beside_new(1));
    assert!((0.9..1.1).contains(&beside_new(0)), "{}", beside_new(0));
    let said = found.verdict.iter().filter(|it| it.chapter == "snia-iops");
    assert_eq!(said.count(), drives.len(), "{:?}", found.verdict);
}
