//! The kind of loss that a failure needs, and the drives that can have it.

use std::collections::BTreeSet;
use std::fmt;

use crate::log::Event;
use crate::lost::Lost;
use crate::moments::Walk;

/// Loss that must occur for an image to exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loss {
    /// No loss: power may have been cut before the program or its file system sent the missing writes.
    Nothing,
    /// Unacknowledged writes: every drive may lose them.
    InFlight,
    /// Acknowledged writes that were not flushed.
    Volatile,
    /// Writes that a flush or force unit access should have made durable.
    LyingFlush,
}

impl Loss {
    /// Returns the text for reports.
    pub fn words(self) -> &'static str {
        match self {
            Loss::Nothing => "nothing",
            Loss::InFlight => "in flight",
            Loss::Volatile => "volatile cache",
            Loss::LyingFlush => "lying flush",
        }
    }
}

/// Conditions that a failure needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Needs {
    /// Loss that must occur.
    pub loss: Loss,
    /// Alignment in bytes of the boundary if a write is kept partly; `None` if no write is.
    pub torn: Option<u32>,
}

/// Properties of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveProperties {
    /// Whether acknowledged writes may be lost until they are flushed.
    pub volatile: bool,
    /// Bytes that it keeps or loses as a unit.
    pub part: u32,
}

impl Needs {
    /// Returns the conditions of an image that loses these pieces at the walk's moment.
    pub fn from_loss(walk: &Walk<'_>, lost: &Lost) -> Needs {
        Needs {
            loss: loss(walk, lost),
            torn: torn(walk, lost),
        }
    }

    /// Returns the conditions of an image that a power cut at this event could leave, with the loss of nothing that was
    /// sent before it, or of writes in flight.
    pub(crate) fn from_cut(walk: &Walk<'_>, lost: &Lost, loss: Loss) -> Needs {
        Needs {
            loss,
            torn: torn(walk, lost),
        }
    }

    /// Checks whether this drive can leave such an image if it fulfils its durability guarantee.
    pub fn is_possible_on(self, drive: DriveProperties) -> bool {
        let loses = match self.loss {
            Loss::Nothing | Loss::InFlight => true,
            Loss::Volatile => drive.volatile,
            Loss::LyingFlush => false,
        };
        loses && self.torn.is_none_or(|boundary| boundary % drive.part == 0)
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.torn {
            None => f.write_str(self.loss.words()),
            Some(_) => write!(f, "torn, {}", self.loss.words()),
        }
    }
}

/// An earlier power cut that leaves an image with fewer conditions.
pub(crate) struct EarlierCut {
    /// Pieces that are lost at the walk's moment in this image.
    pub(crate) lost: Lost,
    /// Number of acknowledgements before the cut.
    pub(crate) acks: usize,
    /// Number of tries before the cut.
    pub(crate) tries: usize,
    /// Loss that the image needs.
    pub(crate) loss: Loss,
}

/// Returns the cuts just before the first lost write was sent, and just before the first completed: everything that was
/// sent later is missing too. A cut is left out if something sent after it is durable at the walk's moment.
pub(crate) fn earlier_cuts(walk: &Walk<'_>, set: &Lost) -> Vec<EarlierCut> {
    let (log, now) = (walk.log(), walk.moment().event);
    let pieces = walk.undecided();
    let lost = || {
        let indices = (0..pieces.len()).filter(|index| set.contains(*index));
        indices.map(|index| &log.commands[pieces[index].command as usize])
    };
    let sent = lost().map(|it| it.submitted).min();
    let completed = lost().filter_map(|it| it.completed).min();
    let cuts = [(sent, Loss::Nothing), (completed, Loss::InFlight)];
    let undecided: BTreeSet<u32> = pieces.iter().map(|it| it.command).collect();
    let cut = |(event, loss): (Option<usize>, Loss)| {
        let event = event.filter(|event| *event < now)?;
        let later = |number: u32| log.commands[number as usize].submitted >= event;
        let mut counts = (0, 0);
        for event in &log.events[..event] {
            match event {
                Event::Ack(_) => counts.0 += 1,
                Event::Try(_) => counts.1 += 1,
                _ => {}
            }
        }
        let settled = log.events[event..now].iter().any(|event| match event {
            Event::Submitted(number) => {
                let command = &log.commands[*number as usize];
                let failed = command.failed && command.completed.is_some_and(|it| it < now);
                command.writes() && !failed && !undecided.contains(number)
            }
            _ => false,
        });
        (!settled).then(|| EarlierCut {
            lost: Lost::from_fn(pieces.len(), |it| {
                set.contains(it) || later(pieces[it].command)
            }),
            acks: counts.0,
            tries: counts.1,
            loss,
        })
    };
    cuts.into_iter().filter_map(cut).collect()
}

fn loss(walk: &Walk<'_>, set: &Lost) -> Loss {
    let (log, now) = (walk.log(), walk.moment().event);
    let commands: BTreeSet<u32> = { walk.undecided().iter().enumerate() }
        .filter(|(index, _)| set.contains(*index))
        .map(|(_, piece)| piece.command)
        .collect();
    // Commands of which no piece is kept.
    let mut gone = commands.clone();
    for (index, piece) in walk.undecided().iter().enumerate() {
        if !set.contains(index) {
            gone.remove(&piece.command);
        }
    }
    // Whether other data was written or acknowledged since an event: if not, the image already existed then.
    let changed_since = |event: usize| {
        log.events[event..now].iter().any(|event| match event {
            Event::Submitted(number) => {
                log.commands[*number as usize].writes() && !gone.contains(number)
            }
            Event::Ack(_) => true,
            _ => false,
        })
    };
    let lost = || {
        commands
            .iter()
            .map(|number| &log.commands[*number as usize])
    };
    match lost().map(|it| it.submitted).min() {
        None => return Loss::Nothing,
        Some(sent) if !changed_since(sent) => return Loss::Nothing,
        Some(_) => {}
    }
    let completed = lost().filter_map(|it| it.completed.filter(|it| *it < now));
    match completed.min() {
        None => return Loss::InFlight,
        Some(first) if !changed_since(first) => return Loss::InFlight,
        Some(_) => {}
    }
    let durable = |number: &u32| {
        let it = &log.commands[*number as usize];
        let completed = it.completed.filter(|it| *it < now);
        let flushed = |completed: usize| {
            log.commands.iter().any(|flush| {
                !flush.writes()
                    && !flush.failed
                    && flush.submitted > completed
                    && flush.completed.is_some_and(|it| it < now)
            })
        };
        completed.is_some_and(|at| it.fua || flushed(at))
    };
    match commands.iter().any(durable) {
        true => Loss::LyingFlush,
        false => Loss::Volatile,
    }
}

/// Returns the finest alignment of the boundaries between kept and lost pieces of one write, at most 4096.
fn torn(walk: &Walk<'_>, lost: &Lost) -> Option<u32> {
    let pieces = walk.undecided();
    let mut finest = None;
    for (index, pair) in pieces.windows(2).enumerate() {
        let [a, b] = pair else { continue };
        if a.command != b.command || lost.contains(index) == lost.contains(index + 1) {
            continue;
        }
        let boundary = b.extents.first().map_or(0, |extent| extent.0);
        let aligned = 1_u32 << boundary.trailing_zeros().min(12);
        finest = Some(finest.map_or(aligned, |it: u32| it.min(aligned)));
    }
    finest
}
