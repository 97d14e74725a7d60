//! Condition of a served drive or pool, as one word with reasons, for monitoring.

use std::fmt;

use model::Time;

use super::ServedDevice;
use super::machine::Machine;
use super::resync::REJECTS;
use crate::store::no_room;

/// The condition of a served drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// No problem is known.
    Ok,
    /// The drive or pool works, but needs attention.
    Degraded,
    /// The drive or pool rejects writes.
    ReadOnly,
    /// The drive or pool completes no commands.
    Failed,
}

impl Condition {
    /// Checks whether clients can write to it.
    pub fn takes_writes(self) -> bool {
        matches!(self, Condition::Ok | Condition::Degraded)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Condition::Ok => "ok",
            Condition::Degraded => "degraded",
            Condition::ReadOnly => "read-only",
            Condition::Failed => "failed",
        })
    }
}

impl ServedDevice {
    /// Returns the number of children of mirrors and arrays that lack acknowledged data.
    pub fn out_of_sync(&self) -> usize {
        match &self.machine {
            Machine::Pool(pool) => pool.out_of_sync().count(),
            Machine::Drive(_) => 0,
        }
    }

    /// Returns its condition at `now`, and the reasons if it is not [`Condition::Ok`].
    pub fn condition(&mut self, now: Time) -> (Condition, Vec<String>) {
        let warning = self.health(now).warning;
        let mut reasons = Vec::new();
        let mut condition = Condition::Ok;
        let mut is = |what: Condition, why: String| {
            if what as u8 > condition as u8 {
                condition = what;
            }
            reasons.push(why);
        };
        if self.dead {
            is(Condition::Failed, "it does not answer".into());
        }
        let (mut dead, mut full) = (0, false);
        if let Machine::Pool(pool) = &self.machine {
            if let Some(why) = pool.why_broken() {
                is(Condition::Failed, why);
            }
            full = pool.is_full();
            if full {
                let error = pool.no_room();
                let why = match no_room(&error) {
                    true => format!("no room for its stores: {error}"),
                    false => format!("its stores cannot be written: {error}"),
                };
                is(Condition::ReadOnly, why);
            }
            for name in pool.dead() {
                dead += 1;
                is(Condition::Degraded, format!("{name} does not answer"));
            }
        }
        if let Machine::Pool(pool) = &self.machine {
            for (child, tier) in pool.out_of_sync() {
                is(
                    Condition::Degraded,
                    format!("{child} is not in sync with {tier}"),
                );
            }
            for name in pool.rejecting() {
                // A log or cache that rejects writes does not make its pool reject them.
                let what = match pool.is_volume(name) {
                    true => Condition::ReadOnly,
                    false => Condition::Degraded,
                };
                is(what, format!("{name} rejects writes: {REJECTS}"));
            }
            for log in pool.unused_logs() {
                is(Condition::Degraded, format!("its log {log} is not used"));
            }
        }
        if warning.read_only && !full {
            is(Condition::ReadOnly, "it rejects writes".into());
        }
        let worn = [
            (warning.spare, "its spare is below the threshold"),
            (warning.temperature, "it is too hot"),
            (
                warning.reliability && dead == 0,
                "its reliability is reduced",
            ),
            (warning.backup, "its power-loss protection has failed"),
        ];
        for (_, why) in worn.iter().filter(|(warns, _)| *warns) {
            is(Condition::Degraded, (*why).into());
        }
        (condition, reasons)
    }
}
