//! Functions offered on request, whether or not the drive has them: self-test, persistent events, Copy.

use live::nvme::NvmeOptions;
use live::nvme::admin::opcode as admin;
use live::nvme::controller::property;
use live::nvme::features::feature;
use live::nvme::identify::{ControllerData, NamespaceData};
use live::nvme::initiator::property_set;
use live::nvme::io::opcode;
use live::nvme::log;
use live::nvme::wire::{Sgl, Sqe, Status};
use zerocopy::FromBytes;

use crate::host::{BYTES, ENABLE, Host, drive, get_log, io};

pub(crate) fn full(options: &mut NvmeOptions) {
    options.full = true;
}

fn test(code: u32, nsid: u32) -> Sqe {
    let mut sqe = Sqe::fabric(admin::SELF_TEST, 1, nsid, Sgl::default());
    sqe.cdw10 = code.into();
    sqe
}

#[test]
fn a_drive_offers_what_it_has_unless_asked_for_more() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, queue) = host.both();
    let data = |host: &mut Host| {
        let page = host.identify(line, 1, 0);
        ControllerData::read_from_bytes(&page).expect("4096 bytes")
    };
    let plain = data(&mut host);
    assert_eq!(
        (plain.oacs.get(), plain.oncs.get() >> 8, plain.lpa),
        (0x202, 0, 6)
    );
    let copy = io(opcode::COPY, 1, 0, 1, Sgl::in_capsule(32));
    let nothing = Status::INVALID_OPCODE.code();
    assert_eq!(host.status(queue, &copy, &[0; 32]), nothing);
    assert_eq!(host.status(line, &test(1, 1), &[]), nothing);
    let page = get_log(log::PERSISTENT, 512, 0);
    assert_eq!(
        host.status(line, &page, &[]),
        Status::INVALID_LOG_PAGE.code()
    );
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, _) = host.admin(0, usize::MAX);
    let page = host.identify(line, 1, 0);
    let more = ControllerData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!(
        (more.oacs.get(), more.oncs.get() >> 8, more.lpa),
        (0x21a, 1, 0x16)
    );
    assert_eq!((more.ocfs.get(), more.dsto, more.nn.get()), (15, 1, 16));
    assert_eq!((more.tnvmcap[0].get(), more.unvmcap[0].get()), (BYTES, 0));
    let page = host.identify(line, 0, 1);
    let namespace = NamespaceData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!(
        (namespace.mssrl.get(), namespace.mcl.get(), namespace.msrc),
        (256, 256 * 128, 127)
    );
}

#[test]
fn self_tests_leave_results() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, queue) = host.both();
    let unused = host.log(line, log::SELF_TEST, 564);
    assert!(unused[4..].chunks(28).all(|result| result[0] == 0xf));
    // Without a clock, a test ends at once.
    host.well(line, &test(1, 1), &[]);
    host.well(line, &test(2, u32::MAX), &[]);
    let page = host.log(line, log::SELF_TEST, 564);
    assert_eq!((page[0], page[4], page[32], page[60]), (0, 0x20, 0x10, 0xf));
    assert_eq!(
        (&page[16..20], &page[44..48]),
        (&[0xff; 4][..], &[1, 0, 0, 0][..])
    );
    // The test that reads the medium finds an unreadable block.
    host.well(
        queue,
        &io(opcode::WRITE_UNCORRECTABLE, 1, 77, 3, Sgl::default()),
        &[],
    );
    host.well(line, &test(1, u32::MAX), &[]);
    host.well(line, &test(2, u32::MAX), &[]);
    let page = host.log(line, log::SELF_TEST, 60);
    assert_eq!((page[32], page[4], page[5], page[6]), (0x10, 0x27, 7, 0xf));
    assert_eq!((page[16], page[20], page[28], page[29]), (1, 77, 2, 0x81));
    for _ in 0..30 {
        host.well(line, &test(1, 0), &[]);
    }
    let page = host.log(line, log::SELF_TEST, 564);
    assert!(
        page[4..].chunks(28).all(|result| result[0] == 0x10),
        "the newest twenty"
    );
    let invalid = Status::INVALID_FIELD.code();
    assert_eq!(host.status(line, &test(3, 1), &[]), invalid);
    assert_eq!(
        host.status(line, &test(1, 2), &[]),
        invalid,
        "no such namespace"
    );
    assert_eq!(host.status(line, &test(0xf, 1), &[]), 0, "nothing to abort");
}

#[test]
fn self_tests_take_their_time_and_can_be_ended_before() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, _) = host.admin(0, usize::MAX);
    host.at_speed(line, 1.0);
    let page = |host: &mut Host| host.log(line, log::SELF_TEST, 32);
    host.well(line, &test(1, u32::MAX), &[]);
    assert_eq!(page(&mut host)[..2], [1, 0], "under way");
    let busy = Status::SELF_TEST_IN_PROGRESS.code();
    assert_eq!(host.status(line, &test(2, u32::MAX), &[]), busy);
    host.well(line, &test(0xf, 0), &[]);
    assert_eq!(page(&mut host)[..5], [0, 0, 0, 0, 0x11], "by a command");
    // A reset ends the short test, but not the extended one; a format ends the extended one.
    for (code, after, result) in [(1, 0, 0x12), (2, 2, 0x12)] {
        host.well(line, &test(code, u32::MAX), &[]);
        host.well(line, &property_set(1, property::CC, 0), &[]);
        host.well(line, &property_set(1, property::CC, ENABLE), &[]);
        let page = page(&mut host);
        assert_eq!((page[0], page[4]), (after, result));
    }
    let mut format = Sqe::fabric(admin::FORMAT, 9, 1, Sgl::default());
    format.cdw10 = 3.into();
    host.send(line, &format, &[]);
    host.talk(line).expect("goes on");
    assert_eq!(page(&mut host)[..5], [0, 0, 0, 0, 0x24]);
    let refused = host.status(line, &test(1, u32::MAX), &[]);
    assert_eq!(refused, Status::FORMAT_IN_PROGRESS.code());
}

#[test]
fn a_self_test_ends_by_the_drives_clock() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, _) = host.admin(0, usize::MAX);
    // A minute is 60 ms.
    host.at_speed(line, 1000.0);
    host.well(line, &test(1, u32::MAX), &[]);
    std::thread::sleep(std::time::Duration::from_millis(70));
    assert_eq!(host.log(line, log::SELF_TEST, 32)[..5], [0, 0, 0, 0, 0x10]);
}

fn events(action: u32, bytes: u32, offset: u32) -> Sqe {
    let mut sqe = get_log(log::PERSISTENT, bytes, offset);
    sqe.cdw10 = (sqe.cdw10.get() | action << 8).into();
    sqe
}

/// Returns the types of a log's events, the newest first.
fn kinds(page: &[u8]) -> Vec<u8> {
    let count = u32::from_le_bytes(*page[4..].first_chunk().expect("a count"));
    let mut at = 512;
    let mut kinds = Vec::new();
    for _ in 0..count {
        kinds.push(page[at]);
        assert_eq!(page[at + 2], 21);
        let length = u16::from_le_bytes([page[at + 22], page[at + 23]]);
        at += 24 + usize::from(length);
    }
    assert_eq!(
        u64::from_le_bytes(*page[8..].first_chunk().expect("a length")),
        at as u64
    );
    kinds
}

#[test]
fn persistent_events_are_read_in_a_context() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, _) = host.admin(0, usize::MAX);
    let sequence = Status::COMMAND_SEQUENCE.code();
    assert_eq!(
        host.status(line, &events(0, 512, 0), &[]),
        sequence,
        "no context"
    );
    let page = host.well(line, &events(1, 4096, 0), &[]);
    assert_eq!(
        (page[0], page[16], page[18..20].to_vec()),
        (0x0d, 1, 492u16.to_le_bytes().to_vec())
    );
    assert!(page[56..].starts_with(b"TEST0001 "));
    assert_eq!(kinds(&page), [1, 4], "health, after power-on");
    assert_eq!(
        host.status(line, &events(1, 512, 0), &[]),
        sequence,
        "there is one"
    );
    let mut set = Sqe::fabric(admin::SET_FEATURES, 1, 0, Sgl::default());
    (set.cdw10, set.cdw11) = (u32::from(feature::ARBITRATION).into(), 3.into());
    host.well(line, &set, &[]);
    // The context keeps the earlier log.
    let again = host.well(line, &events(0, 4096, 0), &[]);
    assert!(again == page);
    assert_eq!(host.well(line, &events(0, 64, 480), &[]), page[480..544]);
    host.well(line, &events(2, 4, 0), &[]);
    assert_eq!(
        host.status(line, &events(0, 512, 0), &[]),
        sequence,
        "released"
    );
    let mut format = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    format.cdw10 = 3.into();
    host.well(line, &format, &[]);
    let mut sanitize = Sqe::fabric(admin::SANITIZE, 1, 0, Sgl::default());
    sanitize.cdw10 = 2.into();
    host.well(line, &sanitize, &[]);
    host.tick(line).expect("goes on");
    let mut stamp = set;
    (stamp.cdw10, stamp.sgl) = (u32::from(feature::TIMESTAMP).into(), Sgl::in_capsule(8));
    host.well(line, &stamp, &7u64.to_le_bytes());
    let page = host.well(line, &events(1, 4096, 0), &[]);
    assert_eq!(kinds(&page), [3, 0xa, 9, 8, 7, 0xb, 1, 4]);
    assert_eq!(page[372], 2, "another context");
    assert_eq!(
        host.status(line, &events(3, 512, 0), &[]),
        Status::INVALID_FIELD.code()
    );
}

/// Returns a Copy of ranges (first block, blocks) to `to`, in descriptor format 0h or 2h.
fn copy(to: u64, format: u32, ranges: &[(u32, u64, u16)]) -> (Sqe, Vec<u8>) {
    let mut list = Vec::new();
    for &(nsid, first, blocks) in ranges {
        let mut one = [0; 32];
        if format == 2 {
            one[..4].copy_from_slice(&nsid.to_le_bytes());
        }
        one[8..16].copy_from_slice(&first.to_le_bytes());
        one[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
        list.extend_from_slice(&one);
    }
    let mut sqe = io(opcode::COPY, 4, to, 1, Sgl::in_capsule(list.len() as u32));
    sqe.cdw12 = ((ranges.len() as u32 - 1) | (format << 8)).into();
    (sqe, list)
}

#[test]
fn ranges_are_copied_in_their_order() {
    let mut host = Host::with(vec![drive("p4800x-375"), drive("p4800x-375")], full);
    let (line, queue) = host.both();
    let data: Vec<u8> = (0..8192u32).map(|index| (index / 512 + 1) as u8).collect();
    host.well(
        queue,
        &io(opcode::WRITE, 1, 100, 16, Sgl::in_capsule(8192)),
        &data,
    );
    let (sqe, list) = copy(10, 0, &[(1, 110, 3), (1, 100, 2)]);
    host.well(queue, &sqe, &list);
    let back = host.well(
        queue,
        &io(opcode::READ, 1, 9, 7, Sgl::transport(7 * 512)),
        &[],
    );
    let blocks: Vec<u8> = back.chunks(512).map(|block| block[511]).collect();
    assert_eq!(blocks, [0, 11, 12, 13, 1, 2, 0]);
    // From another namespace, after the host has enabled that.
    let (mut sqe, list) = copy(0, 2, &[(1, 101, 1)]);
    sqe.nsid = 2.into();
    let invalid = Status::INVALID_FIELD.code();
    assert_eq!(host.status(queue, &sqe, &list), invalid);
    let mut set = Sqe::fabric(admin::SET_FEATURES, 1, 0, Sgl::in_capsule(512));
    set.cdw10 = u32::from(feature::HOST_BEHAVIOR).into();
    let mut behavior = [0; 512];
    behavior[4] = 1 << 2;
    host.well(line, &set, &behavior);
    host.well(queue, &sqe, &list);
    let mut read = io(opcode::READ, 1, 0, 1, Sgl::transport(512));
    read.nsid = 2.into();
    assert_eq!(host.well(queue, &read, &[]), [2; 512]);
}

#[test]
fn what_cannot_be_copied_is_told_with_its_range() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (_, queue) = host.both();
    let end = BYTES / 512;
    for (to, ranges, why, which) in [
        (0, vec![(1, 8, 257)], Status::COMMAND_SIZE_LIMIT, 0),
        (0, vec![(1, 8, 1), (1, end, 1)], Status::LBA_OUT_OF_RANGE, 1),
        (end - 1, vec![(1, 8, 2)], Status::LBA_OUT_OF_RANGE, 0),
        (0, vec![(1, 9, 1), (1, 1, 1)], Status::OVERLAPPING_RANGE, 1),
        (0, vec![(1, 9, 1); 129], Status::COMMAND_SIZE_LIMIT, 0),
    ] {
        let (sqe, list) = copy(to, 0, &ranges);
        let cqe = host.call(queue, &sqe, &list).cqe;
        assert_eq!((cqe.status(), cqe.dw0.get()), (why, which), "{ranges:?}");
    }
    host.well(
        queue,
        &io(opcode::WRITE_UNCORRECTABLE, 1, 50, 1, Sgl::default()),
        &[],
    );
    let (sqe, list) = copy(0, 0, &[(1, 20, 1), (1, 50, 1)]);
    let cqe = host.call(queue, &sqe, &list).cqe;
    assert_eq!((cqe.status(), cqe.dw0.get()), (Status::UNRECOVERED_READ, 1));
    let (sqe, list) = copy(0, 1, &[(1, 20, 1)]);
    let short = host.call(queue, &sqe, &list).cqe.status();
    assert_eq!(
        short,
        Status::DATA_SGL_LENGTH_INVALID,
        "forty bytes in this format"
    );
    let (sqe, list) = copy(0, 4, &[(1, 20, 1)]);
    assert_eq!(
        host.status(queue, &sqe, &list),
        Status::INVALID_FIELD.code()
    );
}
