//! Columns of blocks, failed children, and resilvers.

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
            memory_bus: None,
            spread: 0.0,
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
            kind: Kind::Raidz(RaidzConfig::new(parity)),
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
        RaidzConfig::new(parity).capacity(&vec![42 * SECTOR * 100; children])
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
    assert_eq!(RaidzConfig::new(2).problems(&[MIB; 3]).len(), 1);
    assert_eq!(RaidzConfig::new(4).problems(&[MIB; 9]).len(), 1);
}

/// A child misses a third of the writes, returns and is resilvered: it gets these blocks only. A replaced child gets
/// all blocks.
#[test]
fn a_child_that_returns_is_resilvered() {
    let config = pool(1, 6);
    let blocks = config.tiers[0].kind.capacity(&[9 * MIB; 6]) / BLOCK;
    for replaced in [false, true] {
        let mut pool = config.vulnerable(Precondition::Fresh, 1);
        let mut ended = Vec::new();
        let write = |block: u64| Command::write(0, block * BLOCK, BLOCK as u32);
        pool.submit(Time::ZERO, write(0));
        run(&mut pool, &mut ended);
        pool.befall(ended[0].at, 2, DriveFault::Dies);
        for block in (0..blocks).step_by(3) {
            pool.submit(ended.last().map_or(Time::ZERO, |it| it.at), write(block));
            run(&mut pool, &mut ended);
        }
        assert!(pool.lacks(2));
        let now = ended.last().map_or(Time::ZERO, |it| it.at);
        pool.record();
        match replaced {
            true => pool.replace(now, 2),
            false => pool.befall(now, 2, DriveFault::Returns),
        }
        assert!(pool.rebuild(2).is_some() && pool.rebuild_left(2) > 0);
        // A write meanwhile goes to all children; a read is not sent to the child.
        pool.submit(now, write(1));
        pool.submit(now, Command::read(1, 0, BLOCK as u32));
        run(&mut pool, &mut ended);
        assert!(!pool.lacks(2) && pool.rebuild(2).is_none());
        let asked = pool.recorded();
        let bytes = |op| {
            let of = asked
                .iter()
                .filter(|it| it.member == 2 && it.command.op == op);
            of.map(|it| u64::from(it.command.bytes)).sum::<u64>()
        };
        // 40 sectors of each block on 6 children, and the client's write.
        let lacked = match replaced {
            true => blocks,
            false => blocks.div_ceil(3),
        };
        let expected = (lacked + 1) * 40 * SECTOR / 6;
        let written = bytes(Op::Write);
        assert!(
            written.abs_diff(expected) < expected / 20,
            "{written} {expected}"
        );
        assert_eq!(bytes(Op::Read), 0);
    }
}

fn block(block: u64) -> Command {
    Command::write(0, block * BLOCK, BLOCK as u32)
}

/// Executes a write of a block at `now`, and all events that follow. Returns its status and the time.
fn write<D: Device>(pool: &mut D, now: Time, number: u64) -> (Status, Time) {
    let mut ended = Vec::new();
    pool.submit(now, block(number));
    run(pool, &mut ended);
    (ended[0].status, ended[0].at)
}

/// The resilver of a replaced child is interrupted: what it has not got yet has no marks.
#[test]
fn a_replaced_child_that_fails_again_lacks_all_blocks() {
    let mut pool = pool(1, 6).vulnerable(Precondition::Fresh, 1);
    let mut now = Time::ZERO;
    pool.replace(now, 2);
    let all = pool.rebuild_left(2);
    for _ in 0..40 {
        let next = pool.next_event();
        now = pool.advance(next, next, &mut Vec::new());
    }
    assert!(pool.rebuild_left(2) < all);
    pool.befall(now, 2, DriveFault::Dies);
    now = write(&mut pool, now, 0).1;
    assert!(pool.rebuild(2).is_none() && pool.lacks(2));
    pool.befall(now, 2, DriveFault::Returns);
    assert_eq!(pool.rebuild_left(2), all);
    run(&mut pool, &mut Vec::new());
    assert!(!pool.lacks(2));
}

/// A child waits for the resilver of another one, which fails while its rate limit delays it.
#[test]
fn a_waiting_child_is_resilvered_although_the_one_before_it_fails() {
    let mut config = pool(2, 6);
    config.tiers[0].kind = Kind::Raidz(RaidzConfig {
        parity: 2,
        resync_rate: 1_000_000,
    });
    let mut pool = config.vulnerable(Precondition::Fresh, 1);
    pool.replace(Time::ZERO, 0);
    pool.replace(Time::ZERO, 1);
    assert!(pool.rebuild(0).is_some());
    let mut now = Time::ZERO;
    // The first blocks take microseconds, and the next ones may start 260 ms later.
    while pool.next_event() < Time::ZERO + Span::from_ms(100) {
        let next = pool.next_event();
        now = pool.advance(next, next, &mut Vec::new());
    }
    pool.befall(now, 0, DriveFault::Dies);
    assert_eq!(write(&mut pool, now, 0).0, Status::Success);
    assert!(pool.lacks(0) && !pool.lacks(1));
}

/// A child misses a write, then a second one fails, and both return in either order. The second child has missed no
/// acknowledged write.
#[test]
fn continues_when_more_children_than_parity_have_returned() {
    for order in [[2, 3], [3, 2]] {
        let mut pool = pool(1, 6).vulnerable(Precondition::Fresh, 1);
        pool.befall(Time::ZERO, 2, DriveFault::Dies);
        let (status, now) = write(&mut pool, Time::ZERO, 0);
        assert_eq!(status, Status::Success);
        pool.befall(now, 3, DriveFault::Dies);
        let (status, now) = write(&mut pool, now, 1);
        assert_eq!(status, Status::Gone);
        for child in order {
            pool.befall(now, child, DriveFault::Returns);
        }
        assert!(!pool.lacks(3) && pool.lacks(2) && pool.rebuild(2).is_some());
        let (status, _) = write(&mut pool, now, 2);
        assert_eq!(status, Status::Success);
        assert!(!pool.lacks(2), "{order:?}");
    }
}
