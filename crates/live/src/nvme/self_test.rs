//! Device self-test: start, progress, end, and the log page with the results.
//!
//! The duration of a test is measured by the drive's clock; the test does not slow the host's commands. It detects
//! faults that the model knows: a drive at the end of its endurance (both tests), and blocks that cannot be read (the
//! extended test, which reads the medium). Not supported: segments, vendor-specific tests, and a test that continues
//! after a restart of the server. Source: NVM Express Base Specification 1.4, chapters 5.8, 5.14.1.6 and 8.11; 2.0,
//! figures 205 to 207. The duration of the extended test is assumed: reading the drive once, at the rate below.

use std::collections::VecDeque;

use model::{Span, Time};

use super::facts::Drives;
use super::subsystem::Subsystem;
use super::wire::Status;

/// Number of results that are kept.
const RESULTS: usize = 20;
/// Bytes of a result.
const RESULT: usize = 28;
/// Duration of a short test, at most two minutes.
const SHORT: Span = Span::from_ms(60_000);
/// Bytes per second at which the extended test reads the medium. Assumed.
const BYTES_A_SECOND: u64 = 1 << 30;
/// Identifier for all namespaces.
const ALL: u32 = u32::MAX;

/// Codes of tests.
pub(super) mod code {
    pub(in crate::nvme) const SHORT: u8 = 1;
    pub(in crate::nvme) const EXTENDED: u8 = 2;
    pub(in crate::nvme) const ABORT: u8 = 0xf;
}

/// Result of a test, as in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SelfTestStatus {
    /// No fault was found.
    Well = 0,
    /// Aborted by a command.
    Aborted = 1,
    /// Aborted by a reset of the controller.
    Reset = 2,
    /// Aborted because its namespace was deleted.
    NamespaceGone = 3,
    /// Aborted by Format NVM.
    Formatted = 4,
    /// The named segment failed.
    Failed = 7,
    /// Aborted by a Sanitize.
    Sanitized = 9,
}

/// A test in progress.
#[derive(Clone, Copy, Debug)]
struct ActiveSelfTest {
    code: u8,
    nsid: u32,
    controller: u16,
    since: Time,
    until: Time,
}

/// A test that has ended.
#[derive(Clone, Copy, Debug)]
struct SelfTestResult {
    code: u8,
    ended: SelfTestStatus,
    hours: u64,
    nsid: u32,
    /// Segment, and namespace and block if the fault is a block.
    failure: (u8, Option<(u32, u64)>),
}

/// Tests of a subsystem, one at a time.
#[derive(Debug, Default)]
pub(super) struct SelfTests {
    running: Option<ActiveSelfTest>,
    /// Results, the newest first.
    results: VecDeque<SelfTestResult>,
}

/// Segments, numbered as in the specification's example: SMART check, media check.
const SMART: u8 = 2;
const MEDIA: u8 = 7;

/// Returns the duration of the extended test for this capacity.
fn extended(bytes: u64) -> Span {
    // Not shorter than the short test.
    Span::from_ms(bytes / (BYTES_A_SECOND / 1000)).max(SHORT * 2)
}

/// Returns the minutes of an extended test, for Identify Controller.
pub(super) fn extended_minutes(bytes: u64) -> u16 {
    let minutes = extended(bytes).seconds() / 60.0;
    minutes.ceil().min(65_535.0) as u16
}

/// Returns the drive whose clock is used.
fn clock_of(subsystem: &Subsystem) -> usize {
    let first = subsystem.options.drives.first();
    first.copied().unwrap_or_default()
}

impl SelfTests {
    /// Executes Device Self-test: begins a test with this code of this namespace, of all, or (0) of the controller
    /// alone.
    ///
    /// # Errors
    /// The status for a test that does not exist, or that is not possible now.
    pub(super) fn begin(
        &mut self,
        code: u8,
        nsid: u32,
        controller: u16,
        subsystem: &Subsystem,
        drives: &mut dyn Drives,
    ) -> Result<(), Status> {
        if code != code::SHORT && code != code::EXTENDED {
            return Err(Status::INVALID_FIELD);
        }
        self.settle(subsystem, drives);
        if self.running.is_some() {
            return Err(Status::SELF_TEST_IN_PROGRESS);
        }
        if subsystem.present().any(|(_, it)| it.format.is_some()) {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        if subsystem.present().any(|(_, it)| it.sanitizing) {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        let all = subsystem.options.drives.iter();
        let bytes: u64 = all.map(|&it| drives.facts(it).bytes).sum();
        let takes = if code == code::SHORT {
            SHORT
        } else {
            extended(bytes)
        };
        let now = drives.now(clock_of(subsystem));
        self.running = Some(ActiveSelfTest {
            code,
            nsid,
            controller,
            since: now,
            until: now + takes,
        });
        self.settle(subsystem, drives);
        Ok(())
    }

    /// Ends the test if its time has passed; without a clock, it ends at once.
    pub(super) fn settle(&mut self, subsystem: &Subsystem, drives: &mut dyn Drives) {
        let Some(running) = self.running else {
            return;
        };
        let now = drives.now(clock_of(subsystem));
        if now < running.until && !drives.free() {
            return;
        }
        let ended = match found(subsystem, &running, drives) {
            Some(_) => SelfTestStatus::Failed,
            None => SelfTestStatus::Well,
        };
        self.end(ended, subsystem, drives);
    }

    /// Aborts the test in progress, unless it has already ended.
    pub(super) fn interrupt(
        &mut self,
        ended: SelfTestStatus,
        subsystem: &Subsystem,
        drives: &mut dyn Drives,
    ) {
        self.settle(subsystem, drives);
        self.end(ended, subsystem, drives);
    }

    /// Ends the test in progress, if there is one.
    fn end(&mut self, ended: SelfTestStatus, subsystem: &Subsystem, drives: &mut dyn Drives) {
        let Some(running) = self.running.take() else {
            return;
        };
        let failure = match ended {
            SelfTestStatus::Failed => found(subsystem, &running, drives),
            _ => None,
        };
        self.results.truncate(RESULTS - 1);
        self.results.push_front(SelfTestResult {
            code: running.code,
            ended,
            hours: drives.health(clock_of(subsystem)).power_on_hours(),
            nsid: running.nsid,
            failure: failure.unwrap_or_default(),
        });
    }

    /// Handles a reset of a controller: aborts the short test that it began; an extended test continues.
    pub(super) fn reset(
        &mut self,
        controller: u16,
        subsystem: &Subsystem,
        drives: &mut dyn Drives,
    ) {
        self.settle(subsystem, drives);
        let short = |it: ActiveSelfTest| it.code == code::SHORT && it.controller == controller;
        if self.running.is_some_and(short) {
            self.end(SelfTestStatus::Reset, subsystem, drives);
        }
    }

    /// Handles the deletion of a namespace: aborts a test of it.
    pub(super) fn namespace_gone(
        &mut self,
        nsid: u32,
        subsystem: &Subsystem,
        drives: &mut dyn Drives,
    ) {
        self.settle(subsystem, drives);
        if self.running.is_some_and(|it| it.nsid == nsid) {
            self.end(SelfTestStatus::NamespaceGone, subsystem, drives);
        }
    }

    /// Returns the log page.
    pub(super) fn page(&mut self, subsystem: &Subsystem, drives: &mut dyn Drives) -> Vec<u8> {
        self.settle(subsystem, drives);
        let now = drives.now(clock_of(subsystem));
        let mut page = vec![0; 4];
        if let Some(running) = self.running {
            let all = running.until.since(running.since).seconds();
            page[0] = running.code;
            page[1] = (now.since(running.since).seconds() / all * 100.0).min(99.0) as u8;
        }
        for outcome in &self.results {
            page.extend_from_slice(&outcome.bytes());
        }
        // Unused entries are marked as such.
        while page.len() < 4 + RESULTS * RESULT {
            let mut none = [0; RESULT];
            none[0] = 0xf;
            page.extend_from_slice(&none);
        }
        page
    }
}

/// Returns the fault that a test finds: the segment, and the block if the fault is a block.
fn found(
    subsystem: &Subsystem,
    running: &ActiveSelfTest,
    drives: &mut dyn Drives,
) -> Option<(u8, Option<(u32, u64)>)> {
    for &drive in &subsystem.options.drives {
        let warning = drives.health(drive).warning;
        if warning.spare || warning.reliability || warning.read_only {
            return Some((SMART, None));
        }
    }
    if running.code != code::EXTENDED || running.nsid == 0 {
        return None;
    }
    for (nsid, namespace) in subsystem.present() {
        if running.nsid != ALL && running.nsid != nsid {
            continue;
        }
        let block = u64::from(namespace.block);
        let end = namespace.first + namespace.blocks * block;
        let unreadable = drives.unreadable(namespace.drive);
        let first = unreadable
            .iter()
            .find(|(start, stop)| *stop > namespace.first && *start < end);
        if let Some((start, _)) = first {
            let lba = start.saturating_sub(namespace.first) / block;
            return Some((MEDIA, Some((nsid, lba))));
        }
    }
    None
}

impl SelfTestResult {
    fn bytes(&self) -> [u8; RESULT] {
        let mut bytes = [0; RESULT];
        let (segment, block) = self.failure;
        bytes[0] = self.code << 4 | self.ended as u8;
        bytes[1] = segment;
        bytes[4..12].copy_from_slice(&self.hours.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.nsid.to_le_bytes());
        if let Some((nsid, lba)) = block {
            // Namespace, block, and the status of an unrecovered read are valid.
            bytes[2] = 0b1111;
            bytes[12..16].copy_from_slice(&nsid.to_le_bytes());
            bytes[16..24].copy_from_slice(&lba.to_le_bytes());
            let code = Status::UNRECOVERED_READ.code();
            (bytes[24], bytes[25]) = ((code >> 8) as u8, code as u8);
        }
        bytes
    }
}
