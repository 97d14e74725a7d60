//! Get LBA Status, and the log page with the namespaces that have blocks that cannot be read.
//!
//! All unreadable blocks are known without accessing the medium (Write Uncorrectable or a fault made them unreadable),
//! so both actions give the same answer. Not supported: allocated blocks (action 02h). Source: NVM Command Set
//! Specification 1.0, chapters 4.2.1 (command) and 4.1.4.5 (log page 0Eh).

use super::facts::Drives;
use super::subsystem::{Namespace, Subsystem};
use super::wire::{Sqe, Status};

/// Action: check the medium too.
const SCAN: u32 = 0x10;
/// Action: known blocks only.
const TRACKED: u32 = 0x11;
/// Bytes of the header, and of each range.
const HEAD: usize = 8;
const RANGE: usize = 16;

/// Returns the part of byte ranges that is in a namespace, as first block and number of blocks.
fn blocks(namespace: &Namespace, unreadable: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let block = u64::from(namespace.block);
    let end = namespace.first + namespace.blocks * block;
    let inside = unreadable.iter().filter_map(|&(start, stop)| {
        let (start, stop) = (start.max(namespace.first), stop.min(end));
        (start < stop).then(|| {
            let first = (start - namespace.first) / block;
            (first, (stop - namespace.first).div_ceil(block) - first)
        })
    });
    inside.collect()
}

/// Returns the answer: unreadable blocks starting with the first requested block.
fn answer(sqe: &Sqe, all: u64, ranges: &[(u64, u64)], most: usize) -> Result<Vec<u8>, Status> {
    let (slba, length) = (sqe.slba(), u64::from(sqe.cdw13.get() & 0xffff));
    if !matches!(sqe.cdw13.get() >> 24, SCAN | TRACKED) {
        return Err(Status::INVALID_FIELD);
    }
    // Length 0 means up to the end of the namespace.
    let end = if length == 0 {
        all
    } else {
        slba.saturating_add(length)
    };
    if slba >= all || end > all {
        return Err(Status::LBA_OUT_OF_RANGE);
    }
    let wanted = (sqe.cdw12.get() as usize).saturating_add(1);
    let bytes = wanted.saturating_mul(4).min(most);
    let room = bytes.saturating_sub(HEAD) / RANGE;
    let met = ranges.iter().filter_map(|&(first, count)| {
        let (start, stop) = (first.max(slba), (first + count).min(end));
        (start < stop).then(|| (start, stop - start))
    });
    let met: Vec<(u64, u64)> = met.collect();
    let told = met.len().min(room);
    let mut page = Vec::with_capacity(bytes.max(HEAD));
    page.extend_from_slice(&(told as u32).to_le_bytes());
    // Completion condition: 1 no space for more, 2 all reported.
    page.extend_from_slice(&[if told < met.len() { 1 } else { 2 }, 0, 0, 0]);
    for &(first, count) in &met[..told] {
        page.extend_from_slice(&first.to_le_bytes());
        page.extend_from_slice(&(count.min(u32::MAX.into()) as u32).to_le_bytes());
        page.extend_from_slice(&[0; 4]);
    }
    page.resize(bytes, 0);
    Ok(page)
}

/// Executes Get LBA Status for a namespace, with at most `most` bytes.
pub(super) fn command(
    namespace: &Namespace,
    sqe: &Sqe,
    most: usize,
    drives: &mut dyn Drives,
) -> Result<Vec<u8>, Status> {
    let ranges = blocks(namespace, &drives.unreadable(namespace.drive));
    answer(sqe, namespace.blocks, &ranges, most)
}

/// Returns the log page, with an element for each namespace that has unreadable blocks.
pub(super) fn page(subsystem: &Subsystem, drives: &mut dyn Drives) -> Vec<u8> {
    let (mut elements, mut body, mut sum) = (0u32, Vec::new(), 0u64);
    for (nsid, namespace) in subsystem.present() {
        let ranges = blocks(namespace, &drives.unreadable(namespace.drive));
        if ranges.is_empty() {
            continue;
        }
        elements += 1;
        body.extend_from_slice(&nsid.to_le_bytes());
        body.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
        body.extend_from_slice(&[TRACKED as u8, 0, 0, 0, 0, 0, 0, 0]);
        for (first, count) in ranges {
            sum += count;
            body.extend_from_slice(&first.to_le_bytes());
            body.extend_from_slice(&(count.min(u32::MAX.into()) as u32).to_le_bytes());
            body.extend_from_slice(&[0; 4]);
        }
    }
    let mut page = Vec::with_capacity(16 + body.len());
    page.extend_from_slice(&(16 + body.len() as u32).to_le_bytes());
    page.extend_from_slice(&elements.to_le_bytes());
    page.extend_from_slice(&(sum.min(u32::MAX.into()) as u32).to_le_bytes());
    page.extend_from_slice(&[0; 2]);
    page.extend_from_slice(&generation(subsystem, drives).to_le_bytes());
    page.extend_from_slice(&body);
    page
}

/// Returns a counter that changes with the log page.
pub(super) fn generation(subsystem: &Subsystem, drives: &mut dyn Drives) -> u16 {
    let all = subsystem.options.drives.iter();
    all.fold(0, |sum: u16, &drive| {
        sum.wrapping_add(drives.unreadable_changes(drive))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(slba: u64, length: u32, dwords: u32, action: u32) -> Sqe {
        Sqe {
            cdw10: (slba as u32).into(),
            cdw12: (dwords - 1).into(),
            cdw13: (length | action << 24).into(),
            ..Sqe::default()
        }
    }

    #[test]
    fn ranges_are_cut_to_what_is_asked_for_and_to_the_room_there_is() {
        let ranges = [(4, 4), (10, 1), (90, 20)];
        let ask = |slba, length, dwords, action| {
            answer(&asked(slba, length, dwords, action), 100, &ranges, 4096)
        };
        let page = ask(6, 0, 64, TRACKED).expect("an answer");
        assert_eq!((page.len(), page[0], page[4]), (256, 3, 2));
        assert_eq!((page[8], page[16]), (6, 2), "the rest of the first");
        assert_eq!((page[40], page[48]), (90, 10), "up to the end");
        assert_eq!(ask(6, 0, 64, SCAN).expect("an answer"), page);
        let page = ask(0, 12, 6, TRACKED).expect("an answer");
        assert_eq!((page.len(), page[0], page[4]), (24, 1, 1), "there is more");
        let page = ask(0, 4, 2, TRACKED).expect("an answer");
        assert_eq!(page, [0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(ask(100, 0, 2, TRACKED), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(ask(99, 2, 2, TRACKED), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(ask(0, 0, 2, 0x12), Err(Status::INVALID_FIELD));
    }
}
