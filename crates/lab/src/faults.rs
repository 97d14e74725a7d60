//! What befalls drives in the course of a run: a script's faults, resolved to whom they befall, and a device that suffers
//! them at their times.
//!
//! Left out, and refused with words: faults that only data show (a write that is lost, misdirected or rots, a sector that
//! cannot be read, a flush that lies) and those of connections and of the air around a drive: `serve` and `prove` have
//! them. A whole drive neither dies nor loses its power: a run would end with it.

use model::data::{Bytes, Kept, Nothing, READY, Trouble};
use model::media::{Drive, DriveConfig, Medium, MediumDrive, Precondition, Seeds};
use model::tier::Pool;
use model::{Capacity, Command, Completion, Device, Gauges, Range, Span, Time};
use serde::{Deserialize, Serialize};
use workload::faults::{Fault, Planned};

/// Something that befalls a drive, or a member of a pool, in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Befalls {
    /// When, from the beginning of the run on.
    pub at: Span,
    /// Which member; none for the drive itself.
    pub member: Option<u16>,
    /// What.
    pub what: Hardship,
    /// How it is called in what comes out.
    pub called: String,
}

/// What can happen in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Hardship {
    /// A member answers nothing any more.
    Dies,
    /// A member loses its power; it answers again by a [`Hardship::Returns`].
    LosesPower,
    /// A member answers again, and its tier brings it up to date.
    Returns,
    /// The next write of a member fails.
    FailsWrite,
    /// Every command takes this much longer, from now on.
    Slow(Span),
    /// Percentage Used is this.
    Wear(f64),
    /// What follows a power-on in the background begins again.
    Refresh,
}

impl Befalls {
    /// What a fault of a script is to this drive, or to this member of it: with its end, if it has one.
    ///
    /// # Errors
    /// Why it cannot happen in a run.
    pub fn of(
        planned: &Planned,
        drive: &DriveConfig,
        member: Option<u16>,
    ) -> Result<Vec<Befalls>, String> {
        let at = planned.at.unwrap_or(Span::ZERO);
        let name = planned.drive.as_deref().unwrap_or("the drive");
        let befalls = |at, what, called: &str| Befalls {
            at,
            member,
            what,
            called: format!("{name}: {called}"),
        };
        let alone = member.is_none();
        let is_pool = matches!(drive, DriveConfig::Pool(_));
        let one = |what, called: &str| Ok(vec![befalls(at, what, called)]);
        match planned.fault {
            Fault::Dies | Fault::Returns | Fault::PowerCut | Fault::FailsWrite if alone => {
                Err(of_member(is_pool))
            }
            Fault::Dies => one(Hardship::Dies, "dies"),
            Fault::Returns => one(Hardship::Returns, "returns"),
            Fault::FailsWrite => one(Hardship::FailsWrite, "fails a write"),
            Fault::PowerCut => Ok(vec![
                befalls(at, Hardship::LosesPower, "loses its power"),
                befalls(at + READY, Hardship::Returns, "returns"),
            ]),
            Fault::Slow { .. } | Fault::Wear(_) if alone && is_pool => Err(of_member(true)),
            Fault::Slow { by, lasting } => {
                let mut faults = vec![befalls(at, Hardship::Slow(by), &slower(by))];
                if let Some(span) = lasting {
                    let end = befalls(at + span, Hardship::Slow(Span::ZERO), "as before");
                    faults.push(end);
                }
                Ok(faults)
            }
            Fault::Wear(percent) => {
                let mut worn = match (drive, member) {
                    (DriveConfig::Pool(pool), Some(member)) => {
                        pool.members[usize::from(member)].drive.clone()
                    }
                    _ => drive.clone(),
                };
                let set = worn.set_percentage_used(percent);
                set.map_err(|refusal| refusal.to_string())?;
                one(Hardship::Wear(percent), &format!("{percent} % used"))
            }
            Fault::Refresh if alone && is_pool => Err(of_member(true)),
            Fault::Refresh => one(Hardship::Refresh, "tidies as after a power-on"),
            Fault::MediumError { .. }
            | Fault::Heal { .. }
            | Fault::Lies
            | Fault::LosesWrite
            | Fault::Misdirects { .. }
            | Fault::Rots { .. } => Err(String::from(
                "a run has no data, which alone would show it: `serve` and `prove` have it",
            )),
            Fault::Stuck { .. } | Fault::Unstuck | Fault::Drop | Fault::Ambient(_) => {
                Err(String::from("a run does not know it: `serve` does"))
            }
        }
    }
}

/// How a drive does that takes so much longer, in the largest unit of which it is one at least.
fn slower(by: Span) -> String {
    let ns = by.ns() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let fits = units.iter().find(|(unit, _)| ns >= *unit);
    fits.map_or(String::from("as before"), |(unit, name)| {
        format!("{} {name} slower", ns / unit)
    })
}

fn of_member(is_pool: bool) -> String {
    String::from(match is_pool {
        true => "this befalls one member of a pool: name it",
        false => "this befalls a member of a pool, and the drive is none",
    })
}

/// Something to which hardships may happen.
pub(crate) trait Vulnerable: Device {
    fn befall(&mut self, now: Time, member: Option<u16>, what: Hardship);
}

/// What a hardship is to a drive with what it keeps.
fn befall_one(now: Time, drive: &mut Kept<Drive, Nothing>, what: Hardship) {
    match what {
        Hardship::Wear(percent) => {
            // It was possible when the script was read.
            let _ = drive.drive_mut().set_percentage_used(percent);
        }
        Hardship::Refresh => drive.drive_mut().power_on(now),
        Hardship::Dies => drive.befall(now, Trouble::Dies),
        Hardship::LosesPower => drive.befall(now, Trouble::LosesPower),
        Hardship::Returns => drive.befall(now, Trouble::Returns),
        Hardship::FailsWrite => drive.befall(now, Trouble::FailsWrite),
        Hardship::Slow(by) => {
            let until = Time::NEVER;
            drive.befall(now, Trouble::Slows { by, until });
        }
    }
}

impl Vulnerable for Kept<Drive, Nothing> {
    fn befall(&mut self, now: Time, _member: Option<u16>, what: Hardship) {
        befall_one(now, self, what);
    }
}

impl Vulnerable for Pool<Kept<Drive, Nothing>> {
    fn befall(&mut self, now: Time, member: Option<u16>, what: Hardship) {
        let Some(member) = member else { return };
        match what {
            // Its tiers have to be told.
            Hardship::Returns => Pool::befall(self, now, member, Trouble::Returns),
            what => self.with_member(member, |drive| befall_one(now, drive, what)),
        }
    }
}

/// A device that suffers faults at their times.
#[derive(Clone, Debug)]
pub(crate) struct Suffering<D> {
    device: D,
    /// The last one first.
    faults: Vec<Befalls>,
}

/// A drive in this state to which these faults happen; without them it does as [`Drive::new`]'s.
pub(crate) fn suffering(
    config: &DriveConfig,
    state: Precondition,
    seeds: Seeds,
    faults: &[Befalls],
) -> Box<dyn Device> {
    match config {
        DriveConfig::Pool(pool) => Box::new(Suffering::new(pool.vulnerable(state, seeds), faults)),
        config => {
            let volatile = config.volatile_write_cache();
            let drive = Drive::new(config, state, seeds);
            let kept = Kept::new(drive, Nothing, Bytes::default(), volatile);
            Box::new(Suffering::new(kept, faults))
        }
    }
}

impl<D: Vulnerable> Suffering<D> {
    fn new(device: D, faults: &[Befalls]) -> Suffering<D> {
        let mut faults = faults.to_vec();
        // In the order of their times; those of one time as they were written.
        faults.sort_by_key(|fault| fault.at);
        faults.reverse();
        Suffering { device, faults }
    }

    /// When the next fault happens.
    #[inline]
    fn next_fault(&self) -> Time {
        let fault = self.faults.last();
        fault.map_or(Time::NEVER, |fault| Time::ZERO + fault.at)
    }
}

impl<D: Vulnerable> Device for Suffering<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        self.device.submit(now, command);
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.device.next_event().min(self.next_fault())
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let mut reached = now;
        if self.device.next_event() == now {
            reached = self
                .device
                .advance(now, horizon.min(self.next_fault()), done);
        }
        while self.next_fault() == reached
            && let Some(fault) = self.faults.pop()
        {
            self.device.befall(reached, fault.member, fault.what);
            // What that ends at once is told at once.
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::conformance;

    fn sheet(name: &str) -> DriveConfig {
        catalogue::drive(name).expect("it is read").config
    }

    fn befalls(at_us: u64, member: Option<u16>, what: Hardship) -> Befalls {
        Befalls {
            at: Span::from_us(at_us),
            member,
            what,
            called: String::new(),
        }
    }

    #[test]
    fn a_drive_that_becomes_slow_keeps_the_laws() {
        let config = sheet("ram-disk");
        let faults = [
            befalls(0, None, Hardship::Refresh),
            befalls(300, None, Hardship::Slow(Span::from_us(70))),
            befalls(900, None, Hardship::Slow(Span::ZERO)),
        ];
        conformance::check(|seed| {
            let drive = Drive::new(&config, Precondition::Fresh, seed);
            let kept = Kept::new(drive, Nothing, Bytes::default(), false);
            Suffering::new(kept, &faults)
        });
    }

    #[test]
    fn how_much_slower_is_said_in_the_unit_it_has() {
        let said = [0, 70, 1_000, 200_000, 1_000_000, 1_500_000, 2_000_000_000]
            .map(|ns| slower(Span::from_ns(ns)));
        let wanted = [
            "as before",
            "70 ns slower",
            "1 us slower",
            "200 us slower",
            "1 ms slower",
            "1.5 ms slower",
            "2 s slower",
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn an_intent_log_without_its_log_and_with_it_again_keeps_the_laws() {
        let DriveConfig::Pool(config) =
            sheet("intent-log(main=ram-disk, log=ram-disk; size=1GiB, ram=1GiB)")
        else {
            panic!("a pool");
        };
        let log = config.members.iter().position(|it| it.name == "ram-disk.1");
        let log = log.map(|it| it as u16);
        assert!(log.is_some());
        let faults = [
            befalls(200, log, Hardship::Dies),
            befalls(700, log, Hardship::Returns),
            befalls(900, log, Hardship::FailsWrite),
        ];
        conformance::check(|seed| {
            Suffering::new(config.vulnerable(Precondition::Fresh, seed), &faults)
        });
    }

    #[test]
    fn a_mirror_that_loses_a_leg_and_has_it_again_keeps_the_laws() {
        let DriveConfig::Pool(config) = sheet("mirror(2*ram-disk)") else {
            panic!("a pool");
        };
        let faults = [
            befalls(200, Some(0), Hardship::Dies),
            befalls(700, Some(0), Hardship::Returns),
            befalls(700, Some(1), Hardship::Slow(Span::from_us(20))),
        ];
        conformance::check(|seed| {
            Suffering::new(config.vulnerable(Precondition::Fresh, seed), &faults)
        });
    }
}
