//! Formats with metadata and protection information, passed through and stripped; Format NVM and Sanitize.

use live::nvme::NvmeOptions;
use live::nvme::admin::opcode as admin;
use live::nvme::identify::NamespaceData;
use live::nvme::io::opcode;
use live::nvme::log;
use live::nvme::protection::{Checks, Protection};
use live::nvme::wire::{Sgl, Sqe, Status};
use zerocopy::FromBytes;

use crate::host::{BYTES, Host, drive, io};

/// Metadata is transferred with the data.
const EXTENDED: u32 = 1 << 4;
const ACT: u32 = 1 << 29;
const GUARD: u32 = 1 << 28;
const REFERENCE: u32 = 1 << 26;

fn format(number: u32, kind: u32, first: bool) -> Sqe {
    let mut sqe = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    sqe.cdw10 = (number | EXTENDED | kind << 5 | u32::from(first) << 8).into();
    sqe
}

fn namespace(host: &mut Host, line: usize) -> NamespaceData {
    let page = host.identify(line, 0, 1);
    NamespaceData::read_from_bytes(&page).expect("4096 bytes")
}

/// Returns a command with its protection information fields.
fn protected(code: u8, lba: u64, blocks: u32, bytes: u32, flags: u32) -> Sqe {
    let sgl = match code {
        opcode::READ => Sgl::transport(bytes),
        _ if bytes <= 8192 => Sgl::in_capsule(bytes),
        _ => Sgl::transport(bytes),
    };
    let mut sqe = io(code, 3, lba, blocks, sgl);
    sqe.cdw12 = (sqe.cdw12.get() | flags).into();
    sqe.cdw14 = (lba as u32).into();
    sqe
}

#[test]
fn a_format_changes_the_blocks_and_forgets_the_data() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, queue) = host.both();
    host.well(
        queue,
        &io(opcode::WRITE, 1, 0, 8, Sgl::in_capsule(4096)),
        &[7; 4096],
    );
    host.well(line, &format(3, 0, false), &[]);
    let now = namespace(&mut host, line);
    assert_eq!((now.flbas, now.nsze.get()), (3, BYTES / 4096));
    let back = host.well(queue, &io(opcode::READ, 1, 0, 1, Sgl::transport(4096)), &[]);
    assert!(back.iter().all(|&byte| byte == 0));
    let beyond = io(opcode::READ, 1, BYTES / 4096, 1, Sgl::transport(4096));
    assert_eq!(
        host.status(queue, &beyond, &[]),
        Status::LBA_OUT_OF_RANGE.code()
    );
    for (wrong, why) in [
        (format(7, 0, false), Status::INVALID_FORMAT),
        (format(0, 1, false), Status::INVALID_FORMAT),
        (format(0, 4, false), Status::INVALID_FIELD),
    ] {
        assert_eq!(host.status(line, &wrong, &[]), why.code());
    }
    let separate = Sqe {
        cdw10: 1.into(),
        ..format(1, 0, false)
    };
    assert_eq!(
        host.status(line, &separate, &[]),
        Status::INVALID_FORMAT.code()
    );
    let nowhere = Sqe {
        nsid: 5.into(),
        ..format(0, 0, false)
    };
    assert_eq!(
        host.status(line, &nowhere, &[]),
        Status::INVALID_NAMESPACE.code()
    );
}

#[test]
fn metadata_goes_with_the_data() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, queue) = host.both();
    host.well(line, &format(2, 0, false), &[]);
    assert_eq!(namespace(&mut host, line).flbas, 2 | 1 << 4);
    let data: Vec<u8> = (0..528 * 3).map(|index| index as u8).collect();
    host.well(queue, &protected(opcode::WRITE, 5, 3, 528 * 3, 0), &data);
    let back = host.well(queue, &protected(opcode::READ, 4, 5, 528 * 5, 0), &[]);
    assert!(back[528..528 * 4] == data);
    assert!(back[..528].iter().all(|&byte| byte == 0));
    let compare = protected(opcode::COMPARE, 5, 3, 528 * 3, 0);
    assert_eq!(host.status(queue, &compare, &data), 0);
    let plain = io(opcode::READ, 1, 0, 1, Sgl::transport(512));
    assert_eq!(
        host.status(queue, &plain, &[]),
        Status::DATA_SGL_LENGTH_INVALID.code()
    );
}

#[test]
fn protection_information_of_each_type() {
    for (number, block, metadata) in [
        (1u32, 512usize, 8usize),
        (2, 512, 16),
        (4, 4096, 8),
        (5, 4096, 64),
    ] {
        for (kind, first) in [(1, false), (2, true), (3, false), (1, true)] {
            let mut host = Host::new(vec![drive("p4800x-375")]);
            let (line, queue) = host.both();
            host.well(line, &format(number, kind, first), &[]);
            assert_eq!(
                namespace(&mut host, line).dps,
                kind as u8 | u8::from(first) << 3
            );
            one_format(
                &mut host,
                queue,
                block,
                metadata,
                Protection {
                    kind: kind as u8,
                    first,
                    ..Protection::default()
                },
            );
        }
    }
}

fn one_format(
    host: &mut Host,
    queue: usize,
    block: usize,
    metadata: usize,
    protection: Protection,
) {
    let whole = block + metadata;
    let checks = GUARD | if protection.kind == 3 { 0 } else { REFERENCE };
    let data: Vec<u8> = (0..block * 2).map(|index| (index / 3) as u8).collect();
    // The controller generates it: with eight bytes of metadata, only the data is transferred.
    let moves = if metadata == 8 { block } else { whole };
    let mut sent = Vec::new();
    for index in 0..2 {
        sent.extend_from_slice(&data[index * block..(index + 1) * block]);
        sent.resize(sent.len() + moves - block, 9);
    }
    let lba = 40;
    host.well(
        queue,
        &protected(opcode::WRITE, lba, 2, sent.len() as u32, ACT),
        &sent,
    );
    let read = protected(opcode::READ, lba, 2, 2 * whole as u32, checks);
    let back = host.well(queue, &read, &[]);
    for index in 0..2 {
        let one = &back[index * whole..(index + 1) * whole];
        assert!(one[..block] == data[index * block..(index + 1) * block]);
        let all = Checks {
            guard: true,
            reference: true,
            tags: lba.into(),
            ..Checks::default()
        };
        let checked = protection.check(&all, index as u32, &one[..block], &one[block..]);
        assert_eq!(checked, Ok(()));
    }
    let again = host.well(
        queue,
        &protected(opcode::READ, lba, 2, moves as u32 * 2, ACT | checks),
        &[],
    );
    assert!(again[..block] == data[..block]);
    host.well(queue, &protected(opcode::VERIFY, lba, 2, 0, checks), &[]);
    // The host generates wrong protection information: nothing is written.
    let mut bad = back.clone();
    bad[whole] ^= 1;
    let write = protected(opcode::WRITE, lba, 2, bad.len() as u32, checks);
    assert_eq!(host.status(queue, &write, &bad), Status::GUARD_CHECK.code());
    assert!(host.well(queue, &read, &[]) == back);
    // The host generates it for another block.
    if protection.kind != 3 {
        let other = protected(opcode::WRITE, lba + 1, 2, back.len() as u32, checks);
        let status = host.status(queue, &other, &back);
        assert_eq!(status, Status::REFERENCE_TAG_CHECK.code());
    }
    // Without checks it is written, and the error is detected by a read.
    host.well(
        queue,
        &protected(opcode::WRITE, lba, 2, bad.len() as u32, 0),
        &bad,
    );
    assert_eq!(host.status(queue, &read, &[]), Status::GUARD_CHECK.code());
    let verify = protected(opcode::VERIFY, lba, 2, 0, checks);
    assert_eq!(host.status(queue, &verify, &[]), Status::GUARD_CHECK.code());
    // Blocks that were never written, or are deallocated, are not checked.
    host.well(
        queue,
        &protected(opcode::READ, lba + 9, 2, 2 * whole as u32, checks),
        &[],
    );
    host.well(queue, &protected(opcode::WRITE_ZEROES, lba, 2, 0, 0), &[]);
    let zeroes = host.well(queue, &read, &[]);
    assert!(zeroes[..block].iter().all(|&byte| byte == 0));
    host.well(queue, &protected(opcode::WRITE_ZEROES, lba, 2, 0, ACT), &[]);
    let made = host.well(queue, &read, &[]);
    assert_ne!(made[block..whole], zeroes[block..whole]);
}

fn strip(options: &mut NvmeOptions) {
    options.strip_metadata = true;
}

#[test]
fn stripped_metadata_is_not_seen_and_protects_all_the_same() {
    let mut host = Host::with(vec![drive("p4800x-375")], strip);
    let (line, queue) = host.both();
    host.well(line, &format(1, 1, false), &[]);
    let now = namespace(&mut host, line);
    let in_use = now.lbaf[usize::from(now.flbas & 0xf)];
    assert_eq!(
        (now.flbas >> 4, now.dps, now.mc, in_use.ms.get()),
        (0, 0, 0, 0)
    );
    let data: Vec<u8> = (0..4096u32).map(|index| (index * 7) as u8).collect();
    host.well(
        queue,
        &io(opcode::WRITE, 1, 3, 8, Sgl::in_capsule(4096)),
        &data,
    );
    let back = host.well(
        queue,
        &io(opcode::READ, 1, 2, 10, Sgl::transport(5120)),
        &[],
    );
    assert!(back[512..4608] == data && back[..512] == [0; 512]);
    host.well(queue, &io(opcode::VERIFY, 1, 0, 16, Sgl::default()), &[]);
}

#[test]
fn a_sanitize_forgets_everything() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, queue) = host.both();
    host.well(
        queue,
        &io(opcode::WRITE, 1, 0, 8, Sgl::in_capsule(4096)),
        &[7; 4096],
    );
    let mut sanitize = Sqe::fabric(admin::SANITIZE, 1, 0, Sgl::default());
    sanitize.cdw10 = 2.into();
    host.well(line, &sanitize, &[]);
    host.tick(line).expect("goes on");
    let page = host.log(line, log::SANITIZE, 512);
    assert_eq!(page[..4], [0xff, 0xff, 1, 0], "done");
    let back = host.well(queue, &io(opcode::READ, 1, 0, 8, Sgl::transport(4096)), &[]);
    assert!(back.iter().all(|&byte| byte == 0));
    sanitize.cdw10 = 3.into();
    assert_eq!(
        host.status(line, &sanitize, &[]),
        Status::INVALID_FIELD.code()
    );
}
