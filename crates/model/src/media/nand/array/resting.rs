//! The set of idle dies.

use super::die::DieSet;
use crate::ftl::Die;

/// Dies without work, waiting reads or a suspended operation.
#[derive(Clone, Debug)]
pub(super) struct IdleDies {
    idle: DieSet,
    /// Idle dies that cannot take a page of host data: only their own work changes that. If the firmware limits GC,
    /// these are most dies of a drive, and each page would check all of them.
    passed_over: DieSet,
}

impl IdleDies {
    /// Creates a set of all `dies` dies.
    pub(super) fn all(dies: u32) -> IdleDies {
        IdleDies {
            idle: DieSet::full(dies),
            passed_over: DieSet::empty(dies),
        }
    }

    /// Returns the first idle die at or after `from` that has not been passed over.
    #[inline]
    pub(super) fn next(&self, from: Die) -> Option<Die> {
        self.idle.next(from)
    }

    /// A die becomes idle.
    #[inline]
    pub(super) fn insert(&mut self, die: Die) {
        self.idle.insert(die);
        self.passed_over.remove(die);
    }

    /// Marks an idle die as unable to take a page of host data.
    #[inline]
    pub(super) fn pass_over(&mut self, die: Die) {
        self.idle.remove(die);
        self.passed_over.insert(die);
    }

    /// Whether an idle die has been passed over.
    #[inline]
    pub(super) fn is_passed_over(&self, die: Die) -> bool {
        self.passed_over.contains(die)
    }

    /// A die is given work.
    #[inline]
    pub(super) fn remove(&mut self, die: Die) {
        self.idle.remove(die);
        self.passed_over.remove(die);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_that_was_passed_over_is_asked_again_when_it_has_worked() {
        let mut resting = IdleDies::all(3);
        assert_eq!(resting.next(Die(1)), Some(Die(1)));
        resting.pass_over(Die(1));
        assert!(resting.is_passed_over(Die(1)));
        assert_eq!(resting.next(Die(1)), Some(Die(2)));
        resting.pass_over(Die(2));
        resting.insert(Die(2));
        assert!(!resting.is_passed_over(Die(2)));
        resting.remove(Die(2));
        assert_eq!(resting.next(Die(1)), None);
        resting.remove(Die(1));
        resting.insert(Die(1));
        assert!(!resting.is_passed_over(Die(1)));
        assert_eq!(resting.next(Die(0)), Some(Die(0)));
        assert_eq!(resting.next(Die(1)), Some(Die(1)));
    }
}
