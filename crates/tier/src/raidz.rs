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
//! Models times only. Not modelled: data (a pool with a RAID-Z is served with its data as that of one drive), the cost
//! of computing parity, resilvering (a returned child stays out), and single unreadable sectors. Source: the layout
//! that OpenZFS describes in `module/zfs/vdev_raidz.c` (the figures of its header comment, not its code).

use alloc::string::String;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Status};
use model::device::Range;
use model::engine::Slab;
use model::time::Time;

use super::{Child, Promise, Tier, TierContext, TierSettings};

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

/// A command whose columns are outstanding at the children.
#[derive(Clone, Copy, Debug)]
struct RaidzRequest {
    command: Command,
    left: u32,
    /// Number of children that failed their part.
    without: u64,
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
}

impl TierSettings for RaidzConfig {
    type Tier = Raidz;

    fn build(&self, children: &[u64]) -> Raidz {
        Raidz {
            layout: RaidzLayout::new(self.parity, children),
            requests: Slab::default(),
            out: alloc::vec![false; children.len()],
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
        if self.out[child as usize] {
            asked.without += 1;
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
        self.requests.release(request);
        let mut anatomy = asked.before;
        anatomy.append(&last);
        let status = match asked.without > self.layout.parity {
            true => asked.status,
            false => Status::Success,
        };
        way.finish(asked.command.id, status, anatomy);
    }
}

impl Tier for Raidz {
    fn submit<W: TierContext>(&mut self, _now: Time, command: &Command, way: &mut W) {
        let request = self.requests.insert(RaidzRequest {
            command: *command,
            left: 0,
            without: 0,
            status: Status::Gone,
            again: false,
            before: Anatomy::ZERO,
        });
        self.ask(request, way);
    }

    fn completed<W: TierContext>(
        &mut self,
        _now: Time,
        token: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let children = self.layout.children as u32;
        let (request, child) = (token / children, token % children);
        let asked = &mut self.requests[request];
        asked.left -= 1;
        self.out[child as usize] |= done.status == Status::Gone;
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
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use model::conformance::{self, Witness};
    use model::data::DriveFault;
    use model::device::Device;
    use model::media::ram::{Ram, RamConfig};
    use model::media::{Medium, Precondition};
    use model::time::Span;

    use super::*;
    use crate::{ChildCommand, Kind, Loss, Member, Pool, PoolConfig, Target, TierConfig};

    const MIB: u64 = 1 << 20;

    fn pool(parity: u16, children: u16) -> PoolConfig<RamConfig> {
        let member = |_| Member {
            name: String::from("ram"),
            drive: RamConfig {
                bytes: 9 * MIB,
                per_command: Span::from_us(3),
                picoseconds_per_byte: 100,
            },
        };
        let slice = |member| Target::Slice {
            member,
            base: 0,
            bytes: 9 * MIB,
        };
        PoolConfig {
            members: (0..children).map(member).collect(),
            tiers: vec![TierConfig {
                name: String::from("main"),
                kind: Kind::Raidz(RaidzConfig { parity }),
                children: (0..children).map(slice).collect(),
            }],
            volumes: vec![0],
            label_bytes: 0,
        }
    }

    /// Returns the member commands of one command: member, offset, number of sectors.
    fn asked(parity: u16, children: u16, command: Command) -> Vec<(u16, u64, u64)> {
        let mut pool: Pool<Ram> = pool(parity, children).build(Precondition::Fresh, 1);
        pool.record();
        pool.submit(Time::ZERO, command);
        let of = |it: ChildCommand| {
            let (offset, bytes) = (it.command.offset, u64::from(it.command.bytes));
            (it.member, offset / SECTOR, bytes / SECTOR)
        };
        pool.recorded().into_iter().map(of).collect()
    }

    #[test]
    fn keeps_the_laws() {
        for (parity, children) in [(1, 3), (2, 10), (3, 7)] {
            conformance::check(|seed| {
                let config = pool(parity, children);
                let members = config.members.iter();
                let rams = members.map(|it| it.drive.build(Precondition::Fresh, seed));
                Pool::new(&config, rams.map(Witness::new).collect())
            });
        }
    }

    #[test]
    fn a_block_has_parity_for_each_of_its_rows() {
        // 32 sectors in rows of 8 data and 2 parity: 4 rows.
        let whole = asked(2, 10, Command::write(0, 0, 128 << 10));
        let each: Vec<_> = (0..10).map(|child| (child, 0, 4)).collect();
        assert_eq!(whole, each);
        // One data sector, and two of parity: on three children.
        let one = asked(2, 10, Command::write(0, 0, 4096));
        assert_eq!(one, [(0, 0, 1), (1, 0, 1), (2, 0, 1)]);
        // 9 sectors: two rows, of 8 and of 1.
        let nine = asked(2, 10, Command::write(0, 0, 9 * 4096));
        assert_eq!(nine.iter().map(|it| it.2).sum::<u64>(), 9 + 2 * 2);
        // The second block begins after the sectors skipped after the first: 40 sectors and 2.
        let second = asked(2, 10, Command::write(0, 128 << 10, 4096));
        assert_eq!(second, [(2, 4, 1), (3, 4, 1), (4, 4, 1)]);
    }

    #[test]
    fn a_read_asks_only_those_that_hold_data() {
        let block = asked(2, 10, Command::read(0, 0, 128 << 10));
        let data: Vec<_> = (2..10).map(|child| (child, 0, 4)).collect();
        assert_eq!(block, data);
        let two = asked(2, 10, Command::read(0, 0, 256 << 10));
        assert_eq!(two.iter().map(|it| it.2).sum::<u64>(), 64);
    }

    /// Executes a command on a pool of drives, after these have failed. Returns the number of columns sent, and the
    /// status.
    fn without(parity: u16, dead: &[u16], command: Command) -> (usize, Status) {
        let config = pool(parity, 6);
        let mut pool = config.vulnerable(Precondition::Fresh, 1);
        let mut ended = Vec::new();
        // A write to every child reveals that they are out.
        pool.submit(Time::ZERO, Command::write(0, 0, 128 << 10));
        for &child in dead {
            pool.befall(Time::ZERO, child, DriveFault::Dies);
        }
        run(&mut pool, &mut ended);
        let now = ended.last().map_or(Time::ZERO, |it: &Completion| it.at);
        pool.record();
        pool.submit(now, Command { id: 1, ..command });
        run(&mut pool, &mut ended);
        let last = ended.pop().expect("it ended");
        (pool.recorded().len(), last.status)
    }

    fn run(pool: &mut impl Device, ended: &mut Vec<Completion>) {
        while pool.next_event() != Time::NEVER {
            let now = pool.next_event();
            pool.advance(now, now, ended);
        }
    }

    #[test]
    fn goes_on_without_as_many_children_as_it_has_parity() {
        let block = 128 << 10;
        let (write, read) = (Command::write(0, 0, block), Command::read(0, 0, block));
        // Parity is on child 0 (and 1), data on the others.
        for (parity, dead) in [
            (1, &[3][..]),
            (1, &[0]),
            (2, &[2, 5]),
            (2, &[1, 4]),
            (3, &[3, 4, 5]),
        ] {
            let data = 6 - usize::from(parity);
            let left = 6 - dead.len();
            assert_eq!(
                without(parity, dead, write),
                (left, Status::Success),
                "{dead:?}"
            );
            assert_eq!(
                without(parity, dead, read),
                (data, Status::Success),
                "{dead:?}"
            );
        }
        for (parity, dead) in [(1, &[2, 3][..]), (2, &[0, 2, 4])] {
            assert_eq!(without(parity, dead, write).1, Status::Gone, "{dead:?}");
            assert_eq!(without(parity, dead, read).1, Status::Gone, "{dead:?}");
        }
        // The missing child has no data for this read.
        let one = Command::read(0, 0, 4096);
        assert_eq!(without(1, &[4, 5], one), (1, Status::Success));
    }

    #[test]
    fn a_read_is_asked_for_again_when_a_child_goes_in_the_middle_of_it() {
        let mut pool = pool(1, 6).vulnerable(Precondition::Fresh, 1);
        pool.submit(Time::ZERO, Command::read(0, 0, 256 << 10));
        pool.befall(Time::ZERO, 4, DriveFault::Dies);
        let mut ended = Vec::new();
        run(&mut pool, &mut ended);
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].status, Status::Success);
        assert_eq!(ended[0].anatomy.total(), ended[0].at.since(Time::ZERO));
    }

    #[test]
    fn capacity_is_what_blocks_of_128_kib_find_room_for() {
        let capacity = |parity, children: usize| {
            RaidzConfig { parity }.capacity(&vec![42 * SECTOR * 100; children])
        };
        // 42 sectors of space each, because 40 is not a multiple of 3.
        assert_eq!(capacity(2, 10), 1000 * BLOCK);
        // Equal to a mirror of two: nothing is skipped.
        assert_eq!(capacity(1, 2), 42 * 100 / 32 * BLOCK);
        let config = pool(2, 10);
        let last = Command::write(0, config.bytes() - (128 << 10), 128 << 10);
        assert!(asked(2, 10, last).iter().all(|it| it.1 + it.2 <= 9 * 256));
    }

    #[test]
    fn is_lost_with_one_more_than_its_parity_and_serves_below_a_log_only() {
        let config = pool(2, 10);
        let members = (0..10).map(Loss::Member).collect();
        assert_eq!(config.promise().loss, Loss::out_of(3, members));
        let problems = config.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("changed in place"), "{problems:?}");
        assert_eq!(RaidzConfig { parity: 2 }.problems(&[MIB; 3]).len(), 1);
        assert_eq!(RaidzConfig { parity: 4 }.problems(&[MIB; 9]).len(), 1);
    }
}
