//! Laws of devices, and which data is written where and when.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

mod data;
mod failing;
mod large;
mod lives;
mod promises;
mod recovery;
mod speed;

use model::command::Op;
use model::conformance::{Law, Suite, samples};
use model::device::{Capacity, Device};
use model::media::ram::{Ram, RamConfig};
use model::media::{Medium, Precondition};

use super::*;
use crate::laws::{holds_the_laws, witnessed};
use crate::{
    AnyTier, ChildCommand, DriveConfig, DurabilityPoint, Kind, Loss, Member, MirrorConfig, Pool,
    PoolConfig, RaidzConfig, Reads, StripeConfig, Target, TierConfig, TierSettings,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn ram(bytes: u64, us: u64) -> DriveConfig {
    DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(us),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

fn config() -> IntentLogConfig {
    IntentLogConfig {
        size: 32 * MIB,
        ram: 20 * MIB,
        record: 128 << 10,
        stored: None,
        autotrim: None,
        run: 1 << 20,
        filled: true,
        lanes: 1,
        sync: SyncPolicy::Standard,
        logbias: Logbias::Latency,
        slog_bulk: 64 * MIB,
        block: 128 << 10,
        txg: Span::from_ms(5000),
        cpu: LogCpu {
            read: Span::from_us(4),
            write: Span::from_us(5),
            copy_ps: 50,
            commit: Span::from_us(20),
            block: Span::from_us(10),
            compress_ps: 0,
            decompress_ps: 0,
        },
        scale: LogScale::default(),
    }
}

/// A main pool of 64 MiB as member 0, and this number of log devices of 8 MiB as the following members.
fn pool(tier: &IntentLogConfig, logs: usize) -> PoolConfig<DriveConfig> {
    let mut drives = vec![ram(64 * MIB, 30)];
    drives.resize(1 + logs, ram(8 * MIB, 3));
    of_drives(tier, &drives)
}

fn slice(drives: &[DriveConfig], member: usize) -> Target {
    Target::Slice {
        member: member as u16,
        base: 0,
        bytes: drives[member].capacity_bytes() / 4096 * 4096,
    }
}

fn members(drives: &[DriveConfig]) -> Vec<Member<DriveConfig>> {
    let member = |(index, drive): (usize, &DriveConfig)| Member {
        name: index.to_string(),
        drive: drive.clone(),
    };
    drives.iter().enumerate().map(member).collect()
}

fn of_drives(tier: &IntentLogConfig, drives: &[DriveConfig]) -> PoolConfig<DriveConfig> {
    let config = PoolConfig {
        members: members(drives),
        tiers: vec![TierConfig {
            name: String::from("tank"),
            kind: Kind::IntentLog(tier.clone()),
            children: (0..drives.len()).map(|it| slice(drives, it)).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

/// A main pool on a RAID-Z of five, and a mirror as log.
fn raidz_and_mirror(tier: &IntentLogConfig, log: &DriveConfig) -> PoolConfig<DriveConfig> {
    let mut drives = vec![ram(16 * MIB, 30); 5];
    drives.resize(7, log.clone());
    let kinds = [
        Kind::Raidz(RaidzConfig::new(1)),
        Kind::Mirror(MirrorConfig {
            reads: Reads::First,
            ..MirrorConfig::default()
        }),
        Kind::IntentLog(tier.clone()),
    ];
    let children = [
        (0..5).map(|it| slice(&drives, it)).collect(),
        (5..7).map(|it| slice(&drives, it)).collect(),
        vec![Target::Tier(0), Target::Tier(1)],
    ];
    let tiers = kinds.into_iter().zip(children);
    let config = PoolConfig {
        members: members(&drives),
        tiers: tiers
            .map(|(kind, children)| TierConfig {
                name: String::from(kind.word()),
                kind,
                children,
            })
            .collect(),
        volumes: vec![2],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

#[test]
fn keeps_the_laws_without_a_log_with_one_and_with_two() {
    for logs in 0..3 {
        for (record, filled) in [(128 << 10, true), (4096, false), (16 << 10, true)] {
            let tier = IntentLogConfig {
                record,
                filled,
                ..config()
            };
            holds_the_laws(&pool(&tier, logs));
        }
    }
}

#[test]
fn keeps_the_laws_with_all_settings() {
    let free = IntentLogConfig {
        cpu: LogCpu::default(),
        txg: Span::from_us(300),
        ..config()
    };
    holds_the_laws(&pool(&free, 1));
    for sync in [SyncPolicy::Standard, SyncPolicy::Always] {
        for (_, logbias) in Logbias::ALL {
            let tier = IntentLogConfig {
                sync,
                logbias,
                slog_bulk: 16 * KIB,
                lanes: 3,
                ..config()
            };
            holds_the_laws(&pool(&tier, 1));
        }
    }
}

#[test]
fn keeps_the_laws_over_raidz_and_mirrors_of_drives() {
    let optane = DriveConfig::XPoint(samples::xpoint().into());
    holds_the_laws(&raidz_and_mirror(&config(), &optane));
    // A log device with a volatile cache.
    let flash = DriveConfig::Nand(samples::nand().into());
    holds_the_laws(&of_drives(&config(), &[ram(64 * MIB, 30), flash]));
}

/// All laws except the guarantee of a flush.
#[test]
fn with_sync_disabled_a_power_cut_takes_what_was_flushed_and_no_other_law_is_broken() {
    let tier = IntentLogConfig {
        sync: SyncPolicy::Disabled,
        ..config()
    };
    let config = pool(&tier, 1);
    let found = Suite::default().examine(1, |seed| witnessed(&config, seed));
    assert_eq!(found.map_err(|it| it.law), Err(Law::PowerCut));
    assert_eq!(config.promise().durable, DurabilityPoint::Later);
}

/// Runs commands, each submitted at its time under its index, until no event is left before `until`.
fn play<L: Device>(
    pool: &mut Pool<L>,
    commands: &[(Time, Command)],
    until: Time,
) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut next = 0;
    loop {
        let arrival = commands.get(next).map_or(Time::NEVER, |it| it.0);
        let event = pool.next_event();
        let now = event.min(arrival);
        if now == Time::NEVER || now > until {
            return done;
        }
        if event == now {
            let mut at_once = Vec::new();
            pool.advance(now, now, &mut at_once);
            done.append(&mut at_once);
        }
        if arrival == now {
            let id = next as u32;
            pool.submit(
                now,
                Command {
                    id,
                    ..commands[next].1
                },
            );
            next += 1;
        }
    }
}

/// Returns the commands sent to members, for commands that arrive at once, or one after another with a gap.
fn asked(
    config: &PoolConfig<DriveConfig>,
    commands: &[(Time, Command)],
    until: Time,
) -> (Vec<Completion>, Vec<ChildCommand>) {
    let mut pool = config.build(Precondition::Fresh, 1);
    pool.record();
    let done = play(&mut pool, commands, until);
    (done, pool.recorded())
}

fn us(us: u64) -> Time {
    Time::from_ns(us * 1000)
}

fn seconds(seconds: u64) -> Time {
    us(seconds * 1_000_000)
}

fn sync(offset: u64, bytes: u64) -> Command {
    Command {
        fua: true,
        ..Command::write(0, offset, bytes as u32)
    }
}

fn writes(asked: &[ChildCommand]) -> impl Iterator<Item = &ChildCommand> {
    asked.iter().filter(|it| it.command.op == Op::Write)
}

#[test]
fn writes_that_nobody_flushes_never_touch_the_log() {
    let commands: Vec<_> = (0..200)
        .map(|index| (us(index * 100), Command::write(0, index * 131072, 131072)))
        .collect();
    let (done, asked) = asked(&pool(&config(), 1), &commands, seconds(60));
    assert_eq!(done.len(), 200);
    assert!(writes(&asked).count() > 0);
    assert_eq!(asked.iter().filter(|it| it.member == 1).count(), 0);
}

#[test]
fn with_sync_disabled_nothing_is_logged() {
    let tier = IntentLogConfig {
        sync: SyncPolicy::Disabled,
        ..config()
    };
    let commands = [(us(0), sync(0, 131072)), (us(100), Command::flush(0))];
    let (done, asked) = asked(&pool(&tier, 1), &commands, seconds(60));
    assert_eq!(done.len(), 2);
    assert_eq!(asked.iter().filter(|it| it.member == 1).count(), 0);
}

#[test]
fn a_sync_write_takes_the_software_the_log_and_its_flush_to_the_nanosecond() {
    let commands = [(us(0), sync(0, 131072)), (us(1000), sync(0, 4096))];
    let (done, asked) = asked(&pool(&config(), 1), &commands, seconds(1));
    let cpu = config().cpu;
    let software = |bytes| cpu.write + Span::per_bytes(cpu.copy_ps, bytes) + cpu.commit + cpu.block;
    // 4 KiB of data, one header for the record and one for the block: 8 KiB.
    let log = Span::from_us(3) + Span::per_bytes(100, 8192) + Span::from_us(3);
    let expected = software(4096) + log;
    assert_eq!(done[1].anatomy.total(), expected);
    assert_eq!(done[1].anatomy.get(Part::Tier), software(4096));
    assert_eq!(done[1].anatomy.get(Part::Controller), Span::from_us(6));
    // A record of 128 KiB with its headers does not fit into one block.
    let sizes: Vec<_> = writes(&asked).map(|it| it.command.bytes).collect();
    assert_eq!(sizes, [131072, 4096, 8192]);
    let flushes = asked.iter().filter(|it| it.command.op == Op::Flush).count();
    assert_eq!(flushes, 2);
}

#[test]
fn a_flush_logs_what_is_not_logged_yet_and_nothing_twice() {
    let commands = [
        (us(0), Command::write(0, 0, 131072)),
        (us(10), Command::write(0, 131072, 8192)),
        (us(20), sync(262144, 131072)),
        (us(1000), Command::flush(0)),
        (us(2000), Command::flush(0)),
    ];
    let (done, asked) = asked(&pool(&config(), 1), &commands, seconds(1));
    // The first part of a record on the main pool is read first, so the second write comes after the third.
    let logged: u64 = writes(&asked).map(|it| u64::from(it.command.bytes)).sum();
    let data = 131072 + 131072 + 8192;
    assert!(logged >= data && logged < data + 4 * 4096, "{logged}");
    assert_eq!(done[4].anatomy.total(), config().cpu.commit);
}

#[test]
fn what_is_changed_in_part_is_read_first_once() {
    let commands = [
        (us(0), Command::write(0, 4096, 4096)),
        (us(1), Command::write(0, 8192, 4096)),
        (us(500), Command::write(0, 65536, 131072)),
        (us(1000), Command::write(0, 12288, 4096)),
    ];
    let (done, asked) = asked(&pool(&config(), 1), &commands, seconds(4));
    let reads: Vec<_> = asked.iter().map(|it| it.command.offset).collect();
    // Records 0 and 1 are in slots 1 and 2, because the volume was filled.
    assert_eq!(reads, [131072, 262144]);
    let cpu = config().cpu;
    let alone = cpu.write + Span::per_bytes(cpu.copy_ps, 4096);
    let read = Span::from_us(30) + Span::per_bytes(100, 131072);
    assert_eq!(done[0].anatomy.total(), alone + read);
    assert_eq!(done[1].anatomy.total(), alone + read - Span::from_us(1));
    assert_eq!(done[3].anatomy.total(), alone);
    // A volume that was never written has nothing to read.
    let fresh = IntentLogConfig {
        filled: false,
        ..config()
    };
    let (_, asked) = self::asked(&pool(&fresh, 1), &commands, seconds(4));
    assert_eq!(asked.len(), 0);
}

#[test]
fn a_group_is_written_five_seconds_after_its_first_write_with_flush_root_and_flush() {
    let commands = [(us(7), Command::write(0, 0, 131072))];
    let mut pool = pool(&config(), 1).build(Precondition::Fresh, 1);
    pool.record();
    play(&mut pool, &commands, seconds(100));
    let asked = pool.recorded();
    let cpu = config().cpu;
    let in_memory = us(7) + cpu.write + Span::per_bytes(cpu.copy_ps, 131072);
    assert_eq!(asked[0].at, in_memory + Span::from_ms(5000));
    let what: Vec<_> = asked
        .iter()
        .map(|it| (it.command.op, it.command.bytes))
        .collect();
    let tables = 3 * 4096;
    let expected = [
        (Op::Write, 131072),
        (Op::Write, tables),
        (Op::Flush, 0),
        (Op::Write, 4096),
        (Op::Flush, 0),
    ];
    assert_eq!(what, expected);
    assert_eq!(pool.next_event(), Time::NEVER);
}

#[test]
fn a_group_is_closed_when_a_fifth_of_what_may_be_dirty_is_in_it() {
    // 2 MiB may be dirty: the fourth record exceeds a fifth of it.
    let commands: Vec<_> = (0..4)
        .map(|index| (us(index * 1000), Command::write(0, index * 131072, 131072)))
        .collect();
    let (_, asked) = asked(&pool(&config(), 1), &commands, seconds(1));
    assert!(asked[0].at >= us(3000) && asked[0].at < us(3100));
    // Adjacent records are written together.
    assert_eq!(asked[0].command.bytes, 4 * 131072);
}

#[test]
fn what_was_written_lately_is_read_from_memory() {
    let commands = [
        (us(0), Command::write(0, 0, 131072)),
        (seconds(10), Command::read(0, 4096, 4096)),
        (seconds(11), Command::read(0, MIB, 262144)),
    ];
    let (done, asked) = asked(&pool(&config(), 1), &commands, seconds(20));
    let reads: Vec<_> = asked
        .iter()
        .filter(|it| it.command.op == Op::Read)
        .collect();
    // Records 8 and 9 are contiguous in slots 9 and 10.
    assert_eq!(reads.len(), 1);
    assert_eq!(reads[0].command.offset, 9 * 131072);
    assert_eq!(reads[0].command.bytes, 262144);
    let cpu = config().cpu;
    let from_memory = cpu.read + Span::per_bytes(cpu.copy_ps, 4096);
    assert_eq!(done[1].anatomy.total(), from_memory);
}

#[test]
fn commits_that_come_together_share_blocks() {
    let commands: Vec<_> = (0..16)
        .map(|index| {
            (
                us(index / 8 * 1000 + index % 8),
                sync(index * 131072, 131072),
            )
        })
        .collect();
    let small: Vec<_> = commands
        .iter()
        .map(|&(at, it)| (at, Command { bytes: 4096, ..it }))
        .collect();
    let tier = IntentLogConfig {
        filled: false,
        ..config()
    };
    let (done, asked) = asked(&pool(&tier, 1), &small, seconds(1));
    assert_eq!(done.len(), 16);
    let blocks = writes(&asked).filter(|it| it.member == 1).count();
    assert!((2..7).contains(&blocks), "{blocks}");
    assert!(done.iter().all(|it| it.status == Status::Success));
}

#[test]
fn without_a_log_large_writes_go_where_they_stay_and_are_not_written_again() {
    let commands = [(us(0), sync(0, 131072)), (us(1000), sync(131072, 131072))];
    let (_, asked) = asked(&pool(&config(), 0), &commands, seconds(30));
    let sizes: Vec<_> = writes(&asked).map(|it| it.command.bytes).collect();
    // Record and block, twice; then tables and root.
    assert_eq!(sizes, [131072, 4096, 131072, 4096, 3 * 4096, 4096]);
    let small = [(us(0), sync(0, 131072 / 4))];
    let (_, asked) = self::asked(&pool(&config(), 0), &small, seconds(1));
    let sizes: Vec<_> = writes(&asked).map(|it| it.command.bytes).collect();
    assert_eq!(sizes, [32768 + 4096]);
}

#[test]
fn logs_are_used_in_turn() {
    let commands: Vec<_> = (0..4)
        .map(|index| (us(index * 1000), sync(0, 131072)))
        .collect();
    let (_, asked) = asked(&pool(&config(), 2), &commands, seconds(1));
    let of = |member| writes(&asked).filter(|it| it.member == member).count();
    assert_eq!((of(1), of(2)), (4, 4));
}

/// No two records are in one slot, and free slots are unused.
#[test]
fn places_on_main_are_nobody_elses() {
    for (logs, record) in [(0, 4096), (1, 128 << 10), (0, 16 << 10)] {
        let tier = IntentLogConfig {
            record,
            txg: Span::from_ms(3),
            ..config()
        };
        let mut pool = pool(&tier, logs).build(Precondition::Fresh, 1);
        let mut stream = model::random::Stream::new(3, "places");
        let commands: Vec<_> = (0..3000)
            .map(|index| {
                let bytes = 4096 * (1 + stream.uniform_below(40));
                let offset = stream.uniform_below((32 * MIB - bytes) / 4096) * 4096;
                let fua = stream.uniform_below(3) == 0;
                (
                    us(index * 80),
                    Command {
                        fua,
                        ..Command::write(0, offset, bytes as u32)
                    },
                )
            })
            .collect();
        let done = play(&mut pool, &commands, seconds(1000));
        assert_eq!(done.len(), commands.len());
        let [AnyTier::IntentLog(log)] = pool.tiers() else {
            panic!("one tier")
        };
        let count = tier.size / u64::from(record);
        let slots: BTreeSet<_> = (0..count).filter_map(|it| log.room.slot(it)).collect();
        assert_eq!(slots.len() as u64, count);
        assert_eq!(log.dirty, 0);
        // In addition to records, there are roots and tables.
        let others = log.room.taken_slots() - count;
        let roots = u64::from(log.room.roots());
        let tables = log.tables.slots() as u64;
        assert_eq!(others, roots + tables, "record of {record}");
    }
}

/// Writes each of these records, one after another, and waits for all groups. Returns the pool.
fn overwritten(tier: &IntentLogConfig, records: impl Iterator<Item = u64>) -> Pool<crate::Drive> {
    let mut pool: Pool<crate::Drive> = pool(tier, 1).build(Precondition::Fresh, 1);
    pool.record();
    let (mut now, mut ended) = (Time::ZERO, Vec::new());
    for (id, record) in (0..).zip(records) {
        let command = Command::write(id, record * u64::from(tier.record), tier.record);
        pool.submit(now, command);
        while ended.len() <= id as usize {
            now = pool.next_event();
            pool.advance(now, now, &mut ended);
        }
    }
    while pool.next_event() != Time::NEVER {
        now = pool.next_event();
        pool.advance(now, now, &mut ended);
    }
    assert!(ended.iter().all(|it| it.status == Status::Success));
    pool
}

/// Returns the bytes of commands of one kind to the main pool.
fn on_main(pool: &mut Pool<crate::Drive>, op: Op) -> u64 {
    let commands = pool.recorded().into_iter();
    let main = commands.filter(|it| it.member == 0 && it.command.op == op);
    main.map(|it| u64::from(it.command.bytes)).sum()
}

#[test]
fn compressed_records_take_less_of_main() {
    let written = |stored| {
        let tier = IntentLogConfig { stored, ..config() };
        on_main(&mut overwritten(&tier, 0..100), Op::Write)
    };
    let (plain, half) = (written(None), written(Some(64 << 10)));
    // Besides records: tables and roots.
    let of = |record: u64| 100 * record..100 * record + 400 * KIB;
    assert!(of(128 * KIB).contains(&plain), "{plain}");
    assert!(of(64 * KIB).contains(&half), "{half}");
    let most = |stored| IntentLogConfig { stored, ..config() }.most_bytes(64 * MIB);
    assert_eq!(most(Some(64 << 10)), 2 * most(None));
    let tier = IntentLogConfig {
        stored: Some(64 << 10),
        ..config()
    };
    assert!(!tier.recovers() && config().recovers());
    holds_the_laws(&pool(&tier, 1));
}

#[test]
fn autotrim_trims_what_groups_have_freed() {
    let law = trim::Autotrim {
        groups: 2,
        least: 32 << 10,
        in_flight: 2,
    };
    let trimmed = |autotrim: bool, least| {
        let law = trim::Autotrim { least, ..law };
        let tier = IntentLogConfig {
            autotrim: autotrim.then_some(law),
            txg: Span::from_ms(1),
            ..config()
        };
        on_main(
            &mut overwritten(&tier, (0..400).map(|it| it * 7 % 256)),
            Op::Deallocate,
        )
    };
    assert_eq!(trimmed(false, 4096), 0);
    // 400 records were freed, those of the last group without a second one.
    let all = trimmed(true, 4096);
    assert!((200 * 128 * KIB..450 * 128 * KIB).contains(&all), "{all}");
    assert!(trimmed(true, 256 << 10) < all);
    let tier = IntentLogConfig {
        autotrim: Some(law),
        txg: Span::from_us(300),
        ..config()
    };
    for logs in 0..2 {
        holds_the_laws(&pool(&tier, logs));
    }
}
