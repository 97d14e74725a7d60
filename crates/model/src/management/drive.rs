//! A drive under management: operations in progress, temperature, and a lifetime before this run.
//!
//! It forwards commands and counts them. An operation (FORMAT, sanitize) takes effect when it begins, and lasts as long
//! as it does on that drive. Rejecting I/O meanwhile is the task of the front end, which knows the status code of its
//! protocol. Operations that need a new medium (another format, erased blocks) rebuild the drive, and the counters
//! continue.

use alloc::vec::Vec;

use super::health::{CriticalWarning, Health, Lifetime};
use super::refusal::Refusal;
use super::{LbaFormat, Management};
use crate::command::{Command, Completion, Op};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::host::{PowerManaged, PowerTransition};
use crate::media::{Medium, MediumDrive, Precondition};
use crate::time::{Span, Time};

/// A throttled drive may use this share of its limit's margin above idle power.
const THERMAL_SHARE: f64 = 0.25;
/// Throttling ends at this distance below the critical temperature.
const HYSTERESIS_CELSIUS: f64 = 5.0;

/// Long-running operation of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationKind {
    /// FORMAT NVM.
    Format,
    /// Sanitize by erasing or overwriting.
    Sanitize,
}

/// An operation in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Whether the operation is a format or a sanitize.
    pub kind: OperationKind,
    /// When it started.
    pub since: Time,
    /// When it will end.
    pub until: Time,
}

impl Operation {
    /// Returns the completed share at `now`, from 0 to 1.
    pub fn progress(&self, now: Time) -> f64 {
        let all = self.until.since(self.since).seconds();
        if all <= 0.0 {
            return 1.0;
        }
        (now.since(self.since).seconds() / all).min(1.0)
    }
}

/// Status in the sanitize log.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SanitizeStatus {
    /// The drive was never sanitized.
    Never,
    /// The last sanitize completed.
    Done,
    /// A sanitize is in progress; the completed share, from 0 to 1.
    InProgress(f64),
}

/// Sums and means of the values that a drive reports.
#[derive(Clone, Copy, Default)]
struct DriveReadings {
    joules: f64,
    read: f64,
    written: f64,
    depth: f64,
    used: f64,
    wearing: u32,
}

impl Gauges for DriveReadings {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::EnergyJoules => self.joules += value,
            Gauge::HostBytesRead => self.read += value,
            Gauge::HostBytesWritten => self.written += value,
            Gauge::QueueDepth => self.depth += value,
            Gauge::PercentageUsed => {
                self.used += value;
                self.wearing += 1;
            }
            _ => {}
        }
    }
}

impl DriveReadings {
    fn from_drive(drive: &impl Device, now: Time) -> DriveReadings {
        let mut readings = DriveReadings::default();
        drive.inspect(now, &mut readings);
        readings
    }

    fn percentage_used(&self) -> f64 {
        self.used / f64::from(self.wearing.max(1))
    }
}

/// All cumulative gauges of a drive, which continue when the drive is rebuilt.
#[derive(Clone, Debug, Default)]
struct Counters(Vec<(Gauge, f64)>);

impl Gauges for Counters {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if !gauge.cumulative() {
            return;
        }
        match self.0.iter_mut().find(|(name, _)| *name == gauge) {
            Some((_, sum)) => *sum += value,
            None => self.0.push((gauge, value)),
        }
    }
}

/// Builds the drive in this format, state and wear.
fn built<M: Medium>(
    config: &M,
    format: LbaFormat,
    state: Precondition,
    seed: u64,
    used: f64,
) -> M::Drive {
    let mut config = config.clone();
    config.set_lba_format(format);
    // A medium that does not wear stays new. Above 1000 %, no behaviour changes any more.
    let _ = config.set_percentage_used(used.min(1000.0));
    config.build(state, seed)
}

/// A drive under management. See the head of this module.
#[derive(Clone, Debug)]
pub struct ManagedDrive<D: MediumDrive> {
    drive: PowerManaged<D>,
    /// Configuration from the catalogue: in its first format, without settings that were changed later.
    config: D::Config,
    management: Management,
    seed: u64,
    /// Lifetime up to the start of this run, and everything that is counted here since then.
    lifetime: Lifetime,
    /// Counts of the gauges of drives that were replaced.
    before: Counters,
    power_limit: Option<f64>,
    throttled: bool,
    operation: Option<Operation>,
    celsius: f64,
    observed: Time,
    joules: f64,
    outstanding: u32,
    busy_since: Time,
    /// When it was last switched on; `None` if that was before this run.
    switched_on: Option<Time>,
}

impl<D: MediumDrive> ManagedDrive<D> {
    /// Creates a drive with this `lifetime` ([`Lifetime::of_new`] for a new one), in the format that the lifetime
    /// names. The time since power-on is that of `config` ([`Device::power_cut`] restarts it). `config` must be as
    /// created by the catalogue, in the first format of `management`.
    ///
    /// # Errors
    /// If `lifetime` names a format that the drive does not have.
    pub fn new(
        config: &D::Config,
        management: &Management,
        state: Precondition,
        seed: u64,
        lifetime: Lifetime,
    ) -> Result<ManagedDrive<D>, Refusal> {
        let format = management.lba_formats.get(lifetime.lba_format);
        let format = *format.ok_or(Refusal::Invalid(
            "the drive has no LBA format of this number",
        ))?;
        let now = Time::ZERO;
        Ok(ManagedDrive {
            drive: PowerManaged::new(
                built(config, format, state, seed, lifetime.percentage_used),
                Vec::new(),
            ),
            config: config.clone(),
            celsius: management.thermal.ambient_celsius,
            management: management.clone(),
            seed,
            power_limit: config.power_limit_watts(),
            lifetime: Lifetime {
                power_cycles: lifetime.power_cycles + 1,
                ..lifetime
            },
            before: Counters::default(),
            throttled: false,
            operation: None,
            observed: now,
            joules: 0.0,
            outstanding: 0,
            busy_since: now,
            switched_on: None,
        })
    }

    /// Returns the drive itself.
    pub fn drive(&self) -> &D {
        self.drive.device()
    }

    /// Lets the drive enter power states by itself. Call it before the first command.
    pub fn set_power_transitions(&mut self, transitions: Vec<PowerTransition>) {
        self.drive.set_transitions(transitions);
    }

    /// Returns the management features that the drive offers.
    pub fn management(&self) -> &Management {
        &self.management
    }

    /// Returns the number of the LBA format in use.
    pub fn lba_format_number(&self) -> usize {
        self.lifetime.lba_format
    }

    /// Returns the LBA format in use.
    pub fn lba_format(&self) -> LbaFormat {
        self.management.lba_formats[self.lifetime.lba_format]
    }

    /// Returns the duration of a FORMAT or sanitize.
    pub fn format_duration(&self) -> Span {
        self.config.format_duration()
    }

    /// Starts a FORMAT to the format with this number; all stored data is lost. The owner of the stored data must
    /// discard it.
    ///
    /// # Errors
    /// If the format does not exist, commands are outstanding, or an operation is in progress.
    pub fn format(&mut self, now: Time, number: usize) -> Result<Operation, Refusal> {
        if number >= self.management.lba_formats.len() {
            return Err(Refusal::Invalid(
                "the drive has no LBA format of this number",
            ));
        }
        self.begin(now, OperationKind::Format, number)
    }

    /// Starts a sanitize; all stored data is lost.
    ///
    /// # Errors
    /// If commands are outstanding, or an operation is in progress.
    pub fn sanitize(&mut self, now: Time) -> Result<Operation, Refusal> {
        self.begin(now, OperationKind::Sanitize, self.lifetime.lba_format)
    }

    fn begin(
        &mut self,
        now: Time,
        kind: OperationKind,
        number: usize,
    ) -> Result<Operation, Refusal> {
        if self.outstanding > 0 || self.operation(now).is_some() {
            return Err(Refusal::Busy);
        }
        self.observe(now);
        let used = DriveReadings::from_drive(&self.drive, now).percentage_used();
        if self.is_read_only_at(used) {
            return Err(Refusal::READ_ONLY);
        }
        let format = self.management.lba_formats[number];
        let mut counted = Counters::default();
        self.drive.inspect(now, &mut counted);
        let fresh = Precondition::Fresh;
        *self.drive.device_mut() = built(&self.config, format, fresh, self.seed, used);
        // A drive without a governor has no limit to set.
        let _ = self.govern();
        if let Some(since) = self.switched_on {
            self.drive.device_mut().power_on(since);
        }
        self.restore_counters(now, counted);
        self.lifetime.lba_format = number;
        let operation = Operation {
            kind,
            since: now,
            until: now + self.config.format_duration(),
        };
        self.operation = Some(operation);
        Ok(operation)
    }

    /// Makes the gauges of a rebuilt drive continue from these counts.
    fn restore_counters(&mut self, now: Time, counted: Counters) {
        let mut fresh = Counters::default();
        self.drive.inspect(now, &mut fresh);
        for (gauge, value) in counted.0 {
            self.before.gauge(gauge, value);
        }
        // A new drive counts some values from the start of time (idle power): do not count them twice.
        for (gauge, value) in fresh.0 {
            self.before.gauge(gauge, -value);
        }
        self.joules = self.joules_until(now);
    }

    /// Ends the operation in progress early: if no block of the drive is in use, the operation takes no time.
    pub fn end_operation(&mut self) {
        if let Some(operation) = self.operation.take() {
            self.lifetime.sanitized |= operation.kind == OperationKind::Sanitize;
        }
    }

    /// Returns the operation in progress at `now`.
    pub fn operation(&mut self, now: Time) -> Option<Operation> {
        let operation = self.operation?;
        if now < operation.until {
            return Some(operation);
        }
        self.operation = None;
        self.lifetime.sanitized |= operation.kind == OperationKind::Sanitize;
        None
    }

    /// Returns the status of the sanitize log at `now`.
    pub fn sanitize_status(&mut self, now: Time) -> SanitizeStatus {
        match self.operation(now) {
            Some(operation) if operation.kind == OperationKind::Sanitize => {
                SanitizeStatus::InProgress(operation.progress(now))
            }
            _ if self.lifetime.sanitized => SanitizeStatus::Done,
            _ => SanitizeStatus::Never,
        }
    }

    /// Returns the governor's limit in watts as set, if there is a governor.
    pub fn power_limit(&self) -> Option<f64> {
        self.power_limit
    }

    /// Sets the governor's limit in watts, above idle power; it need not be one of the drive's own settings.
    ///
    /// # Errors
    /// If there is no governor, or the limit is not above idle power.
    pub fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        self.config.clone().set_power_limit(watts)?;
        self.power_limit = Some(watts);
        self.govern()
    }

    /// Returns the limit in force: it is lower while the drive is too hot.
    fn effective_limit(&self) -> Option<f64> {
        let limit = self.power_limit?;
        let idle = self.config.idle_watts();
        let share = if self.throttled { THERMAL_SHARE } else { 1.0 };
        Some(idle + (limit - idle) * share)
    }

    fn govern(&mut self) -> Result<(), Refusal> {
        match self.effective_limit() {
            Some(watts) => self.drive.device_mut().set_power_limit(watts),
            None => Ok(()),
        }
    }

    /// Sets Percentage Used as of now.
    ///
    /// # Errors
    /// If the medium does not wear, or the percentage is not in 0 to 1000.
    pub fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        self.drive.device_mut().set_percentage_used(percent)
    }

    /// Sets the temperature of the air around the drive.
    pub fn set_ambient_celsius(&mut self, now: Time, celsius: f64) {
        self.observe(now);
        self.management.thermal.ambient_celsius = celsius;
    }

    fn lost_power(&mut self, now: Time) {
        self.observe(now);
        self.operation = None;
        self.lifetime.power_cycles += 1;
        self.lifetime.unsafe_shutdowns += 1;
        self.switched_on = Some(now);
        self.drive.device_mut().power_on(now);
    }

    /// Restarts the background work that follows a power-on, without a power-on.
    pub fn begin_refresh(&mut self, now: Time) {
        self.switched_on = Some(now);
        self.drive.device_mut().power_on(now);
    }

    /// Computes in advance what the drive would compute at its first write: see [`MediumDrive::prepare`].
    pub fn prepare(&mut self) {
        self.drive.device_mut().prepare();
    }

    /// Counts data that could not be read, with its entry in the error log.
    pub fn count_media_error(&mut self) {
        self.lifetime.media_errors += 1;
        self.lifetime.error_log_entries += 1;
    }

    /// Counts an entry in the error log.
    pub fn count_error_log_entry(&mut self) {
        self.lifetime.error_log_entries += 1;
    }

    fn joules_until(&self, now: Time) -> f64 {
        let before = self.before.0.iter();
        let before = before.filter(|(gauge, _)| *gauge == Gauge::EnergyJoules);
        DriveReadings::from_drive(&self.drive, now).joules
            + before.map(|(_, value)| value).sum::<f64>()
    }

    /// Advances temperature and clocks to `now`, and throttles if the drive is too hot. The server of the drive must
    /// call this about every second; [`ManagedDrive::health`] calls it too. Returns the mean power in watts since the
    /// last call.
    pub fn observe(&mut self, now: Time) -> f64 {
        let over = now.since(self.observed);
        if over == Span::ZERO {
            return 0.0;
        }
        self.observed = now;
        let joules = self.joules_until(now);
        let watts = (joules - self.joules) / over.seconds();
        self.joules = joules;
        let thermal = &self.management.thermal;
        self.celsius = thermal.temperature_after(self.celsius, watts, over);
        let (warning, critical) = (thermal.warning_celsius, thermal.critical_celsius);
        self.lifetime.power_on += over;
        if self.celsius >= critical {
            self.lifetime.hot += over;
        } else if self.celsius >= warning {
            self.lifetime.warm += over;
        }
        let limit = if self.throttled {
            critical - HYSTERESIS_CELSIUS
        } else {
            critical
        };
        let too_hot = self.celsius >= limit;
        if too_hot != self.throttled {
            self.throttled = too_hot;
            // A drive without a governor has no limit to change.
            let _ = self.govern();
        }
        watts
    }

    /// Returns the lifetime until `now`, which can be stored and passed to [`ManagedDrive::new`] later.
    pub fn lifetime(&self, now: Time) -> Lifetime {
        let readings = DriveReadings::from_drive(&self.drive, now);
        let before = |wanted: Gauge| -> f64 {
            let all = self.before.0.iter();
            all.filter(|(gauge, _)| *gauge == wanted)
                .map(|(_, value)| value)
                .sum()
        };
        let mut lifetime = self.lifetime.clone();
        lifetime.host_bytes_read += (readings.read + before(Gauge::HostBytesRead)) as u64;
        lifetime.host_bytes_written += (readings.written + before(Gauge::HostBytesWritten)) as u64;
        if readings.wearing > 0 {
            lifetime.percentage_used = readings.percentage_used();
        }
        lifetime.power_on += now.since(self.observed);
        if self.outstanding > 0 {
            lifetime.busy += now.since(self.busy_since);
        }
        lifetime
    }

    /// Returns the health at `now`.
    pub fn health(&mut self, now: Time) -> Health {
        let watts = self.observe(now);
        let lifetime = self.lifetime(now);
        let used = lifetime.percentage_used;
        Health {
            warning: CriticalWarning {
                temperature: self.celsius >= self.management.thermal.warning_celsius,
                reliability: used >= 100.0,
                read_only: self.is_read_only_at(used),
                ..CriticalWarning::default()
            },
            celsius: self.celsius,
            available_spare: 100,
            spare_threshold: 10,
            watts,
            lifetime,
        }
    }

    /// Whether the medium is read-only at this Percentage Used.
    fn is_read_only_at(&self, percent: f64) -> bool {
        let at = self.config.read_only_percent();
        at.is_some_and(|at| percent >= at)
    }

    /// Whether writes are throttled because the rated endurance is used up.
    pub fn write_protected(&self, now: Time) -> bool {
        let used = DriveReadings::from_drive(&self.drive, now).percentage_used();
        self.config
            .write_protect_percent()
            .is_some_and(|at| used >= at)
    }
}

impl<D: MediumDrive> Device for ManagedDrive<D> {
    fn capacity(&self) -> Capacity {
        Capacity {
            block: self.lba_format().data,
            ..self.drive.capacity()
        }
    }

    fn submit(&mut self, now: Time, command: Command) {
        if self.outstanding == 0 {
            self.busy_since = now;
        }
        self.outstanding += 1;
        match command.op {
            Op::Read => self.lifetime.host_read_commands += 1,
            Op::Write => self.lifetime.host_write_commands += 1,
            _ => {}
        }
        self.drive.submit(now, command);
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.drive.next_event()
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let before = done.len();
        let now = self.drive.advance(now, horizon, done);
        let completed = (done.len() - before) as u32;
        if completed > 0 {
            self.outstanding -= completed;
            if self.outstanding == 0 {
                self.lifetime.busy += now.since(self.busy_since);
            }
        }
        now
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.drive.at_risk(ranges);
    }

    /// Counts an unsafe shutdown and a power cycle; the background work that follows a power-on restarts.
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        if self.outstanding > 0 {
            self.lifetime.busy += now.since(self.busy_since);
        }
        let back = self.drive.power_cut(now, lost);
        self.outstanding = 0;
        self.lost_power(back);
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
        for &(gauge, value) in &self.before.0 {
            gauges.gauge(gauge, value);
        }
    }
}
