//! Simulation costs of tiers: CPU time per 4 KiB command over drives with zero latency, without a host. `cargo bench
//! -p drivelab-lab --bench tiers [-- FILTER]` prints a table; points whose names do not contain FILTER are skipped.
//! The first lines show the memory of a write-back cache per dirty 4 KiB (Linux), over drives without memory. Then
//! come the costs of the pool and its drives under a tier that only passes commands on.

use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};
use model::{Command, Completion, Device, Span, Stream, Time};
use tier::{
    ConcatConfig, Destage, Drive, DriveConfig, Kind, Member, MirrorConfig, PoolConfig, Target,
    TierConfig, WriteBackConfig,
};

/// Timed commands per point.
const COMMANDS: u64 = 1_500_000;
const UNIT: u64 = 4096;
const GIB: u64 = 1 << 30;

/// Returns the offset of the n-th command, and whether it is a read.
type Ask = fn(u64, &mut Stream) -> (u64, bool);

struct Load {
    name: &'static str,
    kind: fn() -> Kind,
    /// Capacities of the drives in bytes.
    drives: &'static [u64],
    /// Commands before the timed ones.
    before: u64,
    ask: Ask,
    /// Target in nanoseconds.
    aim: &'static str,
}

fn passes_on() -> Kind {
    Kind::Concat(ConcatConfig {})
}

fn mirror() -> Kind {
    Kind::Mirror(MirrorConfig::default())
}

fn write_back() -> Kind {
    Kind::WriteBack(WriteBackConfig::PLAIN)
}

fn anywhere(bytes: u64, stream: &mut Stream) -> u64 {
    stream.uniform_below(bytes / UNIT) * UNIT
}

/// Returns each unit of a GiB once, in scattered order.
fn next_unit(index: u64) -> u64 {
    index.wrapping_mul(2_654_435_769) % (8 * GIB / UNIT) * UNIT
}

const LOADS: &[Load] = &[
    Load {
        name: "nothing (a concatenation of one)",
        kind: passes_on,
        drives: &[8 * GIB],
        before: 1000,
        ask: |_, stream| (anywhere(8 * GIB, stream), false),
        aim: "",
    },
    Load {
        name: "mirror of two, write",
        kind: mirror,
        drives: &[8 * GIB; 2],
        before: 1000,
        ask: |_, stream| (anywhere(7 * GIB, stream), false),
        aim: "100 above nothing",
    },
    Load {
        name: "mirror of two, read",
        kind: mirror,
        drives: &[8 * GIB; 2],
        before: 1000,
        ask: |_, stream| (anywhere(7 * GIB, stream), true),
        aim: "",
    },
    Load {
        name: "write-back, dirty overwrite",
        kind: write_back,
        drives: &[4 * GIB, 8 * GIB],
        before: 2_000_000,
        ask: |_, stream| (anywhere(GIB / 4, stream), false),
        aim: "300",
    },
    Load {
        name: "write-back, new line",
        kind: write_back,
        drives: &[64 * GIB, 8 * GIB],
        before: 1000,
        ask: |index, _| (next_unit(index), false),
        aim: "400",
    },
    Load {
        name: "write-back, read hit",
        kind: write_back,
        drives: &[8 * GIB, 8 * GIB],
        before: 200_000,
        ask: |index, stream| match index < 200_000 {
            true => (index % (GIB / 4 / UNIT) * UNIT, false),
            false => (anywhere(GIB / 4, stream), true),
        },
        aim: "200",
    },
    Load {
        name: "write-back, uniform, destaging",
        kind: write_back,
        drives: &[GIB, 32 * GIB, 32 * GIB, 32 * GIB],
        before: 1_000_000,
        ask: |_, stream| (anywhere(96 * GIB, stream), false),
        aim: "1000",
    },
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let filter = arguments.next().unwrap_or_default();
    println!("{:<44} {:>12}   aim", "4 KiB", "ns per I/O");
    // Runs first, because other points leave freed memory that would be reused.
    for (name, full, behind) in [
        ("memory, scattered over four times as much", 0.3, 4096 * GIB),
        ("memory, all that is behind it dirty", 0.9, 112 * GIB),
    ] {
        if name.contains(&filter)
            && let Some(bytes) = memory(full, behind)
        {
            println!("{name:<44} {bytes:>10.2} B   6");
        }
    }
    for load in LOADS {
        for depth in [1, 16] {
            let name = format!("{} QD{depth}", load.name);
            if name.contains(&filter) {
                // The fastest of three runs, because other programs disturb it least.
                let taken = (0..3).map(|_| timed(load, depth));
                let taken = taken.fold(f64::INFINITY, f64::min);
                println!(
                    "{name:<44} {:>12.0}   {}",
                    taken / COMMANDS as f64 * 1e9,
                    load.aim
                );
            }
        }
    }
}

/// Returns the bytes of memory per dirty unit of a cache with the dirty share `full`, over `behind` bytes of backing
/// drives, after some units have been destaged.
fn memory(full: f64, behind: u64) -> Option<f64> {
    let config = WriteBackConfig {
        start: full,
        destage: Destage {
            from: full / 2.0,
            ..WriteBackConfig::PLAIN.destage
        },
        ..WriteBackConfig::PLAIN
    };
    let before = resident()?;
    // Drives with zero latency would destage everything at once.
    let mut drive = pool(
        Kind::WriteBack(config),
        &[128 * GIB, behind],
        Span::from_us(1),
    );
    let mut done = Vec::new();
    let at_first = dirty(&drive);
    // Several rounds: the oldest units have been looked up. Dirty units are counted before many of them are destaged.
    while dirty(&drive) > 0.99 * at_first {
        let next = drive.next_event();
        if next == Time::NEVER {
            break;
        }
        drive.advance(next, next, &mut done);
    }
    let taken = resident()? - before;
    Some(taken / (dirty(&drive) / UNIT as f64))
}

fn dirty(drive: &Drive) -> f64 {
    let mut dirty = Dirty(0.0);
    drive.inspect(Time::ZERO, &mut dirty);
    dirty.0
}

/// Number of dirty bytes.
struct Dirty(f64);

impl model::Gauges for Dirty {
    fn gauge(&mut self, gauge: model::Gauge, value: f64) {
        if gauge == model::Gauge::DirtyBytes {
            self.0 = value;
        }
    }
}

/// Returns the memory of this process in bytes.
fn resident() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096.0)
}

fn drive(load: &Load) -> Drive {
    pool((load.kind)(), load.drives, Span::ZERO)
}

/// Builds a tier on drives with these capacities and this time per command.
fn pool(kind: Kind, drives: &[u64], per_command: Span) -> Drive {
    let ram = |bytes| {
        DriveConfig::Ram(RamConfig {
            bytes,
            per_command,
            picoseconds_per_byte: 0,
            memory_bus: None,
            spread: 0.0,
        })
    };
    let members = drives.iter().enumerate().map(|(index, &bytes)| Member {
        name: index.to_string(),
        drive: ram(bytes),
    });
    let children = drives
        .iter()
        .enumerate()
        .map(|(index, &bytes)| Target::Slice {
            member: index as u16,
            base: 0,
            bytes,
        });
    let config = PoolConfig {
        members: members.collect(),
        tiers: vec![TierConfig {
            name: String::from("tier"),
            kind,
            children: children.collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    DriveConfig::Pool(Box::new(config)).build(Precondition::Fresh, 1)
}

/// Returns the CPU-seconds of the timed commands.
fn timed(load: &Load, depth: u32) -> f64 {
    let mut drive = drive(load);
    let mut stream = Stream::new(1, "bench");
    let mut done = Vec::new();
    let now = commands(
        load,
        &mut drive,
        depth,
        0..load.before,
        Time::ZERO,
        &mut stream,
        &mut done,
    );
    let until = load.before + COMMANDS;
    let start = thread_cpu_ns();
    commands(
        load,
        &mut drive,
        depth,
        load.before..until,
        now,
        &mut stream,
        &mut done,
    );
    (thread_cpu_ns() - start) as f64 * 1e-9
}

/// Keeps `depth` commands outstanding; returns when the last has completed.
fn commands(
    load: &Load,
    drive: &mut Drive,
    depth: u32,
    mut range: std::ops::Range<u64>,
    mut now: Time,
    stream: &mut Stream,
    done: &mut Vec<Completion>,
) -> Time {
    let mut free: Vec<u32> = (0..depth).collect();
    loop {
        while let Some(&id) = free.last()
            && let Some(index) = range.next()
        {
            free.pop();
            let (offset, read) = (load.ask)(index, stream);
            let command = match read {
                true => Command::read(id, offset, UNIT as u32),
                false => Command::write(id, offset, UNIT as u32),
            };
            drive.submit(now, command);
        }
        if free.len() == depth as usize {
            return now;
        }
        now = drive.next_event();
        now = drive.advance(now, now, done);
        free.extend(done.drain(..).map(|it| it.id));
    }
}

/// Returns the CPU time of this thread; if Linux does not report it, the wall-clock time.
fn thread_cpu_ns() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    cpu.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(0, |since| since.as_nanos() as u64)
    })
}
