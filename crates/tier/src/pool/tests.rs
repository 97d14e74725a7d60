//! Pools keep the contract, call members in order of time, and have the costs of their members.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use model::anatomy::Part;
use model::command::{Command, Completion, Op};
use model::conformance::{Mix, Suite, samples};
use model::device::{Device, Gauge, Gauges};
use model::engine::run;
use model::media::ram::{Ram, RamConfig};
use model::media::{Medium, MediumDrive, Precondition};
use model::time::{Span, Time};

use crate::laws::{gives_what_was_written, holds_the_laws};
use crate::raid0::Raid0;
use crate::{
    ConcatConfig, Drive, DriveConfig, Kind, Member, MirrorConfig, PoolConfig, StripeConfig, Target,
    TierConfig,
};

const MIB: u64 = 1 << 20;

fn ram(bytes: u64) -> DriveConfig {
    DriveConfig::Ram(ram_config(bytes))
}

fn ram_config(bytes: u64) -> RamConfig {
    RamConfig {
        bytes,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    }
}

fn xpoint() -> DriveConfig {
    DriveConfig::XPoint(Box::new(samples::xpoint()))
}

fn stripe(chunk: u32) -> Kind {
    Kind::Stripe(StripeConfig { chunk })
}

fn mirror() -> Kind {
    Kind::Mirror(MirrorConfig::default())
}

/// Members, and tiers over them: a child below 100 is a whole member; 100 and above is a tier.
fn pool(
    drives: &[DriveConfig],
    tiers: &[(Kind, &[u16])],
    volumes: &[u16],
) -> PoolConfig<DriveConfig> {
    let target = |&child: &u16| match child {
        0..100 => Target::Slice {
            member: child,
            base: 0,
            bytes: drives[usize::from(child)].capacity_bytes() / 4096 * 4096,
        },
        _ => Target::Tier(child - 100),
    };
    let config = PoolConfig {
        members: drives
            .iter()
            .enumerate()
            .map(|(index, drive)| Member {
                name: index.to_string(),
                drive: drive.clone(),
            })
            .collect(),
        tiers: tiers
            .iter()
            .map(|(kind, children)| TierConfig {
                name: String::from(kind.word()),
                kind: kind.clone(),
                children: children.iter().map(target).collect(),
            })
            .collect(),
        volumes: volumes.to_vec(),
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

#[test]
fn a_mirror_keeps_the_laws() {
    holds_the_laws(&pool(
        &[ram(33 * MIB), ram(40 * MIB)],
        &[(mirror(), &[0, 1])],
        &[0],
    ));
    holds_the_laws(&pool(&[xpoint(), xpoint()], &[(mirror(), &[0, 1])], &[0]));
}

#[test]
fn a_stripe_and_a_concatenation_keep_the_laws() {
    let three = [ram(40 * MIB), ram(32 * MIB), ram(33 * MIB)];
    holds_the_laws(&pool(&three, &[(stripe(48 << 10), &[0, 1, 2])], &[0]));
    holds_the_laws(&pool(
        &three,
        &[(Kind::Concat(ConcatConfig {}), &[0, 1, 2])],
        &[0],
    ));
    holds_the_laws(&pool(
        &[xpoint(), xpoint()],
        &[(stripe(64 << 10), &[0, 1])],
        &[0],
    ));
}

#[test]
fn tiers_on_tiers_and_several_volumes_keep_the_laws() {
    let drives = vec![ram(16 * MIB); 6];
    let tiers: [(Kind, &[u16]); 4] = [
        (mirror(), &[0, 1]),
        (mirror(), &[2, 3]),
        (stripe(16 << 10), &[100, 101]),
        (Kind::Concat(ConcatConfig {}), &[4, 5]),
    ];
    holds_the_laws(&pool(&drives, &tiers, &[2, 3]));
}

#[test]
fn two_tiers_on_slices_of_one_member_keep_the_laws() {
    let mut config = pool(&[xpoint(), xpoint()], &[(mirror(), &[0, 1])], &[0]);
    let bytes = xpoint().capacity_bytes() / 8192 * 4096;
    let slices = |base| {
        let slice = |member| Target::Slice {
            member,
            base,
            bytes,
        };
        vec![slice(0), slice(1)]
    };
    config.tiers[0].children = slices(0);
    config.tiers.push(TierConfig {
        name: String::from("striped"),
        kind: stripe(8192),
        children: slices(bytes),
    });
    config.volumes.push(1);
    assert_eq!(config.problems(), [""; 0]);
    holds_the_laws(&config);
}

#[test]
fn what_was_written_last_is_read_from_a_stripe_and_a_concatenation() {
    let three = [ram(4 * MIB), ram(3 * MIB), ram(3 * MIB)];
    gives_what_was_written(&pool(&three, &[(stripe(12 << 10), &[0, 1, 2])], &[0]));
    gives_what_was_written(&pool(
        &three,
        &[(Kind::Concat(ConcatConfig {}), &[0, 1, 2])],
        &[0],
    ));
}

#[test]
fn what_was_written_last_is_read_from_a_mirror() {
    gives_what_was_written(&pool(
        &[ram(4 * MIB), ram(4 * MIB)],
        &[(mirror(), &[0, 1])],
        &[0],
    ));
}

fn completions<D: Device>(mut device: D, seed: u64) -> Vec<Completion> {
    let mut mix = Mix::new(seed, device.capacity().bytes, Suite::default());
    run(&mut device, &mut mix, Time::ZERO, Time::NEVER);
    mix.log().to_vec()
}

/// The pool completes some commands itself, without delay; a member takes time to reject a command.
fn taken(log: &[Completion]) -> Vec<Completion> {
    let taken = log.iter().filter(|it| it.anatomy.total() > Span::ZERO);
    taken.copied().collect()
}

#[test]
fn a_stripe_completes_as_a_raid0_does_to_the_nanosecond() {
    let config = pool(
        &[ram(32 * MIB), ram(32 * MIB)],
        &[(stripe(32 << 10), &[0, 1])],
        &[0],
    );
    let mut pool = config.build(Precondition::Fresh, 1);
    let two = vec![
        Ram::new(ram_config(32 * MIB)),
        Ram::new(ram_config(32 * MIB)),
    ];
    let mut raid = Raid0::new(two, 32 << 10);
    for id in 0..4000u32 {
        let at = Time::from_ns(u64::from(id) * 1700);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        while pool.next_event() <= at {
            pool.advance(pool.next_event(), at, &mut left);
        }
        while raid.next_event() <= at {
            raid.advance(raid.next_event(), at, &mut right);
        }
        assert_eq!(left, right);
        let offset = u64::from(id.wrapping_mul(2_654_435_761)) % (60 * MIB) / 512 * 512;
        let bytes = 512 * (1 + id % 200);
        let op = [Op::Read, Op::Write, Op::Deallocate, Op::Flush][id as usize % 4];
        let command = Command::new(id, op, offset, bytes);
        pool.submit(at, command);
        raid.submit(at, command);
    }
}

/// A tier over one member has no cost of its own.
#[test]
fn one_member_alone_is_what_it_would_be_without_a_pool() {
    let config = pool(&[xpoint()], &[(Kind::Concat(ConcatConfig {}), &[0])], &[0]);
    for seed in 0..4 {
        let alone = completions(xpoint().build(Precondition::Steady, seed), seed);
        let pooled = completions(config.build(Precondition::Steady, seed), seed);
        // Rejected commands and empty ranges complete at once: later times differ, so only runs without them are
        // compared.
        assert_eq!(alone.len(), pooled.len());
    }
    let (mut alone, mut pooled) = (
        xpoint().build(Precondition::Steady, 3),
        config.build(Precondition::Steady, 3),
    );
    for id in 0..500 {
        let command = Command::new(
            id,
            [Op::Read, Op::Write][id as usize % 2],
            u64::from(id) * 12288,
            8192,
        );
        alone.submit(Time::ZERO, command);
        pooled.submit(Time::ZERO, command);
    }
    let log = |device: &mut dyn Device| {
        let mut done = Vec::new();
        while device.next_event() < Time::NEVER {
            device.advance(device.next_event(), Time::NEVER, &mut done);
            if done.len() == 500 {
                break;
            }
        }
        done
    };
    assert_eq!(taken(&log(&mut alone)), taken(&log(&mut pooled)));
}

#[test]
fn a_mirror_writes_as_its_slowest_leg_and_reads_from_both() {
    let config = pool(
        &[ram(32 * MIB), ram(32 * MIB)],
        &[(mirror(), &[0, 1])],
        &[0],
    );
    let mut mirror = config.build(Precondition::Fresh, 1);
    let mut end_of = |op: Op| {
        let start = mirror.next_event();
        assert_eq!(start, Time::NEVER);
        for id in 0..10 {
            // A sequential reader would stay on one member.
            let offset = u64::from(id) * 8192;
            mirror.submit(Time::ZERO, Command::new(id, op, offset, 4096));
        }
        let mut done = Vec::new();
        while mirror.next_event() < Time::NEVER {
            mirror.advance(mirror.next_event(), Time::NEVER, &mut done);
        }
        let last = done.last().unwrap().at;
        mirror = config.build(Precondition::Fresh, 1);
        (last, done)
    };
    let one = Span::from_us(3) + Span::per_bytes(100, 4096);
    let (writes, _) = end_of(Op::Write);
    // A label, and then the writes.
    assert_eq!(writes.since(Time::ZERO).ns(), 11 * one.ns());
    let (reads, done) = end_of(Op::Read);
    assert_eq!(reads.since(Time::ZERO).ns(), 5 * one.ns());
    assert!(done[0].anatomy.get(Part::Transfer) > Span::ZERO);
}

#[derive(Default)]
struct Sums {
    host: f64,
    back: f64,
    inside: Option<u16>,
    members: Vec<u16>,
}

impl Gauges for Sums {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::HostBytesWritten => {
                assert_eq!(self.inside, None);
                self.host += value;
            }
            Gauge::BackBytesWritten => {
                self.members.extend(self.inside);
                self.back += value;
            }
            _ => {}
        }
    }
    fn enter(&mut self, member: u16) {
        self.inside = Some(member);
    }
    fn leave(&mut self) {
        self.inside = None;
    }
}

#[test]
fn what_members_are_asked_is_told_apart_from_what_the_host_asked() {
    let config = pool(
        &[ram(32 * MIB), ram(32 * MIB)],
        &[(mirror(), &[0, 1])],
        &[0],
    );
    let mut mirror = config.build(Precondition::Fresh, 1);
    mirror.submit(Time::ZERO, Command::write(0, 0, 8192));
    let mut done = Vec::new();
    while done.is_empty() {
        mirror.advance(mirror.next_event(), Time::NEVER, &mut done);
    }
    let mut sums = Sums::default();
    mirror.inspect(done[0].at, &mut sums);
    // Each mirror member has the data, and a label before them.
    assert_eq!((sums.host, sums.back), (8192.0, 2.0 * (4096.0 + 8192.0)));
    assert_eq!(sums.members, [0, 1]);
}

#[test]
fn a_used_pool_is_as_new() {
    let config = DriveConfig::Pool(Box::new(pool(
        &[xpoint(), xpoint()],
        &[(mirror(), &[0, 1])],
        &[0],
    )));
    let fresh = completions(Drive::new(&config, Precondition::Steady, 5), 5);
    let mut used = Drive::new(&config, Precondition::Steady, 4);
    run(
        &mut used,
        &mut Mix::new(9, config.capacity_bytes(), Suite::default()),
        Time::ZERO,
        Time::NEVER,
    );
    let used = used.reset(&config, Precondition::Steady, 5);
    assert_eq!(completions(used, 5), fresh);
}

#[test]
fn what_is_no_pool_is_told_at_once() {
    let mut config = pool(
        &[ram(32 * MIB), ram(32 * MIB)],
        &[(mirror(), &[0, 1])],
        &[0],
    );
    config.tiers[0].children.pop();
    config.tiers[0].children.push(Target::Slice {
        member: 0,
        base: 4096,
        bytes: 40 * MIB,
    });
    config.volumes.push(3);
    let problems = config.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[1].contains("overlaps another slice of it"),
        "{problems:?}"
    );
    assert!(problems[2].contains("the drive holds"), "{problems:?}");
}

/// A drive with an internal event every nanosecond, in addition to the events of its commands.
struct BusyDrive {
    drive: Ram,
    next: Time,
}

impl Device for BusyDrive {
    fn capacity(&self) -> model::device::Capacity {
        self.drive.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        self.drive.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.next.min(self.drive.next_event())
    }
    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        loop {
            if self.drive.next_event() == now {
                self.drive.advance(now, now, done);
            }
            self.next = now + Span::from_ns(1);
            if !done.is_empty() || self.next >= horizon {
                return now;
            }
            now = self.next_event();
        }
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<model::device::Range>) -> Time {
        self.drive.power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
    }
}

/// A command that completes within its submission, at a time at which a member has an event of its own.
#[test]
fn a_member_does_not_continue_beyond_a_completion() {
    let config = pool(&[ram(MIB), ram(MIB)], &[(stripe(4096), &[0, 1])], &[0]);
    let busy = |_| BusyDrive {
        drive: Ram::new(ram_config(MIB)),
        next: Time::ZERO,
    };
    let mut pool = crate::Pool::new(&config, (0..2).map(busy).collect());
    pool.submit(Time::ZERO, Command::write(7, 0, 0));
    let mut done = Vec::new();
    let reached = pool.advance(Time::ZERO, Time::from_ns(1000), &mut done);
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].at, reached), (Time::ZERO, Time::ZERO));
}
