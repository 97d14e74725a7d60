//! Programs with a planted bug on a raw drive: each bug is found with its class and its conditions, and again by the
//! name of its image. The correct versions of the programs pass.

use crash::log::{Note, Submission, Writer};
use crash::name::Name;
use crash::needs::DriveProperties;
use crash::search::{Case, Class, Judgement, Limits, SearchReport, judge, search};
use crash::{Assumptions, EventKind, Head, Log, Loss, Walk};

/// Images within which each bug must be found.
const IMAGES: u64 = 20_000;

const BLOCK: u64 = 4096;

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

/// A drive with power-loss protection.
const PROTECTED: Assumptions = Assumptions {
    volatile: false,
    ..SSD
};

/// A program that sends commands to a raw drive.
struct Program(Writer);

impl Program {
    fn new() -> Program {
        Program(Writer::new(&Head {
            drive: "test".into(),
            bytes: 1 << 20,
            block: 512,
            part: 4096,
            volatile: true,
        }))
    }

    fn send(&mut self, kind: EventKind, fua: bool, block: u64, blocks: u64, value: u8) -> u32 {
        let submission = Submission {
            kind,
            fua,
            offset: block * BLOCK,
            bytes: (blocks * BLOCK) as u32,
        };
        let number = self.0.submit(submission, &mut |data| {
            data.fill(value);
            true
        });
        number.expect("data are at hand")
    }

    fn done(&mut self, number: u32) {
        self.0.complete(number, true);
    }

    fn write(&mut self, block: u64, value: u8) {
        let number = self.send(EventKind::Write, false, block, 1, value);
        self.done(number);
    }

    fn flush(&mut self) {
        let number = self.send(EventKind::Flush, false, 0, 0, 0);
        self.done(number);
    }

    fn ack(&mut self, value: u8) {
        self.0.note(Note::Ack, &value.to_string());
    }

    fn log(self) -> Log {
        Log::read(self.0.bytes).expect("a log")
    }
}

/// Returns the values in a block: one if it is complete.
fn values(case: &Case<'_>, block: u64) -> Vec<u8> {
    let mut data = [0; BLOCK as usize];
    case.image.read(block * BLOCK, &mut data);
    let mut values = data.to_vec();
    values.dedup();
    values
}

fn value(case: &Case<'_>, block: u64) -> u8 {
    values(case, block)[0]
}

fn corrupt(what: String) -> Judgement {
    Judgement::Failed(Class::Corrupt, what)
}

/// Checks that acknowledged data is in its block.
fn records(case: &Case<'_>) -> Judgement {
    for ack in case.acks {
        let number: u8 = ack.parse().expect("a number");
        if value(case, number.into()) != number {
            return Judgement::Failed(Class::Lost, format!("lost {ack}"));
        }
    }
    Judgement::Sound
}

/// Checks that block 0 refers to a block with the same value.
fn pointer(case: &Case<'_>) -> Judgement {
    let to = value(case, 0);
    match to == 0 || value(case, to.into()) == to {
        true => Judgement::Sound,
        false => corrupt(format!("block {to} is not what refers to it")),
    }
}

fn tried(
    log: &Log,
    how: Assumptions,
    mut check: impl FnMut(&Case<'_>) -> Judgement,
) -> SearchReport {
    let limits = Limits {
        images: IMAGES,
        ..Limits::default()
    };
    search(log, how, limits, &mut check).expect("it holds at the end")
}

/// Checks that the bug is found, with these properties and nothing else, and again by its name.
fn found(
    log: &Log,
    how: Assumptions,
    mut check: impl FnMut(&Case<'_>) -> Judgement,
    class: Class,
    needs: &str,
) {
    let report = tried(log, how, &mut check);
    let [failure] = &report.failures[..] else {
        panic!("{:?}", report.failures);
    };
    assert_eq!((failure.class, &*failure.needs.to_string()), (class, needs));
    let name: Name = failure.name.parse().expect("a name");
    let (walk, lost) = name.find(&Walk::new(log, how)).expect("an image");
    let again = judge(&walk, &lost, &mut |case: &Case<'_>| check(case)).expect("a judgement");
    assert!(
        matches!(&again, Judgement::Failed(again, _) if *again == class),
        "{}: {again:?}",
        failure.name
    );
    let drive = |volatile| DriveProperties {
        volatile,
        part: how.part,
    };
    let on_any = matches!(failure.needs.loss, Loss::Nothing | Loss::InFlight);
    assert_eq!(failure.needs.is_possible_on(drive(false)), on_any);
}

fn holds(log: &Log, how: Assumptions, check: impl FnMut(&Case<'_>) -> Judgement) {
    let report = tried(log, how, check);
    assert_eq!(report.failures, []);
    assert_eq!(report.counts.exhausted, report.counts.moments);
}

fn acknowledging(flush_before: bool) -> Log {
    let mut program = Program::new();
    for number in 1..20 {
        program.write(number.into(), number);
        if flush_before {
            program.flush();
        }
        program.ack(number);
        if !flush_before {
            program.flush();
        }
    }
    program.log()
}

#[test]
fn an_acknowledgement_before_the_flush() {
    let log = acknowledging(false);
    found(&log, SSD, records, Class::Lost, "volatile cache");
    holds(&log, PROTECTED, records);
    holds(&acknowledging(true), SSD, records);
}

/// The acknowledged data are in the memory of the host and are written later. The loss of one of the writes alone needs a
/// volatile cache, but the bug does not: a drive that has got none of them fails too.
#[test]
fn an_acknowledgement_before_the_writes_are_sent() {
    let log = |syncs: bool| {
        let mut program = Program::new();
        for number in 1..5 {
            if syncs {
                program.write(number.into(), number);
                program.flush();
            }
            program.ack(number);
        }
        for number in 1..5 {
            program.write(number.into(), number);
        }
        program.log()
    };
    for how in [SSD, PROTECTED] {
        found(&log(false), how, records, Class::Lost, "nothing");
        holds(&log(true), how, records);
    }
}

#[test]
fn a_lying_flush_under_a_correct_program() {
    let how = Assumptions {
        flush_lies: true,
        ..SSD
    };
    found(
        &acknowledging(true),
        how,
        records,
        Class::Lost,
        "lying flush",
    );
}

fn referring(flush_between: bool, fua: bool) -> Log {
    let mut program = Program::new();
    for number in 1..10 {
        program.write(number.into(), number);
        if flush_between {
            program.flush();
        }
        let pointer = program.send(EventKind::Write, fua, 0, 1, number);
        program.done(pointer);
        program.flush();
    }
    program.log()
}

#[test]
fn a_write_that_refers_to_one_before_without_a_flush_between() {
    let log = referring(false, false);
    found(&log, SSD, pointer, Class::Corrupt, "volatile cache");
    holds(&log, PROTECTED, pointer);
    holds(&referring(true, false), SSD, pointer);
}

#[test]
fn force_unit_access_where_a_flush_was_needed() {
    let log = referring(false, true);
    found(&log, SSD, pointer, Class::Corrupt, "volatile cache");
    holds(&log, PROTECTED, pointer);
    holds(&referring(true, true), SSD, pointer);
}

#[test]
fn a_write_that_refers_to_one_that_is_in_flight() {
    let mut program = Program::new();
    for number in 1..10 {
        let data = program.send(EventKind::Write, false, number.into(), 1, number);
        let pointer = program.send(EventKind::Write, false, 0, 1, number);
        program.done(data);
        program.done(pointer);
        program.flush();
    }
    let log = program.log();
    for how in [SSD, PROTECTED] {
        found(&log, how, pointer, Class::Corrupt, "in flight");
    }
}

#[test]
fn a_flush_before_the_last_write_has_completed() {
    let log = |waits: bool| {
        let mut program = Program::new();
        for number in 1..10 {
            let write = program.send(EventKind::Write, false, number.into(), 1, number);
            if waits {
                program.done(write);
            }
            let flush = program.send(EventKind::Flush, false, 0, 0, 0);
            if !waits {
                program.done(write);
            }
            program.done(flush);
            program.ack(number);
        }
        program.log()
    };
    found(&log(false), SSD, records, Class::Lost, "volatile cache");
    holds(&log(false), PROTECTED, records);
    holds(&log(true), SSD, records);
}

#[test]
fn a_length_before_the_data() {
    let log = |length_first: bool| {
        let mut program = Program::new();
        for number in 1..10 {
            for length in [length_first, !length_first] {
                match length {
                    true => program.write(0, number),
                    false => program.write(number.into(), number),
                }
                program.flush();
            }
        }
        program.log()
    };
    for how in [SSD, PROTECTED] {
        found(&log(true), how, pointer, Class::Corrupt, "nothing");
        holds(&log(false), how, pointer);
    }
}

#[test]
fn a_trim_of_the_old_copy_before_the_pointer_is_durable() {
    let log = |trim_first: bool| {
        let mut program = Program::new();
        program.write(1, 1);
        program.write(0, 1);
        program.flush();
        for number in 2..10 {
            program.write(number.into(), number);
            program.flush();
            for trim in [trim_first, !trim_first] {
                if trim {
                    let old = program.send(EventKind::Trim, false, u64::from(number) - 1, 1, 0);
                    program.done(old);
                } else {
                    program.write(0, number);
                    program.flush();
                }
            }
        }
        program.log()
    };
    // The pointer to the first copy becomes durable with it, so only later copies are judged.
    let check = |case: &Case<'_>| match value(case, 0) {
        0 | 1 => Judgement::Sound,
        _ => pointer(case),
    };
    for how in [SSD, PROTECTED] {
        found(&log(true), how, check, Class::Corrupt, "nothing");
        holds(&log(false), how, check);
    }
}

#[test]
fn a_record_over_two_parts_without_a_sum() {
    let log = |blocks: u64| {
        let mut program = Program::new();
        for number in 1..6 {
            let write = program.send(EventKind::Write, false, 2, blocks, number);
            program.done(write);
            program.flush();
        }
        program.log()
    };
    let two = |case: &Case<'_>| match [value(case, 2), value(case, 3)] {
        [a, b] if a == b => Judgement::Sound,
        [a, b] => corrupt(format!("{a} and {b}")),
    };
    let one = |case: &Case<'_>| match values(case, 2).len() {
        1 => Judgement::Sound,
        _ => corrupt(String::from("mixed")),
    };
    for how in [SSD, PROTECTED] {
        found(&log(2), how, two, Class::Corrupt, "torn, in flight");
        let whole = Assumptions { torn: false, ..how };
        holds(&log(2), whole, two);
        holds(&log(1), how, one);
        // A hard disk keeps a sector or loses it.
        let sectors = Assumptions { part: 512, ..how };
        found(&log(1), sectors, one, Class::Corrupt, "torn, in flight");
    }
}

#[test]
fn a_check_that_fails_at_the_orderly_end_is_refused() {
    let mut always = |_: &Case<'_>| corrupt(String::from("always"));
    let refused = search(&acknowledging(true), SSD, Limits::default(), &mut always);
    let why = crash::search::NoReport::FailsAtEnd(Class::Corrupt, "always".into());
    assert_eq!(refused, Err(why));
}

#[test]
fn a_failure_that_does_not_repeat_is_flaky() {
    let mut calls = 0;
    let report = tried(&acknowledging(true), SSD, |_: &Case<'_>| {
        calls += 1;
        match calls == 5 {
            true => corrupt(String::from("once")),
            false => Judgement::Sound,
        }
    });
    assert_eq!((report.failures, report.counts.flaky), (Vec::new(), 1));
    assert_eq!(report.flaky.len(), 1);
}

#[test]
fn many_undecided_writes_are_sampled_and_the_failure_is_small() {
    let mut program = Program::new();
    for number in 1..100 {
        program.write(number.into(), number);
    }
    program.flush();
    let log = program.log();
    let check = |case: &Case<'_>| match (value(case, 40), value(case, 71)) {
        (0, 71) => corrupt(String::from("71 without 40")),
        _ => Judgement::Sound,
    };
    let report = tried(&log, SSD, check);
    assert_eq!(report.failures[0].name, "1-40");
    assert!(report.counts.exhausted < report.counts.moments);
    assert!(report.counts.tried <= IMAGES);
    let limits = Limits {
        images: 7,
        ..Limits::default()
    };
    let few = search(&log, SSD, limits, &mut { check }).expect("a report");
    assert_eq!(few.counts.tried, 7);
}
