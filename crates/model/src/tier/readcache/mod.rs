//! Read cache: what is read from the main tier is kept on a faster one.
//!
//! Addresses in lines of one size. A read of lines that the cache holds goes to it; of others, whole lines are read from
//! main, which answers the read, and written to the cache afterwards, nobody waiting. A write goes to main; lines it
//! touches are dropped (`around`), or written on both (`through`), whole lines that the cache does not hold too. Never in
//! the promise: all of it is on main.
//!
//! A line is mapped when its slot is chosen, and valid when its data have been written there; a write to it before that
//! makes it worthless, because what was read for it may be older. A slot is not given up while anything goes on in it.
//!
//! Policies ([`order`]): LRU, CLOCK, ARC, a ring; filling at the n-th miss (as Open CAS's nhit promotion), not for what is
//! read in order beyond a cutoff (as Open CAS and bcache pass by); or fed from memory ([`memory`]), as the L2ARC is. Leaves
//! out: the cost of looking up, metadata on the cache device, and waiting for a line that another read is filling: a read of
//! such a line is a miss and is answered by main (Open CAS makes it wait for the line, and reads it from the cache then).

mod memory;
mod order;
mod settings;
mod slots;

pub use memory::Feed;
pub use order::Policy;
pub use settings::{ReadCacheConfig, Writes};

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::memory::Memory;
use self::slots::{Slot, Slots};
use super::streams::Streams;
use super::table::Table;
use super::{Child, Gather, Tier, Way};
use crate::anatomy::Anatomy;
use crate::command::{Command, Completion, Op, Payload, Status};
use crate::data::Buffers;
use crate::device::{Gauge, Gauges, Range};
use crate::engine::Slab;
use crate::time::Time;

const CACHE: Child = 0;
const MAIN: Child = 1;

/// What a command to a child was for.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// A part of a client's command that says nothing about any slot.
    Plain { request: u32 },
    /// A part of a client's read, of so many slots from this one on; where it is on main.
    Hit {
        request: u32,
        slot: u32,
        lines: u32,
        on_main: Command,
    },
    /// The same, read from main after the cache could not give it; its time there is in `tried`.
    Again { request: u32, tried: u32 },
    /// A part of a client's read that fills slots, a list of `fills`.
    Fill { request: u32, fill: u32 },
    /// A client's write to so many lines of main, from this one on.
    Write {
        request: u32,
        first: u64,
        lines: u32,
    },
    /// A part of a client's write into a slot.
    Through { request: u32, slot: u32 },
    /// Lines on their way into their slots, of one of `fills`.
    Store { fill: u32, slot: u32, lines: u32 },
    /// Lines that are read for memory.
    Bring { bring: u32 },
}

/// Whole lines that are read from main for slots.
#[derive(Clone, Debug, Default)]
struct Fill {
    slots: Vec<u32>,
    /// The first of them.
    first_line: u64,
    /// Where they are on their way.
    buffer: Payload,
    /// The part of them that the client asked for: its first byte, how many, and where they go.
    skip: u32,
    bytes: u32,
    client: Payload,
    /// Writes into slots that are under way.
    stores: u32,
}

/// A read cache.
#[derive(Clone, Debug)]
pub struct ReadCache {
    line: u64,
    writes: Writes,
    cutoff: u64,
    survives: bool,
    bytes: u64,
    slots: Slots,
    streams: Streams,
    requests: Gather,
    pieces: Slab<Piece>,
    fills: Slab<Fill>,
    /// Lists of slots that are used again.
    spare: Vec<Vec<u32>>,
    tried: Slab<Anatomy>,
    /// By line of main: writes to it that are in flight. What is read beside them may be old a moment later.
    pending: Table,
    memory: Option<Box<Memory>>,
    hit: u64,
    missed: u64,
}

impl ReadCache {
    fn send<W: Way>(&mut self, child: Child, piece: Piece, command: Command, way: &mut W) {
        let token = self.pieces.insert(piece);
        way.send(child, token, command);
    }

    fn lines(&self, command: &Command) -> core::ops::Range<u64> {
        command.offset / self.line..command.end().div_ceil(self.line)
    }

    /// The part of a command that lies in these lines.
    fn part(&self, command: &Command, lines: core::ops::Range<u64>) -> Command {
        let first = command.offset.max(lines.start * self.line);
        let end = command.end().min(lines.end * self.line);
        Command {
            offset: first,
            bytes: (end - first) as u32,
            payload: command.payload.skip((first - command.offset) as u32),
            ..*command
        }
    }

    /// Where this part of main is in the cache, if `slot` holds its first line.
    fn in_cache(&self, part: Command, slot: u32) -> Command {
        Command {
            offset: u64::from(slot) * self.line + part.offset % self.line,
            ..part
        }
    }

    fn read<W: Way>(&mut self, command: &Command, way: &mut W) {
        let request = self.requests.begin(command.id);
        let in_order = self.streams.add(command.offset, u64::from(command.bytes));
        let passes = in_order > self.cutoff;
        let lines = self.lines(command);
        let mut line = lines.start;
        while line < lines.end {
            let first = line;
            line += 1;
            if let Some(slot) = self.slots.valid(first) {
                self.slots.used(slot);
                // Lines that follow each other in the cache too are one read.
                while line < lines.end
                    && self.slots.valid(line) == Some(slot + (line - first) as u32)
                {
                    self.slots.used(slot + (line - first) as u32);
                    line += 1;
                }
                let part = self.part(command, first..line);
                self.hit += u64::from(part.bytes);
                let lines = (line - first) as u32;
                self.slots.occupy(slot, lines);
                let piece = Piece::Hit {
                    request,
                    slot,
                    lines,
                    on_main: part,
                };
                self.requests.expect(request);
                self.send(CACHE, piece, self.in_cache(part, slot), way);
            } else {
                while line < lines.end && self.slots.valid(line).is_none() {
                    line += 1;
                }
                self.miss(command, (request, passes), first..line, way);
            }
        }
    }

    /// Reads lines from main that the cache does not hold, and notes which of them are to be taken in.
    fn miss<W: Way>(
        &mut self,
        command: &Command,
        (request, passes): (u32, bool),
        lines: core::ops::Range<u64>,
        way: &mut W,
    ) {
        let part = self.part(command, lines.clone());
        self.missed += u64::from(part.bytes);
        let mut slots = self.spare.pop().unwrap_or_default();
        if !passes {
            for line in lines.clone() {
                let settled = self.pending.get(line).is_none();
                if settled && self.slots.wanted(line) {
                    slots.extend(self.slots.take(line, Slot::Reading));
                }
            }
        }
        self.requests.expect(request);
        if slots.is_empty() {
            self.spare.push(slots);
            return self.send(MAIN, Piece::Plain { request }, part, way);
        }
        // Whole lines, as far as there is something.
        let first = lines.start * self.line;
        let end = (lines.end * self.line).min(self.bytes);
        let bytes = (end - first) as u32;
        let buffer = way.buffers().take(bytes);
        let fill = self.fills.insert(Fill {
            slots,
            first_line: lines.start,
            buffer,
            skip: (part.offset - first) as u32,
            bytes: part.bytes,
            client: part.payload,
            stores: 0,
        });
        let whole = Command {
            offset: first,
            bytes,
            payload: buffer,
            ..part
        };
        self.send(MAIN, Piece::Fill { request, fill }, whole, way);
    }

    /// What was read from main goes to the client, and into the slots that were chosen for it.
    fn filled<W: Way>(&mut self, fill: u32, good: bool, way: &mut W) {
        let Fill {
            buffer,
            skip,
            bytes,
            client,
            ..
        } = self.fills[fill];
        way.buffers().copy(buffer.skip(skip), client, bytes);
        let mut slots = core::mem::take(&mut self.fills[fill].slots);
        // The first slot's line need not be the first that was read.
        let first = self.fills[fill].first_line;
        let mut next = 0;
        while next < slots.len() {
            let slot = slots[next];
            let line = self.slots.line(slot);
            let lines = self.slots.arrived(&slots[next..], good);
            next += lines.max(1) as usize;
            if lines > 0 {
                let within = (line - first) * self.line;
                // The last line may be cut short by main's end.
                let bytes = (u64::from(lines) * self.line).min(self.bytes - line * self.line);
                let command = Command {
                    payload: buffer.skip(within as u32),
                    ..Command::new(0, Op::Write, u64::from(slot) * self.line, bytes as u32)
                };
                self.fills[fill].stores += 1;
                self.send(CACHE, Piece::Store { fill, slot, lines }, command, way);
            }
        }
        slots.clear();
        self.spare.push(slots);
        self.end(fill, way);
    }

    /// Nothing more is to be done with the lines that were read, unless some are still being written.
    fn end<W: Way>(&mut self, fill: u32, way: &mut W) {
        if self.fills[fill].stores == 0 {
            let buffer = core::mem::take(&mut self.fills[fill].buffer);
            way.buffers().give_back(buffer);
            self.fills.release(fill);
        }
    }

    fn write<W: Way>(&mut self, command: &Command, way: &mut W) {
        let request = self.requests.begin(command.id);
        let lines = self.lines(command);
        let piece = Piece::Write {
            request,
            first: lines.start,
            lines: (lines.end - lines.start) as u32,
        };
        self.requests.expect(request);
        self.send(MAIN, piece, *command, way);
        let through = self.writes == Writes::Through && command.op == Op::Write;
        for line in lines {
            if let Some(memory) = &mut self.memory {
                memory.discard(line);
            }
            let others = self.pending.get(line).unwrap_or(0);
            self.pending.set(line, others + 1);
            let slot = match others {
                0 if through => self.slot_to_write(line, command),
                // Which of two writes main will have in the end is not known here.
                _ => None,
            };
            let Some(slot) = slot else {
                self.slots.discard(line);
                continue;
            };
            let part = self.part(command, line..line + 1);
            self.requests.expect(request);
            let piece = Piece::Through { request, slot };
            self.send(CACHE, piece, self.in_cache(part, slot), way);
        }
    }

    /// The slot into which a line is written beside main: its own if nothing goes on in it, a new one if all of it is
    /// written. Until that is done, neither old nor new is read from it.
    fn slot_to_write(&mut self, line: u64, command: &Command) -> Option<u32> {
        if let Some(slot) = self.slots.rewrite(line) {
            return Some(slot);
        }
        let (first, end) = (line * self.line, (line + 1) * self.line);
        let whole = command.offset <= first && command.end() >= end;
        if !whole || self.slots.fills_at() > 1 || self.memory.is_some() {
            return None;
        }
        self.slots.discard(line);
        self.slots.take(line, Slot::Writing)
    }

    /// A write to lines of main has ended; if it failed, nobody knows what they hold.
    fn settled(&mut self, lines: core::ops::Range<u64>, good: bool) {
        for line in lines {
            match self.pending.get(line) {
                Some(others) if others > 1 => {
                    self.pending.set(line, others - 1);
                }
                _ => self.pending.clear(line),
            }
            if !good {
                self.slots.discard(line);
            }
        }
    }
}

impl Tier for ReadCache {
    fn submit<W: Way>(&mut self, now: Time, command: &Command, way: &mut W) {
        match command.op {
            Op::Read => match self.memory.take() {
                Some(mut memory) => {
                    self.read_by_memory(now, command, &mut memory, way);
                    self.memory = Some(memory);
                }
                None => self.read(command, way),
            },
            Op::Flush => {
                let request = self.requests.begin(command.id);
                // What is on the cache matters later only if it is still known then.
                let asked = if self.survives { 2 } else { 1 };
                for &child in &[MAIN, CACHE][..asked] {
                    self.requests.expect(request);
                    self.send(child, Piece::Plain { request }, *command, way);
                }
            }
            Op::Write | Op::Deallocate | Op::WriteZeroes => self.write(command, way),
        }
    }

    fn completed<W: Way>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let piece = self.pieces[token];
        self.pieces.release(token);
        let good = done.status == Status::Success;
        let mut anatomy = done.anatomy;
        let request = match piece {
            Piece::Plain { request } => request,
            Piece::Hit {
                request,
                slot,
                lines,
                on_main,
            } => {
                if !good {
                    self.slots.discard_slots(slot..slot + lines);
                    let tried = self.tried.insert(done.anatomy);
                    self.send(MAIN, Piece::Again { request, tried }, on_main, way);
                }
                self.slots.leave(slot, lines);
                if !good {
                    return;
                }
                request
            }
            Piece::Again { request, tried } => {
                anatomy.append(&self.tried[tried]);
                self.tried.release(tried);
                request
            }
            Piece::Fill { request, fill } => {
                self.filled(fill, good, way);
                request
            }
            Piece::Write {
                request,
                first,
                lines,
            } => {
                self.settled(first..first + u64::from(lines), good);
                request
            }
            Piece::Through { request, slot } => {
                self.slots.written(slot..slot + 1, good);
                // The client's data are on main; what the cache could not take is no concern of its.
                let fine = Completion {
                    status: Status::Success,
                    ..*done
                };
                if let Some((id, status)) = self.requests.done(request, &fine) {
                    way.finish(id, status, anatomy);
                }
                return;
            }
            Piece::Store { fill, slot, lines } => {
                self.slots.written(slot..slot + lines, good);
                self.fills[fill].stores -= 1;
                return self.end(fill, way);
            }
            Piece::Bring { bring } => {
                if let Some(mut memory) = self.memory.take() {
                    self.brought(now, bring, done, &mut memory, way);
                    self.memory = Some(memory);
                }
                return;
            }
        };
        if let Some((id, status)) = self.requests.done(request, done) {
            way.finish(id, status, anatomy);
        }
    }

    fn due(&self) -> Time {
        self.memory
            .as_ref()
            .map_or(Time::NEVER, |memory| memory.due)
    }

    fn tick<W: Way>(&mut self, now: Time, way: &mut W) {
        if let Some(mut memory) = self.memory.take() {
            if memory.due <= now {
                self.feed(now, &mut memory, way);
            }
            self.memory = Some(memory);
        }
    }

    fn give_back<B: Buffers>(&mut self, buffers: &mut B) {
        if let Some(memory) = &mut self.memory {
            memory.give_back(buffers);
        }
        for fill in self.fills.all_mut() {
            buffers.give_back(core::mem::take(&mut fill.buffer));
        }
    }

    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        ranges.extend(&children[usize::from(MAIN)]);
    }

    fn power_cut(&mut self, _now: Time) {
        self.requests.clear();
        self.pieces = Slab::default();
        self.fills = Slab::default();
        self.tried = Slab::default();
        self.pending.reset();
        self.streams = Streams::default();
        self.slots.power_cut(self.survives);
        if let Some(memory) = &mut self.memory {
            memory.power_cut();
        }
    }

    fn inspect(&self, _now: Time, gauges: &mut dyn Gauges) {
        gauges.gauge(Gauge::HitBytes, self.hit as f64);
        gauges.gauge(Gauge::MissBytes, self.missed as f64);
    }
}

#[cfg(test)]
mod tests;
