//! Namespaces that hosts create, delete, attach and detach.

use live::nvme::admin::opcode as admin;
use live::nvme::controller::property;
use live::nvme::features::feature;
use live::nvme::identify::{ControllerData, NamespaceData};
use live::nvme::initiator::property_set;
use live::nvme::io::opcode;
use live::nvme::log;
use live::nvme::wire::{Sgl, Sqe, Status};
use zerocopy::FromBytes;

use crate::full::full;
use crate::host::{BYTES, ENABLE, Host, drive, io, stored_drive};

const ALL: u32 = u32::MAX;
/// Blocks of 512 B of the whole drive.
const WHOLE: u64 = BYTES / 512;

fn create(blocks: u64, flbas: u8, dps: u8) -> (Sqe, Vec<u8>) {
    let sqe = Sqe::fabric(admin::NAMESPACES, 1, 0, Sgl::in_capsule(4096));
    let mut data = vec![0; 4096];
    data[..8].copy_from_slice(&blocks.to_le_bytes());
    data[8..16].copy_from_slice(&blocks.to_le_bytes());
    (data[26], data[29]) = (flbas, dps);
    (sqe, data)
}

fn delete(nsid: u32) -> Sqe {
    let mut sqe = Sqe::fabric(admin::NAMESPACES, 1, nsid, Sgl::default());
    sqe.cdw10 = 1.into();
    sqe
}

/// `detach`: 1 detaches, otherwise attaches.
fn attach(nsid: u32, detach: u32, controllers: &[u16]) -> (Sqe, Vec<u8>) {
    let mut sqe = Sqe::fabric(admin::ATTACHMENT, 1, nsid, Sgl::in_capsule(4096));
    sqe.cdw10 = detach.into();
    let mut data = vec![0; 4096];
    data[0] = controllers.len() as u8;
    for (place, id) in data[2..].chunks_exact_mut(2).zip(controllers) {
        place.copy_from_slice(&id.to_le_bytes());
    }
    (sqe, data)
}

/// Returns a host whose drive has no namespace: admin queue, controller, I/O queue.
fn undivided() -> (Host, usize, u16, usize) {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    host.well(line, &delete(ALL), &[]);
    (host, line, id, queue)
}

fn made(host: &mut Host, line: usize, blocks: u64, flbas: u8) -> u32 {
    let (sqe, data) = create(blocks, flbas, 0);
    let cqe = host.call(line, &sqe, &data).cqe;
    assert_eq!(cqe.status(), Status::SUCCESS);
    cqe.dw0.get()
}

fn joined(host: &mut Host, line: usize, nsid: u32, detach: u32, controllers: &[u16]) {
    let (sqe, data) = attach(nsid, detach, controllers);
    host.well(line, &sqe, &data);
}

/// Returns the identifiers of a list.
fn list(host: &mut Host, line: usize, cns: u32) -> Vec<u8> {
    let page = host.identify(line, cns, 0);
    let ids = page.chunks(4).map(|id| id[0]);
    ids.take_while(|&id| id > 0).collect()
}

fn at(nsid: u32, sqe: Sqe) -> Sqe {
    Sqe {
        nsid: nsid.into(),
        ..sqe
    }
}

#[test]
fn a_drive_is_divided_and_its_parts_are_apart() {
    let (mut host, line, id, queue) = undivided();
    let unallocated = |host: &mut Host| {
        let page = host.identify(line, 1, 0);
        let data = ControllerData::read_from_bytes(&page).expect("4096 bytes");
        data.unvmcap[0].get()
    };
    assert_eq!(unallocated(&mut host), BYTES);
    assert!(list(&mut host, line, 0x10).is_empty());
    // An additional block moves the second namespace to the next 4 KiB.
    let sizes = [1001, 500, 3000];
    for (nsid, blocks) in (1..).zip(sizes) {
        assert_eq!(made(&mut host, line, blocks, 0), nsid);
        assert_eq!(
            list(&mut host, line, 0x02),
            (1..nsid as u8).collect::<Vec<u8>>()
        );
        assert!(
            host.identify(line, 0, nsid).iter().all(|&byte| byte == 0),
            "not attached"
        );
        let page = host.identify(line, 0x11, nsid);
        let data = NamespaceData::read_from_bytes(&page).expect("4096 bytes");
        assert_eq!(data.nsze.get(), blocks);
        let read = at(nsid, io(opcode::READ, 1, 0, 1, Sgl::transport(512)));
        assert_eq!(host.status(queue, &read, &[]), Status::INVALID_FIELD.code());
        joined(&mut host, line, nsid, 0, &[id]);
    }
    assert_eq!(list(&mut host, line, 0x10), [1, 2, 3]);
    assert_eq!(unallocated(&mut host), BYTES - 4096 * (126 + 63 + 375));
    // Each stores its own data, from its first to its last block, and no more.
    for (nsid, blocks) in (1..).zip(sizes) {
        for lba in [0, blocks - 8] {
            let write = at(nsid, io(opcode::WRITE, 1, lba, 8, Sgl::in_capsule(4096)));
            host.well(queue, &write, &[nsid as u8 + lba as u8; 4096]);
        }
        let beyond = at(nsid, io(opcode::READ, 1, blocks, 1, Sgl::transport(512)));
        assert_eq!(
            host.status(queue, &beyond, &[]),
            Status::LBA_OUT_OF_RANGE.code()
        );
    }
    for (nsid, blocks) in (1..).zip(sizes) {
        for lba in [0, blocks - 8] {
            let read = at(nsid, io(opcode::READ, 1, lba, 8, Sgl::transport(4096)));
            let expected = [nsid as u8 + lba as u8; 4096];
            assert!(host.well(queue, &read, &[]) == expected, "{nsid}: {lba}");
        }
    }
    // Names are unique.
    let names: Vec<Vec<u8>> = (1..4)
        .map(|nsid| host.identify(line, 3, nsid)[4..20].to_vec())
        .collect();
    assert!(names[0] != names[1] && names[1] != names[2]);
    // The data of a deleted namespace is not in the one that replaces it; the others are unchanged.
    host.well(line, &delete(2), &[]);
    assert_eq!(made(&mut host, line, 500, 0), 2);
    joined(&mut host, line, 2, 0, &[id]);
    let read = at(2, io(opcode::READ, 1, 0, 8, Sgl::transport(4096)));
    assert!(host.well(queue, &read, &[]).iter().all(|&byte| byte == 0));
    assert_ne!(host.identify(line, 3, 2)[4..20], names[1]);
    let read = at(3, io(opcode::READ, 1, 0, 8, Sgl::transport(4096)));
    assert!(host.well(queue, &read, &[]) == [3; 4096]);
    // A flush of all namespaces reaches the drive.
    host.well(
        queue,
        &at(ALL, io(opcode::FLUSH, 1, 0, 1, Sgl::default())),
        &[],
    );
}

#[test]
fn what_cannot_be_created_or_attached_is_refused() {
    let (mut host, line, id, _) = undivided();
    let refused = |host: &mut Host, (sqe, data): (Sqe, Vec<u8>), why: Status| {
        assert_eq!(host.call(line, &sqe, &data).cqe.status(), why);
    };
    refused(&mut host, create(0, 0, 0), Status::INVALID_FIELD);
    refused(&mut host, create(8, 9, 0), Status::INVALID_FORMAT);
    refused(&mut host, create(8, 0, 1), Status::INVALID_FORMAT);
    refused(&mut host, create(8, 1, 4), Status::INVALID_FIELD);
    refused(
        &mut host,
        create(WHOLE + 1, 0, 0),
        Status::INSUFFICIENT_CAPACITY,
    );
    refused(
        &mut host,
        create(u64::MAX, 0, 0),
        Status::INSUFFICIENT_CAPACITY,
    );
    let mut thin = create(16, 0, 0);
    thin.1[8] = 8;
    refused(&mut host, thin, Status::THIN_PROVISIONING);
    assert_eq!(made(&mut host, line, WHOLE - 8, 0), 1);
    refused(&mut host, create(9, 0, 0), Status::INSUFFICIENT_CAPACITY);
    // All namespaces of a drive have one format.
    refused(&mut host, create(1, 3, 0), Status::INVALID_FORMAT);
    assert_eq!(made(&mut host, line, 8, 0), 2);
    refused(&mut host, attach(3, 0, &[id]), Status::INVALID_FIELD);
    refused(&mut host, attach(17, 0, &[id]), Status::INVALID_NAMESPACE);
    refused(&mut host, attach(1, 0, &[id, 99]), Status::CONTROLLER_LIST);
    refused(&mut host, attach(1, 0, &[]), Status::CONTROLLER_LIST);
    refused(&mut host, attach(1, 1, &[id]), Status::NOT_ATTACHED);
    refused(&mut host, attach(1, 2, &[id]), Status::INVALID_FIELD);
    joined(&mut host, line, 1, 0, &[id]);
    refused(&mut host, attach(1, 0, &[id]), Status::ALREADY_ATTACHED);
    assert_eq!(
        host.status(line, &delete(9), &[]),
        Status::INVALID_FIELD.code()
    );
    assert_eq!(
        host.status(line, &delete(0), &[]),
        Status::INVALID_NAMESPACE.code()
    );
    host.well(line, &delete(1), &[]);
    for nsid in (1..=16).filter(|&nsid| nsid != 2) {
        assert_eq!(made(&mut host, line, 8, 0), nsid);
    }
    refused(&mut host, create(8, 0, 0), Status::NO_NAMESPACE_ID);
}

#[test]
fn an_empty_drive_takes_another_format() {
    let (mut host, line, id, queue) = undivided();
    // 512 B with 8 B of metadata and protection of type 1; metadata is transferred with the data.
    let (sqe, data) = create(100, 1, 1);
    host.well(line, &sqe, &data);
    joined(&mut host, line, 1, 0, &[id]);
    let page = host.identify(line, 0, 1);
    let now = NamespaceData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!((now.flbas, now.dps, now.nsze.get()), (0x11, 1, 100));
    let (sqe, data) = create(50, 1, 1);
    host.well(line, &sqe, &data);
    host.well(
        queue,
        &io(opcode::WRITE, 1, 7, 1, Sgl::in_capsule(520)),
        &[5; 520],
    );
    joined(&mut host, line, 2, 0, &[id]);
    let other = at(2, io(opcode::WRITE, 1, 7, 1, Sgl::in_capsule(520)));
    host.well(queue, &other, &[6; 520]);
    let read = io(opcode::READ, 1, 7, 1, Sgl::transport(520));
    assert!(host.well(queue, &read, &[]) == [5; 520]);
    assert!(host.well(queue, &at(2, read), &[]) == [6; 520]);
    // A format applies to all namespaces.
    let mut format = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    format.cdw10 = 3.into();
    host.well(line, &format, &[]);
    let page = host.identify(line, 0, 2);
    let now = NamespaceData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!((now.flbas, now.dps, now.nsze.get()), (3, 0, 6));
}

#[test]
fn other_controllers_are_told_and_those_that_come_later_have_it() {
    let (mut host, line, id, _) = undivided();
    let (other, second) = host.admin(0, usize::MAX);
    let mut events = Sqe::fabric(admin::SET_FEATURES, 1, 0, Sgl::default());
    (events.cdw10, events.cdw11) = (u32::from(feature::EVENTS).into(), (1u32 << 8).into());
    host.well(other, &events, &[]);
    host.send(
        other,
        &Sqe::fabric(admin::ASYNC_EVENT, 20, 0, Sgl::default()),
        &[],
    );
    host.talk(other).expect("goes on");
    assert_eq!(made(&mut host, line, 64, 0), 1);
    joined(&mut host, line, 1, 0, &[id, second]);
    host.tick(other).expect("goes on");
    let told = host.completion(other, 20).expect("an event").cqe.dw0.get();
    assert_eq!(told, 2 | u32::from(log::CHANGED_NAMESPACES) << 16);
    assert_eq!(
        host.log(other, log::CHANGED_NAMESPACES, 4096)[..5],
        [1, 0, 0, 0, 0]
    );
    assert_eq!(list(&mut host, other, 2), [1]);
    let mut who = Sqe::fabric(admin::IDENTIFY, 1, 1, Sgl::transport(4096));
    who.cdw10 = 0x12.into();
    let controllers = host.well(line, &who, &[]);
    assert_eq!(controllers[..6], [2, 0, id as u8, 0, second as u8, 0]);
    joined(&mut host, other, 1, 1, &[id]);
    assert_eq!(
        (list(&mut host, line, 2), list(&mut host, other, 2)),
        (vec![], vec![1])
    );
    let (third, _) = host.admin(0, usize::MAX);
    assert_eq!(list(&mut host, third, 2), [1]);
    host.hang_up(third);
    joined(&mut host, other, 1, 1, &[second]);
    let (fourth, _) = host.admin(0, usize::MAX);
    assert!(list(&mut host, fourth, 2).is_empty());
}

#[test]
fn what_is_divided_stays_so_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let mut host = Host::with(vec![stored_drive(&store)], full);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    host.well(line, &delete(ALL), &[]);
    for nsid in 1..=3 {
        assert_eq!(made(&mut host, line, 100, 0), nsid);
        joined(&mut host, line, nsid, 0, &[id]);
        let write = at(nsid, io(opcode::WRITE, 1, 9, 1, Sgl::in_capsule(512)));
        host.well(queue, &write, &[nsid as u8; 512]);
    }
    host.well(line, &delete(2), &[]);
    joined(&mut host, line, 3, 1, &[id]);
    let name = host.identify(line, 3, 1);
    drop(host);
    let mut host = Host::with(vec![stored_drive(&store)], full);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    assert_eq!(list(&mut host, line, 0x10), [1, 3]);
    assert_eq!(list(&mut host, line, 0x02), [1]);
    assert!(host.identify(line, 3, 1) == name);
    joined(&mut host, line, 3, 0, &[id]);
    for nsid in [1, 3] {
        let read = at(nsid, io(opcode::READ, 1, 9, 1, Sgl::transport(512)));
        assert!(host.well(queue, &read, &[]) == [nsid as u8; 512]);
    }
    assert_eq!(made(&mut host, line, 100, 0), 2);
    joined(&mut host, line, 2, 0, &[id]);
    let read = at(2, io(opcode::READ, 1, 9, 1, Sgl::transport(512)));
    assert!(host.well(queue, &read, &[]) == [0; 512]);
    // The absence of namespaces is saved too.
    host.well(line, &delete(ALL), &[]);
    drop(host);
    let mut host = Host::with(vec![stored_drive(&store)], full);
    let (line, _) = host.admin(0, usize::MAX);
    assert!(list(&mut host, line, 0x10).is_empty());
}

#[test]
fn a_host_that_comes_back_is_the_same_controller() {
    let mut host = Host::with(vec![drive("p4800x-375")], full);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    host.hang_up(line);
    let (line, again) = host.admin(0, usize::MAX);
    assert_eq!(again, id);
    // The previous queue no longer exists.
    host.send(queue, &io(opcode::READ, 1, 0, 1, Sgl::transport(512)), &[]);
    assert!(host.talk(queue).is_err());
    host.well(line, &property_set(1, property::CC, 0), &[]);
    host.well(line, &property_set(1, property::CC, ENABLE), &[]);
}

/// Commands that the earlier connection of a host began do not cause errors for the later one.
#[test]
fn a_host_that_comes_back_finds_no_errors_of_before() {
    let errors = |host: &mut Host, line| {
        let page = host.log(line, log::ERRORS, 64);
        u64::from_le_bytes(page[..8].try_into().expect("eight bytes"))
    };
    for comes_back in [false, true] {
        let mut host = Host::new(vec![drive("p4800x-375")]);
        let (mut line, id) = host.admin(0, usize::MAX);
        let queue = host.io(id, 0, usize::MAX);
        let spoil = io(opcode::WRITE_UNCORRECTABLE, 1, 50, 1, Sgl::default());
        host.well(queue, &spoil, &[]);
        let done = host.begin(queue, &io(opcode::READ, 2, 50, 1, Sgl::transport(512)));
        if comes_back {
            host.hang_up(line);
            line = host.admin(0, usize::MAX).0;
        }
        host.end(queue, &done);
        assert_eq!(errors(&mut host, line), u64::from(!comes_back));
    }
}

/// Another drive has no metadata, and data written to it never had any.
#[test]
fn metadata_of_one_drive_is_no_matter_of_another() {
    let mut host = Host::new(vec![drive("p4800x-375"), drive("950pro-256")]);
    let (line, queue) = host.both();
    let mut format = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    format.cdw10 = (2u32 | 1 << 4).into();
    host.well(line, &format, &[]);
    let write = at(2, io(opcode::WRITE, 1, 7, 1, Sgl::in_capsule(512)));
    host.well(queue, &write, &[5; 512]);
    let read = at(2, io(opcode::READ, 1, 7, 1, Sgl::transport(512)));
    assert!(host.well(queue, &read, &[]) == [5; 512]);
}
