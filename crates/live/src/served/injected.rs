//! Faults by count, range and rate of a served drive, of a pool as a whole, and of the members of a pool.
//!
//! A drive counts and judges the commands that clients send it, a member those that its pool sends it. A fault happens at the
//! time of the model at which its trigger is hit. A power cut of the whole waits until the replies before it have been sent; the model
//! does not advance meanwhile, so that exactly the commands before it have been acknowledged. Left out: errors and delays of
//! a pool as a whole; its members have them.

use model::data::{Draws, Injector, Moment, OnHit, Trigger, Verdict};
use model::{Command, Op, Time};

use super::machine::Machine;
use super::{Outcome, Served};
use workload::faults::Fault;

/// A fault that a count has triggered.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggeredFault {
    /// The member that it happened to; `None` for the whole.
    pub member: Option<u16>,
    /// What happened to it, as a script names it.
    pub fault: Fault,
    /// Why it could not happen after all.
    pub result: Result<(), String>,
}

/// Faults by count, range and rate.
#[derive(Debug, Default)]
pub(super) struct FaultInjection {
    /// Triggers and rules of the whole drive or pool.
    whole: Injector,
    /// By number of the trigger: whom it is for, what happens, and whether the trigger does that by itself.
    armed: Vec<(Option<u16>, Fault, bool)>,
    /// Faults that have drawn a number.
    faults: u64,
    /// Faults that were triggered and not yet taken by [`Served::take_struck`].
    struck: Vec<TriggeredFault>,
}

impl Served {
    fn injected(&mut self) -> &mut FaultInjection {
        self.injected.get_or_insert_default()
    }

    /// The seed and number of another fault.
    pub(super) fn draws(&mut self) -> Draws {
        let seed = self.setup.seed;
        let injected = self.injected();
        injected.faults += 1;
        Draws {
            seed,
            fault: injected.faults,
        }
    }

    /// The rules and triggers of the whole.
    pub(super) fn injector(&mut self) -> &mut Injector {
        &mut self.injected().whole
    }

    /// Arms a fault that happens when a command has been counted; counts begin now.
    ///
    /// # Errors
    /// Why the drive or member cannot have it.
    pub fn arm(
        &mut self,
        member: Option<u16>,
        trigger: Trigger,
        fault: Fault,
    ) -> Result<(), String> {
        match member {
            None => self.could_suffer(&fault)?,
            Some(member) => self.member_could_suffer(member, &fault)?,
        }
        let on_hit = match fault {
            Fault::Rule(rule) => OnHit::Adds(rule, self.draws()),
            _ => self
                .next_write(member, &fault)
                .map_or(OnHit::Nothing, OnHit::NextWrite),
        };
        let injected = self.injected();
        let number = injected.armed.len() as u32;
        let by_itself = on_hit != OnHit::Nothing;
        injected.armed.push((member, fault, by_itself));
        match (member, &mut self.machine) {
            (Some(member), Machine::Pool(pool)) => {
                pool.with_kept(member, |it| it.arm(trigger, number, on_hit));
            }
            _ => self.injector().arm(trigger, number, on_hit),
        }
        Ok(())
    }

    /// A fault that a count has triggered, once for each.
    pub fn take_struck(&mut self) -> Option<TriggeredFault> {
        let struck = &mut self.injected.as_mut()?.struck;
        (!struck.is_empty()).then(|| struck.remove(0))
    }

    /// Returns how a command ends while power fails or the drive is dead.
    #[cold]
    pub(super) fn unanswered(&self) -> Outcome {
        match self.power_fails {
            true => Outcome::PowerLoss,
            false => Outcome::Failed,
        }
    }

    /// Counts a command that arrives, and returns what rules do to it.
    #[cold]
    pub(super) fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        let injector = self.injector();
        // Faults of the next write are those of members, who count for themselves.
        let _ = injector.count(now, command.op, Moment::Arrival);
        injector.judge(now, command)
    }

    /// Counts a command that completes.
    #[cold]
    pub(super) fn count(&mut self, op: Op, moment: Moment) {
        let now = self.now;
        let _ = self.injector().count(now, op, moment);
    }

    /// The number of a trigger that has been hit.
    fn take_hit(&mut self) -> Option<u32> {
        let injected = self.injected.as_mut()?;
        if injected.armed.is_empty() {
            return None;
        }
        let of_whole = injected.whole.take_hit();
        of_whole.or_else(|| match &mut self.machine {
            Machine::Pool(pool) => pool.take_hit(),
            Machine::Drive(_) => None,
        })
    }

    /// Lets the faults happen whose triggers have been hit, at the time of the last event.
    #[cold]
    pub(super) fn strike(&mut self) {
        while let Some(number) = self.take_hit() {
            let armed = &self.injected().armed;
            let Some((member, fault, by_itself)) = armed.get(number as usize).cloned() else {
                continue;
            };
            let now = self.now;
            let result = match (member, &fault) {
                _ if by_itself => Ok(()),
                (None, Fault::PowerCut) => {
                    self.power_fails = true;
                    Ok(())
                }
                // That of connections is the loop's.
                (None, Fault::Drop) => Ok(()),
                (None, fault) => self.suffer_at(now, fault),
                (Some(member), fault) => self.member_suffers_at(now, member, fault),
            };
            self.injected().struck.push(TriggeredFault {
                member,
                fault,
                result,
            });
        }
    }

    /// A drive alone fails: what is inside is not carried out and ends with an error.
    pub(super) fn die(&mut self) {
        self.dead = true;
        let mut inside = Vec::new();
        for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.heard) {
            inside.push(*slot);
            slot.heard = false;
        }
        for slot in &inside {
            self.end(slot, Outcome::Failed);
        }
    }
}
