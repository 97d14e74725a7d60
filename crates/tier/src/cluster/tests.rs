//! A cluster keeps the laws of devices, equals a mirror if it has no costs, and has the costs of its network and cores.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use model::anatomy::Part;
use model::command::{Command, Completion, Op, Status};
use model::conformance::samples;
use model::data::DriveFault;
use model::device::{Device, Gauge};
use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};
use model::random::Stream;
use model::time::{Span, Time};

use super::{ClusterConfig, Network, NodeConfig};
use crate::laws::{gives_what_was_written, holds_the_laws};
use crate::{
    DriveConfig, Kind, Loss, Member, MirrorConfig, Pool, PoolConfig, Reads, StripeConfig, Target,
    TierConfig, TierSettings, WriteBackConfig,
};

const MIB: u64 = 1 << 20;
const DONE: Status = Status::Success;

fn ram(bytes: u64) -> DriveConfig {
    DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

/// Four nodes of a data centre, with all costs.
fn costly() -> ClusterConfig {
    ClusterConfig {
        nodes: 4,
        component: 4 * MIB,
        network: Network {
            ps_per_byte: 80,
            delay: Span::from_us(15),
            message: Span::from_us(2),
        },
        node: NodeConfig {
            cores: 3,
            client: Span::from_us(6),
            owner: Span::from_us(5),
            store: Span::from_us(7),
            ps_per_byte: 200,
            idle_watts: 400.0,
            core_watts: 3.0,
        },
        ..ClusterConfig::FREE
    }
}

/// A cluster (or another tier) whose groups are whole drives.
fn of_drives(kind: Kind, drives: &[DriveConfig]) -> PoolConfig<DriveConfig> {
    let member = |(index, drive): (usize, &DriveConfig)| Member {
        name: index.to_string(),
        drive: drive.clone(),
    };
    let child = |(index, drive): (usize, &DriveConfig)| Target::Slice {
        member: index as u16,
        base: 0,
        bytes: drive.capacity_bytes() / 4096 * 4096,
    };
    let config = PoolConfig {
        members: drives.iter().enumerate().map(member).collect(),
        tiers: vec![TierConfig {
            name: String::from("top"),
            kind,
            children: drives.iter().enumerate().map(child).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

fn cluster(config: ClusterConfig, drives: &[DriveConfig]) -> PoolConfig<DriveConfig> {
    of_drives(Kind::Cluster(config), drives)
}

/// A cluster with a tier of two drives as each group.
fn of_groups(
    config: ClusterConfig,
    group: &Kind,
    drives: &[DriveConfig],
) -> PoolConfig<DriveConfig> {
    let mut pool = of_drives(Kind::Concat(crate::ConcatConfig {}), drives);
    let slices = pool.tiers.remove(0).children;
    for (index, pair) in slices.chunks(2).enumerate() {
        pool.tiers.push(TierConfig {
            name: alloc::format!("group{index}"),
            kind: group.clone(),
            children: pair.to_vec(),
        });
    }
    let groups = pool.tiers.len() as u16;
    pool.tiers.push(TierConfig {
        name: String::from("top"),
        kind: Kind::Cluster(config),
        children: (0..groups).map(Target::Tier).collect(),
    });
    pool.volumes = vec![groups];
    assert_eq!(pool.problems(), [""; 0]);
    pool
}

#[test]
fn keeps_the_laws() {
    holds_the_laws(&cluster(
        ClusterConfig::FREE.with_component(MIB),
        &vec![ram(40 * MIB); 2],
    ));
    let three = ClusterConfig {
        nodes: 3,
        replicas: 3,
        ..costly()
    };
    holds_the_laws(&cluster(three, &vec![ram(48 * MIB); 3]));
    holds_the_laws(&cluster(costly(), &vec![ram(20 * MIB); 8]));
    let xpoint = DriveConfig::XPoint(alloc::boxed::Box::new(samples::xpoint()));
    holds_the_laws(&cluster(costly(), &vec![xpoint; 4]));
}

#[test]
fn keeps_the_laws_over_groups_and_folded() {
    let stripe = Kind::Stripe(StripeConfig { chunk: 64 << 10 });
    holds_the_laws(&of_groups(costly(), &stripe, &vec![ram(16 * MIB); 8]));
    let folded = ClusterConfig {
        fold: 4,
        ..costly()
    };
    let cache = WriteBackConfig {
        segment: 256 << 10,
        buffer_limit: 4 * MIB,
        ..WriteBackConfig::VSAN
    };
    let drives = [ram(8 * MIB), ram(80 * MIB), ram(8 * MIB), ram(80 * MIB)];
    holds_the_laws(&of_groups(folded, &Kind::WriteBack(cache), &drives));
}

#[test]
fn a_read_gives_what_was_written_last() {
    for reads in Reads::ALL.map(|it| it.1) {
        let config = ClusterConfig { reads, ..costly() };
        let config = cluster(config, &vec![ram(20 * MIB); 8]);
        gives_what_was_written(&config);
    }
}

/// Commands at random times and offsets, in order of time; the first, a write, is isolated.
fn load(count: u32, bytes: u64, mean: Span) -> Vec<(Time, Command)> {
    let mut random = Stream::new(7, "a cluster's load");
    let mut now = Time::ZERO + Span::from_ms(1);
    let mut load = vec![(Time::ZERO, Command::write(0, 0, 4096))];
    for id in 1..count {
        now += Span::from_ns(random.uniform_below(2 * mean.ns()));
        let at = random.uniform_below(bytes / 4096 - 16) * 4096;
        let length = 4096 * (1 + random.uniform_below(16) as u32);
        load.push((
            now,
            match random.uniform_below(10) {
                0..5 => Command::read(id, at, length),
                5..9 => Command::write(id, at, length),
                _ => Command::new(id, Op::Deallocate, at, length),
            },
        ));
    }
    load
}

fn outcome(pool: &mut impl Device, load: &[(Time, Command)]) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    for &(at, command) in load {
        while pool.next_event() < at {
            now = pool.advance(pool.next_event(), at, &mut done).max(now);
        }
        pool.submit(at, command);
    }
    while done.len() < load.len() {
        assert!(
            pool.next_event() != Time::NEVER,
            "something never completes"
        );
        let next = pool.next_event();
        pool.advance(next, next, &mut done);
    }
    done
}

/// The only difference is the label writes of a mirror before the first write to a region.
#[test]
fn two_nodes_with_a_free_network_and_free_cores_are_a_mirror() {
    for reads in Reads::ALL.map(|it| it.1) {
        let drives = vec![ram(600 * MIB); 2];
        let mirror = Kind::Mirror(MirrorConfig {
            reads,
            region: 1 << 40,
            ..Default::default()
        });
        // Everything in one component, so that the replicas are numbered like the mirror members.
        let free = ClusterConfig {
            component: 256 * MIB,
            reads,
            ..ClusterConfig::FREE
        };
        let load = load(6_000, 16 * MIB, Span::from_us(6));
        let of = |config: PoolConfig<DriveConfig>| {
            outcome(&mut config.build(Precondition::Fresh, 1), &load)
        };
        let (mirror, cluster) = (of(of_drives(mirror, &drives)), of(cluster(free, &drives)));
        // Two labels, one on each mirror member, then the write.
        let label = Span::from_us(3) + Span::per_bytes(100, 4096);
        assert_eq!(mirror[0].at, cluster[0].at + label);
        assert_eq!(mirror[1..], cluster[1..], "{reads:?}");
        assert!(
            mirror
                .iter()
                .any(|it| it.anatomy.get(Part::Tier) > Span::ZERO),
            "nothing waited"
        );
    }
}

#[test]
fn a_write_and_a_read_cost_what_their_way_costs() {
    let drives = vec![ram(300 * MIB); 4];
    let config = cluster(costly(), &drives);
    let drive = |bytes| Span::from_us(3) + Span::per_bytes(100, bytes);
    let crossing = |bytes: u64| Span::from_us(15) + Span::per_bytes(80, 256 + bytes);
    // Row 0: the client is on the first replica's node, the second replica on the next node.
    let one = |command| {
        outcome(
            &mut config.build(Precondition::Fresh, 1),
            &[(Time::ZERO, command)],
        )[0]
    };
    let write = one(Command::write(0, 0, 32 << 10));
    let data = Span::per_bytes(200, 32 << 10);
    assert_eq!(
        write.anatomy.get(Part::Network),
        crossing(32 << 10) + crossing(0)
    );
    assert_eq!(
        write.anatomy.get(Part::Tier),
        data + Span::from_us(6 + 5 + 7 + 2 + 2)
    );
    let total = write.anatomy.total();
    let tier = write.anatomy.get(Part::Tier) + write.anatomy.get(Part::Network);
    assert_eq!(total, tier + drive(32 << 10));
    // Reads of the first MiB stay on their node, those of the second go to the second replica.
    let read = one(Command::read(0, 0, 32 << 10));
    assert_eq!(read.anatomy.get(Part::Network), Span::ZERO);
    assert_eq!(
        read.anatomy.get(Part::Tier),
        data + Span::from_us(6 + 5 + 7)
    );
    let read = one(Command::read(0, MIB, 32 << 10));
    assert_eq!(
        read.anatomy.get(Part::Network),
        crossing(0) + crossing(32 << 10)
    );
    assert_eq!(
        read.anatomy.get(Part::Tier),
        data + Span::from_us(6 + 5 + 7 + 2 + 2)
    );
}

/// Throughput with a long queue, in operations per second.
fn rate(config: &PoolConfig<DriveConfig>, reads: bool) -> f64 {
    let count = 4_000;
    let blocks = config.bytes() / 4096;
    let load: Vec<(Time, Command)> = (0..count)
        .map(|id| {
            // Steps near the golden ratio visit all parts equally often.
            let at = u64::from(id) * ((blocks * 618 / 1000) | 1) % blocks * 4096;
            let command = match reads {
                true => Command::read(id, at, 4096),
                false => Command::write(id, at, 4096),
            };
            (Time::ZERO, command)
        })
        .collect();
    let done = outcome(&mut config.build(Precondition::Fresh, 1), &load);
    assert!(done.iter().all(|it| it.status == DONE));
    f64::from(count) / done[done.len() - 1].at.seconds()
}

#[test]
fn cores_and_ports_bound_the_rate() {
    let drives = vec![
        DriveConfig::Ram(RamConfig {
            bytes: 200 * MIB,
            per_command: Span::from_ns(10),
            picoseconds_per_byte: 0,
            memory_bus: None,
            spread: 0.0,
        });
        4
    ];
    let near = |rate: f64, expected: f64| {
        assert!(
            (rate / expected - 1.0).abs() < 0.02,
            "{rate} instead of {expected}"
        );
    };
    // A replica is on another node three times out of four; that costs two more messages.
    let mut cpu = costly();
    cpu.network.ps_per_byte = 0;
    cpu.network.delay = Span::ZERO;
    let work = 6.0 + 5.0 + 7.0 + 4096.0 * 200e-6;
    let remote = 1.0 - 1.0 / 4.0;
    let reads = 12.0 / (work + remote * 4.0) * 1e6;
    near(rate(&cluster(cpu.clone(), &drives), true), reads);
    let writes = 12.0 / (work + 7.0 + 2.0 * remote * 4.0) * 1e6;
    near(rate(&cluster(cpu, &drives), false), writes);
    let mut network = ClusterConfig {
        nodes: 4,
        component: 4 * MIB,
        ..ClusterConfig::FREE
    };
    network.network.ps_per_byte = 2000;
    // Into each node: data for its share of the replicas, and replies for as many.
    let held = 2e-9 * (4096.0 + 2.0 * 256.0);
    near(
        rate(&cluster(network, &drives), false),
        4.0 / (2.0 * remote * held),
    );
}

#[test]
fn folded_it_does_its_share_of_the_whole() {
    let group = Kind::Stripe(StripeConfig { chunk: MIB as u32 });
    let all = |fold: u16| {
        let config = ClusterConfig { fold, ..costly() };
        of_groups(
            config,
            &group,
            &vec![ram(100 * MIB); 16 / usize::from(fold)],
        )
    };
    for reads in [true, false] {
        let whole = rate(&all(1), reads);
        for fold in [2, 4] {
            let share = rate(&all(fold), reads) * f64::from(fold);
            assert!(
                (share / whole - 1.0).abs() < 0.03,
                "{share} of {whole}, fold {fold}"
            );
        }
    }
}

#[test]
fn energy_is_that_of_nodes_and_of_busy_cores() {
    struct Sum(f64, f64);
    impl model::device::Gauges for Sum {
        fn gauge(&mut self, gauge: Gauge, value: f64) {
            match gauge {
                Gauge::EnergyJoules => self.0 += value,
                Gauge::HostCpuSeconds => self.1 += value,
                _ => {}
            }
        }
    }
    let config = cluster(costly(), &vec![ram(200 * MIB); 4]);
    assert_eq!(config.idle_watts(), 4.0 * 400.0);
    let mut pool = config.build(Precondition::Fresh, 1);
    outcome(&mut pool, &[(Time::ZERO, Command::read(0, 0, 4096))]);
    let mut sum = Sum(0.0, 0.0);
    pool.inspect(Time::ZERO + Span::from_ms(1000), &mut sum);
    let busy = 18e-6 + 819e-9;
    assert!((sum.1 - busy).abs() < 1e-9, "{}", sum.1);
    assert!((sum.0 - 1600.0 - 3.0 * busy).abs() < 1e-6, "{}", sum.0);
}

#[test]
fn goes_on_without_a_group_and_not_without_two_nodes() {
    let config = cluster(costly(), &vec![ram(100 * MIB); 8]);
    let mut pool = config.vulnerable(Precondition::Fresh, 1);
    let mut now = Time::ZERO;
    let mut ends = |pool: &mut Pool<_>, op| {
        let mut seen = Vec::new();
        for unit in 0..48 {
            pool.submit(now, Command::new(0, op, unit * 4 * MIB, 4096));
            let mut done = Vec::new();
            while done.is_empty() {
                now = pool.advance(pool.next_event(), pool.next_event(), &mut done);
            }
            if !seen.contains(&done[0].status) {
                seen.push(done[0].status);
            }
        }
        (now, seen)
    };
    assert_eq!(ends(&mut pool, Op::Write).1, [DONE]);
    // Both groups of the first node.
    let at = ends(&mut pool, Op::Read).0;
    pool.befall(at, 0, DriveFault::Dies);
    pool.befall(at, 1, DriveFault::Dies);
    assert_eq!(ends(&mut pool, Op::Read).1, [DONE]);
    assert_eq!(ends(&mut pool, Op::Write).1, [DONE]);
    let at = ends(&mut pool, Op::Flush).0;
    pool.befall(at, 2, DriveFault::Dies);
    let (_, seen) = ends(&mut pool, Op::Write);
    assert!(
        seen.contains(&Status::Gone) && seen.contains(&DONE),
        "{seen:?}"
    );
}

#[test]
fn is_lost_with_as_many_nodes_as_there_are_replicas() {
    let promise = cluster(costly(), &vec![ram(100 * MIB); 8]).promise();
    let sets = promise.loss.cut_sets();
    // Of 28 pairs of groups, four are on one node.
    assert_eq!(sets.len(), 24);
    assert!(sets.iter().all(|it| it.0[0] / 2 != it.0[1] / 2));
    let one = ClusterConfig {
        replicas: 1,
        ..costly()
    };
    let promise = cluster(one, &vec![ram(100 * MIB); 4]).promise();
    assert_eq!(promise.loss, Loss::any((0..4).map(Loss::Member).collect()));
}

#[test]
fn what_cannot_be_a_cluster_is_refused() {
    let problems = |config: ClusterConfig, groups: usize| config.problems(&vec![100 * MIB; groups]);
    assert_eq!(problems(costly(), 8), [""; 0]);
    let wrong = ClusterConfig {
        nodes: 4,
        fold: 3,
        replicas: 5,
        component: 1000,
        node: NodeConfig {
            cores: 0,
            ..costly().node
        },
        ..costly()
    };
    assert_eq!(problems(wrong, 1).len(), 4);
    assert_eq!(problems(costly(), 7).len(), 1);
    assert_eq!(problems(costly().with_component(128 * MIB), 4).len(), 1);
}

impl ClusterConfig {
    fn with_component(self, component: u64) -> ClusterConfig {
        ClusterConfig { component, ..self }
    }
}
