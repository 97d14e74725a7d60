//! Selection of the copy that a read goes to, for mirrors and clusters.
//!
//! Like Linux's md and ZFS's mirrors, it selects the copy with the fewest outstanding commands, but a sequential reader
//! stays on its copy, because drives read ahead for sequential reads. md keeps a sequential reader on its drive at any
//! depth; here, a reader that is deep enough not to need read-ahead is spread. Not modelled: more than one sequential
//! reader per location (the last read there counts), and the head positions of hard disks.

use alloc::vec;
use alloc::vec::Vec;

/// Policy for selecting the copy to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reads {
    /// The copy with the fewest outstanding commands; at a tie, the copy after the last one that was read. A read that
    /// continues the last read of a copy stays with it, while the copy has at most 512 KiB more outstanding than
    /// others.
    #[default]
    FewestInFlight,
    /// By address, in units of 1 MiB: sequential readers stay sequential.
    Address,
    /// Always the first copy.
    First,
}

impl Reads {
    /// All policies, with their words in files and expressions.
    pub const ALL: [(&str, Reads); 3] = [
        ("fewest-in-flight", Reads::FewestInFlight),
        ("address", Reads::Address),
        ("first", Reads::First),
    ];
}

/// Bytes that [`Reads::Address`] reads from one copy before the next.
const BY_ADDRESS: u64 = 1 << 20;

/// Bytes of a sequential reader that may be outstanding at one location, in excess of the location with the fewest,
/// before [`Reads::FewestInFlight`] spreads the reader. Assumed: more than most drives read ahead.
const IN_ORDER: u64 = 512 << 10;

/// No read has ended yet.
const NOWHERE: u64 = u64::MAX;

/// Outstanding commands by location: the members of a mirror, or the groups of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    reads: Reads,
    /// State of each location.
    places: Vec<CopyLoad>,
    /// The copy after the last one that was read.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
struct CopyLoad {
    /// Number of outstanding commands.
    in_flight: u32,
    /// Where its last read ended.
    read_to: u64,
}

impl CopyLoad {
    const EMPTY: CopyLoad = CopyLoad {
        in_flight: 0,
        read_to: NOWHERE,
    };
}

impl Copies {
    pub(super) fn new(reads: Reads, places: usize) -> Copies {
        Copies {
            reads,
            places: vec![CopyLoad::EMPTY; places],
            turn: 0,
        }
    }

    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Counts a command sent to this location.
    #[inline]
    pub(super) fn sent(&mut self, place: usize) {
        self.places[place].in_flight += 1;
    }

    /// Counts a completed command of this location.
    #[inline]
    pub(super) fn done(&mut self, place: usize) {
        self.places[place].in_flight -= 1;
    }

    /// Resets all counts.
    pub(super) fn forget(&mut self) {
        for place in &mut self.places {
            place.in_flight = 0;
        }
    }

    /// Selects one of `copies` copies for a read of `bytes` bytes at `at`. `of` returns a copy's location and offset of
    /// the data there, or `None` if it must not be read.
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

    /// Returns the members of a two-way mirror that serve these reads. A read has a block number, and whether it completes
    /// before the next one.
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
        // Random reads go to the location with less outstanding.
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
        // The read continues there, but that copy must not be read.
        let leg = copies.choose(3, 12288, 4096, |leg| (leg != 2).then_some((leg, 12288)));
        assert_eq!(leg, Some(0));
        assert_eq!(copies.choose(3, 0, 4096, |_| None), None);
    }
}
