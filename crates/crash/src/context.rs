//! The order of a lost write, of flushes and of acknowledgements around a power cut.

use crate::log::{Command, Event, Log};
use crate::moments::Moment;

/// Order of a command and the events around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// Number of acknowledgements before its submission.
    pub acks: usize,
    /// Number of flushes that had completed before its submission.
    pub flushes: usize,
    /// Whether it had completed before the cut.
    pub completed: bool,
    /// First flush sent after its completion: its number, starting with 1, and whether it completed before the cut.
    /// `None` if no flush was sent before the cut.
    pub flush: Option<(usize, bool)>,
}

impl Context {
    /// Returns the context of a command for a power cut at a moment.
    pub fn from_command(log: &Log, command: &Command, moment: Moment) -> Context {
        let before = |end: usize| &log.events[..end];
        let is_flush = |number: &u32| !log.commands[*number as usize].writes();
        let completed = command.completed.filter(|it| *it < moment.event);
        let mut flush = None;
        let mut number = 0;
        for event in before(moment.event) {
            let Event::Submitted(of) = event else {
                continue;
            };
            let it = &log.commands[*of as usize];
            if it.writes() {
                continue;
            }
            number += 1;
            if flush.is_none() && completed.is_some_and(|end| it.submitted > end) {
                let in_time = it.completed.is_some_and(|end| end < moment.event);
                flush = Some((number, in_time && !it.failed));
            }
        }
        Context {
            acks: { before(command.submitted).iter() }
                .filter(|it| matches!(it, Event::Ack(_)))
                .count(),
            flushes: { before(command.submitted).iter() }
                .filter(|it| matches!(it, Event::Completed(number) if is_flush(number)))
                .count(),
            completed: completed.is_some(),
            flush,
        }
    }
}

/// Returns the number of a flush among those of its log, starting with 1.
pub fn number_of_flush(log: &Log, command: u32) -> usize {
    let upto = &log.commands[..=command as usize];
    upto.iter().filter(|it| !it.writes()).count()
}

/// Returns the commands that were sent after a moment and before the next acknowledgement, at most `most`.
pub fn sent_next(log: &Log, moment: Moment, most: usize) -> Vec<u32> {
    let after = log.events[moment.event..].iter();
    let upto_ack = after.take_while(|it| !matches!(it, Event::Ack(_)));
    let sent = upto_ack.filter_map(|event| match event {
        Event::Submitted(number) => Some(*number),
        _ => None,
    });
    sent.take(most).collect()
}
