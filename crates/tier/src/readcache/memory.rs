//! The memory cache in front of an L2ARC, and its feeder.
//!
//! Data read from the main pool or from the cache is kept in memory. Every second, the feeder examines the lines that
//! memory would evict next, up to a multiple of the maximum that it may write, and writes those that are not on the
//! cache to the cache. No command therefore waits for writes to the cache, and most data that is read only once never
//! reaches it. Sequentially read data is not fed. Written data is dropped from memory and not admitted.
//!
//! Source: OpenZFS be7657e, `module/zfs/arc.c`: `l2arc_feed_secs` 1, `l2arc_write_max` 32 MiB, `l2arc_headroom` 8,
//! `l2arc_noprefetch` 1. Not modelled: the boost and the search from the other end until memory is full, feeding again
//! within a second, trims ahead of the hand, and compression. The memory for headers of cached lines, and the cost of
//! memory accesses, are not modelled either.

use alloc::vec;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::engine::Slab;
use model::time::{Span, Time};

use super::slots::{CacheSlots, Slot};
use super::{CACHE, Fill, MAIN, Policy, ReadCache, ReadCachePurpose};
use crate::TierContext;

/// A memory cache, and the rate at which it feeds the cache on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Feed {
    /// Bytes of memory.
    pub memory: u64,
    /// Interval of the feeder.
    pub every: Span,
    /// Maximum bytes written per interval.
    pub most: u64,
    /// Multiple of that maximum that is examined, from the end of the memory's order.
    pub headroom: u32,
}

/// State of the memory cache.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    law: Feed,
    slots: CacheSlots,
    /// By slot: its data, and whether the feeder may write it.
    data: Vec<Payload>,
    fresh: Vec<bool>,
    /// When the feeder runs next.
    pub(super) due: Time,
    brings: Slab<MemoryFill>,
    chosen: Vec<u32>,
}

/// Whole lines that are read for memory.
#[derive(Clone, Debug)]
struct MemoryFill {
    /// Slots of memory.
    slots: Vec<u32>,
    /// The read, with its buffer.
    whole: Command,
    /// Whether it is sequential.
    ahead: bool,
    /// The client's part of the read.
    part: Command,
    request: u32,
    /// Slots of the cache that it is read from.
    device: Option<(u32, u32)>,
    /// Time lost there, if the read failed.
    tried: Anatomy,
}

impl Memory {
    pub(super) fn new(law: Feed, policy: Policy, line: u64, lines: u64) -> Memory {
        let slots = CacheSlots::new(policy, law.memory / line, lines);
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

    /// A line is written: drops it.
    pub(super) fn discard(&mut self, line: u64) {
        self.slots.discard(line);
    }

    pub(super) fn release_buffers(&mut self, buffers: &mut impl Buffers) {
        for data in &mut self.data {
            buffers.release(core::mem::take(data));
        }
        for bring in self.brings.all_mut() {
            buffers.release(core::mem::take(&mut bring.whole.payload));
        }
    }

    pub(super) fn power_cut(&mut self) {
        self.slots.power_cut(false);
        self.brings = Slab::default();
        self.due = Time::NEVER;
    }
}

impl ReadCache {
    /// Processes a read of a cache with a memory cache in front.
    pub(super) fn read_by_memory<W: TierContext>(
        &mut self,
        now: Time,
        command: &Command,
        memory: &mut Memory,
        way: &mut W,
    ) {
        let request = self.requests.begin(command.id);
        // Until all pieces have been sent.
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
    fn bring<W: TierContext>(
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
        let bring = memory.brings.insert(MemoryFill {
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
                    ReadCachePurpose::Bring { bring },
                    self.in_cache(whole, slot),
                    way,
                );
            }
            None => {
                self.missed += u64::from(part.bytes);
                self.send(MAIN, ReadCachePurpose::Bring { bring }, whole, way);
            }
        }
    }

    /// A read for memory has completed.
    pub(super) fn brought<W: TierContext>(
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
                return self.send(MAIN, ReadCachePurpose::Bring { bring: number }, whole, way);
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
        way.buffers().release(whole.payload);
        let mut anatomy = done.anatomy;
        anatomy.append(&tried);
        if let Some((id, status)) = self.requests.done(request, done) {
            way.finish(id, status, anatomy);
        }
    }

    /// Runs the feeder.
    pub(super) fn feed<W: TierContext>(&mut self, now: Time, memory: &mut Memory, way: &mut W) {
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
            // Only once: it is not fed again after the hand has wrapped around.
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
            let piece = ReadCachePurpose::Store {
                fill,
                slot: to,
                lines: 1,
            };
            self.send(CACHE, piece, command, way);
        }
        memory.chosen = chosen;
    }
}
