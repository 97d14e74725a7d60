//! Brute-force test of the law of moments: every image that a cut at any time can leave is an image of the next
//! moment, and every image of a moment is one that a cut there can leave. It uses small random logs; planted bugs must
//! be found.

use std::collections::BTreeSet;

use model::Stream;

use crate::choice::choices;
use crate::log::{Event, EventKind, Head, Log, Note, Submission, Writer};
use crate::lost::Lost;
use crate::moments::{Assumptions, Bug, Walk};

/// Bytes of the drive.
const BYTES: usize = 4 * 4096;

/// Maximum number of undecided pieces of a log that is tried.
const MOST: usize = 9;

fn head() -> Head {
    Head {
        drive: "test".into(),
        bytes: BYTES as u64,
        block: 512,
        part: 1024,
        volatile: true,
    }
}

/// Returns a random log with overlapping commands.
fn random_log(stream: &mut Stream) -> Log {
    let mut writer = Writer::new(&head());
    writer.base(512 * stream.uniform_below(8), &[0xbb; 2048]);
    let mut inside: Vec<u32> = Vec::new();
    let mut acks = 0;
    for number in 0..6 + stream.uniform_below(5) {
        while inside.len() > 2 || (!inside.is_empty() && stream.chance(0.5)) {
            let one = inside.swap_remove(stream.uniform_below(inside.len() as u64) as usize);
            writer.complete(one, !stream.chance(0.05));
        }
        if stream.chance(0.3) {
            acks += 1;
            writer.note(Note::Ack, &acks.to_string());
        }
        let kind = [
            EventKind::Write,
            EventKind::Write,
            EventKind::Write,
            EventKind::Flush,
            EventKind::Zeroes,
            EventKind::Trim,
        ][stream.uniform_below(6) as usize];
        let sector = stream.uniform_below(28);
        let submission = Submission {
            kind,
            fua: stream.chance(0.2) && kind != EventKind::Flush,
            offset: 512 * sector,
            bytes: 512 * (1 + stream.uniform_below(4)) as u32,
        };
        inside.extend(writer.submit(submission, &mut |data| {
            data.fill(number as u8 + 1);
            true
        }));
    }
    for one in inside {
        if stream.chance(0.7) {
            writer.complete(one, true);
        }
    }
    Log::read(writer.bytes).expect("a log")
}

/// Returns by brute force the images that a cut before this event can leave; `None` if there are too many.
fn brute(log: &Log, how: Assumptions, cut: usize) -> Option<BTreeSet<Vec<u8>>> {
    let before = |it: Option<usize>| it.filter(|it| *it < cut);
    // (order, command, start, end, durable)
    let mut pieces = Vec::new();
    for write in log
        .commands
        .iter()
        .filter(|it| it.writes() && it.submitted < cut)
    {
        let completed = before(write.completed);
        if completed.is_some() && write.failed {
            continue;
        }
        let flushed = completed.is_some_and(|completed| {
            log.commands.iter().any(|flush| {
                flush.kind == EventKind::Flush
                    && !flush.failed
                    && flush.submitted > completed
                    && before(flush.completed).is_some()
            })
        });
        let durable = completed.is_some() && (!how.volatile || write.fua) || flushed;
        let order = write.completed.unwrap_or(1000 + write.submitted);
        let mut start = write.offset;
        while start < write.offset + write.bytes {
            let end = (start / 1024 + 1) * 1024;
            let end = end.min(write.offset + write.bytes);
            pieces.push((order, write, start, end, durable));
            start = end;
        }
    }
    pieces.sort_by_key(|it| (it.0, it.2));
    let open = pieces.iter().filter(|it| !it.4).count();
    if open > MOST {
        return None;
    }
    let mut images = BTreeSet::new();
    for subset in 0..1_u32 << open {
        let mut image = vec![0; BYTES];
        for (offset, data) in log.base() {
            image[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        }
        let mut bit = 0;
        for (_, write, start, end, durable) in &pieces {
            if !durable {
                bit += 1;
                if subset & 1 << (bit - 1) == 0 {
                    continue;
                }
            }
            let range = *start as usize..*end as usize;
            match write.kind {
                EventKind::Write => {
                    let from = (start - write.offset) as usize;
                    let data = &log.data(write)[from..from + range.len()];
                    image[range].copy_from_slice(data);
                }
                _ => image[range].fill(0),
            }
        }
        images.insert(image);
    }
    Some(images)
}

/// Returns the images of the walk's moment.
fn enumerated(walk: &Walk<'_>) -> BTreeSet<Vec<u8>> {
    let image = |lost: &Lost| {
        let mut image = vec![0; BYTES];
        walk.image(lost).read(0, &mut image);
        image
    };
    choices(walk, 1 << 12, 1).iter().map(image).collect()
}

/// Returns an error of the walk through this log; `None` if there is none, or if the log is too large for brute force.
fn wrong(log: &Log, how: Assumptions, bug: Option<Bug>) -> Option<String> {
    let mut walk = Walk::new(log, how);
    walk.bug = bug;
    let mut cut = 0;
    while let Some(moment) = walk.advance() {
        let here = brute(log, how, moment.event)?;
        let images = enumerated(&walk);
        if images != here {
            return Some(format!(
                "moment {}: other images than a cut there",
                moment.number
            ));
        }
        let acks = log.events[..moment.event].iter();
        if acks.filter(|it| matches!(it, Event::Ack(_))).count() != moment.acks {
            return Some(format!("moment {}: other acknowledgements", moment.number));
        }
        while cut <= moment.event {
            if !brute(log, how, cut)?.is_subset(&images) {
                return Some(format!("a cut before event {cut} leaves more"));
            }
            cut += 1;
        }
    }
    (cut <= log.events.len()).then(|| String::from("the walk ends before the log"))
}

fn finds(bug: Option<Bug>, volatile: bool, logs: u64) -> Option<String> {
    let how = Assumptions {
        part: 1024,
        torn: true,
        volatile,
        flush_lies: false,
    };
    (0..logs).find_map(|number| {
        let log = random_log(&mut Stream::numbered(7, "law", number));
        wrong(&log, how, bug).map(|what| format!("log {number}: {what}"))
    })
}

#[test]
fn every_image_of_any_cut_is_an_image_of_the_next_moment() {
    for volatile in [true, false] {
        assert_eq!(finds(None, volatile, 150), None, "volatile: {volatile}");
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        Bug::MomentSkipped,
        Bug::FlushCoversTooMuch,
        Bug::BaseNotAdvanced,
        Bug::EarlierOverLater,
        Bug::FuaIgnored,
        Bug::OrderOfSubmission,
        Bug::AckMissed,
        Bug::InFlightKept,
    ] {
        assert!(finds(Some(bug), true, 150).is_some(), "{bug:?}");
    }
}

#[test]
fn names_lead_to_the_images_that_they_name() {
    let how = Assumptions {
        part: 1024,
        torn: true,
        volatile: true,
        flush_lies: false,
    };
    for number in 0..40 {
        let log = random_log(&mut Stream::numbered(3, "names", number));
        let start = Walk::new(&log, how);
        let mut walk = start.clone();
        while walk.advance().is_some() {
            for lost in choices(&walk, 64, 1) {
                let text = crate::name::name(&walk, &lost);
                let name: crate::name::Name = text.parse().expect("a name");
                let (found, again) = name.find(&start).expect("an image");
                assert_eq!((found.moment(), again), (walk.moment(), lost), "{text}");
            }
        }
    }
}

#[test]
fn bad_names_say_what_there_is() {
    let log = random_log(&mut Stream::numbered(3, "names", 1));
    let how = Assumptions {
        part: 4096,
        torn: true,
        volatile: true,
        flush_lies: false,
    };
    let start = Walk::new(&log, how);
    for text in [
        "", "x", "0", "1-", "1-0", "1-4..2", "1/3", "1/:2", "-3", "1/2:x",
    ] {
        assert!(text.parse::<crate::name::Name>().is_err(), "{text}");
    }
    for (text, said) in [
        ("999", "there is no moment 999"),
        ("1-99", "no undecided write 99"),
    ] {
        let name: crate::name::Name = text.parse().expect("a name");
        let why = name.find(&start).expect_err("not in the log");
        assert!(why.contains(said), "{why}");
    }
}
