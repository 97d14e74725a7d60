//! Fault injection by count, range and rate: for a served drive, for a pool as a whole, and for the members of a pool.
//!
//! A drive counts the commands that clients send and applies rules to them; a member does this for the commands that
//! its pool sends. A fault happens at the virtual time at which its trigger is hit. A power cut of the whole waits
//! until earlier replies have been sent, and the model does not advance meanwhile, so that exactly the commands before
//! the cut have been acknowledged. Not supported: errors and delays of a pool as a whole; its members have them.

use model::data::{Draws, Injector, Moment, OnHit, Trigger, Verdict};
use model::{Command, Op, Time};

use super::machine::Machine;
use super::{Outcome, Reply, ServedDevice};
use workload::faults::Fault;

/// A fault that a count has triggered.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggeredFault {
    /// The member that has the fault; `None` for the whole.
    pub member: Option<u16>,
    /// The fault, as a script names it.
    pub fault: Fault,
    /// The reason if the fault could not happen.
    pub result: Result<(), String>,
}

/// State of fault injection by count, range and rate.
#[derive(Debug, Default)]
pub(super) struct FaultInjection {
    /// Triggers and rules of the whole drive or pool.
    whole: Injector,
    /// By number of the trigger: its target, the fault, and whether the trigger itself causes the fault.
    armed: Vec<(Option<u16>, Fault, bool)>,
    /// Number of faults that have drawn a random seed.
    faults: u64,
    /// Triggered faults that [`ServedDevice::take_struck`] has not yet taken.
    struck: Vec<TriggeredFault>,
}

impl ServedDevice {
    fn injected(&mut self) -> &mut FaultInjection {
        self.injected.get_or_insert_default()
    }

    /// Returns the random numbers of the next fault, from the seed and the fault's number.
    pub(super) fn draws(&mut self) -> Draws {
        let seed = self.setup.seed;
        let injected = self.injected();
        injected.faults += 1;
        Draws {
            seed,
            fault: injected.faults,
        }
    }

    /// Returns the rules and triggers of the whole.
    pub(super) fn injector(&mut self) -> &mut Injector {
        &mut self.injected().whole
    }

    /// Arms a fault that happens when the command with this number has been counted; counting begins now.
    ///
    /// # Errors
    /// The reason why the drive or member cannot have the fault.
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

    /// Takes a fault that a count has triggered; each fault is returned once.
    pub fn take_struck(&mut self) -> Option<TriggeredFault> {
        let struck = &mut self.injected.as_mut()?.struck;
        (!struck.is_empty()).then(|| struck.remove(0))
    }

    /// Returns the outcome of commands during a power failure or on a failed drive.
    #[cold]
    pub(super) fn unanswered(&self) -> Outcome {
        match self.power_fails {
            true => Outcome::PowerLoss,
            false => Outcome::Failed,
        }
    }

    /// Counts a command that arrives, and returns the effect of rules on it.
    #[cold]
    pub(super) fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        let injector = self.injector();
        // Faults of the next write belong to members, which count their own commands.
        let _ = injector.count(now, command.op, Moment::Arrival);
        injector.judge(now, command)
    }

    /// Counts a command that completes.
    #[cold]
    pub(super) fn count(&mut self, op: Op, moment: Moment) {
        let now = self.now;
        let _ = self.injector().count(now, op, moment);
    }

    /// Sends a delayed reply, which counts as a completion now: faults by count must not precede the reply.
    #[cold]
    pub(super) fn release(&mut self, reply: Reply) {
        self.ready.push(reply);
        if self.injected.is_some() && reply.outcome == Outcome::Success {
            self.count(reply.op, Moment::Completion);
            self.strike();
        }
    }

    /// Takes the number of a trigger that has been hit.
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

    /// Causes the faults whose triggers have been hit, at the time of the last event.
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
                // The event loop drops the connections.
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

    /// Fails a single drive: commands in flight are not executed and end with an error.
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
