//! The cache in memory before an L2ARC, and its feeder.
//!
//! What is read, from main or from the cache, is kept in memory. Every second the feeder looks at what memory would give up
//! next, so many times what it may write, and writes what the cache does not hold to it: so nobody waits for the cache to
//! be written, and most of what is read once never gets there. What is read in order is not fed. What is written is
//! dropped from memory and is not taken in.
//!
//! Source: OpenZFS be7657e, `module/zfs/arc.c`: `l2arc_feed_secs` 1, `l2arc_write_max` 32 MiB, `l2arc_headroom` 8,
//! `l2arc_noprefetch` 1. Left out: the boost and the search from the other end until memory is full, feeding again within a
//! second, trims ahead of the hand, the memory that what is on the cache takes, compression, what memory costs.

use alloc::vec;
use alloc::vec::Vec;

use super::slots::{Slot, Slots};
use super::{CACHE, Fill, MAIN, Piece, Policy, ReadCache};
use crate::anatomy::Anatomy;
use crate::command::{Command, Completion, Op, Payload, Status};
use crate::data::Buffers;
use crate::engine::Slab;
use crate::tier::Way;
use crate::time::{Span, Time};

/// A cache in memory, and how the cache on a drive is fed from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Feed {
    /// Bytes of memory.
    pub memory: u64,
    /// How often.
    pub every: Span,
    /// Most bytes that are written then.
    pub most: u64,
    /// How many times that is looked at, from the end of what memory holds.
    pub headroom: u32,
}

/// What is in memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    law: Feed,
    slots: Slots,
    /// By slot: its data, and whether they are to be fed.
    data: Vec<Payload>,
    fresh: Vec<bool>,
    /// When the feeder comes.
    pub(super) due: Time,
    brings: Slab<Bring>,
    chosen: Vec<u32>,
}

/// Whole lines that are read for memory.
#[derive(Clone, Debug)]
struct Bring {
    /// Slots of memory.
    slots: Vec<u32>,
    /// What is read, and where it is on its way.
    whole: Command,
    /// Whether it is read in order.
    ahead: bool,
    /// The client's part.
    part: Command,
    request: u32,
    /// Slots of the cache that it is read from.
    device: Option<(u32, u32)>,
    /// The time that was lost there, if it could not be read.
    tried: Anatomy,
}

impl Memory {
    pub(super) fn new(law: Feed, policy: Policy, line: u64, lines: u64) -> Memory {
        let slots = Slots::new(policy, law.memory / line, lines);
        Memory {
            law,
            data: vec![Payload::default(); slots.count()],
            fresh: vec![false; slots.count()],
            slots,
            due: Time::NEVER,
            brings: Slab::default(),
            chosen: Vec::new(),
        }
    }

    /// A line is written to.
    pub(super) fn discard(&mut self, line: u64) {
        self.slots.discard(line);
    }

    pub(super) fn give_back(&mut self, buffers: &mut impl Buffers) {
        for data in &mut self.data {
            buffers.give_back(core::mem::take(data));
        }
        for bring in self.brings.all_mut() {
            buffers.give_back(core::mem::take(&mut bring.whole.payload));
        }
    }

    pub(super) fn power_cut(&mut self) {
        self.slots.power_cut(false);
        self.brings = Slab::default();
        self.due = Time::NEVER;
    }
}

impl ReadCache {
    /// A read of a cache that stands behind one in memory.
    pub(super) fn read_by_memory<W: Way>(
        &mut self,
        now: Time,
        command: &Command,
        memory: &mut Memory,
        way: &mut W,
    ) {
        let request = self.requests.begin(command.id);
        // Until all that it waits for has left.
        self.requests.expect(request);
        let ahead = self.streams.add(command.offset, command.bytes.into()) > self.cutoff;
        let lines = self.lines(command);
        let mut line = lines.start;
        while line < lines.end {
            let first = line;
            line += 1;
            if let Some(slot) = memory.slots.valid(first) {
                memory.slots.used(slot);
                let part = self.part(command, first..line);
                self.hit += u64::from(part.bytes);
                let within = (part.offset % self.line) as u32;
                let from = memory.data[slot as usize].skip(within);
                way.buffers().copy(from, part.payload, part.bytes);
                continue;
            }
            let device = self.slots.valid(first);
            let goes_on = |line: u64| {
                let slot = device.map(|slot| slot + (line - first) as u32);
                memory.slots.valid(line).is_none() && self.slots.valid(line) == slot
            };
            while line < lines.end && goes_on(line) {
                line += 1;
            }
            let device = device.map(|slot| (slot, (line - first) as u32));
            self.bring(command, (request, ahead), first..line, device, memory, way);
        }
        let all = Completion {
            id: command.id,
            at: now,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        };
        if let Some((id, status)) = self.requests.done(request, &all) {
            way.finish(id, status, Anatomy::ZERO);
        }
    }

    /// Reads lines that are not in memory, from the cache if they are there.
    fn bring<W: Way>(
        &mut self,
        command: &Command,
        (request, ahead): (u32, bool),
        lines: core::ops::Range<u64>,
        device: Option<(u32, u32)>,
        memory: &mut Memory,
        way: &mut W,
    ) {
        let part = self.part(command, lines.clone());
        let mut slots = self.spare.pop().unwrap_or_default();
        for line in lines.clone() {
            if self.pending.get(line).is_none() && memory.slots.wanted(line) {
                slots.extend(memory.slots.take(line, Slot::Reading));
            }
        }
        let (first, end) = (lines.start * self.line, lines.end * self.line);
        let bytes = (end.min(self.bytes) - first) as u32;
        let whole = Command {
            offset: first,
            bytes,
            payload: way.buffers().take(bytes),
            ..part
        };
        let bring = memory.brings.insert(Bring {
            slots,
            whole,
            ahead,
            part,
            request,
            device,
            tried: Anatomy::ZERO,
        });
        self.requests.expect(request);
        match device {
            Some((slot, lines)) => {
                self.hit += u64::from(part.bytes);
                for slot in slot..slot + lines {
                    self.slots.used(slot);
                }
                self.slots.occupy(slot, lines);
                self.send(
                    CACHE,
                    Piece::Bring { bring },
                    self.in_cache(whole, slot),
                    way,
                );
            }
            None => {
                self.missed += u64::from(part.bytes);
                self.send(MAIN, Piece::Bring { bring }, whole, way);
            }
        }
    }

    /// What was read for memory is there.
    pub(super) fn brought<W: Way>(
        &mut self,
        now: Time,
        number: u32,
        done: &Completion,
        memory: &mut Memory,
        way: &mut W,
    ) {
        let good = done.status == Status::Success;
        let bring = &mut memory.brings[number];
        if let Some((slot, lines)) = bring.device.take() {
            if !good {
                self.slots.discard_slots(slot..slot + lines);
            }
            self.slots.leave(slot, lines);
            if !good {
                bring.tried = done.anatomy;
                let whole = bring.whole;
                return self.send(MAIN, Piece::Bring { bring: number }, whole, way);
            }
        }
        let mut slots = core::mem::take(&mut bring.slots);
        let (whole, part, ahead) = (bring.whole, bring.part, bring.ahead);
        let (request, tried) = (bring.request, bring.tried);
        bring.whole.payload = Payload::default();
        memory.brings.release(number);
        if good {
            let from = whole.payload.skip((part.offset - whole.offset) as u32);
            way.buffers().copy(from, part.payload, part.bytes);
        }
        for &slot in &slots {
            let at = memory.slots.line(slot) * self.line;
            if !memory.slots.landed(slot, good) {
                continue;
            }
            let data = &mut memory.data[slot as usize];
            if *data == Payload::default() {
                *data = way.buffers().take(self.line as u32);
            }
            let bytes = self.line.min(whole.end() - at) as u32;
            let from = whole.payload.skip((at - whole.offset) as u32);
            way.buffers().copy(from, *data, bytes);
            memory.fresh[slot as usize] = !ahead;
            if !ahead && memory.due == Time::NEVER {
                memory.due = now + memory.law.every;
            }
        }
        slots.clear();
        self.spare.push(slots);
        way.buffers().give_back(whole.payload);
        let mut anatomy = done.anatomy;
        anatomy.append(&tried);
        if let Some((id, status)) = self.requests.done(request, done) {
            way.finish(id, status, anatomy);
        }
    }

    /// The feeder comes.
    pub(super) fn feed<W: Way>(&mut self, now: Time, memory: &mut Memory, way: &mut W) {
        let most = (memory.law.most / self.line).max(1) as usize;
        let mut chosen = core::mem::take(&mut memory.chosen);
        let looked_at = most * memory.law.headroom as usize;
        memory.slots.oldest_first(looked_at, |slot, line| {
            if chosen.len() < most && memory.fresh[slot as usize] && !self.slots.knows(line) {
                chosen.push(slot);
            }
        });
        memory.due = match chosen.is_empty() {
            true => Time::NEVER,
            false => now + memory.law.every,
        };
        for slot in chosen.drain(..) {
            // Once: it is not fed again when the hand has come round.
            memory.fresh[slot as usize] = false;
            let line = memory.slots.line(slot);
            let Some(to) = self.slots.take(line, Slot::Writing) else {
                continue;
            };
            let at = line * self.line;
            let bytes = self.line.min(self.bytes - at) as u32;
            let buffer = way.buffers().take(bytes);
            way.buffers()
                .copy(memory.data[slot as usize], buffer, bytes);
            let command = Command {
                payload: buffer,
                ..Command::new(0, Op::Write, u64::from(to) * self.line, bytes)
            };
            let fill = self.fills.insert(Fill {
                buffer,
                stores: 1,
                ..Fill::default()
            });
            let piece = Piece::Store {
                fill,
                slot: to,
                lines: 1,
            };
            self.send(CACHE, piece, command, way);
        }
        memory.chosen = chosen;
    }
}
