//! The acknowledgements and flushes around a command.

use crash::context::{Context, number_of_flush, sent_next};
use crash::log::{Note, Submission, Writer};
use crash::{Assumptions, EventKind, Head, Log, Walk};

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

fn send(log: &mut Writer, kind: EventKind) -> u32 {
    let it = Submission {
        kind,
        fua: false,
        offset: 0,
        bytes: if kind == EventKind::Flush { 0 } else { 4096 },
    };
    log.submit(it, &mut |_| true).expect("data")
}

#[test]
fn a_lost_write_is_between_its_acknowledgements_and_flushes() {
    let mut log = Writer::new(&Head {
        drive: "test".into(),
        bytes: 1 << 20,
        block: 512,
        part: 4096,
        volatile: true,
    });
    // Two writes, each with a flush and an acknowledgement; then a write whose flush does not complete.
    for token in ["1", "2"] {
        for kind in [EventKind::Write, EventKind::Flush] {
            let number = send(&mut log, kind);
            log.complete(number, true);
        }
        log.note(Note::Ack, token);
    }
    let written = send(&mut log, EventKind::Write);
    let in_flight = send(&mut log, EventKind::Write);
    log.complete(written, true);
    let flush = send(&mut log, EventKind::Flush);
    let early = log.bytes.clone();
    log.complete(flush, true);
    log.complete(in_flight, true);
    let last = send(&mut log, EventKind::Write);
    log.note(Note::Ack, "3");
    send(&mut log, EventKind::Write);

    let log = Log::read(log.bytes).expect("a log");
    let walk = Walk::new(&log, SSD).go_to(3).expect("the third flush");
    let of =
        |number: u32| Context::from_command(&log, &log.commands[number as usize], walk.moment());
    let expected = Context {
        acks: 2,
        flushes: 2,
        completed: true,
        flush: Some((3, false)),
    };
    assert_eq!(of(written), expected);
    let not_completed = Context {
        completed: false,
        flush: None,
        ..expected
    };
    assert_eq!(of(in_flight), not_completed);
    assert_eq!(number_of_flush(&log, flush), 3);
    // The write after the acknowledgement is not part of what is missing for it.
    assert_eq!(sent_next(&log, walk.moment(), 9), [last]);
    // A flush that completed covers the write; without one, none was sent.
    let end = Walk::new(&log, SSD).go_to_end().moment();
    let written = &log.commands[written as usize];
    assert_eq!(
        Context::from_command(&log, written, end).flush,
        Some((3, true))
    );
    let early = Log::read(early).expect("a log");
    let end = Walk::new(&early, SSD).go_to_end().moment();
    assert_eq!(
        Context::from_command(&early, &early.commands[0], end).flush,
        Some((1, true))
    );
}
