//! Write-back cache: writes are acknowledged by a fast drive and destaged later to slower backing drives.
//!
//! The cache contains a ring of segments ([`ring`]). The ring contains records: a header of 4 KiB, followed by units of
//! 4 KiB, in one write to the cache. Writes that arrive while a record is in flight share the next one ([`commit`]). A
//! map gives the position of each unit's newest data in the ring; units that are not mapped are on the capacity tier,
//! whose drives are striped. Above a fill level, the oldest segments are moved there and freed ([`destage`]). vSAN's
//! disk groups and dm-writecache work like this: see `docs/decisions/0061-write-back-cache.md` for published and
//! assumed behaviour.
//!
//! After a crash the ring is replayed from its tail to its first gap ([`recover`]), which takes no virtual time.
//!
//! Not modelled: continuing after a drive fails (a failed write stops all writes), and CPU time of the host.

mod cleaning;
mod commit;
mod committing;
mod destage;
mod layout;
mod misses;
mod oldest;
mod passing;
mod pressure;
mod read;
mod recover;
mod request;
mod ring;
mod settings;
mod start;
mod stopped;
mod table;
mod zero;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use cleaning::{Cleaning, IdleCleaning, RateControl};
pub use passing::BypassPolicy;
pub use settings::{CommitPolicy, Congestion, Destage, Durability, WriteBackConfig};

use self::cleaning::Cleaner;
use self::commit::PendingRecord;
use self::committing::Commits;
use self::destage::Destaging;
use self::misses::Misses;
use self::oldest::Oldest;
use self::read::ReadPiece;
use self::recover::RingEpochs;
use self::request::WriteBackRequest;
use self::ring::{SegmentRing, UNIT};
use self::start::Map;
use self::table::TableCommits;
use super::offline::ChildImages;
use super::record::Superblock;
use super::streams::Streams;
use super::striping::Striping;
use super::{Child, Gather, Tier, TierContext, TierSettings};
use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Status};
use model::data::{Unreadable, Unwritable};
use model::device::{Gauge, Gauges, Range};
use model::engine::Slab;
use model::time::{Span, Time};

/// Index of the child that is the cache.
const CACHE: u16 = 0;

/// Purpose of a command to a child: the upper bits of its token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum WriteBackPurpose {
    /// A record is written; with its number.
    Record,
    /// A client's read; with the piece.
    Read,
    /// A client's flush; with the request.
    Flush,
    /// The rest of a partly written unit is read; with the piece.
    Merge,
    /// The record of a write with force unit access is made durable; with the request.
    Settle,
    /// A range of the capacity tier is deallocated or zeroed; with the request.
    Zero,
    /// Data is read for destaging; with the run.
    Lift,
    /// Data is destaged; with the run.
    Put,
    /// The capacity tier makes destaged data durable.
    Harden,
    /// The tail is written.
    Superblock,
    /// The cache is flushed without a client's flush.
    Commit,
    /// A write bypasses to the capacity tier; with the request.
    Pass,
    /// A piece of the table of entries is written.
    Table,
    /// The writes of a commit with a table are made durable.
    TableFlush,
    /// A commit with a table ends.
    TableEnd,
}

impl WriteBackPurpose {
    const ALL: [WriteBackPurpose; 15] = [
        WriteBackPurpose::Record,
        WriteBackPurpose::Read,
        WriteBackPurpose::Flush,
        WriteBackPurpose::Merge,
        WriteBackPurpose::Settle,
        WriteBackPurpose::Zero,
        WriteBackPurpose::Lift,
        WriteBackPurpose::Put,
        WriteBackPurpose::Harden,
        WriteBackPurpose::Superblock,
        WriteBackPurpose::Commit,
        WriteBackPurpose::Pass,
        WriteBackPurpose::Table,
        WriteBackPurpose::TableFlush,
        WriteBackPurpose::TableEnd,
    ];

    const SHIFT: u32 = 28;

    #[inline]
    fn token(self, index: u32) -> u32 {
        (self as u32) << WriteBackPurpose::SHIFT | index & WriteBackPurpose::MASK
    }

    const MASK: u32 = (1 << WriteBackPurpose::SHIFT) - 1;

    #[inline]
    fn from_token(token: u32) -> (WriteBackPurpose, u32) {
        (
            WriteBackPurpose::ALL[(token >> WriteBackPurpose::SHIFT) as usize],
            token & WriteBackPurpose::MASK,
        )
    }
}

/// Time for which records have waited for space in the ring.
#[derive(Clone, Copy, Debug, Default)]
struct Stalls {
    total: Span,
    since: Option<Time>,
}

impl Stalls {
    fn clock(&self, now: Time) -> Span {
        self.total + self.since.map_or(Span::ZERO, |since| now.since(since))
    }

    fn end(&mut self, now: Time) {
        self.total = self.clock(now);
        self.since = None;
    }
}

/// Position up to which the ring is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
struct DurablePosition {
    /// Number of a record.
    number: u64,
    /// The position after it.
    position: u64,
}

/// Bytes since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct WriteBackCounts {
    destaged: u64,
    absorbed: u64,
    hit: u64,
    miss: u64,
    passed: u64,
}

/// A write-back cache over its children.
#[derive(Clone, Debug)]
pub struct WriteBack {
    config: WriteBackConfig,
    /// The capacity tier: its first drive is child 1.
    striping: Striping,
    map: Map,
    /// Number of units that the tier addresses.
    units: u64,
    ring: SegmentRing,
    requests: Slab<WriteBackRequest>,
    /// Requests delayed by congestion, each until this time.
    held: VecDeque<(Time, u32)>,
    /// Requests that wait for others at the same addresses, in order.
    blocked: Vec<u32>,
    /// Requests that read the rest of partly covered units.
    merging: Vec<u32>,
    /// Requests that wait for a record, in order, and the units that they have for it.
    pending: VecDeque<u32>,
    pending_units: u64,
    /// Requests that end in records in flight, each with the record's number.
    closing: VecDeque<(u64, u32)>,
    /// Requests whose entry is in the ring, and whose range is now cleared on the capacity tier.
    zeroing: Vec<u32>,
    /// Requests that bypass the buffer.
    passing: Vec<u32>,
    streams: Streams,
    misses: Misses,
    /// Records in flight, in order, and the number of the first.
    records: VecDeque<PendingRecord>,
    /// Units of these records, in order: the first unit of each run, and the number of units.
    runs: VecDeque<(u64, u32)>,
    first_record: u64,
    /// Checksum of the last record.
    previous: u32,
    /// Pool of the ring, and its epoch.
    life: RingEpochs,
    stalls: Stalls,
    pieces: Slab<ReadPiece>,
    reads: Gather,
    destaging: Destaging,
    oldest: Oldest,
    cleaner: Cleaner,
    /// Position and record up to which a flush has made the ring durable.
    flushed: DurablePosition,
    commits: Commits,
    table: TableCommits,
    /// Error status of a failed write: later writes are rejected with it.
    failed: Option<Status>,
    dirty: u64,
    counts: WriteBackCounts,
}

impl WriteBack {
    fn new(config: &WriteBackConfig, children: &[u64]) -> WriteBack {
        let cache = children.first().copied().unwrap_or(0);
        let units = config.capacity(children) / u64::from(UNIT);
        let drives = children.len().saturating_sub(1).max(1);
        let chunk = match drives {
            1 => u64::from(UNIT),
            _ => u64::from(config.chunk),
        };
        let ring = SegmentRing::new(
            config.segments(cache),
            config.slots_of_segment(),
            config.log_limit,
        );
        let misses = match config.passing {
            Some(law) if law.fill_at_miss > 1 => Misses::new(units, ring.slots()),
            _ => Misses::default(),
        };
        let mut tier = WriteBack {
            striping: Striping {
                count: drives as u64,
                chunk,
            },
            map: Map::new(units),
            units,
            ring,
            requests: Slab::default(),
            held: VecDeque::new(),
            blocked: Vec::new(),
            merging: Vec::new(),
            pending: VecDeque::new(),
            pending_units: 0,
            closing: VecDeque::new(),
            zeroing: Vec::new(),
            passing: Vec::new(),
            streams: Streams::default(),
            misses,
            records: VecDeque::new(),
            runs: VecDeque::new(),
            first_record: 0,
            previous: 0,
            life: RingEpochs::default(),
            stalls: Stalls::default(),
            pieces: Slab::default(),
            reads: Gather::default(),
            destaging: Destaging::new(drives),
            oldest: Oldest::default(),
            cleaner: Cleaner::default(),
            flushed: DurablePosition::default(),
            commits: Commits::default(),
            table: TableCommits::default(),
            failed: None,
            dirty: 0,
            counts: WriteBackCounts::default(),
            config: config.clone(),
        };
        tier.start(units);
        tier
    }

    /// Maps a unit to the slot with its newest data.
    #[inline]
    fn map(&mut self, unit: u64, slot: u32) {
        *self.ring.live(slot) += 1;
        match self.map.set(unit, slot) {
            Some(old) => {
                *self.ring.live(old) -= 1;
                self.counts.absorbed += u64::from(UNIT);
            }
            None => self.dirty += u64::from(UNIT),
        }
    }

    /// Unmaps the unit from this slot.
    fn unmap(&mut self, unit: u64, slot: u32) {
        self.map.clear(unit);
        *self.ring.live(slot) -= 1;
        self.dirty -= u64::from(UNIT);
    }

    /// Returns the offset of a slot on the cache.
    #[inline]
    fn place(slot: u32) -> u64 {
        layout::SUPERBLOCKS + u64::from(slot) * u64::from(UNIT)
    }

    /// Returns the child of the capacity tier that has a byte, and the offset there.
    #[inline]
    fn home(&self, offset: u64) -> (u16, u64) {
        match self.striping.count {
            1 => (1, offset),
            _ => {
                let (index, at) = self.striping.place(offset);
                (index as u16 + 1, at)
            }
        }
    }

    fn end<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let ended = &self.requests[request];
        way.finish(ended.command.id, ended.status, ended.anatomy);
        self.requests.release(request);
    }

    fn flush<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        if self.config.durability == Durability::Ack {
            let status = self.failed.unwrap_or_default();
            way.finish(command.id, status, Anatomy::ZERO);
            return;
        }
        let request = self.requests.insert(WriteBackRequest::new(command, now));
        if self.config.table > 0 {
            return self.wait_for_table(now, request, way);
        }
        self.requests[request].flushes = self.applied();
        way.send(
            CACHE,
            WriteBackPurpose::Flush.token(request),
            Command::flush(0),
        );
    }

    fn has_flushed<W: TierContext>(&mut self, request: u32, done: &Completion, way: &mut W) {
        let ended = &self.requests[request];
        if done.status == Status::Success {
            let flushes = ended.flushes;
            self.has_committed(flushes);
        }
        let id = self.requests[request].command.id;
        way.finish(id, done.status, done.anatomy);
        self.requests.release(request);
    }

    /// Returns a superblock of a ring that begins at this tail, with a record of this number; `previous` is the
    /// checksum of the record before. It gets the number of the last [`Destaging::next_superblock`] call.
    fn superblock(&self, tail: u64, (tail_number, previous): (u64, u32)) -> Superblock {
        Superblock {
            sequence: self.destaging.superblocks,
            epoch: self.life.epoch(),
            tail,
            tail_number,
            previous,
            flushed_through: self.durable_through(),
            pool: self.life.pool,
            segment: self.config.segment,
            segments: self.ring.segments.len() as u32,
            epochs: self.life.epochs,
        }
    }

    /// Returns a superblock of the ring that begins at this tail, with the record at the tail, or the next one to be
    /// written there.
    fn superblock_from(&self, tail: u64) -> Superblock {
        let next = self.first_record + self.records.len() as u64 + 1;
        let first = self.ring.first_record(tail);
        self.superblock(tail, first.unwrap_or((next, self.previous)))
    }

    /// Returns the number of the last record that must survive any power cut.
    fn durable_through(&self) -> u64 {
        match self.config.durability {
            Durability::Ack => self.first_record,
            Durability::Flush => self.flushed.number,
        }
    }

    /// Returns the position up to which records have been applied.
    fn applied(&self) -> DurablePosition {
        DurablePosition {
            number: self.first_record,
            position: self.ring.applied(),
        }
    }
}

impl Tier for WriteBack {
    #[inline]
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        self.cleaner
            .record_command(now, &self.config.destage.cleaning);
        match command.op {
            Op::Read => self.read(command, way),
            Op::Flush => self.flush(now, command, way),
            Op::Write | Op::WriteZeroes => self.change(now, *command, way),
            Op::Deallocate => {
                // Units that it covers partly keep their data, as the standard allows.
                let unit = u64::from(UNIT);
                let (first, end) = (command.offset.next_multiple_of(unit), command.end() / unit);
                let bytes = (end * unit).saturating_sub(first) as u32;
                match bytes {
                    0 => way.finish(command.id, Status::Success, Anatomy::ZERO),
                    _ => self.change(
                        now,
                        Command {
                            offset: first,
                            bytes,
                            ..*command
                        },
                        way,
                    ),
                }
            }
        }
    }

    #[inline]
    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let (what, index) = WriteBackPurpose::from_token(token);
        match what {
            WriteBackPurpose::Record => self.recorded(now, index, done, way),
            WriteBackPurpose::Read => self.was_read(now, index, done, way),
            WriteBackPurpose::Flush => self.has_flushed(index, done, way),
            WriteBackPurpose::Merge => self.merged(now, index, done, way),
            WriteBackPurpose::Settle => self.settled(index, done, way),
            WriteBackPurpose::Zero => self.has_zeroed(now, index, done, way),
            WriteBackPurpose::Lift => self.lifted(now, index, done, way),
            WriteBackPurpose::Put => self.put(now, index, done, way),
            WriteBackPurpose::Harden => self.hardened(now, done, way),
            WriteBackPurpose::Superblock => self.advanced(now, done, way),
            WriteBackPurpose::Commit => self.committed(now, done, way),
            WriteBackPurpose::Pass => self.has_passed(now, index, done, way),
            WriteBackPurpose::Table => self.piece_written(now, index, done, way),
            WriteBackPurpose::TableFlush => self.table_flushed(now, done, way),
            WriteBackPurpose::TableEnd => self.table_ended(now, done, way),
        }
    }

    #[inline]
    fn due(&self) -> Time {
        let held = self.held.front().map_or(Time::NEVER, |held| held.0);
        let own = self.destaging.due().min(self.cleaner.due());
        held.min(own).min(self.commits.due())
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        while let Some(&(until, request)) = self.held.front() {
            if until > now {
                break;
            }
            self.held.pop_front();
            self.requests[request].account(now, Part::Congestion);
            self.enter(now, request, way);
        }
        if self.cleaner.due() <= now {
            self.set_rate(now);
        }
        if self.destaging.due() <= now {
            self.cleaner.wake();
            self.begin_round(now, way);
        }
        if self.commits.due() <= now {
            self.commit(now, way);
        }
    }

    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        self.read_stopped(at, into, below)
    }

    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        self.write_stopped(at, data, below)
    }

    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        self.pieces(at, at + u64::from(bytes))
            .any(|(slot, from, until)| {
                let (child, offset) = self.locate(slot, from);
                below.is_ambiguous(child, offset, (until - from) as u32)
            })
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        (0..=self.striping.count as Child).try_for_each(|child| below.sync(child))
    }

    /// If acknowledged writes are durable, no ranges. Otherwise the units that the cache loses, and all units written
    /// after the first of them, because the ring is replayed up to the first gap.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        if self.config.durability == Durability::Ack {
            return;
        }
        let lost = children.first().into_iter().flatten();
        let slot = |range: &Range| {
            let at = range.offset.saturating_sub(layout::SUPERBLOCKS) / u64::from(UNIT);
            self.ring.position(at as u32)
        };
        let end = layout::SUPERBLOCKS + self.ring.slots() * u64::from(UNIT);
        let ring = lost
            .filter(|range| range.offset + range.bytes > layout::SUPERBLOCKS && range.offset < end);
        let Some(gap) = ring.map(slot).filter(|&at| at >= self.ring.tail()).min() else {
            return;
        };
        let lost = gap.max(self.flushed.position)..self.ring.applied();
        let mut units = Vec::new();
        self.map.each(|unit, slot| {
            let position = self.ring.position(slot);
            if lost.contains(&position) {
                units.push((position, unit));
            }
        });
        units.sort_unstable();
        ranges.extend(units.iter().map(|&(_, unit)| Range {
            offset: unit * u64::from(UNIT),
            bytes: UNIT.into(),
        }));
    }

    /// The ring is replayed without delay: applied records are known again.
    fn power_cut(&mut self, now: Time) {
        self.requests = Slab::default();
        self.held.clear();
        self.blocked.clear();
        self.merging.clear();
        self.pending.clear();
        self.pending_units = 0;
        self.closing.clear();
        self.zeroing.clear();
        self.passing.clear();
        self.streams = Streams::default();
        self.misses.power_cut();
        self.first_record += self.records.len() as u64;
        self.records.clear();
        self.runs.clear();
        self.stalls.end(now);
        self.pieces = Slab::default();
        self.reads.clear();
        self.ring.cut();
        self.flushed = self.applied();
        self.destaging.cut();
        self.commits = Commits::default();
        self.table = TableCommits::default();
        self.cleaner = Cleaner::default();
        let at = self.next_round(now);
        self.destaging.begin_at(at);
    }

    fn inspect(&self, _now: Time, gauges: &mut dyn Gauges) {
        gauges.gauge(Gauge::DestagedBytes, self.counts.destaged as f64);
        gauges.gauge(Gauge::AbsorbedBytes, self.counts.absorbed as f64);
        gauges.gauge(Gauge::HitBytes, self.counts.hit as f64);
        gauges.gauge(Gauge::MissBytes, self.counts.miss as f64);
        if self.config.passing.is_some() {
            gauges.gauge(Gauge::PassedBytes, self.counts.passed as f64);
        }
        gauges.gauge(Gauge::DirtyBytes, self.dirty as f64);
        gauges.gauge(Gauge::Congestion, f64::from(self.congestion()));
        if self.config.durability == Durability::Flush {
            // Data that no flush has made durable yet: more may be lost than the drive has in its buffer.
            let slots = self.ring.head()
                - self
                    .flushed
                    .position
                    .max(self.ring.tail())
                    .min(self.ring.head());
            gauges.gauge(Gauge::BufferedBytes, (slots * u64::from(UNIT)) as f64);
        }
    }
}

#[cfg(test)]
mod tests;
