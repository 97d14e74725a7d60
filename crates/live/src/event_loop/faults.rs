//! Fault injection into drives and members, with log messages.

use super::EventLoop;
use crate::clock::Wall;
use workload::faults::{Fault, Target, Timing};

use crate::port::{ConnectionEnd, Notice};
use crate::served::TriggeredFault;

impl EventLoop {
    /// Schedules the faults of a script: time, target, fault. Those without a time happen now; times and counts begin
    /// with the start.
    pub fn plan(&mut self, faults: Vec<(Timing, Target, Fault)>) {
        for (when, target, fault) in faults {
            match when {
                Timing::AtOnce => self.fault(target, &fault),
                Timing::At(span) => self.plan_one(Wall::default().plus(span), target, fault),
                Timing::Count(trigger) => {
                    let drive = &mut self.drives[target.drive];
                    if let Err(why) = drive.arm(target.member, trigger, fault) {
                        self.log.say(&format!("{}: fault: {why}", drive.name()));
                    }
                }
            }
        }
    }

    /// Schedules a fault for this time.
    pub(super) fn plan_one(&mut self, at: Wall, target: Target, fault: Fault) {
        self.schedule.add(vec![(at, target, fault)]);
    }

    /// Reports the faults that counts have triggered on all drives, and executes those that the drives do not execute
    /// themselves. Returns whether there were any.
    pub(super) fn strike_all(&mut self) -> bool {
        let mut some = false;
        for index in 0..self.drives.len() {
            some |= self.struck(index);
        }
        some
    }

    fn struck(&mut self, index: usize) -> bool {
        let mut some = false;
        while let Some(struck) = self.drives[index].take_struck() {
            some = true;
            let TriggeredFault {
                member,
                fault,
                result,
            } = struck;
            if member.is_none() && matches!(fault, Fault::PowerCut | Fault::Drop) {
                self.fault(index.into(), &fault);
                continue;
            }
            self.say_fault(index, member, &fault, result);
            self.tell_all(index, Notice::Health);
        }
        some
    }

    fn say_fault(
        &mut self,
        index: usize,
        member: Option<u16>,
        fault: &Fault,
        result: Result<(), String>,
    ) {
        let drive = &self.drives[index];
        let whole = drive.name();
        let members = drive.members();
        let member = member.map_or("", |member| members[usize::from(member)]);
        let apart = if member.is_empty() { "" } else { ": " };
        self.log.say(&match result {
            Ok(()) => format!("{whole}{apart}{member}: fault: {fault}"),
            Err(why) => format!("{whole}{apart}{member}: {fault}: {why}"),
        });
    }

    /// Injects a fault, and logs it.
    pub(super) fn fault(&mut self, target: Target, fault: &Fault) {
        let now = self.clock.arrival(self.clock.wall());
        let index = target.drive;
        let drive = &mut self.drives[index];
        if let Some(member) = target.member {
            let suffered = drive.member_suffers(now, member, fault);
            self.say_fault(index, Some(member), fault, suffered);
            self.tell_all(index, Notice::Health);
            return;
        }
        self.log.say(&format!("{}: fault: {fault}", drive.name()));
        match fault {
            Fault::PowerCut => {
                let loss = drive.power_cut(now);
                for line in drive.findings() {
                    self.log.say(&format!("{}: {line}", drive.name()));
                }
                self.log.say(&format!(
                    "{}: power cut: {} commands and {} cached bytes lost",
                    drive.name(),
                    loss.commands,
                    loss.cached_bytes
                ));
                drive.save_for_now();
                self.tell_all(index, Notice::PowerCut);
            }
            Fault::Drop => {
                let gone = ConnectionEnd::Failed("dropped on demand".into());
                for id in 0..self.places.numbers() {
                    let place = self.places.get_mut(id);
                    let endpoint = place.and_then(|it| it.endpoint.as_ref());
                    if endpoint.is_some_and(|it| it.is_client()) {
                        self.end(id, &gone);
                    }
                }
            }
            fault => {
                if let Err(why) = drive.suffer(now, fault) {
                    self.log.say(&format!("{}: fault: {why}", drive.name()));
                }
                self.tell_all(index, Notice::Health);
            }
        }
    }

    /// Cuts the power of all drives after the power switch was used.
    pub(super) fn cut_power(&mut self) {
        self.switches.forget_cut();
        self.end_by_power_cut();
    }

    /// Ends as in a power cut, instead of an orderly shutdown.
    pub fn end_by_power_cut(&mut self) {
        for index in 0..self.drives.len() {
            self.fault(index.into(), &Fault::PowerCut);
        }
    }
}
