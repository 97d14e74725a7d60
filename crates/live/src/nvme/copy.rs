//! Copy: copies ranges of blocks in sequence to a place in the namespace.
//!
//! The drive reads and writes each range as for a host, except that no data crosses the transport; the data is moved
//! when the write completes. Source and destination have the same format. Descriptor formats 0h and 1h copy within a
//! namespace, 2h and 3h also from others. Not supported: fast copies, and formats 4h and above. Source: NVM Command
//! Set Specification 1.0, chapter 3.2.2 (formats 0h and 1h, limits); 1.1, chapter 3.3.2 (2h and 3h).

use model::Op;

use super::io::Io;
use super::queue::QueuePair;
use super::subsystem::Namespace;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};
use crate::outbox::Outbox;
use crate::port::Port;

/// Supported descriptor formats, one bit each.
pub(super) const FORMATS: u16 = 0b1111;
/// Maximum number of ranges.
const RANGES: u32 = 128;
/// Dword 12: the controller generates or removes protection information.
const ACT: u32 = 1 << 29;
/// Source options: fail instead of reading and writing.
const FAST_ONLY: u16 = 1 << 15;

/// Copy limits of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CopyLimits {
    /// Maximum blocks of a range: one transfer.
    pub(super) range: u32,
    /// Maximum blocks of all ranges.
    pub(super) all: u32,
    /// Maximum number of ranges.
    pub(super) ranges: u32,
}

impl CopyLimits {
    pub(super) fn for_namespace(namespace: &Namespace) -> CopyLimits {
        let range = (namespace.max_transfer / namespace.block).clamp(1, 0xffff);
        CopyLimits {
            range,
            all: range * RANGES,
            ranges: RANGES,
        }
    }
}

/// Returns the number of ranges of a command, and the bytes of one range in its descriptor format.
pub(super) fn ranges(sqe: &Sqe) -> u32 {
    (sqe.cdw12.get() & 0xff) + 1
}

fn format(sqe: &Sqe) -> u32 {
    sqe.cdw12.get() >> 8 & 0xf
}

/// Returns the bytes of the list of ranges.
///
/// # Errors
/// [`Status::INVALID_FIELD`] for a format that is unknown, or not enabled by the host (feature 16h).
pub(super) fn list_bytes(sqe: &Sqe, enabled: u16) -> Result<u32, Status> {
    let format = format(sqe);
    if FORMATS >> format & 1 == 0 || (format >= 2 && enabled >> format & 1 == 0) {
        return Err(Status::INVALID_FIELD);
    }
    let each = if format & 1 == 0 { 32 } else { 40 };
    Ok(ranges(sqe) * each)
}

/// A range that is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Source {
    nsid: u32,
    slba: u64,
    blocks: u32,
    options: u16,
    /// Expected tags, as in a read: dwords 2, 3, 14 and 15.
    tags: [u32; 4],
}

impl Source {
    /// Returns the range with this number.
    fn decode(sqe: &Sqe, data: &[u8], index: u32) -> Option<Source> {
        let format = format(sqe);
        let each = if format & 1 == 0 { 32 } else { 40 };
        let bytes = data.get(index as usize * each..)?.get(..each)?;
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let wide = u64::from_le_bytes(*bytes[8..].first_chunk()?);
        // Tags are big endian here: four bytes, or ten.
        let mut expected = [0; 12];
        let tags = if format & 1 == 0 {
            &bytes[24..28]
        } else {
            &bytes[26..36]
        };
        expected[12 - tags.len()..].copy_from_slice(tags);
        let dword = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|step| expected[at + step]));
        let end = &bytes[each - 4..];
        let application = u32::from(u16::from_be_bytes([end[0], end[1]]));
        let mask = u32::from(u16::from_be_bytes([end[2], end[3]]));
        Some(Source {
            nsid: if format >= 2 {
                u32::from_le_bytes(*bytes.first_chunk()?)
            } else {
                sqe.nsid.get()
            },
            slba: wide,
            blocks: u32::from(short(16)) + 1,
            options: if format >= 2 { short(22) } else { 0 },
            tags: [dword(0), dword(4), dword(8), application | mask << 16],
        })
    }

    /// Returns the range as a read. Protection information is kept separate from the data or not, as in the write.
    fn read(&self, copy: &Sqe) -> Sqe {
        let checks = copy.cdw12.get() >> 12 & 0b111;
        Sqe {
            nsid: self.nsid.into(),
            cdw2: self.tags[0].into(),
            cdw3: self.tags[1].into(),
            cdw10: (self.slba as u32).into(),
            cdw11: ((self.slba >> 32) as u32).into(),
            cdw12: (checks << 26 | copy.cdw12.get() & ACT).into(),
            cdw14: self.tags[2].into(),
            cdw15: self.tags[3].into(),
            ..*copy
        }
    }
}

/// Returns the range as a write, `done` blocks after the first block of the destination.
fn write(copy: &Sqe, to: &Namespace, done: u32) -> Sqe {
    let slba = copy.slba() + u64::from(done);
    let mut write = Sqe {
        cdw10: (slba as u32).into(),
        cdw11: ((slba >> 32) as u32).into(),
        // Without descriptor format and number of ranges; PRINFO and FUA are kept.
        cdw12: (copy.cdw12.get() & 0x7c00_0000).into(),
        ..*copy
    };
    to.protection.advance(&mut write, done);
    write
}

/// Checks all ranges of a command; returns the first range that cannot be copied, and the reason.
fn check(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
) -> Result<(), (Status, u32)> {
    let all = |status| (status, 0);
    let destination = *target.active(controller, sqe.nsid.get()).map_err(all)?;
    let limits = CopyLimits::for_namespace(&destination);
    if ranges(sqe) > limits.ranges {
        return Err(all(Status::COMMAND_SIZE_LIMIT));
    }
    // Descriptors with long tags are for long guards, and only for them.
    if (format(sqe) & 1 == 1) != destination.protection.is_long() {
        return Err(all(Status::INVALID_NAMESPACE));
    }
    let mut sum = 0;
    for index in 0..ranges(sqe) {
        let source = Source::decode(sqe, data, index);
        let source = source.ok_or(all(Status::DATA_SGL_LENGTH_INVALID))?;
        let here = |status| (status, index);
        if source.options & FAST_ONLY != 0 {
            return Err(here(Status::FAST_COPY_NOT_POSSIBLE));
        }
        let from = *target.active(controller, source.nsid).map_err(here)?;
        if !from.copies_to(&destination) {
            return Err(here(Status::INCOMPATIBLE_NAMESPACE));
        }
        sum += source.blocks;
        if source.blocks > limits.range || sum > limits.all {
            return Err(here(Status::COMMAND_SIZE_LIMIT));
        }
        check_range(source.slba, source.blocks, &from).map_err(here)?;
    }
    check_range(sqe.slba(), sum, &destination).map_err(all)?;
    for index in 0..ranges(sqe) {
        let source = Source::decode(sqe, data, index);
        let overlaps = source.is_some_and(|it| {
            it.nsid == sqe.nsid.get()
                && it.slba < sqe.slba() + u64::from(sum)
                && sqe.slba() < it.slba + u64::from(it.blocks)
        });
        if overlaps {
            return Err((Status::OVERLAPPING_RANGE, index));
        }
    }
    Ok(())
}

fn check_range(slba: u64, blocks: u32, namespace: &Namespace) -> Result<(), Status> {
    let end = slba.checked_add(blocks.into());
    if end.is_none_or(|end| end > namespace.blocks) {
        return Err(Status::LBA_OUT_OF_RANGE);
    }
    Ok(())
}

impl Namespace {
    /// Checks that blocks can be copied from here to there unchanged, and that both namespaces are usable now.
    fn copies_to(&self, other: &Namespace) -> bool {
        let idle = |it: &Namespace| it.format.is_none() && !it.sanitizing;
        self.block == other.block
            && self.metadata == other.metadata
            && self.protection == other.protection
            && idle(self)
            && idle(other)
    }
}

impl Io {
    /// Continues a Copy: reads the next range.
    pub(super) fn copy(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let it = &queue.slots[slot];
        let (sqe, index) = (it.sqe, it.range);
        if index == 0 {
            let checked = {
                let target = &mut queue.shared.borrow_mut();
                check(target, queue.controller, &sqe, &it.data)
            };
            if let Err((status, dw0)) = checked {
                return queue.fail_with(slot, status, dw0, out);
            }
        }
        if index >= ranges(&sqe) {
            return queue.respond(slot, Status::SUCCESS, 0, out);
        }
        match self.copied_range(queue, slot) {
            Ok((source, from, _)) => {
                self.place(queue, slot, &from, source.slba, source.blocks);
                queue.slots[slot].copied = false;
                self.submit(queue, slot, Op::Read, port);
            }
            Err(status) => queue.fail_with(slot, status, index, out),
        }
    }

    /// Returns the range that is being copied, and both namespaces as they are now.
    fn copied_range(
        &self,
        queue: &QueuePair,
        slot: u16,
    ) -> Result<(Source, Namespace, Namespace), Status> {
        let it = &queue.slots[slot];
        let source = Source::decode(&it.sqe, &it.data, it.range);
        let source = source.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
        let mut shared = queue.shared.borrow_mut();
        let id = queue.controller;
        let from = *shared.active(id, source.nsid)?;
        let to = *shared.active(id, it.sqe.nsid.get())?;
        let end = it.sqe.slba() + it.done_in_range;
        // The namespaces may have been formatted meanwhile.
        if !from.copies_to(&to) {
            return Err(Status::INCOMPATIBLE_NAMESPACE);
        }
        check_range(source.slba, source.blocks, &from)?;
        check_range(end, source.blocks, &to)?;
        Ok((source, from, to))
    }

    fn place(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        namespace: &Namespace,
        lba: u64,
        blocks: u32,
    ) {
        let it = &mut queue.slots[slot];
        it.drive = namespace.drive as u16;
        it.offset = namespace.first + lba * u64::from(namespace.block);
        it.bytes = blocks * namespace.block;
    }

    /// Writes a range that has been read, or moves the data of a range that has been written.
    pub(super) fn copied(
        &mut self,
        queue: &mut QueuePair,
        slot: u16,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) {
        let (sqe, index) = (queue.slots[slot].sqe, queue.slots[slot].range);
        let (source, from, to) = match self.copied_range(queue, slot) {
            Ok(both) => both,
            Err(status) => return queue.fail_with(slot, status, index, out),
        };
        let done = queue.slots[slot].done_in_range;
        let lba = sqe.slba() + done;
        if !std::mem::replace(&mut queue.slots[slot].copied, true) {
            self.place(queue, slot, &to, lba, source.blocks);
            return self.submit(queue, slot, Op::Write, port);
        }
        let (read, write) = (source.read(&sqe), write(&sqe, &to, done as u32));
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        page.resize(from.wire_bytes(&read, source.blocks) as usize, 0);
        let fua = sqe.cdw12.get() & 1 << 30 != 0;
        let moved = from
            .read(&read, &mut page, &mut self.metadata, port)
            .and_then(|()| to.write(&write, &page, fua, &mut self.metadata, port));
        self.page = page;
        if let Err(status) = moved {
            return queue.fail_with(slot, status, index, out);
        }
        let it = &mut queue.slots[slot];
        it.range += 1;
        it.done_in_range += u64::from(source.blocks);
        self.copy(queue, slot, out, port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_read_as_the_specification_has_them() {
        let mut sqe = Sqe {
            nsid: 7.into(),
            ..Sqe::default()
        };
        let mut short = [0u8; 64];
        short[32] = 9;
        short[40..48].copy_from_slice(&0x1_0000_0002u64.to_le_bytes());
        short[48] = 4;
        short[56..64].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let expected = Source {
            nsid: 7,
            slba: 0x1_0000_0002,
            blocks: 5,
            options: 0,
            tags: [0, 0, 0x0102_0304, 0x0708_0506],
        };
        assert_eq!(Source::decode(&sqe, &short, 1), Some(expected));
        assert_eq!(Source::decode(&sqe, &short, 2), None);
        // 3h: another namespace, options, ten bytes of tags.
        sqe.cdw12 = (3u32 << 8).into();
        let mut long = [0u8; 40];
        (long[0], long[23]) = (9, 0x80);
        long[26..36].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let expected = Source {
            nsid: 9,
            slba: 0,
            blocks: 1,
            options: FAST_ONLY,
            tags: [0x0102, 0x0304_0506, 0x0708_090a, 0],
        };
        assert_eq!(Source::decode(&sqe, &long, 0), Some(expected));
        assert_eq!(list_bytes(&sqe, 0), Err(Status::INVALID_FIELD));
        assert_eq!(list_bytes(&sqe, 1 << 3), Ok(40));
    }
}
