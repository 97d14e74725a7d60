//! One connection of a host: PDUs into commands, completions into PDUs.
//!
//! A connection is one queue: the admin queue or an I/O queue of a controller. Commands come in capsules; data that did
//! not fit into the capsule is asked for by R2T, one for each command, as far as there is room. Whatever breaks the
//! protocol ends the connection with a termination request that says why.
//! Source: NVM Express TCP Transport Specification 1.0.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::controller::Controller;
use super::slots::{Slots, Stage};
use super::target::Target;
use super::wire::encode::Transfer;
use super::wire::pdu::{Data, FLAG_LAST, FLAG_SUCCESS, IcReq};
use super::wire::{Cqe, Decoder, Encoder, Event, Fatal, Fault, Header, Sgl, Sqe, Status};
use crate::clock::Wall;
use crate::outbox::Outbox;
use crate::port::Port;

/// Most bytes of data in a capsule.
pub(super) const IN_CAPSULE: u32 = 8192;
/// Most bytes of data in one PDU from the host.
pub(super) const MOST_H2C: u32 = 128 << 10;
/// Commands before a queue is connected: Connect alone.
const BEFORE_CONNECT: u16 = 1;
/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing but ICReq may come.
    Opening,
    /// Nothing but Connect may come.
    Unconnected,
    /// The admin queue of a controller.
    Admin,
    /// An I/O queue of a controller.
    Io,
}

/// Where the PDU that is coming in goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Incoming {
    Nothing,
    /// A capsule.
    Capsule(u16),
    /// Data of a command.
    Data(u16),
    /// A termination request.
    Term(u16),
}

/// The queue that this connection is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    pub(super) id: u16,
    pub(super) controller: u16,
    /// Which life of the controller it belongs to.
    pub(super) life: u64,
    pub(super) entries: u16,
    pub(super) head: u16,
    /// The host wants to know how far its queue has been taken.
    pub(super) flow_control: bool,
}

/// A connection. See the head of this file.
#[derive(Debug)]
pub struct Connection {
    pub(super) shared: Rc<RefCell<Target>>,
    /// Address and port the host connected to, for the discovery log.
    pub(super) local: (String, u16),
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) phase: Phase,
    incoming: Incoming,
    pub(super) slots: Slots,
    pub(super) queue: Queue,
    /// Commands that wait for room, in order.
    pub(super) waiting: VecDeque<u16>,
    /// The first of two fused commands, whose second must come next.
    pub(super) fused: Option<u16>,
    /// Asynchronous event requests, the oldest first.
    pub(super) events: VecDeque<u16>,
    /// When the host was last heard of.
    pub(super) heard: Wall,
    pub(super) opened: Option<Wall>,
    /// What an admin command answers with.
    pub(super) page: Vec<u8>,
    /// Metadata of the blocks that are being moved.
    pub(super) metadata: Vec<u8>,
    /// Formats that are under way, with the namespaces concerned.
    pub(super) formats: Vec<(u16, Vec<u32>)>,
    /// Namespaces that are to be created when their drive is empty.
    pub(super) creations: Vec<u16>,
    /// Some namespace has metadata.
    pub(super) with_metadata: bool,
    /// Commands since the last tick.
    pub(super) recent: bool,
}

impl Connection {
    /// A connection that has just come in to this address.
    pub fn new(shared: Rc<RefCell<Target>>, local: (String, u16)) -> Connection {
        let mut slots = Slots::default();
        slots.resize(BEFORE_CONNECT);
        Connection {
            shared,
            local,
            decoder: Decoder::new(true, IN_CAPSULE),
            encoder: Encoder::default(),
            phase: Phase::Opening,
            incoming: Incoming::Nothing,
            slots,
            queue: Queue {
                entries: BEFORE_CONNECT,
                ..Queue::default()
            },
            waiting: VecDeque::new(),
            fused: None,
            events: VecDeque::new(),
            heard: Wall::default(),
            opened: None,
            page: Vec::new(),
            metadata: Vec::new(),
            formats: Vec::new(),
            creations: Vec::new(),
            with_metadata: false,
            recent: false,
        }
    }

    /// Looks up what holds for all commands of the queue.
    pub(super) fn refresh(&mut self) {
        let shared = self.shared.borrow();
        self.with_metadata = shared.present().any(|(_, it)| it.metadata > 0);
    }

    pub(super) fn event(
        &mut self,
        event: Event<'_>,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), Fault> {
        match event {
            Event::Header(header, data) => self.header(header, data, out, port),
            Event::Data(data) => {
                match self.incoming {
                    Incoming::Capsule(slot) | Incoming::Data(slot) => {
                        self.slots[slot].data.extend_from_slice(data);
                    }
                    Incoming::Nothing | Incoming::Term(_) => {}
                }
                Ok(())
            }
            Event::End(intact) => match std::mem::replace(&mut self.incoming, Incoming::Nothing) {
                Incoming::Capsule(slot) => self.arrived(slot, intact, out, port),
                Incoming::Data(slot) => self.received(slot, intact, out, port),
                Incoming::Term(fatal) => Err(host_gave_up(fatal)),
                Incoming::Nothing => Ok(()),
            },
        }
    }

    #[inline]
    fn header(
        &mut self,
        header: Header,
        data: u32,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), Fault> {
        match (header, self.phase) {
            (Header::Command(capsule), Phase::Unconnected | Phase::Admin | Phase::Io) => {
                self.capsule(&capsule.sqe, data, port)
            }
            (Header::H2cData(header), Phase::Unconnected | Phase::Admin | Phase::Io) => {
                self.data(&header)
            }
            (Header::IcReq(request), Phase::Opening) => self.open(&request, out),
            (Header::Term(term), _) => {
                self.incoming = Incoming::Term(term.fatal.get());
                Ok(())
            }
            _ => Err(Fault::new(Fatal::Sequence, "a PDU that cannot come now")),
        }
    }

    fn open(&mut self, request: &IcReq, out: &mut Outbox) -> Result<(), Fault> {
        if request.version.get() != 0 {
            return Err(Fault {
                fatal: Fatal::Unsupported,
                detail: 8,
                reason: "a version of the PDU format other than 0",
            });
        }
        if request.alignment > 31 {
            return Err(Fault {
                fatal: Fatal::InvalidHeader,
                detail: 10,
                reason: "an alignment of data beyond 128 bytes",
            });
        }
        let digests = request.digests & 3;
        Encoder::ic_resp(out, 0, digests, MOST_H2C);
        self.encoder = Encoder {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: (u32::from(request.alignment) + 1) * 4,
        };
        self.decoder.rules.header_digest = self.encoder.header_digest;
        self.decoder.rules.data_digest = self.encoder.data_digest;
        self.decoder.rules.most_data = MOST_H2C;
        self.phase = Phase::Unconnected;
        Ok(())
    }

    /// A command capsule whose data (`inside` bytes) is still to come.
    #[inline]
    fn capsule(&mut self, sqe: &Sqe, inside: u32, port: &mut Port<'_>) -> Result<(), Fault> {
        if inside > IN_CAPSULE {
            return Err(Fault::new(
                Fatal::LimitExceeded,
                "more data in a capsule than was agreed",
            ));
        }
        let slot = match self.slots.take(sqe) {
            Ok(slot) => slot,
            Err(true) => {
                // Which of the two an answer is for, nobody could tell.
                return Err(Fault::new(
                    Fatal::InvalidHeader,
                    "a command identifier that is in use",
                ));
            }
            Err(false) => {
                return Err(Fault::new(
                    Fatal::LimitExceeded,
                    "more commands than the queue has entries",
                ));
            }
        };
        let queue = &mut self.queue;
        queue.head = if queue.head + 1 >= queue.entries {
            0
        } else {
            queue.head + 1
        };
        let it = &mut self.slots[slot];
        match expected(sqe, inside) {
            Ok(bytes) => it.expected = bytes,
            Err(status) => it.early = status,
        }
        if inside > 0 {
            it.data.reserve(inside as usize);
            port.receiving(inside.into());
        }
        self.incoming = Incoming::Capsule(slot);
        Ok(())
    }

    /// A capsule is complete, with the data it carries.
    #[inline]
    fn arrived(
        &mut self,
        slot: u16,
        intact: bool,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), Fault> {
        self.recent = true;
        let it = &mut self.slots[slot];
        let inside = it.data.len();
        if inside > 0 {
            port.receiving(-(inside as i64));
            it.data.truncate(it.expected as usize);
            it.damaged = !intact;
        }
        if it.early.is_success() && it.damaged {
            it.early = Status::TRANSIENT_TRANSPORT;
        }
        let early = it.early;
        let checked = if early.is_success() {
            self.prepare(slot, out, port)
        } else {
            self.unfused(slot, out);
            Err(early)
        };
        match checked {
            Err(status) => self.fail(slot, status, out),
            Ok(()) => {
                let it = &self.slots[slot];
                let complete = it.data.len() as u32 >= it.expected;
                self.queue_up(slot, complete, out, port);
            }
        }
        Ok(())
    }

    /// Lets a command go on, at once if nothing waits before it and there is room.
    #[inline]
    fn queue_up(&mut self, slot: u16, complete: bool, out: &mut Outbox, port: &mut Port<'_>) {
        self.slots[slot].stage = if complete {
            Stage::WantsRoom
        } else {
            Stage::WantsData
        };
        // What needs no room does not wait: connecting and administration.
        let at_once = self.phase != Phase::Io && complete;
        if at_once || (self.waiting.is_empty() && port.room()) {
            self.go_on(slot, out, port);
        } else {
            self.waiting.push_back(slot);
        }
    }

    #[inline]
    fn go_on(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        if self.slots[slot].stage == Stage::WantsData {
            self.ask(slot, out, port);
        } else {
            self.execute(slot, out, port);
        }
    }

    fn ask(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let it = &mut self.slots[slot];
        it.stage = Stage::Receiving;
        let transfer = Transfer {
            cid: it.sqe.cid.get(),
            tag: slot,
            offset: 0,
            flags: 0,
        };
        it.data.reserve(it.expected as usize);
        port.receiving(it.expected.into());
        self.encoder.r2t(out, transfer, it.expected);
    }

    /// Data that was asked for begins to come.
    fn data(&mut self, header: &Data) -> Result<(), Fault> {
        let slot = header.tag.get();
        let wanted = self
            .slots
            .get(slot)
            .filter(|slot| slot.stage == Stage::Receiving && slot.sqe.cid == header.cid);
        let Some(it) = wanted else {
            return Err(Fault::new(Fatal::Sequence, "data that was not asked for"));
        };
        let have = it.data.len() as u32;
        let left = it.expected - have;
        let last = header.common.flags & FLAG_LAST != 0;
        if header.offset.get() != have || header.length.get() > left {
            return Err(Fault::new(Fatal::OutOfRange, "data out of range or order"));
        }
        let announced = header.common.bytes.get() - u32::from(header.common.data_offset);
        let digest = if self.encoder.data_digest { 4 } else { 0 };
        if announced.checked_sub(digest) != Some(header.length.get()) {
            return Err(Fault::new(
                Fatal::InvalidHeader,
                "the length of data is not that of its PDU",
            ));
        }
        if last != (header.length.get() == left) {
            return Err(Fault::new(
                Fatal::InvalidHeader,
                "the last piece of data is not marked so, or another is",
            ));
        }
        self.incoming = Incoming::Data(slot);
        Ok(())
    }

    /// A data PDU is complete.
    fn received(
        &mut self,
        slot: u16,
        intact: bool,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), Fault> {
        let it = &mut self.slots[slot];
        it.damaged |= !intact;
        if (it.data.len() as u32) < it.expected {
            return Ok(());
        }
        port.receiving(-i64::from(it.expected));
        if it.damaged {
            self.unfused(slot, out);
            self.fail(slot, Status::TRANSIENT_TRANSPORT, out);
        } else {
            self.queue_up(slot, true, out, port);
        }
        Ok(())
    }

    /// Lets waiting commands go on as far as there is room.
    pub(super) fn pump(&mut self, out: &mut Outbox, port: &mut Port<'_>) {
        while port.room()
            && let Some(slot) = self.waiting.pop_front()
        {
            self.go_on(slot, out, port);
        }
    }

    /// Ends a command.
    #[inline]
    pub(super) fn respond(&mut self, slot: u16, status: Status, dw0: u32, out: &mut Outbox) {
        self.respond_wide(slot, status, u64::from(dw0), out);
    }

    /// Ends a command with dwords 0 and 1.
    #[inline]
    pub(super) fn respond_wide(
        &mut self,
        slot: u16,
        status: Status,
        dwords: u64,
        out: &mut Outbox,
    ) {
        let cqe = Cqe {
            dw0: (dwords as u32).into(),
            dw1: ((dwords >> 32) as u32).into(),
            sq_head: if self.queue.flow_control {
                self.queue.head
            } else {
                u16::MAX
            }
            .into(),
            sq_id: 0.into(),
            cid: self.slots[slot].sqe.cid,
            status: (status.field() << 1).into(),
        };
        self.encoder.response(out, &cqe);
        self.slots.release(slot);
    }

    /// Ends a command that failed, and notes it in the error log.
    pub(super) fn fail(&mut self, slot: u16, status: Status, out: &mut Outbox) {
        self.fail_with(slot, status, 0, out);
    }

    /// The same, with dword 0.
    pub(super) fn fail_with(&mut self, slot: u16, status: Status, dw0: u32, out: &mut Outbox) {
        if !status.is_success() && self.phase != Phase::Unconnected {
            let sqe = self.slots[slot].sqe;
            // The identifier may be a later controller's by now.
            let gone = |it: &Controller| self.phase == Phase::Io && it.life != self.queue.life;
            if let Some(controller) = self.shared.borrow_mut().controller(self.queue.controller)
                && !gone(controller)
            {
                let (nsid, lba) = (sqe.nsid.get(), sqe.slba());
                let lba = if self.phase == Phase::Io { lba } else { 0 };
                controller.failed(self.queue.id, sqe.cid.get(), status, nsid, lba);
            }
        }
        self.respond(slot, status, dw0, out);
    }

    /// Ends a command with data of `length` bytes, which `fill` writes where they are sent from.
    #[inline]
    pub(super) fn respond_data(
        &mut self,
        slot: u16,
        length: u32,
        out: &mut Outbox,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Status>,
    ) {
        if length == 0 {
            self.respond(slot, Status::SUCCESS, 0, out);
            return;
        }
        let short = !self.queue.flow_control;
        let transfer = Transfer {
            cid: self.slots[slot].sqe.cid.get(),
            tag: 0,
            offset: 0,
            flags: if short {
                FLAG_LAST | FLAG_SUCCESS
            } else {
                FLAG_LAST
            },
        };
        match self.encoder.c2h_data(out, transfer, length, fill) {
            Ok(()) if short => self.slots.release(slot),
            Ok(()) => self.respond(slot, Status::SUCCESS, 0, out),
            Err(status) => self.fail(slot, status, out),
        }
    }
}

/// Bytes that the host sends with this command, of which `inside` are in its capsule.
#[inline]
fn expected(sqe: &Sqe, inside: u32) -> Result<u32, Status> {
    let direction = if sqe.opcode == super::FABRICS {
        sqe.nsid.get() as u8 & 3
    } else {
        sqe.opcode & 3
    };
    let sgl = &sqe.sgl;
    let length = sgl.length.get();
    if sqe.flags >> 6 != 1 {
        return Err(Status::INVALID_FIELD);
    }
    match (direction, sgl.kind) {
        (1, Sgl::IN_CAPSULE) if sgl.address.get() != 0 => Err(Status::SGL_OFFSET_INVALID),
        (1, Sgl::IN_CAPSULE) if length > inside => Err(Status::DATA_SGL_LENGTH_INVALID),
        (1, Sgl::IN_CAPSULE) => Ok(length),
        (1, Sgl::TRANSPORT) if inside == 0 => Ok(length),
        (2, Sgl::TRANSPORT) if inside == 0 => Ok(0),
        (0, _) if inside == 0 => Ok(0),
        // No data: whatever the descriptor says it is.
        (1 | 2, _) if length == 0 => Ok(0),
        (0, _) => Err(Status::INVALID_FIELD),
        (1 | 2, _) => Err(Status::SGL_TYPE_INVALID),
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn host_gave_up(fatal: u16) -> Fault {
    let reason = match fatal {
        1 => "the host ended the connection: invalid field in a header",
        2 => "the host ended the connection: PDU out of sequence",
        3 => "the host ended the connection: header digest",
        4 => "the host ended the connection: data out of range",
        5 => "the host ended the connection: limit exceeded",
        6 => "the host ended the connection: unsupported parameter",
        _ => "the host ended the connection",
    };
    Fault::new(Fatal::Sequence, reason)
}
