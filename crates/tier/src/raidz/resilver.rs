//! Resilvering: a child that responds again gets the columns that it lacks, while clients use the pool.
//!
//! A returned child gets the blocks that were written without it, as ZFS finds them by its dirty time log; a replaced
//! child gets all blocks. Blocks are resilvered in the order of their addresses, as in ZFS's sorted scan, 8 blocks
//! (1 MiB of data) at a time. Columns are read from as many children as a block needs, then the child's column is
//! written. The whole capacity counts as allocated. The child takes writes meanwhile. A resilver waits while too few
//! other children are left.
//!
//! Not modelled: reading the metadata that names the blocks, the time that ZFS spends on a resilver in each transaction
//! group (`zfs_resilver_min_time_ms`), and more than one range in progress (`zfs_scan_vdev_limit`). Marks have a
//! granularity of 128 KiB, or more for a pool of more than 128 GiB, so that a million marks suffice.

use alloc::vec::Vec;

use model::command::{Command, Op, Status};
use model::time::Time;

use super::{BLOCK, ChildSet, Raidz, SECTOR};
use crate::bits::Bits;
use crate::rebuild::{RebuildPace, RebuildProgress, SyncState, sum_left};
use crate::{Child, TierContext};

/// Number of the resilver in tokens, where requests of clients have theirs: too large for one of them.
pub(super) const REQUEST: u32 = u32::MAX >> 9;
/// Blocks that are resilvered at a time.
const BLOCKS: u64 = 8;
/// Maximum number of marks.
const MARKS: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResilverStep {
    /// The next blocks may start when the rate limit allows it.
    Seek,
    Read,
    Write,
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct ResilverRun {
    child: Child,
    /// Blocks in progress, and bytes of their column.
    first: u64,
    blocks: u64,
    bytes: u64,
    copied: u64,
    step: ResilverStep,
    /// Commands in flight, and whether one of them failed.
    left: u32,
    failed: bool,
    /// Whether the resilver has ended, except for commands in flight.
    stopped: bool,
}

/// State of resilvers.
#[derive(Clone, Debug)]
pub(super) struct Resilver {
    current: Option<ResilverRun>,
    /// Blocks written without a child, by unit; `None` until there is one.
    marks: Option<Bits>,
    /// Blocks per unit.
    unit: u64,
    blocks: u64,
    /// Children that wait.
    returned: Vec<Child>,
    /// Children that lack all blocks, until they have been resilvered.
    whole: ChildSet,
    pace: RebuildPace,
}

impl Resilver {
    pub(super) fn new(rate: u64, blocks: u64, children: usize) -> Resilver {
        Resilver {
            current: None,
            marks: None,
            unit: blocks.div_ceil(MARKS).max(1).next_power_of_two(),
            blocks,
            returned: Vec::new(),
            whole: ChildSet::default(),
            pace: RebuildPace::new(rate, children),
        }
    }

    /// Whether a child is being resilvered.
    pub(super) fn is_on(&self, child: Child) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|it| it.child == child && !it.stopped)
    }

    /// A range is written without a child.
    pub(super) fn mark(&mut self, from: u64, until: u64) {
        let bytes = self.unit * BLOCK;
        let count = self.blocks.div_ceil(self.unit) as usize;
        let marks = self.marks.get_or_insert_with(|| Bits::new(count));
        let last = (until.div_ceil(bytes) as usize).min(count);
        marks.set((from / bytes) as usize..last);
    }

    /// Power was cut: commands in flight do not complete. A child that was out stays out.
    pub(super) fn forget(&mut self) {
        self.current = None;
        self.returned.clear();
        self.pace.reset();
    }

    /// Returns the next blocks at or after `from` that a child lacks: the first one, and the end.
    fn next(&self, child: Child, from: u64) -> Option<(u64, u64)> {
        let (at, end) = match (self.whole.has(child), &self.marks) {
            (true, _) => (from, self.blocks),
            (false, Some(marks)) => {
                let index = marks.next((from / self.unit) as usize)? as u64;
                (from.max(index * self.unit), (index + 1) * self.unit)
            }
            (false, None) => return None,
        };
        (at < self.blocks).then_some((at, end.min(self.blocks)))
    }

    fn set_step(&mut self, step: ResilverStep, copied: u64) {
        if let Some(current) = &mut self.current {
            (current.step, current.copied) = (step, copied);
        }
    }
}

impl Raidz {
    /// Whether a child lacks blocks or does not respond.
    pub fn is_out(&self, child: Child) -> bool {
        self.out.get(usize::from(child)).is_some_and(|&out| out)
    }

    /// A child does not respond.
    pub(super) fn leave(&mut self, child: Child) {
        self.out[usize::from(child)] = true;
        let current = self.resilver.current.as_mut();
        let Some(current) = current.filter(|it| it.child == child) else {
            return;
        };
        match current.left {
            0 => self.resilver.current = None,
            _ => current.stopped = true,
        }
    }

    /// A child responds again, and lacks blocks written without it, or all blocks.
    pub(super) fn resilver_later<W: TierContext>(
        &mut self,
        now: Time,
        child: Child,
        whole: bool,
        way: &mut W,
    ) {
        // It may have failed without a command to it.
        self.leave(child);
        if whole {
            self.resilver.whole.insert(child);
        }
        self.resilver.returned.retain(|&it| it != child);
        if self.has_sources() || self.lacks_blocks(child) {
            self.resilver.returned.push(child);
        } else {
            // Without it too few children are left, and it has all acknowledged blocks.
            self.out[usize::from(child)] = false;
        }
        self.resilver_next(now, way);
    }

    /// Whether a child lacks blocks of acknowledged writes, or of writes in progress that may be acknowledged.
    fn lacks_blocks(&mut self, child: Child) -> bool {
        let mut requests = self.requests.all_mut().iter();
        self.lacking.has(child)
            || self.resilver.whole.has(child)
            || requests.any(|it| it.missed.has(child))
    }

    /// Whether enough children are left to compute the blocks of the others.
    fn has_sources(&self) -> bool {
        let left = self.out.iter().filter(|&&out| !out).count();
        left as u64 >= self.layout.data()
    }

    /// Returns when the next blocks may start, if the resilver of a child waits for that.
    pub(super) fn resilver_due(&self) -> Time {
        let resilver = &self.resilver;
        match &resilver.current {
            Some(current) if current.step == ResilverStep::Seek => resilver.pace.next(),
            // The child before it has failed while it waited for this time.
            None if !resilver.returned.is_empty() && self.has_sources() => resilver.pace.next(),
            _ => Time::NEVER,
        }
    }

    /// Starts the resilver of a returned child, if one is waiting and enough others are left.
    fn resilver_next<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let resilver = &self.resilver;
        if resilver.current.is_some() || resilver.returned.is_empty() || !self.has_sources() {
            return;
        }
        let child = self.resilver.returned.remove(0);
        self.resilver.current = Some(ResilverRun {
            child,
            first: 0,
            blocks: 0,
            bytes: 0,
            copied: 0,
            step: ResilverStep::Seek,
            left: 0,
            failed: false,
            stopped: false,
        });
        self.resilver_on(now, way);
    }

    /// Starts the next blocks if the rate limit allows it; or ends the resilver.
    pub(super) fn resilver_on<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if self.resilver_due() > now {
            return;
        }
        let Some(mut current) = self.resilver.current else {
            return self.resilver_next(now, way);
        };
        let next = current.first + current.blocks;
        let Some((at, end)) = self.resilver.next(current.child, next) else {
            current.step = ResilverStep::Flush;
            self.resilver.current = Some(current);
            return self.send_resilver(&[(current.child, Command::flush(0))], way);
        };
        (current.first, current.blocks) = (at, (end - at).min(BLOCKS));
        current.bytes = self.resilvered_column(&current, current.child).1 * SECTOR;
        self.resilver.current = Some(current);
        self.resilver.pace.start(now, current.bytes);
        self.read_resilvered(way);
    }

    /// Returns the first sector and the number of sectors of the current blocks on a child.
    fn resilvered_column(&self, current: &ResilverRun, child: Child) -> (u64, u64) {
        let room = self.layout.room();
        let (begin, count) = (current.first * room, current.blocks * room);
        self.layout.column(child.into(), begin, count)
    }

    /// Reads the current blocks from as many children as are needed, a different set for each range.
    fn read_resilvered<W: TierContext>(&mut self, way: &mut W) {
        let Some(current) = self.resilver.current else {
            return;
        };
        let children = self.layout.children;
        let turn = current.first / BLOCKS;
        let sources = (0..children).map(|index| ((index + turn) % children) as Child);
        let sources = sources.filter(|&child| !self.out[usize::from(child)]);
        let read = |child: Child| {
            let (at, count) = self.resilvered_column(&current, child);
            let bytes = (count * SECTOR) as u32;
            (child, Command::new(0, Op::Read, at * SECTOR, bytes))
        };
        let needed = self.layout.data() as usize;
        let reads: Vec<(Child, Command)> = sources.take(needed).map(read).collect();
        if reads.len() < needed {
            // The blocks cannot be computed until another child has returned.
            self.resilver.current = None;
            return self.resilver.returned.insert(0, current.child);
        }
        self.resilver.set_step(ResilverStep::Read, current.copied);
        self.send_resilver(&reads, way);
    }

    fn send_resilver<W: TierContext>(&mut self, commands: &[(Child, Command)], way: &mut W) {
        if let Some(current) = &mut self.resilver.current {
            (current.left, current.failed) = (commands.len() as u32, false);
        }
        for &(child, command) in commands {
            let token = REQUEST * self.layout.children as u32 + u32::from(child);
            way.send(child, token, command);
        }
    }

    /// A command of the resilver has completed.
    pub(super) fn resilvered<W: TierContext>(
        &mut self,
        now: Time,
        child: Child,
        status: Status,
        way: &mut W,
    ) {
        if let Some(current) = &mut self.resilver.current {
            current.left -= 1;
            current.failed |= status != Status::Success;
            // An unreadable sector is not reconstructed.
            current.stopped |= !matches!(status, Status::Success | Status::Gone);
        }
        if status == Status::Gone {
            self.leave(child);
        }
        let current = self.resilver.current;
        let Some(current) = current.filter(|it| it.left == 0) else {
            if self.resilver.current.is_none() {
                self.resilver_next(now, way);
            }
            return;
        };
        match current.step {
            _ if current.stopped => {
                self.resilver.current = None;
                self.resilver_next(now, way);
            }
            // A source has failed: another one has its place.
            ResilverStep::Read if current.failed => self.read_resilvered(way),
            ResilverStep::Read => {
                let (at, count) = self.resilvered_column(&current, current.child);
                let write = Command::write(0, at * SECTOR, (count * SECTOR) as u32);
                self.resilver.set_step(ResilverStep::Write, current.copied);
                self.send_resilver(&[(current.child, write)], way);
            }
            ResilverStep::Write => {
                let copied = current.copied + current.bytes;
                self.resilver.pace.add(current.child, current.bytes);
                self.resilver.set_step(ResilverStep::Seek, copied);
                self.resilver_on(now, way);
            }
            ResilverStep::Flush | ResilverStep::Seek => {
                self.out[usize::from(current.child)] = false;
                self.lacking.remove(current.child);
                self.resilver.whole.remove(current.child);
                for request in self.requests.all_mut() {
                    request.missed.remove(current.child);
                }
                self.resilver.current = None;
                if !self.out.contains(&true) {
                    self.resilver.marks = None;
                }
                self.resilver_next(now, way);
            }
        }
    }

    /// Returns the progress of the resilver in bytes.
    pub fn rebuild(&self) -> Option<RebuildProgress> {
        let current = self.resilver.current.as_ref()?;
        Some(RebuildProgress {
            child: current.child,
            copied: current.copied,
        })
    }

    /// Returns the state of a child.
    pub fn sync_state(&self, child: Child) -> SyncState {
        let resilver = &self.resilver;
        match self.is_out(child) {
            false => SyncState::InSync,
            true if resilver.is_on(child) => SyncState::Rebuilding,
            true if resilver.returned.contains(&child) => SyncState::Waiting,
            true => SyncState::Out,
        }
    }

    pub(crate) fn pause_rebuilds(&mut self) {
        self.resilver.pace.pause();
    }

    /// Returns the bytes that resilvers have written to a child.
    pub fn rebuilt_bytes(&self, child: Child) -> u64 {
        self.resilver.pace.written(child)
    }

    /// Returns the bytes that the resilver of a child still has to write, or will have to if it waits.
    pub fn rebuild_left(&self, child: Child) -> u64 {
        let current = self.resilver.current.filter(|it| it.child == child);
        let from = current.map_or(0, |it| match it.step {
            ResilverStep::Read | ResilverStep::Write => it.first,
            _ => it.first + it.blocks,
        });
        let blocks = sum_left(from, |from| self.resilver.next(child, from));
        blocks * self.layout.room() / self.layout.children * SECTOR
    }
}
