//! The log's format and the dm-log-writes format: written logs are read back, and damage is detected with its offset.

use crash::log::{FRAME, Note, Submission, Writer};
use crash::{Assumptions, EventKind, Head, Log, Lost, Walk, log_writes};

fn head() -> Head {
    Head {
        drive: "950pro-256".into(),
        bytes: 1 << 20,
        block: 512,
        part: 4096,
        volatile: true,
    }
}

fn submit(writer: &mut Writer, kind: EventKind, offset: u64, bytes: u32, value: u8) -> u32 {
    let submission = Submission {
        kind,
        fua: value == 9,
        offset,
        bytes,
    };
    let number = writer.submit(submission, &mut |data| {
        data.fill(value);
        true
    });
    number.expect("data are at hand")
}

fn sample() -> Writer {
    let mut writer = Writer::new(&head());
    writer.base(8192, &[5; 4096]);
    writer.note(Note::Mark, "begin");
    writer.note(Note::Try, "1");
    let first = submit(&mut writer, EventKind::Write, 0, 4096, 1);
    let second = submit(&mut writer, EventKind::Write, 4096, 512, 9);
    writer.complete(second, true);
    writer.complete(first, true);
    let flush = submit(&mut writer, EventKind::Flush, 0, 0, 0);
    let late = submit(&mut writer, EventKind::Write, 16384, 8192, 3);
    writer.complete(late, true);
    writer.complete(flush, true);
    writer.note(Note::Ack, "1");
    let zeroes = submit(&mut writer, EventKind::Zeroes, 0, 512, 0);
    writer.complete(zeroes, true);
    let trim = submit(&mut writer, EventKind::Trim, 8192, 4096, 0);
    writer.complete(trim, true);
    let failed = submit(&mut writer, EventKind::Write, 0, 512, 7);
    writer.complete(failed, false);
    submit(&mut writer, EventKind::Write, 32768, 4096, 8);
    writer.note(Note::End, "the server ended");
    writer
}

#[test]
fn what_is_written_is_read_again() {
    let log = Log::read(sample().bytes).expect("a log");
    assert_eq!(log.head, head());
    assert_eq!((log.commands.len(), log.events.len()), (8, 18));
    assert_eq!(
        (&*log.acks[0], &*log.tries[0], &*log.marks[0]),
        ("1", "1", "begin")
    );
    assert_eq!(log.ending.as_deref(), Some("the server ended"));
    assert!(log.commands[1].fua && log.commands[6].failed);
    assert_eq!(log.commands[7].completed, None);
    assert_eq!(log.data(&log.commands[3]), [3; 8192]);
    assert_eq!(log.base().next(), Some((8192, &[5; 4096][..])));
}

#[test]
fn a_log_that_is_cut_anywhere_counts_up_to_its_last_whole_frame() {
    let whole = sample().bytes;
    let head = head().text().len();
    let mut commands = 0;
    for end in head..whole.len() {
        let log = Log::read(whole[..end].to_vec()).expect("the beginning of a log");
        assert!(log.commands.len() >= commands && log.ending.is_none());
        commands = log.commands.len();
    }
    assert_eq!(commands, 8);
    for end in 0..head {
        assert!(Log::read(whole[..end].to_vec()).is_err(), "{end}");
    }
}

#[test]
fn damage_is_found_with_its_place() {
    let whole = sample().bytes;
    let first = head().text().len();
    let last = whole.len() - FRAME - "the server ended".len();
    // One bit of the first frame and of the last.
    for at in (first..first + FRAME + 4096).chain(last..whole.len()) {
        let frame = if at < last { first } else { last };
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        // A length may become one that extends beyond the end.
        if let Err(wrong) = Log::read(bytes) {
            assert!(wrong.offset <= at as u64, "{at}: {wrong}");
        } else {
            assert!((24..28).contains(&(at - frame)), "{at}");
        }
    }
    for (head, said) in [
        ("drivelab-log 2\n\n", "not a log"),
        ("drivelab-log 1\ndrive: x\n\n", "`bytes` is missing"),
        ("drivelab-log 1\ndrive: x\nbytes: 5\n\n", "multiple of 512"),
        (
            "drivelab-log 1\ncolour: x\n\n",
            "unknown or repeated key `colour`",
        ),
        (
            "drivelab-log 1\ndrive: x\ndrive: y\n\n",
            "unknown or repeated key `drive`",
        ),
    ] {
        let wrong = Log::read(head.into()).expect_err("a wrong head");
        assert!(wrong.to_string().contains(said), "{wrong}");
    }
    for (wrong, said) in [
        (submission(1 << 20, 512), "the drive has 1048576 bytes"),
        (submission(0, 0), "not multiples of 512"),
        (completion(3), "was not submitted"),
    ] {
        let place = wrong.1;
        let found = Log::read(wrong.0).expect_err(said);
        assert_eq!(found.offset, place as u64);
        assert!(found.what.contains(said), "{found}");
    }
}

fn submission(offset: u64, bytes: u32) -> (Vec<u8>, usize) {
    let mut writer = Writer::new(&head());
    let place = writer.bytes.len();
    submit(&mut writer, EventKind::Write, offset, bytes, 1);
    (writer.bytes, place)
}

fn completion(number: u32) -> (Vec<u8>, usize) {
    let mut writer = Writer::new(&head());
    let place = writer.bytes.len();
    writer.complete(number, true);
    (writer.bytes, place)
}

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

/// Returns the image after an orderly end.
fn last_image(log: &Log) -> Vec<u8> {
    let end = Walk::new(log, SSD).go_to_end();
    let in_flight = |index: usize| end.undecided()[index].in_flight;
    let lost = Lost::from_fn(end.undecided().len(), in_flight);
    let mut image = vec![0; 1 << 20];
    end.image(&lost).read(0, &mut image);
    image
}

#[test]
fn a_log_survives_the_format_of_dm_log_writes() {
    let log = Log::read(sample().bytes).expect("a log");
    let bytes = log_writes::write(&log);
    let again = log_writes::read(&bytes, &head(), &[]).expect("a dm-log-writes log");
    assert_eq!(last_image(&again), last_image(&log));
    assert_eq!(
        (again.acks, again.tries),
        (log.acks.clone(), log.tries.clone())
    );
    // The late write completed after the flush was submitted, so it is placed after the flush.
    let kinds: Vec<(EventKind, u64)> = { again.commands.iter() }
        .map(|it| (it.kind, it.offset))
        .collect();
    assert_eq!(
        kinds,
        [
            (EventKind::Write, 8192),
            (EventKind::Flush, 0),
            (EventKind::Write, 4096),
            (EventKind::Write, 0),
            (EventKind::Flush, 0),
            (EventKind::Write, 16384),
            (EventKind::Write, 0),
            (EventKind::Trim, 8192),
        ]
    );
    assert!(again.commands[2].fua);
}

#[test]
fn what_the_kernel_writes_is_read() {
    // Sectors of 4096 bytes, as the kernel has them on most drives; a flush with data; a mark in the sector of its entry.
    let entry = |fields: [u64; 4]| fields.map(u64::to_le_bytes).concat();
    let mut bytes = entry([0x006a_7366_7773_6872, 1, 3, 4096]);
    bytes.resize(4096, 0);
    bytes.extend(entry([2, 1, 0, 0]));
    bytes.resize(2 * 4096, 0);
    bytes.extend([7; 4096]);
    bytes.extend(entry([0, 0, 8, 5]));
    bytes.extend(b"mkfs\0");
    bytes.resize(4 * 4096, 0);
    bytes.extend(entry([3, 1, 3, 0]));
    bytes.resize(5 * 4096, 0);
    bytes.extend([8; 4096]);
    let log = log_writes::read(&bytes, &head(), &[(0, &[1; 512])]).expect("a log");
    assert_eq!(log.marks, ["mkfs"]);
    let kinds: Vec<(EventKind, bool, u64)> = { log.commands.iter() }
        .map(|it| (it.kind, it.fua, it.offset))
        .collect();
    assert_eq!(
        kinds,
        [
            (EventKind::Write, false, 8192),
            (EventKind::Flush, false, 0),
            (EventKind::Write, true, 12288),
        ]
    );
    let image = last_image(&log);
    assert_eq!(
        (image[0], image[512], image[8192], image[12288]),
        (1, 0, 7, 8)
    );
    let wrong = log_writes::read(&bytes[8..], &head(), &[]).expect_err("no magic");
    assert!(wrong.to_string().contains("not a dm-log-writes log"));
}
