//! Speed: simulated 4 KiB I/Os per CPU-second through workload, host path, drive, statistics and latency breakdown;
//! and memory of a preconditioned NAND drive. `cargo bench -p drivelab-lab --bench speed [-- FILTER [IOS]]` prints a
//! table. Points whose names do not contain FILTER are skipped; IOS is for counting instructions.
//!
//! This harness replaces criterion's, because it counts the CPU time of one thread (from
//! `/proc/thread-self/schedstat` on Linux, otherwise wall-clock time) and a point takes seconds.

use std::time::Instant;

use lab::{Lab, Machine, Scenario};
use model::media::Precondition;
use model::{Command, Device, Stream, Time};
use tier::Drive;
use workload::job::{Job, Mix};

/// I/Os simulated per point; the time to build drives is excluded.
const IOS: u64 = 2_000_000;

struct Load {
    name: &'static str,
    drive: &'static str,
    state: Precondition,
    mix: Mix,
    read_percent: u32,
    /// Performance target of the project for this point, in I/Os per CPU-second.
    aim: &'static str,
}

const LOADS: &[Load] = &[
    Load {
        name: "ram disk (all but a drive)",
        drive: "ram-disk",
        state: Precondition::Fresh,
        mix: Mix::Read,
        read_percent: 100,
        aim: "",
    },
    Load {
        name: "p4800x random read",
        drive: "p4800x-375",
        state: Precondition::Fresh,
        mix: Mix::Read,
        read_percent: 100,
        aim: "5.0 M at QD16",
    },
    Load {
        name: "p3700 random read",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::Read,
        read_percent: 100,
        aim: "3.5 M at QD16",
    },
    Load {
        name: "p3700 steady random write",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::Write,
        read_percent: 0,
        aim: "1.5 M at QD16",
    },
    Load {
        name: "p3700 70/30 mix",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::ReadWrite,
        read_percent: 70,
        aim: "",
    },
    Load {
        name: "exos-x18 random read",
        drive: "exos-x18-16tb",
        state: Precondition::Fresh,
        mix: Mix::Read,
        read_percent: 100,
        aim: "2.0 M at QD1, 0.5 M at QD32",
    },
    Load {
        name: "exos-x18 random write",
        drive: "exos-x18-16tb",
        state: Precondition::Fresh,
        mix: Mix::Write,
        read_percent: 0,
        aim: "",
    },
];

/// Queue depths; 32 is the maximum of a SATA disk.
const DEPTHS: [u32; 4] = [1, 16, 32, 256];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let filter = arguments.next();
    let ios = arguments.next().and_then(|ios| ios.parse().ok());
    let ios = ios.unwrap_or(IOS);
    let wanted = |name: &str| {
        filter
            .as_ref()
            .is_none_or(|filter| name.contains(filter.as_str()))
    };
    println!(
        "{:<36} {:>12} {:>10}   aim",
        "4 KiB, one thread", "M I/O per s", "ns per I/O"
    );
    for load in LOADS {
        for depth in DEPTHS {
            let name = format!("{} QD{depth}", load.name);
            if wanted(&name) {
                measure(&name, load, depth, ios);
            }
        }
    }
    if wanted("memory") {
        memory("p3700-1600");
    }
}

fn plan(load: &Load, depth: u32, ios: u64) -> Option<Scenario> {
    let drive = match catalogue::drive(load.drive) {
        Ok(drive) => drive,
        Err(problems) => {
            println!("{}: left out: {problems}", load.drive);
            return None;
        }
    };
    let mut host = match catalogue::host("xeon-2017") {
        Ok(host) => host.config,
        Err(problems) => panic!("{problems}"),
    };
    host.io_queues = std::num::NonZeroU16::new(drive.io_queues);
    Some(Scenario::jobs(
        Machine::from_configs("a drive", drive.config, host),
        load.state,
        vec![Job {
            random: true,
            mix: load.mix,
            read_percent: load.read_percent,
            iodepth: depth,
            number_ios: Some(ios),
            // A RAM disk has fewer blocks than `ios`, so it is read repeatedly.
            io_size: Some(Job::ROUND),
            ..Job::default()
        }],
        1,
    ))
}

/// Runs per point. The fastest counts, because other programs disturb it least.
const REPEATS: usize = 3;

/// Runs the point with few I/Os and with many: the difference excludes the time to build the drive.
fn measure(name: &str, load: &Load, depth: u32, ios: u64) {
    let mut taken = f64::INFINITY;
    for _ in 0..REPEATS {
        let (Some(few), Some(many)) = (timed(load, depth, 1000), timed(load, depth, ios + 1000))
        else {
            return;
        };
        taken = taken.min(many - few);
    }
    let per_second = ios as f64 / taken;
    println!(
        "{name:<36} {:>12.2} {:>10.0}   {}",
        per_second * 1e-6,
        1e9 / per_second,
        load.aim
    );
}

/// Returns the CPU-seconds of one run; `None` if the drive does not exist.
fn timed(load: &Load, depth: u32, ios: u64) -> Option<f64> {
    let plan = plan(load, depth, ios)?;
    let start = Clock::now();
    if let Err(problems) = Lab::new().run(&plan) {
        panic!("{problems}");
    }
    Some(start.elapsed())
}

/// CPU-time clock of this thread.
struct Clock {
    cpu_ns: Option<u64>,
    wall: Instant,
}

impl Clock {
    fn now() -> Clock {
        Clock {
            cpu_ns: thread_cpu_ns(),
            wall: Instant::now(),
        }
    }

    fn elapsed(&self) -> f64 {
        match (self.cpu_ns, thread_cpu_ns()) {
            (Some(before), Some(after)) => (after - before) as f64 * 1e-9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn thread_cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the resident bytes of the process.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Writes 4 KiB at random offsets at QD1, without a host.
fn write_at_random(drive: &mut Drive, from: Time, stream: &mut Stream, count: u64) -> Time {
    let pages = drive.capacity().bytes / 4096;
    let mut now = from;
    let mut done = Vec::new();
    for _ in 0..count {
        drive.submit(
            now,
            Command::write(0, stream.uniform_below(pages) * 4096, 4096),
        );
        while done.is_empty() {
            now = drive.next_event();
            drive.advance(now, now, &mut done);
        }
        done.clear();
    }
    now
}

/// The layout of a steady drive is computed on demand, and preconditioning runs before the first write. Each is shown
/// with its CPU time and the resident memory afterwards. Memory grows with the written data, to about 9.6 bytes per
/// page (both maps) once a drive with 39 % of spare area has been overwritten completely.
fn memory(name: &str) {
    const WRITES: u64 = 2_000_000;
    let Ok(sheet) = catalogue::drive(name) else {
        println!("{name}: left out: not in the catalogue");
        return;
    };
    let Some(before) = resident() else {
        println!("memory: left out: no /proc/self/status here");
        return;
    };
    let mut stream = Stream::new(1, "memory");
    let start = Clock::now();
    let mut drive = Drive::new(&sheet.config, Precondition::Steady, 1);
    let pages = drive.capacity().bytes as f64 / 4096.0;
    let say = |what: &str| {
        let per_page = resident().unwrap_or(before).saturating_sub(before) as f64 / pages;
        println!(
            "  {what:<28} {:7.3} CPU-s so far {per_page:6.2} bytes per 4 KiB page",
            start.elapsed()
        );
    };
    println!("{name} in steady state (aims: ready in under 1 s, under 6 bytes)");
    say("built");
    let now = write_at_random(&mut drive, Time::ZERO, &mut stream, 1);
    say("warmed up by a first write");
    write_at_random(&mut drive, now, &mut stream, WRITES);
    say(&format!("after {} M writes", WRITES / 1_000_000));
}
