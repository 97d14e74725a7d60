//! Fault injection into a served drive, or into one member of a pool.
//!
//! For a single drive, faults affect its data and its replies. In a pool, each member has its own faults, and the
//! tiers detect them.

use model::data::{DriveFault, Rule};
use model::{Device, Gauge, Span, Time};

use super::ServedDevice;
use super::machine::Machine;
use super::pooled::ServedPool;
use workload::faults::Fault;

/// Why a member cannot be replaced in a running server.
const NOT_REPLACED: &str = "a server does not support `replaced`, because its members keep their data: use `dies` and `returns` here, or `replaced` in `run`";

/// Message for a fault of a member that is requested for a whole drive.
const OF_A_MEMBER: &str =
    "this fault applies only to a member of a pool that stores its data by member";

impl ServedDevice {
    /// Injects a fault into the whole drive or pool, except for faults of connections.
    ///
    /// # Errors
    /// The reason why the drive cannot have the fault.
    pub fn suffer(&mut self, now: Time, fault: &Fault) -> Result<(), String> {
        let now = self.reach(now);
        self.suffer_at(now, fault)
    }

    /// Injects a fault as [`ServedDevice::suffer`] does, at the time of the last event.
    pub(super) fn suffer_at(&mut self, now: Time, fault: &Fault) -> Result<(), String> {
        self.could_suffer(fault)?;
        match fault {
            Fault::MediumError { lba, blocks } | Fault::Heal { lba, blocks } => {
                let start = self.start_of(*lba)?;
                let bytes = blocks.saturating_mul(u64::from(self.block()));
                let bytes = bytes.min(self.bytes - start);
                if let Machine::Drive(it) = &mut self.machine {
                    match fault {
                        Fault::Heal { .. } => it.data.heal(start, bytes),
                        _ => it.data.spoil(start, bytes),
                    }
                }
            }
            Fault::Slow { by, lasting } => self.held.slow(*by, until(now, *lasting)),
            Fault::Stuck { lasting } => self.held.stick(until(now, *lasting)),
            Fault::Unstuck => self.held.release(now),
            Fault::Wear(percent) => {
                let set = self.machine.set_percentage_used(*percent);
                set.map_err(|refusal| refusal.to_string())?;
            }
            Fault::Ambient(celsius) => self
                .machine
                .each_drive(|drive| drive.set_ambient_celsius(now, *celsius)),
            Fault::Refresh => self.machine.each_drive(|drive| drive.begin_refresh(now)),
            Fault::Dies => self.die(),
            Fault::Returns => self.dead = false,
            Fault::Rule(rule) => {
                let draws = self.draws();
                self.injector().add(now, *rule, draws);
            }
            Fault::Clear => self.injector().clear_rules(),
            _ => return Err("not a fault of the drive alone".into()),
        }
        Ok(())
    }

    /// Returns a remark on this fault on this drive, if its effect is smaller than a user would expect.
    pub fn remark(&self, fault: &Fault) -> &'static str {
        match fault {
            Fault::Ambient(_) if self.power_limit().is_none() => {
                "this drive's model has no power governor: heat shows in its health and does not slow it\n"
            }
            _ => "",
        }
    }

    /// Checks whether the drive can have this fault, without injecting it.
    ///
    /// # Errors
    /// The reason why not.
    pub fn could_suffer(&mut self, fault: &Fault) -> Result<(), String> {
        match fault {
            Fault::Dies | Fault::Returns | Fault::Rule(_) | Fault::Clear if self.is_by_member() => {
                Err(self.name_a_member())
            }
            Fault::Rule(_) => fault.fits(self.bytes),
            Fault::Replaced => Err(NOT_REPLACED.into()),
            Fault::Lies
            | Fault::FailsWrite
            | Fault::LosesWrite
            | Fault::Misdirects { .. }
            | Fault::Rots { .. } => Err(self.name_a_member()),
            Fault::MediumError { .. } | Fault::Heal { .. } if self.is_by_member() => {
                Err(self.name_a_member())
            }
            Fault::MediumError { lba, .. } | Fault::Heal { lba, .. } => {
                self.start_of(*lba).map(drop)
            }
            Fault::Wear(percent) => {
                let before = self.gauge(Gauge::PercentageUsed);
                let set = self.machine.set_percentage_used(*percent);
                set.and_then(|()| self.machine.set_percentage_used(before))
                    .map_err(|refusal| refusal.to_string())
            }
            Fault::Ambient(celsius) => is_air(*celsius),
            _ => Ok(()),
        }
    }

    fn name_a_member(&self) -> String {
        match self.members()[..] {
            [] => format!("{OF_A_MEMBER}, and {} is not such a pool", self.name()),
            ref members => format!("{OF_A_MEMBER}: name one of {}", members.join(", ")),
        }
    }

    /// Returns the first byte of a logical block.
    fn start_of(&self, lba: u64) -> Result<u64, String> {
        start_of(lba, u64::from(self.block()), self.bytes)
    }

    /// Translates this fault into one of a member.
    ///
    /// # Errors
    /// The reason why no member can have it.
    fn of_member(
        &mut self,
        now: Time,
        member: u16,
        fault: &Fault,
    ) -> Result<(&mut ServedPool, MemberFault), String> {
        let Machine::Pool(pool) = &mut self.machine else {
            return Err(format!(
                "{OF_A_MEMBER}, and {} is not such a pool",
                self.setup.name
            ));
        };
        let block = u64::from(pool.with_drive(member, |it| it.capacity().block));
        let bytes = pool.bytes_of(member);
        let range = |lba: u64, blocks: u64| {
            let at = start_of(lba, block, bytes)?;
            Ok::<_, String>((at, blocks.saturating_mul(block).min(bytes - at)))
        };
        let trouble = match *fault {
            Fault::Replaced => return Err(NOT_REPLACED.into()),
            Fault::Dies => DriveFault::Dies,
            Fault::Returns => DriveFault::Returns,
            Fault::Lies => DriveFault::Lies,
            Fault::FailsWrite => DriveFault::FailsWrite,
            Fault::LosesWrite => DriveFault::LosesWrite,
            Fault::PowerCut => DriveFault::LosesPower,
            Fault::Misdirects { blocks } => DriveFault::Misdirects {
                by: range(blocks, 0)?.0,
            },
            Fault::Rots { lba } => DriveFault::Rots {
                at: range(lba, 1)?.0,
            },
            Fault::MediumError { lba, blocks } => {
                let (at, bytes) = range(lba, blocks)?;
                DriveFault::Unreadable { at, bytes }
            }
            Fault::Slow { by, lasting } => DriveFault::Slows {
                by,
                until: until(now, lasting),
            },
            Fault::Heal { lba, blocks } => {
                let (at, bytes) = range(lba, blocks)?;
                return Ok((pool, MemberFault::Heals { at, bytes }));
            }
            Fault::Wear(percent) => return Ok((pool, MemberFault::Wears(percent))),
            Fault::Ambient(celsius) => {
                is_air(celsius)?;
                return Ok((pool, MemberFault::Warms(celsius)));
            }
            Fault::Refresh => return Ok((pool, MemberFault::Refreshes)),
            Fault::Rule(rule) => {
                fault.fits(bytes)?;
                return Ok((pool, MemberFault::HasRule(rule)));
            }
            Fault::Clear => return Ok((pool, MemberFault::HasNoRules)),
            Fault::Drop | Fault::Stuck { .. } | Fault::Unstuck => {
                return Err("this fault applies to the whole pool, not to a member".into());
            }
        };
        pool.could_befall(member, trouble)?;
        Ok((pool, MemberFault::Trouble(trouble)))
    }

    /// Checks whether a member can have this fault, without injecting it.
    ///
    /// # Errors
    /// The reason why not.
    pub fn member_could_suffer(&mut self, member: u16, fault: &Fault) -> Result<(), String> {
        let now = self.now;
        let (pool, what) = self.of_member(now, member, fault)?;
        match what {
            MemberFault::Wears(percent) => pool.with_drive(member, |drive| {
                let before = drive.lifetime(now).percentage_used;
                let set = drive.set_percentage_used(percent);
                set.and_then(|()| drive.set_percentage_used(before))
                    .map_err(|refusal| refusal.to_string())
            }),
            _ => Ok(()),
        }
    }

    /// Injects a fault into a member.
    ///
    /// # Errors
    /// The reason why the member cannot have it.
    pub fn member_suffers(&mut self, now: Time, member: u16, fault: &Fault) -> Result<(), String> {
        let now = self.reach(now);
        self.member_suffers_at(now, member, fault)
    }

    /// Returns the fault of a member's next write; `None` if this fault does not concern the next write.
    pub(super) fn next_write(&mut self, member: Option<u16>, fault: &Fault) -> Option<DriveFault> {
        let now = self.now;
        let Ok((_, MemberFault::Trouble(trouble))) = self.of_member(now, member?, fault) else {
            return None;
        };
        matches!(
            trouble,
            DriveFault::FailsWrite | DriveFault::LosesWrite | DriveFault::Misdirects { .. }
        )
        .then_some(trouble)
    }

    /// Injects a fault as [`ServedDevice::member_suffers`] does, at the time of the last event.
    pub(super) fn member_suffers_at(
        &mut self,
        now: Time,
        member: u16,
        fault: &Fault,
    ) -> Result<(), String> {
        let draws = self.draws();
        let (pool, what) = self.of_member(now, member, fault)?;
        match what {
            MemberFault::Trouble(trouble) => pool.befall(now, member, trouble)?,
            MemberFault::Heals { at, bytes } => pool.with_disk(member, |disk| disk.heal(at, bytes)),
            MemberFault::Wears(percent) => pool
                .with_drive(member, |drive| drive.set_percentage_used(percent))
                .map_err(|refusal| refusal.to_string())?,
            MemberFault::Warms(celsius) => {
                pool.with_drive(member, |drive| drive.set_ambient_celsius(now, celsius));
            }
            MemberFault::Refreshes => pool.with_drive(member, |drive| drive.begin_refresh(now)),
            MemberFault::HasRule(rule) => {
                pool.with_kept(member, |it| it.add_rule(now, rule, draws))
            }
            MemberFault::HasNoRules => pool.with_kept(member, |it| it.clear_rules()),
        }
        Ok(())
    }
}

/// A fault as it applies to a member.
enum MemberFault {
    Trouble(DriveFault),
    Heals { at: u64, bytes: u64 },
    Wears(f64),
    Warms(f64),
    Refreshes,
    HasRule(Rule),
    HasNoRules,
}

fn until(now: Time, lasting: Option<Span>) -> Time {
    lasting.map_or(Time::NEVER, |span| now + span)
}

/// Returns the first byte of a logical block on a drive of this size.
fn start_of(lba: u64, block: u64, bytes: u64) -> Result<u64, String> {
    let start = lba.checked_mul(block);
    start
        .filter(|start| *start < bytes)
        .ok_or(format!("LBA {lba} is beyond the end"))
}

/// Checks that this is a possible temperature of the air around a drive.
fn is_air(celsius: f64) -> Result<(), String> {
    let possible = (-60.0..=200.0).contains(&celsius);
    possible
        .then_some(())
        .ok_or_else(|| "from -60 to 200 degrees Celsius".into())
}
