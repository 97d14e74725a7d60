//! What an administrator asks of a served drive, and what happens to it: format, power, health, faults.

use std::io;
use std::path::Path;

use catalogue::DriveSheet;
use model::management::{Health, ManagedDrive, Operation, Refusal, SanitizeStatus};
use model::media::Precondition;
use model::{Device, Gauge, Gauges, Span, Time};

use super::{Outcome, Served};
use crate::faults::Fault;
use crate::setup::StoreChoice;
use crate::store::{Ranges, State, save};

/// What a power cut took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerLoss {
    /// Commands that were in the drive.
    pub commands: usize,
    /// Bytes of acknowledged writes that were in a volatile cache, in whole 4 KiB pages.
    pub cached_bytes: u64,
}

/// Takes one gauge.
struct One(Gauge, f64);

impl Gauges for One {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == self.0 {
            self.1 += value;
        }
    }
}

impl Served {
    /// What the catalogue says of the drive.
    pub fn sheet(&self) -> &DriveSheet {
        &self.setup.sheet
    }

    /// What it was like at the start.
    pub fn precondition(&self) -> Precondition {
        self.setup.precondition.unwrap_or_default()
    }

    /// Name under which it is exported.
    pub fn name(&self) -> &str {
        &self.setup.name
    }

    /// Its serial number.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The model, for its gauges and settings that can be read.
    pub fn model(&self) -> &ManagedDrive {
        &self.drive
    }

    /// How many of its formats are not the drive's own: the last ones.
    pub fn added_formats(&self) -> usize {
        self.setup.added_formats
    }

    /// Bytes of data in a logical block of the format in use.
    pub fn block(&self) -> u32 {
        self.drive.lba_format().data
    }

    /// Sum of a gauge of the model as of the last event.
    pub fn gauge(&self, gauge: Gauge) -> f64 {
        let mut one = One(gauge, 0.0);
        self.drive.inspect(self.now, &mut one);
        one.1
    }

    /// Bytes that the medium programs for each that hosts have written since the start, collection counted against the
    /// writes that use the room it makes; 1 before the first.
    pub fn write_amplification(&self) -> f64 {
        let host = self.gauge(Gauge::HostBytesWritten);
        if host > 0.0 {
            self.gauge(Gauge::CausedBytesWritten) / host
        } else {
            1.0
        }
    }

    /// Health at `now`.
    pub fn health(&mut self, now: Time) -> Health {
        let now = self.reach(now);
        let mut health = self.drive.health(now);
        health.warning.read_only |= self.read_only;
        health
    }

    /// Whether it is served read-only, because the host has no room for what the drive remembers.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// From now on nothing is written, nor remembered.
    pub(crate) fn make_read_only(&mut self) {
        self.read_only = true;
    }

    /// The file of the store, if it has one.
    pub fn store_file(&self) -> Option<&Path> {
        match &self.setup.store {
            StoreChoice::Memory => None,
            StoreChoice::File(path) => Some(path),
        }
    }

    /// An error of the store, with the file's name.
    pub(super) fn of_store(&self, error: io::Error) -> io::Error {
        match self.store_file() {
            None => error,
            Some(path) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        }
    }

    /// Goes on to `now`, or to the last event if that was later.
    fn reach(&mut self, now: Time) -> Time {
        self.run_until(now);
        self.now = self.now.max(now);
        self.now
    }

    /// Housekeeping, every 100 ms or so: temperature, and what has left the volatile cache by now.
    pub(crate) fn settle(&mut self, now: Time) {
        let now = self.reach(now);
        self.drive.observe(now);
        if let Err(error) = self.settle_data() {
            self.not_taken(&error);
        }
    }

    /// What the drive's model has in its buffer no more goes to the store.
    pub(super) fn settle_data(&mut self) -> io::Result<()> {
        if !self.data.has_cache() {
            return Ok(());
        }
        let mut buffered = Vec::new();
        self.drive.at_risk(&mut buffered);
        self.data.settle(&Ranges::new(buffered))
    }

    /// Whether it has a volatile write cache.
    pub fn has_write_cache(&self) -> bool {
        self.data.has_cache()
    }

    /// Whether it has a volatile write cache that is on.
    pub fn write_cache_enabled(&self) -> bool {
        self.data.cache_enabled()
    }

    /// Switches the volatile write cache; off, every write is as if with FUA.
    ///
    /// # Errors
    /// Those of the store, to which what is cached has to go.
    pub fn enable_write_cache(&mut self, enabled: bool) -> Result<(), Outcome> {
        let emptied = self.data.enable_cache(enabled);
        emptied.map_err(|error| self.failed_after_all(&error))
    }

    /// The protection information of the format in use, in whatever form the front end that set it has.
    pub fn protection(&self) -> u8 {
        self.protection
    }

    /// Begins FORMAT NVM to the format of this number, with this [`Served::protection`]: everything stored is gone at once, and commands end with
    /// [`Outcome::Formatting`] until [`Served::operation`] is over.
    ///
    /// # Errors
    /// If there is no such format, commands are inside, or an operation is in progress.
    pub fn format(
        &mut self,
        now: Time,
        number: usize,
        protection: u8,
    ) -> Result<Operation, Refusal> {
        let now = self.reach(now);
        self.may_forget()?;
        let operation = self.drive.format(now, number)?;
        self.protection = protection;
        self.forget_everything();
        Ok(operation)
    }

    /// Begins a sanitize: as [`Served::format`], in the format in use.
    ///
    /// # Errors
    /// If commands are inside, or an operation is in progress.
    pub fn sanitize(&mut self, now: Time) -> Result<Operation, Refusal> {
        let now = self.reach(now);
        self.may_forget()?;
        let operation = self.drive.sanitize(now)?;
        self.forget_everything();
        Ok(operation)
    }

    /// Whether everything may be erased.
    fn may_forget(&self) -> Result<(), Refusal> {
        match () {
            () if self.read_only => Err(Refusal::Invalid("the drive is served read-only")),
            () if self.in_flight() > 0 => Err(Refusal::Busy),
            () => Ok(()),
        }
    }

    /// The data goes, as the format in use has it. A store that cannot forget is of no use any more.
    fn forget_everything(&mut self) {
        let written = self.drive.lifetime(self.now).host_bytes_written;
        self.ftl = (Precondition::Fresh, written);
        let format = self.drive.lba_format();
        let blocks = self.bytes / u64::from(format.data);
        let cleared = self
            .data
            .clear()
            .and_then(|()| {
                self.data
                    .set_metadata(blocks * u64::from(format.metadata), true)
            })
            .and_then(|()| self.save(false));
        if cleared.is_err() {
            self.data.spoil(0, self.bytes);
        }
    }

    /// FORMAT or sanitize in progress at `now`.
    pub fn operation(&mut self, now: Time) -> Option<Operation> {
        self.drive.operation(now.max(self.now))
    }

    /// What the sanitize log says at `now`.
    pub fn sanitize_status(&mut self, now: Time) -> SanitizeStatus {
        self.drive.sanitize_status(now.max(self.now))
    }

    /// The governor's limit in watts, if there is a governor.
    pub fn power_limit(&self) -> Option<f64> {
        self.drive.power_limit()
    }

    /// Sets the governor's limit in watts.
    ///
    /// # Errors
    /// If there is no governor, or the limit is not above idle power.
    pub fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        self.drive.set_power_limit(watts)
    }

    /// Counts an entry in the error log.
    pub fn count_error_log_entry(&mut self) {
        self.drive.count_error_log_entry();
    }

    /// Power goes and comes back: commands inside end with [`Outcome::PowerLoss`], what the drive's buffer held is lost,
    /// and the drive does what it does after a power-on. Use [`crate::Port::fault`], which tells the front ends.
    pub fn power_cut(&mut self, now: Time) -> PowerLoss {
        let now = self.reach(now);
        let mut lost = Vec::new();
        self.now = self.drive.power_cut(now, &mut lost);
        let slots = std::mem::take(&mut self.slots);
        let inside: Vec<_> = slots.into_iter().map(|(_, slot)| slot).collect();
        let unheard = inside.iter().filter(|slot| !slot.heard).count();
        let held = self.held.drop_all();
        let loss = PowerLoss {
            commands: inside.len() - unheard + held.len(),
            cached_bytes: self.data.lose_power(&Ranges::new(lost)),
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

    /// Lets a fault happen, save those that concern connections.
    ///
    /// # Errors
    /// Why the drive cannot have it.
    pub fn suffer(&mut self, now: Time, fault: &Fault) -> Result<(), String> {
        let now = self.reach(now);
        let block = u64::from(self.block());
        let until = |lasting: &Option<Span>| lasting.map_or(Time::NEVER, |span| now + span);
        match fault {
            Fault::MediumError { lba, blocks } | Fault::Heal { lba, blocks } => {
                let start = self.start_of(*lba)?;
                let bytes = blocks.saturating_mul(block).min(self.bytes - start);
                match fault {
                    Fault::Heal { .. } => self.data.heal(start, bytes),
                    _ => self.data.spoil(start, bytes),
                }
            }
            Fault::Slow { by, lasting } => self.held.slow(*by, until(lasting)),
            Fault::Stuck { lasting } => self.held.stick(until(lasting)),
            Fault::Unstuck => self.held.release(now),
            Fault::Wear(percent) => {
                let set = self.drive.set_percentage_used(*percent);
                set.map_err(|refusal| refusal.to_string())?;
            }
            Fault::Ambient(celsius) => {
                is_air(*celsius)?;
                self.drive.set_ambient_celsius(now, *celsius);
            }
            Fault::Refresh => self.drive.begin_refresh(now),
            Fault::Drop | Fault::PowerCut => return Err("not a fault of the drive alone".into()),
        }
        Ok(())
    }

    /// What is to be said of this fault on this drive, as a line, if it does not do all that one would expect.
    pub fn remark(&self, fault: &Fault) -> &'static str {
        match fault {
            Fault::Ambient(_) if self.power_limit().is_none() => {
                "this drive's model has no power governor: heat shows in its health and does not slow it\n"
            }
            _ => "",
        }
    }

    /// Whether the drive can have this fault, which does not happen by that.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn could_suffer(&mut self, fault: &Fault) -> Result<(), String> {
        match fault {
            Fault::MediumError { lba, .. } | Fault::Heal { lba, .. } => {
                self.start_of(*lba).map(drop)
            }
            Fault::Wear(percent) => {
                let before = self.gauge(Gauge::PercentageUsed);
                let set = self.drive.set_percentage_used(*percent);
                set.and_then(|()| self.drive.set_percentage_used(before))
                    .map_err(|refusal| refusal.to_string())
            }
            Fault::Ambient(celsius) => is_air(*celsius),
            _ => Ok(()),
        }
    }

    /// The first byte of a logical block.
    fn start_of(&self, lba: u64) -> Result<u64, String> {
        let start = lba.checked_mul(u64::from(self.block()));
        start
            .filter(|start| *start < self.bytes)
            .ok_or(format!("LBA {lba} is beyond the end"))
    }

    /// Writes down what the drive remembers, if it has a file for it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, clean: bool) -> io::Result<()> {
        let Some(path) = self.state_file.as_ref().filter(|_| !self.read_only) else {
            return Ok(());
        };
        let state = State {
            clean,
            ..self.state()
        };
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        save(path, &state).map_err(named)
    }

    /// The same now and then; what goes wrong is told with other complaints.
    pub(crate) fn save_for_now(&mut self) {
        if let Err(error) = self.save(false) {
            self.troubles[1].note(&error);
        }
    }

    /// Brings data and state to the host's disk: the end of orderly service.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.data.sync().map_err(|error| self.of_store(error))?;
        self.save(true)
    }
}

/// Whether air around a drive can have this temperature.
fn is_air(celsius: f64) -> Result<(), String> {
    let possible = (-60.0..=200.0).contains(&celsius);
    possible
        .then_some(())
        .ok_or_else(|| "from -60 to 200 degrees Celsius".into())
}
