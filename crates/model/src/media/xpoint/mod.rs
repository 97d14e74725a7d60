//! 3D XPoint drives: data written in place, no erase, no garbage collection, no volatile cache.
//!
//! A command crosses the link and reaches the controller, which splits it into 4 KiB units and works on a limited
//! number of units at a time. Commands whose units do not fit wait in order. Each unit is striped over a die group,
//! with one die in each channel: a group is one server (group.rs), and there are as many groups as dies in a channel.
//! All units of reads and writes share the controller's data path (path.rs, table.rs). On drives with three or more
//! groups this path limits IOPS and MB/s, so capacity does not change speed. Two commands on one unit exclude each
//! other if one of them writes (locks.rs).
//!
//! A write that covers units only partly reads them first. It must have all of its data before it can merge, so
//! transfer and writing do not overlap. The pieces of a large unaligned write share units, so each piece waits for the
//! previous one. This is why unaligned large writes stop near 1.3 GB/s (S4-108).
//!
//! Some drives read parts of a unit separately: the data path transfers only the wanted parts, and for a command within
//! one unit the dies read no other parts. Writes always write whole units.
//!
//! A duplex drive has a controller front end and a data path for each direction, so that reads and writes do not delay
//! each other there; they share the dies.
//!
//! Constant delays (doorbell, fetch, completion entry) are one constant at submission: the position of a constant in a
//! chain of stations does not change any latency. Not modelled: commands interrupted by a power cut in the middle of a
//! unit. Temperature and FORMAT are in `management`. Sources: S1, S2 and S4 of the published figures; the structure is
//! inferred from them.

mod config;
mod gauges;
mod group;
mod limits;
mod locks;
mod medium;
mod path;
mod piece;
mod refreshed;
mod table;
mod writes;

#[cfg(test)]
pub(crate) mod tests;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::cold_path;

pub use config::{
    Levelling, MAX_GROUPS, MAX_TABLE_PLACES, Recovery, UNIT, Wear, XPointConfig, XPointPower,
    XPointRefresh, XPointTiming,
};

use crate::anatomy::Anatomy;
use crate::command::{Command, Completion, Status};
use crate::device::{Capacity, Device, Gauges, Range};
use crate::engine::{Agenda, Slab, Station};
use crate::time::Time;
use gauges::XPointCounts;
use group::{Role, Transit, Waits, XPointMedium, shuffled};
use limits::{Endurance, Governor};
use locks::Locks;
use path::DataPath;
use piece::{CommandPiece, PieceOwner, PieceWork, SplitRequest, work_of};
use refreshed::RefreshProgress;

/// An XPoint drive.
#[derive(Clone, Debug)]
pub struct XPoint {
    config: XPointConfig,
    requests: Slab<SplitRequest>,
    pieces: Slab<CommandPiece>,
    /// Writes delayed by write protection.
    held: Agenda<u32>,
    /// Controller front ends: a duplex drive has one for reads and one for writes; others use only the first.
    controllers: [Station; 2],
    /// Pieces in each front end, in the order in which they leave it.
    dispatching: [Agenda<u32>; 2],
    /// Units being worked on, of the pieces that have passed a front end.
    units_working: u32,
    /// Pieces that wait for slots of the controller, in order.
    waiting: VecDeque<u32>,
    /// Link for write data from the host.
    incoming: Station,
    /// Writes that wait for their data, in the order in which the data arrives.
    fetching: Agenda<u32>,
    medium: XPointMedium,
    /// Data paths: a duplex drive has one for reads and one for writes; others use only the first.
    paths: [DataPath; 2],
    locks: Locks,
    /// Pieces that wait for a unit, in order of arrival.
    blocked: Vec<u32>,
    sequence: u64,
    governor: Governor,
    endurance: Endurance,
    refreshed: RefreshProgress,
    /// Shifting a command's bytes right by this gives its blocks.
    block_shift: u32,
    /// Earliest event of all rings, and earliest event of the rings that reads of a non-duplex drive do not use.
    next: Time,
    beside: Time,
    counts: XPointCounts,
}

impl XPoint {
    /// Creates a drive; `seed` initialises the random times of its background work. The configuration must have no
    /// [`XPointConfig::problems`].
    pub fn new(config: XPointConfig, seed: u64) -> XPoint {
        assert_eq!(config.problems(), Vec::<String>::new());
        XPoint {
            requests: Slab::default(),
            pieces: Slab::default(),
            held: Agenda::with_capacity(0),
            controllers: [Station::default(), Station::default()],
            dispatching: [64, 0].map(Agenda::with_capacity),
            units_working: 0,
            waiting: VecDeque::with_capacity(64),
            incoming: Station::default(),
            fetching: Agenda::with_capacity(64),
            medium: XPointMedium::new(&config, seed),
            paths: DataPath::both(&config, seed),
            locks: Locks::new(),
            blocked: Vec::new(),
            sequence: 0,
            governor: Governor::new(&config),
            endurance: Endurance::new(&config),
            refreshed: RefreshProgress::new(&config),
            block_shift: config.block.trailing_zeros(),
            next: Time::NEVER,
            beside: Time::NEVER,
            counts: XPointCounts::default(),
            config,
        }
    }

    /// A piece arrives at the drive: write protection comes first.
    // Inlined: a piece that is stored field by field for a call and loaded immediately causes a stall (decision 0120).
    #[inline(always)]
    fn arrive(&mut self, now: Time, piece: CommandPiece) {
        let mut enter_at = now;
        if piece.writes() {
            enter_at = self.endurance.admit(now, piece.bytes);
        }
        let slot = self.pieces.insert(piece);
        if enter_at > now {
            cold_path();
            self.held.push(enter_at, slot);
            self.beside = self.beside.min(enter_at);
            self.next = self.next.min(enter_at);
        } else {
            self.enter(now, slot);
        }
    }

    /// A command that is longer than the largest transfer arrives at the drive.
    #[inline(never)]
    fn arrive_in_pieces(&mut self, now: Time, command: &Command, work: PieceWork) {
        let max = self.config.max_transfer;
        let pieces = command.bytes.div_ceil(max);
        let request = self.requests.insert(SplitRequest {
            id: command.id,
            left: pieces,
        });
        for index in 0..pieces {
            let skip = index * max;
            let bytes = (command.bytes - skip).min(max);
            let offset = command.offset.saturating_add(u64::from(skip));
            let piece = CommandPiece::new(PieceOwner::Request(request), work, offset, bytes, now);
            self.arrive(now, piece);
        }
    }

    /// Passes a piece through the governor and over the link into the controller's queue. The constant delay before the
    /// queue keeps the order, so the station is booked in order of arrival.
    #[inline(always)]
    fn enter(&mut self, now: Time, slot: u32) {
        let piece = &mut self.pieces[slot];
        let unread = piece.unread(&self.config);
        let governed = self.governor.admit(now, piece, unread);
        piece.throttled = now - piece.submitted + governed;
        let timing = &self.config.timing;
        let arrival = now + governed + timing.link;
        let blocks = (piece.bytes >> self.block_shift).max(1);
        let further = timing.further_block * u64::from(blocks - 1);
        let service = timing.controller_interval + further;
        let side = usize::from(timing.duplex && piece.writes());
        let (waited, _) = self.controllers[side].book(arrival, service);
        let at = arrival + waited + timing.controller + further;
        self.dispatching[side].push(at, slot);
        if side == 1 {
            cold_path();
            self.beside = self.beside.min(at);
        }
        self.next = self.next.min(at);
    }

    /// The controller has decoded a piece.
    #[inline(always)]
    fn dispatch(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        let piece = &mut self.pieces[slot];
        let side = usize::from(self.config.timing.duplex && piece.writes());
        self.counts.dispatched[side] += 1;
        self.counts.last_dispatch[side] = now;
        piece.dispatched = now;
        if piece.work == PieceWork::Answer {
            cold_path();
            self.answer(now, slot, done);
        } else if self.waiting.is_empty() && self.has_room(slot) {
            self.work_on(now, slot);
        } else {
            self.waiting.push_back(slot);
        }
    }

    /// The controller completes a piece by itself.
    #[inline(never)]
    fn answer(&mut self, now: Time, slot: u32, done: &mut Vec<Completion>) {
        self.complete(now, slot, &Waits::default(), done);
    }

    /// Whether the controller can work on a piece in addition to its current ones: each unit takes one slot. A piece
    /// with more units than there are slots is worked on alone.
    #[inline]
    fn has_room(&self, slot: u32) -> bool {
        let units = self.units_working + self.pieces[slot].units;
        units <= self.config.timing.controller_slots || self.units_working == 0
    }

    /// A piece has obtained one controller slot per unit.
    #[inline(always)]
    fn work_on(&mut self, now: Time, slot: u32) {
        self.sequence += 1;
        let piece = &mut self.pieces[slot];
        piece.dispatched = now;
        piece.sequence = self.sequence;
        self.units_working += piece.units;
        if self.locks.add(&mut self.pieces, slot) {
            cold_path();
            self.blocked.push(slot);
        } else {
            self.start(now, slot);
        }
    }

    /// A piece has obtained the locks of its units.
    #[inline(always)]
    fn start(&mut self, now: Time, slot: u32) {
        let piece = &mut self.pieces[slot];
        piece.started = now;
        piece.streamed = now;
        let work = piece.work;
        if work == PieceWork::Read {
            let (first, units, uncovered) = (piece.first_unit, piece.units, piece.uncovered);
            let unread = piece.unread(&self.config);
            self.counts.bytes_read += u64::from(units) * u64::from(UNIT) - u64::from(unread);
            for unit in 0..units {
                let role = if unit == 0 && uncovered[0] > 0 {
                    Role::ReadFirst
                } else if unit + 1 == units && uncovered[1] > 0 {
                    Role::ReadLast
                } else {
                    Role::Read
                };
                self.send_to_medium(now, slot, first + unit, role, unread);
            }
        } else {
            self.start_write(now, slot);
        }
    }

    #[inline]
    fn send_to_medium(&mut self, now: Time, slot: u32, unit: u32, role: Role, spared: u16) {
        let transit = self.transit(now, slot, unit, role);
        self.medium.book(now, transit, spared);
    }

    /// Returns the transit of a unit, with its location. Each run of consecutive units, as long as the number of
    /// groups, covers all groups. The order differs from run to run, as wear levelling leaves it, so no stride of
    /// addresses uses one group only.
    #[inline]
    fn transit(&self, now: Time, piece: u32, unit: u32, role: Role) -> Transit {
        Transit {
            at: now,
            piece,
            group: shuffled(unit, self.medium.groups()),
            hash: (unit.wrapping_mul(0x9e37_79b1) >> 16) as u16,
            role,
            waits: Waits::default(),
        }
    }

    /// A die group has finished a unit.
    #[inline(always)]
    fn medium_done(&mut self, now: Time, transit: Transit, done: &mut Vec<Completion>) {
        let unwanted = match transit.role {
            Role::Read => 0,
            Role::ReadFirst => self.pieces[transit.piece].uncovered[0],
            Role::ReadLast => self.pieces[transit.piece].uncovered[1],
            // Data to be merged stays in the group's buffer.
            Role::Merge => return self.got(now, transit.piece, transit.waits),
            Role::Write => return self.unit_written(now, &transit, done),
        };
        self.paths[0].arrive(now, transit, unwanted);
    }

    /// The data path has transferred a unit.
    #[inline(always)]
    fn path_done(&mut self, now: Time, transit: Transit, done: &mut Vec<Completion>) {
        match transit.role {
            Role::Read | Role::ReadFirst | Role::ReadLast => self.unit_done(now, &transit, done),
            Role::Merge => debug_assert!(false, "nothing is merged on the data path"),
            Role::Write => self.write_to_medium(now, transit),
        }
    }

    #[inline(always)]
    fn unit_done(&mut self, now: Time, transit: &Transit, done: &mut Vec<Completion>) {
        let piece = &mut self.pieces[transit.piece];
        piece.remaining -= 1;
        if piece.remaining > 0 {
            return;
        }
        piece.sequence = 0;
        self.units_working -= piece.units;
        if piece.work == PieceWork::Read {
            self.paths[0].complete_read(now);
        }
        self.locks.remove(&mut self.pieces, transit.piece);
        self.complete(now, transit.piece, &transit.waits, done);
        if !self.blocked.is_empty() {
            cold_path();
            self.unblock(now);
        }
        if !self.waiting.is_empty() {
            self.go_on_with_waiting(now);
        }
    }

    /// Slots of the controller have become free.
    #[inline(never)]
    fn go_on_with_waiting(&mut self, now: Time) {
        while let Some(&slot) = self.waiting.front()
            && self.has_room(slot)
        {
            self.waiting.pop_front();
            self.work_on(now, slot);
        }
    }

    /// Starts the blocked pieces whose units have become free.
    #[inline(never)]
    fn unblock(&mut self, now: Time) {
        let mut index = 0;
        while index < self.blocked.len() {
            let slot = self.blocked[index];
            if self.locks.conflicts(&self.pieces, &self.pieces[slot]) {
                index += 1;
            } else {
                self.blocked.remove(index);
                self.start(now, slot);
            }
        }
    }

    #[inline(always)]
    fn complete(&mut self, now: Time, slot: u32, last: &Waits, done: &mut Vec<Completion>) {
        self.pieces.release(slot);
        let piece = &self.pieces[slot];
        let (id, status) = match piece.of {
            PieceOwner::Command(id, status) => (id, status),
            PieceOwner::Request(slot) => {
                let request = &mut self.requests[slot];
                request.left -= 1;
                if request.left > 0 {
                    return;
                }
                let id = request.id;
                self.requests.release(slot);
                (id, Status::Success)
            }
        };
        self.counts.in_flight -= 1;
        done.push(Completion {
            id,
            at: now,
            status,
            anatomy: Anatomy::ZERO,
        });
        if let Some(completion) = done.last_mut() {
            piece.explain(&self.config, last, now, &mut completion.anatomy);
        }
    }

    /// Processes one round of the events due at `now`. The front end and the path of every drive, which serve reads,
    /// are compiled into this function; rarer cases are called (decision 0120).
    #[inline(always)]
    fn round(&mut self, now: Time, done: &mut Vec<Completion>) {
        self.moved(0, now, done);
        if self.beside == now {
            self.moved_beside(now, done);
        }
        while self.medium.next() == now {
            let transit = self.medium.take(now);
            self.medium_done(now, transit, done);
        }
        if self.beside == now {
            self.fetched(now);
        }
        self.decoded(0, now, done);
        if self.beside == now {
            self.decoded_beside(now, done);
        }
    }

    /// Processes the units that a data path has transferred by `now`.
    #[inline(always)]
    fn moved(&mut self, side: usize, now: Time, done: &mut Vec<Completion>) {
        while self.paths[side].next() == now {
            let transit = self.paths[side].take(now);
            self.path_done(now, transit, done);
        }
    }

    /// Processes the second path of a duplex drive.
    #[inline(never)]
    fn moved_beside(&mut self, now: Time, done: &mut Vec<Completion>) {
        self.moved(1, now, done);
        self.beside = self.first_beside();
    }

    /// Data of writes has arrived.
    #[inline(never)]
    fn fetched(&mut self, now: Time) {
        while let Some(slot) = self.fetching.pop_due(now) {
            self.got(now, slot, Waits::default());
        }
        self.beside = self.first_beside();
    }

    /// Processes the pieces that a front end has decoded by `now`.
    #[inline(always)]
    fn decoded(&mut self, side: usize, now: Time, done: &mut Vec<Completion>) {
        while let Some(slot) = self.dispatching[side].pop_due(now) {
            self.dispatch(now, slot, done);
        }
    }

    /// Processes the second front end of a duplex drive, and releases writes delayed by write protection.
    #[inline(never)]
    fn decoded_beside(&mut self, now: Time, done: &mut Vec<Completion>) {
        self.decoded(1, now, done);
        while let Some(slot) = self.held.pop_due(now) {
            self.enter(now, slot);
        }
        self.beside = self.first_beside();
    }

    #[inline]
    fn first_event(&self) -> Time {
        debug_assert_eq!(self.beside, self.first_beside());
        let stations = self.paths[0].next().min(self.medium.next());
        stations.min(self.dispatching[0].next()).min(self.beside)
    }

    /// Returns the earliest event of the rings that reads of a non-duplex drive do not use.
    fn first_beside(&self) -> Time {
        let duplex = self.paths[1].next().min(self.dispatching[1].next());
        duplex.min(self.fetching.next()).min(self.held.next())
    }
}

impl Device for XPoint {
    fn capacity(&self) -> Capacity {
        Capacity {
            bytes: self.config.bytes,
            block: self.config.block,
        }
    }

    #[inline(always)]
    fn submit(&mut self, now: Time, command: Command) {
        let (work, status) = work_of(command.op, command.fits(self.config.bytes), command.bytes);
        match work {
            PieceWork::Read => self.counts.host_read += u64::from(command.bytes),
            PieceWork::Write => self.counts.host_written += u64::from(command.bytes),
            PieceWork::Answer | PieceWork::Zeroes => {}
        }
        self.counts.in_flight += 1;
        let max = self.config.max_transfer;
        if command.bytes > max && work != PieceWork::Answer {
            cold_path();
            return self.arrive_in_pieces(now, &command, work);
        }
        // The case of nearly all commands: the piece is built in its final location.
        let of = PieceOwner::Command(command.id, status);
        let bytes = command.bytes.min(max);
        self.arrive(now, CommandPiece::new(of, work, command.offset, bytes, now));
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.next
    }

    #[inline(always)]
    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        // A second round for one moment is needed only if stations take no time.
        loop {
            self.round(now, done);
            self.next = self.first_event();
            if self.next > now {
                if self.next >= horizon || !done.is_empty() {
                    return now;
                }
                now = self.next;
            }
        }
    }

    /// Acknowledged data is on the medium. A unit that was being written has old or new data.
    fn power_cut(&mut self, now: Time, _lost: &mut Vec<Range>) -> Time {
        self.requests = Slab::default();
        self.pieces = Slab::default();
        self.held.clear();
        for side in 0..2 {
            self.controllers[side].clear(now);
            self.dispatching[side].clear();
            self.paths[side].clear(now);
        }
        self.units_working = 0;
        self.waiting.clear();
        self.incoming.clear(now);
        self.fetching.clear();
        self.medium.clear(now);
        self.locks = Locks::new();
        self.blocked.clear();
        self.next = Time::NEVER;
        self.beside = Time::NEVER;
        self.counts.in_flight = 0;
        now
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.report(now, gauges);
    }
}
