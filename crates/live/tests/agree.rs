//! A live run and a simulation agree: commands that arrived live, replayed in virtual time, have exactly the same
//! latencies.

use model::engine::{self, Workload};
use model::media::{MediumDrive, Precondition};
use model::{Command, Completion, Device, Op, Span, Stream, Time};
use tier::Drive;

use live::Setup;
use live::served::{IoRequest, Recording, Reply, ServedDevice};

/// A drive of the catalogue with 64 MiB in memory.
fn served(id: &str) -> ServedDevice {
    let sheet = catalogue::drive(id).expect("a drive of the catalogue");
    Setup {
        size: Some(64 << 20),
        precondition: Some(Precondition::Steady),
        seed: 7,
        ..Setup::new(sheet)
    }
    .open()
    .expect("memory")
}

/// Submits recorded arrivals at their times.
struct Again {
    arrivals: std::vec::IntoIter<(Time, Command)>,
    next: Option<(Time, Command)>,
    completions: Vec<Completion>,
    expected: usize,
}

impl Again {
    fn new(recording: &Recording) -> Again {
        let mut arrivals = recording.arrivals.clone().into_iter();
        Again {
            next: arrivals.next(),
            arrivals,
            completions: Vec::new(),
            expected: recording.completions.len(),
        }
    }
}

impl Workload for Again {
    fn next_arrival(&self) -> Time {
        self.next.map_or(Time::NEVER, |(at, _)| at)
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        while let Some((at, command)) = self.next {
            if at > now {
                break;
            }
            submit(command);
            self.next = self.arrivals.next();
        }
    }

    fn complete(&mut self, _now: Time, completion: &Completion) {
        self.completions.push(*completion);
    }

    fn finished(&self) -> bool {
        self.next.is_none() && self.completions.len() == self.expected
    }
}

/// Fills a block with its number and the tag of its write.
fn stamp(block: u64, tag: u32, data: &mut [u8]) {
    data.fill(0);
    data[..8].copy_from_slice(&(block + 1).to_le_bytes());
    data[8..12].copy_from_slice(&tag.to_le_bytes());
}

/// Moves the data of replies as a front end does: a pool's reads must return the data of some write to this block.
fn data_of(drive: &mut ServedDevice, replies: &mut [Reply]) {
    let mut data = [0; 4096];
    for reply in replies {
        drive.hand_over(reply);
        match reply.op {
            Op::Read if drive.is_by_member() => {
                drive.read(reply.offset, &mut data).expect("its data");
                let (block, number) = (reply.offset / 4096, data[..8].try_into().expect("eight"));
                let number = u64::from_le_bytes(number);
                assert!(
                    number == 0 || number == block + 1,
                    "block {block}: {number}"
                );
            }
            Op::Write => {
                let written = drive.write(reply.offset, &data, reply.fua);
                written.expect("its data");
            }
            _ => {}
        }
        drive.take_back(reply);
    }
}

/// Serves as with a real, irregular clock: commands arrive at irregular times, and the loop checks late and at
/// irregular times. First, `writes` sequential writes, starting with the first byte, arrive at once.
fn live_run(drive: &mut ServedDevice, seed: u64, writes: u32) -> Recording {
    drive.record();
    let mut random = Stream::new(seed, "arrivals");
    let mut wall = 0u64;
    let mut replies = Vec::new();
    let mut taken = 0;
    for tag in 0..3_000 {
        let first = tag < writes;
        wall += u64::from(random.uniform_below(40_000) as u32) * u64::from(!first);
        let block = match random.uniform_below((64 << 20) / 4096) {
            _ if first => u64::from(tag),
            block => block,
        };
        let op = match random.uniform_below(10) {
            _ if first => Op::Write,
            0..6 => Op::Read,
            6..9 => Op::Write,
            _ => Op::Flush,
        };
        let bytes = if op == Op::Flush { 0 } else { 4096 };
        drive.submit_with(
            Time::from_ns(wall),
            u64::from(tag),
            &IoRequest {
                tag,
                op,
                fua: random.uniform_below(4) == 0,
                queue: 0,
                offset: if bytes == 0 { 0 } else { block * 4096 },
                bytes,
            },
            &mut |data| {
                stamp(block, tag, data);
                true
            },
        );
        if random.uniform_below(3) == 0 {
            wall += u64::from(random.uniform_below(200_000) as u32);
            drive.advance(Time::from_ns(wall), &mut replies);
            data_of(drive, &mut replies[taken..]);
            taken = replies.len();
        }
    }
    drive.complete_all(&mut replies);
    data_of(drive, &mut replies[taken..]);
    assert_eq!(replies.len(), 3_000);
    drive.take_recording().expect("it was recording")
}

/// Replays a recording in virtual time. Returns whether it equals the live run.
fn again(id: &str, recording: &Recording, prepared: bool) -> bool {
    let sheet = catalogue::drive(id).expect("a drive of the catalogue");
    let mut simulated = Drive::new(&sheet.config, Precondition::Steady, 7);
    if prepared {
        simulated.prepare();
    }
    let mut again = Again::new(recording);
    engine::run(&mut simulated, &mut again, Time::ZERO, Time::NEVER);
    assert_eq!(again.completions.len(), recording.completions.len(), "{id}");
    assert!(simulated.capacity().bytes > 0);
    again.completions == recording.completions
}

const DRIVES: [&str; 3] = ["p4800x-375", "950pro-256", "p3608-1600"];

const POOLS: [&str; 9] = [
    "mirror(2*950pro-256)",
    "stripe(2*p4801x-100; chunk=64k)",
    "concat(mirror(2*950pro-256), p4801x-100)",
    "write-back-cache(cache=p4801x-100, capacity=2*950pro-256)",
    "read-cache(cache=p4801x-100, main=stripe(2*950pro-256))",
    "write-back-cache(cache=950pro-256, capacity=2*950pro-256; like=dm-writecache)",
    "intent-log(main=mirror(2*950pro-256), log=p4801x-100; size=64MiB, ram=100MiB, record=16KiB)",
    "intent-log(main=950pro-256, log=mirror(2*p4801x-100); size=64MiB, ram=100MiB, sync=always)",
    "intent-log(main=950pro-256; size=64MiB, ram=100MiB)",
];

/// A served drive has its map from the start, so that no client waits for it. A simulated drive computes it at its
/// first write, and reads before that see another map, so this test prepares it as well.
#[test]
fn arrivals_of_a_live_run_have_the_same_latencies_in_virtual_time() {
    for id in DRIVES.into_iter().chain(POOLS) {
        let mut drive = served(id);
        drive.prepare();
        let recording = live_run(&mut drive, 1, 0);
        assert!(again(id, &recording, true), "{id}: latencies differ");
        let recovers = drive.sheet().pool_config().is_some_and(|it| it.recovers());
        assert_eq!(drive.is_by_member(), recovers, "{id}");
    }
}

/// Preparing changes only the map: if nothing is read before the map exists, an unprepared drive behaves the same.
/// Each member of a RAID-0 computes its own map at its own first write; the first MiB is on all members.
#[test]
fn a_prepared_drive_is_as_any_other_from_the_first_write_on() {
    for id in DRIVES {
        let mut drive = served(id);
        drive.prepare();
        let recording = live_run(&mut drive, 1, (1 << 20) / 4096);
        assert!(again(id, &recording, false), "{id}: latencies differ");
    }
}

#[test]
fn a_late_look_does_not_make_the_drive_late() {
    let mut drive = served("p4800x-375");
    let read = |tag| IoRequest {
        tag,
        op: Op::Read,
        fua: false,
        queue: 0,
        offset: 0,
        bytes: 4096,
    };
    let mut replies = Vec::new();
    drive.submit(Time::ZERO, 0, &read(0));
    // Checked a second later: the command has still completed at its own time.
    drive.advance(Time::from_ns(1_000_000_000), &mut replies);
    assert!(replies[0].latency < Span::from_us(50), "{:?}", replies[0]);
    drive.submit(Time::from_ns(1_000_000_000), 1, &read(1));
    drive.complete_all(&mut replies);
    assert!(replies[1].latency < Span::from_us(50), "{:?}", replies[1]);
}
