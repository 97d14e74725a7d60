//! CPU time of a served drive or pool for each write, with its data in memory and without a socket: from the arrival
//! of a command to the end of its reply, at full speed. `cargo bench -p drivelab-live --bench served [-- FILTER]`
//! prints a table.
//!
//! One command at a time, in ns of wall-clock time. Each pool is shown next to its first member alone. A write-back
//! cache writes two pages for each requested page, sequentially to new addresses. The main pool of an intent log
//! writes a record of 128 KiB for each 4 KiB, so the member next to it writes the same amount. Destaging during the
//! run is included in the mean and not in the median. The same applies to the time of a host that provides new pages
//! more slowly than they are written.

use std::time::Instant;

use live::{IoRequest, Reply, ServedDevice, Setup};
use model::media::Precondition;
use model::{Op, Stream};

/// Writes before the timed ones, and timed writes.
const BEFORE: u64 = 40_000;
const TIMED: usize = 20_000;

const MIB: u64 = 1 << 20;
const MEMBER: &str = "p4801x-100";

struct Load {
    name: &'static str,
    drive: &'static str,
    bytes: u32,
    /// Range of the writes in bytes.
    over: u64,
    /// Whether writes are sequential (false: random).
    in_turn: bool,
    /// Name of the load on a single member for comparison.
    beside: &'static str,
}

const fn again(name: &'static str, drive: &'static str, beside: &'static str) -> Load {
    Load {
        name,
        drive,
        bytes: 4096,
        over: 64 * MIB,
        in_turn: false,
        beside,
    }
}

/// Large enough that most writes are the first to their address.
const NEW: u64 = 65_536 * MIB;

const LOADS: &[Load] = &[
    again("a member", MEMBER, ""),
    Load {
        name: "a member, 128 KiB in turn, new pages",
        drive: MEMBER,
        bytes: 128 << 10,
        over: NEW,
        in_turn: true,
        beside: "",
    },
    again("mirror", "mirror(2*p4801x-100)", "a member"),
    again(
        "write-back cache",
        "write-back-cache(cache=p4801x-100, capacity=p4801x-100)",
        "a member",
    ),
    again(
        "write-back cache before NAND",
        "write-back-cache(cache=p4801x-100, capacity=d7-p5510-3840)",
        "a member",
    ),
    again(
        "read cache",
        "read-cache(cache=p4801x-100, main=p4801x-100)",
        "a member",
    ),
    again(
        "intent log",
        "intent-log(main=p4801x-100, log=p4801x-100; ram=2GiB)",
        "a member",
    ),
    Load {
        over: NEW,
        ..again(
            "intent log, new records",
            "intent-log(main=p4801x-100, log=p4801x-100; ram=2GiB)",
            "a member, 128 KiB in turn, new pages",
        )
    },
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let filter = arguments.next().unwrap_or_default();
    println!(
        "{:<36} {:>8} {:>8} {:>8}   beside",
        "4 KiB", "median", "mean", "more"
    );
    let mut medians: Vec<(&str, f64)> = Vec::new();
    for load in LOADS {
        // Each pool needs a member for comparison, so these always run.
        if !load.beside.is_empty() && !load.name.contains(&filter) {
            continue;
        }
        // The fastest of three runs, which other programs disturb least.
        let taken = (0..3).map(|_| timed(load));
        let (median, mean) = taken.fold((f64::INFINITY, f64::INFINITY), |least, one| {
            (least.0.min(one.0), least.1.min(one.1))
        });
        let beside = medians.iter().find(|(name, _)| *name == load.beside);
        let more = beside.map_or(String::new(), |(_, alone)| format!("{:.0}", median - alone));
        println!(
            "{:<36} {median:>8.0} {mean:>8.0} {more:>8}   {}",
            load.name, load.beside
        );
        medians.push((load.name, median));
    }
}

/// Returns the median and mean of the writes.
fn timed(load: &Load) -> (f64, f64) {
    let sheet = catalogue::drive(load.drive).expect("a drive or pool");
    let mut served = Setup {
        precondition: Some(Precondition::Steady),
        ..Setup::new(sheet)
    }
    .open()
    .expect("memory");
    served.prepare();
    let mut stream = Stream::new(1, "places");
    let data = vec![7_u8; load.bytes as usize];
    let places = load.over / u64::from(load.bytes);
    let mut place = |index: u64| match load.in_turn {
        true => index % places,
        false => stream.uniform_below(places),
    };
    let mut replies = Vec::new();
    for index in 0..BEFORE {
        write(&mut served, place(index), &data, &mut replies);
    }
    let mut taken: Vec<u64> = (BEFORE..)
        .take(TIMED)
        .map(|index| {
            let place = place(index);
            let since = Instant::now();
            write(&mut served, place, &data, &mut replies);
            since.elapsed().as_nanos() as u64
        })
        .collect();
    taken.sort_unstable();
    let mean = taken.iter().sum::<u64>() as f64 / TIMED as f64;
    (taken[TIMED / 2] as f64, mean)
}

fn write(served: &mut ServedDevice, place: u64, data: &[u8], replies: &mut Vec<Reply>) {
    let request = IoRequest {
        tag: 0,
        op: Op::Write,
        fua: false,
        queue: 0,
        offset: place * data.len() as u64,
        bytes: data.len() as u32,
    };
    served.submit_with(served.now(), 0, &request, &mut |into| {
        into.copy_from_slice(data);
        true
    });
    served.complete_all(replies);
    for mut reply in replies.drain(..) {
        served.hand_over(&mut reply);
        served
            .write(reply.offset, data, reply.fua)
            .expect("it is in memory");
        served.take_back(&reply);
    }
}
