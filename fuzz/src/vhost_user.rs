//! A guest that may do anything: to the rings and requests in the memory it shares, and on the socket.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;

use live::offline::Offline;
use live::{ConnectionLimits, ConnectionEnd, Endpoint, Front, VhostUser};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::Frontend;
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{
    ByteValued, Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap,
    GuestMemoryRegion, MemoryRegionAddress,
};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use crate::live::small_drive;

/// Where things are in the guest's memory.
const TABLE: u64 = 0;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const HEADERS: u64 = 0x3000;
const DATA: u64 = 0x4000;
const STATUS: u64 = 0xf000;
const MEMORY: u64 = 0x1_0000;
const ENTRIES: u16 = 16;

/// The guest, and the server without an event loop.
struct Guest {
    memory: GuestMemoryMmap,
    socket: UnixStream,
    _frontend: Frontend,
    kick: EventFd,
    available: u16,
    /// It has cut its memory short, and must not touch what it had.
    cut: bool,
    server: Offline<Box<dyn Endpoint>>,
}

impl Guest {
    /// A ring is set up as it should be.
    fn new(features: u64) -> Guest {
        let (socket, other) = UnixStream::pair().expect("descriptors");
        other.set_nonblocking(true).expect("a socket");
        let endpoint = VhostUser::new(0)
            .accept(other.into(), "fuzz")
            .expect("an endpoint");
        let limits = ConnectionLimits {
            commands: 8,
            bytes: 1 << 20,
            ..ConnectionLimits::default()
        };
        let server = Offline::of_endpoint(vec![small_drive()], endpoint, limits).expect("opened");
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory"));
        ftruncate(&file, MEMORY).expect("memory");
        let place = FileOffset::new(file, 0);
        let region = (GuestAddress(0), MEMORY as usize, Some(place));
        let memory = GuestMemoryMmap::from_ranges_with_files([region]).expect("memory");
        let frontend = Frontend::from_stream(socket.try_clone().expect("descriptors"), 1);
        let kick = EventFd::new(EFD_NONBLOCK).expect("descriptors");
        let region = memory.iter().next().expect("one region");
        let info = VhostUserMemoryRegionInfo::from_guest_region(region).expect("a file");
        let here = region.get_host_address(MemoryRegionAddress(0));
        let here = here.expect("mapped") as u64;
        let ring = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: here + TABLE,
            used_ring_addr: here + USED,
            avail_ring_addr: here + AVAILABLE,
            log_addr: None,
        };
        frontend.set_owner().expect("sent");
        frontend.set_features(features).expect("sent");
        frontend.set_mem_table(&[info]).expect("sent");
        frontend.set_vring_num(0, ENTRIES).expect("sent");
        frontend.set_vring_addr(0, &ring).expect("sent");
        frontend.set_vring_base(0, 0).expect("sent");
        frontend.set_vring_kick(0, &kick).expect("sent");
        let mut guest = Guest {
            memory,
            socket,
            _frontend: frontend,
            kick,
            available: 0,
            cut: false,
            server,
        };
        guest.server.turn().expect("a ring that is set up well");
        // A write as it should be is done: what follows reaches requests.
        guest.ask(0, 1, 0, 512);
        guest.offer(0);
        guest.server.turn().expect("a good request");
        let place = (GuestAddress(STATUS), GuestAddress(USED + 2));
        let (status, used): (u8, u16) = (
            guest.memory.read_obj(place.0).expect("in range"),
            guest.memory.read_obj(place.1).expect("in range"),
        );
        assert_eq!((status, used), (0, 1));
        guest
    }

    fn put<T: ByteValued>(&self, at: u64, value: T) {
        if !self.cut {
            // What a guest writes beyond its memory it writes to nobody.
            let _ = self.memory.write_obj(value, GuestAddress(at));
        }
    }

    /// A request of three descriptors as it should be.
    fn ask(&self, head: u16, kind: u32, sector: u64, bytes: u32) {
        let header = HEADERS + u64::from(head) * 16;
        self.put(header, kind);
        self.put(header + 4, 0_u32);
        self.put(header + 8, sector);
        let writes = if kind % 2 == 0 { 2 } else { 0 };
        let descriptor = |index: u16, at: u64, bytes: u32, flags: u16| {
            let place = TABLE + u64::from(index % ENTRIES) * 16;
            self.put(place, at);
            self.put(place + 8, bytes);
            self.put(place + 12, flags);
            self.put(place + 14, (index + 1) % ENTRIES);
        };
        descriptor(head, header, 16, 1);
        descriptor(head + 1, DATA, bytes, 1 | writes);
        descriptor(head + 2, STATUS, 1, 2);
    }

    fn offer(&mut self, head: u16) {
        let entry = AVAILABLE + 4 + u64::from(self.available % ENTRIES) * 2;
        self.put(entry, head);
        self.available = self.available.wrapping_add(1);
        self.put(AVAILABLE + 2, self.available);
    }
}

/// The input's bytes, zeroes when it has ended.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
}

/// Does what the input says; the server goes on or ends this connection with a reason, and nothing stays in the drive.
pub fn guest(bytes: &[u8]) {
    let mut script = Script(bytes);
    // With or without the event index and indirect descriptors; always virtio 1.
    let features = 1 << 32 | u64::from(script.byte() & 3) << 28;
    let mut guest = Guest::new(features);
    while !script.0.is_empty() {
        match script.byte() % 7 {
            0 => {
                let at = u64::from(script.word());
                for offset in 0..u64::from(script.byte() % 24) {
                    guest.put(at + offset, script.byte());
                }
                continue;
            }
            1 => {
                let head = u16::from(script.byte());
                guest.offer(head);
            }
            2 => {
                let (head, kind) = (u16::from(script.byte() % ENTRIES as u8), script.byte());
                let (sector, bytes) = (u64::from(script.word()), u32::from(script.word()));
                guest.ask(head, kind.into(), sector, bytes);
                guest.offer(head);
            }
            3 => {
                let mut message = vec![0; usize::from(script.byte() % 80)];
                message.fill_with(|| script.byte());
                guest.socket.write_all(&message).expect("it is read");
            }
            4 => {
                // A message with a header that is right.
                let (request, length) = (u32::from(script.byte() % 48), script.byte() % 64);
                let mut message = [request, 1, length.into()].map(u32::to_le_bytes).concat();
                message.extend((0..length).map(|_| script.byte()));
                guest.socket.write_all(&message).expect("it is read");
            }
            5 => {
                let region = guest.memory.iter().next().expect("one region");
                let place = region.file_offset().expect("a file");
                let pages = u64::from(script.byte() % 16);
                ftruncate(place.file(), pages << 12).expect("cut");
                guest.cut = true;
            }
            _ => {
                let _ = guest.kick.write(1);
            }
        }
        if let Err(ending) = guest.server.turn() {
            if let ConnectionEnd::Broke(why) | ConnectionEnd::Failed(why) = ending {
                assert!(!why.is_empty());
            }
            break;
        }
    }
    assert_eq!(guest.server.drives[0].in_flight(), 0);
}
