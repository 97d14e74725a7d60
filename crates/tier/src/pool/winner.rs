//! The earliest of many times: a tournament tree, so that a change costs the logarithm of their number.

use alloc::vec;
use alloc::vec::Vec;

use model::time::Time;

/// Next times of several sources.
#[derive(Clone, Debug)]
pub(super) struct TournamentTree {
    /// A binary tree: the root is 1, the children of `i` are `2i` and `2i + 1`; the sources are its lowest row.
    times: Vec<Time>,
    row: usize,
}

impl TournamentTree {
    /// Creates a tree of `sources` sources, none of which has an event.
    pub(super) fn new(sources: usize) -> TournamentTree {
        let row = sources.next_power_of_two();
        TournamentTree {
            times: vec![Time::NEVER; 2 * row],
            row,
        }
    }

    /// Sets the next time of a source.
    #[inline]
    pub(super) fn set(&mut self, source: usize, at: Time) {
        let mut place = self.row + source;
        if self.times[place] == at {
            return;
        }
        self.times[place] = at;
        while place > 1 {
            place /= 2;
            let least = self.times[2 * place].min(self.times[2 * place + 1]);
            if self.times[place] == least {
                return;
            }
            self.times[place] = least;
        }
    }

    /// Returns the earliest time.
    #[inline]
    pub(super) fn first(&self) -> Time {
        self.times[1]
    }

    /// Returns the first source with the earliest time.
    #[inline]
    pub(super) fn earliest_source(&self) -> usize {
        let mut place = 1;
        while place < self.row {
            place *= 2;
            if self.times[place] != self.times[1] {
                place += 1;
            }
        }
        place - self.row
    }

    /// Returns the earliest time of all other sources.
    #[inline]
    pub(super) fn first_but(&self, source: usize) -> Time {
        let mut place = self.row + source;
        let mut first = Time::NEVER;
        while place > 1 {
            first = first.min(self.times[place ^ 1]);
            place /= 2;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_what_looking_at_all_of_them_finds(
            sources in 1usize..40,
            changes in prop::collection::vec((0usize..40, 0u64..20), 1..80),
        ) {
            let mut winner = TournamentTree::new(sources);
            let mut times = vec![Time::NEVER; sources];
            for (source, at) in changes {
                let (source, at) = (source % sources, Time::from_ns(at));
                winner.set(source, at);
                times[source] = at;
                let first = *times.iter().min().unwrap();
                prop_assert_eq!(winner.first(), first);
                let which = times.iter().position(|&it| it == first).unwrap();
                prop_assert_eq!(winner.earliest_source(), which);
                let others = times.iter().enumerate().filter(|&(index, _)| index != which);
                let second = others.map(|(_, &it)| it).min().unwrap_or(Time::NEVER);
                prop_assert_eq!(winner.first_but(which), second);
            }
        }
    }
}
