//! RAID-Z: blocks of variable length over all children, each with its own parity, as in ZFS.
//!
//! A block of `n` sectors has rows of at most (children - parity) data sectors, and `parity` additional sectors per
//! row. Sectors are placed on consecutive children, starting where the previous block ended. A write sends each child
//! its column, parity included; a read goes only to children with data. Blocks are written as a whole and never changed
//! in place, so no read is needed before a write. This tier therefore needs a tier above it that complies
//! ([`TierSettings::needs_whole_blocks`]).
//!
//! The location of a block follows from its address. Each [`BLOCK`] has a fixed space, padded to a multiple of
//! `parity + 1` sectors as in ZFS. Smaller pieces use the space of their block, starting at the position of their first
//! byte (in sum they would need more space; this is not counted). Blocks that one command writes go to each child as one
//! piece, because ZFS's queues merge them.
//!
//! A child that does not respond is out: writes omit its column. A block with data on it is read with the same number
//! of parity columns in its place; reads that were in flight when it failed are repeated. If more children are out than
//! there is parity, commands that need them fail.
//!
//! A child that responds again is resilvered ([`resilver`]): it gets the blocks that were written without it, or all
//! blocks if it was replaced. It takes writes meanwhile, and reads afterwards. If too few children are left without it
//! and it has missed no acknowledged write, it is used again at once, without the blocks of writes that failed.
//!
//! Models times only. Not modelled: data (a pool with a RAID-Z is served with its data as that of one drive), the cost
//! of computing parity, and single unreadable sectors. Source: the layout
//! that OpenZFS describes in `module/zfs/vdev_raidz.c` (the figures of its header comment, not its code).

use alloc::string::String;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Status};
use model::device::Range;
use model::engine::Slab;
use model::time::Time;

use self::resilver::Resilver;
use super::{Child, Promise, Tier, TierContext, TierSettings};

mod resilver;
#[cfg(test)]
mod tests;

/// Bytes per block for allocating space.
const BLOCK: u64 = 128 << 10;

/// Bytes per sector, as in current pools (`ashift` 12).
const SECTOR: u64 = 4096;

/// Settings of a RAID-Z.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RaidzConfig {
    /// Number of children that may fail: 1 to 3.
    pub parity: u16,
    /// Maximum rate of a resilver in bytes per second on the resilvered child; 0 without a limit.
    pub resync_rate: u64,
}

impl RaidzConfig {
    /// Creates the settings, without a limit to the rate of a resilver.
    pub fn new(parity: u16) -> RaidzConfig {
        RaidzConfig {
            parity,
            resync_rate: 0,
        }
    }
}

/// Layout of blocks over the children, in sectors.
#[derive(Clone, Copy, Debug)]
struct RaidzLayout {
    children: u64,
    parity: u64,
    /// Sectors of the smallest child.
    sectors: u64,
}

impl RaidzLayout {
    fn new(parity: u16, children: &[u64]) -> RaidzLayout {
        RaidzLayout {
            children: children.len() as u64,
            parity: u64::from(parity),
            sectors: children.iter().min().map_or(0, |bytes| bytes / SECTOR),
        }
    }

    /// Returns the data sectors per row.
    fn data(&self) -> u64 {
        self.children - self.parity
    }

    /// Returns the sectors that a block of `sectors` data sectors takes, without padding.
    fn block_sectors(&self, sectors: u64) -> u64 {
        sectors + self.parity * sectors.div_ceil(self.data())
    }

    /// Returns the sectors reserved for each [`BLOCK`]: those that it takes, and those skipped after it so that every
    /// gap can be filled.
    fn room(&self) -> u64 {
        self.block_sectors(BLOCK / SECTOR)
            .next_multiple_of(self.parity + 1)
    }

    /// Returns the sector, counted over all children, at which a piece starts that begins at this data sector.
    fn begin(&self, sector: u64) -> u64 {
        let (block, within) = (sector / (BLOCK / SECTOR), sector % (BLOCK / SECTOR));
        block * self.room() + self.block_sectors(within)
    }

    /// Returns the first sector and the number of sectors of one child among `count` sectors starting at `begin`.
    fn column(&self, child: u64, begin: u64, count: u64) -> (u64, u64) {
        let before = |end: u64| (end + self.children - 1 - child) / self.children;
        let (first, last) = (before(begin), before(begin + count));
        let length = last - first;
        // A block in pieces may extend beyond its space, and the last one beyond the end.
        (first.min(self.sectors.saturating_sub(length)), length)
    }
}

/// A set of children, one bit each: a RAID-Z has at most 255.
#[derive(Clone, Copy, Default, Debug)]
struct ChildSet([u64; 4]);

impl ChildSet {
    fn place(child: Child) -> (usize, u64) {
        (usize::from(child) / 64 % 4, 1 << (child % 64))
    }

    fn has(&self, child: Child) -> bool {
        let (word, bit) = ChildSet::place(child);
        self.0[word] & bit != 0
    }

    fn insert(&mut self, child: Child) {
        let (word, bit) = ChildSet::place(child);
        self.0[word] |= bit;
    }

    fn remove(&mut self, child: Child) {
        let (word, bit) = ChildSet::place(child);
        self.0[word] &= !bit;
    }

    fn add(&mut self, others: &ChildSet) {
        for (word, other) in self.0.iter_mut().zip(others.0) {
            *word |= other;
        }
    }
}

/// A command whose columns are outstanding at the children.
#[derive(Clone, Copy, Debug)]
struct RaidzRequest {
    command: Command,
    left: u32,
    /// Number of children that failed their part.
    without: u64,
    /// For a write: the children that missed their part because they do not respond.
    missed: ChildSet,
    /// The last error status.
    status: Status,
    /// Whether a child failed during a read.
    again: bool,
    /// Anatomy of previous attempts.
    before: Anatomy,
}

/// A RAID-Z over its children.
#[derive(Clone, Debug)]
pub struct Raidz {
    layout: RaidzLayout,
    requests: Slab<RaidzRequest>,
    /// By child: whether it does not respond.
    out: Vec<bool>,
    /// Children that missed a part of an acknowledged write, until they have been resilvered.
    lacking: ChildSet,
    resilver: Resilver,
}

impl TierSettings for RaidzConfig {
    type Tier = Raidz;

    fn build(&self, children: &[u64]) -> Raidz {
        Raidz {
            layout: RaidzLayout::new(self.parity, children),
            requests: Slab::default(),
            out: alloc::vec![false; children.len()],
            lacking: ChildSet::default(),
            resilver: Resilver::new(
                self.resync_rate,
                self.capacity(children) / BLOCK,
                children.len(),
            ),
        }
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        if children.len() <= usize::from(self.parity) {
            return 0;
        }
        let layout = RaidzLayout::new(self.parity, children);
        layout.sectors * layout.children / layout.room() * BLOCK
    }

    fn promise(&self, children: &[Promise]) -> Promise {
        Promise::joined(children, self.parity + 1)
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=3).contains(&self.parity) {
            problems.push(String::from("its parity must be from 1 to 3"));
        }
        if children.len() <= usize::from(self.parity) + 1 {
            problems.push(alloc::format!(
                "a raidz of parity {} requires at least {} children, but has {}",
                self.parity,
                self.parity + 2,
                children.len()
            ));
        } else if self.capacity(children) == 0 {
            problems.push(String::from(
                "its members are too small for one block of 128 KiB",
            ));
        }
        problems
    }

    fn needs_whole_blocks(&self) -> bool {
        true
    }
}

impl Raidz {
    /// Sends a column, unless its child is out.
    fn send<W: TierContext>(&mut self, request: u32, child: u64, column: (u64, u64), way: &mut W) {
        let asked = &mut self.requests[request];
        let takes_writes = asked.command.op != Op::Read && self.resilver.is_on(child as Child);
        if self.out[child as usize] && !takes_writes {
            asked.without += 1;
            if matches!(asked.command.op, Op::Write | Op::WriteZeroes) {
                asked.missed.insert(child as Child);
                self.resilver
                    .mark(asked.command.offset, asked.command.end());
            }
            return;
        }
        asked.left += 1;
        let piece = match asked.command.op {
            Op::Flush => asked.command,
            _ => Command {
                offset: column.0 * SECTOR,
                bytes: (column.1 * SECTOR) as u32,
                ..asked.command
            },
        };
        way.send(
            child as Child,
            request * self.layout.children as u32 + child as u32,
            piece,
        );
    }

    /// Sends reads of the data columns of each block, and of one parity column per missing data column.
    fn read<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let layout = self.layout;
        let command = self.requests[request].command;
        let (mut at, end) = (command.offset, command.end());
        let mut without = 0;
        while at < end {
            let until = end.min((at / BLOCK + 1) * BLOCK);
            let (first, last) = (at / SECTOR, until.div_ceil(SECTOR));
            let begin = layout.begin(first);
            let wide = layout.data().min(last - first);
            let mut spare = 0..layout.parity;
            let out = |column: u64| self.out[((begin + column) % layout.children) as usize];
            let is_out: Vec<u64> = (0..layout.parity + wide).filter(|&it| out(it)).collect();
            let mut missing = 0;
            for column in layout.parity..layout.parity + wide {
                let wanted = match is_out.contains(&column) {
                    false => Some(column),
                    true => spare.find(|it| !is_out.contains(it)),
                };
                let Some(column) = wanted else {
                    missing += 1;
                    continue;
                };
                let at = begin + column;
                // Parity is as long as the first data column.
                let from = column.saturating_sub(layout.parity);
                let rows = (last - first - from).div_ceil(layout.data());
                let row = (at / layout.children).min(layout.sectors.saturating_sub(rows));
                self.send(request, at % layout.children, (row, rows), way);
            }
            if missing > 0 {
                // The remaining columns are not sufficient for the block.
                without = layout.parity + missing;
            }
            at = until;
        }
        self.requests[request].without += without;
    }

    /// Sends a column to each child: of the sectors that a write takes, or of the space that is cleared.
    fn columns<W: TierContext>(&mut self, request: u32, way: &mut W) {
        let layout = self.layout;
        let command = self.requests[request].command;
        let (first, last) = (command.offset / SECTOR, command.end().div_ceil(SECTOR));
        let begin = layout.begin(first);
        let count = match first / (BLOCK / SECTOR) == (last - 1) / (BLOCK / SECTOR) {
            true => layout.block_sectors(last - first),
            false => layout.begin(last) - begin,
        };
        for child in 0..layout.children {
            let column = layout.column(child, begin, count);
            if column.1 > 0 {
                self.send(request, child, column, way);
            }
        }
    }

    fn ask<W: TierContext>(&mut self, request: u32, way: &mut W) {
        match self.requests[request].command.op {
            Op::Flush => {
                for child in 0..self.layout.children {
                    self.send(request, child, (0, 0), way);
                }
            }
            Op::Read => self.read(request, way),
            Op::Write | Op::Deallocate | Op::WriteZeroes => self.columns(request, way),
        }
        if self.requests[request].left == 0 {
            self.end(request, Anatomy::ZERO, way);
        }
    }

    /// All columns have completed, the last one with this anatomy.
    fn end<W: TierContext>(&mut self, request: u32, last: Anatomy, way: &mut W) {
        let asked = self.requests[request];
        self.requests[request].missed = ChildSet::default();
        self.requests.release(request);
        let mut anatomy = asked.before;
        anatomy.append(&last);
        let status = match asked.without > self.layout.parity {
            true => asked.status,
            false => Status::Success,
        };
        if status == Status::Success {
            self.lacking.add(&asked.missed);
        }
        way.finish(asked.command.id, status, anatomy);
    }
}

impl Tier for Raidz {
    fn submit<W: TierContext>(&mut self, _now: Time, command: &Command, way: &mut W) {
        let request = self.requests.insert(RaidzRequest {
            command: *command,
            left: 0,
            without: 0,
            missed: ChildSet::default(),
            status: Status::Gone,
            again: false,
            before: Anatomy::ZERO,
        });
        self.ask(request, way);
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let children = self.layout.children as u32;
        let (request, child) = (token / children, token % children);
        if request == resilver::REQUEST {
            return self.resilvered(now, child as Child, done.status, way);
        }
        if done.status == Status::Gone {
            self.leave(child as Child);
        }
        let asked = &mut self.requests[request];
        asked.left -= 1;
        if done.status == Status::Gone && matches!(asked.command.op, Op::Write | Op::WriteZeroes) {
            asked.missed.insert(child as Child);
            self.resilver
                .mark(asked.command.offset, asked.command.end());
        }
        match (done.status, asked.command.op) {
            (Status::Success, _) => {}
            (Status::Gone, Op::Read) => asked.again = true,
            (Status::Gone, _) => asked.without += 1,
            // One column is unreadable: the block is not reconstructed.
            (status, Op::Read) => {
                asked.status = status;
                asked.without = self.layout.parity + 1;
            }
            (status, _) => {
                asked.status = status;
                asked.without += 1;
            }
        }
        if asked.left > 0 {
            return;
        }
        if !core::mem::take(&mut asked.again) {
            return self.end(request, done.anatomy, way);
        }
        asked.without = 0;
        asked.status = Status::Gone;
        asked.before.append(&done.anatomy);
        self.ask(request, way);
    }

    fn due(&self) -> Time {
        self.resilver_due()
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.resilver_on(now, way);
    }

    fn returned<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.resilver_later(now, child, false, way);
    }

    fn replaced<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.resilver_later(now, child, true, way);
    }

    /// Appends the blocks at locations where a child loses data.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        let layout = self.layout;
        let mut blocks = Vec::new();
        for (child, lost) in children.iter().enumerate() {
            for range in lost {
                let first = range.offset / SECTOR * layout.children + child as u64;
                let end = (range.offset + range.bytes).div_ceil(SECTOR) * layout.children;
                blocks.extend(first / layout.room()..end.div_ceil(layout.room()));
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        ranges.extend(blocks.into_iter().map(|block| Range {
            offset: block * BLOCK,
            bytes: BLOCK,
        }));
    }

    fn power_cut(&mut self, _now: Time) {
        self.requests = Slab::default();
        self.resilver.forget();
    }
}
