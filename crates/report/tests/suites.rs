//! The suites of published articles: their workloads, conditions and tables.

use std::collections::BTreeSet;

use model::Span;
use model::host::HostConfig;
use model::media::Medium;
use model::media::ram::RamConfig;
use report::page;
use study::review::{Review, ReviewRequest, Suite, review, summary};
use tier::DriveConfig;

/// Runs a suite on one drive, with few I/Os. The default drive is a RAM disk with known latency, in a host without
/// costs, so that tables do not change with the catalogue.
fn run(suite: Suite, drive: Option<&str>, ios: u64) -> Review {
    let mut sheet = catalogue::drive(drive.unwrap_or("ram-disk")).expect("it is in the catalogue");
    sheet.config = match drive {
        Some(_) => sheet.config.shrunk(8 << 30),
        None => DriveConfig::Ram(RamConfig {
            bytes: 4 << 30,
            per_command: Span::from_us(2),
            picoseconds_per_byte: 250,
            memory_bus: None,
            spread: 0.0,
        }),
    };
    sheet.capacity = sheet.config.capacity_bytes();
    let mut host = catalogue::host(suite.host()).expect("the host is in the catalogue");
    host.config = HostConfig {
        cores: 32,
        ..HostConfig::default()
    };
    let request = ReviewRequest {
        drives: vec![sheet],
        settings: Default::default(),
        host,
        suite,
        effort: suite.effort().with_ios(ios),
        seed: 7,
        yours: Vec::new(),
        only_yours: false,
    };
    review(&request, &lab::Lab::new(), &|_| {}).expect("the suite fits the drive")
}

fn points(review: &Review) -> Vec<(&str, usize)> {
    let chapters = review.chapters.iter();
    chapters
        .map(|chapter| (chapter.id, chapter.points.len()))
        .collect()
}

#[test]
fn anandtech_has_the_tests_of_both_reviews() {
    let found = run(Suite::Anandtech2017, Some("p4800x-375"), 100);
    assert_eq!(
        points(&found),
        [
            // 12 sizes, random and sequential, reads and writes, aligned to the block and to 512 B.
            ("block-size", 96),
            // 29 depths, reads and writes, from up to four threads and from one.
            ("queue-depth", 58),
            ("one-thread", 58),
            ("sequential", 58),
            ("mix", 11),
        ]
    );
    let depths: BTreeSet<u32> = found.chapters[1]
        .points
        .iter()
        .filter_map(|point| point.settings.queue_depth)
        .collect();
    let published: BTreeSet<u32> = (1..=16)
        .chain([18, 20])
        .chain((24..=64).step_by(4))
        .collect();
    assert_eq!(depths, published);
    for chapter in &found.chapters {
        for point in &chapter.points {
            // After two random fills.
            assert_eq!(point.state, "steady");
            let job = &point.results[0].as_ref().expect("it ran").job;
            // A quarter of the whole run is dropped: the first of four minutes. A single thread ends by its I/Os
            // instead.
            let time = |key: &str| -> Option<f64> {
                let line = job.lines().find_map(|line| line.strip_prefix(key))?;
                line.trim_end_matches("us").parse().ok()
            };
            let ramp = time("ramp_time=").expect("something is dropped");
            match time("runtime=") {
                Some(runtime) => assert!((ramp * 3.0 - runtime).abs() <= 3_000.0, "{job}"),
                None => assert_eq!(point.settings.threads, Some(1)),
            }
            let threads = if chapter.id == "mix" { 16 } else { 4 };
            assert!(point.settings.threads.is_some_and(|count| count <= threads));
        }
    }
    assert!(page::html(&found).contains("id=\"one-thread\""));
}

#[test]
fn virten_has_eight_tests_in_a_virtual_machine() {
    let found = run(Suite::Virten2017, None, 3_000);
    assert_eq!(found.host.id, "esxi-nuc");
    assert_eq!(points(&found), [("virten", 14)]);
    // The virtual disk is a small part of the drive, so writes have free space (S0-072); reads find data.
    for point in &found.chapters[0].points {
        let wanted = match point.settings.direction {
            Some("write") => "fresh",
            _ => "filled",
        };
        assert_eq!(point.state, wanted, "{}", point.name);
    }
    insta::assert_snapshot!(summary::table(&found, None));
    let html = page::html(&found);
    assert!(html.contains("test 7, 4 KiB random read, 5000 a second"));
    // It has no chapter on queue depths: the cards show the measured extremes instead of dashes.
    assert!(html.contains("<dt>Reads, fastest</dt>"));
    assert!(!html.contains("Random read, QD1"));
}

#[test]
fn perftest_keeps_each_of_32_threads_to_one_place() {
    let found = run(Suite::Perftest, None, 3_000);
    assert_eq!(found.host.id, "freebsd-perftest");
    assert_eq!(points(&found), [("perftest", 18)]);
    insta::assert_snapshot!(summary::table(&found, None));
    let job = &found.chapters[0].points[3].results[0]
        .as_ref()
        .expect("it ran")
        .job;
    insta::assert_snapshot!("perftest_job", job);
}

#[test]
fn slog_asks_for_durable_writes_by_size_and_threads() {
    let found = run(Suite::Slog, None, 300);
    assert_eq!(found.host.id, "xeon-2017");
    assert_eq!(points(&found), [("slog", 16), ("slog-loads", 3)]);
    let job = |chapter: usize, point: usize| {
        let point = &found.chapters[chapter].points[point];
        &point.results[0].as_ref().expect("it ran").job
    };
    let sync = job(0, 7);
    for line in [
        "rw=randwrite",
        "bs=8k",
        "sync=1",
        "numjobs=64",
        "iodepth=1",
        "filename=/dev/nvme0n1",
    ] {
        assert!(sync.lines().any(|it| it == line), "{line}: {sync}");
    }
    assert!(job(1, 1).contains("\nfdatasync=1\n"));
    // A RAM disk takes 2 us plus a quarter of a nanosecond per byte; one thread has one I/O in flight.
    let one = found.chapters[0].points[0].results[0]
        .as_ref()
        .expect("it ran");
    assert!((one.iops() * 3.024e-6 - 1.0).abs() < 0.01, "{}", one.iops());
    let loads = found.chapters[1].points[2].results[0]
        .as_ref()
        .expect("it ran");
    let series = loads.series.as_ref().expect("it is told over time");
    assert!(series.iops.len() > 100 && series.congestion.is_empty() && loads.members.is_empty());
    assert!(
        loads.notes[0].starts_with("cut short: "),
        "{:?}",
        loads.notes
    );
    let html = page::html(&found);
    assert!(html.contains("id=\"slog-loads\"") && html.contains("\"draws\":\"gauged\""));
    let table = summary::table(&found, None);
    assert!(table.contains("Database log, 8 KiB + fdatasync"), "{table}");
}
