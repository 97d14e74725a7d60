//! Commands of admin queues, and those of fabrics that any queue takes.
//!
//! Left out: firmware download, directives, security, virtualisation.
//! Source: NVM Express Base Specification 1.4, chapter 5.

use super::connection::{Connection, Phase};
use super::controller::EVENT_REQUESTS;
use super::lba_status;
use super::namespaces;
use super::self_test;
use super::slots::Stage;
use super::wire::{Sqe, Status};
use crate::faults::Fault;
use crate::outbox::Outbox;
use crate::port::Port;

/// Opcodes of admin commands.
pub mod opcode {
    /// Get Log Page.
    pub const GET_LOG: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT: u8 = 0x0c;
    /// Namespace Management.
    pub const NAMESPACES: u8 = 0x0d;
    /// Device Self-test.
    pub const SELF_TEST: u8 = 0x14;
    /// Namespace Attachment.
    pub const ATTACHMENT: u8 = 0x15;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Format NVM.
    pub const FORMAT: u8 = 0x80;
    /// Sanitize.
    pub const SANITIZE: u8 = 0x84;
    /// Get LBA Status.
    pub const GET_LBA_STATUS: u8 = 0x86;
    /// Vendor specific: the power of the namespace's drive is cut.
    pub const POWER_CUT: u8 = 0xc0;
}

/// Most bytes of data of an admin command in either direction.
const MOST_DATA: u32 = 128 << 10;

/// What comes of an admin command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Done; dwords 0 and 1.
    Done(u64),
    /// Done, with the data in `Connection::page`.
    Page,
    /// Its completion comes later.
    Later,
}

impl Connection {
    /// Checks a command, before its data is asked for.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        slot: u16,
        out: &mut Outbox,
        _port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let it = &self.slots[slot];
        let fabrics = it.sqe.opcode == super::FABRICS;
        if self.phase == Phase::Io && !fabrics {
            return self.prepare_io(slot, out);
        }
        if it.expected > MOST_DATA {
            return Err(Status::INVALID_FIELD);
        }
        if self.phase == Phase::Unconnected && !fabrics {
            return Err(Status::COMMAND_SEQUENCE);
        }
        if it.sqe.fused() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(())
    }

    /// Carries out a command whose data is complete.
    #[inline]
    pub(super) fn execute(&mut self, slot: u16, out: &mut Outbox, port: &mut Port<'_>) {
        let sqe = self.slots[slot].sqe;
        let answer = if sqe.opcode == super::FABRICS {
            self.fabrics(slot, &sqe, port)
        } else if self.phase == Phase::Io {
            match self.check_dataset(slot) {
                Ok(true) => self.execute_io(slot, out, port),
                Ok(false) => self.respond(slot, Status::SUCCESS, 0, out),
                Err(status) => self.fail(slot, status, out),
            }
            return;
        } else {
            self.admin(slot, &sqe, out, port)
        };
        match answer {
            Ok(Answer::Done(dwords)) => self.respond_wide(slot, Status::SUCCESS, dwords, out),
            Ok(Answer::Page) => {
                let page = std::mem::take(&mut self.page);
                let length = (page.len() as u32).min(sqe.sgl.length.get());
                self.respond_data(slot, length, out, |data| {
                    data.copy_from_slice(&page[..data.len()]);
                    Ok(())
                });
                self.page = page;
            }
            Ok(Answer::Later) => {}
            Err((status, dw0)) => {
                if dw0 == 0 {
                    self.fail(slot, status, out);
                } else {
                    self.respond(slot, status, dw0, out);
                }
            }
        }
    }

    fn admin(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<Answer, (Status, u32)> {
        let discovery = {
            let mut shared = self.shared.borrow_mut();
            let controller = shared.controller(self.queue.controller);
            let controller = controller.ok_or((Status::INTERNAL_ERROR, 0))?;
            if !controller.ready() && sqe.opcode != opcode::KEEP_ALIVE {
                return Err((Status::COMMAND_SEQUENCE, 0));
            }
            controller.discovery
        };
        let plain = |status| (status, 0);
        match sqe.opcode {
            opcode::IDENTIFY => self.identify(sqe, port).map_err(plain),
            opcode::GET_LOG => self.get_log(sqe, port).map_err(plain),
            opcode::GET_FEATURES => self.get_features(sqe, port).map_err(plain),
            opcode::SET_FEATURES => self.set_and_note(slot, sqe, port).map_err(plain),
            opcode::ASYNC_EVENT => self.park(slot, out).map_err(plain),
            opcode::KEEP_ALIVE => Ok(Answer::Done(0)),
            opcode::ABORT if !discovery => Ok(self.abort(sqe, out)),
            opcode::FORMAT if !discovery => self.format(slot, sqe, port).map_err(plain),
            opcode::SANITIZE if !discovery => self.sanitize(sqe, port).map_err(plain),
            opcode::POWER_CUT if !discovery => self.cut_power(sqe, port).map_err(plain),
            opcode::GET_LBA_STATUS if !discovery => self.lba_status(sqe, port).map_err(plain),
            _ if self.is_full() => self.full(slot, sqe, port).map_err(plain),
            _ => Err((Status::INVALID_OPCODE, 0)),
        }
    }

    /// Whether there is more than the drive has.
    pub(super) fn is_full(&self) -> bool {
        self.shared.borrow().options.full && !self.is_discovery()
    }

    /// Commands that are there on request, whatever the drive has.
    fn full(&mut self, slot: u16, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Status> {
        let controller = self.queue.controller;
        let mut shared = self.shared.borrow_mut();
        let data = &self.slots[slot].data;
        let answer = match sqe.opcode {
            opcode::SELF_TEST => {
                self_test::command(&mut shared, controller, sqe, port).map(|()| Answer::Done(0))
            }
            opcode::NAMESPACES => namespaces::manage(&mut shared, controller, sqe, data, port),
            opcode::ATTACHMENT => namespaces::attach(&mut shared, sqe, data, port),
            _ => Err(Status::INVALID_OPCODE),
        };
        drop(shared);
        if answer == Ok(Answer::Later) {
            // A namespace whose drive has to be empty first.
            self.slots[slot].stage = Stage::Parked;
            self.creations.push(slot);
            port.ring(port.me());
        }
        answer
    }

    /// Creates namespaces that have waited, as far as their drives are empty now.
    pub(super) fn create_waiting(&mut self, out: &mut Outbox, port: &mut Port<'_>) {
        for slot in std::mem::take(&mut self.creations) {
            let sqe = self.slots[slot].sqe;
            let data = std::mem::take(&mut self.slots[slot].data);
            let made = namespaces::manage(
                &mut self.shared.borrow_mut(),
                self.queue.controller,
                &sqe,
                &data,
                port,
            );
            match made {
                Ok(Answer::Later) => {
                    self.slots[slot].data = data;
                    self.creations.push(slot);
                }
                Ok(Answer::Done(dwords)) => self.respond_wide(slot, Status::SUCCESS, dwords, out),
                Ok(Answer::Page) => self.respond(slot, Status::SUCCESS, 0, out),
                Err(status) => self.fail(slot, status, out),
            }
        }
    }

    fn lba_status(&mut self, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Status> {
        let most = sqe.sgl.length.get().min(MOST_DATA) as usize;
        let mut shared = self.shared.borrow_mut();
        shared.active(self.queue.controller, sqe.nsid.get())?;
        self.page = lba_status::command(&mut shared, sqe, most, port)?;
        Ok(Answer::Page)
    }

    /// Cuts the power after the answer; the connections then end.
    fn cut_power(&mut self, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Status> {
        for nsid in self.concerned(sqe.nsid.get())? {
            let drive = self.shared.borrow_mut().namespace(nsid).map(|it| it.drive);
            let drive = drive.ok_or(Status::INVALID_NAMESPACE)?;
            port.fault(drive, Fault::PowerCut)
                .map_err(|_| Status::INTERNAL_ERROR)?;
        }
        Ok(Answer::Done(0))
    }

    /// Keeps a request until there is an event.
    fn park(&mut self, slot: u16, out: &mut Outbox) -> Result<Answer, Status> {
        if self.events.len() >= EVENT_REQUESTS {
            return Err(Status::TOO_MANY_EVENTS);
        }
        self.slots[slot].stage = Stage::Parked;
        self.events.push_back(slot);
        self.tell(out);
        Ok(Answer::Later)
    }

    /// Answers requests for events as far as there are events.
    pub(super) fn tell(&mut self, out: &mut Outbox) {
        while let Some(&slot) = self.events.front() {
            let event = {
                let mut shared = self.shared.borrow_mut();
                let controller = shared.controller(self.queue.controller);
                controller.and_then(|controller| controller.next_event())
            };
            let Some(event) = event else { return };
            self.events.pop_front();
            self.respond(slot, Status::SUCCESS, event.0, out);
        }
    }

    /// Requests for events can be aborted; what is in the drive completes soon and is left to it.
    fn abort(&mut self, sqe: &Sqe, out: &mut Outbox) -> Answer {
        let cdw10 = sqe.cdw10.get();
        let (queue, cid) = (cdw10 as u16, (cdw10 >> 16) as u16);
        let found = self
            .events
            .iter()
            .position(|&slot| queue == 0 && self.slots[slot].sqe.cid.get() == cid);
        match found.and_then(|index| self.events.remove(index)) {
            Some(slot) => {
                self.respond(slot, Status::ABORT_REQUESTED, 0, out);
                Answer::Done(0)
            }
            // Dword 0, bit 0: not aborted.
            None => Answer::Done(1),
        }
    }
}
