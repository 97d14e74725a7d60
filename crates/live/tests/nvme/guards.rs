//! Formats with longer guards and storage tags, which no drive of the catalogue has.

use live::nvme::admin::opcode as admin;
use live::nvme::identify::ControllerData;
use live::nvme::io::opcode;
use live::nvme::wire::{Sgl, Sqe, Status};
use zerocopy::FromBytes;

use crate::full::full;
use crate::host::{Host, drive_with_all_formats, io};

const ACT: u32 = 1 << 29;
const GUARD: u32 = 1 << 28;
const REFERENCE: u32 = 1 << 26;
const STORAGE: u32 = 1 << 24;
/// Bytes of data; with metadata, sixteen more.
const BLOCK: usize = 4096;
const WHOLE: usize = 4112;

/// The formats, after the seven of the drive: 32-bit guard with a storage tag, 64-bit, 64-bit with a storage tag.
const FORMATS: [u32; 3] = [7, 8, 9];

/// Returns a host whose drive has this format and type of protection.
fn formatted(number: u32, kind: u32) -> (Host, usize, usize) {
    let mut host = Host::with(vec![drive_with_all_formats("p4800x-375")], full);
    let (line, queue) = host.both();
    let mut format = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    format.cdw10 = (number | 1 << 4 | kind << 5).into();
    host.well(line, &format, &[]);
    (host, line, queue)
}

/// Returns the storage tag 0x1234 if the format has one, above the reference tag: dwords 2 and 3.
fn storage(number: u32) -> [u32; 2] {
    match number {
        7 => [0x1234, 0],
        9 => [0, 0x1234],
        _ => [0, 0],
    }
}

fn tagged(number: u32, code: u8, lba: u64, blocks: u32, bytes: usize, flags: u32) -> Sqe {
    let mut sqe = io(code, 3, lba, blocks, Sgl::transport(bytes as u32));
    sqe.cdw12 = (sqe.cdw12.get() | flags).into();
    sqe.cdw14 = (lba as u32).into();
    let [cdw2, cdw3] = storage(number);
    (sqe.cdw2, sqe.cdw3) = (cdw2.into(), cdw3.into());
    sqe
}

#[test]
fn longer_guards_protect_data_and_tie_it_to_its_place() {
    for number in FORMATS {
        for kind in [1, 2, 3] {
            let (mut host, _, queue) = formatted(number, kind);
            let checks = GUARD | STORAGE | if kind == 3 { 0 } else { REFERENCE };
            let data: Vec<u8> = (0..BLOCK * 3).map(|index| (index / 7) as u8).collect();
            let sqe = tagged(number, opcode::WRITE, 40, 3, BLOCK * 3, ACT);
            host.well(queue, &sqe, &data);
            let back = tagged(number, opcode::READ, 40, 3, BLOCK * 3, ACT | checks);
            assert!(host.well(queue, &back, &[]) == data);
            let all = tagged(number, opcode::READ, 40, 3, WHOLE * 3, checks);
            let extended = host.well(queue, &all, &[]);
            let tail = &extended[WHOLE * 3 - 6..];
            let reference = if kind == 3 { 40 } else { 42 };
            let storage = if number == 9 { [0x12, 0x34] } else { [0, 0] };
            assert_eq!(tail, [storage[0], storage[1], 0, 0, 0, reference]);
            let verify = tagged(number, opcode::VERIFY, 40, 3, 0, checks);
            host.well(queue, &verify, &[]);
            // A changed byte of data, another place, another storage tag.
            let mut bad = extended.clone();
            bad[WHOLE + 9] ^= 1;
            let write = |lba| tagged(number, opcode::WRITE, lba, 3, WHOLE * 3, checks);
            assert_eq!(
                host.status(queue, &write(40), &bad),
                Status::GUARD_CHECK.code()
            );
            if kind != 3 {
                let status = host.status(queue, &write(41), &extended);
                assert_eq!(status, Status::REFERENCE_TAG_CHECK.code());
            }
            let mut other = all;
            (other.cdw2, other.cdw3) = (0.into(), 0.into());
            let status = host.status(queue, &other, &[]);
            let expected = match number {
                8 => 0,
                _ => Status::STORAGE_TAG_CHECK.code(),
            };
            assert_eq!(status, expected, "format {number}, type {kind}");
            // Never written: not checked.
            host.well(
                queue,
                &tagged(number, opcode::READ, 90, 1, WHOLE, checks),
                &[],
            );
        }
    }
}

#[test]
fn identify_tells_of_guards_and_storage_tags() {
    let (mut host, line, _) = formatted(9, 1);
    let page = host.identify(line, 1, 0);
    let data = ControllerData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!(data.ctratt.get() >> 15 & 1, 1);
    let page = host.identify(line, 5, 1);
    assert_eq!(
        (page[..4].to_vec(), page[8]),
        (vec![0xff, 0xff, 0, 0], 0b1100)
    );
    let formats: Vec<u32> = page[12..12 + 40]
        .chunks(4)
        .map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]))
        .collect();
    assert_eq!(formats[..7], [0; 7], "the drive's own");
    assert_eq!(formats[7..], [16 | 1 << 7, 2 << 7, 16 | 3 << 7 | 2 << 9]);
}

#[test]
fn protected_blocks_are_copied_with_tags_of_their_new_place() {
    let (mut host, _, queue) = formatted(8, 1);
    let data = vec![7; BLOCK * 2];
    let sqe = tagged(8, opcode::WRITE, 40, 2, BLOCK * 2, ACT);
    host.well(queue, &sqe, &data);
    // Two ranges of one block each, with the expected reference tags.
    let mut list = [0; 80];
    (list[8], list[35], list[48], list[75]) = (40, 40, 41, 41);
    let mut copy = io(opcode::COPY, 4, 10, 1, Sgl::in_capsule(80));
    // Checked when read, and generated again when written, with the reference tag of the destination.
    copy.cdw12 = (1u32 | 1 << 8 | 0b101 << 12 | ACT).into();
    copy.cdw14 = 10.into();
    host.well(queue, &copy, &list);
    let read = tagged(8, opcode::READ, 10, 2, BLOCK * 2, ACT | GUARD | REFERENCE);
    assert!(host.well(queue, &read, &[]) == data);
    // A tag that differs from the source's; the short descriptors are not for this guard.
    list[35] = 41;
    assert_eq!(
        host.status(queue, &copy, &list),
        Status::REFERENCE_TAG_CHECK.code()
    );
    copy.cdw12 = 0.into();
    let status = host.status(queue, &copy, &list);
    assert_eq!(status, Status::INVALID_NAMESPACE.code());
}
