//! Files with a page cache: hits, read-ahead, write-back, writers that wait, syncs.

use model::host::{Advice, Blocking, FileConfig, Files, Filesystem, HostConfig, PageCacheConfig};
use model::media::ram::{Ram, RamConfig};
use model::{Command, Device, Gauge, Gauges, Op, Span, Time};

use super::{Asked, COSTS, Listening, SERVICE, WAKE, all_done, appended, latency, on};

/// A page cache of 100 MiB: write-back begins at 10 MiB, and writers wait at 17.5 MiB.
const CACHE: PageCacheConfig = PageCacheConfig {
    memory: 100 << 20,
    dirty_background_ratio: 10,
    dirty_ratio: 20,
    dirty_expire: Span::from_ms(30_000),
    dirty_writeback: Span::from_ms(5_000),
    read_ahead: 128 << 10,
    write_requests: 4,
};

/// A drive's file that is read and written through the page cache.
fn cached() -> FileConfig {
    FileConfig {
        filesystem: None,
        appends: false,
        syncs: false,
        ..appended(Filesystem::Ext4)
    }
}

/// Files of these threads on a host with the page cache, with a drive of 1 GB/s.
fn with_cache(threads: &[FileConfig]) -> (Files<Listening>, Asked) {
    let asked = Asked::default();
    let drive = Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command: SERVICE,
        picoseconds_per_byte: 1000,
        memory_bus: None,
        spread: 0.0,
    });
    let drive = Listening {
        drive,
        asked: asked.clone(),
    };
    let config = HostConfig {
        cores: 16,
        page_cache: Some(CACHE),
        ..HostConfig::default()
    };
    let threads: Vec<Option<FileConfig>> = threads.iter().copied().map(Some).collect();
    (on(&config, &threads, drive), asked)
}

/// Offsets and lengths of the commands, in KiB.
fn kib(asked: &Asked) -> Vec<(u64, u32)> {
    let asked = asked.borrow();
    asked.iter().map(|it| (it.1 >> 10, it.2 >> 10)).collect()
}

#[test]
fn a_page_in_memory_is_read_without_the_drive() {
    let (mut files, asked) = with_cache(&[cached()]);
    let page = Command::read(0, 1 << 20, 4096);
    let (at, miss) = latency(&mut files, Time::ZERO, page);
    assert_eq!(miss, COSTS.cached + SERVICE + Span::from_ns(4096));
    let (at, hit) = latency(&mut files, at, page);
    assert_eq!(hit, COSTS.cached);
    // What was written is in memory as well. Writing back comes later.
    let (at, _) = latency_until(&mut files, at, Command::write(0, 2 << 20, 4096));
    let (_, hit) = latency_until(&mut files, at, Command::read(0, 2 << 20, 4096));
    assert_eq!(hit, COSTS.cached);
    assert_eq!(kib(&asked), [(1024, 4)]);
}

/// Executes one command; ends with it, and not when the host has nothing more to do.
fn latency_until<D: Device>(device: &mut D, now: Time, command: Command) -> (Time, Span) {
    device.submit(now, command);
    let mut done = Vec::new();
    while done.is_empty() {
        let next = device.next_event();
        device.advance(next, next, &mut done);
    }
    assert_eq!(done[0].anatomy.total(), done[0].at.since(now));
    (done[0].at, done[0].at.since(now))
}

#[test]
fn reads_in_sequence_read_ahead_and_random_reads_do_not() {
    let read = |advice, pages| {
        let (mut files, asked) = with_cache(&[FileConfig { advice, ..cached() }]);
        let mut now = Time::ZERO;
        for page in 0..pages {
            (now, _) = latency_until(&mut files, now, Command::read(0, page * 4096, 4096));
        }
        kib(&asked)
    };
    let growing = [(0, 16), (16, 32), (48, 64), (112, 128)];
    assert_eq!(read(Advice::Normal, 16), growing);
    assert_eq!(read(Advice::Sequential, 16), growing);
    assert_eq!(read(Advice::Normal, 64)[4..], [(240, 128), (368, 128)]);
    assert_eq!(read(Advice::Sequential, 64)[4..], [(240, 256), (496, 256)]);
    let single: Vec<(u64, u32)> = (0..16).map(|page| (page * 4, 4)).collect();
    assert_eq!(read(Advice::Random, 16), single);
}

#[test]
fn writers_wait_while_too_much_is_dirty_and_write_back_is_in_large_requests() {
    let (mut files, asked) = with_cache(&[cached()]);
    let (mut now, mut longest) = (Time::ZERO, Span::ZERO);
    let block = 64 << 10;
    for index in 0..(200 << 20) / block {
        let write = Command::write(0, index * block, block as u32);
        let (at, took) = latency_until(&mut files, now, write);
        (now, longest) = (at, longest.max(took));
    }
    // All but the set point has been written: at the drive's rate.
    let written = kib(&asked)
        .iter()
        .map(|it| u64::from(it.1) << 10)
        .sum::<u64>();
    let most = (17 << 20) + (1 << 19);
    let left = (200 << 20) - written;
    assert!(left < most + 2 * block, "{left}");
    let rate = written as f64 / now.seconds();
    // Up to 4 MiB are in flight.
    assert!((0.9e9..1.03e9).contains(&rate), "{rate}");
    assert!(longest > Span::from_us(500), "{longest:?}");
    let large = kib(&asked).iter().filter(|it| it.1 == 1024).count() as u64;
    assert!(large * 10 > written >> 20, "{large} of {written}");
    let mut gauges = Seen::default();
    files.inspect(now, &mut gauges);
    assert!(gauges.of(Gauge::PageCacheDirtyBytes) <= (most + block) as f64);
    assert!(gauges.of(Gauge::PageCacheThrottledSeconds) > 0.1);
    assert_eq!(
        gauges.of(Gauge::PageCacheBytesWritten),
        f64::from(200 << 20)
    );
}

/// Gauges by name.
#[derive(Default)]
struct Seen(Vec<(Gauge, f64)>);

impl Gauges for Seen {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        self.0.push((gauge, value));
    }
}

impl Seen {
    fn of(&self, gauge: Gauge) -> f64 {
        let values = self.0.iter().filter(|it| it.0 == gauge);
        values.map(|it| it.1).sum()
    }
}

#[test]
fn pages_that_have_been_dirty_for_long_are_written() {
    let (mut files, asked) = with_cache(&[cached()]);
    let at = Time::ZERO + Span::from_ms(1_000);
    let done = all_done(&mut files, at, &[Command::write(0, 8192, 4096)]);
    assert_eq!(done[0].at, at + COSTS.cached);
    assert_eq!(kib(&asked), [(8, 4)]);
    let mut now = Time::ZERO;
    let (mut files, asked) = with_cache(&[cached()]);
    files.submit(at, Command::write(0, 8192, 4096));
    while asked.borrow().is_empty() {
        now = files.next_event();
        files.advance(now, now, &mut Vec::new());
    }
    // The flusher wakes every 5 s; the wake-up at 35 s is the first one at which the page is older than 30 s.
    assert_eq!(now, Time::ZERO + Span::from_ms(35_000) + WAKE);
}

#[test]
fn a_sync_waits_for_all_dirty_pages_and_for_those_that_are_being_written() {
    let (mut files, asked) = with_cache(&[cached()]);
    let mut now = Time::ZERO;
    let total = 15u64 << 20;
    for index in 0..15 {
        (now, _) = latency_until(&mut files, now, Command::write(0, index << 20, 1 << 20));
    }
    let sent = asked.borrow().len();
    let (at, sync) = latency_until(&mut files, now, Command::flush(0));
    let written: u64 = kib(&asked).iter().map(|it| u64::from(it.1) << 10).sum();
    assert_eq!(written, total, "each page once");
    assert_eq!(asked.borrow().last().map(|it| it.0), Some(Op::Flush));
    let least = Span::from_ns(total).saturating_sub(now.since(Time::ZERO));
    assert!(sync > least && sync < least + Span::from_ms(1), "{sync:?}");
    let (_, sync) = latency_until(&mut files, at, Command::flush(0));
    assert_eq!(sync, COSTS.sync + SERVICE, "nothing is dirty");
    assert!(sent < asked.borrow().len());
}

#[test]
fn an_io_that_waits_for_the_drive_delays_those_of_its_thread_unless_workers_take_it() {
    // Commands that the drive has received when the first of four reads completes, and when the last does.
    let reads = |blocking| {
        let file = FileConfig {
            blocking,
            advice: Advice::Random,
            ..cached()
        };
        let (mut files, asked) = with_cache(&[file]);
        for id in 0..4 {
            let read = Command::read(id, u64::from(id) << 20, 4096);
            files.submit(Time::ZERO, read);
        }
        let (mut done, mut first) = (Vec::new(), 0);
        while files.next_event() != Time::NEVER {
            let next = files.next_event();
            files.advance(next, next, &mut done);
            if done.len() == 1 && first == 0 {
                first = asked.borrow().len();
            }
        }
        for one in &done {
            assert_eq!(one.anatomy.total(), one.at.since(Time::ZERO));
        }
        (first, done.len(), done.last().map(|one| one.at))
    };
    let read = SERVICE + Span::from_ns(4096);
    let in_series = Some(Time::ZERO + COSTS.cached + read * 4);
    assert_eq!(reads(Blocking::Thread), (2, 4, in_series));
    assert_eq!(reads(Blocking::Helper), (2, 4, in_series));
    assert_eq!(reads(Blocking::Never).0, 4);
}

#[test]
fn a_job_that_invalidates_its_file_reads_it_from_the_drive() {
    let thread = |index: u16| Command {
        queue: index,
        ..Command::read(0, 0, 4096)
    };
    let second = |invalidates, range| {
        let again = FileConfig {
            invalidates,
            range,
            ..cached()
        };
        let (mut files, asked) = with_cache(&[cached(), again]);
        let (at, _) = latency(&mut files, Time::ZERO, thread(0));
        latency(&mut files, at, thread(1));
        asked.borrow().iter().filter(|it| it.1 == 0).count()
    };
    assert_eq!(second(true, (0, u64::MAX)), 2);
    assert_eq!(second(false, (0, u64::MAX)), 1);
    assert_eq!(second(true, (1 << 20, 2 << 20)), 1);
}
