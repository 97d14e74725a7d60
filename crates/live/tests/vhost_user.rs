//! vhost-user-blk with a test driver that has rings in shared memory, like a guest. Real guests are tested with the
//! program (`crates/cli/tests/live`). This file tests cases that guests do not produce on demand: connections that
//! break with requests in flight, and invalid input.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use live::{Clock, ConnectionLimits, EventLoop, Setup, StopSwitch, VhostUser};
use model::media::Precondition;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use tempfile::TempDir;
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight};
use vhost::vhost_user::{Frontend, VhostUserFrontend, VhostUserProtocolFeatures};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
    GuestRegionMmap,
};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const NAMESPACE: u64 = 64 << 20;
const LIMIT: Duration = Duration::from_secs(20);

/// A server in a thread of its own.
struct Server {
    folder: TempDir,
    log: Arc<Mutex<Vec<String>>>,
    stop: StopSwitch,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(speed: f64) -> Server {
        let folder = TempDir::new().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("a socket");
        let (sender, receiver) = channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let thread = thread::spawn(move || {
            let sheet = catalogue::drive("p4800x-375").expect("a built-in drive");
            let setup = Setup {
                name: String::from("disk"),
                serial: String::from("DL12345678"),
                size: Some(NAMESPACE),
                precondition: Some(Precondition::Fresh),
                ..Setup::new(sheet)
            };
            let served = setup.open().expect("memory");
            let front = VhostUser::new(0);
            let log = Box::new(move |line: &str| {
                lines.lock().expect("nobody panics").push(line.to_owned());
            });
            let mut events = EventLoop::new(
                vec![served],
                Clock::new(speed),
                ConnectionLimits::default(),
                log,
            )
            .expect("descriptors");
            events
                .listen(listener, Box::new(front))
                .expect("a listener");
            sender.send(events.stopper()).expect("the test waits");
            events.run().expect("epoll");
        });
        Server {
            folder,
            log,
            stop: receiver.recv().expect("it starts"),
            thread: Some(thread),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

const ENTRIES: u16 = 64;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x3000;
const USED: u64 = 0x5000;
const HEADERS: u64 = 0x1_0000;
const STATUS: u64 = 0x2_0000;
const DATA: u64 = 0x10_0000;
const MEMORY: u64 = 4 << 20;
const BLOCK: usize = 4096;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const GET_ID: u32 = 8;
const DISCARD: u32 = 11;

/// A guest's memory, which outlives its connections.
struct Memory {
    map: GuestMemoryMmap,
    available: u16,
    seen: u16,
}

impl Memory {
    fn new() -> Memory {
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory"));
        ftruncate(&file, MEMORY).expect("memory");
        let region = (
            GuestAddress(0),
            MEMORY as usize,
            Some(FileOffset::new(file, 0)),
        );
        Memory {
            map: GuestMemoryMmap::from_ranges_with_files([region]).expect("memory"),
            available: 0,
            seen: 0,
        }
    }

    fn region(&self) -> &GuestRegionMmap {
        self.map.iter().next().expect("one region")
    }

    fn put<T: vm_memory::ByteValued>(&self, at: u64, value: T) {
        self.map
            .write_obj(value, GuestAddress(at))
            .expect("in range");
    }

    fn get<T: vm_memory::ByteValued>(&self, at: u64) -> T {
        self.map.read_obj(GuestAddress(at)).expect("in range")
    }

    /// Makes a request available: three descriptors starting at `3 * slot`.
    fn ask(&mut self, slot: u16, kind: u32, sector: u64, bytes: usize) {
        let header = HEADERS + u64::from(slot) * 16;
        self.put(header, kind);
        self.put(header + 4, 0_u32);
        self.put(header + 8, sector);
        let (next, write) = (1_u16, 2_u16);
        let data_flags = if matches!(kind, IN | GET_ID) {
            next | write
        } else {
            next
        };
        let status = STATUS + u64::from(slot);
        self.put(status, 0xff_u8);
        let head = slot * 3;
        let descriptor = |index: u16, at: u64, bytes: u32, flags: u16| {
            let place = TABLE + u64::from(index) * 16;
            self.put(place, at);
            self.put(place + 8, bytes);
            self.put(place + 12, flags);
            self.put(place + 14, index + 1);
        };
        descriptor(head, header, 16, next);
        descriptor(
            head + 1,
            DATA + slot as u64 * BLOCK as u64,
            bytes as u32,
            data_flags,
        );
        descriptor(head + 2, status, 1, write);
        self.offer(head);
    }

    fn offer(&mut self, head: u16) {
        self.put(
            AVAILABLE + 4 + u64::from(self.available % ENTRIES) * 2,
            head,
        );
        self.available += 1;
        self.put(AVAILABLE + 2, self.available);
    }

    fn data(&self, slot: u16) -> Vec<u8> {
        let mut data = vec![0; BLOCK];
        let at = GuestAddress(DATA + u64::from(slot) * BLOCK as u64);
        self.map.read_slice(&mut data, at).expect("in range");
        data
    }

    fn fill(&self, slot: u16, value: u8) {
        let at = GuestAddress(DATA + u64::from(slot) * BLOCK as u64);
        self.map.write_slice(&[value; BLOCK], at).expect("in range");
    }

    fn status(&self, slot: u16) -> u8 {
        self.get(STATUS + u64::from(slot))
    }

    /// Waits until `count` more requests have completed, and returns their heads.
    fn ended(&mut self, count: usize) -> Vec<u32> {
        let end = Instant::now() + LIMIT;
        let mut heads = Vec::new();
        while heads.len() < count {
            assert!(Instant::now() < end, "only {heads:?} ended");
            let index: u16 = self.get(USED + 2);
            while self.seen != index {
                heads.push(self.get(USED + 4 + u64::from(self.seen % ENTRIES) * 8));
                self.seen = self.seen.wrapping_add(1);
            }
            thread::yield_now();
        }
        heads
    }
}

/// A connection of a guest with one ring.
struct Connection {
    frontend: Frontend,
    kick: EventFd,
}

impl Connection {
    fn new(
        socket: &Path,
        memory: &Memory,
        in_flight: &mut Option<(VhostUserInflight, File)>,
    ) -> Connection {
        let mut frontend = Frontend::connect(socket, 1).expect("a connection");
        frontend.set_owner().expect("owner");
        let features = frontend.get_features().expect("features");
        // Without the event index, each request needs a kick.
        frontend
            .set_features(features & !(1 << 29))
            .expect("features");
        let offered = frontend.get_protocol_features().expect("features");
        assert!(offered.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD));
        frontend.set_protocol_features(offered).expect("features");
        match in_flight {
            Some((given, file)) => frontend
                .set_inflight_fd(given, file.as_raw_fd())
                .expect("taken"),
            None => {
                let wanted = VhostUserInflight::new(0, 0, 1, ENTRIES);
                *in_flight = Some(frontend.get_inflight_fd(&wanted).expect("given"));
            }
        }
        let region = memory.region();
        let info = VhostUserMemoryRegionInfo::from_guest_region(region).expect("a file");
        frontend.set_mem_table(&[info]).expect("memory");
        frontend.set_vring_num(0, ENTRIES).expect("a ring");
        let here = region
            .get_host_address(vm_memory::MemoryRegionAddress(0))
            .expect("mapped") as u64;
        let ring = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: here + TABLE,
            used_ring_addr: here + USED,
            avail_ring_addr: here + AVAILABLE,
            log_addr: None,
        };
        frontend.set_vring_addr(0, &ring).expect("a ring");
        // As QEMU does after a broken connection.
        frontend
            .set_vring_base(0, memory.get(USED + 2))
            .expect("a ring");
        let (kick, call) = (EventFd::new(EFD_NONBLOCK), EventFd::new(EFD_NONBLOCK));
        let kick = kick.expect("a descriptor");
        frontend
            .set_vring_call(0, &call.expect("a descriptor"))
            .expect("a ring");
        frontend.set_vring_kick(0, &kick).expect("a ring");
        frontend.set_vring_enable(0, true).expect("a ring");
        Connection { frontend, kick }
    }

    fn kick(&self) {
        self.kick.write(1).expect("a kick");
    }

    /// Waits until the server has ended the connection.
    fn wait_until_ended(mut self) {
        let end = Instant::now() + LIMIT;
        let flags = VhostUserConfigFlags::empty();
        while self.frontend.get_config(0, 8, flags, &[0; 8]).is_ok() {
            assert!(Instant::now() < end, "still served");
        }
    }
}

#[test]
fn a_guest_reads_what_it_wrote() {
    let server = Server::start(0.0);
    let mut memory = Memory::new();
    let mut connection = Connection::new(&server.socket(), &memory, &mut None);
    let flags = VhostUserConfigFlags::empty();
    let (_, config) = connection
        .frontend
        .get_config(0, 60, flags, &[0; 60])
        .expect("config");
    let sectors = u64::from_le_bytes(config[..8].try_into().expect("eight bytes"));
    assert_eq!(sectors * 512, NAMESPACE);
    memory.fill(0, 7);
    memory.fill(1, 9);
    memory.ask(0, OUT, 8, BLOCK);
    connection.kick();
    memory.ended(1);
    memory.ask(1, IN, 8, BLOCK);
    memory.ask(2, FLUSH, 0, 0);
    memory.ask(3, GET_ID, 0, 20);
    memory.ask(4, IN, NAMESPACE / 512, BLOCK);
    memory.ask(5, IN, 0, 100);
    memory.ask(6, 77, 0, BLOCK);
    connection.kick();
    memory.ended(6);
    let status: Vec<u8> = (0..7).map(|slot| memory.status(slot)).collect();
    assert_eq!(status, [0, 0, 0, 0, 1, 1, 2]);
    assert_eq!(memory.data(1), [7; BLOCK]);
    assert!(memory.data(3).starts_with(b"DL12345678\0"));
    // After a discard of that block, it reads as zeroes.
    let range = DATA + 7 * BLOCK as u64;
    memory.put(range, 8_u64);
    memory.put(range + 8, 8_u32);
    memory.put(range + 12, 0_u32);
    memory.ask(7, DISCARD, 0, 16);
    connection.kick();
    memory.ended(1);
    memory.ask(1, IN, 8, BLOCK);
    connection.kick();
    memory.ended(1);
    assert_eq!((memory.status(7), memory.data(1)), (0, vec![0; BLOCK]));
    // Stopping the ring returns the index from which to continue.
    assert_eq!(connection.frontend.get_vring_base(0).expect("a ring"), 9);
}

#[test]
fn requests_in_flight_survive_the_connection() {
    // A write of some 10 us takes a tenth of a second.
    let server = Server::start(1e-4);
    let mut memory = Memory::new();
    let mut in_flight = None;
    let connection = Connection::new(&server.socket(), &memory, &mut in_flight);
    for slot in 0..8 {
        memory.fill(slot, slot as u8 + 1);
        memory.ask(slot, OUT, u64::from(slot) * 8, BLOCK);
    }
    connection.kick();
    // Until all are recorded as taken.
    let (given, file) = in_flight.as_ref().expect("given");
    let place = FileOffset::new(file.try_clone().expect("a descriptor"), given.mmap_offset);
    let noted: GuestMemoryMmap = GuestMemoryMmap::from_ranges_with_files([(
        GuestAddress(0),
        given.mmap_size as usize,
        Some(place),
    )])
    .expect("the memory");
    let taken = |head: u64| {
        noted
            .read_obj::<u8>(GuestAddress(16 + head * 16))
            .expect("in range")
    };
    let end = Instant::now() + LIMIT;
    while (0..8).any(|slot| taken(slot * 3) != 1) {
        assert!(Instant::now() < end, "never taken");
        thread::yield_now();
    }
    assert_eq!(memory.get::<u16>(USED + 2), 0, "nothing has ended yet");
    drop(connection);
    // And one more that was made available while no server was running.
    memory.fill(8, 9);
    memory.ask(8, OUT, 64, BLOCK);
    let connection = Connection::new(&server.socket(), &memory, &mut in_flight);
    let mut heads = memory.ended(9);
    heads.sort_unstable();
    assert_eq!(heads, (0..9).map(|slot| slot * 3).collect::<Vec<u32>>());
    thread::sleep(Duration::from_millis(50));
    assert_eq!(memory.get::<u16>(USED + 2), 9, "each ended once");
    for slot in 0..9 {
        assert_eq!(memory.status(slot), 0);
        memory.ask(slot + 9, IN, u64::from(slot) * 8, BLOCK);
    }
    connection.kick();
    memory.ended(9);
    for slot in 0..9 {
        assert_eq!(
            memory.data(slot + 9),
            [slot as u8 + 1; BLOCK],
            "block {slot}"
        );
    }
}

/// Checks whether the server closes this connection.
fn is_closed(mut stream: UnixStream) -> bool {
    stream.set_read_timeout(Some(LIMIT)).expect("a time");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn nonsense_ends_that_connection_only() {
    let server = Server::start(0.0);
    let mut memory = Memory::new();
    let good = Connection::new(&server.socket(), &memory, &mut None);
    let too_long = [1_u32, 1, 1 << 20].map(u32::to_le_bytes).concat();
    let unknown = [4_000_u32, 1, 0].map(u32::to_le_bytes).concat();
    let half = [5_u32, 1, 100, 0].map(u32::to_le_bytes).concat();
    for message in [too_long, unknown, half] {
        let mut stream = UnixStream::connect(server.socket()).expect("a connection");
        stream.write_all(&message).expect("taken");
        assert!(is_closed(stream), "{message:?}");
    }
    // Rings with chains that do not end, or leave the memory.
    for (at, next) in [(HEADERS, 0_u16), (MEMORY - 8, 1), (HEADERS, ENTRIES)] {
        let mut evil = Memory::new();
        let connection = Connection::new(&server.socket(), &evil, &mut None);
        evil.put(TABLE, at);
        evil.put(TABLE + 8, 16_u32);
        evil.put(TABLE + 12, 1_u16);
        evil.put(TABLE + 14, next);
        evil.put(TABLE + 16, at);
        evil.put(TABLE + 24, 16_u32);
        evil.put(TABLE + 28, 2_u16);
        evil.offer(0);
        connection.kick();
        connection.wait_until_ended();
    }
    memory.ask(0, IN, 0, BLOCK);
    good.kick();
    memory.ended(1);
    assert_eq!(memory.status(0), 0);
}

#[test]
fn memory_that_is_cut_short_ends_that_connection_only() {
    // A write of some 10 us takes a tenth of a second: time to truncate memory between request and data.
    let server = Server::start(1e-4);
    let mut memory = Memory::new();
    let good = Connection::new(&server.socket(), &memory, &mut None);
    // All of it, everything from the data, and everything except the first page. This test must not access the
    // truncated part either.
    for left in [0, DATA, 0x1000] {
        for asked in [false, true] {
            let mut evil = Memory::new();
            let connection = Connection::new(&server.socket(), &evil, &mut None);
            evil.fill(0, 7);
            evil.ask(0, OUT, 0, BLOCK);
            if asked {
                connection.kick();
                thread::sleep(Duration::from_millis(10));
            }
            let file = evil.region().file_offset().expect("a file");
            ftruncate(file.file(), left).expect("cut");
            connection.kick();
            connection.wait_until_ended();
        }
    }
    // And the memory in which requests are recorded.
    let mut evil = Memory::new();
    let mut in_flight = None;
    let connection = Connection::new(&server.socket(), &evil, &mut in_flight);
    ftruncate(&in_flight.expect("given").1, 0).expect("cut");
    evil.ask(0, OUT, 0, BLOCK);
    connection.kick();
    connection.wait_until_ended();
    // A connection ends just before that is logged.
    let said = || server.log.lock().expect("nobody panics").clone();
    let end = Instant::now() + LIMIT;
    while said().len() < 7 && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    let log = said();
    let reasons = log.iter().filter(|line| line.contains("cut short"));
    assert_eq!((reasons.count(), log.len()), (7, 7), "{log:?}");
    // The others continue, and no data was written.
    memory.fill(0, 1);
    memory.ask(0, IN, 0, BLOCK);
    good.kick();
    memory.ended(1);
    assert_eq!((memory.status(0), memory.data(0)), (0, vec![0; BLOCK]));
}
