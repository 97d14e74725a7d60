//! Fault injection by count and by location: triggers that count the commands of a drive, and errors and delays for a
//! range of addresses or at a rate.
//!
//! A trigger counts from when it is armed; a rule acts from when it is added. Each rule draws from its own random
//! stream, once for each command that it matches, so that equal commands and equal seeds give equal errors. Not
//! modelled: errors after part of a write was done.

use alloc::vec::Vec;

use super::drive_fault::DriveFault;
use crate::command::{Command, Op};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Kind of commands that triggers count and rules match. Deallocations belong to no kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CommandKind {
    /// Reads of any size.
    Reads,
    /// Writes, and Write Zeroes.
    Writes,
    /// Flushes, which have no addresses.
    Flushes,
}

impl CommandKind {
    /// Returns the kind of a command; `None` for a deallocation.
    pub fn counted_as(op: Op) -> Option<CommandKind> {
        match op {
            Op::Read => Some(CommandKind::Reads),
            Op::Write | Op::WriteZeroes => Some(CommandKind::Writes),
            Op::Flush => Some(CommandKind::Flushes),
            Op::Deallocate => None,
        }
    }
}

/// Time at which a command is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Moment {
    /// When it reaches the drive, if the drive responds.
    Arrival,
    /// When the drive has completed it without an error.
    Completion,
}

/// Condition that the command with this number, counted from 1, satisfies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trigger {
    /// Kind of commands that are counted.
    pub kind: CommandKind,
    /// When each is counted.
    pub moment: Moment,
    /// Number of the command; at least 1.
    pub number: u64,
}

/// Effect of a rule on a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effect {
    /// A read ends with [`crate::Status::UnrecoveredReadError`]; a write or flush with [`crate::Status::WriteFault`],
    /// without any effect.
    Fails,
    /// The command completes this much later.
    Delays(Span),
}

/// How long a rule is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Lasting {
    /// Until rules are cleared.
    Forever,
    /// For commands that arrive within this time.
    Time(Span),
    /// For this number of matching commands, whether they are affected or not.
    Commands(u64),
}

/// A rule for errors or delays of commands.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rule {
    /// Kind of commands that it matches; `None` for all kinds.
    pub kind: Option<CommandKind>,
    /// Effect on matching commands.
    pub effect: Effect,
    /// Address range that a command must overlap, as first byte and byte after the last; `None` for any address.
    pub range: Option<(u64, u64)>,
    /// Probability that a matching command is affected, above 0; 1 for all of them.
    pub rate: f64,
    /// How long it is active.
    pub lasting: Lasting,
}

impl Rule {
    fn matches(&self, command: &Command) -> bool {
        let kind = CommandKind::counted_as(command.op);
        let of_kind = self.kind.map_or(kind.is_some(), |it| kind == Some(it));
        of_kind
            && self.range.is_none_or(|(start, end)| {
                command.op != Op::Flush && command.offset < end && command.end() > start
            })
    }
}

/// Seed of a rule's stream: that of the run, and the number of the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draws {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the fault.
    pub fault: u64,
}

/// Effect of a trigger, before the rules are applied to the counted command. All other faults are applied by the owner,
/// which obtains them with [`Injector::take_hit`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OnHit {
    /// All effects are applied by the owner.
    Nothing,
    /// A fault of the next write.
    NextWrite(DriveFault),
    /// A rule is added.
    Adds(Rule, Draws),
}

/// Combined effect of all rules on a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// Whether the command ends with an error.
    pub fails: bool,
    /// Delay of the completion.
    pub delay: Span,
}

#[derive(Clone, Debug)]
struct ArmedTrigger {
    trigger: Trigger,
    left: u64,
    number: u32,
    on_hit: OnHit,
}

#[derive(Clone, Debug)]
struct ActiveRule {
    rule: Rule,
    until: Time,
    /// Number of commands that it may still match.
    left: u64,
    stream: Stream,
}

/// Triggers and rules of a drive.
#[derive(Clone, Debug, Default)]
pub struct Injector {
    armed: Vec<ArmedTrigger>,
    rules: Vec<ActiveRule>,
    hits: Vec<u32>,
}

impl Injector {
    /// Arms a trigger, which counts from now. `number` is the owner's id for it.
    pub fn arm(&mut self, trigger: Trigger, number: u32, on_hit: OnHit) {
        self.armed.push(ArmedTrigger {
            trigger,
            left: trigger.number.max(1),
            number,
            on_hit,
        });
    }

    /// Adds a rule, which is active from now.
    pub fn add(&mut self, now: Time, rule: Rule, draws: Draws) {
        let (until, left) = match rule.lasting {
            Lasting::Forever => (Time::NEVER, u64::MAX),
            Lasting::Time(span) => (now + span, u64::MAX),
            Lasting::Commands(count) => (Time::NEVER, count),
        };
        self.rules.push(ActiveRule {
            rule,
            until,
            left,
            stream: Stream::numbered(draws.seed, "injected faults", draws.fault),
        });
    }

    /// Ends all rules; triggers stay armed.
    pub fn clear_rules(&mut self) {
        self.rules.clear();
    }

    /// Counts a command that arrives or completes. Returns a fault for the drive's next write, if a trigger causes one.
    pub fn count(&mut self, now: Time, op: Op, moment: Moment) -> Option<DriveFault> {
        let kind = CommandKind::counted_as(op)?;
        let mut next_write = None;
        let mut at = 0;
        while let Some(armed) = self.armed.get_mut(at) {
            let trigger = armed.trigger;
            if (trigger.kind, trigger.moment) == (kind, moment) {
                armed.left -= 1;
            }
            if armed.left > 0 {
                at += 1;
                continue;
            }
            let hit = self.armed.remove(at);
            self.hits.push(hit.number);
            match hit.on_hit {
                OnHit::Nothing => {}
                OnHit::NextWrite(trouble) => next_write = Some(trouble),
                OnHit::Adds(rule, draws) => self.add(now, rule, draws),
            }
        }
        next_write
    }

    /// Returns the effect of all rules on a command that arrives.
    pub fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        let mut verdict = Verdict::default();
        self.rules.retain(|it| it.left > 0 && now < it.until);
        for active in &mut self.rules {
            if !active.rule.matches(command) {
                continue;
            }
            active.left -= 1;
            if active.rule.rate < 1.0 && !active.stream.chance(active.rule.rate) {
                continue;
            }
            match active.rule.effect {
                Effect::Fails => verdict.fails = true,
                Effect::Delays(by) => verdict.delay += by,
            }
        }
        verdict
    }

    /// Returns the number of a trigger that has fired, oldest first, once each.
    pub fn take_hit(&mut self) -> Option<u32> {
        (!self.hits.is_empty()).then(|| self.hits.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: Rule = Rule {
        kind: Some(CommandKind::Writes),
        effect: Effect::Fails,
        range: None,
        rate: 1.0,
        lasting: Lasting::Forever,
    };

    fn judged(injector: &mut Injector, command: Command) -> bool {
        injector.judge(Time::ZERO, &command).fails
    }

    fn draws(seed: u64) -> Draws {
        Draws { seed, fault: 0 }
    }

    #[test]
    fn a_trigger_is_hit_once_by_the_command_of_its_number() {
        let mut injector = Injector::default();
        for (number, moment) in [(7, Moment::Arrival), (8, Moment::Completion)] {
            let trigger = Trigger {
                kind: CommandKind::Writes,
                moment,
                number: 3,
            };
            injector.arm(trigger, number, OnHit::Nothing);
        }
        let mut hits = Vec::new();
        for op in [
            Op::Write,
            Op::Read,
            Op::WriteZeroes,
            Op::Flush,
            Op::Deallocate,
        ] {
            injector.count(Time::ZERO, op, Moment::Arrival);
            hits.extend(injector.take_hit());
        }
        assert_eq!(hits, []);
        injector.count(Time::ZERO, Op::Write, Moment::Arrival);
        assert_eq!(injector.take_hit(), Some(7));
        for _ in 0..9 {
            injector.count(Time::ZERO, Op::Write, Moment::Arrival);
        }
        assert_eq!(injector.take_hit(), None);
    }

    #[test]
    fn a_rule_of_a_trigger_meets_the_command_that_is_counted() {
        let mut injector = Injector::default();
        let trigger = Trigger {
            kind: CommandKind::Writes,
            moment: Moment::Arrival,
            number: 2,
        };
        let once = Rule {
            lasting: Lasting::Commands(1),
            ..ALWAYS
        };
        injector.arm(trigger, 0, OnHit::Adds(once, draws(1)));
        let fails: Vec<bool> = (0..4)
            .map(|_| {
                injector.count(Time::ZERO, Op::Write, Moment::Arrival);
                judged(&mut injector, Command::write(0, 0, 512))
            })
            .collect();
        assert_eq!(fails, [false, true, false, false]);
    }

    #[test]
    fn a_range_is_touched_by_its_first_and_last_byte_and_by_no_flush() {
        let mut injector = Injector::default();
        let rule = Rule {
            kind: None,
            range: Some((4096, 8192)),
            ..ALWAYS
        };
        injector.add(Time::ZERO, rule, draws(1));
        let all = [
            Command::write(0, 0, 4096),
            Command::write(0, 0, 4608),
            Command::read(0, 7680, 512),
            Command::read(0, 8192, 512),
            Command::flush(0),
        ];
        let fails = all.map(|it| judged(&mut injector, it));
        assert_eq!(fails, [false, true, true, false, false]);
        injector.clear_rules();
        assert!(!judged(&mut injector, all[1]));
    }

    #[test]
    fn a_rate_is_kept_and_drawn_from_its_seed() {
        let of = |seed| -> Vec<bool> {
            let mut injector = Injector::default();
            let rule = Rule {
                rate: 0.01,
                ..ALWAYS
            };
            injector.add(Time::ZERO, rule, draws(seed));
            let fails = |_| judged(&mut injector, Command::write(0, 0, 512));
            (0..100_000).map(fails).collect()
        };
        let one = of(1);
        assert_eq!(one, of(1));
        assert_ne!(one, of(2));
        let failed = one.iter().filter(|it| **it).count();
        // Five standard deviations of a binomial distribution around 1000.
        assert!((843..=1157).contains(&failed), "{failed}");
    }

    #[test]
    fn a_rule_ends_after_its_time() {
        let mut injector = Injector::default();
        let rule = Rule {
            lasting: Lasting::Time(Span::from_us(5)),
            ..ALWAYS
        };
        injector.add(Time::from_ns(1_000), rule, draws(1));
        let write = Command::write(0, 0, 512);
        let at = |injector: &mut Injector, ns| injector.judge(Time::from_ns(ns), &write).fails;
        assert!(at(&mut injector, 5_999));
        assert!(!at(&mut injector, 6_000));
    }
}
