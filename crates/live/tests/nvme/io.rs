//! Commands of I/O queues.

use live::nvme::io::opcode;
use live::nvme::log;
use live::nvme::wire::{Sgl, Sqe, Status};
use proptest::prelude::*;

use crate::host::{BYTES, Host, drive, io};

const BLOCKS: u64 = BYTES / 512;

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u8).wrapping_mul(31) ^ seed)
        .collect()
}

fn write(cid: u16, lba: u64, data: &[u8]) -> Sqe {
    let length = data.len() as u32;
    let sgl = if length <= 8192 {
        Sgl::in_capsule(length)
    } else {
        Sgl::transport(length)
    };
    io(opcode::WRITE, cid, lba, length / 512, sgl)
}

fn read(cid: u16, lba: u64, bytes: u32) -> Sqe {
    io(opcode::READ, cid, lba, bytes / 512, Sgl::transport(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Written data is read back, in capsules or by R2T, with any digests, however the bytes are split.
    #[test]
    fn what_is_written_is_read(
        digests in 0u8..4,
        piece in prop_oneof![Just(1usize), 2usize..200, Just(usize::MAX)],
        blocks in 1usize..=256,
        lba in 0..BLOCKS - 256,
        seed: u8,
    ) {
        let blocks = if piece < 200 { blocks.min(40) } else { blocks };
        let mut host = Host::new(vec![drive("p4800x-375")]);
        let (_, controller) = host.admin(digests, piece);
        let line = host.io(controller, digests, piece);
        let data = pattern(blocks * 512, seed);
        host.well(line, &write(3, lba, &data), &data);
        let back = host.well(line, &read(4, lba, data.len() as u32), &[]);
        prop_assert!(back == data);
        let beside = host.well(line, &read(4, lba + blocks as u64, 512), &[]);
        prop_assert!(beside.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn many_commands_at_a_time_are_answered_each_once() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    for cid in 0..31u16 {
        let data = pattern(4096, cid as u8);
        host.send(line, &write(cid, u64::from(cid) * 8, &data), &data);
    }
    host.talk(line).expect("goes on");
    for cid in 0..31 {
        let completed = host.completion(line, cid).expect("an answer");
        assert_eq!(completed.cqe.status(), Status::SUCCESS);
        host.send(line, &read(cid, u64::from(cid) * 8, 4096), &[]);
    }
    host.talk(line).expect("goes on");
    for cid in 0..31 {
        let completed = host.completion(line, cid).expect("an answer");
        assert_eq!(completed.data, pattern(4096, cid as u8));
        assert!(host.completion(line, cid).is_none());
    }
}

#[test]
fn refusals_have_the_status_that_says_why() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (admin, line) = host.both();
    let mut check = |sqe: &Sqe, payload: &[u8], wanted: Status| {
        assert_eq!(host.status(line, sqe, payload), wanted.code(), "{wanted:?}");
    };
    check(&read(1, BLOCKS - 1, 512), &[], Status::SUCCESS);
    check(&read(1, BLOCKS, 512), &[], Status::LBA_OUT_OF_RANGE);
    check(&read(1, BLOCKS - 1, 1024), &[], Status::LBA_OUT_OF_RANGE);
    check(&read(1, u64::MAX, 512), &[], Status::LBA_OUT_OF_RANGE);
    let other = Sqe {
        nsid: 2.into(),
        ..read(1, 0, 512)
    };
    check(&other, &[], Status::INVALID_NAMESPACE);
    // Exceeds the drive's maximum for a command.
    check(&read(1, 0, 128 << 10), &[], Status::SUCCESS);
    check(&read(1, 0, (128 << 10) + 512), &[], Status::INVALID_FIELD);
    let short = io(opcode::READ, 1, 0, 2, Sgl::transport(512));
    check(&short, &[], Status::DATA_SGL_LENGTH_INVALID);
    let data = [1; 1024];
    let long = io(opcode::WRITE, 1, 0, 1, Sgl::in_capsule(1024));
    check(&long, &data, Status::DATA_SGL_LENGTH_INVALID);
    check(
        &Sqe::fabric(0x77, 1, 1, Sgl::default()),
        &[],
        Status::INVALID_OPCODE,
    );
    // Protection information on a namespace without it.
    let mut protected = read(1, 0, 512);
    protected.cdw12 = (1u32 << 29).into();
    check(&protected, &[], Status::INVALID_PROTECTION);
    let mut odd = read(1, 0, 512);
    odd.sgl.kind = 0x20;
    check(&odd, &[], Status::SGL_TYPE_INVALID);
    // All of these are in the error log, the newest first.
    let page = host.log(admin, log::ERRORS, 64 * 64);
    assert_eq!(
        page[12..14],
        (Status::SGL_TYPE_INVALID.field() << 1).to_le_bytes()
    );
    assert_eq!(page[0], 10);
}

#[test]
fn compare_verify_zeroes_and_flush() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    let data = pattern(4096, 9);
    host.well(line, &write(1, 16, &data), &data);
    let compare = io(opcode::COMPARE, 1, 16, 8, Sgl::in_capsule(4096));
    assert_eq!(host.status(line, &compare, &data), 0);
    let mut other = data.clone();
    other[4095] ^= 1;
    assert_eq!(
        host.status(line, &compare, &other),
        Status::COMPARE_FAILURE.code()
    );
    host.well(line, &io(opcode::VERIFY, 1, 16, 8, Sgl::default()), &[]);
    host.well(
        line,
        &io(opcode::WRITE_ZEROES, 1, 17, 2, Sgl::default()),
        &[],
    );
    let back = host.well(line, &read(1, 16, 4096), &[]);
    assert!(back[..512] == data[..512] && back[1536..] == data[1536..]);
    assert!(back[512..1536].iter().all(|&byte| byte == 0));
    host.well(line, &Sqe::fabric(opcode::FLUSH, 1, 1, Sgl::default()), &[]);
    host.well(
        line,
        &Sqe::fabric(opcode::FLUSH, 1, u32::MAX, Sgl::default()),
        &[],
    );
}

fn ranges(all: &[(u64, u32)]) -> Vec<u8> {
    let bytes = all.iter().flat_map(|&(first, blocks)| {
        let mut range = [0; 16];
        range[4..8].copy_from_slice(&blocks.to_le_bytes());
        range[8..].copy_from_slice(&first.to_le_bytes());
        range
    });
    bytes.collect()
}

fn dataset(all: &[(u64, u32)], deallocate: bool) -> (Sqe, Vec<u8>) {
    let data = ranges(all);
    let mut sqe = Sqe::fabric(opcode::DATASET, 1, 1, Sgl::in_capsule(data.len() as u32));
    sqe.cdw10 = (all.len() as u32 - 1).into();
    sqe.cdw11 = (u32::from(deallocate) << 2).into();
    (sqe, data)
}

#[test]
fn deallocated_ranges_read_as_zeroes() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    let data = pattern(8192, 5);
    host.well(line, &write(1, 0, &data), &data);
    let (hint, bytes) = dataset(&[(0, 16)], false);
    host.well(line, &hint, &bytes);
    assert!(host.well(line, &read(1, 0, 8192), &[]) == data);
    let (sqe, bytes) = dataset(&[(0, 1), (4, 0), (8, 4)], true);
    host.well(line, &sqe, &bytes);
    let back = host.well(line, &read(1, 0, 8192), &[]);
    let zero = |range: std::ops::Range<usize>| back[range].iter().all(|&byte| byte == 0);
    assert!(zero(0..512) && zero(4096..6144));
    assert!(back[512..4096] == data[512..4096] && back[6144..] == data[6144..]);
    // One invalid range: nothing happens.
    let (sqe, bytes) = dataset(&[(1, 1), (BLOCKS, 1)], true);
    assert_eq!(
        host.status(line, &sqe, &bytes),
        Status::LBA_OUT_OF_RANGE.code()
    );
    assert!(host.well(line, &read(1, 1, 512), &[]) == data[512..1024]);
}

#[test]
fn what_was_made_unreadable_is_so_until_it_is_written() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    host.well(
        line,
        &io(opcode::WRITE_UNCORRECTABLE, 1, 8, 8, Sgl::default()),
        &[],
    );
    assert_eq!(
        host.status(line, &read(1, 0, 8192), &[]),
        Status::UNRECOVERED_READ.code()
    );
    let verify = io(opcode::VERIFY, 1, 15, 1, Sgl::default());
    assert_eq!(
        host.status(line, &verify, &[]),
        Status::UNRECOVERED_READ.code()
    );
    host.well(line, &read(1, 0, 4096), &[]);
    let data = pattern(4096, 1);
    host.well(line, &write(1, 8, &data), &data);
    assert!(host.well(line, &read(1, 8, 4096), &[]) == data);
}

/// Compare and write as one command, for a lock on a shared disk.
fn fused(host: &mut Host, line: usize, expected: &[u8], new: &[u8]) -> (u16, u16) {
    let mut compare = io(opcode::COMPARE, 1, 0, 1, Sgl::in_capsule(512));
    compare.flags |= Sqe::FUSED_FIRST;
    let mut write = io(opcode::WRITE, 2, 0, 1, Sgl::in_capsule(512));
    write.flags |= Sqe::FUSED_SECOND;
    host.send(line, &compare, expected);
    host.send(line, &write, new);
    host.talk(line).expect("goes on");
    let code = |it: live::nvme::initiator::CompletedCommand| it.cqe.status().code();
    let first = host.completion(line, 1).map(code).expect("an answer");
    let second = host.completion(line, 2).map(code).expect("an answer");
    (first, second)
}

#[test]
fn compare_and_write_fused() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    let (old, new) = ([0; 512], [1; 512]);
    assert_eq!(fused(&mut host, line, &old, &new), (0, 0));
    let failed = (
        Status::COMPARE_FAILURE.code(),
        Status::ABORTED_FAILED_FUSED.code(),
    );
    assert_eq!(fused(&mut host, line, &old, &[2; 512]), failed);
    assert_eq!(host.well(line, &read(3, 0, 512), &[]), new);
    // One command of the pair without the other.
    let mut alone = io(opcode::COMPARE, 1, 0, 1, Sgl::in_capsule(512));
    alone.flags |= Sqe::FUSED_FIRST;
    host.send(line, &alone, &new);
    host.talk(line).expect("goes on");
    assert!(
        host.completion(line, 1).is_none(),
        "it waits for its second"
    );
    host.well(line, &read(3, 0, 512), &[]);
    let first = host.completion(line, 1).expect("an answer").cqe.status();
    assert_eq!(first, Status::ABORTED_MISSING_FUSED);
    let mut second = write(2, 0, &[3; 512]);
    second.flags |= Sqe::FUSED_SECOND;
    let status = host.status(line, &second, &[3; 512]);
    assert_eq!(status, Status::ABORTED_MISSING_FUSED.code());
    assert_eq!(host.well(line, &read(3, 0, 512), &[]), new);
}
