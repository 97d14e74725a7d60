//! The event loop with real sockets: no early replies, no leaks, and no client that delays others.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::nbd::Nbd;
use live::nbd::wire::{self, NbdRequest, command, option};
use live::{Clock, ConnectionLimits, EventLoop, Setup, StopSwitch};
use model::Span;
use model::media::Precondition;

/// Runs one test at a time, because one of them counts the open files of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Results of a loop.
struct Ended {
    /// Number of timed replies.
    timed: u64,
    /// Median lateness.
    late: Duration,
    /// Mean latency of its reads in the model.
    model: Duration,
}

/// A loop in a thread of its own.
struct Running {
    _alone: MutexGuard<'static, ()>,
    socket: PathBuf,
    stop: StopSwitch,
    thread: Option<JoinHandle<Ended>>,
    _folder: tempfile::TempDir,
}

impl Running {
    /// Serves a P4800X of 64 MiB over NBD at this speed.
    fn start(speed: f64, limits: ConnectionLimits) -> Running {
        Running::compensating(speed, limits, Span::ZERO)
    }

    /// Serves with each deadline earlier by `floor`.
    fn compensating(speed: f64, limits: ConnectionLimits, floor: Span) -> Running {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("nbd.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (tell, hear) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let sheet = catalogue::drive("p4800x-375").expect("a drive of the catalogue");
            let drive = Setup {
                name: "disk".into(),
                size: Some(64 << 20),
                precondition: Some(Precondition::Steady),
                ..Setup::new(sheet)
            };
            let drives = vec![drive.open().expect("memory")];
            let log = Box::new(|_: &str| {});
            let mut server =
                EventLoop::new(drives, Clock::new(speed), limits, log).expect("a loop");
            server.compensate(floor);
            let front = Box::new(Nbd::new(vec!["disk".into()]));
            server.listen(listener, front).expect("it listens");
            tell.send(server.stopper()).expect("the test waits");
            server.run().expect("it serves");
            let counters = *server.drives()[0].counters();
            let late = server.lateness().histogram().percentile(50.0);
            Ended {
                timed: server.lateness().histogram().count(),
                late: Duration::from_nanos(late.unwrap_or(Span::ZERO).ns()),
                model: Duration::from_nanos(
                    (counters.latency_ns / u128::from(counters.reads.max(1))) as u64,
                ),
            }
        });
        Running {
            _alone: alone,
            socket,
            stop: hear.recv().expect("it has started"),
            thread: Some(thread),
            _folder: folder,
        }
    }

    /// Ends the loop.
    fn end(mut self) -> Ended {
        self.stop.stop();
        let thread = self.thread.take().expect("ended once");
        thread.join().expect("it ends well")
    }
}

fn connect(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    let mut hello = 3u32.to_be_bytes().to_vec();
    hello.extend(wire::option(option::EXPORT_NAME, b""));
    stream.write_all(&hello).expect("sent");
    let mut export = [0; 10];
    stream.read_exact(&mut export).expect("an export");
    stream
}

fn read_request(offset: u64, length: u32) -> [u8; NbdRequest::BYTES] {
    NbdRequest {
        flags: 0,
        command: command::READ,
        cookie: 1,
        offset,
        length,
    }
    .emit()
}

fn read(stream: &mut UnixStream, length: u32) -> Duration {
    let mut reply = vec![0; wire::SIMPLE_REPLY + length as usize];
    let start = Instant::now();
    stream.write_all(&read_request(0, length)).expect("sent");
    stream.read_exact(&mut reply).expect("an answer");
    start.elapsed()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

#[test]
fn no_reply_is_early() {
    // A thousand times slower than the drive: 4 KiB take some 8 ms, far more than this machine's noise.
    let server = Running::start(0.001, ConnectionLimits::default());
    let mut client = connect(&server.socket);
    for _ in 0..5 {
        let took = read(&mut client, 4096);
        assert!(took > Duration::from_millis(4), "{took:?}");
    }
    drop(client);
    assert_eq!(server.end().timed, 5);
}

/// For times of a tenth of a millisecond and of several: a reply is sent when it is due, and not received sooner.
#[test]
fn a_reply_is_no_later_than_a_sleep_on_this_machine() {
    for us in [100, 300, 1_000, 1_300, 3_000] {
        // Other programs keep this machine busy; a systematic error would occur in each attempt.
        let mut attempts = (0..10).map(|_| served_and_slept(us));
        let in_time = attempts.any(|(late, sleep)| late < sleep + Duration::from_micros(350));
        assert!(in_time, "{us} us: {:?}", served_and_slept(us));
    }
}

/// Returns the median lateness of replies to reads with this latency, and of a sleep of that length between them.
fn served_and_slept(us: u64) -> (Duration, Duration) {
    const READS: u32 = 31;
    let wait = Duration::from_micros(us);
    // A 4 KiB read takes 5.5 us.
    let speed = 5.5 / us as f64;
    let server = Running::start(speed, ConnectionLimits::default());
    let mut client = connect(&server.socket);
    let (mut all, mut sleeps) = (Duration::ZERO, Vec::new());
    for _ in 0..READS {
        all += read(&mut client, 4096);
        let start = Instant::now();
        std::thread::sleep(wait);
        sleeps.push(start.elapsed() - wait);
    }
    drop(client);
    sleeps.sort_unstable();
    let ended = server.end();
    let due = ended.model.div_f64(speed);
    assert!(all / READS >= due, "{all:?} {due:?}");
    (ended.late, sleeps[sleeps.len() / 2])
}

#[test]
fn compensation_brings_replies_nearer_to_the_model_and_never_before_it_less_the_floor() {
    const SPEED: f64 = 0.0002;
    const FLOOR: Duration = Duration::from_millis(12);
    let mean = |floor: Duration| {
        let floor = Span::from_ns(floor.as_nanos() as u64);
        let server = Running::compensating(SPEED, ConnectionLimits::default(), floor);
        let mut client = connect(&server.socket);
        let reads = (0..9).map(|_| {
            // The time that a transport with this floor needs is simulated after each reply.
            std::thread::sleep(FLOOR);
            read(&mut client, 4096)
        });
        let mut took: Vec<Duration> = reads.collect();
        drop(client);
        took.sort_unstable();
        let model = server.end().model.div_f64(SPEED);
        (took.iter().sum::<Duration>() / 9, took[4], model)
    };
    // The client's latency is never below the model's; if the floor is subtracted, it may be lower by the floor.
    let (without, _, model) = mean(Duration::ZERO);
    assert!(
        model > 2 * FLOOR && without >= model,
        "{without:?} {model:?}"
    );
    let (with, middle, same) = mean(FLOOR);
    assert_eq!(same, model, "the model's own latency stays");
    assert!(with >= model - FLOOR, "{with:?} {model:?}");
    // Half of the floor is left for this machine's delay in the median of nine.
    assert!(middle < model - FLOOR / 2, "{middle:?} {model:?}");
}

#[test]
fn thousands_of_connections_leave_nothing_behind() {
    let server = Running::start(0.0, ConnectionLimits::default());
    drop(connect(&server.socket));
    let before = open_files();
    for round in 0..10_000 {
        match round % 4 {
            0 => drop(connect(&server.socket)),
            // Half a handshake, invalid bytes, and a command whose reply is never read.
            1 => drop(UnixStream::connect(&server.socket).expect("it listens")),
            2 => {
                let mut stream = UnixStream::connect(&server.socket).expect("it listens");
                let _ = stream.write_all(&[0xff; 64]);
            }
            _ => {
                let mut stream = connect(&server.socket);
                let _ = stream.write_all(&read_request(0, 65_536));
            }
        }
    }
    // The last disconnections may not have been detected yet; after a client has been served, they have.
    let mut client = connect(&server.socket);
    read(&mut client, 4096);
    drop(client);
    let deadline = Instant::now() + Duration::from_secs(10);
    while open_files() > before && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        open_files() <= before,
        "{} files, {before} before",
        open_files()
    );
    server.end();
}

#[test]
fn a_client_that_does_not_read_holds_up_only_itself() {
    let limits = ConnectionLimits {
        bytes: 8 << 20,
        ..ConnectionLimits::default()
    };
    let server = Running::start(0.0, limits);
    let mut slow = connect(&server.socket);
    slow.set_write_timeout(Some(Duration::from_millis(200)))
        .expect("a timeout");
    // 4 GiB of replies are requested and none is read: eventually the server stops taking requests.
    let mut taken = 0;
    while taken < 100_000 && slow.write_all(&read_request(0, 1 << 20)).is_ok() {
        taken += 1;
    }
    assert!(taken < 100_000, "the server takes all there is");
    let mut quick = connect(&server.socket);
    for _ in 0..100 {
        read(&mut quick, 4096);
    }
    // It is served when it reads again.
    let mut reply = vec![0; wire::SIMPLE_REPLY + (1 << 20)];
    for _ in 0..20 {
        slow.read_exact(&mut reply).expect("its replies");
    }
    server.end();
}

#[test]
fn connections_beyond_the_limit_are_refused_and_those_before_go_on() {
    let limits = ConnectionLimits {
        connections: 3,
        spin_after: Span::ZERO,
        ..ConnectionLimits::default()
    };
    let server = Running::start(0.0, limits);
    let mut first = connect(&server.socket);
    let _second = connect(&server.socket);
    let _third = connect(&server.socket);
    let mut fourth = UnixStream::connect(&server.socket).expect("the kernel takes it");
    let mut byte = [0; 1];
    assert_eq!(fourth.read(&mut byte).expect("it is closed"), 0);
    read(&mut first, 4096);
    server.end();
}

/// Returns the memory of this process in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("a figure") / 1024
}

#[test]
fn replies_that_nobody_reads_take_little_memory_and_keep_nobody_waiting() {
    let limits = ConnectionLimits {
        total_bytes: 16 << 20,
        reserve_bytes: 4 << 20,
        patience: Span::from_ms(100),
        ..ConnectionLimits::default()
    };
    let server = Running::start(0.0, limits);
    let before = resident_mib();
    let idle: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&server.socket);
            // Two of them fill the total limit, and leave the reserve for small requests.
            let request = read_request(0, 4 << 20);
            stream.write_all(&request).expect("the kernel takes it");
            stream
        })
        .collect();
    let mut quick = connect(&server.socket);
    let patience = Some(Duration::from_secs(60));
    quick.set_read_timeout(patience).expect("a socket");
    for _ in 0..100 {
        read(&mut quick, 4096);
    }
    let more = resident_mib() - before;
    assert!(more < 64, "{more} MiB for {} clients", idle.len());
    // A client that requests as much as they do, and reads it, gets it: some of the others are disconnected.
    read(&mut quick, 4 << 20);
    let was_cut = |it: &&UnixStream| {
        it.set_nonblocking(true).expect("a socket");
        let mut all = Vec::new();
        (&**it).read_to_end(&mut all).is_ok()
    };
    assert!(idle.iter().any(|it| was_cut(&it)));
    server.end();
}
