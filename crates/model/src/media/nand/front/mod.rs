//! The drive's front end: controller, link, outstanding commands and their segments.
//!
//! The controller splits a command into segments of at most the largest transfer. Read segments go to the reader, those
//! of writes over the link to the buffer. A command without data transfer reaches the buffer in order, as a write
//! segment without bytes. Completed commands are returned in order of time.
//!
//! Stations are booked when a segment arrives at them. The inbound link is booked from the controller: its only source
//! is that first-in-first-out server, so the order is kept. Not modelled: separate doorbells and fetches, which are a
//! constant.

mod cores;
mod in_flight;
mod pace;
pub(super) mod segment;
mod slots;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use super::config::{NandConfig, NandController};
use super::timeline::Timeline;
use crate::anatomy::Part;
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::Capacity;
use crate::engine::{Agenda, Station};
use crate::ftl::PrecomputedSlot;
use crate::random::Stream;
use crate::time::{Span, Time};

use cores::ReadCores;
use in_flight::InFlight;
use pace::Pacer;
pub(super) use segment::CommandSegment;
use slots::CommandSlots;

/// Initial capacity of each queue.
const FEW: usize = 16;

/// Bytes of the host's commands, for gauges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostBytes {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// Controller and link.
#[derive(Clone, Debug)]
pub(super) struct Front {
    config: NandController,
    capacity: Capacity,
    controller: Station,
    /// Cores of the controller, if it divides reads among several.
    cores: Option<ReadCores>,
    /// Firmware time for commands other than reads; it lags behind the controller by the firmware's pauses.
    intake: Station,
    /// Delays writes, if the firmware does.
    pacer: Option<Pacer>,
    link_in: Station,
    link_out: Station,
    /// Read segments on their way to the reader, write segments on their way to the buffer, and completions.
    reads: Agenda<CommandSegment>,
    writes: Agenda<CommandSegment>,
    read_done: Agenda<CommandId>,
    write_done: Agenda<CommandId>,
    /// Random addition to the fixed latency of a write.
    spread: Stream,
    /// The earliest time in these four queues.
    next: Time,
    commands: InFlight,
    /// For a link with few command slots.
    slots: Option<CommandSlots>,
    last_command: Time,
    bytes: HostBytes,
    /// Link time of inbound data.
    taken_in: Span,
}

impl Front {
    pub(super) fn new(config: &NandConfig, seed: u64) -> Front {
        Front {
            config: config.controller.clone(),
            capacity: Capacity {
                bytes: config.geometry.capacity,
                block: config.block,
            },
            controller: Station::default(),
            cores: config.controller.cores.map(ReadCores::new),
            intake: Station::default(),
            pacer: config.pace.as_ref().map(Pacer::new),
            link_in: Station::default(),
            link_out: Station::default(),
            reads: Agenda::with_capacity(FEW),
            writes: Agenda::with_capacity(FEW),
            read_done: Agenda::with_capacity(FEW),
            write_done: Agenda::with_capacity(FEW),
            spread: Stream::new(seed, "write delay"),
            next: Time::NEVER,
            commands: InFlight::default(),
            slots: config
                .controller
                .slots
                .map(|it| CommandSlots::new(it.get())),
            last_command: Time::ZERO,
            bytes: HostBytes::default(),
            taken_in: Span::ZERO,
        }
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Whether it paces writes.
    pub(super) fn paces(&self) -> bool {
        self.pacer.is_some()
    }

    /// Sets the array time of a unit of a write.
    pub(super) fn set_pace(&mut self, interval: Span) {
        if let Some(pacer) = &mut self.pacer {
            pacer.set_interval(interval);
        }
    }

    /// A command arrives, which the medium rejects if it is `read_only`; returns whether it will be rejected.
    #[inline]
    pub(super) fn accept(&mut self, now: Time, command: &Command, read_only: bool) -> bool {
        let status = match (self.refuses(command), read_only) {
            (true, _) => Status::LbaOutOfRange,
            (false, true) => Status::ReadOnly,
            (false, false) => Status::Success,
        };
        self.commands.insert(now, command, status);
        self.last_command = now;
        status != Status::Success
    }

    /// Whether a command that has arrived will be rejected.
    #[inline]
    pub(super) fn is_rejected(&self, id: CommandId) -> bool {
        self.commands[id].answer.status != Status::Success
    }

    /// Whether an accepted command waits for a command slot of the link.
    #[inline]
    pub(super) fn holds(&mut self, command: &Command) -> bool {
        let slots = self.slots.as_mut();
        slots.is_some_and(|slots| !slots.admit_or_hold(command))
    }

    /// Removes and returns the next command that has waited for a slot and has one now.
    #[inline]
    pub(super) fn next_held(&mut self) -> Option<Command> {
        self.slots.as_mut()?.next()
    }

    /// Whether a command is out of range or not in whole blocks.
    #[inline]
    pub(super) fn refuses(&self, command: &Command) -> bool {
        // 512 or 4096 (`NandConfig`).
        let within_block = u64::from(self.capacity.block) - 1;
        command.op != Op::Flush
            && (command.end() > self.capacity.bytes
                || (command.offset | u64::from(command.bytes)) & within_block != 0)
    }

    /// Books the controller for a command with data transfer, and sends its segments; `foreseen` is the location for a
    /// read of one page.
    pub(super) fn dispatch(&mut self, now: Time, command: &Command, foreseen: PrecomputedSlot) {
        match command.op {
            Op::Read => self.bytes.read += u64::from(command.bytes),
            _ => self.bytes.written += u64::from(command.bytes),
        }
        let write = command.op == Op::Write;
        let link = self.config.link_latency;
        let mut offset = command.offset;
        let mut pieces = 0;
        while offset < command.end() {
            // Segments end at multiples of the drive's largest transfer, as if split by a driver.
            let bytes = (command.end() - offset).min(u64::from(self.config.max_transfer));
            let units = segment::units_touched(offset, bytes);
            let service = if write {
                self.config.per_write + self.config.per_write_unit * u64::from(units - 1)
            } else {
                self.config.per_read
            };
            let (waits, mut leaves) = self.controller.book(now, service);
            if write {
                leaves = self.intake.book(now + waits, service).1;
                if let Some(pacer) = &mut self.pacer {
                    leaves = pacer.enter(leaves, units);
                }
            }
            let dispatched = leaves + link;
            let segment = |at| CommandSegment {
                at,
                id: command.id,
                offset,
                bytes: bytes as u32,
                dispatched,
                looked_up: Span::ZERO,
                foreseen,
            };
            if write {
                let transfer = Span::per_bytes(self.config.write_ps_per_byte(), bytes);
                let taken_in = self.config.write_issue_interval * u64::from(units - 1);
                let came = self.link_in.book(dispatched, transfer).1;
                // A small one may overtake a large one that is still being received.
                let at = came.max(dispatched + taken_in);
                self.next = self.next.min(at);
                self.writes.insert(at, segment(at));
            } else {
                self.next = self.next.min(dispatched);
                self.reads.push(dispatched, segment(dispatched));
            }
            offset += bytes;
            pieces += 1;
        }
        self.commands[command.id].left = pieces;
    }

    /// Books the controller for a flush, a deallocation, or a command that will be rejected.
    pub(super) fn dispatch_without_data(&mut self, now: Time, id: CommandId) {
        let service = self.config.per_write;
        let (waits, _) = self.controller.book(now, service);
        let taken = self.intake.book(now + waits, service).1;
        let leaves = self.pacer.as_ref().map_or(taken, |it| it.follow(taken));
        let dispatched = leaves + self.config.link_latency;
        let (_, at) = self.link_in.book(dispatched, Span::ZERO);
        self.next = self.next.min(at);
        let segment = CommandSegment {
            at,
            id,
            offset: 0,
            bytes: 0,
            dispatched,
            looked_up: Span::ZERO,
            foreseen: PrecomputedSlot::NOTHING,
        };
        self.writes.insert(at, segment);
    }

    /// Returns when the next segment arrives or the next command completes.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Updates the earliest time, after an entry may have been removed.
    #[inline]
    fn find_next(&mut self) {
        let segments = self.reads.next().min(self.writes.next());
        let answers = self.read_done.next().min(self.write_done.next());
        self.next = segments.min(answers);
    }

    /// Removes and returns the next read segment that arrives at `now`; [`Front::next`] is updated by
    /// [`Front::answer`].
    #[inline]
    pub(super) fn pop_read(&mut self, now: Time) -> Option<CommandSegment> {
        let segment = self.reads.pop_due(now)?;
        debug_assert_eq!(segment.at, now);
        Some(segment)
    }

    /// Removes and returns the next write segment, or command without data, that arrives at `now`; [`Front::next`] is
    /// updated by [`Front::answer`].
    #[inline]
    pub(super) fn pop_write(&mut self, now: Time) -> Option<CommandSegment> {
        let segment = self.writes.pop_due(now)?;
        debug_assert_eq!(segment.at, now);
        let rate = self.config.write_ps_per_byte();
        self.taken_in += Span::per_bytes(rate, u64::from(segment.bytes));
        Some(segment)
    }

    /// Completes commands that are done at `now`.
    #[inline(always)]
    pub(super) fn answer(&mut self, now: Time, done: &mut Vec<Completion>) {
        while let Some(id) = self.read_done.pop_due(now) {
            self.complete(now, id, done);
        }
        while let Some(id) = self.write_done.pop_due(now) {
            self.complete(now, id, done);
        }
        self.find_next();
    }

    #[inline(always)]
    fn complete(&mut self, now: Time, id: CommandId, done: &mut Vec<Completion>) {
        let entry = &self.commands[id];
        debug_assert_eq!(
            entry.answer.anatomy.total(),
            now.since(entry.submitted),
            "parts of {:?}: {:?}",
            entry.command,
            entry.answer.anatomy
        );
        debug_assert_eq!(entry.answer.at, now);
        // Copied directly to its destination, because `push` would copy it twice; and as a whole, because a wide load
        // directly after a narrow store stalls.
        done.extend_from_slice(core::slice::from_ref(&entry.answer));
        self.commands.remove(id);
        if let Some(slots) = &mut self.slots {
            slots.leave();
        }
    }

    /// Returns an outstanding command.
    #[inline]
    pub(super) fn command(&self, id: CommandId) -> &Command {
        &self.commands[id].command
    }

    /// Returns when a command was submitted.
    #[inline]
    pub(super) fn submitted(&self, id: CommandId) -> Time {
        self.commands[id].submitted
    }

    /// Whether the command that had this id and was submitted at that time has completed.
    #[inline]
    pub(super) fn answered(&self, id: CommandId, submitted: Time) -> bool {
        let now = self.commands.get(id);
        now.is_none_or(|command| command.submitted != submitted)
    }

    /// A command waits for one more piece.
    #[inline]
    pub(super) fn add_piece(&mut self, id: CommandId) {
        self.commands[id].left += 1;
    }

    /// A piece of a command is done; returns whether it was the last.
    #[inline]
    pub(super) fn piece_done(&mut self, id: CommandId) -> bool {
        self.commands[id].piece_done()
    }

    /// Attributes a part of a command's time.
    #[inline]
    pub(super) fn explain(&mut self, id: CommandId, part: Part, lasted: Span) {
        self.commands[id].answer.anatomy.add(part, lasted);
    }

    /// Attributes the time of a command before its data arrived at the dies or the buffer.
    #[inline]
    pub(super) fn explain_way_down(&mut self, id: CommandId, dispatched: Time, arrived: Time) {
        let link = self.config.link_latency;
        self.commands[id].explain_way_down(link, dispatched, arrived);
    }

    /// Sends data of a read, a piece of the command, to the host. The piece that ends last determines the command's
    /// anatomy.
    #[inline(always)]
    pub(super) fn deliver(&mut self, now: Time, id: CommandId, bytes: u32, times: &Timeline) {
        let transfer = Span::per_bytes(self.config.link_ps_per_byte, u64::from(bytes));
        let at = self.link_out.book(now, transfer).1;
        let command = &mut self.commands[id];
        if !command.piece_done() {
            return;
        }
        let latency = self.config.read_latency;
        command.explain_way_down(self.config.link_latency, times.dispatched, times.dispatched);
        let answer = &mut command.answer;
        answer.at = at + latency;
        let anatomy = &mut answer.anatomy;
        if times.looked_up > Span::ZERO {
            // Time for reading the map from the medium is attributed to the medium.
            let way_down = anatomy.take(Part::Controller);
            anatomy.add(Part::Controller, way_down - times.looked_up);
            anatomy.add(Part::Medium, times.looked_up);
        }
        times.explain(anatomy, at);
        anatomy.add(Part::Controller, latency);
        self.next = self.next.min(at + latency);
        self.read_done.push(at + latency, id);
    }

    /// A command other than a read has nothing more to wait for.
    pub(super) fn finish_write(&mut self, now: Time, id: CommandId) {
        let mut latency = self.config.write_latency;
        if self.config.write_spread != Span::ZERO {
            latency += self.spread.exponential(self.config.write_spread);
        }
        self.explain(id, Part::Controller, latency);
        let at = now + latency;
        self.commands[id].answer.at = at;
        self.next = self.next.min(at);
        self.write_done.insert(at, id);
    }

    /// Attributes the time of a command up to `now`, when its last segment has been admitted to the buffer.
    pub(super) fn explain_admission(&mut self, now: Time, segment: &CommandSegment) {
        self.explain_way_down(segment.id, segment.dispatched, segment.at);
        self.explain(segment.id, Part::BufferFull, now.since(segment.at));
    }

    /// Completes a command whose last step was admission to the buffer.
    pub(super) fn acknowledge(&mut self, now: Time, segment: &CommandSegment) {
        self.explain_admission(now, segment);
        self.finish_write(now, segment.id);
    }

    /// A segment of a write with force unit access is in the buffer. The way of the last one determines the anatomy up
    /// to here; the medium's part follows later.
    pub(super) fn wait_for_medium(&mut self, now: Time, segment: &CommandSegment) {
        let command = &mut self.commands[segment.id];
        command.admitted = now;
        command.answer.anatomy = crate::anatomy::Anatomy::ZERO;
        self.explain_admission(now, segment);
    }

    /// A unit of a write with force unit access, which a die took at `since`, is on the medium. Returns whether it is
    /// the command's last.
    pub(super) fn unit_durable(&mut self, now: Time, id: CommandId, since: Time) -> bool {
        if !self.piece_done(id) {
            return false;
        }
        let admitted = self.commands[id].admitted;
        let began = since.max(admitted);
        self.explain(id, Part::BehindProgram, began.since(admitted));
        self.explain(id, Part::Medium, now.since(began));
        true
    }

    /// Old content that a write must merge before it is acknowledged has been read.
    pub(super) fn merged(&mut self, now: Time, id: CommandId, times: &Timeline) {
        if !self.piece_done(id) {
            return;
        }
        // The unit waited for space from its arrival at the buffer until the sense was queued.
        self.explain_way_down(id, times.dispatched, times.entered);
        let for_room = times.arrived.since(times.entered);
        self.explain(id, Part::BufferFull, for_room);
        times.explain(&mut self.commands[id].answer.anatomy, now);
        self.finish_write(now, id);
    }

    /// Books the controller for a sense beyond a command's first; returns when it leaves the controller.
    #[inline]
    pub(super) fn book_sense(&mut self, now: Time) -> Time {
        self.controller.book(now, self.config.per_further_sense()).1
    }

    /// The first sense of a command, from this segment, is wanted; returns when its core has processed it.
    #[inline]
    pub(super) fn book_core(&mut self, now: Time, segment: &CommandSegment) -> Time {
        match &mut self.cores {
            Some(cores) if self.commands[segment.id].command.offset == segment.offset => {
                cores.book(now, segment.offset)
            }
            _ => now,
        }
    }

    /// Returns when the controller becomes idle.
    #[inline]
    pub(super) fn controller_free_at(&self) -> Time {
        self.controller.free_at()
    }

    /// The firmware saves its tables: commands that have not left the controller wait, and so do later ones.
    pub(super) fn pause(&mut self, now: Time, length: Span) {
        self.intake.stop(now, length);
        self.link_in.stop(now, length);
        let left = now + self.config.link_latency;
        // A large one that has left may now come before small ones that would have overtaken it.
        self.writes.change(|at, segment| {
            if segment.dispatched > left {
                segment.dispatched += length;
                segment.at += length;
                *at = segment.at;
            }
        });
        self.find_next();
    }

    /// Returns the number of outstanding commands.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.commands.depth()
    }

    /// Returns when the last command arrived.
    #[inline]
    pub(super) fn last_command(&self) -> Time {
        self.last_command
    }

    pub(super) fn host_bytes(&self) -> HostBytes {
        self.bytes
    }

    /// Returns the busy time of the controller, or of its busiest core if that is longer.
    pub(super) fn controller_busy(&self, now: Time) -> Span {
        let cores = self.cores.as_ref();
        let busiest = cores.map_or(Span::ZERO, |cores| cores.busiest(now));
        self.controller.busy(now).max(busiest)
    }

    /// Returns the busy time of the busier direction of the link, in seconds.
    pub(super) fn link_busy(&self, now: Time) -> f64 {
        let out = self.link_out.busy(now);
        self.taken_in.seconds().max(out.seconds())
    }
}
