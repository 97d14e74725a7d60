//! Moments at which a power cut can leave a new image, and the undecided pieces at each.
//!
//! A write is split into [`Piece`]s, which the drive keeps or loses as a unit. Pieces of writes in flight are
//! undecided. With a volatile write cache, pieces of completed writes are also undecided until a completed flush
//! covers them. A flush covers the writes that had completed when it was submitted. A write with force unit access is
//! durable when it completes.
//!
//! A power cut is tried just before each completion that makes something durable (or that fails a write), and at the
//! end. Between two such moments the undecided set only grows. So every image that a power cut at any time can leave
//! is an image of the next moment, where at least as many acknowledgements are known.
//!
//! Overlapping writes apply in the order of their completion, then of their submission; an earlier write never undoes
//! a later one. Trims and write-zeroes longer than 64 KiB are one piece. Not modelled: two overlapping writes, both in
//! flight, that the drive applies in the other order.

use std::sync::Arc;

use crate::image::{Fork, Image};
use crate::log::{Command, Event, EventKind, Log};
use crate::lost::Lost;

/// Maximum length in bytes of a trim or write-zeroes that is split into pieces.
const LONGEST_CUT: u64 = 64 << 10;

/// Assumptions on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assumptions {
    /// Aligned bytes that the drive keeps or loses as a unit: a power of two of at least 512.
    pub part: u32,
    /// Whether a write may be kept partly.
    pub torn: bool,
    /// Whether acknowledged writes may be lost until they are flushed.
    pub volatile: bool,
    /// Whether flushes and force unit access make nothing durable.
    pub flush_lies: bool,
}

/// A piece of a write, kept or lost as a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Number of the command.
    pub command: u32,
    /// Number of the piece in its command, starting with 1.
    pub part: u32,
    /// Whether the command has not completed.
    pub in_flight: bool,
    /// Ranges in bytes (start, end) that no later durable write has covered.
    pub extents: Vec<(u64, u64)>,
}

/// A moment at which power may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Number in causal order, starting with 1.
    pub number: u32,
    /// Number of events before it.
    pub event: usize,
    /// Number of acknowledgements before it.
    pub acks: usize,
    /// Number of tries before it.
    pub tries: usize,
}

/// A bug of the walk that tests plant, to check that they detect it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    /// Power is not cut before force unit access completes.
    MomentSkipped,
    /// A flush also covers writes that complete while it is in flight.
    FlushCoversTooMuch,
    /// Durable writes do not reach the base.
    BaseNotAdvanced,
    /// An earlier write may undo a later durable one.
    EarlierOverLater,
    /// Force unit access has no effect.
    FuaIgnored,
    /// Overlapping writes apply in the order of submission.
    OrderOfSubmission,
    /// Acknowledgements are counted late.
    AckMissed,
    /// Commands in flight are never lost.
    InFlightKept,
}

/// Walks through a log from moment to moment.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    log: &'a Log,
    how: Assumptions,
    /// By number of the command: its position in the order in which writes apply.
    ranks: Arc<[usize]>,
    moment: Moment,
    stopped: bool,
    ended: bool,
    base: Arc<Image>,
    undecided: Vec<Piece>,
    #[cfg(test)]
    pub(crate) bug: Option<Bug>,
}

impl<'a> Walk<'a> {
    /// Returns a walk before the first moment.
    pub fn new(log: &'a Log, how: Assumptions) -> Walk<'a> {
        Walk::from_image(Fork::new(Image::default()), log, how)
    }

    /// Returns a walk before the first moment of a log whose commands begin with this image.
    pub fn from_image(image: Fork, log: &'a Log, how: Assumptions) -> Walk<'a> {
        let mut base = image.flatten();
        for (offset, data) in log.base() {
            base.write(offset, data);
        }
        let events = log.events.len();
        let rank = |it: &Command| it.completed.unwrap_or(events + it.submitted);
        Walk {
            log,
            how,
            ranks: log.commands.iter().map(rank).collect(),
            moment: Moment {
                number: 0,
                event: 0,
                acks: 0,
                tries: 0,
            },
            stopped: false,
            ended: false,
            base: Arc::new(base),
            undecided: Vec::new(),
            #[cfg(test)]
            bug: None,
        }
    }

    /// Checks whether a test has planted this bug.
    #[inline]
    fn has(&self, _bug: Bug) -> bool {
        #[cfg(test)]
        return self.bug == Some(_bug);
        #[cfg(not(test))]
        false
    }

    /// Advances to the next moment.
    pub fn advance(&mut self) -> Option<Moment> {
        if self.ended {
            return None;
        }
        if self.stopped {
            self.pass();
        }
        self.moment.number += 1;
        while let Some(event) = self.log.events.get(self.moment.event) {
            if self.decides(*event) {
                self.stopped = true;
                return Some(self.moment);
            }
            self.pass();
        }
        self.ended = true;
        Some(self.moment)
    }

    /// Advances to the moment with this number; `None` if there are fewer.
    pub fn go_to(mut self, number: u32) -> Option<Walk<'a>> {
        while self.moment.number < number {
            self.advance()?;
        }
        Some(self)
    }

    /// Advances to the last moment.
    pub fn go_to_end(mut self) -> Walk<'a> {
        while self.advance().is_some() {}
        self
    }

    /// Returns the present moment.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// Returns the log.
    pub fn log(&self) -> &'a Log {
        self.log
    }

    /// Returns the assumptions on the drive.
    pub fn assumptions(&self) -> Assumptions {
        self.how
    }

    /// Returns the undecided pieces, in the order in which they apply.
    pub fn undecided(&self) -> &[Piece] {
        &self.undecided
    }

    /// Returns the undecided pieces of each write, in order.
    pub fn writes(&self) -> impl Iterator<Item = &[Piece]> {
        self.undecided.chunk_by(|a, b| a.command == b.command)
    }

    /// Returns the image that a power cut leaves if it loses these pieces.
    pub fn image(&self, lost: &Lost) -> Fork {
        let mut fork = Fork::new(Arc::clone(&self.base));
        for (index, piece) in self.undecided.iter().enumerate() {
            if lost.contains(index) && !(piece.in_flight && self.has(Bug::InFlightKept)) {
                continue;
            }
            let command = &self.log.commands[piece.command as usize];
            for &extent in &piece.extents {
                match data_of(self.log, command, extent) {
                    Some(data) => fork.write(extent.0, data),
                    None => fork.zero(extent.0, extent.1 - extent.0),
                }
            }
        }
        fork
    }

    /// Checks whether this event makes a piece durable, or drops it.
    fn decides(&self, event: Event) -> bool {
        let Event::Completed(number) = event else {
            return false;
        };
        let command = &self.log.commands[number as usize];
        match command.kind {
            EventKind::Flush => {
                let mut pieces = self.undecided.iter();
                pieces.any(|piece| self.covers(command, piece))
            }
            _ if self.has(Bug::MomentSkipped) && command.fua => false,
            _ => command.failed || self.is_durable(command),
        }
    }

    /// Checks whether the completion of this flush makes a piece durable.
    fn covers(&self, flush: &Command, piece: &Piece) -> bool {
        let completed = self.log.commands[piece.command as usize].completed;
        !flush.failed
            && !self.how.flush_lies
            && !piece.in_flight
            && completed.is_some_and(|it| it < flush.submitted || self.has(Bug::FlushCoversTooMuch))
    }

    /// Checks whether a write is durable when it completes.
    fn is_durable(&self, write: &Command) -> bool {
        !self.how.volatile || (write.fua && !self.how.flush_lies && !self.has(Bug::FuaIgnored))
    }

    /// Processes the next event.
    fn pass(&mut self) {
        let event = self.log.events[self.moment.event];
        self.moment.event += 1;
        match event {
            Event::Ack(_) => self.moment.acks += usize::from(!self.has(Bug::AckMissed)),
            Event::Try(_) => self.moment.tries += 1,
            Event::Mark(_) => {}
            Event::Submitted(number) => self.submitted(number),
            Event::Completed(number) => self.completed(number),
        }
    }

    fn submitted(&mut self, number: u32) {
        let command = &self.log.commands[number as usize];
        if self.has(Bug::OrderOfSubmission) {
            Arc::make_mut(&mut self.ranks)[number as usize] = command.submitted;
        }
        let rank = self.ranks[number as usize];
        let ranks = &self.ranks;
        let place = { &self.undecided }.partition_point(|it| ranks[it.command as usize] < rank);
        let pieces = pieces(command, number, self.how);
        self.undecided.splice(place..place, pieces);
    }

    fn completed(&mut self, number: u32) {
        let command = &self.log.commands[number as usize];
        if command.kind == EventKind::Flush {
            let covered: Vec<bool> = { self.undecided.iter() }
                .map(|piece| self.covers(command, piece))
                .collect();
            if covered.contains(&true) {
                self.settle(&covered);
            }
            return;
        }
        if command.failed {
            self.undecided.retain(|piece| piece.command != number);
        } else if self.is_durable(command) {
            let own: Vec<bool> = { self.undecided.iter() }
                .map(|piece| piece.command == number)
                .collect();
            self.settle(&own);
        } else {
            for piece in { &mut self.undecided }
                .iter_mut()
                .filter(|it| it.command == number)
            {
                piece.in_flight = false;
            }
        }
    }

    /// Makes these pieces durable.
    fn settle(&mut self, durable: &[bool]) {
        let mut left: Vec<Piece> = Vec::new();
        for (piece, durable) in std::mem::take(&mut self.undecided).into_iter().zip(durable) {
            if !durable {
                left.push(piece);
                continue;
            }
            let command = &self.log.commands[piece.command as usize];
            for &extent in &piece.extents {
                if self.has(Bug::BaseNotAdvanced) {
                    continue;
                }
                let base = Arc::make_mut(&mut self.base);
                match data_of(self.log, command, extent) {
                    Some(data) => base.write(extent.0, data),
                    None => base.zero(extent.0, extent.1 - extent.0),
                }
                // This write covers the pieces of earlier writes in its range.
                for earlier in left.iter_mut().filter(|_| !self.has(Bug::EarlierOverLater)) {
                    subtract(&mut earlier.extents, extent);
                }
            }
        }
        left.retain(|piece| !piece.extents.is_empty());
        self.undecided = left;
    }
}

/// Returns the data that a command writes to a range; `None`: zeroes.
fn data_of<'a>(log: &'a Log, command: &Command, extent: (u64, u64)) -> Option<&'a [u8]> {
    let from = (extent.0 - command.offset) as usize;
    let until = (extent.1 - command.offset) as usize;
    (command.kind == EventKind::Write).then(|| &log.data(command)[from..until])
}

/// Returns the pieces of a command; a flush has none.
fn pieces(command: &Command, number: u32, how: Assumptions) -> Vec<Piece> {
    let (start, end) = (command.offset, command.offset + command.bytes);
    let whole = match command.kind {
        EventKind::Flush => return Vec::new(),
        EventKind::Write => !how.torn,
        EventKind::Zeroes | EventKind::Trim => !how.torn || command.bytes > LONGEST_CUT,
    };
    let part = match whole {
        true => command.bytes + command.offset,
        false => u64::from(how.part),
    };
    let first = start / part;
    (first..end.div_ceil(part))
        .map(|index| Piece {
            command: number,
            part: (index - first) as u32 + 1,
            in_flight: true,
            extents: vec![(start.max(index * part), end.min((index + 1) * part))],
        })
        .collect()
}

/// Subtracts a range from ranges.
fn subtract(extents: &mut Vec<(u64, u64)>, (start, end): (u64, u64)) {
    if !extents.iter().any(|it| it.0 < end && it.1 > start) {
        return;
    }
    let parts = extents
        .iter()
        .flat_map(|&(from, until)| [(from, until.min(start)), (from.max(end), until)]);
    *extents = parts.filter(|(from, until)| from < until).collect();
}
