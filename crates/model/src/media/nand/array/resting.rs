//! Which dies have nothing to do.

use super::die::DieSet;
use crate::ftl::Die;

/// Dies that do nothing, have no reads waiting and nothing suspended.
#[derive(Clone, Debug)]
pub(super) struct Resting {
    idle: DieSet,
    /// Those that could take no page of host data: nothing changes that but their own work. Where the firmware bounds
    /// collection they are most of a drive's, and each page would ask them all.
    passed_over: DieSet,
}

impl Resting {
    /// All of so many.
    pub(super) fn all(dies: u32) -> Resting {
        Resting {
            idle: DieSet::full(dies),
            passed_over: DieSet::empty(dies),
        }
    }

    /// The first from `from` on that has not been passed over.
    #[inline]
    pub(super) fn next(&self, from: Die) -> Option<Die> {
        self.idle.next(from)
    }

    /// A die has nothing to do.
    #[inline]
    pub(super) fn insert(&mut self, die: Die) {
        self.idle.insert(die);
        self.passed_over.remove(die);
    }

    /// A die that rests can take no page of host data.
    #[inline]
    pub(super) fn pass_over(&mut self, die: Die) {
        self.idle.remove(die);
        self.passed_over.insert(die);
    }

    /// Whether a die that rests has been passed over.
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
        let mut resting = Resting::all(3);
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
