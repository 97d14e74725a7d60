//! One queue of a controller: the commands in progress, and their completion.

use std::cell::RefCell;
use std::rc::Rc;

use super::controller::Controller;
use super::fabrics::ConnectedQueue;
use super::slots::{RejectionReason, Slots};
use super::target::NvmeTarget;
use super::wire::encode::Transfer;
use super::wire::pdu::{FLAG_LAST, FLAG_SUCCESS};
use super::wire::{Cqe, Encoder, Sqe, Status};
use crate::outbox::Outbox;

/// Number of commands before a queue is connected: only Connect.
const BEFORE_CONNECT: u16 = 1;

/// Progress of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QueuePhase {
    /// Only ICReq is allowed.
    Opening,
    /// Only Connect is allowed.
    Unconnected,
    /// The admin queue of a controller.
    Admin,
    /// An I/O queue of a controller.
    Io,
}

/// A queue and its commands.
#[derive(Debug)]
pub(super) struct QueuePair {
    pub(super) shared: Rc<RefCell<NvmeTarget>>,
    pub(super) phase: QueuePhase,
    pub(super) id: u16,
    pub(super) controller: u16,
    /// Generation of the controller to which the queue belongs.
    life: u64,
    entries: u16,
    head: u16,
    /// Whether the host wants the queue's head reported.
    flow_control: bool,
    pub(super) slots: Slots,
    pub(super) encoder: Encoder,
}

impl QueuePair {
    /// Returns a queue that is not yet connected to a controller of this target.
    pub(super) fn new(shared: Rc<RefCell<NvmeTarget>>) -> QueuePair {
        QueuePair {
            shared,
            phase: QueuePhase::Opening,
            id: 0,
            controller: 0,
            life: 0,
            entries: BEFORE_CONNECT,
            head: 0,
            flow_control: false,
            slots: Slots::new(BEFORE_CONNECT),
            encoder: Encoder::default(),
        }
    }

    /// Connects the queue to a controller.
    pub(super) fn connected(&mut self, to: ConnectedQueue) {
        self.id = to.queue;
        self.controller = to.controller;
        self.life = to.life;
        self.entries = to.entries;
        self.head = 1 % to.entries;
        self.flow_control = to.flow_control;
        self.slots.resize(to.entries);
        self.phase = if to.queue == 0 {
            QueuePhase::Admin
        } else {
            QueuePhase::Io
        };
    }

    /// Checks whether the controller still exists in the generation in which this queue was connected.
    pub(super) fn is_alive(&self) -> bool {
        if !matches!(self.phase, QueuePhase::Admin | QueuePhase::Io) {
            return true;
        }
        let mut target = self.shared.borrow_mut();
        let controller = target.controller(self.controller);
        controller.is_some_and(|it| !self.outlived_by(it))
    }

    /// Checks whether this controller, which has the identifier, is not the one that the queue belongs to.
    fn outlived_by(&self, controller: &Controller) -> bool {
        self.phase == QueuePhase::Io && controller.life != self.life
    }

    /// Ends the connection: releases the controller, or its queue.
    pub(super) fn leave(&self) {
        let mut target = self.shared.borrow_mut();
        match self.phase {
            QueuePhase::Admin => target.controllers.remove(self.controller),
            QueuePhase::Io => {
                let controller = target.controller(self.controller);
                if let Some(controller) = controller.filter(|it| !self.outlived_by(it)) {
                    controller.leave_queue(self.id);
                }
            }
            QueuePhase::Opening | QueuePhase::Unconnected => {}
        }
    }

    /// Adds a command to the queue and returns its slot.
    #[inline]
    pub(super) fn take(&mut self, sqe: &Sqe) -> Result<u16, RejectionReason> {
        let slot = self.slots.take(sqe)?;
        self.head = if self.head + 1 >= self.entries {
            0
        } else {
            self.head + 1
        };
        Ok(slot)
    }

    /// Completes a command.
    #[inline]
    pub(super) fn respond(&mut self, slot: u16, status: Status, dw0: u32, out: &mut Outbox) {
        self.respond_wide(slot, status, u64::from(dw0), out);
    }

    /// Completes a command with dwords 0 and 1.
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
            sq_head: if self.flow_control {
                self.head
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

    /// Completes a failed command, and records it in the error log.
    pub(super) fn fail(&mut self, slot: u16, status: Status, out: &mut Outbox) {
        self.fail_with(slot, status, 0, out);
    }

    /// Completes a failed command with dword 0.
    pub(super) fn fail_with(&mut self, slot: u16, status: Status, dw0: u32, out: &mut Outbox) {
        if !status.is_success() && self.phase != QueuePhase::Unconnected {
            let sqe = self.slots[slot].sqe;
            let mut target = self.shared.borrow_mut();
            let controller = target.controller(self.controller);
            // The identifier may now belong to a later controller.
            if let Some(controller) = controller.filter(|it| !self.outlived_by(it)) {
                let (nsid, lba) = (sqe.nsid.get(), sqe.slba());
                let lba = if self.phase == QueuePhase::Io { lba } else { 0 };
                controller.failed(self.id, sqe.cid.get(), status, nsid, lba);
            }
        }
        self.respond(slot, status, dw0, out);
    }

    /// Completes a command, whether it failed or not.
    #[inline]
    pub(super) fn end(&mut self, slot: u16, status: Status, out: &mut Outbox) {
        if status.is_success() {
            self.respond(slot, status, 0, out);
        } else {
            self.fail(slot, status, out);
        }
    }

    /// Completes a command with data of `length` bytes; `fill` writes them into the send buffer.
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
        let short = !self.flow_control;
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

    /// Completes a command with a page, cut to the length that the host requested.
    pub(super) fn respond_page(&mut self, slot: u16, page: &[u8], out: &mut Outbox) {
        let asked = self.slots[slot].sqe.sgl.length.get();
        let length = (page.len() as u32).min(asked);
        self.respond_data(slot, length, out, |data| {
            data.copy_from_slice(&page[..data.len()]);
            Ok(())
        });
    }
}
