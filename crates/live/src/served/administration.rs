//! Administration of a served drive: format, power, health, faults.

use std::io;
use std::path::Path;

use catalogue::DriveSheet;
use model::management::{Health, LbaFormat, Management, Operation, Refusal, SanitizeStatus};
use model::media::Precondition;
use model::{Device, Gauge, Gauges, Span, Time};

use super::machine::Machine;
use super::{Outcome, ServedDevice};
use crate::setup::StoreChoice;
use crate::store::{Ranges, SavedState, no_room, save};

/// Losses of a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerLoss {
    /// Commands that were in flight.
    pub commands: usize,
    /// Bytes of acknowledged writes that were in a volatile cache, in whole 4 KiB pages.
    pub cached_bytes: u64,
}

/// Collects one gauge.
struct GaugeReader(Gauge, f64);

impl Gauges for GaugeReader {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == self.0 {
            self.1 += value;
        }
    }
}

/// Number of events between two calls of `goes_on` in [`ServedDevice::advance_while`].
const EVENTS: u32 = 16;

impl ServedDevice {
    /// Returns the drive's sheet in the catalogue.
    pub fn sheet(&self) -> &DriveSheet {
        &self.setup.sheet
    }

    /// Returns the initial state of the drive.
    pub fn precondition(&self) -> Precondition {
        self.setup.precondition.unwrap_or_default()
    }

    /// Returns the name under which the drive is exported.
    pub fn name(&self) -> &str {
        &self.setup.name
    }

    /// Returns the serial number.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// Returns the management functions of the drive.
    pub fn management(&self) -> &Management {
        &self.setup.sheet.management
    }

    /// Returns the number of the LBA format in use.
    pub fn lba_format_number(&self) -> usize {
        match &self.machine {
            Machine::Drive(it) => it.drive.lba_format_number(),
            Machine::Pool(_) => 0,
        }
    }

    /// Returns the duration of a FORMAT or sanitize.
    pub fn format_duration(&self) -> Span {
        self.machine.format_duration()
    }

    /// Checks whether it is a pool whose members store the data: then it has no FORMAT, and no unreadable blocks of
    /// its own.
    pub fn is_by_member(&self) -> bool {
        matches!(self.machine, Machine::Pool(_))
    }

    /// Returns the names of the members that may fail individually.
    pub fn members(&self) -> Vec<&str> {
        match &self.machine {
            Machine::Drive(_) => Vec::new(),
            Machine::Pool(pool) => pool.names().collect(),
        }
    }

    /// Returns the number of formats that are not the drive's own; these are the last ones.
    pub fn added_formats(&self) -> usize {
        self.setup.added_formats
    }

    /// Returns the data bytes of a logical block in the format in use.
    pub fn block(&self) -> u32 {
        self.lba_format().data
    }

    pub(super) fn lba_format(&self) -> LbaFormat {
        self.machine.lba_format(&self.setup.sheet.management)
    }

    /// Returns the sum of a gauge of the model as of the last event.
    pub fn gauge(&self, gauge: Gauge) -> f64 {
        let mut one = GaugeReader(gauge, 0.0);
        self.machine.inspect(self.now, &mut one);
        one.1
    }

    /// Returns the write amplification since the start: bytes programmed into the medium for each byte that hosts have
    /// written. Garbage collection counts towards the writes that use the freed blocks. The value is 1 before the
    /// first write.
    pub fn write_amplification(&self) -> f64 {
        let host = self.gauge(Gauge::HostBytesWritten);
        if host > 0.0 {
            self.gauge(Gauge::CausedBytesWritten) / host
        } else {
            1.0
        }
    }

    /// Returns the health at `now`.
    pub fn health(&mut self, now: Time) -> Health {
        let now = self.reach(now);
        let mut health = self.machine.health(now);
        health.warning.read_only |= self.read_only;
        health
    }

    /// Checks whether the drive is served read-only because the host has no space for the drive's state.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Makes the drive read-only: nothing is written and no state is saved any more.
    pub(crate) fn make_read_only(&mut self) {
        self.read_only = true;
        if let Machine::Pool(pool) = &mut self.machine {
            pool.stop_writing();
        }
    }

    /// Returns the file of the store, if it has one.
    pub fn store_file(&self) -> Option<&Path> {
        match &self.setup.store {
            StoreChoice::Memory => None,
            StoreChoice::File(path) => Some(path),
        }
    }

    /// Returns an error of the store, with the file's name.
    pub(super) fn of_store(&self, error: io::Error) -> io::Error {
        match self.store_file() {
            None => error,
            Some(path) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        }
    }

    /// Advances to `now`, or to the last event if that was later.
    pub(super) fn reach(&mut self, now: Time) -> Time {
        self.run_until(now);
        self.now = self.now.max(now);
        self.now
    }

    /// Housekeeping, about every 100 ms: temperature, and writing out data that the model has destaged from the
    /// volatile cache.
    pub(crate) fn settle(&mut self, now: Time) {
        let now = self.reach(now);
        self.keep_house(now);
    }

    /// Runs the model up to `until` while `goes_on` returns true, which is called after every few events. Returns whether
    /// `until` was reached. Replies are due at once.
    pub(crate) fn advance_while(&mut self, until: Time, goes_on: &mut dyn FnMut() -> bool) -> bool {
        for count in 1_u32.. {
            let next = self.machine.next_event().min(self.held.next());
            if next > until || next == Time::NEVER || self.power_fails {
                break;
            }
            if count % EVENTS == 0 && !goes_on() {
                return false;
            }
            self.run_until(next);
        }
        true
    }

    /// Runs the model up to `until` while `goes_on` returns true, then does what [`ServedDevice::settle`] does.
    pub(crate) fn settle_while(&mut self, until: Time, goes_on: &mut dyn FnMut() -> bool) {
        let now = match self.advance_while(until, goes_on) {
            true => self.reach(until),
            false => self.now,
        };
        self.keep_house(now);
    }

    fn keep_house(&mut self, now: Time) {
        self.machine.each_drive(|drive| {
            drive.observe(now);
        });
        let failed = match &mut self.machine {
            Machine::Drive(_) => self.settle_data().err(),
            Machine::Pool(pool) => pool.take_failure(),
        };
        if let Some(error) = failed {
            self.not_taken(&error);
        }
        self.has_room();
    }

    /// Checks whether a pool's members have writes that wait for space, or for `pool.state`: [`ServedDevice::settle`] tries
    /// to write them.
    pub(crate) fn waits_for_room(&self) -> bool {
        matches!(&self.machine, Machine::Pool(pool) if pool.is_full() && !self.read_only)
    }

    /// Checks whether the host has space for the data that a pool's members have written. If so, waiting writes are
    /// written.
    pub(super) fn has_room(&mut self) -> bool {
        let Machine::Pool(pool) = &mut self.machine else {
            return true;
        };
        if !pool.is_full() {
            return true;
        }
        let (lacked, lacks_note) = (no_room(&pool.no_room()), pool.lacks_note());
        let was_leaving = pool.is_leaving();
        let written = !self.read_only && pool.write_waiting(self.now).is_ok();
        if !written && !was_leaving && pool.is_leaving() {
            self.flush_unheard(0);
        }
        if written {
            let told = match (lacked, lacks_note) {
                (true, _) => {
                    "the disk of its stores has free space again: they are written as before"
                }
                (_, true) => "pool.state can be written again: its stores are written as before",
                _ => "its stores can be written again: they are written as before",
            };
            self.news.push_back(told.into());
        }
        written
    }

    /// Writes data to the store that the drive's model no longer has in its buffer.
    pub(super) fn settle_data(&mut self) -> io::Result<()> {
        let Machine::Drive(it) = &mut self.machine else {
            return Ok(());
        };
        if !it.data.has_cache() {
            return Ok(());
        }
        let mut buffered = Vec::new();
        it.drive.at_risk(&mut buffered);
        it.data.settle(&Ranges::new(buffered))
    }

    /// Checks whether the drive has a volatile write cache.
    pub fn has_write_cache(&self) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.has_cache(),
            Machine::Pool(pool) => pool.needs_flushes(),
        }
    }

    /// Checks whether the drive has a volatile write cache that is enabled.
    pub fn write_cache_enabled(&self) -> bool {
        match &self.machine {
            Machine::Drive(it) => it.data.cache_enabled(),
            Machine::Pool(pool) => pool.needs_flushes(),
        }
    }

    /// Enables or disables the volatile write cache. If it is disabled, every write is treated as FUA. The cache of a
    /// pool stays enabled.
    ///
    /// # Errors
    /// Errors of the store, to which cached data must be written.
    pub fn enable_write_cache(&mut self, enabled: bool) -> Result<(), Outcome> {
        let emptied = match &mut self.machine {
            Machine::Drive(it) => it.data.enable_cache(enabled),
            Machine::Pool(_) if enabled => Ok(()),
            Machine::Pool(_) => return Err(Outcome::Failed),
        };
        if !enabled && emptied.is_ok() {
            self.log_flush();
        }
        emptied.map_err(|error| self.failed_after_all(&error))
    }

    /// Returns the protection information of the format in use, in the representation of the front end that set it.
    pub fn protection(&self) -> u8 {
        self.protection
    }

    /// Begins FORMAT NVM to the format with this number and this [`ServedDevice::protection`]. All data is erased at once,
    /// and commands end with [`Outcome::Formatting`] until [`ServedDevice::operation`] is over.
    ///
    /// # Errors
    /// There is no such format, commands are in flight, or an operation is in progress.
    pub fn format(
        &mut self,
        now: Time,
        number: usize,
        protection: u8,
    ) -> Result<Operation, Refusal> {
        let now = self.reach(now);
        self.may_forget()?;
        let operation = self.machine.drive_alone()?.format(now, number)?;
        self.protection = protection;
        self.forget_everything();
        Ok(operation)
    }

    /// Begins a sanitize: like [`ServedDevice::format`], with the format in use.
    ///
    /// # Errors
    /// Commands are in flight, or an operation is in progress.
    pub fn sanitize(&mut self, now: Time) -> Result<Operation, Refusal> {
        let now = self.reach(now);
        self.may_forget()?;
        let operation = self.machine.drive_alone()?.sanitize(now)?;
        self.forget_everything();
        Ok(operation)
    }

    /// Checks whether all data may be erased.
    fn may_forget(&self) -> Result<(), Refusal> {
        match () {
            () if self.read_only => Err(Refusal::Invalid("the drive is served read-only")),
            () if self.in_flight() > 0 => Err(Refusal::Busy),
            () => Ok(()),
        }
    }

    /// Erases all data, as the format in use stores it. A store that fails to erase becomes unusable.
    fn forget_everything(&mut self) {
        self.break_off_log("the drive was formatted or sanitized");
        let Machine::Drive(it) = &mut self.machine else {
            return;
        };
        let written = it.drive.lifetime(self.now).host_bytes_written;
        self.ftl = (Precondition::Fresh, written);
        let format = it.drive.lba_format();
        let metadata = self.bytes / u64::from(format.data) * u64::from(format.metadata);
        let cleared = it.data.clear();
        let cleared = cleared.and_then(|()| it.data.set_metadata(metadata, true));
        if cleared.and_then(|()| self.save(false)).is_err() {
            self.spoil(0, self.bytes);
        }
    }

    /// Returns the FORMAT or sanitize in progress at `now`.
    pub fn operation(&mut self, now: Time) -> Option<Operation> {
        self.machine.operation(now.max(self.now))
    }

    /// Returns the status in the sanitize log at `now`.
    pub fn sanitize_status(&mut self, now: Time) -> SanitizeStatus {
        let now = now.max(self.now);
        let drive = self.machine.drive_alone();
        drive.map_or(SanitizeStatus::Never, |it| it.sanitize_status(now))
    }

    /// Returns the governor's limit in watts, if there is a governor.
    pub fn power_limit(&self) -> Option<f64> {
        match &self.machine {
            Machine::Drive(it) => it.drive.power_limit(),
            Machine::Pool(pool) => pool.power_limit(),
        }
    }

    /// Sets the governor's limit in watts.
    ///
    /// # Errors
    /// There is no governor, or the limit is not above idle power.
    pub fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        self.machine.set_power_limit(watts)
    }

    /// Counts an entry in the error log.
    pub fn count_error_log_entry(&mut self) {
        if let Ok(drive) = self.machine.drive_alone() {
            drive.count_error_log_entry();
        }
    }

    /// Counts data that could not be returned.
    pub(super) fn count_media_error(&mut self) {
        if let Ok(drive) = self.machine.drive_alone() {
            drive.count_media_error();
        }
    }

    /// Cuts power and restores it. Commands in flight end with [`Outcome::PowerLoss`], the content of the drive's
    /// buffer is lost, and the drive runs its power-on sequence. Use [`crate::Port::fault`], which informs the front
    /// ends.
    pub fn power_cut(&mut self, now: Time) -> PowerLoss {
        self.break_off_log("a power cut of the served drive");
        // If a count has triggered the power cut, the model has not advanced since then.
        let now = match std::mem::take(&mut self.power_fails) {
            true => self.now,
            false => self.reach(now),
        };
        let (back, cached_bytes, lines) = match &mut self.machine {
            Machine::Drive(it) => {
                let mut lost = Vec::new();
                let back = it.drive.power_cut(now, &mut lost);
                (back, it.data.lose_power(&Ranges::new(lost)), Vec::new())
            }
            Machine::Pool(pool) => pool.power_cut(now),
        };
        self.now = back;
        self.findings = lines;
        let slots = std::mem::take(&mut self.slots);
        let inside: Vec<_> = slots.into_iter().map(|(_, slot)| slot).collect();
        let unheard = inside.iter().filter(|slot| !slot.heard).count();
        let held = self.held.drop_all();
        let loss = PowerLoss {
            commands: inside.len() - unheard + held.len(),
            cached_bytes,
        };
        for slot in inside.iter().filter(|slot| slot.heard) {
            self.end(slot, Outcome::PowerLoss);
        }
        self.ready
            .extend(held.into_iter().map(|reply| super::Reply {
                outcome: Outcome::PowerLoss,
                ..reply
            }));
        loss
    }

    /// Saves the drive's state, if it has a file for it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save(&self, clean: bool) -> io::Result<()> {
        if let (Machine::Pool(pool), false) = (&self.machine, self.read_only) {
            return pool.save(self.now, clean);
        }
        let Some(path) = self.state_file.as_ref().filter(|_| !self.read_only) else {
            return Ok(());
        };
        let Some(state) = self.state() else {
            return Ok(());
        };
        let state = SavedState { clean, ..state };
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        save(path, &state).map_err(named)
    }

    /// Saves the state during service; an error is reported with other complaints.
    pub(crate) fn save_for_now(&mut self) {
        if let Err(error) = self.save(false) {
            self.troubles[1].note(&error);
        }
    }
}
