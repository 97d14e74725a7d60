//! Fake drives with properties set by a test, and the admin commands of a controller without a connection.

use model::management::{Health, LbaFormat, Lifetime, Operation, OperationKind, SanitizeStatus};
use model::{Span, Time};

use super::admin;
use super::answer::{AdminOutcome, StatusFailure};
use super::controller::{VERSION, property};
use super::extended;
use super::facts::{Drives, Facts, StartResult};
use super::opcode::admin as opcode;
use super::protection::{Protection, Tuple};
use super::subsystem::NvmeOptions;
use super::target::NvmeTarget;
use super::vendor::VendorFacts;
use super::wire::{Sqe, Status};
use crate::clock::Wall;
use crate::port::Notice;
use crate::store::Share;

/// A fake drive.
#[derive(Clone, Debug)]
pub(super) struct Fake {
    pub(super) facts: Facts,
    pub(super) health: Health,
    pub(super) unreadable: Vec<(u64, u64)>,
    pub(super) operation: Option<Operation>,
    pub(super) sanitized: SanitizeStatus,
    pub(super) in_flight: bool,
    pub(super) discarded: Vec<(u64, u64)>,
    pub(super) state: u32,
}

impl Fake {
    /// Returns a drive of this size with blocks of 512 B, 4096 B, and 512 B with 8 of metadata.
    pub(super) fn new(bytes: u64) -> Fake {
        let formats = vec![
            LbaFormat::plain(512),
            LbaFormat::plain(4096),
            LbaFormat {
                metadata: 8,
                ..LbaFormat::plain(512)
            },
        ];
        let facts = Facts {
            vendor: 0x8086,
            log_pages: Default::default(),
            model: "FAKE".into(),
            serial: "S1".into(),
            firmware: "F1".into(),
            warning_kelvin: 343,
            critical_kelvin: 358,
            write_cache: true,
            write_cache_enabled: true,
            bytes,
            read_only: false,
            power_limits_watts: vec![25.0, 10.0],
            tuples: extended::tuples(formats.len(), 0),
            formats,
            added_formats: 0,
            format: 0,
            protection: Protection::from_bits(0, Tuple::default()),
            max_transfer: Some(128 << 10),
            io_queues: 31,
            shares: None,
            by_member: false,
        };
        Fake {
            facts,
            health: Health {
                warning: Default::default(),
                celsius: 30.0,
                available_spare: 100,
                spare_threshold: 10,
                watts: 5.0,
                lifetime: Lifetime::default(),
            },
            unreadable: Vec::new(),
            operation: None,
            sanitized: SanitizeStatus::Never,
            in_flight: false,
            discarded: Vec::new(),
            state: 0,
        }
    }
}

/// All fake drives, at a time chosen by the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    pub(super) drives: Vec<Fake>,
    pub(super) now: Time,
    pub(super) notices: Vec<(usize, Notice)>,
    pub(super) rung: Vec<u32>,
}

impl Rack {
    pub(super) fn of(drives: impl IntoIterator<Item = Fake>) -> Rack {
        Rack {
            drives: drives.into_iter().collect(),
            ..Rack::default()
        }
    }

    fn begin(&mut self, drive: usize, kind: OperationKind) -> StartResult {
        if self.drives[drive].in_flight {
            return StartResult::Busy;
        }
        self.drives[drive].operation = Some(Operation {
            kind,
            since: self.now,
            until: self.now + Span::from_ms(1_000),
        });
        StartResult::Yes
    }
}

impl Drives for Rack {
    fn facts(&mut self, drive: usize) -> Facts {
        self.drives[drive].facts.clone()
    }
    fn health(&mut self, drive: usize) -> Health {
        self.drives[drive].health.clone()
    }
    fn vendor(&mut self, _: usize) -> VendorFacts {
        VendorFacts::default()
    }
    fn unreadable(&mut self, drive: usize) -> Vec<(u64, u64)> {
        self.drives[drive].unreadable.clone()
    }
    fn unreadable_changes(&mut self, drive: usize) -> u16 {
        self.drives[drive].unreadable.len() as u16
    }
    fn sanitized(&mut self, drive: usize) -> SanitizeStatus {
        self.drives[drive].sanitized
    }
    fn format_seconds(&mut self, _: usize) -> u32 {
        1
    }
    fn operation(&mut self, drive: usize) -> Option<Operation> {
        self.drives[drive]
            .operation
            .filter(|it| self.now < it.until)
    }
    fn now(&mut self, _: usize) -> Time {
        self.now
    }
    fn wall(&self) -> Wall {
        Wall::from_ns(self.now.since(Time::ZERO).ns())
    }
    fn free(&self) -> bool {
        false
    }
    fn begin_format(&mut self, drive: usize, number: usize, dps: u8) -> StartResult {
        let begun = self.begin(drive, OperationKind::Format);
        if begun == StartResult::Yes {
            self.drives[drive].facts.format = number;
            self.drives[drive].facts.protection = Protection::from_bits(dps, Tuple::default());
        }
        begun
    }
    fn adopt_format(&mut self, drive: usize, number: usize, _: u8) -> StartResult {
        if self.drives[drive].in_flight {
            return StartResult::Busy;
        }
        self.drives[drive].facts.format = number;
        StartResult::Yes
    }
    fn begin_sanitize(&mut self, drive: usize) -> StartResult {
        self.begin(drive, OperationKind::Sanitize)
    }
    fn set_power_state(&mut self, drive: usize, state: u32) -> Result<(), Status> {
        let fake = &mut self.drives[drive];
        if state as usize >= fake.facts.power_limits_watts.len() {
            return Err(Status::INVALID_FIELD);
        }
        fake.state = state;
        Ok(())
    }
    fn enable_write_cache(&mut self, drive: usize, on: bool) -> Result<(), Status> {
        self.drives[drive].facts.write_cache_enabled = on;
        Ok(())
    }
    fn discard(&mut self, drive: usize, first: u64, bytes: u64) -> Result<(), Status> {
        self.drives[drive].discarded.push((first, bytes));
        Ok(())
    }
    fn divide(&mut self, drive: usize, shares: Option<Vec<Share>>) -> Result<(), Status> {
        self.drives[drive].facts.shares = shares;
        Ok(())
    }
    fn cut_power(&mut self, drive: usize) -> Result<(), Status> {
        self.notices.push((drive, Notice::PowerCut));
        Ok(())
    }
    fn count_error(&mut self, drive: usize) {
        self.drives[drive].health.lifetime.error_log_entries += 1;
    }
    fn ring(&mut self, endpoint: u32) {
        self.rung.push(endpoint);
    }
    fn ring_back(&mut self) {}
    fn notify(&mut self, drive: usize, notice: Notice) {
        self.notices.push((drive, notice));
    }
}

/// A host's controller of a subsystem of these drives.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) rack: Rack,
    pub(super) target: NvmeTarget,
    pub(super) id: u16,
}

impl Host {
    /// Returns a host of a subsystem that offers the drives' capabilities, or everything.
    pub(super) fn new(drives: impl IntoIterator<Item = Fake>, full: bool) -> Host {
        let mut rack = Rack::of(drives);
        let options = NvmeOptions {
            full,
            ..NvmeOptions::new("fake", rack.drives.len())
        };
        let mut target = NvmeTarget::new(options);
        target.look(&mut rack);
        let controller = target.create(false, 0, [1; 16], "nqn.host");
        let controller = controller.expect("a controller");
        let enabled = controller.write_property(property::CC, false, 1);
        enabled.expect("it is enabled");
        assert_eq!(
            controller.read_property(property::VS, false),
            Some(VERSION.into())
        );
        let id = controller.id;
        Host { rack, target, id }
    }

    /// Sends a command with data.
    pub(super) fn send(&mut self, sqe: &Sqe, data: &[u8]) -> Result<AdminOutcome, StatusFailure> {
        let local = ("127.0.0.1".into(), 4420);
        admin::command(&mut self.target, self.id, sqe, data, &local, &mut self.rack)
    }

    /// Sends a command with these dwords 10 and 11.
    pub(super) fn ask(
        &mut self,
        opcode: u8,
        nsid: u32,
        cdw10: u32,
        cdw11: u32,
    ) -> Result<AdminOutcome, StatusFailure> {
        let sqe = Sqe {
            opcode,
            nsid: nsid.into(),
            cdw10: cdw10.into(),
            cdw11: cdw11.into(),
            ..Sqe::default()
        };
        self.send(&sqe, &[])
    }

    /// Returns the page of an Identify.
    pub(super) fn identify(&mut self, cns: u8, nsid: u32) -> Vec<u8> {
        page(self.ask(opcode::IDENTIFY, nsid, cns.into(), 0))
    }

    /// Returns this number of bytes of a log page.
    pub(super) fn log(&mut self, number: u8, nsid: u32, bytes: u32) -> Vec<u8> {
        let cdw10 = u32::from(number) | (bytes / 4 - 1) << 16;
        page(self.ask(opcode::GET_LOG, nsid, cdw10, 0))
    }
}

/// Returns the page of an answer.
pub(super) fn page(answer: Result<AdminOutcome, StatusFailure>) -> Vec<u8> {
    match answer {
        Ok(AdminOutcome::Page(page)) => page,
        other => panic!("not a page: {other:?}"),
    }
}
