//! The suite `under-load`: only rate-limited I/Os are counted, at the requested rate, and their latency grows with the
//! competing writes.

mod suites;

use catalogue::DriveSheet;
use study::review::Suite;

use suites::{result, run};

fn sheet(name: &str) -> DriveSheet {
    catalogue::drive(name).expect("built in")
}

#[test]
fn paced_reads_and_writes_wait_longer_the_more_is_written_beside_them() {
    let drives = ["p4800x-375", "950pro-256"];
    let found = run(drives.map(sheet).into(), Suite::UnderLoad, 12_000);
    for drive in 0..drives.len() {
        let taken = result(&found, "writes-taken/random-write", drive).iops();
        let of = |share: u32| result(&found, &format!("under-load/{share}%"), drive);
        for share in [0, 20, 40, 60, 80, 90] {
            let one = of(share);
            let (read, write) = (
                one.read.as_ref().expect("reads"),
                one.write.as_ref().expect("writes"),
            );
            for way in [read, write] {
                let wanted = taken / 10.0;
                // Poisson arrivals: four standard deviations and the edges of a short run.
                assert!(
                    (way.iops / wanted - 1.0).abs() < 0.08,
                    "drive {drive}, {share} %: {} of {wanted}",
                    way.iops
                );
            }
        }
        let mean = |share: u32| of(share).read.as_ref().expect("reads").latency.mean_us;
        assert!(
            mean(0) < mean(60) && mean(60) < mean(100),
            "{} {} {}",
            mean(0),
            mean(60),
            mean(100)
        );
        assert!(of(80).job.contains("[beside]\nnew_group=1\nrw=randwrite"));
    }
}

#[test]
fn the_verdict_has_a_sentence_of_each_drive() {
    let found = run(vec![sheet("p4800x-375")], Suite::UnderLoad, 66_000);
    let said = found.verdict.iter().filter(|it| it.chapter == "under-load");
    let said: Vec<&str> = said.map(|it| &*it.text).collect();
    assert_eq!(said.len(), 1, "{:?}", found.verdict);
    assert!(
        said[0].starts_with("The P4800X: p99.9 of rate-limited reads is"),
        "{said:?}"
    );
}
