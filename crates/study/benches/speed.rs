//! Speed: simulated 4 KiB I/Os per CPU-second through workload, host path, drive, statistics and anatomy; and memory of
//! a preconditioned NAND drive. `cargo bench -p drivelab-study --bench speed [-- FILTER]` prints a table; a point whose
//! name does not contain FILTER is left out.
//!
//! A harness of its own rather than criterion's, because what counts is CPU time of one thread (Linux gives it in
//! `/proc/thread-self/schedstat`; elsewhere the wall clock stands in) and a point takes seconds.

use std::time::Instant;

use model::media::Precondition;
use model::{Device, Drive, Span};
use study::catalogue;
use study::run::{Plan, simulate};
use study::workload::job::{Job, Mix};

/// I/Os simulated for each point; drives are built outside of the time taken.
const IOS: u64 = 2_000_000;

struct Load {
    name: &'static str,
    drive: &'static str,
    state: Precondition,
    mix: Mix,
    read_percent: u32,
    /// Which aim of the project it stands under, in I/Os per CPU-second.
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
        aim: "4.0 M at QD16",
    },
    Load {
        name: "p3700 random read",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::Read,
        read_percent: 100,
        aim: "2.0 M",
    },
    Load {
        name: "p3700 steady random write",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::Write,
        read_percent: 0,
        aim: "1.0 M",
    },
    Load {
        name: "p3700 70/30 mix",
        drive: "p3700-1600",
        state: Precondition::Steady,
        mix: Mix::ReadWrite,
        read_percent: 70,
        aim: "",
    },
];

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
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
        for depth in [1, 16, 256] {
            let name = format!("{} QD{depth}", load.name);
            if wanted(&name) {
                measure(&name, load, depth);
            }
        }
    }
    if wanted("memory") {
        memory("p3700-1600");
    }
}

fn plan(load: &Load, depth: u32, ios: u64) -> Option<Plan> {
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
    host.io_queues = drive.io_queues;
    Some(Plan {
        drive: drive.config,
        state: load.state,
        host,
        jobs: vec![Job {
            random: true,
            mix: load.mix,
            read_percent: load.read_percent,
            iodepth: depth,
            number_ios: Some(ios),
            ..Job::default()
        }],
        seed: 1,
        series_every: Span::ZERO,
    })
}

/// Times each point is run; the quickest counts, being the least disturbed by what else the machine does.
const REPEATS: usize = 3;

/// Runs the point with few I/Os and with many: the difference is free of building the drive.
fn measure(name: &str, load: &Load, depth: u32) {
    let mut taken = f64::INFINITY;
    for _ in 0..REPEATS {
        let (Some(few), Some(many)) = (timed(load, depth, 1000), timed(load, depth, IOS + 1000))
        else {
            return;
        };
        taken = taken.min(many - few);
    }
    let per_second = IOS as f64 / taken;
    println!(
        "{name:<36} {:>12.2} {:>10.0}   {}",
        per_second * 1e-6,
        1e9 / per_second,
        load.aim
    );
}

/// CPU-seconds of one run; `None` if the drive is not there.
fn timed(load: &Load, depth: u32, ios: u64) -> Option<f64> {
    let plan = plan(load, depth, ios)?;
    let start = Clock::now();
    if let Err(problems) = simulate(&plan, &|_| {}) {
        panic!("{problems}");
    }
    Some(start.elapsed())
}

/// CPU time of this thread.
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

/// Resident and reserved bytes of the process.
fn memory_of_process() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024)
    };
    Some([field("VmRSS:")?, field("VmSize:")?])
}

/// A steady drive's layout is computed where it is looked at, so pages that nothing has touched take no memory: what is
/// reserved is what a drive takes once every page of it has been touched.
fn memory(name: &str) {
    let Ok(sheet) = catalogue::drive(name) else {
        println!("{name}: left out: not in the catalogue");
        return;
    };
    let (Some(before), start) = (memory_of_process(), Clock::now()) else {
        println!("memory: left out: no /proc/self/status here");
        return;
    };
    let drive = Drive::new(&sheet.config, Precondition::Steady, 1);
    let built = start.elapsed();
    let after = memory_of_process().unwrap_or(before);
    let pages = drive.capacity().bytes as f64 / 4096.0;
    let per_page = |which: usize| after[which].saturating_sub(before[which]) as f64 / pages;
    println!(
        "{name} in steady state: {:.2} bytes per 4 KiB page at first, {:.2} when all are touched (aim: under 6); built in {:.3} CPU-seconds (aim: under 1)",
        per_page(0),
        per_page(1),
        built
    );
}
