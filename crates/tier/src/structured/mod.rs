//! Log-structured storage: writes are acknowledged from a log, and reach the capacity child in full stripes.
//!
//! A write goes to one of the logs and is acknowledged when it is durable there. Its blocks of 4 KiB, compressed, then
//! fill a stripe in memory. A full stripe is written to a free place of the capacity child as a whole, so that a RAID 5
//! there never reads before it writes; then its part of the log is free. Blocks that are written again before their
//! stripe is full take no further space. A write of part of a block reads the block first, unless it is in memory.
//! Reads of blocks in memory use no drive. When few stripes are free, the stripe with the fewest live blocks among 4,096
//! is read, and its live blocks move to the stripe that is being filled. It is free when they are durable there.
//!
//! A write that needs more free stripes or more log than cleaning can ever free, in a small pool, is carried out in
//! parts, one after the other.
//!
//! Several nodes share the work. A log write crosses the network to each node with a copy, a stripe to each node with a
//! part of it, parity included. All nodes together are one set of cores and one link ([`trip`]). The default
//! settings are those of vSAN's Express Storage Architecture: see
//! `docs/decisions/0195-log-structured.md` for what is published.
//!
//! Models times only: such a pool is served with its data as that of one drive, and `prove` refuses it. Not modelled:
//! writes of whole stripes that bypass the log (vSAN 8 U1), and the traffic of the tables beyond one log record per
//! stripe. Snapshots, deduplication and the time of recovery are not modelled either.

mod config;
mod records;
mod space;
mod stripes;
mod trip;

#[cfg(test)]
mod durable;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use config::{LogStructuredConfig, StructuredNodes};

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Status};
use model::device::{Gauge, Gauges, Range};
use model::engine::{EventPayload, Slab, TypedEventQueue};
use model::time::{Span, Time};

use self::space::StripeSpace;
use self::trip::{ChildTrip, TripPurpose};
use super::cluster::servers::{NodeCores, Port};
use super::{Child, Network, Tier, TierContext};

const CAPACITY: Child = 0;
/// Bytes of a block, the unit of compression and of placement.
const BLOCK: u64 = 4096;
/// Bytes of the header of each write in the log.
const HEADER: u64 = 512;
/// Maximum number of logs.
const MOST_LOGS: u16 = 32;
/// Number of free stripes that only cleaning may use.
const RESERVED: u32 = 2;
/// Maximum number of stripes that are being cleaned.
const MOST_CLEANED: u32 = 4;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StructuredEvent {
    /// The owner's node has worked on this request.
    Request(u32),
    /// This trip continues.
    Trip(u32),
}

/// Set in the payload of a request's event.
const REQUEST: u32 = 1 << 31;

impl EventPayload for StructuredEvent {
    fn pack(self) -> u32 {
        match self {
            StructuredEvent::Request(number) => REQUEST | number,
            StructuredEvent::Trip(number) => number,
        }
    }

    fn unpack(packed: u32) -> StructuredEvent {
        match packed & REQUEST {
            0 => StructuredEvent::Trip(packed),
            _ => StructuredEvent::Request(packed & !REQUEST),
        }
    }
}

/// A client's command.
#[derive(Clone, Copy, Debug)]
struct StructuredRequest {
    command: Command,
    /// Time up to which its anatomy is complete.
    since: Time,
    anatomy: Anatomy,
    status: Status,
    /// Number of parts that it waits for.
    left: u32,
    /// Bytes of a large write that follow those of `command`.
    rest: u32,
}

/// A log device: its size, its next position, and its writes in flight.
#[derive(Clone, Copy, Debug)]
struct LogDevice {
    bytes: u64,
    /// Position of the next record.
    next: u64,
    in_flight: u16,
    /// Whether it failed a write: it is not used until it returns.
    broken: bool,
}

/// A stripe in memory.
#[derive(Clone, Copy, Debug)]
struct StripeInMemory {
    stripe: u32,
    used: u32,
    /// The first position of all logs at which one of its blocks is logged.
    from: u64,
}

/// Bytes since the start.
#[derive(Clone, Copy, Debug, Default)]
struct StructuredCounts {
    logged: u64,
    written: u64,
    absorbed: u64,
    hit: u64,
    missed: u64,
}

/// Log-structured storage over its children.
#[derive(Clone, Debug)]
pub struct LogStructured {
    config: LogStructuredConfig,
    /// Network with the links of all nodes together.
    network: Network,
    logs: Vec<LogDevice>,
    log_bytes: u64,
    /// The log that is used next.
    turn: usize,
    cores: NodeCores,
    leaving: Port,
    arriving: Port,
    requests: Slab<StructuredRequest>,
    trips: Slab<ChildTrip>,
    stripes: Slab<StripeInMemory>,
    events: TypedEventQueue<StructuredEvent>,
    space: StripeSpace,
    /// Writes that wait for memory, log or free stripes, and admitted ones that wait for a log.
    held: VecDeque<u32>,
    pending: VecDeque<u32>,
    /// Stripe that is being filled, and the number of stripes being written.
    open: Option<u32>,
    writing: u32,
    /// Number of stripes that are being cleaned, and of free stripes that a held write needs.
    cleaning: u32,
    wanted: u32,
    /// Entries of stripes in memory, each with a cleaned stripe from which blocks were moved to it.
    moved: Vec<(u32, u32)>,
    /// Blocks of admitted writes that are in no stripe yet, and the bytes that these writes may take in the log.
    admitted: u64,
    expected: u64,
    /// Position of the next record in all logs, and the positions of records in flight and of stripes in memory.
    head: u64,
    tail: u64,
    positions: Vec<u64>,
    /// Error status of a failed write to the capacity child: later writes are rejected with it.
    failed: Option<Status>,
    counts: StructuredCounts,
    spare: Vec<Vec<u32>>,
    /// Maximum number of blocks of a write that is admitted as a whole.
    most_blocks: u64,
}

impl LogStructured {
    fn new(config: &LogStructuredConfig, children: &[u64]) -> LogStructured {
        use super::TierSettings;
        let capacity = children.first().copied().unwrap_or(0);
        let blocks = config.capacity(children) / BLOCK;
        let nodes = &config.nodes;
        let log = |&bytes: &u64| LogDevice {
            bytes: bytes / BLOCK * BLOCK,
            next: 0,
            in_flight: 0,
            broken: false,
        };
        let logs: Vec<LogDevice> = children.iter().skip(1).map(log).collect();
        let least = logs.iter().map(|log| log.bytes).min().unwrap_or(0);
        let ps = nodes.network.ps_per_byte / u64::from(nodes.count.max(1));
        let mut tier = LogStructured {
            network: Network {
                ps_per_byte: ps,
                ..nodes.network.clone()
            },
            log_bytes: least * logs.len() as u64,
            logs,
            turn: 0,
            cores: NodeCores::new(nodes.node.cores.saturating_mul(nodes.count)),
            leaving: Port::default(),
            arriving: Port::default(),
            requests: Slab::default(),
            trips: Slab::default(),
            stripes: Slab::default(),
            events: TypedEventQueue::default(),
            space: StripeSpace::new(
                config.stripes(capacity),
                config.per(),
                blocks,
                config.filled,
            ),
            held: VecDeque::new(),
            pending: VecDeque::new(),
            open: None,
            writing: 0,
            cleaning: 0,
            wanted: 0,
            moved: Vec::new(),
            admitted: 0,
            expected: 0,
            head: 0,
            tail: 0,
            positions: Vec::new(),
            failed: None,
            counts: StructuredCounts::default(),
            spare: Vec::new(),
            most_blocks: 0,
            config: config.clone(),
        };
        tier.most_blocks = tier.most_at_once(blocks);
        tier
    }

    /// Returns the maximum number of blocks of a write for which cleaning can always make space. The client's blocks
    /// fill all stripes but these, and one more may be partly filled.
    fn most_at_once(&self, blocks: u64) -> u64 {
        let per = u64::from(self.space.per());
        let used = blocks.div_ceil(per) + 1 + u64::from(RESERVED);
        let stripes = u64::from(self.space.stripes()).saturating_sub(used);
        let log = self.log_bytes.saturating_sub(self.slack() + HEADER);
        (stripes * per)
            .min(log / u64::from(self.config.stored))
            .max(1)
    }

    /// Attributes the time up to now to this part.
    fn spend(&mut self, now: Time, request: u32, part: Part) {
        let own = &mut self.requests[request];
        own.anatomy.add(part, now.since(own.since));
        own.since = now;
    }

    /// Completes a request, or holds it for its next part.
    fn finish<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let own = &mut self.requests[request];
        if own.rest > 0 && own.status == Status::Success {
            own.command.offset = own.command.end();
            own.command.bytes = core::mem::take(&mut own.rest);
            return self.hold(request);
        }
        way.finish(own.command.id, own.status, own.anatomy);
        self.requests.release(request);
    }

    /// Returns the CPU time of the owner's node for a command.
    fn owner_work(&self, command: &Command) -> Span {
        let node = &self.config.nodes.node;
        let bytes = u64::from(command.bytes);
        let data = match command.op {
            Op::Write => node.data(bytes) + Span::per_bytes(self.config.compress_ps, bytes),
            Op::Read => Span::per_bytes(self.config.decompress_ps, bytes),
            _ => Span::ZERO,
        };
        node.client + node.owner + data
    }

    /// Returns the blocks of a command that get data, and those that lose theirs. Zeroes of part of a block are data.
    fn blocks(command: &Command) -> (core::ops::Range<u64>, core::ops::Range<u64>) {
        let touched = command.offset / BLOCK..command.end().div_ceil(BLOCK);
        let whole = command.offset.div_ceil(BLOCK)..command.end() / BLOCK;
        match command.op {
            Op::Write => (touched, 0..0),
            Op::WriteZeroes if whole.is_empty() => (touched, 0..0),
            _ => (0..0, whole),
        }
    }

    /// Returns the number of blocks that a command stores.
    fn stored_blocks(command: &Command) -> u64 {
        let (data, _) = LogStructured::blocks(command);
        data.end - data.start
    }

    /// Returns the bytes of a command in the log.
    fn logged(&self, command: &Command) -> u64 {
        HEADER + LogStructured::stored_blocks(command) * u64::from(self.config.stored)
    }

    /// Lets a write wait for space; of a large write, only its first part.
    fn hold(&mut self, request: u32) {
        let own = &mut self.requests[request];
        let (data, _) = LogStructured::blocks(&own.command);
        if data.end - data.start > self.most_blocks {
            let end = (data.start + self.most_blocks) * BLOCK;
            let part = (end - own.command.offset) as u32;
            own.rest = own.command.bytes - part;
            own.command.bytes = part;
        }
        self.held.push_back(request);
    }

    /// The owner's node has worked on a request.
    fn dispatch<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        self.spend(now, request, Part::Tier);
        let command = self.requests[request].command;
        if command.op == Op::Read {
            self.requests[request].left = 1;
            self.read_blocks(now, request, command.offset..command.end(), way);
            return self.part_done(now, request, None, way);
        }
        let (data, trimmed) = LogStructured::blocks(&command);
        if data.is_empty() && trimmed.is_empty() {
            return self.finish(request, way);
        }
        self.hold(request);
        self.admit(now, way);
    }

    /// Reads the blocks of a range of bytes that are neither in memory nor without data; blocks that are adjacent in
    /// a stripe are read together.
    fn read_blocks<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        range: core::ops::Range<u64>,
        way: &mut W,
    ) {
        let stored = u64::from(self.config.stored);
        let mut block = range.start / BLOCK;
        let end = range.end.div_ceil(BLOCK);
        while block < end {
            let slot = self.space.slot(block);
            let on_drives = slot.filter(|&it| !self.space.is_in_memory(self.space.stripe_of(it)));
            let Some(first) = on_drives else {
                self.counts.hit += BLOCK;
                block += 1;
                continue;
            };
            let mut count = 1;
            while block + count < end
                && self.space.slot(block + count) == Some(first + count as u32)
                && self.space.stripe_of(first + count as u32) == self.space.stripe_of(first)
            {
                count += 1;
            }
            self.counts.missed += count * BLOCK;
            let stripe = self.space.stripe_of(first);
            let within = u64::from(first % self.space.per()) * stored;
            let begin = u64::from(stripe) * u64::from(self.config.stripe);
            let from = begin + within / BLOCK * BLOCK;
            let until = begin + (within + count * stored).next_multiple_of(BLOCK);
            self.requests[request].left += 1;
            self.travel(
                now,
                TripPurpose::Part(request),
                (CAPACITY, Op::Read),
                (
                    from,
                    until.min(begin + u64::from(self.config.stripe)) - from,
                ),
                1.0,
                way,
            );
            block += count;
        }
    }

    /// A part of a request has been read, or all parts have been sent.
    fn part_done<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        part: Option<(Status, Anatomy)>,
        way: &mut W,
    ) {
        let own = &mut self.requests[request];
        own.left -= 1;
        let last = match part {
            Some((status, anatomy)) => {
                if own.status == Status::Success {
                    own.status = status;
                }
                anatomy
            }
            None => Anatomy::ZERO,
        };
        if own.left > 0 {
            return;
        }
        own.anatomy.append(&last);
        own.since = now;
        if own.command.op == Op::Read {
            return self.finish(request, way);
        }
        if own.status != Status::Success {
            let command = own.command;
            self.admitted -= LogStructured::stored_blocks(&command);
            self.expected -= self.logged(&command);
            self.finish(request, way);
            return self.admit(now, way);
        }
        self.pending.push_back(request);
        self.start_records(now, way);
    }

    /// Admits held writes, in order, as long as there is space for them.
    fn admit<W: TierContext>(&mut self, now: Time, way: &mut W) {
        while let Some(&request) = self.held.front() {
            let command = self.requests[request].command;
            let no_log = self.has_no_log().then_some(Status::WriteFault);
            if let Some(status) = self.failed.or(no_log) {
                self.held.pop_front();
                self.spend(now, request, Part::Congestion);
                self.requests[request].status = status;
                self.finish(request, way);
                continue;
            }
            if !self.has_room(now, &command, way) {
                return;
            }
            self.held.pop_front();
            self.admitted += LogStructured::stored_blocks(&command);
            self.expected += self.logged(&command);
            self.spend(now, request, Part::Congestion);
            self.requests[request].left = 1;
            self.read_edges(now, request, way);
            self.part_done(now, request, None, way);
        }
    }

    /// Reads blocks that a write changes partly.
    fn read_edges<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        let (data, _) = LogStructured::blocks(&command);
        if data.is_empty() {
            return;
        }
        let edges = [data.start, data.end - 1];
        let count = if edges[0] == edges[1] { 1 } else { 2 };
        for &block in &edges[..count] {
            let (begin, end) = (block * BLOCK, (block + 1) * BLOCK);
            if command.offset > begin || command.end() < end {
                self.read_blocks(now, request, begin..end, way);
            }
        }
    }

    /// Whether there is memory, log and free stripes for a write.
    fn has_room<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) -> bool {
        let blocks = LogStructured::stored_blocks(command);
        let stripe = u64::from(self.config.stripe);
        let stripes = u64::from(self.writing) + u64::from(self.open.is_some());
        let memory = (self.admitted + blocks) * u64::from(self.config.stored) + stripes * stripe;
        if memory > self.config.memory && stripes > 0 {
            self.close_open_at_rest(now, way);
            return false;
        }
        let needed = self.expected + self.logged(command) + self.slack();
        if self.head - self.tail + needed > self.log_bytes {
            self.tail = self.positions.iter().copied().min().unwrap_or(self.head);
        }
        if self.head - self.tail + needed > self.log_bytes {
            self.close_open_at_rest(now, way);
            return false;
        }
        let stripes = (self.admitted + blocks).div_ceil(u64::from(self.space.per()));
        self.wanted = RESERVED.max(self.cleaning) + stripes as u32;
        if self.space.free() < self.wanted {
            self.clean(now, way);
            return false;
        }
        self.wanted = 0;
        true
    }

    /// Writes the stripe that is being filled if nothing else will fill it: it may be all that fills the memory or the
    /// logs of small pools.
    fn close_open_at_rest<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.writing == 0 && self.admitted == 0 && self.cleaning == 0 {
            self.close_open(now, way);
        }
    }

    /// Returns bytes of the logs that are kept free: records are rounded up to whole blocks, do not wrap around, and
    /// metadata follows each stripe.
    fn slack(&self) -> u64 {
        let records = self.logs.len() as u64 * u64::from(self.config.records_in_flight);
        let metadata = u64::from(self.config.metadata);
        (records * BLOCK + 4 * metadata + (1 << 20)).min(self.log_bytes / 2)
    }
}

impl Tier for LogStructured {
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        if command.op == Op::Flush {
            let status = self.failed.unwrap_or_default();
            return way.finish(command.id, status, Anatomy::ZERO);
        }
        let request = self.requests.insert(StructuredRequest {
            command: *command,
            since: now,
            anatomy: Anatomy::ZERO,
            status: Status::Success,
            left: 0,
            rest: 0,
        });
        let work = self.owner_work(command);
        let until = self.cores.book(now, work);
        match until > now {
            true => self.events.push(until, StructuredEvent::Request(request)),
            false => self.dispatch(now, request, way),
        }
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        self.returns(now, token, done, way);
    }

    fn due(&self) -> Time {
        self.events.next()
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        while let Some(event) = self.events.pop_due(now) {
            match event {
                StructuredEvent::Request(request) => self.dispatch(now, request, way),
                StructuredEvent::Trip(trip) => self.advance_trip(now, trip, way),
            }
        }
    }

    /// A log that responds again is used again: stripes have or will have the data that it lacks.
    fn returned<W: TierContext>(&mut self, _now: Time, child: Child, _way: &mut W) {
        if child != CAPACITY {
            self.logs[usize::from(child) - 1].broken = false;
        }
    }

    /// Acknowledged writes are durable: records and stripes are written with force unit access.
    fn at_risk(&self, _children: &[Vec<Range>], _ranges: &mut Vec<Range>) {}

    /// Stripes in memory are written again from the log, without delay. Children that failed are used again.
    fn power_cut(&mut self, now: Time) {
        self.requests = Slab::default();
        self.trips = Slab::default();
        self.stripes = Slab::default();
        self.events = TypedEventQueue::default();
        self.held.clear();
        self.pending.clear();
        self.open = None;
        (self.writing, self.cleaning, self.wanted) = (0, 0, 0);
        (self.admitted, self.expected) = (0, 0);
        self.positions.clear();
        self.moved.clear();
        self.tail = self.head;
        self.space.power_cut();
        for log in &mut self.logs {
            (log.in_flight, log.broken) = (0, false);
        }
        self.failed = None;
        self.cores.clear(now);
        self.leaving.clear(now);
        self.arriving.clear(now);
    }

    /// Power of the nodes without their drives, CPU time of their cores, and the bytes in memory.
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        let busy = self.cores.busy(now).seconds();
        let nodes = &self.config.nodes;
        let idle = nodes.node.idle_watts * f64::from(nodes.count);
        gauges.gauge(
            Gauge::EnergyJoules,
            idle * now.seconds() + nodes.node.core_watts * busy,
        );
        gauges.gauge(Gauge::HostCpuSeconds, busy);
        gauges.gauge(Gauge::LogBytesWritten, self.counts.logged as f64);
        gauges.gauge(Gauge::DestagedBytes, self.counts.written as f64);
        gauges.gauge(Gauge::AbsorbedBytes, self.counts.absorbed as f64);
        gauges.gauge(Gauge::HitBytes, self.counts.hit as f64);
        gauges.gauge(Gauge::MissBytes, self.counts.missed as f64);
        let open = self.open.map_or(0, |entry| self.stripes[entry].used);
        let stripes = u64::from(self.writing) * u64::from(self.config.stripe);
        let dirty = u64::from(open) * u64::from(self.config.stored) + stripes;
        gauges.gauge(Gauge::DirtyBytes, dirty as f64);
    }
}
