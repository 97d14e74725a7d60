//! Faults in a running loop: at their time, or when somebody who controls asks for them.

use super::EventLoop;
use crate::clock::Wall;
use crate::faults::Fault;
use crate::port::{Ending, Notice};

impl EventLoop {
    /// Lets a fault happen, and says so.
    pub(super) fn fault(&mut self, index: usize, fault: &Fault) {
        let now = self.clock.arrival(self.clock.wall());
        let drive = &mut self.drives[index];
        (self.log)(&format!("{}: fault: {fault}", drive.name()));
        match fault {
            Fault::PowerCut => {
                let loss = drive.power_cut(now);
                (self.log)(&format!(
                    "{}: power cut: {} commands and {} cached bytes lost",
                    drive.name(),
                    loss.commands,
                    loss.cached_bytes
                ));
                self.save(index);
                self.tell_all(index, Notice::PowerCut);
            }
            Fault::Drop => {
                let gone = Ending::Failed("dropped on demand".into());
                for id in 0..self.places.len() as u32 {
                    if self.places[id as usize]
                        .endpoint
                        .as_ref()
                        .is_some_and(|it| it.is_client())
                    {
                        self.end(id, &gone);
                    }
                }
            }
            fault => {
                if let Err(why) = drive.suffer(now, fault) {
                    (self.log)(&format!("{}: fault: {why}", drive.name()));
                }
                self.tell_all(index, Notice::Health);
            }
        }
    }

    /// The power switch was touched: all drives.
    pub(super) fn cut_power(&mut self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.switches.cut, &mut bytes).is_ok_and(|read| read == bytes.len())
        {
        }
        for index in 0..self.drives.len() {
            self.fault(index, &Fault::PowerCut);
        }
    }

    /// Ends as a power cut would, instead of in order.
    pub fn end_by_power_cut(&mut self) {
        for index in 0..self.drives.len() {
            self.fault(index, &Fault::PowerCut);
        }
    }

    /// Writes down what a drive remembers.
    pub(super) fn save(&mut self, index: usize) {
        self.drives[index].save_for_now();
    }

    /// Says what is wrong with the files of stores.
    pub(super) fn complain(&mut self, now: Wall) {
        for drive in &mut self.drives {
            while let Some(line) = drive.complaint(now) {
                (self.log)(&line);
            }
        }
    }

    /// Faults to come: when, to which drive, what. At once those without a time.
    pub fn plan(&mut self, faults: Vec<(Wall, usize, Fault)>) {
        self.planned.extend(faults);
        // The next is the last.
        self.planned
            .sort_by_key(|(at, _, _)| std::cmp::Reverse(*at));
    }

    pub(super) fn faults_due(&mut self, now: Wall) {
        while self.planned.last().is_some_and(|(at, _, _)| *at <= now) {
            if let Some((_, drive, fault)) = self.planned.pop() {
                self.fault(drive, &fault);
            }
        }
    }
}
