//! The order of a search: at every time, the images that were checked are spread evenly over the log.

use std::ops::{ControlFlow, Range};

use crash::log::{Note, Submission, Writer};
use crash::search::{
    Case, Check, Class, Counts, Judgement, Limits, NoReport, SearchReport, levels, search,
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
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name[..digits].parse().expect("a name begins with a moment")
}

/// Rejects the images of some moments, and remembers the names of all.
struct Checker {
    fails: Range<u32>,
    batch: usize,
    /// Checks after which the search is stopped.
    most: usize,
    names: Vec<String>,
}

impl Checker {
    fn new(fails: Range<u32>, batch: usize) -> Checker {
        Checker {
            fails,
            batch,
            most: usize::MAX,
            names: Vec::new(),
        }
    }
}

impl Check for Checker {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        let judged = cases.iter().map(|case| {
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
    // The moments between 896 and 960 were not tried.
    assert_eq!(report.moments[930].tried, 0);
    assert_eq!(report.failures[0].name, "931");
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
