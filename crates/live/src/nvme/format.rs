//! Format NVM and Sanitize, which take as long as they do on that drive; and what else happens by itself.
//!
//! A format begins when the commands that are in the drive have left it, and its completion comes when it is done.
//! Meanwhile I/O is refused with the status that says why. Cryptographic erase is done as a user data erase.
//! Source: NVM Express Base Specification 1.4, chapters 5.23 and 5.24.

use super::admin::Answer;
use super::connection::Connection;
use super::controller::Notification;
use super::facts::{self, Begun};
use super::lba_status;
use super::self_test::{self, Ended};
use super::slots::Stage;
use super::target::Work;
use super::wire::{Sqe, Status};
use crate::outbox::Outbox;
use crate::port::{Notice, Port};

/// All namespaces.
const ALL: u32 = u32::MAX;

/// A format as asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    number: usize,
    dps: u8,
    extended: bool,
    erase: u8,
}

impl Wanted {
    fn of(cdw10: u32) -> Wanted {
        Wanted {
            number: (cdw10 & 0xf) as usize,
            // As Identify has it.
            dps: (cdw10 >> 5 & 0xf) as u8,
            extended: cdw10 & 1 << 4 != 0,
            erase: (cdw10 >> 9 & 7) as u8,
        }
    }
}

impl Connection {
    /// The drives that a command for this namespace concerns.
    pub(super) fn concerned(&self, nsid: u32) -> Result<Vec<u32>, Status> {
        let mut shared = self.shared.borrow_mut();
        if nsid == ALL {
            return Ok(shared.present().map(|(nsid, _)| nsid).collect());
        }
        shared.active(self.queue.controller, nsid)?;
        Ok(vec![nsid])
    }

    pub(super) fn format(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<Answer, Status> {
        let wanted = Wanted::of(sqe.cdw10.get());
        if wanted.erase > 2 || wanted.dps & 7 > 3 {
            return Err(Status::INVALID_FIELD);
        }
        let mut concerned = self.concerned(sqe.nsid.get())?;
        if self.is_full() {
            // All namespaces have one format.
            concerned = self.concerned(ALL)?;
        }
        {
            let mut shared = self.shared.borrow_mut();
            for &nsid in &concerned {
                let namespace = shared.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
                if namespace.format.is_some() {
                    return Err(Status::FORMAT_IN_PROGRESS);
                }
                if namespace.sanitizing {
                    return Err(Status::SANITIZE_IN_PROGRESS);
                }
                let metadata = facts::format_metadata(port, namespace.drive, wanted.number)
                    .ok_or(Status::INVALID_FORMAT)?;
                let protection =
                    facts::protection(port, namespace.drive, wanted.number, wanted.dps);
                if !protection.fits(metadata) {
                    return Err(Status::INVALID_FORMAT);
                }
                // Metadata has no place of its own over fabrics.
                if metadata > 0 && !wanted.extended && !namespace.strip {
                    return Err(Status::INVALID_FORMAT);
                }
            }
            for &nsid in &concerned {
                if let Some(namespace) = shared.namespace(nsid) {
                    namespace.format = Some(Work::Asked);
                }
            }
            self_test::interrupt(&mut shared, Ended::Formatted, port);
            let all = shared.options.full;
            let controller = self.queue.controller;
            shared
                .history
                .format_begins(controller, sqe, all, port.wall());
        }
        self.slots[slot].stage = Stage::Parked;
        self.formats.push((slot, concerned));
        self.begin_waiting(port);
        port.ring(port.me());
        Ok(Answer::Later)
    }

    /// Begins the formats whose drives are empty. At full speed they are then done.
    fn begin_waiting(&mut self, port: &mut Port<'_>) {
        let mut shared = self.shared.borrow_mut();
        for (slot, concerned) in &self.formats {
            // Drives whose format has begun: of several namespaces the first begins it.
            let mut begun = Vec::new();
            let wanted = Wanted::of(self.slots[*slot].sqe.cdw10.get());
            for &nsid in concerned {
                let Some(namespace) = shared.namespace(nsid) else {
                    continue;
                };
                if namespace.format != Some(Work::Asked) {
                    continue;
                }
                if begun.contains(&namespace.drive) {
                    namespace.format = Some(Work::Begun);
                    continue;
                }
                match facts::begin_format(port, namespace.drive, wanted.number, wanted.dps) {
                    Begun::Yes => {
                        namespace.format = Some(Work::Begun);
                        begun.push(namespace.drive);
                    }
                    Begun::Busy => {}
                    Begun::Refused => namespace.format = Some(Work::Refused),
                }
            }
        }
    }

    pub(super) fn sanitize(&mut self, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Status> {
        // 1: leave failure mode, 2: erase blocks, 3: overwrite, 4: crypto erase.
        match sqe.cdw10.get() & 7 {
            1 => return Ok(Answer::Done(0)),
            2 => {}
            _ => return Err(Status::INVALID_FIELD),
        }
        let mut shared = self.shared.borrow_mut();
        if shared.present().any(|(_, it)| it.format.is_some()) {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if shared.present().any(|(_, it)| it.sanitizing) {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        for drive in shared.options.drives.clone() {
            match facts::begin_sanitize(port, drive) {
                Begun::Yes => {}
                // Commands are still inside: the host is to wait for them.
                Begun::Busy => return Err(Status::COMMAND_SEQUENCE),
                Begun::Refused => return Err(Status::INTERNAL_ERROR),
            }
            for namespace in shared.namespaces.iter_mut().flatten() {
                namespace.sanitizing |= namespace.drive == drive;
            }
        }
        self_test::interrupt(&mut shared, Ended::Sanitized, port);
        let controller = self.queue.controller;
        shared.history.sanitize_begins(controller, sqe, port.wall());
        drop(shared);
        port.ring(port.me());
        Ok(Answer::Done(0))
    }

    /// What happens by itself: formats and sanitizes that end, events to tell.
    pub(super) fn attend(&mut self, out: &mut Outbox, port: &mut Port<'_>) {
        if !self.formats.is_empty() {
            self.begin_waiting(port);
            self.end_formats(out, port);
        }
        if !self.creations.is_empty() {
            self.create_waiting(out, port);
        }
        let mut shared = self.shared.borrow_mut();
        self_test::settle(&mut shared, port);
        let (mut ended, mut sanitized) = (false, None);
        for namespace in shared.namespaces.iter_mut().flatten() {
            let drive = namespace.drive;
            if namespace.format == Some(Work::Orphaned) && facts::operation(port, drive).is_none() {
                ended = true;
                port.notify(drive, Notice::Namespace);
            }
            if namespace.sanitizing && facts::operation(port, drive).is_none() {
                namespace.sanitizing = false;
                sanitized = Some(drive);
            }
        }
        if let Some(drive) = sanitized {
            let status = facts::sanitized(port, drive);
            shared.history.sanitize_ends(status, port.wall());
        }
        let seen = lba_status::generation(&shared, port);
        if let Some(it) = shared.controller(self.queue.controller) {
            if sanitized.is_some() {
                it.notify(Notification::SANITIZED);
            }
            if it
                .lba_status_seen
                .replace(seen)
                .is_some_and(|before| before != seen)
            {
                it.notify(Notification::LBA_STATUS);
            }
        }
        if ended {
            shared.look(port);
        }
        drop(shared);
        self.tell(out);
    }

    fn end_formats(&mut self, out: &mut Outbox, port: &mut Port<'_>) {
        let mut done = Vec::new();
        self.formats.retain(|(slot, concerned)| {
            let mut shared = self.shared.borrow_mut();
            let ended = concerned.iter().all(|&nsid| match shared.namespace(nsid) {
                None => true,
                Some(it) => match it.format {
                    None => true,
                    Some(Work::Asked) => false,
                    Some(Work::Refused) => true,
                    Some(Work::Begun | Work::Orphaned) => {
                        facts::operation(port, it.drive).is_none()
                    }
                },
            });
            if ended {
                done.push((*slot, concerned.clone()));
            }
            !ended
        });
        for (slot, concerned) in done {
            let mut refused = false;
            for nsid in concerned {
                let mut shared = self.shared.borrow_mut();
                if let Some(it) = shared.namespace(nsid) {
                    refused |= it.format.take() == Some(Work::Refused);
                    let drive = it.drive;
                    drop(shared);
                    port.notify(drive, Notice::Namespace);
                }
            }
            let status = if refused {
                Status::INTERNAL_ERROR
            } else {
                Status::SUCCESS
            };
            let sqe = self.slots[slot].sqe;
            {
                let (shared, id) = (&mut *self.shared.borrow_mut(), self.queue.controller);
                shared.look(port);
                shared.history.format_ends(id, &sqe, status, port.wall());
            }
            self.end(slot, status, out);
        }
    }
}
