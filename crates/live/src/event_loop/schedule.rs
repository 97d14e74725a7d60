//! Scheduled faults: time, target, fault.

use crate::clock::Wall;
use workload::faults::{Fault, Target};

/// A scheduled fault.
pub(super) type PendingFault = (Wall, Target, Fault);

/// All scheduled faults; the next is last.
#[derive(Debug, Default)]
pub(super) struct Schedule(Vec<PendingFault>);

impl Schedule {
    pub(super) fn add(&mut self, faults: Vec<PendingFault>) {
        self.0.extend(faults);
        self.0.sort_by_key(|(at, _, _)| std::cmp::Reverse(*at));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next fault that is due.
    pub(super) fn due(&mut self, now: Wall) -> Option<(Target, Fault)> {
        self.0.last().filter(|(at, _, _)| *at <= now)?;
        self.0.pop().map(|(_, target, fault)| (target, fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_in_the_order_of_their_times() {
        let mut schedule = Schedule::default();
        let at = Wall::from_ns;
        schedule.add(vec![
            (at(30), 0.into(), Fault::Drop),
            (at(10), 1.into(), Fault::Drop),
        ]);
        schedule.add(vec![(at(20), 2.into(), Fault::Drop)]);
        assert_eq!(schedule.due(at(9)), None);
        let drives = [25, 25, 25, 30].map(|now| schedule.due(at(now)).map(|(it, _)| it.drive));
        assert_eq!(drives, [Some(1), Some(2), None, Some(0)]);
        assert!(schedule.is_empty());
    }
}
