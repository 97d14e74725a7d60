//! Laws of devices, full stripes, compression, cleaning, and failed drives.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use model::data::DriveFault;
use model::device::Device;
use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};

use super::*;
use crate::laws::holds_the_laws;
use crate::{
    DriveConfig, Kind, Member, MirrorConfig, ParityArrayConfig, Pool, PoolConfig, Target,
    TierConfig,
};

const MIB: u64 = 1 << 20;
const KIB: u32 = 1 << 10;

fn ram(bytes: u64) -> DriveConfig {
    DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(10),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

/// A capacity of a RAID 5 of five drives (members 0 to 4), and a log on two mirrored drives (5 and 6).
fn pool(config: &LogStructuredConfig, drive: u64) -> PoolConfig<DriveConfig> {
    let mut drives = vec![ram(drive); 5];
    drives.resize(7, ram(16 * MIB));
    let slice = |member: usize| Target::Slice {
        member: member as u16,
        base: 0,
        bytes: drives[member].capacity_bytes(),
    };
    let raid = ParityArrayConfig {
        chunk: 128 * KIB,
        ..ParityArrayConfig::default()
    };
    let tiers = [
        (Kind::Raid5(raid), (0..5).map(slice).collect()),
        (
            Kind::Mirror(MirrorConfig::default()),
            (5..7).map(slice).collect(),
        ),
        (
            Kind::LogStructured(config.clone()),
            vec![Target::Tier(0), Target::Tier(1)],
        ),
    ];
    let member = |(index, drive): (usize, &DriveConfig)| Member {
        name: alloc::format!("{index}"),
        drive: drive.clone(),
    };
    let config = PoolConfig {
        members: drives.iter().enumerate().map(member).collect(),
        tiers: tiers
            .into_iter()
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

/// Executes commands one after another; returns the completions.
fn run(pool: &mut impl Device, commands: impl IntoIterator<Item = Command>) -> Vec<Completion> {
    let mut now = Time::ZERO;
    run_from(pool, &mut now, commands)
}

/// As [`run`], from a time on, which is then the end.
fn run_from(
    pool: &mut impl Device,
    now: &mut Time,
    commands: impl IntoIterator<Item = Command>,
) -> Vec<Completion> {
    let mut ended = Vec::new();
    for (id, command) in (0..).zip(commands) {
        pool.submit(*now, Command { id, ..command });
        let before = ended.len();
        while ended.len() == before {
            *now = pool.next_event();
            pool.advance(*now, *now, &mut ended);
        }
    }
    while pool.next_event() != Time::NEVER {
        *now = pool.next_event();
        pool.advance(*now, *now, &mut ended);
    }
    ended
}

/// Returns the bytes of reads and of writes that the drives of the capacity got.
fn on_capacity(pool: &mut Pool<crate::Drive>) -> (u64, u64) {
    let (mut read, mut written) = (0, 0);
    for it in pool.recorded() {
        match it.command.op {
            Op::Read if it.member < 5 => read += u64::from(it.command.bytes),
            Op::Write if it.member < 5 => written += u64::from(it.command.bytes),
            _ => {}
        }
    }
    (read, written)
}

fn write(block: u64) -> Command {
    Command::write(0, block * BLOCK, BLOCK as u32)
}

#[test]
fn keeps_the_laws() {
    let nodes = StructuredNodes {
        count: 5,
        log_crossings: 2.0,
        stripe_crossings: 1.25,
        network: Network {
            ps_per_byte: 320,
            delay: Span::from_us(15),
            message: Span::from_us(3),
        },
        node: crate::NodeConfig {
            cores: 2,
            client: Span::from_us(2),
            owner: Span::from_us(1),
            store: Span::from_us(1),
            ps_per_byte: 200,
            idle_watts: 100.0,
            core_watts: 3.0,
        },
    };
    let free = LogStructuredConfig {
        memory: 8 * MIB,
        overhead: 0.3,
        ..LogStructuredConfig::FREE
    };
    holds_the_laws(&pool(&free, 8 * MIB));
    let all = LogStructuredConfig {
        stored: 1536,
        filled: false,
        compress_ps: 1000,
        nodes,
        ..free
    };
    holds_the_laws(&pool(&all, 8 * MIB));
}

#[test]
fn scattered_writes_reach_the_drives_in_full_stripes() {
    let config = LogStructuredConfig::FREE;
    let mut pool = pool(&config, 64 * MIB).build(Precondition::Fresh, 1);
    pool.record();
    // 256 blocks at scattered addresses: two stripes, and a fifth more of parity. Labels take 4 KiB each.
    let ended = run(&mut pool, (0..256).map(|it| write(it * 37 % 1009)));
    assert!(ended.iter().all(|it| it.status == Status::Success));
    let (read, written) = on_capacity(&mut pool);
    assert_eq!(read, 0);
    let stripes = 2 * 512 * 1024 * 5 / 4;
    assert!(
        (stripes..stripes + 64 * 1024).contains(&written),
        "{written}"
    );
}

#[test]
fn compressed_blocks_share_a_stripe() {
    let written = |stored| {
        let config = LogStructuredConfig {
            stored,
            ..LogStructuredConfig::FREE
        };
        let mut pool = pool(&config, 64 * MIB).build(Precondition::Fresh, 1);
        pool.record();
        run(&mut pool, (0..1024).map(|it| write(it * 37 % 4001)));
        on_capacity(&mut pool).1 / (640 * 1024)
    };
    assert_eq!((written(4096), written(2048), written(512)), (8, 4, 1));
}

#[test]
fn a_write_takes_the_time_of_its_log_and_a_read_in_memory_none() {
    let config = LogStructuredConfig::FREE;
    let mut pool = pool(&config, 64 * MIB).build(Precondition::Fresh, 1);
    let commands = [
        write(5),
        write(7),
        Command::read(0, 7 * BLOCK, BLOCK as u32),
        Command::read(0, 9 * BLOCK, BLOCK as u32),
    ];
    let ended = run(&mut pool, commands);
    let took: Vec<u64> = ended.iter().map(|it| it.anatomy.total().ns()).collect();
    // The first write also marks its region in the mirror's label. A block and its header take 8 KiB of the log.
    assert_eq!(took[1..], [10_819, 0, 10_410]);
}

#[test]
fn space_is_cleaned_when_few_stripes_are_free() {
    let config = LogStructuredConfig {
        memory: 8 * MIB,
        overhead: 0.3,
        ..LogStructuredConfig::FREE
    };
    let mut pool = pool(&config, 8 * MIB).build(Precondition::Fresh, 1);
    let blocks = pool.capacity().bytes / BLOCK;
    pool.record();
    // Four times the capacity, scattered.
    let ended = run(
        &mut pool,
        (0..4 * blocks).map(|it| write(it * 7919 % blocks)),
    );
    assert_eq!(ended.len() as u64, 4 * blocks);
    assert!(ended.iter().all(|it| it.status == Status::Success));
    let (read, written) = on_capacity(&mut pool);
    assert!(read > 0);
    let amplified = written as f64 / (4 * blocks * BLOCK) as f64;
    assert!((1.25..4.0).contains(&amplified), "{amplified}");
}

#[test]
fn writes_continue_without_a_drive_and_without_a_log() {
    for (dead, good) in [
        (&[3][..], true),
        (&[5], true),
        (&[0, 1], false),
        (&[5, 6], false),
    ] {
        let config = pool(&LogStructuredConfig::FREE, 64 * MIB);
        let mut pool = config.vulnerable(Precondition::Fresh, 1);
        for &member in dead {
            pool.befall(Time::ZERO, member, DriveFault::Dies);
        }
        let ended = run(&mut pool, (0..600).map(|it| write(it * 37 % 1009)));
        let all = ended.iter().all(|it| it.status == Status::Success);
        assert_eq!(all, good, "{dead:?}");
    }
}

#[test]
fn writes_fail_while_all_logs_are_gone_and_continue_when_they_return() {
    // The log is one drive: a mirror that lost both copies does not continue.
    let mut config = pool(&LogStructuredConfig::FREE, 64 * MIB);
    config.tiers.remove(1);
    config.tiers[1].children[1] = Target::Slice {
        member: 5,
        base: 0,
        bytes: 16 * MIB,
    };
    config.members.pop();
    config.volumes = vec![1];
    let mut pool = config.vulnerable(Precondition::Fresh, 1);
    let mut now = Time::ZERO;
    let mut succeed = |pool: &mut Pool<_, _>, change: Option<DriveFault>| {
        if let Some(change) = change {
            pool.befall(now, 5, change);
        }
        let ended = run_from(pool, &mut now, (0..300).map(|it| write(it * 37 % 1009)));
        assert_eq!(ended.len(), 300);
        let good = ended.iter().filter(|it| it.status == Status::Success);
        good.count()
    };
    assert_eq!(succeed(&mut pool, None), 300);
    assert_eq!(succeed(&mut pool, Some(DriveFault::Dies)), 0);
    assert_eq!(succeed(&mut pool, Some(DriveFault::Returns)), 300);
}

/// Writes of each size from 1 MiB to 16 MiB, aligned and not; returns the number of completions within 20 s, and of
/// writes.
fn large_writes(
    config: &LogStructuredConfig,
    (drive, most_blocks): (u64, Option<u64>),
    depth: usize,
) -> (usize, usize) {
    let config = pool(config, drive);
    let mut tiers = config.build_tiers();
    if let (Some(most), Some(crate::AnyTier::LogStructured(tier))) = (most_blocks, tiers.last_mut())
    {
        tier.most_blocks = most;
    }
    let members = config.members.iter();
    let members = members.map(|it| it.drive.build(Precondition::Fresh, 1));
    let mut pool = Pool::resume(&config, members.collect(), tiers, ());
    let capacity = pool.capacity().bytes;
    let sizes = [1, 2, 4, 8, 16].map(|it| it * MIB);
    let writes = (0..10 * depth as u64).map(|it| {
        let bytes = sizes[it as usize % 5];
        let unit = if it % 2 == 0 { BLOCK } else { 512 };
        let at = it * 7919 * unit % (capacity - bytes) / unit * unit;
        Command::write(it as u32, at, bytes as u32)
    });
    let written: u64 = writes.clone().map(|it| u64::from(it.bytes)).sum();
    let (mut now, mut ended, count) = (Time::ZERO, Vec::new(), 10 * depth);
    let mut writes = writes.peekable();
    let mut submitted = 0;
    // Idle arrays and mirrors, and cleaning that frees nothing, have events without end.
    let end = Time::ZERO + Span::from_ms(20_000);
    while now < end && ended.len() < count {
        while submitted - ended.len() < depth && writes.peek().is_some() {
            pool.submit(now, writes.next().expect("there is one"));
            submitted += 1;
        }
        now = pool.next_event();
        if now != Time::NEVER {
            pool.advance(now, now, &mut ended);
        }
    }
    assert!(ended.iter().all(|it| it.status == Status::Success));
    if let Some(crate::AnyTier::LogStructured(tier)) = pool.tiers().last() {
        let logged = tier.counts.logged / u64::from(tier.config.stored) * BLOCK;
        assert!(ended.len() < count || logged >= written, "{logged}");
    }
    (ended.len(), count)
}

/// A write may be larger than all space that cleaning can free, or than the logs.
#[test]
fn writes_larger_than_the_spare_space_complete() {
    let tiny = LogStructuredConfig {
        memory: 8 * MIB,
        overhead: 0.3,
        ..LogStructuredConfig::FREE
    };
    let coarse = LogStructuredConfig {
        stripe: 2 << 20,
        overhead: 0.4,
        ..tiny.clone()
    };
    let packed = LogStructuredConfig {
        stored: 1536,
        ..tiny.clone()
    };
    for config in [&tiny, &coarse, &packed] {
        for depth in [1, 64] {
            for filled in [false, true] {
                let config = LogStructuredConfig {
                    filled,
                    ..config.clone()
                };
                let (ended, count) = large_writes(&config, (8 * MIB, None), depth);
                assert_eq!(ended, count, "depth {depth}, filled {filled}: {config:?}");
            }
        }
    }
    // Without parts, they wait for ever.
    let (ended, count) = large_writes(&tiny, (8 * MIB, Some(u64::MAX)), 1);
    assert!(ended < count);
}

#[test]
fn a_small_log_beside_a_large_one_is_refused() {
    use crate::TierSettings;
    let problems =
        |logs: [u64; 2]| LogStructuredConfig::FREE.problems(&[256 * MIB, logs[0], logs[1]]);
    assert_eq!(problems([4 * MIB, 100 << 30]), [""; 0]);
    let found = problems([1088 << 10, 100 << 30]);
    assert!(
        found.len() == 1 && found[0].contains("its logs have 2228224 usable bytes"),
        "{found:?}"
    );
}

#[test]
fn children_that_failed_are_used_again_after_a_power_cut() {
    let mut tier = LogStructured::new(&LogStructuredConfig::FREE, &[64 * MIB, 16 * MIB]);
    tier.failed = Some(Status::WriteFault);
    tier.logs[0].broken = true;
    tier.power_cut(Time::ZERO);
    assert!(tier.failed.is_none() && !tier.has_no_log());
}

#[test]
fn acknowledged_is_durable_until_two_drives_or_both_logs_and_the_memory_fail() {
    let config = pool(&LogStructuredConfig::FREE, 64 * MIB);
    let loss = config.promise().loss;
    let lost = |dead: &[u16], ram| loss.happens(&|member| dead.contains(&member), ram);
    assert!(!config.needs_flushes());
    assert!(!lost(&[2], true) && !lost(&[5], true) && !lost(&[5, 6], false));
    assert!(lost(&[2, 4], false) && lost(&[5, 6], true));
}
