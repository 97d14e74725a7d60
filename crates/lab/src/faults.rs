//! Faults of drives during a run: the faults of a script with their targets, and a device to which they happen at
//! their times.
//!
//! Not included, and refused with a message: faults that are only visible in data, and faults of connections and of
//! the ambient air. `serve` and `prove` have them. Examples of the former are a lost, misdirected or rotten write, an
//! unreadable sector, and a flush without effect. A whole pool does not fail, only its members do.

mod rebuild;

use std::cell::RefCell;
use std::rc::Rc;

use model::data::{
    Bytes, DataBackedDrive, Draws, DriveFault, NullContents, OnHit, READY, Rule, Trigger,
};
use model::media::{Medium, MediumDrive, Precondition, Seeds};
use model::{Capacity, Command, Completion, Device, Gauges, Range, Span, Time};
use serde::{Deserialize, Serialize};
use tier::{Drive, DriveConfig, Pool, SyncState};

use self::rebuild::RebuildWatch;
pub use self::rebuild::{Rebuild, rebuilt_member};
use workload::faults::{Fault, ScheduledFault, Timing};

/// A fault of a drive, or of a pool member, in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFault {
    /// Time since the start of the run, or since the trigger.
    pub at: Span,
    /// The count of commands that triggers the fault; `None` for a fault by time alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Index of the member; `None` means the drive itself.
    pub member: Option<u16>,
    /// Kind of the fault.
    pub what: FaultKind,
    /// Name in the results.
    pub called: String,
}

/// A fault that a run supports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FaultKind {
    /// A member no longer answers.
    Dies,
    /// A member loses its power; [`FaultKind::Returns`] restores it.
    LosesPower,
    /// A member answers again, and its tier brings it up to date.
    Returns,
    /// An empty drive takes the place of a member, and its tier brings all data to it.
    Replaced,
    /// The next write of a member fails.
    FailsWrite,
    /// Every later command takes this much longer.
    Slow(Span),
    /// Sets Percentage Used.
    Wear(f64),
    /// The background work that follows a power-on starts again.
    Refresh,
    /// Commands fail or are delayed, by kind, address range or rate.
    Rule(Rule),
    /// All rules end.
    Clear,
}

impl FaultKind {
    /// Returns the part of the fault that the trigger applies before its command is processed. The owner of the
    /// device applies all other faults.
    fn on_hit(self, draws: Draws) -> OnHit {
        match self {
            FaultKind::FailsWrite => OnHit::NextWrite(DriveFault::FailsWrite),
            FaultKind::Rule(rule) => OnHit::Adds(rule, draws),
            _ => OnHit::Nothing,
        }
    }
}

impl RunFault {
    /// Resolves a fault of a script for this drive, or for this member of it. The result includes the end of the
    /// fault, if there is one.
    ///
    /// # Errors
    /// Why the fault cannot happen in a run.
    pub fn resolve(
        planned: &ScheduledFault,
        drive: &DriveConfig,
        member: Option<u16>,
    ) -> Result<Vec<RunFault>, String> {
        let (at, trigger) = time_or_trigger(planned.when);
        let name = planned.drive.as_deref().unwrap_or("the drive");
        let befalls = |at, what, called: &str| RunFault {
            at,
            trigger,
            member,
            what,
            called: format!("{name}: {called}"),
        };
        if member.is_none() && matches!(drive, DriveConfig::Pool(_)) && is_of_drive(planned.fault) {
            return Err(String::from(
                "this is a fault of one member of a pool: name it",
            ));
        }
        let one = |what, called: &str| Ok(vec![befalls(at, what, called)]);
        match planned.fault {
            Fault::Dies => one(FaultKind::Dies, "dies"),
            Fault::Returns => one(FaultKind::Returns, "returns"),
            Fault::Replaced => {
                rebuild::is_rebuilt(drive, member)?;
                one(FaultKind::Replaced, "replaced")
            }
            Fault::FailsWrite => one(FaultKind::FailsWrite, "fails a write"),
            Fault::PowerCut => Ok(vec![
                befalls(at, FaultKind::LosesPower, "loses its power"),
                befalls(at + READY, FaultKind::Returns, "returns"),
            ]),
            Fault::Slow { by, lasting } => {
                let mut faults = vec![befalls(at, FaultKind::Slow(by), &slower(by))];
                if let Some(span) = lasting {
                    let end = befalls(at + span, FaultKind::Slow(Span::ZERO), "as before");
                    faults.push(end);
                }
                Ok(faults)
            }
            Fault::Wear(percent) => {
                let mut worn = one_drive(drive, member).clone();
                let set = worn.set_percentage_used(percent);
                set.map_err(|refusal| refusal.to_string())?;
                one(FaultKind::Wear(percent), &format!("{percent} % used"))
            }
            Fault::Refresh => one(FaultKind::Refresh, "tidies as after a power-on"),
            Fault::Rule(rule) => {
                let capacity = one_drive(drive, member).capacity_bytes();
                planned.fault.fits(capacity)?;
                one(FaultKind::Rule(rule), &planned.fault.to_string())
            }
            Fault::Clear => one(FaultKind::Clear, "errors and delays end"),
            Fault::MediumError { .. }
            | Fault::Heal { .. }
            | Fault::Lies
            | Fault::LosesWrite
            | Fault::Misdirects { .. }
            | Fault::Rots { .. } => Err(String::from(
                "this fault only affects data, and a run has no data: use `serve` or `prove`",
            )),
            Fault::Stuck { .. } | Fault::Unstuck | Fault::Drop | Fault::Ambient(_) => Err(
                String::from("a run does not support this fault: use `serve`"),
            ),
        }
    }
}

/// Checks whether a run supports this fault of one drive.
const fn is_of_drive(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Dies
            | Fault::Returns
            | Fault::Replaced
            | Fault::PowerCut
            | Fault::FailsWrite
            | Fault::Slow { .. }
            | Fault::Wear(_)
            | Fault::Refresh
            | Fault::Rule(_)
            | Fault::Clear
    )
}

/// Describes an additional latency, in the largest unit with a value of at least one.
fn slower(by: Span) -> String {
    let ns = by.ns() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let fits = units.iter().find(|(unit, _)| ns >= *unit);
    fits.map_or(String::from("as before"), |(unit, name)| {
        format!("{} {name} slower", ns / unit)
    })
}

/// Returns the time since the start or the trigger, and the trigger, if there is one.
fn time_or_trigger(timing: Timing) -> (Span, Option<Trigger>) {
    match timing {
        Timing::AtOnce => (Span::ZERO, None),
        Timing::At(span) => (span, None),
        Timing::Count(trigger) => (Span::ZERO, Some(trigger)),
    }
}

/// Returns the drive itself, or a member of a pool.
fn one_drive(drive: &DriveConfig, member: Option<u16>) -> &DriveConfig {
    match (drive, member) {
        (DriveConfig::Pool(pool), Some(member)) => &pool.members[usize::from(member)].drive,
        _ => drive,
    }
}

/// A device that supports faults.
pub(crate) trait FaultSupport: Device {
    fn befall(&mut self, now: Time, member: Option<u16>, what: FaultKind, draws: Draws);

    /// Arms a trigger of a member, or of the drive itself. The trigger counts all later commands.
    fn arm(&mut self, member: Option<u16>, trigger: Trigger, number: u32, on_hit: OnHit);

    /// Returns the number of a trigger that was hit; each is returned once.
    fn take_hit(&mut self) -> Option<u32>;

    /// Returns the state of a member.
    fn sync_state(&self, _member: u16) -> SyncState {
        SyncState::InSync
    }

    /// Returns the bytes that all rebuilds of a member have written to it.
    fn rebuilt_bytes(&self, _member: u16) -> u64 {
        0
    }

    /// Returns the bytes that the rebuilds of a member still have to write.
    fn rebuild_left(&self, _member: u16) -> u64 {
        0
    }
}

/// Applies a fault to a drive with its store.
fn befall_one(
    now: Time,
    drive: &mut DataBackedDrive<Drive, NullContents>,
    what: FaultKind,
    draws: Draws,
) {
    match what {
        FaultKind::Wear(percent) => {
            // The fault was checked when the script was read.
            let _ = drive.drive_mut().set_percentage_used(percent);
        }
        FaultKind::Refresh => drive.drive_mut().power_on(now),
        FaultKind::Dies => drive.befall(now, DriveFault::Dies),
        FaultKind::LosesPower => drive.befall(now, DriveFault::LosesPower),
        FaultKind::Returns | FaultKind::Replaced => drive.befall(now, DriveFault::Returns),
        FaultKind::FailsWrite => drive.befall(now, DriveFault::FailsWrite),
        FaultKind::Slow(by) => {
            let until = Time::NEVER;
            drive.befall(now, DriveFault::Slows { by, until });
        }
        FaultKind::Rule(rule) => drive.add_rule(now, rule, draws),
        FaultKind::Clear => drive.clear_rules(),
    }
}

impl FaultSupport for DataBackedDrive<Drive, NullContents> {
    fn befall(&mut self, now: Time, _member: Option<u16>, what: FaultKind, draws: Draws) {
        befall_one(now, self, what, draws);
    }

    fn arm(&mut self, _member: Option<u16>, trigger: Trigger, number: u32, on_hit: OnHit) {
        DataBackedDrive::arm(self, trigger, number, on_hit);
    }

    fn take_hit(&mut self) -> Option<u32> {
        DataBackedDrive::take_hit(self)
    }
}

impl FaultSupport for Pool<DataBackedDrive<Drive, NullContents>> {
    fn befall(&mut self, now: Time, member: Option<u16>, what: FaultKind, draws: Draws) {
        let Some(member) = member else { return };
        match what {
            // The tiers of the pool must know about it.
            FaultKind::Returns => Pool::befall(self, now, member, DriveFault::Returns),
            FaultKind::Replaced => self.replace(now, member),
            what => self.with_member(member, |drive| befall_one(now, drive, what, draws)),
        }
    }

    fn arm(&mut self, member: Option<u16>, trigger: Trigger, number: u32, on_hit: OnHit) {
        if let Some(member) = member {
            self.with_member(member, |drive| drive.arm(trigger, number, on_hit));
        }
    }

    fn take_hit(&mut self) -> Option<u32> {
        let members = self.members().len() as u16;
        (0..members).find_map(|member| self.with_member(member, DataBackedDrive::take_hit))
    }

    fn sync_state(&self, member: u16) -> SyncState {
        Pool::sync_state(self, member)
    }

    fn rebuilt_bytes(&self, member: u16) -> u64 {
        Pool::rebuilt_bytes(self, member)
    }

    fn rebuild_left(&self, member: u16) -> u64 {
        Pool::rebuild_left(self, member)
    }
}

/// Times and names of the faults that counts have triggered. Shared by the device and the object that counts phases.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriggerLog(Rc<RefCell<Vec<(Time, String)>>>);

impl TriggerLog {
    fn add(&self, now: Time, called: &str) {
        self.0.borrow_mut().push((now, called.to_owned()));
    }

    /// Returns the entries after the first `seen`.
    pub(crate) fn entries_after(&self, seen: usize) -> Vec<(Time, String)> {
        self.0.borrow().get(seen..).unwrap_or_default().to_vec()
    }
}

/// A fault with a known time.
#[derive(Clone, Debug)]
struct Due {
    at: Time,
    /// Index of the fault in the script.
    number: u32,
    fault: RunFault,
}

/// A device to which faults happen at their times, or when commands have been counted.
#[derive(Clone, Debug)]
pub(crate) struct FaultyDevice<D> {
    device: D,
    /// Faults with known times, the last one first.
    due: Vec<Due>,
    /// All faults, in the order of the script.
    faults: Vec<RunFault>,
    /// Number of triggers that have not been hit.
    armed: usize,
    struck: TriggerLog,
    seed: u64,
    rebuilds: RebuildWatch,
}

/// Creates a drive in this state with these faults. Without faults it behaves as a drive of [`Drive::new`].
pub(crate) fn suffering(
    config: &DriveConfig,
    state: Precondition,
    seeds: Seeds,
    faults: &[RunFault],
    struck: &TriggerLog,
) -> Box<dyn RebuildingDevice> {
    let seed = seeds.run;
    match config {
        DriveConfig::Pool(pool) => {
            let pool = pool.vulnerable(state, seeds);
            Box::new(FaultyDevice::new(pool, faults, seed, struck))
        }
        config => {
            let volatile = config.volatile_write_cache();
            let drive = Drive::new(config, state, seeds);
            let kept = DataBackedDrive::new(drive, NullContents, Bytes::default(), volatile);
            Box::new(FaultyDevice::new(kept, faults, seed, struck))
        }
    }
}

impl<D: FaultSupport> FaultyDevice<D> {
    fn new(mut device: D, faults: &[RunFault], seed: u64, struck: &TriggerLog) -> FaultyDevice<D> {
        let mut due = Vec::new();
        let mut armed = 0;
        for (number, fault) in (0..).zip(faults) {
            let Some(trigger) = fault.trigger else {
                due.push(Due {
                    at: Time::ZERO + fault.at,
                    number,
                    fault: fault.clone(),
                });
                continue;
            };
            let on_hit = match fault.at == Span::ZERO {
                true => fault.what.on_hit(draws(seed, number)),
                false => OnHit::Nothing,
            };
            device.arm(fault.member, trigger, number, on_hit);
            armed += 1;
        }
        // By time; faults at one time in the order of the script.
        due.sort_by_key(|it| it.at);
        due.reverse();
        FaultyDevice {
            device,
            due,
            faults: faults.to_vec(),
            armed,
            struck: struck.clone(),
            seed,
            rebuilds: RebuildWatch::default(),
        }
    }

    /// Returns the time of the next fault with a known time.
    #[inline]
    fn next_fault(&self) -> Time {
        self.due.last().map_or(Time::NEVER, |it| it.at)
    }

    /// Applies a fault.
    fn happen(&mut self, now: Time, number: u32, fault: &RunFault) {
        let draws = draws(self.seed, number);
        self.rebuilds.before(now, fault, &self.device);
        self.device.befall(now, fault.member, fault.what, draws);
        self.look(now);
        if fault.trigger.is_some() {
            self.struck.add(now, &fault.called);
        }
    }

    /// Checks whether a rebuild has ended.
    #[inline]
    fn look(&mut self, now: Time) {
        if self.rebuilds.is_watching() {
            for name in self.rebuilds.look(now, &self.device) {
                self.struck.add(now, &format!("{name}: in sync"));
            }
        }
    }

    /// Applies the faults whose triggers have been hit, and schedules those that follow later.
    #[cold]
    fn strike(&mut self, now: Time) {
        while let Some(number) = self.device.take_hit() {
            self.armed -= 1;
            let Some(fault) = self.faults.get(number as usize).cloned() else {
                continue;
            };
            let at = now + fault.at;
            if at > now {
                let before = self.due.partition_point(|it| it.at > at);
                self.due.insert(before, Due { at, number, fault });
            } else if fault.what.on_hit(draws(self.seed, number)) == OnHit::Nothing {
                self.happen(now, number, &fault);
            } else {
                self.struck.add(now, &fault.called);
            }
        }
    }
}

/// Returns the seed of the random draws of a fault.
fn draws(seed: u64, number: u32) -> Draws {
    Draws {
        seed,
        fault: number.into(),
    }
}

impl<D: FaultSupport> Device for FaultyDevice<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        self.device.submit(now, command);
        if self.armed > 0 {
            self.strike(now);
        }
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.device.next_event().min(self.next_fault())
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let mut reached = now;
        if self.device.next_event() == now {
            // Any event may hit a trigger.
            let alone = self.armed == 0 && !self.rebuilds.is_watching();
            let until = match alone {
                true => horizon.min(self.next_fault()),
                false => now,
            };
            reached = self.device.advance(now, until, done);
            self.look(reached);
        }
        if self.armed > 0 {
            self.strike(reached);
        }
        while self.next_fault() == reached
            && let Some(Due { number, fault, .. }) = self.due.pop()
        {
            self.happen(reached, number, &fault);
            // A change of the end of the command is reported at once.
            while self.device.next_event() == reached {
                self.device.advance(reached, reached, done);
            }
        }
        reached
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.device.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
    }
}

/// A device that reports the rebuilds of its members.
pub(crate) trait RebuildingDevice: Device {
    /// Returns the rebuilds of a run that ended at `end`.
    fn rebuilds(&self, end: Time) -> Vec<Rebuild>;
}

impl<D: FaultSupport> RebuildingDevice for FaultyDevice<D> {
    fn rebuilds(&self, end: Time) -> Vec<Rebuild> {
        self.rebuilds.ended(end, &self.device)
    }
}

#[cfg(test)]
mod tests;
