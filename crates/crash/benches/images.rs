//! Images a minute without a checker: the search makes each image, computes its sum, and compares it with the others.
//! `cargo bench -p drivelab-crash --bench images` prints a table.
//!
//! The logs are those of a store of 64 MiB that is full at the start: transactions of some random writes, each with a
//! flush. One thread; the goal of 100,000 images a minute is for two.

use std::time::Instant;

use crash::log::{Note, Submission, Writer};
use crash::search::{Case, Judgement, Limits, search};
use crash::{Assumptions, EventKind, Head, Log};
use model::Stream;

const BYTES: u64 = 64 << 20;
const PAGE: u64 = 4096;

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

/// Images of one measurement.
const IMAGES: u64 = 20_000;

/// Returns the log of transactions of this number of writes, each of this number of pages.
fn log(transactions: u64, writes: u64, pages: u64) -> Log {
    let mut log = Writer::new(&Head {
        drive: "bench".into(),
        bytes: BYTES,
        block: 512,
        part: 4096,
        volatile: true,
    });
    let mut stream = Stream::numbered(1, "bench", writes);
    let mut page = vec![0; PAGE as usize];
    for number in 0..BYTES / PAGE {
        page.fill_with(|| stream.uniform_below(256) as u8);
        log.base(number * PAGE, &page);
    }
    for transaction in 0..transactions {
        for _ in 0..writes {
            let offset = stream.uniform_below(BYTES / PAGE - pages) * PAGE;
            let write = Submission {
                kind: EventKind::Write,
                fua: false,
                offset,
                bytes: (pages * PAGE) as u32,
            };
            let mut fill = |data: &mut [u8]| {
                data.fill_with(|| stream.uniform_below(256) as u8);
                true
            };
            let number = log.submit(write, &mut fill).expect("data");
            log.complete(number, true);
        }
        let flush = Submission {
            kind: EventKind::Flush,
            fua: false,
            offset: 0,
            bytes: 0,
        };
        let number = log.submit(flush, &mut |_| true).expect("a flush");
        log.complete(number, true);
        log.note(Note::Ack, &transaction.to_string());
    }
    Log::read(log.bytes).expect("a log")
}

fn main() {
    println!("transactions of           images    a minute");
    for (writes, pages) in [(2, 1), (4, 1), (8, 1), (4, 4), (32, 1)] {
        let log = log(500, writes, pages);
        let limits = Limits {
            images: IMAGES,
            ..Limits::default()
        };
        let mut checked = 0;
        let begin = Instant::now();
        let report = search(&log, SSD, limits, &mut |_: &Case<'_>| {
            checked += 1;
            Judgement::Sound
        });
        let seconds = begin.elapsed().as_secs_f64();
        let counts = report.expect("a report").counts;
        assert_eq!(counts.checked + 1, checked);
        let minute = counts.tried as f64 * 60.0 / seconds;
        let name = format!("{writes} writes of {} KiB", pages * PAGE / 1024);
        println!("{name:<22} {:>9} {minute:>11.0}", counts.tried);
    }
}
