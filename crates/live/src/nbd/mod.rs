//! NBD: a network block device, as used by qemu, nbdkit's tools, libnbd, fio and Linux's own client.
//!
//! Fixed newstyle with structured replies, several connections to one export, block status and block size limits. Each
//! drive is an export with the drive's name. A malformed request ends its connection. A well-formed request that
//! cannot be executed (beyond the end, unaligned) gets an error. Source: the NBD project's `doc/proto.md`. Not
//! supported: extended headers, resize, cache commands.

mod handshake;
mod service;
pub mod tls;
pub mod wire;

use model::Op;
pub use service::{PROTOCOL, unix_uri};
use slab::Slab;

use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Endpoint, Front, Notice, Port, Socket};
use crate::served::{IoRequest, Outcome, Reply};
use crate::stream::{Connection, Stream};
use handshake::{Handshake, HandshakeProgress};
use tls::{Credentials, TlsConnection};
use wire::{chunk, command, error, flag};

/// Maximum payload of a command in bytes.
const LARGEST: u32 = 32 << 20;

/// The only metadata context.
const CONTEXT: &[u8] = b"base:allocation";
const CONTEXT_ID: u32 = 1;

/// Maximum number of extents in one answer on allocation.
const MOST_EXTENTS: usize = 1024;

/// Maximum size and number of payload buffers that are kept for reuse.
const KEEP_BYTES: usize = 64 << 10;
const KEEP: usize = 32;

/// Seconds that a client may take to negotiate.
const PATIENCE_S: u64 = 30;

/// Front end that gives exports to clients.
#[derive(Debug)]
pub struct Nbd {
    names: Vec<String>,
    tls: Option<Credentials>,
}

impl Nbd {
    /// Returns a front end with exports by name, one for each drive in order.
    pub fn new(names: Vec<String>) -> Nbd {
        Nbd { names, tls: None }
    }

    /// Returns a front end that accepts only clients with TLS.
    pub fn encrypted(names: Vec<String>, credentials: Credentials) -> Nbd {
        Nbd {
            names,
            tls: Some(credentials),
        }
    }
}

impl Front for Nbd {
    fn name(&self) -> &'static str {
        "NBD"
    }

    fn accept(&mut self, socket: Socket, _peer: &str) -> Result<Box<dyn Endpoint>, String> {
        let names = self.names.clone();
        Ok(match &self.tls {
            None => Box::new(Stream::new(socket, NbdConnection::new(names))),
            Some(credentials) => {
                Box::new(Stream::new(socket, TlsConnection::new(names, credentials)))
            }
        })
    }
}

/// Result of the negotiation with a client.
#[derive(Clone, Copy, Debug)]
struct NegotiatedOptions {
    export: usize,
    /// Block size in bytes that was reported to the client.
    block: u32,
    structured: bool,
    contexts: bool,
}

/// A command in flight.
#[derive(Debug, Default)]
struct Pending {
    cookie: u64,
    /// Data of a write.
    payload: Vec<u8>,
}

/// A write whose data is being received.
#[derive(Debug)]
struct IncomingWrite {
    request: wire::NbdRequest,
    payload: Vec<u8>,
    filled: usize,
    /// Error to return when all of it has been received; 0 for none.
    error: u32,
}

#[derive(Debug)]
enum NbdPhase {
    Handshake(Handshake),
    Commands(NegotiatedOptions),
}

/// A connection of one client.
#[derive(Debug)]
pub struct NbdConnection {
    names: Vec<String>,
    phase: NbdPhase,
    pending: Slab<Pending>,
    spare: Vec<Vec<u8>>,
    incoming: Option<IncomingWrite>,
    /// Whether the client has announced its disconnection; outstanding replies are still sent.
    leaving: bool,
    /// Whether the client has begun TLS: this connection must not read the following bytes.
    begins_tls: bool,
    opened_ns: u64,
}

impl NbdConnection {
    /// Returns a connection with these exports, one for each drive in order.
    pub fn new(names: Vec<String>) -> NbdConnection {
        NbdConnection {
            names,
            phase: NbdPhase::Handshake(Handshake::default()),
            pending: Slab::new(),
            spare: Vec::new(),
            incoming: None,
            leaving: false,
            begins_tls: false,
            opened_ns: 0,
        }
    }

    /// Returns a connection that reveals nothing before the client has begun TLS.
    fn awaiting_tls(names: Vec<String>) -> NbdConnection {
        NbdConnection {
            phase: NbdPhase::Handshake(Handshake::awaiting_tls()),
            ..NbdConnection::new(names)
        }
    }

    /// Processes requests in sequence.
    fn commands(
        &mut self,
        bytes: &[u8],
        agreed: NegotiatedOptions,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        let mut used = 0;
        loop {
            if self.incoming.is_some() {
                used += self.receive(&bytes[used..], agreed, out, port);
                if self.incoming.is_some() {
                    return Ok(used);
                }
            }
            let rest = &bytes[used..];
            if rest.len() < wire::NbdRequest::BYTES || self.leaving {
                return Ok(used);
            }
            let request = wire::NbdRequest::parse(rest)
                .ok_or_else(|| ConnectionEnd::broke("a request without its magic"))?;
            let payload = match request.command {
                command::READ | command::WRITE => request.length.min(LARGEST),
                _ => 0,
            };
            if !port.room_for(payload.into()) {
                return Ok(used);
            }
            used += wire::NbdRequest::BYTES;
            self.command(request, agreed, out, port)?;
            if self.leaving && self.pending.is_empty() {
                return Err(ConnectionEnd::Left);
            }
        }
    }

    fn command(
        &mut self,
        request: wire::NbdRequest,
        agreed: NegotiatedOptions,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        let drive = port.drive(agreed.export);
        if drive.block() != agreed.block {
            return Err(ConnectionEnd::Failed(
                "the drive's format has changed".into(),
            ));
        }
        let wrong = request_error(&request, drive.bytes(), drive.block(), agreed);
        match request.command {
            command::WRITE if request.length > LARGEST => {
                // Its data would have to be read and discarded, although the client was told the limit.
                return Err(ConnectionEnd::broke(format!(
                    "a write of {} bytes",
                    request.length
                )));
            }
            command::WRITE => {
                port.receiving(i64::from(request.length));
                let payload = self.buffer(request.length as usize);
                self.incoming = Some(IncomingWrite {
                    request,
                    payload,
                    filled: 0,
                    error: wrong.unwrap_or(error::OK),
                });
            }
            command::DISC => self.leaving = true,
            _ => match (wrong, request.command) {
                (Some(error), _) => fail(request.cookie, error, agreed, out),
                (None, command::READ) => self.submit(&request, Op::Read, Vec::new(), agreed, port),
                (None, command::FLUSH) => {
                    self.submit(&request, Op::Flush, Vec::new(), agreed, port);
                }
                (None, command::TRIM) => {
                    self.submit(&request, Op::Deallocate, Vec::new(), agreed, port);
                }
                (None, command::WRITE_ZEROES) => {
                    self.submit(&request, Op::WriteZeroes, Vec::new(), agreed, port);
                }
                (None, _) => block_status(&request, agreed, out, port),
            },
        }
        Ok(())
    }

    /// Receives data of a write, and submits the write when it is complete.
    fn receive(
        &mut self,
        bytes: &[u8],
        agreed: NegotiatedOptions,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> usize {
        let Some(incoming) = &mut self.incoming else {
            return 0;
        };
        let room = &mut incoming.payload[incoming.filled..];
        let taken = room.len().min(bytes.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        incoming.filled += taken;
        if incoming.filled < incoming.payload.len() {
            return taken;
        }
        if let Some(incoming) = self.incoming.take() {
            port.receiving(-i64::from(incoming.request.length));
            if incoming.error == error::OK {
                self.submit(&incoming.request, Op::Write, incoming.payload, agreed, port);
            } else {
                fail(incoming.request.cookie, incoming.error, agreed, out);
                self.recycle_buffer(incoming.payload);
            }
        }
        taken
    }

    fn submit(
        &mut self,
        request: &wire::NbdRequest,
        op: Op,
        payload: Vec<u8>,
        agreed: NegotiatedOptions,
        port: &mut Port<'_>,
    ) {
        let place = self.pending.vacant_entry();
        let tag = place.key() as u32;
        let pending = place.insert(Pending {
            cookie: request.cookie,
            payload,
        });
        let (offset, bytes) = match op {
            Op::Flush => (0, 0),
            _ => (request.offset, request.length),
        };
        let request = IoRequest {
            tag,
            op,
            fua: request.flags & flag::FUA != 0,
            queue: 0,
            offset,
            bytes,
        };
        port.submit_with(agreed.export, request, &mut |data| {
            data.copy_from_slice(&pending.payload);
            true
        });
    }

    /// Returns a buffer of this length, with undefined content.
    fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = match self.spare.pop() {
            Some(buffer) if bytes <= KEEP_BYTES => buffer,
            other => {
                self.spare.extend(other);
                Vec::new()
            }
        };
        buffer.resize(bytes, 0);
        buffer
    }

    fn recycle_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= KEEP_BYTES && self.spare.len() < KEEP {
            self.spare.push(buffer);
        }
    }
}

/// Returns the error of a well-formed request that cannot be executed.
fn request_error(
    request: &wire::NbdRequest,
    size: u64,
    block: u32,
    agreed: NegotiatedOptions,
) -> Option<u32> {
    let known = match request.command {
        command::READ if agreed.structured => flag::DF | flag::FUA,
        command::READ | command::WRITE | command::TRIM | command::FLUSH => flag::FUA,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE,
        command::BLOCK_STATUS if agreed.contexts => flag::FUA | flag::REQ_ONE,
        _ => return Some(error::EINVAL),
    };
    if request.flags & !known != 0 {
        return Some(error::EINVAL);
    }
    if request.command == command::FLUSH {
        return None;
    }
    let block = u64::from(block);
    let length = u64::from(request.length);
    if length == 0 || length % block != 0 || request.offset % block != 0 {
        return Some(error::EINVAL);
    }
    match request.offset.checked_add(length) {
        Some(end) if end <= size => {}
        _ if request.command == command::WRITE || request.command == command::WRITE_ZEROES => {
            return Some(error::ENOSPC);
        }
        _ => return Some(error::EINVAL),
    }
    (request.command == command::READ && request.length > LARGEST).then_some(error::EOVERFLOW)
}

/// Sends an answer without data.
fn answer(cookie: u64, agreed: NegotiatedOptions, out: &mut Outbox) {
    if agreed.structured {
        out.push(&wire::last_chunk(cookie, chunk::NONE, 0));
    } else {
        out.push(&wire::simple_reply(cookie, error::OK));
    }
}

fn fail(cookie: u64, error: u32, agreed: NegotiatedOptions, out: &mut Outbox) {
    if agreed.structured {
        out.push(&wire::last_chunk(cookie, chunk::ERROR, 6));
        out.push(&error.to_be_bytes());
        out.push(&0u16.to_be_bytes());
    } else {
        out.push(&wire::simple_reply(cookie, error));
    }
}

/// Returns the parts of the range that hold data. The store is queried at once; drives have no such command.
fn block_status(
    request: &wire::NbdRequest,
    agreed: NegotiatedOptions,
    out: &mut Outbox,
    port: &mut Port<'_>,
) {
    const HOLE_OF_ZEROES: u32 = 3;
    let drive = port.drive(agreed.export);
    let end = request.offset + u64::from(request.length);
    let most = match request.flags & flag::REQ_ONE {
        0 => MOST_EXTENTS,
        _ => 1,
    };
    let mut extents: Vec<(u32, u32)> = Vec::new();
    let mut at = request.offset;
    while at < end {
        let (stop, data) = drive.extent(at, end);
        let (length, state) = ((stop - at) as u32, if data { 0 } else { HOLE_OF_ZEROES });
        let count = extents.len();
        match extents.last_mut() {
            Some((before, same)) if *same == state => *before += length,
            _ if count == most => break,
            _ => extents.push((length, state)),
        }
        at = stop;
    }
    let length = 4 + 8 * extents.len() as u32;
    out.push(&wire::last_chunk(
        request.cookie,
        chunk::BLOCK_STATUS,
        length,
    ));
    out.push(&CONTEXT_ID.to_be_bytes());
    for (length, state) in extents {
        out.push(&length.to_be_bytes());
        out.push(&state.to_be_bytes());
    }
}

/// Sends the data of a read directly from the store. Ranges that were never written are only reported as holes.
fn data(
    cookie: u64,
    reply: &Reply,
    agreed: NegotiatedOptions,
    out: &mut Outbox,
    port: &mut Port<'_>,
) {
    let drive = port.drive(agreed.export);
    if agreed.structured && drive.is_hole(reply.offset, reply.bytes.into()) {
        out.push(&wire::last_chunk(cookie, chunk::OFFSET_HOLE, 12));
        out.push(&reply.offset.to_be_bytes());
        out.push(&reply.bytes.to_be_bytes());
        return;
    }
    let head = if agreed.structured {
        out.push(&wire::last_chunk(
            cookie,
            chunk::OFFSET_DATA,
            reply.bytes + 8,
        ));
        out.push(&reply.offset.to_be_bytes());
        wire::CHUNK + 8
    } else {
        out.push(&wire::simple_reply(cookie, error::OK));
        wire::SIMPLE_REPLY
    };
    let bytes = reply.bytes as usize;
    let drive = port.drive(agreed.export);
    if drive.read(reply.offset, out.grow(bytes)).is_err() {
        out.shrink(head + bytes);
        fail(cookie, error::EIO, agreed, out);
    }
}

impl Connection for NbdConnection {
    fn open(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.opened_ns = port.wall().ns();
        Handshake::greet(out);
        Ok(())
    }

    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        let mut used = 0;
        if let NbdPhase::Handshake(handshake) = &mut self.phase {
            let (taken, progress) = handshake.input(bytes, &self.names, out, port)?;
            used = taken;
            match progress {
                HandshakeProgress::Commands(agreed) => self.phase = NbdPhase::Commands(agreed),
                HandshakeProgress::More => return Ok(used),
                HandshakeProgress::Tls => {
                    self.begins_tls = true;
                    return Ok(used);
                }
            }
        }
        if let NbdPhase::Commands(agreed) = self.phase {
            used += self.commands(&bytes[used..], agreed, out, port)?;
        }
        Ok(used)
    }

    fn reply(
        &mut self,
        reply: &Reply,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        let NbdPhase::Commands(agreed) = self.phase else {
            return Ok(());
        };
        let pending = self.pending.remove(reply.tag as usize);
        if reply.outcome == Outcome::PowerLoss {
            return Err(ConnectionEnd::Failed("the drive lost its power".into()));
        }
        let outcome = match (reply.outcome, reply.op) {
            (Outcome::Success, Op::Write) => {
                let drive = port.drive(agreed.export);
                match drive.write(reply.offset, &pending.payload, reply.fua) {
                    Ok(()) => Outcome::Success,
                    Err(outcome) => outcome,
                }
            }
            (outcome, _) => outcome,
        };
        match outcome {
            Outcome::Success if reply.op == Op::Read => {
                data(pending.cookie, reply, agreed, out, port);
            }
            Outcome::Success => answer(pending.cookie, agreed, out),
            Outcome::OutOfRange => fail(pending.cookie, error::EINVAL, agreed, out),
            Outcome::Busy => fail(pending.cookie, error::ENOMEM, agreed, out),
            Outcome::NoSpace => fail(pending.cookie, error::ENOSPC, agreed, out),
            Outcome::ReadOnly => fail(pending.cookie, error::EPERM, agreed, out),
            _ => fail(pending.cookie, error::EIO, agreed, out),
        }
        self.recycle_buffer(pending.payload);
        if self.leaving && self.pending.is_empty() {
            return Err(ConnectionEnd::Left);
        }
        Ok(())
    }

    fn notice(
        &mut self,
        _drive: usize,
        notice: Notice,
        _out: &mut Outbox,
        _port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        match notice {
            // Size or block size may have changed: the client must negotiate again.
            Notice::Namespace => Err(ConnectionEnd::Failed(
                "the drive's format has changed".into(),
            )),
            Notice::PowerCut => Err(ConnectionEnd::Failed("the drive lost its power".into())),
            Notice::Health => Ok(()),
        }
    }

    fn tick(&mut self, _out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let waited = port.wall().ns() - self.opened_ns;
        if matches!(self.phase, NbdPhase::Handshake(_)) && waited > PATIENCE_S * 1_000_000_000 {
            return Err(ConnectionEnd::broke("has not negotiated in time"));
        }
        Ok(())
    }
}
