//! Faults happen to drives and members, and it is said that they did.

use super::EventLoop;
use crate::clock::Wall;
use workload::faults::{Fault, Target};

use crate::port::{Ending, Notice};

impl EventLoop {
    /// Faults to come: when, to whom, what. At once those without a time.
    pub fn plan(&mut self, faults: Vec<(Wall, Target, Fault)>) {
        self.schedule.add(faults);
    }

    /// Lets a fault happen, and says so.
    pub(super) fn fault(&mut self, target: Target, fault: &Fault) {
        let now = self.clock.arrival(self.clock.wall());
        let index = target.drive;
        let drive = &mut self.drives[index];
        if let Some(member) = target.member {
            let name = drive.members()[usize::from(member)].to_owned();
            let suffered = drive.member_suffers(now, member, fault);
            self.log.say(&match suffered {
                Ok(()) => format!("{}: {name}: fault: {fault}", drive.name()),
                Err(why) => format!("{}: {name}: {fault}: {why}", drive.name()),
            });
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
                let gone = Ending::Failed("dropped on demand".into());
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

    /// The power switch was touched: all drives.
    pub(super) fn cut_power(&mut self) {
        self.switches.forget_cut();
        self.end_by_power_cut();
    }

    /// Ends as a power cut would, instead of in order.
    pub fn end_by_power_cut(&mut self) {
        for index in 0..self.drives.len() {
            self.fault(index.into(), &Fault::PowerCut);
        }
    }
}
