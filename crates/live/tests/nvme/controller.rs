//! Identify, features, log pages, events, keep-alive.

use std::thread::sleep;
use std::time::Duration;

use live::ConnectionEnd;
use live::nvme::admin::opcode as admin;
use live::nvme::controller::property;
use live::nvme::features::feature;
use live::nvme::identify::{ControllerData, NamespaceData};
use live::nvme::initiator::property_set;
use live::nvme::io::opcode;
use live::nvme::log::{self, HealthPage};
use live::nvme::vendor;
use live::nvme::wire::{Sgl, Sqe, Status};
use zerocopy::FromBytes;

use crate::host::{BYTES, ENABLE, Host, drive, io};

fn set(number: u8, value: u32) -> Sqe {
    let mut sqe = Sqe::fabric(admin::SET_FEATURES, 1, 0, Sgl::default());
    sqe.cdw10 = u32::from(number).into();
    sqe.cdw11 = value.into();
    sqe
}

fn get(number: u8, select: u32) -> Sqe {
    let mut sqe = Sqe::fabric(admin::GET_FEATURES, 1, 0, Sgl::transport(0));
    sqe.cdw10 = (u32::from(number) | select << 8).into();
    sqe
}

#[test]
fn the_p4800x_is_what_it_says() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, id) = host.admin(0, usize::MAX);
    let page = host.identify(line, 1, 0);
    let data = ControllerData::read_from_bytes(&page).expect("4096 bytes");
    assert!(data.mn.starts_with(b"INTEL SSDPED1K375GA "));
    assert!(data.sn.starts_with(b"TEST0001 "));
    assert_eq!(data.vid.get(), 0x8086);
    assert_eq!(data.cntlid.get(), id);
    assert_eq!(data.mdts, 5, "128 KiB");
    assert_eq!(data.vwc & 1, 0, "no volatile write cache");
    assert_eq!(data.nn.get(), 1);
    assert_eq!(data.fuses.get(), 1);
    assert!(data.subnqn.starts_with(host.nqn.as_bytes()));
    let page = host.identify(line, 0, 1);
    let data = NamespaceData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!(data.nsze.get(), BYTES / 512);
    let formats: Vec<(u8, u16)> = data.lbaf[..=usize::from(data.nlbaf)]
        .iter()
        .map(|format| (format.lbads, format.ms.get()))
        .collect();
    // S2-054 to S2-060.
    assert_eq!(
        formats,
        [
            (9, 0),
            (9, 8),
            (9, 16),
            (12, 0),
            (12, 8),
            (12, 64),
            (12, 128)
        ]
    );
    // The largest write is atomic; after a crash, 4 KiB are.
    assert_eq!((data.nawun.get(), data.nawupf.get()), (255, 7));
    let list = host.identify(line, 2, 0);
    assert_eq!(list[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert!(host.identify(line, 2, 1).iter().all(|&byte| byte == 0));
    // A UUID, an NGUID and the command set.
    let descriptors = host.identify(line, 3, 1);
    assert_eq!(
        (descriptors[0], descriptors[20], descriptors[40]),
        (2, 3, 4)
    );
}

#[test]
fn a_volatile_cache_is_told_and_can_be_switched() {
    let mut host = Host::new(vec![drive("950pro-256"), drive("p4800x-375")]);
    let (line, _) = host.admin(0, usize::MAX);
    let page = host.identify(line, 1, 0);
    let data = ControllerData::read_from_bytes(&page).expect("4096 bytes");
    assert_eq!(data.vwc & 1, 1);
    assert_eq!(data.nn.get(), 2);
    let on = |host: &mut Host| {
        host.call(line, &get(feature::WRITE_CACHE, 0), &[])
            .cqe
            .dw0
            .get()
    };
    assert_eq!(on(&mut host), 1);
    host.well(line, &set(feature::WRITE_CACHE, 0), &[]);
    assert_eq!(on(&mut host), 0);
    assert_eq!(
        host.call(line, &get(feature::WRITE_CACHE, 1), &[])
            .cqe
            .dw0
            .get(),
        1
    );
}

#[test]
fn features_are_kept_until_the_controller_is_reset() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, _) = host.admin(0, usize::MAX);
    let value = |host: &mut Host, sqe: Sqe| host.call(line, &sqe, &[]).cqe.dw0.get();
    let invalid = Status::INVALID_FIELD.code();
    // 31 I/O queues, less one on the wire.
    assert_eq!(
        value(&mut host, set(feature::QUEUES, 200 | 7 << 16)),
        30 | 7 << 16
    );
    for (number, new) in [
        (feature::ARBITRATION, 3),
        (feature::ERROR_RECOVERY, 17),
        (feature::COALESCING, 0x0a07),
        (feature::LBA_STATUS, 5),
        (feature::EVENTS, 0x1ff),
        (feature::POWER, 1),
        (feature::KEEP_ALIVE, 120_000),
        (feature::TEMPERATURE, 333),
    ] {
        host.well(line, &set(number, new), &[]);
        assert_eq!(
            value(&mut host, get(number, 0)),
            new,
            "feature {number:02x}h"
        );
        assert_ne!(
            value(&mut host, get(number, 1)),
            new,
            "feature {number:02x}h by default"
        );
        assert_eq!(
            value(&mut host, get(number, 3)),
            4,
            "feature {number:02x}h can be changed"
        );
    }
    assert_eq!(host.status(line, &set(feature::POWER, 9), &[]), invalid);
    assert_eq!(
        host.status(line, &set(feature::WRITE_CACHE, 0), &[]),
        invalid
    );
    assert_eq!(host.status(line, &get(0x7e, 0), &[]), invalid);
    let saved = set(feature::EVENTS, 0);
    let saved = Sqe {
        cdw10: (saved.cdw10.get() | 1 << 31).into(),
        ..saved
    };
    assert_eq!(
        host.status(line, &saved, &[]),
        Status::FEATURE_NOT_SAVEABLE.code()
    );
    // Timestamp: data with the command.
    let mut stamp = set(feature::TIMESTAMP, 0);
    stamp.sgl = Sgl::in_capsule(8);
    host.well(line, &stamp, &1_700_000_000_000u64.to_le_bytes());
    let mut back = get(feature::TIMESTAMP, 0);
    back.sgl = Sgl::transport(8);
    let data = host.well(line, &back, &[]);
    let bytes = [data[0], data[1], data[2], data[3], data[4], data[5], 0, 0];
    assert!((1_700_000_000_000..1_700_000_600_000).contains(&u64::from_le_bytes(bytes)));
    assert_eq!(data[6], 2, "set by the host");
    host.well(line, &property_set(1, property::CC, 0), &[]);
    host.well(line, &property_set(1, property::CC, ENABLE), &[]);
    assert_eq!(value(&mut host, get(feature::EVENTS, 0)), 0);
}

#[test]
fn each_interrupt_vector_has_a_configuration() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, _) = host.admin(0, usize::MAX);
    let vector = |number: u32| {
        let mut sqe = get(feature::VECTOR, 0);
        sqe.cdw11 = number.into();
        sqe
    };
    // For 31 I/O queues and the admin queue.
    for number in [0, 1, 31] {
        let answer = host.call(line, &vector(number), &[]).cqe;
        assert_eq!(
            (answer.status(), answer.dw0.get()),
            (Status::SUCCESS, number)
        );
    }
    let invalid = Status::INVALID_FIELD.code();
    assert_eq!(host.status(line, &vector(32), &[]), invalid);
    assert_eq!(host.status(line, &set(feature::VECTOR, 32), &[]), invalid);
    host.well(line, &set(feature::VECTOR, 31 | 1 << 16), &[]);
    let value = |host: &mut Host, number| host.call(line, &vector(number), &[]).cqe.dw0.get();
    assert_eq!(value(&mut host, 31), 31 | 1 << 16, "not coalesced");
    assert_eq!(value(&mut host, 30), 30, "the others are");
    host.well(line, &set(feature::VECTOR, 31), &[]);
    assert_eq!(value(&mut host, 31), 31);
}

#[test]
fn unreadable_blocks_are_told() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, queue) = host.both();
    host.well(line, &set(feature::EVENTS, 1 << 13), &[]);
    host.tick(line).expect("goes on");
    let event = Sqe::fabric(admin::ASYNC_EVENT, 9, 0, Sgl::default());
    host.send(line, &event, &[]);
    host.talk(line).expect("goes on");
    let ask = |slba: u32, length: u32| {
        let mut sqe = Sqe::fabric(admin::GET_LBA_STATUS, 1, 1, Sgl::transport(4096));
        sqe.cdw10 = slba.into();
        sqe.cdw12 = 1023.into();
        sqe.cdw13 = (length | 0x11 << 24).into();
        sqe
    };
    let none = host.well(line, &ask(0, 0), &[]);
    assert_eq!((none.len(), none[0], none[4]), (4096, 0, 2));
    assert_eq!(
        host.log(line, log::LBA_STATUS, 16)[..12],
        [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    for (lba, blocks) in [(8, 4), (100, 1)] {
        let spoil = io(opcode::WRITE_UNCORRECTABLE, 1, lba, blocks, Sgl::default());
        host.well(queue, &spoil, &[]);
    }
    let some = host.well(line, &ask(10, 0), &[]);
    assert_eq!(some[0], 2);
    assert_eq!((some[8], some[16], some[24], some[32]), (10, 2, 100, 1));
    assert_eq!(host.well(line, &ask(0, 9), &[])[..17], {
        let mut one = [0; 17];
        (one[0], one[4], one[8], one[16]) = (1, 2, 8, 1);
        one
    });
    // A header of 16 bytes, an element of 16, two ranges; five blocks.
    let page = host.log(line, log::LBA_STATUS, 64);
    assert_eq!(
        (page[0], page[4], page[8], page[16], page[20]),
        (64, 1, 5, 1, 2)
    );
    assert_eq!((page[32], page[40], page[48], page[56]), (8, 4, 100, 1));
    host.tick(line).expect("goes on");
    let told = host.completion(line, 9).expect("an event").cqe.dw0.get();
    assert_eq!(told, 2 | 5 << 8 | u32::from(log::LBA_STATUS) << 16);
    // After a write, the blocks are readable again.
    host.well(
        queue,
        &io(opcode::WRITE, 1, 8, 4, Sgl::in_capsule(2048)),
        &[1; 2048],
    );
    assert_eq!(host.well(line, &ask(0, 0), &[])[0], 1);
    let beyond = ask((BYTES / 512) as u32, 0);
    assert_eq!(
        host.status(line, &beyond, &[]),
        Status::LBA_OUT_OF_RANGE.code()
    );
}

#[test]
fn health_counts_what_is_done() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    let health = |host: &mut Host| {
        let page = host.log(line, log::HEALTH, 512);
        HealthPage::read_from_bytes(&page).expect("512 bytes")
    };
    let before = health(&mut host);
    assert_eq!(before.power_cycles[0].get(), 1);
    assert!((273..400).contains(&before.composite_temperature.get()));
    for lba in 0..20 {
        let sqe = io(opcode::WRITE, 1, lba * 256, 256, Sgl::transport(128 << 10));
        host.well(queue, &sqe, &vec![1; 128 << 10]);
    }
    host.well(queue, &io(opcode::READ, 1, 0, 8, Sgl::transport(4096)), &[]);
    host.status(
        queue,
        &io(opcode::READ, 1, u64::MAX / 2, 8, Sgl::transport(4096)),
        &[],
    );
    let after = health(&mut host);
    assert_eq!(after.host_writes[0].get() - before.host_writes[0].get(), 20);
    assert_eq!(after.host_reads[0].get() - before.host_reads[0].get(), 1);
    // Thousands of 512 B, rounded up.
    assert_eq!(
        after.data_units_written[0].get(),
        (20 * 128 * 1024u64).div_ceil(512_000)
    );
    assert_eq!(
        after.error_log_entries[0].get() - before.error_log_entries[0].get(),
        1
    );
}

#[test]
fn log_pages_are_read_in_parts_and_not_beyond() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, _) = host.admin(0, usize::MAX);
    let whole = host.log(line, log::EFFECTS, 4096);
    let part = host.well(line, &crate::host::get_log(log::EFFECTS, 64, 1024), &[]);
    assert_eq!(part, whole[1024..1088]);
    assert_eq!(part[0] & 1, 1, "flush is supported");
    let odd = crate::host::get_log(log::EFFECTS, 64, 2);
    assert_eq!(host.status(line, &odd, &[]), Status::INVALID_FIELD.code());
    let beyond = crate::host::get_log(log::EFFECTS, 64, 8192);
    assert_eq!(
        host.status(line, &beyond, &[]),
        Status::INVALID_FIELD.code()
    );
    let unknown = crate::host::get_log(0xc0, 64, 0);
    assert_eq!(
        host.status(line, &unknown, &[]),
        Status::INVALID_LOG_PAGE.code()
    );
    let pages = host.log(line, log::SUPPORTED, 1024);
    assert_eq!(
        (pages[usize::from(log::HEALTH) * 4], pages[0xc0 * 4]),
        (1, 0)
    );
    let firmware = host.log(line, log::FIRMWARE, 512);
    assert!(firmware[0] == 1 && firmware[8..].starts_with(b"E2010"));
    let sanitize = host.log(line, log::SANITIZE, 512);
    assert_eq!(sanitize[..4], [0xff, 0xff, 0, 0]);
}

#[test]
fn events_wait_for_requests_and_requests_for_events() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (line, _) = host.admin(0, usize::MAX);
    host.well(line, &set(feature::EVENTS, 1 << 8), &[]);
    for cid in 10..18 {
        host.send(
            line,
            &Sqe::fabric(admin::ASYNC_EVENT, cid, 0, Sgl::default()),
            &[],
        );
    }
    host.talk(line).expect("goes on");
    assert!(
        (10..18).all(|cid| host.completion(line, cid).is_none()),
        "they are parked"
    );
    let ninth = Sqe::fabric(admin::ASYNC_EVENT, 18, 0, Sgl::default());
    assert_eq!(
        host.status(line, &ninth, &[]),
        Status::TOO_MANY_EVENTS.code()
    );
    let mut format = Sqe::fabric(admin::FORMAT, 1, 1, Sgl::default());
    format.cdw10 = 3.into();
    host.well(line, &format, &[]);
    host.tick(line).expect("goes on");
    let event = host
        .completion(line, 10)
        .expect("the namespace has changed")
        .cqe;
    assert_eq!(
        event.dw0.get(),
        2 | u32::from(log::CHANGED_NAMESPACES) << 16
    );
    // There is no second event before the list has been read.
    host.well(line, &format, &[]);
    host.tick(line).expect("goes on");
    assert!(host.completion(line, 11).is_none());
    assert_eq!(
        host.log(line, log::CHANGED_NAMESPACES, 4096)[..8],
        [1, 0, 0, 0, 0, 0, 0, 0]
    );
    host.tick(line).expect("goes on");
    assert!(host.completion(line, 11).is_some());
    // An event request can be aborted, another command cannot.
    let mut abort = Sqe::fabric(admin::ABORT, 2, 0, Sgl::default());
    abort.cdw10 = (12u32 << 16).into();
    assert_eq!(host.call(line, &abort, &[]).cqe.dw0.get(), 0);
    let aborted = host.completion(line, 12).expect("aborted").cqe.status();
    assert_eq!(aborted, Status::ABORT_REQUESTED);
    assert_eq!(host.call(line, &abort, &[]).cqe.dw0.get(), 1);
}

#[test]
fn a_silent_host_is_cut_off() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let line = host.open(0, usize::MAX);
    let (sqe, data) = live::nvme::initiator::ConnectTo {
        keep_alive_ms: 20,
        ..host.connect_to(0, 0xffff)
    }
    .command(0);
    host.well(line, &sqe, &data);
    let keep_alive = Sqe::fabric(admin::KEEP_ALIVE, 1, 0, Sgl::default());
    host.well(line, &keep_alive, &[]);
    host.tick(line).expect("it was just heard of");
    sleep(Duration::from_millis(60));
    assert!(
        matches!(host.tick(line), Err(ConnectionEnd::Broke(reason)) if reason.contains("keep-alive"))
    );
}

/// The pages of OCP and Intel, at the offsets at which nvme-cli reads them; other drives refuse them.
#[test]
fn pages_of_vendors_are_those_of_their_drives() {
    let number = |page: &[u8], at: usize| {
        let bytes = page[at..at + 8].try_into().expect("8 bytes");
        u64::from_le_bytes(bytes)
    };
    let mut host = Host::new(vec![drive("pm9a3-960")]);
    let (line, id) = host.admin(0, usize::MAX);
    let queue = host.io(id, 0, usize::MAX);
    for lba in 0..256 {
        let sqe = io(opcode::WRITE, 1, lba * 256, 256, Sgl::transport(128 << 10));
        host.well(queue, &sqe, &vec![1; 128 << 10]);
    }
    let smart = host.log(line, vendor::OCP_SMART, 512);
    assert_eq!(smart[496..500], [0xc5, 0xaf, 0x10, 0x28]);
    assert!(number(&smart, 0) > 0, "physical bytes written");
    assert_eq!(smart[103], 2, "version");
    let latency = host.log(line, vendor::OCP_LATENCY, 512);
    assert_eq!(latency[496..500], [0x92, 0x7a, 0xc0, 0x8c]);
    assert_eq!((latency[0], latency[6]), (1, 5), "on, 30 ms");
    let slow: Vec<u8> = latency[32..96].to_vec();
    assert!(slow.iter().all(|&byte| byte == 0), "nothing took 30 ms");
    let pages = host.log(line, log::SUPPORTED, 1024);
    assert_eq!(
        (pages[0xc0 * 4], pages[0xc3 * 4], pages[0xca * 4]),
        (1, 1, 0)
    );

    let mut host = Host::new(vec![drive("p4510-1000")]);
    let (line, _) = host.admin(0, usize::MAX);
    let page = host.log(line, vendor::INTEL_SMART, 512);
    // The twelfth item: bytes written to the medium.
    assert_eq!((page[0], page[11 * 12], page[12 * 12]), (0xab, 0xf4, 0xf5));
    let unknown = crate::host::get_log(vendor::OCP_SMART, 64, 0);
    assert_eq!(
        host.status(line, &unknown, &[]),
        Status::INVALID_LOG_PAGE.code()
    );
}

/// Vendor pages are those of the namespace's drive; the list of pages has those of all drives.
#[test]
fn pages_of_vendors_follow_the_namespace() {
    let mut host = Host::new(vec![drive("pm9a3-960"), drive("p4510-1000")]);
    let (line, _) = host.admin(0, usize::MAX);
    let asked = |page: u8, nsid: u32| {
        let mut sqe = crate::host::get_log(page, 512, 0);
        sqe.nsid = nsid.into();
        sqe
    };
    for (page, nsid) in [
        (vendor::OCP_SMART, 1),
        (vendor::OCP_SMART, u32::MAX),
        (vendor::OCP_LATENCY, 1),
        (vendor::INTEL_SMART, 2),
    ] {
        assert_eq!(host.well(line, &asked(page, nsid), &[]).len(), 512);
    }
    let refused = Status::INVALID_LOG_PAGE.code();
    for (page, nsid) in [
        (vendor::OCP_SMART, 2),
        (vendor::OCP_LATENCY, 2),
        (vendor::INTEL_SMART, 1),
        (vendor::INTEL_SMART, u32::MAX),
    ] {
        assert_eq!(
            host.status(line, &asked(page, nsid), &[]),
            refused,
            "{page} {nsid}"
        );
    }
    let pages = host.log(line, log::SUPPORTED, 1024);
    assert_eq!(
        (pages[0xc0 * 4], pages[0xc3 * 4], pages[0xca * 4]),
        (1, 1, 1)
    );
}
