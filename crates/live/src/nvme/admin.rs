//! Commands of admin queues: computes the answer from the state of the drives, the subsystem and the controller.
//!
//! This module has no connection: an answer that is not yet available names the event that it waits for, and the
//! connection keeps the command. Not supported: firmware download, directives, security, virtualisation. Source: NVM
//! Express Base Specification 1.4, chapter 5.

use super::answer::{AdminOutcome, StatusFailure, WaitCondition};
use super::describe;
use super::facts::Drives;
use super::features;
use super::format;
use super::lba_status;
use super::namespaces;
pub use super::opcode::admin as opcode;
use super::pages::{self, Local};
use super::self_test::{SelfTestStatus, code};
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Maximum bytes of data of an admin command in either direction.
pub(super) const MOST_DATA: u32 = 128 << 10;

/// Executes a command of this controller with this data; `local` is the address that the host has connected to.
pub(super) fn command(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    data: &[u8],
    local: &Local,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, StatusFailure> {
    let it = target.controller(controller);
    let it = it.ok_or((Status::INTERNAL_ERROR, 0))?;
    if !it.ready() && sqe.opcode != opcode::KEEP_ALIVE {
        return Err((Status::COMMAND_SEQUENCE, 0));
    }
    let answer = match sqe.opcode {
        opcode::IDENTIFY => {
            describe::identify(target, controller, sqe, drives).map(AdminOutcome::Page)
        }
        opcode::GET_LOG => {
            pages::get_log(target, controller, sqe, local, drives).map(AdminOutcome::Page)
        }
        opcode::GET_FEATURES => features::get(target, controller, sqe, drives),
        opcode::SET_FEATURES => features::set(target, controller, sqe, data, drives),
        opcode::ASYNC_EVENT => Ok(AdminOutcome::Later(WaitCondition::Event)),
        opcode::KEEP_ALIVE => Ok(AdminOutcome::Done(0)),
        _ if it.discovery => Err(Status::INVALID_OPCODE),
        opcode::ABORT => Ok(AdminOutcome::Abort {
            queue: sqe.cdw10.get() as u16,
            cid: (sqe.cdw10.get() >> 16) as u16,
        }),
        opcode::FORMAT => format::format(target, controller, sqe, drives),
        opcode::SANITIZE => format::sanitize(target, controller, sqe, drives),
        opcode::POWER_CUT => cut_power(target, controller, sqe.nsid.get(), drives),
        opcode::GET_LBA_STATUS => lba_status(target, controller, sqe, drives),
        _ if !target.subsystem.options.full => Err(Status::INVALID_OPCODE),
        // Commands that are offered on request, whether or not the drive supports them.
        opcode::SELF_TEST => self_test(target, controller, sqe, drives),
        opcode::NAMESPACES => namespaces::manage(target, controller, sqe, data, drives),
        opcode::ATTACHMENT => namespaces::attach(target, sqe, data, drives),
        _ => Err(Status::INVALID_OPCODE),
    };
    answer.map_err(|status| (status, 0))
}

fn lba_status(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let most = sqe.sgl.length.get().min(MOST_DATA) as usize;
    let namespace = target.active(controller, sqe.nsid.get())?;
    lba_status::command(namespace, sqe, most, drives).map(AdminOutcome::Page)
}

/// Cuts the power after the answer; the connections then end.
fn cut_power(
    target: &mut NvmeTarget,
    controller: u16,
    nsid: u32,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    for nsid in target.concerned(controller, nsid)? {
        let drive = target.namespace(nsid).map(|it| it.drive);
        drives.cut_power(drive.ok_or(Status::INVALID_NAMESPACE)?)?;
    }
    Ok(AdminOutcome::Done(0))
}

fn self_test(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, Status> {
    let (nsid, which) = (sqe.nsid.get(), sqe.cdw10.get() as u8 & 0xf);
    if which == code::ABORT {
        let tests = &mut target.self_tests;
        tests.interrupt(SelfTestStatus::Aborted, &target.subsystem, drives);
        return Ok(AdminOutcome::Done(0));
    }
    // The controller alone, all namespaces, or one.
    if nsid != 0 && nsid != u32::MAX {
        target.active(controller, nsid)?;
    }
    let tests = &mut target.self_tests;
    tests.begin(which, nsid, controller, &target.subsystem, drives)?;
    Ok(AdminOutcome::Done(0))
}

#[cfg(test)]
mod tests {
    use model::Span;
    use model::management::OperationKind;

    use super::*;
    use crate::nvme::attend::attend;
    use crate::nvme::controller::Notification;
    use crate::nvme::features::feature;
    use crate::nvme::log;
    use crate::nvme::rack::{Fake, Host, page};
    use crate::port::Notice;

    const MIB: u64 = 1 << 20;

    fn one() -> Host {
        Host::new([Fake::new(64 * MIB)], false)
    }

    fn number(page: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(*page[at..].first_chunk().expect("eight bytes"))
    }

    #[test]
    fn identify_tells_what_the_drives_are() {
        let small = Fake::new(16 * MIB);
        let mut host = Host::new([Fake::new(64 * MIB), small], false);
        let controller = host.identify(1, 0);
        assert_eq!(&controller[4..8], b"S1  ");
        assert_eq!(controller[77], 5, "transfers of 128 KiB");
        assert_eq!(controller[525], 7, "a volatile write cache");
        assert_eq!(number(&controller, 280), 80 * MIB);
        let namespace = host.identify(0, 2);
        assert_eq!(number(&namespace, 0), 16 * MIB / 512);
        assert_eq!(
            host.identify(2, 0)[..12],
            [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        );
        let absent = host.ask(opcode::IDENTIFY, 3, 0, 0);
        assert_eq!(absent, Err((Status::INVALID_NAMESPACE, 0)));
        host.rack.drives[0].facts.write_cache = false;
        host.rack.drives[1].facts.write_cache = false;
        assert_eq!(host.identify(1, 0)[525], 6, "no volatile write cache");
    }

    #[test]
    fn a_namespace_has_names_of_its_own() {
        let mut other = Fake::new(64 * MIB);
        other.facts.serial = "S2".into();
        let mut host = Host::new([Fake::new(64 * MIB), other], false);
        let (first, second) = (host.identify(3, 1), host.identify(3, 2));
        assert_eq!(first[..2], [2, 16]);
        assert_ne!(first[4..20], second[4..20]);
        assert_eq!(first[4..20], host.identify(0, 1)[104..120]);
    }

    #[test]
    fn health_is_that_of_the_namespaces_drive() {
        let mut warm = Fake::new(MIB);
        warm.health.celsius = 60.0;
        warm.health.lifetime.power_cycles = 9;
        let mut host = Host::new([Fake::new(MIB), warm], false);
        let kelvin = |page: &[u8]| u16::from_le_bytes([page[1], page[2]]);
        assert_eq!(kelvin(&host.log(log::HEALTH, 1, 512)), 303);
        let second = host.log(log::HEALTH, 2, 512);
        assert_eq!((kelvin(&second), number(&second, 112)), (333, 9));
        assert_eq!(kelvin(&host.log(log::HEALTH, u32::MAX, 512)), 303);
        let controller = host.target.controller(1).expect("it is there");
        controller.failed(0, 1, Status::INVALID_FIELD, 1, 0);
        assert_eq!(
            number(&host.log(log::HEALTH, 2, 512), 176),
            1,
            "errors counted"
        );
        assert_eq!(number(&host.log(log::HEALTH, 2, 512), 176), 1, "once");
    }

    #[test]
    fn a_log_page_is_cut_to_what_is_asked_for() {
        let mut host = one();
        let whole = host.log(log::SUPPORTED, 0, 1024);
        assert_eq!(
            (whole[usize::from(log::HEALTH) * 4], whole.len()),
            (1, 1024)
        );
        let sqe = Sqe {
            opcode: opcode::GET_LOG,
            cdw10: (1u32 << 16).into(),
            cdw12: (u32::from(log::HEALTH) * 4).into(),
            ..Sqe::default()
        };
        assert_eq!(page(host.send(&sqe, &[])), [1, 0, 0, 0, 1, 0, 0, 0]);
        let beyond = Sqe {
            cdw12: 1028.into(),
            ..sqe
        };
        assert_eq!(host.send(&beyond, &[]), Err((Status::INVALID_FIELD, 0)));
        let unknown = host.ask(opcode::GET_LOG, 0, 0xc0, 0);
        assert_eq!(unknown, Err((Status::INVALID_LOG_PAGE, 0)));
    }

    #[test]
    fn features_are_set_asked_for_and_at_their_defaults_again() {
        let mut host = one();
        let mut set = |number: u8, value| host.ask(opcode::SET_FEATURES, 0, number.into(), value);
        assert_eq!(set(feature::TEMPERATURE, 300), Ok(AdminOutcome::Done(0)));
        assert_eq!(set(feature::POWER, 1), Ok(AdminOutcome::Done(0)));
        assert_eq!(set(feature::POWER, 2), Err((Status::INVALID_FIELD, 0)));
        assert_eq!(set(feature::WRITE_CACHE, 0), Ok(AdminOutcome::Done(0)));
        let queues = Ok(AdminOutcome::Done(30 | 4 << 16));
        assert_eq!(set(feature::QUEUES, 99 | 4 << 16), queues);
        assert_eq!(set(feature::HOST_ID, 0), Err((Status::COMMAND_SEQUENCE, 0)));
        assert_eq!(host.rack.drives[0].state, 1);
        assert!(!host.rack.drives[0].facts.write_cache_enabled);
        let mut get = |number: u8, select: u32| {
            let cdw10 = u32::from(number) | select << 8;
            host.ask(opcode::GET_FEATURES, 0, cdw10, 0)
        };
        assert_eq!(get(feature::TEMPERATURE, 0), Ok(AdminOutcome::Done(300)));
        assert_eq!(get(feature::TEMPERATURE, 1), Ok(AdminOutcome::Done(343)));
        assert_eq!(get(feature::WRITE_CACHE, 0), Ok(AdminOutcome::Done(0)));
        assert_eq!(get(feature::WRITE_CACHE, 1), Ok(AdminOutcome::Done(1)));
    }

    /// OACS, SANICAP, ONCS and FUSES of Identify Controller, by their offsets.
    #[test]
    fn a_pool_with_its_data_by_member_does_not_offer_what_it_cannot() {
        let said = |by_member: bool| {
            let mut host = one();
            host.rack.drives[0].facts.by_member = by_member;
            host.target.subsystem.look(&mut host.rack);
            let page = host.identify(1, 0);
            let word = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
            let offered = [word(256) & 2, word(328), word(520) & 2, word(522)];
            (offered, host.ask(opcode::FORMAT, 1, 1, 0).is_ok())
        };
        assert_eq!(said(false), ([2, 2, 2, 1], true));
        assert_eq!(said(true), ([0; 4], false));
    }

    #[test]
    fn a_format_waits_for_the_drive_and_says_how_far_it_is() {
        let mut host = one();
        host.rack.drives[0].in_flight = true;
        let asked = host.ask(opcode::FORMAT, 1, 1, 0);
        assert_eq!(
            asked,
            Ok(AdminOutcome::Later(WaitCondition::Format(vec![1])))
        );
        let again = host.ask(opcode::FORMAT, 1, 1, 0);
        assert_eq!(again, Err((Status::FORMAT_IN_PROGRESS, 0)));
        assert_eq!(host.identify(0, 1)[32], 1 << 7 | 100, "all of it is left");
        host.rack.drives[0].in_flight = false;
        let sqe = Sqe {
            cdw10: 1.into(),
            ..Sqe::default()
        };
        let (target, rack) = (&mut host.target, &mut host.rack);
        format::start_formats(target, &sqe, &[1], rack);
        assert!(!format::ended(target, &[1], rack));
        rack.now += Span::from_ms(250);
        assert_eq!(host.identify(0, 1)[32], 1 << 7 | 75);
        let (target, rack) = (&mut host.target, &mut host.rack);
        rack.now += Span::from_ms(750);
        assert!(format::ended(target, &[1], rack));
        assert_eq!(format::end(target, 1, &sqe, &[1], rack), Status::SUCCESS);
        assert_eq!(rack.notices, [(0, Notice::Namespace)]);
        assert_eq!(number(&host.identify(0, 1), 0), 64 * MIB / 4096);
        let (none, bad) = (
            host.ask(opcode::FORMAT, 1, 9, 0),
            (Status::INVALID_FORMAT, 0),
        );
        assert_eq!(none, Err(bad));
        // Metadata must be transferred with the data.
        assert_eq!(host.ask(opcode::FORMAT, 1, 2, 0), Err(bad));
    }

    #[test]
    fn a_sanitize_is_refused_to_a_busy_drive_and_its_end_is_told() {
        let mut host = one();
        host.rack.drives[0].in_flight = true;
        let busy = host.ask(opcode::SANITIZE, 0, 2, 0);
        assert_eq!(busy, Err((Status::COMMAND_SEQUENCE, 0)));
        host.rack.drives[0].in_flight = false;
        assert_eq!(
            host.ask(opcode::SANITIZE, 0, 2, 0),
            Ok(AdminOutcome::Done(0))
        );
        let operation = host.rack.drives[0].operation.expect("it has begun");
        assert_eq!(operation.kind, OperationKind::Sanitize);
        let format = host.ask(opcode::FORMAT, 1, 0, 0);
        assert_eq!(format, Err((Status::SANITIZE_IN_PROGRESS, 0)));
        let next = |host: &mut Host| {
            attend(&mut host.target, 1, &mut host.rack);
            host.target.controller(1).expect("it is there").next_event()
        };
        assert_eq!(next(&mut host), None);
        host.rack.now += Span::from_ms(1_000);
        assert_eq!(next(&mut host), Some(Notification::SANITIZED));
    }

    #[test]
    fn a_self_test_takes_its_time_and_finds_what_cannot_be_read() {
        let mut host = Host::new([Fake::new(64 * MIB)], true);
        host.rack.drives[0].unreadable = vec![(5120, 6144)];
        let mut test = |code| host.ask(opcode::SELF_TEST, 1, code, 0);
        assert_eq!(test(3), Err((Status::INVALID_FIELD, 0)));
        assert_eq!(test(2), Ok(AdminOutcome::Done(0)));
        assert_eq!(test(1), Err((Status::SELF_TEST_IN_PROGRESS, 0)));
        host.rack.now += Span::from_ms(60_000);
        let page = host.log(log::SELF_TEST, 0, 564);
        assert_eq!(page[..2], [2, 50], "half of it is done");
        host.rack.now += Span::from_ms(60_000);
        let page = host.log(log::SELF_TEST, 0, 564);
        assert_eq!((page[0], page[4], page[5]), (0, 0x27, 7), "it has failed");
        assert_eq!(number(&page, 20), 10, "the first block");
        assert_eq!(page[32], 0xf, "no result before");
        let without = one().ask(opcode::SELF_TEST, 1, 1, 0);
        assert_eq!(without, Err((Status::INVALID_OPCODE, 0)));
    }

    #[test]
    fn namespaces_are_created_attached_detached_and_deleted() {
        let mut host = Host::new([Fake::new(64 * MIB)], true);
        let delete = |host: &mut Host, nsid| host.ask(opcode::NAMESPACES, nsid, 1, 0);
        let create = |host: &mut Host, blocks: u64, flbas: u8| {
            let mut data = vec![0; 4096];
            data[..8].copy_from_slice(&blocks.to_le_bytes());
            data[8..16].copy_from_slice(&blocks.to_le_bytes());
            data[26] = flbas;
            let sqe = Sqe {
                opcode: opcode::NAMESPACES,
                ..Sqe::default()
            };
            host.send(&sqe, &data)
        };
        let attach = |host: &mut Host, nsid: u32, select: u32| {
            let mut data = vec![0; 4096];
            (data[0], data[2]) = (1, 1);
            let sqe = Sqe {
                opcode: opcode::ATTACHMENT,
                nsid: nsid.into(),
                cdw10: select.into(),
                ..Sqe::default()
            };
            host.send(&sqe, &data)
        };
        let full = create(&mut host, 8, 0);
        assert_eq!(full, Err((Status::INSUFFICIENT_CAPACITY, 0)));
        assert_eq!(delete(&mut host, 1), Ok(AdminOutcome::Done(0)));
        assert_eq!(host.rack.drives[0].discarded, [(0, 64 * MIB)]);
        host.rack.drives[0].in_flight = true;
        let other_format = create(&mut host, 256, 1);
        assert_eq!(
            other_format,
            Ok(AdminOutcome::Later(WaitCondition::EmptyDrive))
        );
        host.rack.drives[0].in_flight = false;
        assert_eq!(create(&mut host, 256, 1), Ok(AdminOutcome::Done(1)));
        assert_eq!(
            host.rack.drives[0].facts.shares.as_ref().map(Vec::len),
            Some(1)
        );
        assert_eq!(host.identify(2, 0)[..4], [0; 4], "not attached yet");
        assert_eq!(host.identify(0x10, 0)[..4], [1, 0, 0, 0]);
        assert_eq!(attach(&mut host, 1, 0), Ok(AdminOutcome::Done(0)));
        assert_eq!(attach(&mut host, 1, 0), Err((Status::ALREADY_ATTACHED, 0)));
        assert_eq!(number(&host.identify(0, 1), 0), 256);
        assert_eq!(attach(&mut host, 1, 1), Ok(AdminOutcome::Done(0)));
        assert_eq!(host.identify(0, 1), vec![0; 4096]);
    }

    #[test]
    fn blocks_that_cannot_be_read_are_told_of_in_the_namespace_they_are_in() {
        let mut host = Host::new([Fake::new(MIB), Fake::new(MIB)], false);
        host.rack.drives[1].unreadable = vec![(1024, 4096)];
        let ask = |host: &mut Host, nsid: u32| {
            let sqe = Sqe {
                opcode: opcode::GET_LBA_STATUS,
                nsid: nsid.into(),
                cdw12: 15.into(),
                cdw13: (0x11u32 << 24).into(),
                sgl: crate::nvme::wire::Sgl {
                    length: 64.into(),
                    ..Default::default()
                },
                ..Sqe::default()
            };
            page(host.send(&sqe, &[]))
        };
        assert_eq!(ask(&mut host, 1)[0], 0);
        let second = ask(&mut host, 2);
        assert_eq!((second[0], number(&second, 8), second[16]), (1, 2, 6));
        let log = host.log(log::LBA_STATUS, 0, 64);
        assert_eq!((log[4], log[16]), (1, 2), "one element, of namespace 2");
    }

    #[test]
    fn nothing_is_done_before_the_controller_is_ready_and_a_discovery_controller_does_little() {
        let mut host = one();
        let controller = host.target.controller(1).expect("it is there");
        let disabled = controller.write_property(0x14, false, 0);
        disabled.expect("it is disabled");
        let early = host.ask(opcode::IDENTIFY, 0, 1, 0);
        assert_eq!(early, Err((Status::COMMAND_SEQUENCE, 0)));
        assert_eq!(
            host.ask(opcode::KEEP_ALIVE, 0, 0, 0),
            Ok(AdminOutcome::Done(0))
        );
        let discovery = host.target.create(true, 0, [2; 16], "nqn.other");
        let discovery = discovery.expect("a controller");
        let enabled = discovery.write_property(0x14, false, 1);
        enabled.expect("it is enabled");
        host.id = discovery.id;
        assert_eq!(host.identify(1, 0)[111], 2);
        let log = host.log(log::DISCOVERY, 0, 2048);
        assert_eq!((number(&log, 8), &log[1280..1284]), (1, &b"nqn."[..]));
        let format = host.ask(opcode::FORMAT, 1, 0, 0);
        assert_eq!(format, Err((Status::INVALID_OPCODE, 0)));
    }

    #[test]
    fn power_is_cut_for_the_drives_concerned() {
        let mut host = Host::new([Fake::new(MIB), Fake::new(MIB)], false);
        assert_eq!(
            host.ask(opcode::POWER_CUT, 2, 0, 0),
            Ok(AdminOutcome::Done(0))
        );
        assert_eq!(host.rack.notices, [(1, Notice::PowerCut)]);
        let all = host.ask(opcode::POWER_CUT, u32::MAX, 0, 0);
        assert_eq!(
            (all, host.rack.notices.len()),
            (Ok(AdminOutcome::Done(0)), 3)
        );
    }
}
