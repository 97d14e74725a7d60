//! vhost-user-blk: a drive as the disk of a guest that shares its memory with the server.
//!
//! It follows the vhost-user protocol (QEMU's docs/interop/vhost-user.rst) and virtio 1.2. The crate `vhost` parses
//! messages, `virtio-queue` handles rings, and `vm-memory` guest memory. Everything runs in the event loop. The socket
//! carries only the set-up. Requests arrive through rings in shared memory, which are polled while the loop spins and
//! announced by a kick while it sleeps.
//!
//! Requests in flight are recorded in memory that the frontend keeps ("in-flight I/O tracking"). After a broken
//! connection, or a crash of the server, the next connection repeats requests that had been taken and not completed.
//!
//! Not supported: migration (dirty page log), packed rings, rings without kick descriptors, memory slots added one by
//! one. Data read from shared memory is valid only after [`VirtioDevice::check`]: a guest may truncate its file at any time.

mod blk;
mod chain;
mod device;
mod guard;
mod inflight;
mod ring;
mod service;
mod table;

pub use service::PROTOCOL;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Op, Span};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use slab::Slab;
use vhost::vhost_user::message::FrontendReq;
use vhost::vhost_user::{BackendReqHandler, Error};

use crate::clock::Wall;
use crate::port::{ConnectionEnd, Endpoint, Front, Interest, Notice, Port, Ready, Socket};
use crate::served::{IoRequest, Outcome, Reply};
use blk::{BlockShape, End, ParsedRequest, Piece};
use chain::{Chain, RingViolation};
use device::VirtioDevice;

/// Keys of watched descriptors.
const SOCKET: u32 = 0;
const KICKS: u32 = 1;

/// Bytes before the body of a message.
const HEADER: usize = 12;
/// Maximum length of a message.
const LONGEST: usize = 4096;
/// Time in which the rest of a message must arrive.
const PATIENCE: Span = Span::from_ms(1_000);

/// Offers one drive to guests by vhost-user-blk.
#[derive(Clone, Copy, Debug)]
pub struct VhostUser {
    drive: usize,
}

impl VhostUser {
    /// Returns a front end for the drive with this index.
    pub fn new(drive: usize) -> VhostUser {
        VhostUser { drive }
    }
}

impl Front for VhostUser {
    fn name(&self) -> &'static str {
        "vhost-user-blk"
    }

    fn accept(&mut self, socket: Socket, _peer: &str) -> Result<Box<dyn Endpoint>, String> {
        let say = |error: std::io::Error| error.to_string();
        let stream = UnixStream::from(socket.try_clone().map_err(say)?);
        let device = VirtioDevice::new().map_err(say)?;
        let device = Arc::new(Mutex::new(device));
        Ok(Box::new(GuestConnection {
            drive: self.drive,
            socket,
            messages: BackendReqHandler::from_stream(stream, Arc::clone(&device)),
            device,
            slots: Slab::new(),
            spare: Vec::new(),
            data: Vec::new(),
            incomplete: None,
            waits: false,
        }))
    }
}

/// A request that has been taken.
#[derive(Debug, Default)]
struct VirtioRequest {
    ring: u16,
    head: u16,
    chain: Chain,
    /// Number of the drive's commands that have not completed.
    left: u32,
    end: Option<End>,
}

/// One connection: a guest with the drive as its disk.
struct GuestConnection {
    drive: usize,
    socket: Socket,
    messages: BackendReqHandler<Mutex<VirtioDevice>>,
    /// Shared with `messages`, in the same thread.
    device: Arc<Mutex<VirtioDevice>>,
    slots: Slab<VirtioRequest>,
    /// Completed requests, kept to reuse their memory.
    spare: Vec<VirtioRequest>,
    /// Buffer for data between the guest and the store.
    data: Vec<u8>,
    /// Time since which a message is incomplete.
    incomplete: Option<Wall>,
    /// Whether a message waits until a ring has nothing in flight.
    waits: bool,
}

impl From<RingViolation> for ConnectionEnd {
    fn from(broken: RingViolation) -> ConnectionEnd {
        ConnectionEnd::broke(broken.0)
    }
}

fn lost_power() -> ConnectionEnd {
    ConnectionEnd::Failed("the drive lost its power".into())
}

fn lock(device: &Mutex<VirtioDevice>) -> MutexGuard<'_, VirtioDevice> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Next action for a message.
enum MessageAction {
    /// Take the message, which is complete.
    Take,
    /// Take the message, which is complete: a memory table of this length with additional bytes after it.
    Padded(usize),
    /// Wait: the message is incomplete, or there is none.
    Later,
    /// Wait: the message stops a ring that has requests in flight.
    Wait,
}

impl GuestConnection {
    fn messages(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        loop {
            match self.next_message(port)? {
                MessageAction::Take => {
                    self.messages
                        .handle_request()
                        .map_err(|error| match error {
                            Error::Disconnected => ConnectionEnd::Left,
                            Error::SocketBroken(error) | Error::SocketError(error) => {
                                ConnectionEnd::Failed(error.to_string())
                            }
                            error => ConnectionEnd::broke(error.to_string()),
                        })?;
                }
                MessageAction::Padded(length) => {
                    table::take(&self.socket, length, &mut lock(&self.device))?;
                }
                MessageAction::Later => return Ok(()),
                MessageAction::Wait => {
                    self.waits = true;
                    let quiet = Interest {
                        read: false,
                        write: false,
                    };
                    return port.rewatch(&self.socket, SOCKET, quiet);
                }
            }
            self.look(port)?;
        }
    }

    /// Inspects the next message without taking it, because the crate that takes it would block until it is complete.
    fn next_message(&mut self, port: &Port<'_>) -> Result<MessageAction, ConnectionEnd> {
        let mut bytes = [0; LONGEST];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let there = match recv(&self.socket, &mut bytes[..], flags) {
            Ok((0, _)) => return Err(ConnectionEnd::Left),
            Ok((there, _)) => there,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(MessageAction::Later),
            Err(error) => return Err(error.into()),
        };
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let needs = if there < HEADER {
            HEADER
        } else {
            HEADER.saturating_add(word(8) as usize)
        };
        if needs > LONGEST {
            return Err(ConnectionEnd::broke("a message longer than 4 KiB"));
        }
        if there < needs {
            let since = *self.incomplete.get_or_insert(port.wall());
            if port.wall().since(since) > PATIENCE {
                return Err(ConnectionEnd::broke("half a message"));
            }
            return Ok(MessageAction::Later);
        }
        self.incomplete = None;
        if word(0) == FrontendReq::GET_VRING_BASE as u32 && needs >= HEADER + 4 {
            let mut device = lock(&self.device);
            let ring = device.rings.get_mut(word(HEADER) as usize);
            if let Some(ring) = ring.filter(|ring| ring.in_flight > 0) {
                ring.stop();
                return Ok(MessageAction::Wait);
            }
        }
        if table::is_padded(&bytes[..needs]) {
            return Ok(MessageAction::Padded(needs));
        }
        Ok(MessageAction::Take)
    }

    /// Takes requests from rings that have just been set up.
    fn look(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let device = Arc::clone(&self.device);
        let mut device = lock(&device);
        for index in 0..device.rings.len() {
            if device.rings[index].look {
                self.take(&mut device, index, port)?;
            }
        }
        Ok(())
    }

    /// Takes the requests in a ring. Returns whether there were any.
    fn take(
        &mut self,
        device: &mut VirtioDevice,
        index: usize,
        port: &mut Port<'_>,
    ) -> Result<bool, ConnectionEnd> {
        let mut found = false;
        let Some(ring) = device.rings.get_mut(index).filter(|ring| ring.runs()) else {
            return Ok(false);
        };
        ring.look = false;
        while port.room() {
            let next = device.rings[index].next(&device.memory);
            // If memory was lost, the error is reported as that.
            device.check()?;
            let Some(head) = next? else {
                return Ok(found);
            };
            found = true;
            let begun = self.begin(device, index, head, port);
            device.check()?;
            begun?;
        }
        device.rings[index].look = true;
        Ok(found)
    }

    fn begin(
        &mut self,
        device: &mut VirtioDevice,
        index: usize,
        head: u16,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        let tag = self.slots.insert(self.spare.pop().unwrap_or_default()) as u32;
        let slot = &mut self.slots[tag as usize];
        let ring = &mut device.rings[index];
        let (table, size) = ring.table();
        slot.chain.walk(&device.memory, table, size, head)?;
        (slot.ring, slot.head, slot.left, slot.end) = (ring.index, head, 0, None);
        if let Some(in_flight) = &mut device.in_flight {
            let noted = in_flight.mark_in_flight(ring.index, head);
            noted.map_err(|error| ConnectionEnd::Failed(error.to_string()))?;
        }
        ring.in_flight += 1;
        let durable = !BlockShape::flushes(device.features);
        let mut submit = |slot: &mut VirtioRequest, piece: Piece| {
            slot.left += 1;
            let request = IoRequest {
                tag,
                op: piece.op,
                fua: durable && piece.op == Op::Write,
                queue: index as u16,
                offset: piece.offset,
                bytes: piece.bytes,
            };
            let data_out = &slot.chain.readable;
            port.submit_with(self.drive, request, &mut |data| {
                data_out.read(&device.memory, blk::DATA_OUT, data).is_ok() && device.check().is_ok()
            });
        };
        let asked = blk::parse(&device.memory, &slot.chain, device.shape())?;
        device.check()?;
        match asked {
            ParsedRequest::One(piece) => submit(slot, piece),
            ParsedRequest::Ended(end) => slot.end = Some(end),
            ParsedRequest::Ranges(op, ranges) => {
                for range in 0..ranges {
                    let piece = blk::range(&device.memory, &slot.chain, op, range);
                    device.check()?;
                    match piece {
                        Ok(piece) => submit(slot, piece),
                        Err(end) => slot.end = slot.end.max(Some(end)),
                    }
                }
            }
        }
        if slot.left == 0 {
            self.end(device, tag, 0)?;
        }
        Ok(())
    }

    /// Transfers the data of a successful command. Returns whether that succeeded.
    fn carry_out(&mut self, device: &VirtioDevice, reply: &Reply, port: &mut Port<'_>) -> bool {
        let chain = &self.slots[reply.tag as usize].chain;
        let bytes = reply.bytes as usize;
        if self.data.len() < bytes {
            self.data.resize(bytes, 0);
        }
        let data = &mut self.data[..bytes];
        let drive = port.drive(self.drive);
        let memory = &device.memory;
        match reply.op {
            Op::Read => {
                drive.read(reply.offset, data).is_ok()
                    && chain.writable.write(memory, 0, data).is_ok()
            }
            Op::Write => {
                chain.readable.read(memory, blk::DATA_OUT, data).is_ok()
                    && device.check().is_ok()
                    && drive.write(reply.offset, data, reply.fua).is_ok()
            }
            Op::Flush | Op::Deallocate | Op::WriteZeroes => true,
        }
    }

    /// Completes a request without commands in flight; `bytes` were written for the guest, without the status.
    fn end(
        &mut self,
        device: &mut VirtioDevice,
        tag: u32,
        bytes: u32,
    ) -> Result<(), ConnectionEnd> {
        let slot = &self.slots[tag as usize];
        let end = slot.end.unwrap_or(End::Ok);
        let chain = &slot.chain;
        let at = chain.writable.bytes() - 1;
        chain.writable.write(&device.memory, at, &[end as u8])?;
        let VirtioDevice {
            memory,
            rings,
            in_flight,
            ..
        } = device;
        rings[usize::from(slot.ring)].end(memory, in_flight.as_ref(), slot.head, bytes + 1)?;
        self.spare.push(self.slots.remove(tag as usize));
        Ok(())
    }
}

impl Endpoint for GuestConnection {
    fn open(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let shape = BlockShape::new(port.drive(self.drive));
        lock(&self.device).take_shape(shape);
        port.watch(&self.socket, SOCKET, Interest::READ)?;
        port.watch(lock(&self.device).kicks.as_fd(), KICKS, Interest::READ)
    }

    fn ready(&mut self, ready: Ready, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        if ready.key == SOCKET {
            if ready.hangup && self.waits {
                return Err(ConnectionEnd::Left);
            }
            return if self.waits {
                Ok(())
            } else {
                self.messages(port)
            };
        }
        let device = Arc::clone(&self.device);
        let mut device = lock(&device);
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
        let now = Timespec::default();
        let (events, _) = epoll::wait(&device.kicks, &mut events, Some(&now))?;
        for event in events {
            self.take(&mut device, event.data.u64() as usize, port)?;
        }
        Ok(())
    }

    fn reply(&mut self, reply: &Reply, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let device = Arc::clone(&self.device);
        let mut device = lock(&device);
        if reply.outcome == Outcome::PowerLoss {
            // The request stays in flight, and the next connection repeats it.
            return Err(lost_power());
        }
        let carried_out = reply.outcome == Outcome::Success && self.carry_out(&device, reply, port);
        let slot = &mut self.slots[reply.tag as usize];
        slot.left -= 1;
        if !carried_out {
            slot.end = slot.end.max(Some(End::Failed));
        }
        if slot.left > 0 {
            return Ok(());
        }
        let read = reply.op == Op::Read && carried_out;
        self.end(&mut device, reply.tag, if read { reply.bytes } else { 0 })
    }

    fn flush(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.look(port)?;
        {
            let mut device = lock(&self.device);
            let VirtioDevice { memory, rings, .. } = &mut *device;
            for ring in rings {
                ring.signal(memory)?;
            }
            device.check()?;
        }
        if self.waits {
            self.waits = false;
            port.rewatch(&self.socket, SOCKET, Interest::READ)?;
            self.messages(port)?;
        }
        Ok(())
    }

    fn polls(&self) -> bool {
        true
    }

    fn poll(&mut self, port: &mut Port<'_>) -> Result<bool, ConnectionEnd> {
        let device = Arc::clone(&self.device);
        let mut device = lock(&device);
        let mut found = false;
        for index in 0..device.rings.len() {
            found |= self.take(&mut device, index, port)?;
        }
        device.check()?;
        Ok(found)
    }

    fn park(&mut self, port: &mut Port<'_>) -> Result<bool, ConnectionEnd> {
        let device = Arc::clone(&self.device);
        let mut device = lock(&device);
        let mut found = false;
        for index in 0..device.rings.len() {
            let VirtioDevice { memory, rings, .. } = &mut *device;
            if rings[index].runs() && rings[index].ask(memory)? {
                found |= self.take(&mut device, index, port)?;
            }
        }
        Ok(found)
    }

    fn notice(
        &mut self,
        drive: usize,
        notice: Notice,
        _port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        match notice {
            _ if drive != self.drive => Ok(()),
            Notice::PowerCut => Err(lost_power()),
            // The guest must read size and block size again.
            Notice::Namespace => Err(ConnectionEnd::Failed(
                "the drive's format has changed".into(),
            )),
            Notice::Health => Ok(()),
        }
    }

    fn tick(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        match self.incomplete {
            Some(since) if port.wall().since(since) > PATIENCE => {
                Err(ConnectionEnd::broke("half a message"))
            }
            _ => Ok(()),
        }
    }
}
