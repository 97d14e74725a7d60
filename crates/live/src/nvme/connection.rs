//! One connection of a host: converts PDUs into commands, and completions into PDUs.
//!
//! A connection is one queue: the admin queue or an I/O queue of a controller. Commands arrive in capsules. Data that
//! did not fit into the capsule is requested by R2T, one for each command, if there is space. A protocol violation
//! ends the connection with a termination request that states the reason. Source: NVM Express TCP Transport
//! Specification 1.0.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::IN_CAPSULE;
use super::admin;
use super::answer::{AdminOutcome, StatusFailure};
use super::fabrics;
use super::io::Io;
use super::parked::DeferredCommands;
use super::queue::{QueuePair, QueuePhase};
use super::slots::{CommandStage, RejectionReason};
use super::target::NvmeTarget;
use super::wire::encode::Transfer;
use super::wire::pdu::{DataPdu, FLAG_LAST, IcReq};
use super::wire::{Decoder, Encoder, Fatal, Header, PduEvent, PduFault, Sgl, Sqe, Status};
use crate::clock::Wall;
use crate::outbox::Outbox;
use crate::port::Port;

/// Maximum bytes of data in one PDU from the host.
const MOST_H2C: u32 = 128 << 10;

/// Destination of the PDU that is being received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PduDestination {
    Nothing,
    /// A capsule, of the command in this slot.
    Capsule(u16),
    /// Data of the command in this slot.
    Data(u16),
    /// A termination request.
    Term(u16),
}

/// A connection. See the head of this file.
#[derive(Debug)]
pub struct NvmeConnection {
    /// Address and port the host connected to, for the discovery log.
    local: (String, u16),
    pub(super) decoder: Decoder,
    incoming: PduDestination,
    pub(super) queue: QueuePair,
    /// Commands that wait for space, in order.
    pub(super) waiting: VecDeque<u16>,
    pub(super) io: Io,
    pub(super) parked: DeferredCommands,
    /// Time at which the host last sent something.
    pub(super) heard: Wall,
    pub(super) opened: Option<Wall>,
    /// Whether commands have arrived since the last tick.
    pub(super) recent: bool,
}

impl NvmeConnection {
    /// Returns a new connection to this address.
    pub fn new(shared: Rc<RefCell<NvmeTarget>>, local: (String, u16)) -> NvmeConnection {
        NvmeConnection {
            local,
            decoder: Decoder::new(true, IN_CAPSULE),
            incoming: PduDestination::Nothing,
            queue: QueuePair::new(shared),
            waiting: VecDeque::new(),
            io: Io::default(),
            parked: DeferredCommands::default(),
            heard: Wall::default(),
            opened: None,
            recent: false,
        }
    }

    pub(super) fn event(
        &mut self,
        event: PduEvent<'_>,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), PduFault> {
        match event {
            PduEvent::Header(header, data) => self.header(header, data, out, port),
            PduEvent::Data(data) => {
                match self.incoming {
                    PduDestination::Capsule(slot) | PduDestination::Data(slot) => {
                        self.queue.slots[slot].data.extend_from_slice(data);
                    }
                    PduDestination::Nothing | PduDestination::Term(_) => {}
                }
                Ok(())
            }
            PduEvent::End(intact) => {
                match std::mem::replace(&mut self.incoming, PduDestination::Nothing) {
                    PduDestination::Capsule(slot) => self.arrived(slot, intact, out, port),
                    PduDestination::Data(slot) => self.received(slot, intact, out, port),
                    PduDestination::Term(fatal) => Err(host_gave_up(fatal)),
                    PduDestination::Nothing => Ok(()),
                }
            }
        }
    }

    #[inline]
    fn header(
        &mut self,
        header: Header,
        data: u32,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), PduFault> {
        match (header, self.queue.phase) {
            (
                Header::Command(capsule),
                QueuePhase::Unconnected | QueuePhase::Admin | QueuePhase::Io,
            ) => self.capsule(&capsule.sqe, data, port),
            (
                Header::H2cData(header),
                QueuePhase::Unconnected | QueuePhase::Admin | QueuePhase::Io,
            ) => self.data(&header),
            (Header::IcReq(request), QueuePhase::Opening) => self.open(&request, out),
            (Header::Term(term), _) => {
                self.incoming = PduDestination::Term(term.fatal.get());
                Ok(())
            }
            _ => Err(PduFault::new(
                Fatal::Sequence,
                "a PDU that is not allowed at this point",
            )),
        }
    }

    fn open(&mut self, request: &IcReq, out: &mut Outbox) -> Result<(), PduFault> {
        if request.version.get() != 0 {
            return Err(PduFault {
                fatal: Fatal::Unsupported,
                detail: 8,
                reason: "a version of the PDU format other than 0",
            });
        }
        if request.alignment > 31 {
            return Err(PduFault {
                fatal: Fatal::InvalidHeader,
                detail: 10,
                reason: "an alignment of data beyond 128 bytes",
            });
        }
        let digests = request.digests & 3;
        Encoder::ic_resp(out, 0, digests, MOST_H2C);
        let encoder = Encoder {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: (u32::from(request.alignment) + 1) * 4,
        };
        self.queue.encoder = encoder;
        self.decoder.rules.header_digest = encoder.header_digest;
        self.decoder.rules.data_digest = encoder.data_digest;
        self.decoder.rules.most_data = MOST_H2C;
        self.queue.phase = QueuePhase::Unconnected;
        Ok(())
    }

    /// Begins a command capsule whose data (`inside` bytes) has not arrived yet.
    #[inline]
    fn capsule(&mut self, sqe: &Sqe, inside: u32, port: &mut Port<'_>) -> Result<(), PduFault> {
        if inside > IN_CAPSULE {
            return Err(PduFault::new(
                Fatal::LimitExceeded,
                "more data in a capsule than was agreed",
            ));
        }
        let slot = match self.queue.take(sqe) {
            Ok(slot) => slot,
            Err(RejectionReason::Identifier) => {
                // It would be unknown which of the two commands an answer belongs to.
                return Err(PduFault::new(
                    Fatal::InvalidHeader,
                    "a command identifier that is in use",
                ));
            }
            Err(RejectionReason::Full) => {
                return Err(PduFault::new(
                    Fatal::LimitExceeded,
                    "more commands than the queue has entries",
                ));
            }
        };
        let it = &mut self.queue.slots[slot];
        match expected(sqe, inside) {
            Ok(bytes) => it.expected = bytes,
            Err(status) => it.early = status,
        }
        if inside > 0 {
            it.data.reserve(inside as usize);
            port.receiving(inside.into());
        }
        self.incoming = PduDestination::Capsule(slot);
        Ok(())
    }

    /// Completes a capsule, with its data.
    #[inline]
    fn arrived(
        &mut self,
        slot: u16,
        intact: bool,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), PduFault> {
        self.recent = true;
        let it = &mut self.queue.slots[slot];
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
            self.prepare(slot, out)
        } else {
            self.io.unfused(&mut self.queue, slot, out);
            Err(early)
        };
        match checked {
            Err(status) => self.queue.fail(slot, status, out),
            Ok(()) => {
                let it = &self.queue.slots[slot];
                let complete = it.data.len() as u32 >= it.expected;
                self.queue_up(slot, complete, out, port);
            }
        }
        Ok(())
    }

    /// Starts a command, at once if no command waits before it and there is space.
    #[inline]
    fn queue_up(&mut self, slot: u16, complete: bool, out: &mut Outbox, port: &mut Port<'_>) {
        self.queue.slots[slot].stage = if complete {
            CommandStage::WantsRoom
        } else {
            CommandStage::WantsData
        };
        // Connecting and administration need no space, so they do not wait.
        let at_once = self.queue.phase != QueuePhase::Io && complete;
        if at_once || (self.waiting.is_empty() && port.room()) {
            self.advance_slot(slot, out, port);
        } else {
            self.waiting.push_back(slot);
        }
    }

    #[inline]
    fn advance_slot(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        if self.queue.slots[slot].stage == CommandStage::WantsData {
            self.ask(slot, out, port);
        } else {
            self.execute(slot, out, port);
        }
    }

    fn ask(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let it = &mut self.queue.slots[slot];
        it.stage = CommandStage::Receiving;
        let transfer = Transfer {
            cid: it.sqe.cid.get(),
            tag: slot,
            offset: 0,
            flags: 0,
        };
        it.data.reserve(it.expected as usize);
        port.receiving(it.expected.into());
        self.queue.encoder.r2t(out, transfer, it.expected);
    }

    /// Begins to receive requested data.
    fn data(&mut self, header: &DataPdu) -> Result<(), PduFault> {
        let slot = header.tag.get();
        let wanted = self
            .queue
            .slots
            .get(slot)
            .filter(|slot| slot.stage == CommandStage::Receiving && slot.sqe.cid == header.cid);
        let Some(it) = wanted else {
            return Err(PduFault::new(
                Fatal::Sequence,
                "data that was not requested",
            ));
        };
        let have = it.data.len() as u32;
        let left = it.expected - have;
        let last = header.common.flags & FLAG_LAST != 0;
        if header.offset.get() != have || header.length.get() > left {
            return Err(PduFault::new(
                Fatal::OutOfRange,
                "data out of range or order",
            ));
        }
        let announced = header.common.bytes.get() - u32::from(header.common.data_offset);
        let digest = if self.queue.encoder.data_digest { 4 } else { 0 };
        if announced.checked_sub(digest) != Some(header.length.get()) {
            return Err(PduFault::new(
                Fatal::InvalidHeader,
                "the length of data is not that of its PDU",
            ));
        }
        if last != (header.length.get() == left) {
            return Err(PduFault::new(
                Fatal::InvalidHeader,
                "the last piece of data is not marked as last, or another piece is",
            ));
        }
        self.incoming = PduDestination::Data(slot);
        Ok(())
    }

    /// Completes a data PDU.
    fn received(
        &mut self,
        slot: u16,
        intact: bool,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), PduFault> {
        let it = &mut self.queue.slots[slot];
        it.damaged |= !intact;
        if (it.data.len() as u32) < it.expected {
            return Ok(());
        }
        port.receiving(-i64::from(it.expected));
        if it.damaged {
            self.io.unfused(&mut self.queue, slot, out);
            self.queue.fail(slot, Status::TRANSIENT_TRANSPORT, out);
        } else {
            self.queue_up(slot, true, out, port);
        }
        Ok(())
    }

    /// Starts waiting commands while there is space.
    pub(super) fn pump(&mut self, out: &mut Outbox, port: &mut Port<'_>) {
        while port.room()
            && let Some(slot) = self.waiting.pop_front()
        {
            self.advance_slot(slot, out, port);
        }
    }

    /// Checks a command before its data is requested.
    #[inline]
    fn prepare(&mut self, slot: u16, out: &mut Outbox) -> Result<(), Status> {
        let it = &self.queue.slots[slot];
        let fabrics = it.sqe.opcode == super::FABRICS;
        if self.queue.phase == QueuePhase::Io && !fabrics {
            return self.io.prepare(&mut self.queue, slot, out);
        }
        if it.expected > admin::MOST_DATA {
            return Err(Status::INVALID_FIELD);
        }
        if self.queue.phase == QueuePhase::Unconnected && !fabrics {
            return Err(Status::COMMAND_SEQUENCE);
        }
        if it.sqe.fused() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(())
    }

    /// Executes a command whose data is complete.
    #[inline]
    fn execute(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let sqe = self.queue.slots[slot].sqe;
        let answer = if sqe.opcode == super::FABRICS {
            self.fabrics(slot, &sqe, port)
        } else if self.queue.phase == QueuePhase::Io {
            return self.io.execute(&mut self.queue, slot, out, port);
        } else {
            let data = &self.queue.slots[slot].data;
            let target = &mut self.queue.shared.borrow_mut();
            admin::command(target, self.queue.controller, &sqe, data, &self.local, port)
        };
        self.answer(slot, answer, out, port);
    }

    /// Ends or keeps a command of an admin queue or of fabrics.
    fn answer(
        &mut self,
        slot: u16,
        answer: Result<AdminOutcome, StatusFailure>,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let queue = &mut self.queue;
        match answer {
            Ok(AdminOutcome::Done(dwords)) => {
                queue.respond_wide(slot, Status::SUCCESS, dwords, out)
            }
            Ok(AdminOutcome::Page(page)) => queue.respond_page(slot, &page, out),
            Ok(AdminOutcome::Later(later)) => {
                if let Err(status) = self.parked.keep(slot, later, queue, out, port) {
                    queue.fail(slot, status, out);
                }
            }
            Ok(AdminOutcome::Abort { queue: of, cid }) => {
                let dwords = self.parked.abort(of, cid, queue, out);
                queue.respond_wide(slot, Status::SUCCESS, dwords, out);
            }
            Err((status, 0)) => queue.fail(slot, status, out),
            Err((status, dw0)) => queue.respond(slot, status, dw0, out),
        }
    }

    /// Executes a fabrics command.
    fn fabrics(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<AdminOutcome, StatusFailure> {
        let id = self.queue.controller;
        let shared = Rc::clone(&self.queue.shared);
        let target = &mut shared.borrow_mut();
        match (sqe.nsid.get() as u8, self.queue.phase) {
            (fabrics::kind::CONNECT, QueuePhase::Unconnected) => {}
            (fabrics::kind::CONNECT, _) | (_, QueuePhase::Unconnected) => {
                return Err((Status::COMMAND_SEQUENCE, 0));
            }
            (fabrics::kind::PROPERTY_GET, QueuePhase::Admin) => {
                return fabrics::property_get(target, id, sqe);
            }
            (fabrics::kind::PROPERTY_SET, QueuePhase::Admin) => {
                return fabrics::property_set(target, id, sqe, port);
            }
            _ => return Err((Status::INVALID_FIELD, 0)),
        }
        let data = std::mem::take(&mut self.queue.slots[slot].data);
        let connected = fabrics::connect(target, sqe, &data, port.me())?;
        self.queue.connected(connected);
        self.io.refresh(target);
        Ok(AdminOutcome::Done(connected.controller.into()))
    }
}

/// Returns the bytes that the host sends with this command, of which `inside` are in its capsule.
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
        // No data, whatever the descriptor type is.
        (1 | 2, _) if length == 0 => Ok(0),
        (0, _) => Err(Status::INVALID_FIELD),
        (1 | 2, _) => Err(Status::SGL_TYPE_INVALID),
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn host_gave_up(fatal: u16) -> PduFault {
    let reason = match fatal {
        1 => "the host ended the connection: invalid field in a header",
        2 => "the host ended the connection: PDU out of sequence",
        3 => "the host ended the connection: header digest",
        4 => "the host ended the connection: data out of range",
        5 => "the host ended the connection: limit exceeded",
        6 => "the host ended the connection: unsupported parameter",
        _ => "the host ended the connection",
    };
    PduFault::new(Fatal::Sequence, reason)
}
