//! Intent log: writes are acknowledged from memory; data that must be durable at once goes to a log; all data goes to
//! the main pool in transaction groups, copy-on-write, as in ZFS.
//!
//! A volume is one object, like a zvol: a commit (a flush, or a write with force unit access) logs all its unlogged
//! writes. Dirty records are in memory. A partial write of a record that is not in memory first reads it from the main
//! pool. Writes are delayed above 60 % of the maximum of dirty bytes, and wait at 100 %.
//!
//! If the pool has data, records, tables, roots and log blocks are stored with their content ([`layout`]). After a
//! crash, the log is read from the last group on the main pool up to its first gap ([`recover`]), which takes no
//! virtual time.
//!
//! With compression, a record takes less space on the main pool; times only, because the stored data is the client's.
//!
//! Not modelled: compression of log blocks, the cost of checksums, and the ARC (a read hits only recently written data).
//! Several volumes that share a group and the partial records of a trim (unchanged, as in a zvol) are not modelled
//! either. Source: the behaviour of OpenZFS at be7657e according to its documentation (zfs.4, zfsprops.7) and the
//! comments in its sources. No published measurement of the software's CPU time states its hardware, so it is a setting.

mod blocks;
mod chain;
mod commit;
mod config;
mod group;
mod layout;
mod queue;
mod records;
mod recover;
mod replay;
mod request;
mod room;
mod tables;
mod trim;

#[cfg(test)]
mod tests;

pub use config::{IntentLogConfig, LogCpu, LogScale, Logbias, SyncPolicy};
pub use trim::Autotrim;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Payload, Status};
use model::data::{Buffers, Unreadable};
use model::device::{Gauge, Gauges, Range};
use model::engine::{EventQueue, Slab};
use model::time::{Span, Time};

use self::commit::Issuer;
use self::group::Groups;
use self::layout::{LogContent, LogContinuation};
use self::queue::{ChildQueue, Urgency, bulk_limit};
use self::records::Records;
use self::request::{LogRequest, Wait};
use self::room::{BlockRing, SlotAllocator};
use self::tables::RecordTables;
use self::trim::Trims;
use super::offline::ChildImages;
use super::planted::{self, Bug};
use super::{Child, Tier, TierContext};

const MAIN: Child = 0;

/// Scheduled event, with the number of its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogEvent {
    /// The software has worked on a request: read, write, delay, commit.
    Read(u32),
    Enter(u32),
    Delayed(u32),
    Commit(u32),
    /// A block has waited for other commits for the maximum time.
    Waited(u32),
    /// The software has prepared a block.
    Issue(u32),
    /// A transaction group has reached its maximum age.
    Group,
}

impl LogEvent {
    /// Number of low bits that contain the number.
    const BITS: u32 = 28;

    fn pack(self) -> u32 {
        let (kind, number) = match self {
            LogEvent::Read(number) => (0, number),
            LogEvent::Enter(number) => (1, number),
            LogEvent::Delayed(number) => (2, number),
            LogEvent::Commit(number) => (3, number),
            LogEvent::Waited(number) => (4, number),
            LogEvent::Issue(number) => (5, number),
            LogEvent::Group => (6, 0),
        };
        debug_assert!(number < 1 << LogEvent::BITS);
        kind << LogEvent::BITS | number
    }

    fn unpack(packed: u32) -> LogEvent {
        let number = packed & ((1 << LogEvent::BITS) - 1);
        match packed >> LogEvent::BITS {
            0 => LogEvent::Read(number),
            1 => LogEvent::Enter(number),
            2 => LogEvent::Delayed(number),
            3 => LogEvent::Commit(number),
            4 => LogEvent::Waited(number),
            5 => LogEvent::Issue(number),
            _ => LogEvent::Group,
        }
    }
}

/// Purpose of a command to a child.
#[derive(Clone, Copy, Debug)]
enum LogPurpose {
    /// A record is read because part of it will be written.
    Fill {
        handle: u32,
    },
    /// A part of a client's read: this number of records, starting with this one, which was in this slot.
    Read {
        request: u32,
        first: u32,
        slot: u32,
        count: u32,
    },
    /// A log block, a record that it references, or their flush.
    Block {
        block: u32,
    },
    Early {
        block: u32,
    },
    BlockFlush {
        block: u32,
    },
    /// This number of records of the group being written, starting with this one.
    Run {
        first: u32,
        count: u32,
    },
    /// Other commands of the group: its tables, flushes and the root.
    Group,
    /// Freed space is trimmed, starting with this slot.
    Trim {
        first: u32,
    },
}

/// A command that is outstanding at a child, or queued for it.
#[derive(Clone, Copy, Debug)]
struct LogCommand {
    what: LogPurpose,
    child: Child,
    urgency: Option<Urgency>,
    /// Buffer of its data, unless it belongs to a log block; for a single record, the buffer lent by the record.
    payload: Payload,
    /// For a log block or a record that it references, the group that was open; for a read, the current turn of `SlotAllocator`.
    since: u64,
}

/// A write that is not logged yet.
#[derive(Clone, Copy, Debug)]
struct UnloggedWrite {
    offset: u64,
    bytes: u32,
    content: LogContent,
    group: u64,
    /// For a reference: slot on the main pool, and checksum.
    slot: u32,
    sum: u32,
}

/// Identity of the volume, and its epoch: each start begins a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct LogEpoch {
    pool: u128,
    epoch: u32,
}

/// An intent log over its children.
#[derive(Clone, Debug)]
pub struct IntentLog {
    config: IntentLogConfig,
    record: u64,
    /// Bytes of a slot of the main pool: of a record as it is stored.
    slot: u64,
    dirty_max: u64,
    /// Maximum bytes of a write that is carried out as a whole, in whole records.
    most_bytes: u64,
    dirty: u64,
    events: EventQueue,
    requests: Slab<LogRequest>,
    waits: Slab<Wait>,
    records: Records,
    room: SlotAllocator,
    /// Rings of the log devices: child 1 is the first.
    rings: Vec<BlockRing>,
    queues: Vec<ChildQueue>,
    asked: Slab<LogCommand>,
    /// Writes that wait until dirty bytes are below the maximum.
    held: VecDeque<u32>,
    /// When the last delayed write continues.
    wakeup: Time,
    unlogged: VecDeque<UnloggedWrite>,
    issuer: Issuer,
    groups: Groups,
    trims: Trims,
    tables: RecordTables,
    life: LogEpoch,
    /// By log device: epoch of its label.
    labelled: Vec<u32>,
    /// A write of a group to the main pool failed, or durable data is missing: no further writes are acknowledged.
    suspended: bool,
    log_bytes: u64,
    /// Number of blocks that did not fit on a log device.
    full_blocks: u64,
    hit: u64,
    missed: u64,
    cpu: Span,
}

/// Returns the breakdown of a time `took` that includes a child's command with this anatomy: the rest is attributed to
/// this tier, and an excess of the anatomy was before that time.
fn tier_anatomy(anatomy: &Anatomy, took: Span) -> Anatomy {
    let total = anatomy.total();
    if total > took {
        return anatomy.last(took);
    }
    let mut whole = *anatomy;
    whole.add(Part::Tier, took - total);
    whole
}

impl IntentLog {
    fn new(config: &IntentLogConfig, children: &[u64]) -> IntentLog {
        let record = u64::from(config.record);
        let count = config.size / record;
        let slot = u64::from(config.stored());
        let slots = (children[0] / slot) as u32;
        IntentLog {
            record,
            slot,
            dirty_max: config.dirty_max(),
            most_bytes: (config.dirty_max() / record).max(1) * record,
            dirty: 0,
            events: EventQueue::default(),
            requests: Slab::default(),
            waits: Slab::default(),
            records: Records::new(count, config.ram / 2 / record),
            room: SlotAllocator::new(slots, layout::root_slots(slot), count, config.filled),
            rings: children[1..]
                .iter()
                .map(|&bytes| BlockRing::new(layout::ring_bytes(bytes)))
                .collect(),
            tables: RecordTables::new(count, slot, slots, config.scale.level_bits),
            life: LogEpoch::default(),
            labelled: alloc::vec![0; children.len() - 1],
            queues: alloc::vec![ChildQueue::default(); children.len()],
            asked: Slab::default(),
            held: VecDeque::new(),
            wakeup: Time::ZERO,
            unlogged: VecDeque::new(),
            issuer: Issuer::default(),
            groups: Groups::default(),
            trims: Trims::default(),
            suspended: false,
            log_bytes: 0,
            full_blocks: 0,
            hit: 0,
            missed: 0,
            cpu: Span::ZERO,
            config: config.clone(),
        }
    }

    fn schedule(&mut self, at: Time, due: LogEvent) {
        self.events.push(at, due.pack());
    }

    /// The software starts work; schedules its end.
    fn work(&mut self, now: Time, takes: Span, due: LogEvent) {
        self.cpu += takes;
        self.schedule(now + takes, due);
    }

    /// Sends a command to a child, or queues it if its kind is limited.
    fn send<W: TierContext>(
        &mut self,
        (child, what): (Child, LogPurpose),
        urgency: Option<Urgency>,
        command: Command,
        way: &mut W,
    ) {
        let (since, payload) = match what {
            LogPurpose::Block { .. } => (self.groups.sends(), Payload::default()),
            LogPurpose::Early { .. } => (self.groups.sends(), command.payload),
            LogPurpose::Fill { .. } | LogPurpose::Read { .. } => {
                (self.room.reads(), command.payload)
            }
            _ => (0, command.payload),
        };
        let token = self.asked.insert(LogCommand {
            what,
            child,
            urgency,
            payload,
            since,
        });
        match urgency {
            None => way.send(child, token, command),
            Some(urgency) => {
                self.queues[usize::from(child)].push(urgency, token, command);
                self.pump(child, way);
            }
        }
    }

    /// Sends queued commands of a child, as far as limits allow.
    fn pump<W: TierContext>(&mut self, child: Child, way: &mut W) {
        let limit = bulk_limit(self.dirty, self.dirty_max);
        let lanes = if child == MAIN { self.config.lanes } else { 1 };
        while let Some((token, command)) =
            self.queues[usize::from(child)].pop(u32::from(lanes), limit)
        {
            way.send(child, token, command);
        }
    }

    /// The number of dirty bytes has changed, and with it the limit of commands in flight.
    fn pump_all<W: TierContext>(&mut self, way: &mut W) {
        for child in 0..self.queues.len() {
            self.pump(child as Child, way);
        }
    }

    /// Returns the current position of the log.
    fn onward(&self) -> LogContinuation {
        LogContinuation {
            number: self.issuer.last + 1,
            previous: self.issuer.previous,
            heads: self.rings.iter().map(BlockRing::head).collect(),
            main: self.groups.next_on_main(),
            cursor: self.room.cursor(),
        }
    }

    /// Checks whether a log device is unused because it failed or was absent: synced writes go to the other logs or to the
    /// main pool. A device that has returned may still reject writes: it counts as used after a block is durable on it.
    /// `log` counts from 0.
    pub fn is_unused(&self, log: usize) -> bool {
        let is_unused = |ring: &BlockRing| ring.broken || ring.untried;
        self.rings.get(log).is_some_and(is_unused)
    }

    /// Returns the ranges that a power cut now would lose.
    fn at_risk_ranges(&self) -> impl Iterator<Item = Range> {
        let in_blocks = self.issuer.carried();
        let range = |it: &UnloggedWrite| Range {
            offset: it.offset,
            bytes: u64::from(it.bytes),
        };
        self.unlogged
            .iter()
            .chain(in_blocks)
            .filter(|it| it.content != LogContent::Zeroes && it.group > self.groups.synced)
            .map(range)
    }
}

impl Tier for IntentLog {
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        self.begin(now, command, way);
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let LogCommand {
            what,
            child,
            urgency,
            payload,
            since,
        } = self.asked[token];
        self.asked[token].payload = Payload::default();
        self.asked.release(token);
        if let Some(urgency) = urgency {
            self.queues[usize::from(child)].done(urgency);
        }
        let good = done.status == Status::Success;
        match what {
            LogPurpose::Fill { handle } => self.filled(now, handle, (done, payload), way),
            LogPurpose::Read {
                request,
                first,
                slot,
                count,
            } => self.part_read(now, request, (first, slot, count, payload), done, way),
            LogPurpose::Block { block } => {
                self.block_written(now, (block, child), done, way);
                self.has_sent(now, since, true, way);
            }
            LogPurpose::Early { block } => {
                way.buffers().release(payload);
                if !planted::has(Bug::NamesUnwritten) {
                    self.block_written(now, (block, MAIN), done, way);
                }
                self.has_sent(now, since, good, way);
            }
            LogPurpose::BlockFlush { block } => self.block_flushed(now, (block, child), done, way),
            LogPurpose::Run { first, count } => {
                self.run_written((first, count), (good, payload), way);
                self.group_goes_on(now, good, way);
            }
            LogPurpose::Group => {
                way.buffers().release(payload);
                self.group_goes_on(now, good, way);
            }
            LogPurpose::Trim { .. } => {}
        }
        if let LogPurpose::Trim { first } = what {
            self.trimmed(first, way);
            self.release_held(now, way);
        }
        if matches!(what, LogPurpose::Fill { .. } | LogPurpose::Read { .. }) {
            self.room.has_read(since);
            self.release_held(now, way);
        }
        if urgency.is_some() {
            self.pump(child, way);
        }
    }

    fn due(&self) -> Time {
        self.events.next()
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        while let Some(packed) = self.events.pop_due(now) {
            match LogEvent::unpack(packed) {
                LogEvent::Read(request) => self.read(now, request, way),
                LogEvent::Enter(request) => self.enter(now, request, way),
                LogEvent::Delayed(request) => self.delayed(now, request, way),
                LogEvent::Commit(request) => self.commit(now, request, way),
                LogEvent::Waited(block) => self.waited(now, block),
                LogEvent::Issue(block) => self.issue(now, block, way),
                LogEvent::Group => self.group_is_old(now, way),
            }
        }
    }

    /// A log device that responds again is used again: its old content is not needed, because the main pool has or will
    /// have that data. A log device that was absent at the start has no label of this epoch and stays unused until the
    /// next start.
    fn returned<W: TierContext>(&mut self, _now: Time, child: Child, _way: &mut W) {
        if child != MAIN {
            let log = usize::from(child) - 1;
            let ring = &mut self.rings[log];
            ring.untried |= ring.broken;
            ring.broken = self.labelled[log] != self.life.epoch;
        }
    }

    /// Data that is neither logged nor on the main pool. Data that children would lose is in the log or was not durable
    /// yet.
    fn at_risk(&self, _children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        ranges.extend(self.at_risk_ranges());
    }

    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        self.read_stopped(at, into, below)
    }

    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        self.stopped_pieces(at, bytes.into())
            .any(|(slot, _, bytes)| {
                slot.is_some_and(|at| below.is_ambiguous(MAIN, at, bytes as u32))
            })
    }

    fn release_buffers<B: Buffers>(&mut self, buffers: &mut B) {
        self.records.release_buffers(buffers);
        self.issuer.release_buffers(buffers);
        for asked in self.asked.all_mut() {
            buffers.release(core::mem::take(&mut asked.payload));
        }
    }

    /// Logged data is available again when power returns.
    fn power_cut(&mut self, _now: Time) {
        self.events = EventQueue::default();
        self.requests = Slab::default();
        self.waits = Slab::default();
        self.asked = Slab::default();
        self.held.clear();
        self.unlogged.clear();
        self.issuer = Issuer::from_last_block(self.issuer.last, self.issuer.previous);
        self.queues.iter_mut().for_each(ChildQueue::clear);
        for (first, count) in self.trims.cut() {
            self.reuse_trimmed(first, count);
        }
        self.settle_after_power_cut();
        self.records.clear();
        self.dirty = 0;
    }

    fn inspect(&self, _now: Time, gauges: &mut dyn Gauges) {
        let at_risk: u64 = self.at_risk_ranges().map(|range| range.bytes).sum();
        gauges.gauge(Gauge::BufferedBytes, at_risk as f64);
        gauges.gauge(Gauge::DirtyBytes, self.dirty as f64);
        gauges.gauge(Gauge::LogBytesWritten, self.log_bytes as f64);
        gauges.gauge(Gauge::LogFullBlocks, self.full_blocks as f64);
        for ring in &self.rings {
            gauges.gauge(Gauge::MostLogBytesHeld, ring.most_held() as f64);
        }
        gauges.gauge(Gauge::HitBytes, self.hit as f64);
        gauges.gauge(Gauge::MissBytes, self.missed as f64);
        gauges.gauge(Gauge::HostCpuSeconds, self.cpu.seconds());
    }
}
