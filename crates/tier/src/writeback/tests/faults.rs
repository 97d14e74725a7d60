//! Invalid settings, scaling, and failure of a drive.

use model::command::{Command, Completion, Op, Status};
use model::data::{Bytes, DataBackedDrive, DriveFault, Image};
use model::media::ram::Ram;

use super::*;
use crate::{Promise, TierSettings};

#[test]
fn everything_that_is_wrong_is_told() {
    let found = |config: &WriteBackConfig, children: &[u64]| config.problems(children).len();
    let plain = WriteBackConfig::PLAIN;
    assert_eq!(found(&plain, &[64 * MIB, 64 * MIB]), 0);
    assert_eq!(found(&plain, &[64 * MIB]), 1);
    assert_eq!(found(&plain, &[15 * MIB, 64 * MIB]), 1);
    assert_eq!(found(&plain, &[64 * MIB, MIB, MIB / 2]), 1);
    assert_eq!(found(&plain, &[64 * MIB, (1 << 52) + 8192]), 1);
    let wrong = WriteBackConfig {
        segment: 5000,
        record: 256 << 10,
        chunk: 0,
        start: 1.5,
        records_in_flight: 0,
        destage: Destage {
            hurry: 0.1,
            ..plain.destage
        },
        ..plain
    };
    assert_eq!(found(&wrong, &[64 * MIB, 64 * MIB]), 6);
}

#[test]
fn it_is_lost_with_the_cache_or_a_drive_behind() {
    let children: Vec<Promise> = (0..3)
        .map(|member| Promise::of_member(member, true))
        .collect();
    let promise = WriteBackConfig::VSAN.promise(&children);
    let names: Vec<_> = ["c", "a", "b"].map(Into::into).into();
    assert_eq!(
        promise.words(&names),
        "acknowledged is durable, lost if c or (a or b)"
    );
    let late = WriteBackConfig {
        durability: Durability::Flush,
        ..WriteBackConfig::VSAN
    };
    let words = late.promise(&children).words(&names);
    assert_eq!(words, "flushed is durable, lost if c or (a or b)");
}

#[test]
fn limits_shrink_with_the_pool_and_a_segment_only_so_far() {
    let mut config = WriteBackConfig::VSAN;
    config.shrink(0.005);
    assert_eq!(config.buffer_limit, 3_000_000_000);
    assert_eq!((config.segment, config.destage.round), (256 << 10, 8 << 20));
    let mut plain = WriteBackConfig::PLAIN;
    plain.shrink(0.5);
    assert_eq!((plain.buffer_limit, plain.segment), (u64::MAX, 2 << 20));
}

type Group = Pool<DataBackedDrive<Ram, Image>, Bytes>;

fn kept(config: &PoolConfig<DriveConfig>, befallen: usize, trouble: DriveFault) -> Group {
    let buffers = Bytes::default();
    let member = |(index, it): (usize, &Member<DriveConfig>)| {
        let DriveConfig::Ram(ram) = &it.drive else {
            unreachable!("a RAM disk");
        };
        let mut kept = DataBackedDrive::new(
            Ram::new(ram.clone()),
            Image::default(),
            buffers.clone(),
            false,
        );
        if index == befallen {
            kept.befall(Time::ZERO, trouble);
        }
        kept
    };
    let members = config.members.iter().enumerate().map(member).collect();
    Pool::resume(config, members, config.build_tiers(), buffers.clone())
}

/// Returns all completions of commands submitted at one time.
fn all(pool: &mut Group, commands: impl Iterator<Item = Command>) -> Vec<Completion> {
    let mut done = Vec::new();
    for (id, command) in commands.enumerate() {
        let id = id as u32;
        pool.submit(Time::ZERO, Command { id, ..command });
    }
    while pool.next_event() < Time::NEVER {
        let next = pool.next_event();
        pool.advance(next, next, &mut done);
    }
    done
}

/// After a record could not be written, no write is acknowledged, and no command waits forever.
#[test]
fn what_cannot_be_written_stops_all_writes_and_no_reads() {
    let config = group(small(), &[ram(MIB), slow(16 * MIB, 20)]);
    let ops = [Op::Write, Op::Write, Op::Deallocate, Op::WriteZeroes];
    let commands = || {
        (0..3000u32).map(|index| {
            let bytes = [UNIT, 512, 65536, 6144][index as usize % 4];
            let offset = u64::from(index.wrapping_mul(7919) % 3800) * u64::from(UNIT);
            Command::new(0, ops[index as usize % 4], offset, bytes)
        })
    };
    for trouble in [DriveFault::Dies, DriveFault::FailsWrite] {
        for member in 0..2 {
            let mut pool = kept(&config, member, trouble);
            let done = all(&mut pool, commands());
            assert_eq!(done.len(), 3000, "{trouble:?} of {member}");
            let failed = done.iter().filter(|it| it.status != Status::Success);
            let failed = failed.count();
            assert!(failed > 1000, "{failed}: {trouble:?} of {member}");
            if member == 0 {
                assert_eq!(failed, 3000, "{trouble:?}");
            }
        }
    }
    let mut pool = kept(&config, 0, DriveFault::Dies);
    let read = all(&mut pool, core::iter::once(Command::read(0, 0, UNIT)));
    assert_eq!(read[0].status, Status::Success);
}
