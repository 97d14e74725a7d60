//! Transfer of data between host and store, at the completion of a command.
//!
//! Reads go from the store directly into the send buffer. In formats with metadata, a block on the wire is its data
//! followed by its metadata (extended logical blocks). It is only its data if protection information is inserted and
//! stripped here: at the host's request (PRACT), or because the namespace presents plain blocks.

use super::facts::status_of;
use super::io::Io;
use super::protection::Checks;
use super::queue::QueuePair;
use super::slots::CommandSlot;
use super::subsystem::Namespace;
use super::wire::{Sqe, Status};
use crate::outbox::Outbox;
use crate::port::Port;
use crate::served::Outcome;

fn unread(_: Outcome) -> Status {
    Status::UNRECOVERED_READ
}

impl Namespace {
    /// Returns a block's number in the drive.
    #[inline]
    pub(super) fn in_drive(&self, lba: u64) -> u64 {
        self.first / u64::from(self.block) + lba
    }

    /// Returns the bytes on the wire of this number of blocks.
    #[inline]
    pub(super) fn wire_bytes(&self, sqe: &Sqe, blocks: u32) -> u32 {
        if self.metadata == 0 || self.plain(sqe) {
            blocks * self.block
        } else {
            blocks * self.extended()
        }
    }

    /// Checks whether metadata is not transferred.
    pub(super) fn plain(&self, sqe: &Sqe) -> bool {
        let act = sqe.cdw12.get() & 1 << 29 != 0;
        self.strip || (act && usize::from(self.metadata) == self.protection.bytes())
    }

    /// Returns the checks of a command, with their tags.
    fn checks(&self, sqe: &Sqe) -> Checks {
        let asked = Checks::from_sqe(sqe);
        if !self.strip {
            return asked;
        }
        let protected = self.protection.kind != 0;
        Checks {
            act: protected,
            guard: protected,
            reference: protected && self.protection.kind != 3,
            tags: self.protection.reference_of(sqe.slba()),
            ..Checks::default()
        }
    }
}

impl Io {
    /// Returns the namespace of a command.
    fn layout(queue: &QueuePair, slot: &CommandSlot) -> Result<Namespace, Status> {
        let mut target = queue.shared.borrow_mut();
        let namespace = target.namespace(slot.sqe.nsid.get());
        namespace.copied().ok_or(Status::INVALID_NAMESPACE)
    }

    /// Sends data to the host.
    #[inline]
    pub(super) fn give_data(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let it = &queue.slots[slot];
        let (drive, offset, wire) = (usize::from(it.drive), it.offset, it.sqe.sgl.length.get());
        if !self.with_metadata {
            queue.respond_data(slot, wire, out, |data| {
                port.drive(drive).read(offset, data).map_err(unread)
            });
            return;
        }
        let sqe = it.sqe;
        let namespace = match Io::layout(queue, it) {
            Ok(namespace) => namespace,
            Err(status) => return queue.fail(slot, status, out),
        };
        let mut metadata = std::mem::take(&mut self.metadata);
        queue.respond_data(slot, wire, out, |data| {
            namespace.read(&sqe, data, &mut metadata, port)
        });
        self.metadata = metadata;
    }

    /// Stores the data of a write.
    #[inline]
    pub(super) fn store(
        &mut self,
        queue: &QueuePair,
        slot: u16,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let it = &queue.slots[slot];
        let fua = it.sqe.cdw12.get() & 1 << 30 != 0;
        let drive = usize::from(it.drive);
        if !self.with_metadata {
            return port
                .drive(drive)
                .write(it.offset, &it.data, fua)
                .map_err(status_of);
        }
        let namespace = Io::layout(queue, it)?;
        namespace.write(&it.sqe, &it.data, fua, &mut self.metadata, port)
    }

    /// Compares the data of a command with the store.
    pub(super) fn compare(
        &mut self,
        queue: &QueuePair,
        slot: u16,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let it = &queue.slots[slot];
        let namespace = Io::layout(queue, it)?;
        self.page.clear();
        self.page.resize(it.data.len(), 0);
        let sqe = it.sqe;
        namespace.read(&sqe, &mut self.page, &mut self.metadata, port)?;
        if self.page == queue.slots[slot].data {
            Ok(())
        } else {
            Err(Status::COMPARE_FAILURE)
        }
    }

    /// Checks that the stored data can be read, and that its protection information is correct.
    pub(super) fn verify(
        &mut self,
        queue: &QueuePair,
        slot: u16,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let it = &queue.slots[slot];
        let namespace = Io::layout(queue, it)?;
        let sqe = it.sqe;
        let blocks = it.bytes / namespace.block;
        // In pieces, because a Verify may be longer than any transfer.
        let piece = (namespace.max_transfer / namespace.block).max(1);
        let mut done = 0;
        while done < blocks {
            let now = piece.min(blocks - done);
            let mut part = sqe;
            let first = sqe.slba() + u64::from(done);
            part.cdw10 = (first as u32).into();
            part.cdw11 = ((first >> 32) as u32).into();
            namespace.protection.advance(&mut part, done);
            self.page.clear();
            self.page.resize((now * namespace.extended()) as usize, 0);
            // Protection information is checked and kept, as if it were passed on.
            part.cdw12 = (sqe.cdw12.get() & !(1 << 29)).into();
            namespace.read(&part, &mut self.page, &mut self.metadata, port)?;
            done += now;
        }
        Ok(())
    }

    /// Completes a write of zeroes: clears metadata, and generates protection information if the host requests it.
    pub(super) fn zeroed(
        &mut self,
        queue: &QueuePair,
        slot: u16,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        if !self.with_metadata {
            return Ok(());
        }
        let it = &queue.slots[slot];
        let namespace = Io::layout(queue, it)?;
        let checks = namespace.checks(&it.sqe);
        if namespace.protection.kind == 0 || !checks.act {
            return Ok(());
        }
        let size = usize::from(namespace.metadata);
        let blocks = (it.bytes / namespace.block) as usize;
        let lba = namespace.in_drive(it.sqe.slba());
        self.metadata.clear();
        self.metadata.resize(blocks * size, 0);
        self.page.clear();
        self.page.resize(namespace.block as usize, 0);
        for (index, metadata) in (0..).zip(self.metadata.chunks_exact_mut(size)) {
            let protection = namespace.protection;
            protection.make(&checks, index, &self.page, metadata);
        }
        namespace.protection.turn(&mut self.metadata, size);
        let drive = port.drive(namespace.drive);
        let written = drive.write_metadata(lba, &self.metadata);
        written.map_err(status_of)
    }

    /// Makes the blocks unreadable until they are written.
    pub(super) fn make_unreadable(
        &mut self,
        queue: &QueuePair,
        slot: u16,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let it = &queue.slots[slot];
        let drive = port.drive(usize::from(it.drive));
        drive.spoil(it.offset, it.bytes.into());
        Ok(())
    }
}

impl Namespace {
    /// Reads blocks into `wire`, with the metadata that the command requests.
    pub(super) fn read(
        &self,
        sqe: &Sqe,
        wire: &mut [u8],
        metadata: &mut Vec<u8>,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let drive = port.drive(self.drive);
        let (block, size) = (self.block as usize, usize::from(self.metadata));
        let lba = self.in_drive(sqe.slba());
        let offset = lba * u64::from(self.block);
        if size == 0 {
            return drive.read(offset, wire).map_err(unread);
        }
        let plain = self.plain(sqe);
        let step = if plain { block } else { block + size };
        let blocks = wire.len() / step;
        metadata.clear();
        metadata.resize(blocks * size, 0);
        drive.read_metadata(lba, metadata).map_err(unread)?;
        self.protection.turn(metadata, size);
        let checks = self.checks(sqe);
        for (index, (piece, metadata)) in wire
            .chunks_exact_mut(step)
            .zip(metadata.chunks_exact(size))
            .enumerate()
        {
            let (data, rest) = piece.split_at_mut(block);
            let at = offset + (index * block) as u64;
            drive.read(at, data).map_err(unread)?;
            if self.protection.kind != 0 {
                self.protection
                    .check(&checks, index as u32, data, metadata)?;
            }
            rest.copy_from_slice(&metadata[..rest.len()]);
        }
        Ok(())
    }

    /// Writes blocks as they arrived on the wire. If protection information is wrong, nothing changes.
    pub(super) fn write(
        &self,
        sqe: &Sqe,
        wire: &[u8],
        fua: bool,
        metadata: &mut Vec<u8>,
        port: &mut Port<'_>,
    ) -> Result<(), Status> {
        let drive = port.drive(self.drive);
        let (block, size) = (self.block as usize, usize::from(self.metadata));
        let lba = self.in_drive(sqe.slba());
        let offset = lba * u64::from(self.block);
        let plain = self.plain(sqe);
        let step = if plain { block } else { block + size };
        let checks = self.checks(sqe);
        metadata.clear();
        metadata.resize(wire.len() / step * size, 0);
        for (index, (piece, metadata)) in wire
            .chunks_exact(step)
            .zip(metadata.chunks_exact_mut(size.max(1)))
            .enumerate()
        {
            let (data, rest) = piece.split_at(block);
            metadata[..rest.len()].copy_from_slice(rest);
            if self.protection.kind == 0 {
                continue;
            }
            if checks.act {
                self.protection.make(&checks, index as u32, data, metadata);
            } else {
                self.protection
                    .check(&checks, index as u32, data, metadata)?;
            }
        }
        for (index, piece) in wire.chunks_exact(step).enumerate() {
            let at = offset + (index * block) as u64;
            drive.write(at, &piece[..block], fua).map_err(status_of)?;
        }
        if size == 0 {
            return Ok(());
        }
        self.protection.turn(metadata, size);
        drive.write_metadata(lba, metadata).map_err(status_of)
    }
}
