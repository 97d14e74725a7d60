//! The order of a search: at every time, the images that were checked are spread evenly over the log.

use std::ops::{ControlFlow, Range};

use crash::log::{Note, Submission, Writer};
use crash::name::END;
use crash::search::{
    Case, Check, Class, Counts, Failure, Judgement, Limits, NoReport, SearchReport, grouped,
    levels, search,
};
use crash::{Assumptions, EventKind, Head, Log};

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

/// Returns a log with this number of transactions: two writes, a flush and an acknowledgement. Each transaction has one
/// moment, before its flush completes.
fn log(transactions: u32) -> Log {
    let mut log = Writer::new(&Head {
        drive: "test".into(),
        bytes: 1 << 20,
        block: 512,
        part: 4096,
        volatile: true,
    });
    for number in 1..=transactions {
        let kinds = [EventKind::Write, EventKind::Write, EventKind::Flush];
        for (block, kind) in (0..).zip(kinds) {
            let submission = Submission {
                kind,
                fua: false,
                offset: if block < 2 { 4096 * block } else { 0 },
                bytes: if block < 2 { 4096 } else { 0 },
            };
            let sent = log.submit(submission, &mut |data| {
                data[..4].copy_from_slice(&number.to_le_bytes());
                true
            });
            log.complete(sent.expect("data"), true);
        }
        log.note(Note::Ack, &number.to_string());
    }
    Log::read(log.bytes).expect("a log")
}

fn moment(name: &str) -> u32 {
    if name == END {
        return u32::MAX;
    }
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name[..digits].parse().expect("a name begins with a moment")
}

/// Rejects the images of some moments, and remembers the names of all.
struct Checker {
    fails: Range<u32>,
    batch: usize,
    /// Images that are judged in one call; the others are not reached.
    judged: usize,
    /// Checks after which the search is stopped.
    most: usize,
    names: Vec<String>,
}

impl Checker {
    fn new(fails: Range<u32>, batch: usize) -> Checker {
        Checker {
            fails,
            batch,
            judged: usize::MAX,
            most: usize::MAX,
            names: Vec::new(),
        }
    }
}

impl Check for Checker {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        let judged = cases.iter().take(self.judged).map(|case| {
            self.names.push(case.name.clone());
            match self.fails.contains(&moment(&case.name)) {
                false => Judgement::Sound,
                true => Judgement::Failed(Class::Rule, "too late".into()),
            }
        });
        Ok(judged.collect())
    }

    fn batch(&self) -> Option<usize> {
        (self.batch > 1).then_some(self.batch)
    }

    fn goes_on(&mut self, _: &Counts, share: f64) -> ControlFlow<()> {
        assert!((0.0..=1.0).contains(&share), "{share}");
        match self.names.len() < self.most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

fn run(log: &Log, images: u64, checker: &mut Checker) -> SearchReport {
    let limits = Limits {
        images,
        ..Limits::default()
    };
    let report: Result<SearchReport, NoReport> = search(log, SSD, limits, checker);
    report.expect("a report")
}

#[test]
fn every_moment_is_in_one_level_and_after_n_no_gap_is_wider_than_four_nths() {
    for count in [1_u32, 2, 3, 7, 8, 9, 135, 1000, 1023, 1025] {
        let order: Vec<u32> = levels(count).flatten().collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(1..=count), "{count}");
        for visited in 1..=order.len() {
            let mut seen = order[..visited].to_vec();
            seen.extend([0, count + 1]);
            seen.sort_unstable();
            let gap = seen.windows(2).map(|it| it[1] - it[0]).max();
            let widest = (4 * (count + 1)).div_ceil(visited as u32);
            assert!(gap <= Some(widest), "{count}: {gap:?} after {visited}");
        }
    }
    assert_eq!(levels(0).flatten().count(), 0);
}

#[test]
fn a_failure_near_the_end_of_a_long_log_is_found_soon_and_its_first_moment_is_named() {
    let log = log(1000);
    // 64 images: in the order of the log, they would end at moment 64.
    let report = run(&log, 64, &mut Checker::new(931..1001, 1));
    assert_eq!(report.counts.tried, 64);
    assert_eq!(report.failures.len(), 1, "{report:#?}");
    // All multiples of 16 were tried, then 8 and 24. The first moment that fails is between two of them.
    let tried = (1..).zip(&report.moments).filter(|it| it.1.tried > 0);
    let near: Vec<u32> = { tried.map(|it| it.0) }
        .filter(|it| (900..950).contains(it))
        .collect();
    assert_eq!(near, [912, 928, 944]);
    assert_eq!(report.failures[0].name, "931");
}

#[test]
fn a_search_that_is_stopped_has_the_acknowledgements_of_every_moment() {
    let log = log(1000);
    for images in [1, 64, 3000] {
        let report = run(&log, images, &mut Checker::new(0..0, 1));
        let acks: Vec<usize> = report.moments.iter().map(|it| it.acks).collect();
        assert!(acks.iter().copied().eq(0..=1000), "{images}: {acks:?}");
    }
}

/// Rejects images whose first byte is in a range.
struct FirstByte(Range<u8>);

impl Check for FirstByte {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        let judged = cases.iter().map(|case| {
            let mut byte = [0];
            case.image.read(0, &mut byte);
            match self.0.contains(&byte[0]) {
                false => Judgement::Sound,
                true => Judgement::Failed(Class::Rule, "wrong byte".into()),
            }
        });
        Ok(judged.collect())
    }
}

#[test]
fn a_moment_whose_image_is_equal_to_a_failed_one_has_not_passed() {
    let mut log = Writer::new(&log(1).head);
    // Moments 5 and 6 have equal images, and no acknowledgement is between them. Moment 6 is tried first.
    for byte in [1, 2, 3, 4, 5, 5, 6, 7, 9] {
        for (kind, bytes) in [(EventKind::Write, 512), (EventKind::Flush, 0)] {
            let submission = Submission {
                kind,
                fua: false,
                offset: 0,
                bytes,
            };
            let sent = log.submit(submission, &mut |data| {
                data.fill(byte);
                true
            });
            log.complete(sent.expect("data"), true);
        }
    }
    let log = Log::read(log.bytes).expect("a log");
    for images in [7, u64::MAX] {
        let limits = Limits {
            images,
            ..Limits::default()
        };
        let report = search(&log, SSD, limits, &mut FirstByte(5..8)).expect("a report");
        let names: Vec<&str> = report.failures.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["5"], "{images}: {report:#?}");
    }
}

#[test]
fn images_that_are_judged_together_are_the_same_in_the_same_order() {
    let log = log(300);
    for images in [40, 2000] {
        let [mut one, mut many] = [Checker::new(271..301, 1), Checker::new(271..301, 16)];
        let [by_one, by_many] = [&mut one, &mut many].map(|it| run(&log, images, it));
        assert_eq!(by_one, by_many, "{images}");
        let tried = |names: &[String]| {
            let mut seen = Vec::new();
            for name in names {
                if !seen.contains(name) {
                    seen.push(name.clone());
                }
            }
            seen
        };
        // The first failure of a kind is checked a second time, which does not count.
        assert_eq!(tried(&one.names), tried(&many.names), "{images}");
    }
    // The first round loses nothing, and comes to each moment once.
    let mut checker = Checker::new(0..0, 16);
    let report = run(&log, u64::MAX, &mut checker);
    assert_eq!(report.counts.exhausted, report.counts.moments);
    let moments = report.counts.moments as usize;
    let first: Vec<u32> = { checker.names[1..=moments].iter() }
        .map(|it| moment(it))
        .collect();
    assert!(
        first
            .iter()
            .copied()
            .eq(levels(report.counts.moments).flatten())
    );
    assert!(
        checker.names[1..=moments]
            .iter()
            .all(|it| !it.contains('-'))
    );
}

#[test]
fn a_search_can_be_stopped_within_the_many_images_of_a_moment() {
    // 300 writes before the only flush: 4096 images of this moment.
    let mut writer = Writer::new(&log(1).head);
    for (kind, count) in [(EventKind::Write, 300), (EventKind::Flush, 1)] {
        for number in 0..count {
            let submission = Submission {
                kind,
                fua: false,
                offset: 512 * number,
                bytes: if kind == EventKind::Write { 512 } else { 0 },
            };
            let sent = writer.submit(submission, &mut |data| {
                data.fill((number % 255) as u8 + 1);
                true
            });
            writer.complete(sent.expect("data"), true);
        }
    }
    let log = Log::read(writer.bytes).expect("a log");
    let mut checker = Checker::new(0..0, 16);
    checker.most = 1000;
    let report = run(&log, u64::MAX, &mut checker);
    assert!(report.stopped);
    assert!(
        (1000..1016).contains(&checker.names.len()),
        "{}",
        checker.names.len()
    );
    assert!(!report.moments[0].exhausted);
}

#[test]
fn images_that_are_not_reached_are_not_counted_as_tried() {
    let log = log(100);
    let mut checker = Checker::new(0..0, 16);
    checker.judged = 5;
    let report = run(&log, u64::MAX, &mut checker);
    assert!(report.stopped);
    // Five of a batch of 16, and the orderly end before.
    assert_eq!((report.counts.tried, report.counts.checked), (5, 5));
    let tried: u64 = report.moments.iter().map(|it| it.tried).sum();
    assert_eq!(tried, 5);
    assert_eq!(checker.names.len(), 6);
    assert_eq!(checker.names[0], "end");
    let exhausted = report.moments.iter().filter(|it| it.exhausted).count();
    assert_eq!(exhausted, report.counts.exhausted as usize);
}

#[test]
fn failures_of_one_rule_are_one_violation_with_several_causes() {
    let report = run(&log(8), u64::MAX, &mut Checker::new(3..5, 1));
    let failure = |class, line: &str| Failure {
        class,
        line: line.into(),
        ..report.failures[0].clone()
    };
    let failures = [
        failure(Class::Lost, "lost 3 have 2"),
        failure(Class::Rule, "the sum of 5 is wrong"),
        failure(Class::Lost, "lost the first order"),
        failure(Class::Rule, "the index of 6 is wrong"),
        failure(Class::Rule, "the sum of 1f7b is wrong"),
        failure(Class::Corrupt, "slot 3 of 5 is 0"),
        failure(Class::Corrupt, "the header is 0"),
    ];
    let rules = grouped(&failures, |it| it.rule());
    let lines: Vec<Vec<&str>> = { rules.iter() }
        .map(|rule| rule.iter().map(|it| &*it.line).collect())
        .collect();
    let expected = [
        &["lost 3 have 2", "lost the first order"][..],
        &["the sum of 5 is wrong", "the sum of 1f7b is wrong"],
        &["the index of 6 is wrong"],
        &["slot 3 of 5 is 0", "the header is 0"],
    ];
    assert_eq!(lines, expected);
}
