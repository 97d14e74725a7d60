//! Read cache: data read from the main pool is cached on a faster tier.
//!
//! Addresses are divided into lines of one size. Cached lines are read from the cache. For other lines, whole lines are
//! read from the main pool, which completes the read, and written to the cache afterwards, without delaying any
//! command. A write goes to the main pool. Lines that it overlaps are dropped (`around`) or written to both
//! (`through`); whole lines that are not cached are then admitted, too. The cache never affects the durability
//! guarantee: all data is on the main pool.
//!
//! A line is mapped when its slot is chosen, and valid when its data has been written there. A write to the line before
//! that invalidates it, because the data read for it may be older. A slot is not evicted while commands on it are in
//! progress.
//!
//! Policies ([`order`]): LRU, CLOCK, ARC, a ring. Admission at the n-th miss (like Open CAS's nhit promotion), not for
//! sequential reads beyond a cutoff (like the bypass of Open CAS and bcache), or by feeding from memory ([`memory`]),
//! like the L2ARC. Not modelled: the cost of look-ups, metadata on the cache device, and waiting for a line that
//! another read is filling. A read of such a line is a miss and is completed by the main pool (Open CAS makes it wait
//! for the line, and then reads it from the cache).

mod memory;
mod order;
mod settings;
mod slots;

pub use memory::Feed;
pub use order::Policy;
pub use settings::{ReadCacheConfig, Writes};

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::device::{Gauge, Gauges, Range};
use model::engine::Slab;
use model::time::Time;

use self::memory::Memory;
use self::slots::{CacheSlots, Slot};
use super::streams::Streams;
use super::table::SparseTable;
use super::{Child, Gather, Tier, TierContext};

const CACHE: Child = 0;
const MAIN: Child = 1;

/// Purpose of a command to a child.
#[derive(Clone, Copy, Debug)]
enum ReadCachePurpose {
    /// A part of a client's command that does not affect any slot.
    Plain { request: u32 },
    /// A part of a client's read, of this number of slots, starting with this one; and its location on the main pool.
    Hit {
        request: u32,
        slot: u32,
        lines: u32,
        on_main: Command,
    },
    /// Like `Hit`, but read from the main pool after the read from the cache failed; the time lost there is in `tried`.
    Again { request: u32, tried: u32 },
    /// A part of a client's read that fills slots, an entry of `fills`.
    Fill { request: u32, fill: u32 },
    /// A client's write to this number of lines of the main pool, starting with this one.
    Write {
        request: u32,
        first: u64,
        lines: u32,
    },
    /// A part of a client's write into a slot.
    Through { request: u32, slot: u32 },
    /// Lines that are being written into their slots, of an entry of `fills`.
    Store { fill: u32, slot: u32, lines: u32 },
    /// Lines that are read for memory.
    Bring { bring: u32 },
}

/// Whole lines that are read from the main pool for slots.
#[derive(Clone, Debug, Default)]
struct Fill {
    slots: Vec<u32>,
    /// Number of the first of the lines.
    first_line: u64,
    /// Buffer of the lines.
    buffer: Payload,
    /// The part of them that the client requested: its first byte, its length, and its destination.
    skip: u32,
    bytes: u32,
    client: Payload,
    /// Number of writes into slots in progress.
    stores: u32,
}

/// A read cache over its children.
#[derive(Clone, Debug)]
pub struct ReadCache {
    line: u64,
    writes: Writes,
    cutoff: u64,
    survives: bool,
    bytes: u64,
    slots: CacheSlots,
    streams: Streams,
    requests: Gather,
    pieces: Slab<ReadCachePurpose>,
    fills: Slab<Fill>,
    /// Unused slot lists, for reuse of their memory.
    spare: Vec<Vec<u32>>,
    tried: Slab<Anatomy>,
    /// By line of the main pool: number of writes in flight. Data read at the same time may be outdated a moment later.
    pending: SparseTable,
    memory: Option<Box<Memory>>,
    hit: u64,
    missed: u64,
}

impl ReadCache {
    fn send<W: TierContext>(
        &mut self,
        child: Child,
        piece: ReadCachePurpose,
        command: Command,
        way: &mut W,
    ) {
        let token = self.pieces.insert(piece);
        way.send(child, token, command);
    }

    fn lines(&self, command: &Command) -> core::ops::Range<u64> {
        command.offset / self.line..command.end().div_ceil(self.line)
    }

    /// Returns the part of a command that is in these lines.
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

    /// Returns the location of a part in the cache, if `slot` holds its first line.
    fn in_cache(&self, part: Command, slot: u32) -> Command {
        Command {
            offset: u64::from(slot) * self.line + part.offset % self.line,
            ..part
        }
    }

    fn read<W: TierContext>(&mut self, command: &Command, way: &mut W) {
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
                // Lines that are also consecutive in the cache are one read.
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
                let piece = ReadCachePurpose::Hit {
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

    /// Reads lines that are not cached from the main pool, and records which of them are admitted.
    fn miss<W: TierContext>(
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
            return self.send(MAIN, ReadCachePurpose::Plain { request }, part, way);
        }
        // Whole lines, up to the end of the main pool.
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
        self.send(MAIN, ReadCachePurpose::Fill { request, fill }, whole, way);
    }

    /// Data read from the main pool goes to the client, and into the slots that were chosen for it.
    fn filled<W: TierContext>(&mut self, fill: u32, good: bool, way: &mut W) {
        let Fill {
            buffer,
            skip,
            bytes,
            client,
            ..
        } = self.fills[fill];
        way.buffers().copy(buffer.skip(skip), client, bytes);
        let mut slots = core::mem::take(&mut self.fills[fill].slots);
        // The line of the first slot is not necessarily the first that was read.
        let first = self.fills[fill].first_line;
        let mut next = 0;
        while next < slots.len() {
            let slot = slots[next];
            let line = self.slots.line(slot);
            let lines = self.slots.arrived(&slots[next..], good);
            next += lines.max(1) as usize;
            if lines > 0 {
                let within = (line - first) * self.line;
                // The last line may be truncated by the end of the main pool.
                let bytes = (u64::from(lines) * self.line).min(self.bytes - line * self.line);
                let command = Command {
                    payload: buffer.skip(within as u32),
                    ..Command::new(0, Op::Write, u64::from(slot) * self.line, bytes as u32)
                };
                self.fills[fill].stores += 1;
                self.send(
                    CACHE,
                    ReadCachePurpose::Store { fill, slot, lines },
                    command,
                    way,
                );
            }
        }
        slots.clear();
        self.spare.push(slots);
        self.end(fill, way);
    }

    /// Releases the lines that were read, unless some are still being written.
    fn end<W: TierContext>(&mut self, fill: u32, way: &mut W) {
        if self.fills[fill].stores == 0 {
            let buffer = core::mem::take(&mut self.fills[fill].buffer);
            way.buffers().release(buffer);
            self.fills.release(fill);
        }
    }

    fn write<W: TierContext>(&mut self, command: &Command, way: &mut W) {
        let request = self.requests.begin(command.id);
        let lines = self.lines(command);
        let piece = ReadCachePurpose::Write {
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
                // It is not known here which of two writes the main pool will have in the end.
                _ => None,
            };
            let Some(slot) = slot else {
                self.slots.discard(line);
                continue;
            };
            let part = self.part(command, line..line + 1);
            self.requests.expect(request);
            let piece = ReadCachePurpose::Through { request, slot };
            self.send(CACHE, piece, self.in_cache(part, slot), way);
        }
    }

    /// Returns the slot into which a line is written in addition to the main pool: its own if no command on it is in
    /// progress, a new one if the whole line is written. Until that is done, the slot is not read.
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

    /// A write to lines of the main pool has ended; if it failed, their content is unknown.
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
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
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
                // Durability of the cache matters later only if its content survives.
                let asked = if self.survives { 2 } else { 1 };
                for &child in &[MAIN, CACHE][..asked] {
                    self.requests.expect(request);
                    self.send(child, ReadCachePurpose::Plain { request }, *command, way);
                }
            }
            Op::Write | Op::Deallocate | Op::WriteZeroes => self.write(command, way),
        }
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let piece = self.pieces[token];
        self.pieces.release(token);
        let good = done.status == Status::Success;
        let mut anatomy = done.anatomy;
        let request = match piece {
            ReadCachePurpose::Plain { request } => request,
            ReadCachePurpose::Hit {
                request,
                slot,
                lines,
                on_main,
            } => {
                if !good {
                    self.slots.discard_slots(slot..slot + lines);
                    let tried = self.tried.insert(done.anatomy);
                    let again = ReadCachePurpose::Again { request, tried };
                    self.send(MAIN, again, on_main, way);
                }
                self.slots.leave(slot, lines);
                if !good {
                    return;
                }
                request
            }
            ReadCachePurpose::Again { request, tried } => {
                anatomy.append(&self.tried[tried]);
                self.tried.release(tried);
                request
            }
            ReadCachePurpose::Fill { request, fill } => {
                self.filled(fill, good, way);
                request
            }
            ReadCachePurpose::Write {
                request,
                first,
                lines,
            } => {
                self.settled(first..first + u64::from(lines), good);
                request
            }
            ReadCachePurpose::Through { request, slot } => {
                self.slots.written(slot..slot + 1, good);
                // The client's data is on the main pool; a failure of the cache does not affect the client.
                let fine = Completion {
                    status: Status::Success,
                    ..*done
                };
                if let Some((id, status)) = self.requests.done(request, &fine) {
                    way.finish(id, status, anatomy);
                }
                return;
            }
            ReadCachePurpose::Store { fill, slot, lines } => {
                self.slots.written(slot..slot + lines, good);
                self.fills[fill].stores -= 1;
                return self.end(fill, way);
            }
            ReadCachePurpose::Bring { bring } => {
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

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if let Some(mut memory) = self.memory.take() {
            if memory.due <= now {
                self.feed(now, &mut memory, way);
            }
            self.memory = Some(memory);
        }
    }

    fn release_buffers<B: Buffers>(&mut self, buffers: &mut B) {
        if let Some(memory) = &mut self.memory {
            memory.release_buffers(buffers);
        }
        for fill in self.fills.all_mut() {
            buffers.release(core::mem::take(&mut fill.buffer));
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
