//! Files in front of a host path: costs of a write, a sync and a commit, the order of their drive commands, and
//! commands of threads without a file, which pass through.

mod cache;

use std::cell::RefCell;
use std::rc::Rc;

use model::conformance::Suite;
use model::host::{
    Advice, Blocking, Durable, Engine, EngineCosts, FileConfig, FileCosts, Files, Filesystem,
    HostConfig, HostPath, ThreadConfig,
};
use model::media::ram::{Ram, RamConfig};
use model::{Capacity, Command, Completion, Device, Gauges, Op, Part, Range, Span, Time};

const SERVICE: Span = Span::from_us(5);
const WAKE: Span = Span::from_us(3);

/// Commands received by a drive: operation, offset, bytes, and whether with force unit access.
type Asked = Rc<RefCell<Vec<(Op, u64, u32, bool)>>>;

/// A drive that records the commands that it receives.
#[derive(Clone)]
struct Listening {
    drive: Ram,
    asked: Asked,
}

impl Device for Listening {
    fn capacity(&self) -> Capacity {
        self.drive.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        let asked = (command.op, command.offset, command.bytes, command.fua);
        self.asked.borrow_mut().push(asked);
        self.drive.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.drive.next_event()
    }
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        self.drive.advance(now, horizon, done)
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.drive.power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
    }
}

fn ram() -> Ram {
    Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command: SERVICE,
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    })
}

const COSTS: FileCosts = FileCosts {
    cached: Span::from_us(1),
    copy_picoseconds_per_byte: 0,
    direct: Span::from_ns(300),
    sync: Span::from_us(2),
    wake: WAKE,
    convert: Span::from_us(20),
    tick: Span::from_ms(4),
};

fn appended(filesystem: Filesystem) -> FileConfig {
    FileConfig {
        filesystem: Some(filesystem),
        buffered: true,
        appends: true,
        converts_every: None,
        each: None,
        sync: Durable::Data,
        syncs: true,
        blocking: Blocking::Thread,
        advice: Advice::Normal,
        range: (0, u64::MAX),
        invalidates: false,
    }
}

/// A file that exists and has been written, bypassing the page cache.
fn direct(filesystem: Filesystem) -> FileConfig {
    FileConfig {
        buffered: false,
        appends: false,
        ..appended(filesystem)
    }
}

/// Eight simultaneous writes of one thread, with its file if it has one. Returns when the last completes, and the
/// thread's system time.
fn eight_writes(config: &HostConfig, file: Option<FileConfig>) -> (Time, Span) {
    let mut files = on(config, &[file], ram());
    let commands: Vec<Command> = (0..8)
        .map(|id| Command::write(id, u64::from(id) * 4096, 4096))
        .collect();
    let done = all_done(&mut files, Time::ZERO, &commands);
    let last = done.iter().map(|one| one.at).max();
    (last.expect("eight"), files.cpu(0)[1])
}

/// Files on a host without costs, so that only files and drive take time, with a drive that flushes unless it is
/// write-through.
fn files(threads: &[Option<FileConfig>], write_through: bool) -> (Files<Listening>, Asked) {
    let asked = Asked::default();
    let drive = Listening {
        drive: ram(),
        asked: asked.clone(),
    };
    let config = HostConfig {
        cores: 16,
        write_through,
        ..HostConfig::default()
    };
    (on(&config, threads, drive), asked)
}

fn on<D: Device>(config: &HostConfig, threads: &[Option<FileConfig>], drive: D) -> Files<D> {
    with(COSTS, config, threads, drive)
}

fn with<D: Device>(
    costs: FileCosts,
    config: &HostConfig,
    threads: &[Option<FileConfig>],
    drive: D,
) -> Files<D> {
    let all: Vec<ThreadConfig> = (0..=threads.len() as u16)
        .map(|core| ThreadConfig {
            core,
            engine: Engine::Sync,
            high_priority: false,
            sq_poll: false,
            socket: 0,
        })
        .collect();
    let host = HostPath::new(config.clone(), &all, 1, drive);
    Files::new(costs, threads, 64, host)
}

/// Submits the commands at `now` and waits until all complete.
fn all_done<D: Device>(device: &mut D, now: Time, commands: &[Command]) -> Vec<Completion> {
    for command in commands {
        device.submit(now, *command);
    }
    let mut done = Vec::new();
    while device.next_event() != Time::NEVER {
        let next = device.next_event();
        device.advance(next, next, &mut done);
    }
    done
}

/// Executes one command alone; returns its latency.
fn latency<D: Device>(device: &mut D, now: Time, command: Command) -> (Time, Span) {
    let done = all_done(device, now, &[command]);
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].anatomy.total(), done[0].at.since(now));
    (done[0].at, done[0].at.since(now))
}

#[test]
fn a_buffered_write_is_a_copy_and_a_sync_writes_commits_and_flushes_in_series() {
    let (mut files, asked) = files(&[Some(appended(Filesystem::Ext4))], false);
    let (at, write) = latency(&mut files, Time::ZERO, Command::write(0, 8192, 4096));
    assert_eq!(write, COSTS.cached);
    assert!(asked.borrow().is_empty(), "nothing reaches the drive");
    let (_, sync) = latency(&mut files, at, Command::flush(1));
    // Data; the journal's thread wakes; blocks, flush, record; the caller wakes.
    assert_eq!(sync, COSTS.sync + SERVICE + WAKE + SERVICE * 3 + WAKE);
    let half = 1 << 29;
    let expected = [
        (Op::Write, 8192, 4096, false),
        (Op::Write, half, 12288, false),
        (Op::Flush, 0, 0, false),
        (Op::Write, half + 12288, 4096, true),
    ];
    assert_eq!(asked.borrow()[..], expected);
}

#[test]
fn a_drive_without_a_volatile_cache_is_not_flushed() {
    let (mut files, asked) = files(&[Some(appended(Filesystem::Ext4))], true);
    let (at, _) = latency(&mut files, Time::ZERO, Command::write(0, 0, 4096));
    let (_, sync) = latency(&mut files, at, Command::flush(1));
    assert_eq!(sync, COSTS.sync + SERVICE + WAKE + SERVICE * 2 + WAKE);
    assert!(
        asked
            .borrow()
            .iter()
            .all(|(op, _, _, fua)| *op == Op::Write && !fua)
    );
}

#[test]
fn xfs_writes_one_record() {
    let (mut files, asked) = files(&[Some(appended(Filesystem::Xfs))], false);
    let (at, _) = latency(&mut files, Time::ZERO, Command::write(0, 0, 4096));
    latency(&mut files, at, Command::flush(1));
    let ops: Vec<(Op, bool)> = asked.borrow().iter().map(|one| (one.0, one.3)).collect();
    assert_eq!(
        ops,
        [(Op::Write, false), (Op::Flush, false), (Op::Write, true)]
    );
}

#[test]
fn what_is_written_again_needs_no_commit_unless_the_time_of_the_file_counts() {
    let overwrite = |sync| FileConfig {
        appends: false,
        sync,
        ..appended(Filesystem::Ext4)
    };
    let synced = |sync, at: Time| {
        let (mut files, asked) = files(&[Some(overwrite(sync))], false);
        let (at, _) = latency(&mut files, at, Command::write(0, 0, 4096));
        latency(&mut files, at, Command::flush(1));
        // In the same tick nothing has changed since.
        let (at, _) = latency(
            &mut files,
            at + Span::from_us(100),
            Command::write(0, 0, 4096),
        );
        latency(&mut files, at, Command::flush(1));
        let records = asked.borrow().iter().filter(|one| one.3).count();
        (asked.borrow().len(), records)
    };
    assert_eq!(
        synced(Durable::Data, Time::ZERO),
        (4, 0),
        "data and flush, twice"
    );
    assert_eq!(synced(Durable::All, Time::ZERO), (6, 1), "one commit");
}

#[test]
fn a_page_that_was_written_before_is_not_new() {
    let (mut files, asked) = files(&[Some(appended(Filesystem::Ext4))], false);
    let mut at = Time::ZERO;
    for _ in 0..3 {
        (at, _) = latency(&mut files, at, Command::write(0, 0, 512));
        (at, _) = latency(&mut files, at, Command::flush(1));
    }
    let records = asked.borrow().iter().filter(|one| one.3).count();
    assert_eq!(records, 1);
    // Dirty pages are whole, and written once.
    assert_eq!(asked.borrow()[0], (Op::Write, 0, 4096, false));
}

#[test]
fn who_comes_while_a_commit_runs_shares_the_next() {
    let thread = |index: u16, mut command: Command| {
        command.id = u32::from(index);
        command.queue = index;
        command
    };
    let (mut files, asked) = files(&[Some(appended(Filesystem::Ext4)); 8], false);
    let writes: Vec<Command> = (0..8)
        .map(|index| thread(index, Command::write(0, u64::from(index) << 20, 4096)))
        .collect();
    let done = all_done(&mut files, Time::ZERO, &writes);
    let now = done.iter().map(|one| one.at).max().expect("eight");
    let syncs: Vec<Command> = (0..8)
        .map(|index| thread(index, Command::flush(0)))
        .collect();
    let done = all_done(&mut files, now, &syncs);
    assert_eq!(done.len(), 8);
    let records = asked.borrow().iter().filter(|one| one.3).count();
    assert_eq!(records, 2, "the first alone, then all the others");
    let waited = done
        .iter()
        .filter(|one| one.anatomy.get(Part::Tier) > Span::ZERO);
    assert_eq!(waited.count(), 7);
    for one in &done {
        assert_eq!(one.anatomy.total(), one.at.since(now));
    }
}

#[test]
fn a_durable_write_waits_for_all_of_it_and_direct_io_pays_its_lookup() {
    let each = FileConfig {
        each: Some(Durable::Data),
        appends: false,
        ..appended(Filesystem::Ext4)
    };
    let (mut durable, _) = files(&[Some(each)], false);
    let (_, write) = latency(&mut durable, Time::ZERO, Command::write(0, 0, 4096));
    assert_eq!(write, COSTS.cached + SERVICE * 2);
    let (mut direct, _) = files(&[Some(direct(Filesystem::Ext4))], false);
    let (_, read) = latency(&mut direct, Time::ZERO, Command::read(0, 0, 4096));
    assert_eq!(read, COSTS.direct + SERVICE);
}

/// The look-up in a file's extents is work of the thread's core, in addition to its other work: with many commands in
/// flight it is the bottleneck.
#[test]
fn lookups_of_a_file_take_their_thread_s_core() {
    let mut config = HostConfig {
        cores: 2,
        ..HostConfig::default()
    };
    // Longer than the drive takes.
    let submit = SERVICE * 2;
    config.engines[Engine::Sync as usize].submit = submit;
    let (last, cpu) = eight_writes(&config, Some(direct(Filesystem::Xfs)));
    let each = submit + COSTS.direct;
    assert_eq!(last, Time::ZERO + each * 8 + SERVICE);
    assert_eq!(cpu, each * 8);
}

/// With glibc's POSIX AIO the helper does the look-up, and it has exclusive access to the file meanwhile.
#[test]
fn lookups_of_a_file_take_the_helper_that_submits() {
    let mut config = HostConfig {
        cores: 2,
        ..HostConfig::default()
    };
    let hand_off = Span::from_us(2);
    for costs in &mut config.engines {
        (costs.hand_off, costs.helpers) = (hand_off, 1);
    }
    let (plain, _) = eight_writes(&config, None);
    let (of_file, _) = eight_writes(&config, Some(direct(Filesystem::Xfs)));
    assert_eq!(of_file.since(plain), COSTS.direct * 8);
}

/// fio allocates a file and does not write it: the first write to each block is to an extent that was never written.
#[test]
fn a_direct_write_to_blocks_that_were_never_written_waits_until_their_extent_is_marked() {
    let direct = |converts_every| FileConfig {
        converts_every,
        ..direct(Filesystem::Ext4)
    };
    let plain = COSTS.direct + SERVICE;
    let takes = |converts_every| {
        let (mut files, _) = files(&[Some(direct(converts_every))], false);
        let mut now = Time::ZERO;
        let mut all = Vec::new();
        for id in 0..6 {
            let (at, write) = latency(&mut files, now, Command::write(id, 0, 4096));
            now = at;
            all.push(write);
        }
        all
    };
    assert_eq!(takes(None), [plain; 6]);
    assert_eq!(takes(Some(Span::ZERO)), [plain + WAKE + COSTS.convert; 6]);
    // Every 40 us: the first write, and then the first one that begins after that.
    let some = takes(Some(Span::from_us(40)));
    let slow = some
        .iter()
        .filter(|&&took| took == plain + WAKE + COSTS.convert);
    assert_eq!(slow.count(), 2, "{some:?}");
    // Reads never wait for that.
    let (mut files, _) = files(&[Some(direct(Some(Span::ZERO)))], false);
    let (_, read) = latency(&mut files, Time::ZERO, Command::read(0, 0, 4096));
    assert_eq!(read, plain);
}

/// One kernel thread marks the extents of a file; those of another file do not wait for it.
#[test]
fn the_extents_of_one_file_are_marked_one_after_another() {
    let file = FileConfig {
        converts_every: Some(Span::ZERO),
        ..direct(Filesystem::Ext4)
    };
    let last = |threads: u16| {
        let (mut files, _) = files(&vec![Some(file); usize::from(threads)], false);
        let commands: Vec<Command> = (0..8)
            .map(|id| Command {
                queue: id as u16 % threads,
                ..Command::write(id, u64::from(id) * 4096, 4096)
            })
            .collect();
        let done = all_done(&mut files, Time::ZERO, &commands);
        let at = done.iter().map(|one| one.at).max();
        at.expect("eight").since(Time::ZERO)
    };
    // The drive serves one write in `SERVICE`, which is shorter.
    const { assert!(SERVICE.ns() < COSTS.convert.ns()) };
    let first = COSTS.direct + SERVICE + WAKE;
    assert_eq!(last(1), first + COSTS.convert * 8);
    assert!(last(2) <= first + SERVICE + COSTS.direct + COSTS.convert * 4);
    assert!(last(8) < first + SERVICE * 8 + COSTS.convert);
}

#[test]
fn threads_without_files_see_the_host_path_as_it_is() {
    let suite = Suite {
        queues: 3,
        ..Suite::default()
    };
    let config = HostConfig {
        cores: 4,
        engines: [EngineCosts {
            submit: Span::from_ns(700),
            reap: Span::from_ns(300),
            ..EngineCosts::default()
        }; Engine::COUNT],
        ..HostConfig::default()
    };
    suite.check(|_| on(&config, &[None; 3], ram()));
}

/// Direct I/O of many threads to files keeps every law of a device: it is neither buffered nor journaled.
#[test]
fn direct_files_keep_the_laws() {
    let suite = Suite {
        queues: 3,
        ..Suite::default()
    };
    let direct = FileConfig {
        filesystem: None,
        buffered: false,
        appends: false,
        converts_every: Some(Span::from_us(37)),
        ..appended(Filesystem::Ext4)
    };
    let config = HostConfig {
        cores: 4,
        ..HostConfig::default()
    };
    suite.check(|_| on(&config, &[Some(direct); 3], ram()));
}
