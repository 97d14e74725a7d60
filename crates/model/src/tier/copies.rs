//! Which of several copies of the same data a read goes to: what mirrors and clusters share.
//!
//! As Linux's md and ZFS's mirrors do it: the copy where least is outstanding, but a reader in order stays where it is, since drives
//! read ahead of what they see in order. md keeps a reader in order on its drive however deep it is; here what is so deep that it
//! needs no reading ahead is spread. Left out: more than one reader in order for each place (the last to have read there counts), and
//! where the heads of hard disks are.

use alloc::vec;
use alloc::vec::Vec;

/// Which copy a read goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reads {
    /// The one with the fewest commands outstanding; of equals the one after the last that was read from. What goes on where the last
    /// read of a copy ended stays with it, up to 512 KiB more than others have outstanding.
    #[default]
    FewestInFlight,
    /// By address, a MiB each in turn: readers in order stay in order.
    Address,
    /// Always the first.
    First,
}

impl Reads {
    /// All of them, with the words of files and expressions.
    pub const ALL: [(&str, Reads); 3] = [
        ("fewest-in-flight", Reads::FewestInFlight),
        ("address", Reads::Address),
        ("first", Reads::First),
    ];
}

/// Bytes that [`Reads::Address`] reads from one copy before the next.
const BY_ADDRESS: u64 = 1 << 20;

/// Bytes of a reader in order that may be outstanding at one place beyond the one with fewest before [`Reads::FewestInFlight`] spreads
/// it. Assumed: more than most drives read ahead.
const IN_ORDER: u64 = 512 << 10;

/// Where no read has ended yet.
const NOWHERE: u64 = u64::MAX;

/// What is outstanding where copies are: at the legs of a mirror, the groups of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    reads: Reads,
    /// By place.
    places: Vec<Place>,
    /// The copy after the last that was read.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Commands outstanding.
    in_flight: u32,
    /// Where its last read ended.
    read_to: u64,
}

impl Place {
    const EMPTY: Place = Place {
        in_flight: 0,
        read_to: NOWHERE,
    };
}

impl Copies {
    pub(super) fn new(reads: Reads, places: usize) -> Copies {
        Copies {
            reads,
            places: vec![Place::EMPTY; places],
            turn: 0,
        }
    }

    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// A command goes to this place.
    #[inline]
    pub(super) fn sent(&mut self, place: usize) {
        self.places[place].in_flight += 1;
    }

    /// It is done.
    #[inline]
    pub(super) fn done(&mut self, place: usize) {
        self.places[place].in_flight -= 1;
    }

    /// Nothing is outstanding any more.
    pub(super) fn forget(&mut self) {
        for place in &mut self.places {
            place.in_flight = 0;
        }
    }

    /// Which of so many copies a read of so many bytes from `at` on goes to. `of` a copy is its place and where on that the data are,
    /// or nothing if it is not to be read.
    pub(super) fn choose(
        &mut self,
        copies: usize,
        at: u64,
        bytes: u32,
        of: impl Fn(usize) -> Option<(usize, u64)>,
    ) -> Option<usize> {
        let first = match self.reads {
            Reads::First => 0,
            Reads::Address => (at / BY_ADDRESS % copies as u64) as usize,
            Reads::FewestInFlight => self.turn,
        };
        let mut candidates = (0..copies).filter_map(|step| {
            let copy = (first + step) % copies;
            Some((copy, of(copy)?))
        });
        if self.reads != Reads::FewestInFlight {
            return candidates.next().map(|(copy, _)| copy);
        }
        let in_flight = |place: usize| self.places[place].in_flight;
        let mut chosen = candidates
            .clone()
            .min_by_key(|&(_, (place, _))| in_flight(place))?;
        let fewest = in_flight(chosen.1.0);
        let goes_on = candidates.find(|&(_, (place, at))| self.places[place].read_to == at);
        if let Some(going_on) = goes_on {
            let more = u64::from(in_flight(going_on.1.0) - fewest) * u64::from(bytes);
            if more < IN_ORDER {
                chosen = going_on;
            }
        }
        let (copy, (place, at)) = chosen;
        self.places[place].read_to = at.saturating_add(bytes.into());
        self.turn = (copy + 1) % copies;
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The legs of a mirror of two that these reads go to, each of 4 KiB at a block's number, and whether it is then done.
    fn legs(reads: &[(u64, bool)], bytes: u32) -> Vec<usize> {
        let mut copies = Copies::new(Reads::FewestInFlight, 2);
        let mut leg_of = |&(block, done): &(u64, bool)| {
            let at = block * u64::from(bytes);
            let leg = copies.choose(2, at, bytes, |leg| Some((leg, at)));
            let leg = leg.expect("both may be read");
            copies.sent(leg);
            if done {
                copies.done(leg);
            }
            leg
        };
        reads.iter().map(&mut leg_of).collect()
    }

    #[test]
    fn a_reader_in_order_stays_where_it_is_and_others_take_turns() {
        let one: Vec<_> = (0..6).map(|block| (block, true)).collect();
        assert_eq!(legs(&one, 4096), [0; 6]);
        let two = [
            (0, true),
            (500, true),
            (1, true),
            (501, true),
            (2, true),
            (502, true),
        ];
        assert_eq!(legs(&two, 4096), [0, 1, 0, 1, 0, 1]);
        let random = [(40, true), (20, true), (60, true), (10, true)];
        assert_eq!(legs(&random, 4096), [0, 1, 0, 1]);
        // What is at random goes where less is outstanding.
        let deep = [(40, false), (20, true), (60, true), (10, true)];
        assert_eq!(legs(&deep, 4096), [0, 1, 1, 1]);
    }

    #[test]
    fn a_reader_in_order_is_spread_where_its_place_has_512_kib_more() {
        let deep: Vec<_> = (0..12).map(|block| (block, false)).collect();
        assert_eq!(legs(&deep, 64 << 10), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(legs(&deep, 4096), [0; 12]);
    }

    #[test]
    fn what_is_not_to_be_read_is_not() {
        let mut copies = Copies::new(Reads::FewestInFlight, 3);
        for at in [0, 4096, 8192] {
            let leg = copies.choose(3, at, 4096, |leg| (leg == 2).then_some((leg, at)));
            assert_eq!(leg, Some(2));
        }
        // It goes on there, and may not.
        let leg = copies.choose(3, 12288, 4096, |leg| (leg != 2).then_some((leg, 12288)));
        assert_eq!(leg, Some(0));
        assert_eq!(copies.choose(3, 0, 4096, |_| None), None);
    }
}
