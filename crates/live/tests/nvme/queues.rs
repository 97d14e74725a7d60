//! Connecting queues: valid and invalid combinations; the end of a controller.

use live::ConnectionEnd;
use live::nvme::controller::property;
use live::nvme::initiator::{property_get, property_set};
use live::nvme::io::opcode;
use live::nvme::wire::{Sgl, Sqe, Status};
use live::nvme::{DISCOVERY_NQN, log};

use crate::host::{ENABLE, Host, drive, io};

#[test]
fn registers_are_as_hosts_expect() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let line = host.open(0, usize::MAX);
    let (sqe, data) = host.connect_to(0, 0xffff).command(0);
    host.well(line, &sqe, &data);
    let value = |host: &mut Host, sqe: Sqe| {
        let cqe = host.call(line, &sqe, &[]).cqe;
        assert_eq!(cqe.status(), Status::SUCCESS);
        u64::from(cqe.dw0.get()) | u64::from(cqe.dw1.get()) << 32
    };
    let cap = value(&mut host, property_get(1, property::CAP, true));
    assert!(cap & 0xffff >= 127, "queues of 128 entries");
    assert_eq!(cap >> 37 & 1, 1, "the NVM command set");
    assert_eq!(
        value(&mut host, property_get(1, property::VS, false)),
        0x0001_0400
    );
    assert_eq!(value(&mut host, property_get(1, property::CSTS, false)), 0);
    // Not allowed before the controller is ready.
    let early = Sqe::fabric(0x06, 1, 0, Sgl::transport(4096));
    assert_eq!(
        host.status(line, &early, &[]),
        Status::COMMAND_SEQUENCE.code()
    );
    host.well(line, &property_set(1, property::CC, ENABLE), &[]);
    assert_eq!(value(&mut host, property_get(1, property::CSTS, false)), 1);
    host.well(line, &property_set(1, property::CC, ENABLE | 1 << 14), &[]);
    let csts = value(&mut host, property_get(1, property::CSTS, false));
    assert_eq!(csts >> 2 & 3, 2, "shut down");
    let status = host.status(line, &property_get(1, property::CAP, false), &[]);
    assert_eq!(status, Status::INVALID_FIELD.code());
}

/// Returns the status of connecting, and the offset in dword 0 of the invalid field.
fn connecting(
    host: &mut Host,
    change: impl FnOnce(&mut Sqe, &mut Vec<u8>),
    queue: u16,
    of: u16,
) -> (u16, u32) {
    let line = host.open(0, usize::MAX);
    let (mut sqe, mut data) = host.connect_to(queue, of).command(0);
    change(&mut sqe, &mut data);
    let cqe = host.call(line, &sqe, &data).cqe;
    (cqe.status().code(), cqe.dw0.get())
}

#[test]
fn connect_says_what_is_wrong() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, id) = host.admin(0, usize::MAX);
    let invalid = Status::CONNECT_INVALID.code();
    let unknown = connecting(&mut host, |_, data| data[256 + 10] ^= 1, 0, 0xffff);
    assert_eq!(unknown, (invalid, 256 | 1 << 16));
    let nameless = connecting(&mut host, |_, data| data[512..768].fill(0), 0, 0xffff);
    assert_eq!(nameless, (invalid, 512 | 1 << 16));
    let chosen = connecting(&mut host, |_, _| {}, 0, id);
    assert_eq!(chosen, (invalid, 16 | 1 << 16));
    let nowhere = connecting(&mut host, |_, _| {}, 1, 77);
    assert_eq!(nowhere, (invalid, 16 | 1 << 16));
    let stranger = connecting(&mut host, |_, data| data[0] ^= 1, 1, id);
    assert_eq!(stranger, (invalid, 1 << 16));
    let other_name = connecting(&mut host, |_, data| data[520] ^= 1, 1, id);
    assert_eq!(other_name, (invalid, 512 | 1 << 16));
    let too_many = connecting(&mut host, |_, _| {}, 32, id);
    assert_eq!(too_many, (invalid, 42), "the drive has 31 queues");
    let too_long = connecting(&mut host, |sqe, _| sqe.cdw11 = 0xffff.into(), 1, id);
    assert_eq!(too_long, (invalid, 44));
    let format = connecting(&mut host, |sqe, _| sqe.cdw10 = 1.into(), 0, 0xffff);
    assert_eq!(format.0, Status::CONNECT_FORMAT.code());
    // The same queue twice.
    host.io(id, 0, usize::MAX);
    assert_eq!(connecting(&mut host, |_, _| {}, 1, id), (invalid, 42));
    assert_eq!(connecting(&mut host, |_, _| {}, 31, id).0, 0);
}

#[test]
fn only_connect_before_connect_and_never_again() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let line = host.open(0, usize::MAX);
    let sequence = Status::COMMAND_SEQUENCE.code();
    assert_eq!(
        host.status(line, &property_get(1, property::VS, false), &[]),
        sequence
    );
    assert_eq!(
        host.status(line, &io(opcode::READ, 1, 0, 1, Sgl::transport(512)), &[]),
        sequence
    );
    let (sqe, data) = host.connect_to(0, 0xffff).command(0);
    host.well(line, &sqe, &data);
    assert_eq!(host.status(line, &sqe, &data), sequence);
}

#[test]
fn io_queues_end_with_their_controller() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (admin, line) = host.both();
    let read = io(opcode::READ, 1, 0, 1, Sgl::transport(512));
    host.well(line, &read, &[]);
    // A reset also removes the queues.
    host.well(admin, &property_set(1, property::CC, 0), &[]);
    host.send(line, &read, &[]);
    assert_eq!(host.talk(line), Err(ConnectionEnd::Left));
    // So does the end of the admin connection.
    let (admin, line) = host.both();
    host.hang_up(admin);
    assert_eq!(host.tick(line), Err(ConnectionEnd::Left));
}

#[test]
fn a_queue_can_be_connected_again_when_it_is_gone() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, id) = host.admin(0, usize::MAX);
    for _ in 0..3 {
        let line = host.io(id, 0, usize::MAX);
        host.well(line, &io(opcode::READ, 1, 0, 1, Sgl::transport(512)), &[]);
        host.hang_up(line);
    }
}

#[test]
fn controllers_run_out_and_come_back() {
    let mut host = Host::with(vec![drive("p4800x-375")], |options| options.controllers = 2);
    let (first, _) = host.admin(0, usize::MAX);
    host.admin(0, usize::MAX);
    let full = connecting(&mut host, |_, _| {}, 0, 0xffff);
    assert_eq!(full.0, Status::CONNECT_BUSY.code());
    host.hang_up(first);
    host.admin(0, usize::MAX);
}

#[test]
fn discovery_tells_of_the_subsystem() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let nqn = std::mem::replace(&mut host.nqn, DISCOVERY_NQN.into());
    let (line, id) = host.admin(0, usize::MAX);
    let page = host.log(line, log::DISCOVERY, 2048);
    assert_eq!(page[8], 1, "one record");
    let entry = &page[1024..];
    assert_eq!(entry[..3], [3, 1, 2]);
    assert!(entry[32..].starts_with(b"4420 "));
    assert!(entry[256..].starts_with(nqn.as_bytes()));
    assert!(entry[512..].starts_with(b"127.0.0.1 "));
    // In parts, as nvme-cli reads it.
    let part = host.well(line, &crate::host::get_log(log::DISCOVERY, 1024, 1024), &[]);
    assert_eq!(part, entry);
    let controller = host.identify(line, 1, 0);
    assert_eq!(controller[111], 2, "a discovery controller");
    let refused = connecting(&mut host, |_, _| {}, 1, id);
    assert_eq!(refused.0, Status::CONNECT_INVALID.code());
    let health = crate::host::get_log(log::HEALTH, 512, 0);
    assert_eq!(
        host.status(line, &health, &[]),
        Status::INVALID_LOG_PAGE.code()
    );
}
