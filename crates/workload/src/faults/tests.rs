//! Fault scripts: accepted lines, refused lines, and their messages.

use super::*;
use model::data::{Effect, Lasting, Moment, Trigger};

#[test]
fn a_script_is_read_as_written() {
    let text = "# soon\nat 10s p4800x-375: medium-error 2048 8\nslow 2ms for 5s # a while\n";
    let planned = script(text).expect("a good script");
    let lines: Vec<usize> = planned.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3]);
    let planned: Vec<ScheduledFault> = planned.into_iter().map(|(_, fault)| fault).collect();
    assert_eq!(
        planned,
        [
            ScheduledFault {
                when: Timing::At(Span::from_ms(10_000)),
                drive: Some("p4800x-375".into()),
                fault: Fault::MediumError {
                    lba: 2048,
                    blocks: 8
                },
            },
            ScheduledFault {
                when: Timing::AtOnce,
                drive: None,
                fault: Fault::Slow {
                    by: Span::from_ms(2),
                    lasting: Some(Span::from_ms(5_000)),
                },
            },
        ]
    );
}

#[test]
fn everything_wrong_is_said_with_its_line() {
    let problems = script("wear much\n\nat 5 drop\nexplode\n").expect_err("bad");
    let lines: Vec<usize> = problems.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 4]);
    assert!(problems[2].1.contains("medium-error LBA BLOCKS"));
    let problems = script("slow").expect_err("no time");
    assert_eq!(problems[0].1, "`slow` should be `slow TIME [for TIME]`");
}

#[test]
fn what_is_shown_can_be_read_again() {
    for text in [
        "slow 2000000ns for 5ns",
        "heal 1 2",
        "wear 104",
        "stuck",
        "power-cut",
        "returns",
        "misdirects 16",
        "rots 2048",
    ] {
        let fault: Fault = text.parse().expect("a fault");
        assert_eq!(fault.to_string(), text);
    }
}

fn one(line: &str) -> ScheduledFault {
    line.parse().unwrap_or_else(|why| panic!("{line}: {why}"))
}

#[test]
fn a_count_stands_before_name_and_fault() {
    let count = |kind, moment, number| {
        Timing::Count(Trigger {
            kind,
            moment,
            number,
        })
    };
    let cut = one("at write 1234: power-cut");
    assert_eq!(cut.when, count(CommandKind::Writes, Moment::Arrival, 1234));
    assert_eq!((cut.drive, cut.fault), (None, Fault::PowerCut));
    let dies = one("after 10 flushes: nda.0: dies");
    assert_eq!(
        dies.when,
        count(CommandKind::Flushes, Moment::Completion, 10)
    );
    assert_eq!(dies.drive.as_deref(), Some("nda.0"));
    assert_eq!(dies, one("after 10 flushes nda.0: dies"));
    assert_eq!(one("at read 1 stuck"), one("at read 1:stuck"));
    assert_eq!(one("at 5s: drop"), one("at 5s drop"));
}

#[test]
fn a_rule_has_a_range_a_rate_and_an_end() {
    let rule = |line: &str| match one(line).fault {
        Fault::Rule(rule) => rule,
        other => panic!("{other}"),
    };
    let all = rule("nda.0: unrecovered-read for 3 commands rate 0.5 range 1GiB..2GiB");
    assert_eq!(all.range, Some((1 << 30, 2 << 30)));
    assert_eq!((all.rate, all.lasting), (0.5, Lasting::Commands(3)));
    assert_eq!(
        rule("error-rate writes 1e-4"),
        rule("write-fault rate 1e-4")
    );
    let slow = rule("delay 5ms reads range 0..4096 for 2s");
    assert_eq!(slow.effect, Effect::Delays(Span::from_ms(5)));
    assert_eq!(slow.kind, Some(CommandKind::Reads));
    assert_eq!(rule("delay 5ms").kind, None);
}

#[test]
fn what_is_wrong_with_counts_and_rules_is_said_with_what_would_be_right() {
    for (line, why) in [
        ("at write 0: drop", "counted from 1"),
        ("at write many: drop", "`many` is not a valid number here"),
        ("at write 5", "the fault is missing"),
        ("at write", "at write|read|flush N"),
        ("after 3: drop", "after N writes|reads|flushes"),
        ("after 3 trims: drop", "should be reads, writes or flushes"),
        ("at 5s :: drop", "the name before `:` is missing"),
        ("unrecovered-read range 2GiB..1GiB", "FROM..TO"),
        ("unrecovered-read range 1GiB", "FROM..TO"),
        ("unrecovered-read range", "the value of `range` is missing"),
        ("write-fault rate 2", "above 0 and up to 1"),
        ("write-fault rate 0.1 rate 0.2", "`rate` is given twice"),
        ("error-rate writes 0.1 rate 0.2", "`rate` is given twice"),
        ("error-rate trims 1e-4", "reads, writes or flushes"),
        (
            "error-rate writes",
            "`error-rate writes` should be `error-rate",
        ),
        ("flush-fault range 0..4096", "a flush has no range"),
        ("delay", "`delay` should be `delay TIME"),
        ("delay soon", "is not a time"),
        ("write-fault for 0 commands", "give 1 or more"),
        ("write-fault twice", "`range FROM..TO`, `rate RATE` or"),
    ] {
        let told = line.parse::<ScheduledFault>().expect_err(line);
        assert!(told.contains(why), "{line}: {told}");
    }
}

#[test]
fn a_range_beyond_the_end_does_not_fit() {
    let fault = one("write-fault range 0..8192").fault;
    assert_eq!(fault.fits(8192), Ok(()));
    assert!(fault.fits(8191).is_err());
}

#[test]
fn lines_that_are_shown_can_be_read_again() {
    for line in [
        "at 5000ns: a: drop",
        "at write 3: power-cut",
        "after 10 flushes: nda.0: dies",
        "x: unrecovered-read range 0..512 rate 0.25 for 3 commands",
        "write-fault rate 0.0001 for 5ns",
        "flush-fault",
        "delay 5ns flushes",
        "clear",
    ] {
        assert_eq!(one(line).to_string(), line);
    }
}

/// Lines of random words: an accepted line is printed as an equivalent line, and a refused line has a message.
#[test]
fn random_lines_that_are_read_are_shown_as_the_same() {
    const WORDS: &[&str] = &[
        "at",
        "after",
        "write",
        "reads",
        "flushes:",
        "5",
        "12:",
        "1us",
        "5s:",
        "nda.0:",
        ":",
        "drop",
        "power-cut",
        "dies",
        "unrecovered-read",
        "write-fault",
        "flush-fault",
        "error-rate",
        "delay",
        "clear",
        "range",
        "0..512",
        "1KiB..1MB",
        "9..9",
        "rate",
        "0.25",
        "1",
        "for",
        "commands",
        "slow",
    ];
    let mut stream = model::Stream::new(1, "lines");
    let mut read = 0;
    for _ in 0..40_000 {
        let count = 1 + stream.uniform_below(8);
        let word = |_| WORDS[stream.uniform_below(WORDS.len() as u64) as usize];
        let line = (0..count).map(word).collect::<Vec<_>>().join(" ");
        match line.parse::<ScheduledFault>() {
            Ok(planned) => {
                read += 1;
                let shown = planned.to_string();
                assert_eq!(shown.parse(), Ok(planned), "{line} as {shown}");
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
    assert!(read > 100, "{read}");
}
