//! Admin commands that complete later: asynchronous event requests, formats, and namespace creations that wait until
//! their drive has no command in flight.

use std::collections::VecDeque;

use super::answer::{AdminOutcome, WaitCondition};
use super::attend::attend;
use super::controller::EVENT_REQUESTS;
use super::facts::Drives;
use super::format;
use super::namespaces;
use super::queue::QueuePair;
use super::slots::CommandStage;
use super::wire::Status;
use crate::outbox::Outbox;

/// Such commands of one admin queue, by their slots.
#[derive(Debug, Default)]
pub(super) struct DeferredCommands {
    /// Asynchronous event requests, the oldest first.
    events: VecDeque<u16>,
    /// Formats in progress, with the namespaces concerned.
    formats: Vec<(u16, Vec<u32>)>,
    /// Namespaces to create when their drive has no command in flight.
    creations: Vec<u16>,
}

impl DeferredCommands {
    /// Keeps a command until its event occurs.
    ///
    /// # Errors
    /// The status for one event request too many.
    pub(super) fn keep(
        &mut self,
        slot: u16,
        later: WaitCondition,
        queue: &mut QueuePair,
        out: &mut Outbox,
        drives: &mut dyn Drives,
    ) -> Result<(), Status> {
        if later == WaitCondition::Event && self.events.len() >= EVENT_REQUESTS {
            return Err(Status::TOO_MANY_EVENTS);
        }
        queue.slots[slot].stage = CommandStage::Parked;
        match later {
            WaitCondition::Event => {
                self.events.push_back(slot);
                self.complete_event_requests(queue, out);
            }
            WaitCondition::Format(concerned) => self.formats.push((slot, concerned)),
            WaitCondition::EmptyDrive => {
                self.creations.push(slot);
                drives.ring_back();
            }
        }
        Ok(())
    }

    /// Aborts an event request. A command that is in the drive completes soon and is not aborted.
    pub(super) fn abort(
        &mut self,
        of_queue: u16,
        cid: u16,
        queue: &mut QueuePair,
        out: &mut Outbox,
    ) -> u64 {
        let found = self
            .events
            .iter()
            .position(|&slot| of_queue == 0 && queue.slots[slot].sqe.cid.get() == cid);
        match found.and_then(|index| self.events.remove(index)) {
            Some(slot) => {
                queue.respond(slot, Status::ABORT_REQUESTED, 0, out);
                0
            }
            // Dword 0, bit 0: not aborted.
            None => 1,
        }
    }

    /// Continues commands that can continue: formats, creations, and events.
    pub(super) fn attend(
        &mut self,
        queue: &mut QueuePair,
        out: &mut Outbox,
        drives: &mut dyn Drives,
    ) {
        self.formats(queue, out, drives);
        self.creations(queue, out, drives);
        attend(&mut queue.shared.borrow_mut(), queue.controller, drives);
        self.complete_event_requests(queue, out);
    }

    fn formats(&mut self, queue: &mut QueuePair, out: &mut Outbox, drives: &mut dyn Drives) {
        let shared = queue.shared.clone();
        for (slot, concerned) in &self.formats {
            let sqe = &queue.slots[*slot].sqe;
            format::start_formats(&mut shared.borrow_mut(), sqe, concerned, drives);
        }
        let ended = |(_, concerned): &mut (u16, Vec<u32>)| {
            format::ended(&mut shared.borrow_mut(), concerned, drives)
        };
        let over: Vec<(u16, Vec<u32>)> = self.formats.extract_if(.., ended).collect();
        let mut done = Vec::new();
        for (slot, concerned) in over {
            let sqe = queue.slots[slot].sqe;
            let target = &mut shared.borrow_mut();
            let status = format::end(target, queue.controller, &sqe, &concerned, drives);
            done.push((slot, status));
        }
        for (slot, status) in done {
            queue.end(slot, status, out);
        }
    }

    fn creations(&mut self, queue: &mut QueuePair, out: &mut Outbox, drives: &mut dyn Drives) {
        for slot in std::mem::take(&mut self.creations) {
            let sqe = queue.slots[slot].sqe;
            let data = std::mem::take(&mut queue.slots[slot].data);
            let made = {
                let target = &mut queue.shared.borrow_mut();
                namespaces::manage(target, queue.controller, &sqe, &data, drives)
            };
            match made {
                Ok(AdminOutcome::Done(dwords)) => {
                    queue.respond_wide(slot, Status::SUCCESS, dwords, out);
                }
                Ok(_) => {
                    queue.slots[slot].data = data;
                    self.creations.push(slot);
                }
                Err(status) => queue.fail(slot, status, out),
            }
        }
    }

    /// Answers event requests while there are events.
    fn complete_event_requests(&mut self, queue: &mut QueuePair, out: &mut Outbox) {
        while let Some(&slot) = self.events.front() {
            let event = {
                let mut target = queue.shared.borrow_mut();
                let controller = target.controller(queue.controller);
                controller.and_then(|controller| controller.next_event())
            };
            let Some(event) = event else { return };
            self.events.pop_front();
            queue.respond(slot, Status::SUCCESS, event.0, out);
        }
    }

    /// Decides how the formats of a closed connection continue.
    pub(super) fn abandon(&self, queue: &QueuePair) {
        let mut target = queue.shared.borrow_mut();
        for &nsid in self.formats.iter().flat_map(|(_, concerned)| concerned) {
            target.subsystem.abandon(nsid);
        }
    }
}
