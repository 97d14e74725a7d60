//! Locks on units: a command that writes a unit excludes all others from it.
//!
//! A filter of counters, indexed by the low bits of the unit's number, reports "certainly free" for almost all
//! commands. Only if it cannot, the active pieces are compared one by one.
//!
//! Reads exclude no other reads: after a long sequence of reads only, no records of them are kept until a write
//! arrives.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::piece::CommandPiece;
use crate::engine::Slab;

const BUCKETS: usize = 1024;

/// After this number of consecutive reads without an active write, all records are dropped. Larger than the cost at the
/// first write after that.
const READS_ALONE: u32 = 1024;

/// The active pieces, and how many of them use each bucket of units.
#[derive(Clone, Debug)]
pub(super) struct Locks {
    /// Active pieces, in no order.
    working: Vec<u32>,
    readers: Box<[u32]>,
    writers: Box<[u32]>,
    writing: u32,
    /// Consecutive reads without an active write.
    reads: u32,
}

impl Locks {
    pub(super) fn new() -> Locks {
        Locks {
            working: Vec::with_capacity(64),
            readers: vec![0; BUCKETS].into(),
            writers: vec![0; BUCKETS].into(),
            writing: 0,
            reads: 0,
        }
    }

    /// Whether only reads are active, and no records of them are kept.
    #[inline]
    fn rest(&self) -> bool {
        self.reads == READS_ALONE
    }

    /// A piece becomes active (or waits for its units). Returns whether an earlier piece holds, or waits for, one of
    /// its units. A piece of `pieces` is active if its sequence is not 0.
    #[inline]
    pub(super) fn add(&mut self, pieces: &mut Slab<CommandPiece>, slot: u32) -> bool {
        if self.rest() && !pieces[slot].writes() {
            return false;
        }
        self.lock(pieces, slot)
    }

    /// A piece has completed.
    #[inline]
    pub(super) fn remove(&mut self, pieces: &mut Slab<CommandPiece>, slot: u32) {
        if !self.rest() {
            self.unlock(pieces, slot);
        }
    }

    /// Like [`Locks::add`], for a piece that is recorded.
    #[inline(never)]
    fn lock(&mut self, pieces: &mut Slab<CommandPiece>, slot: u32) -> bool {
        if pieces[slot].writes() {
            self.wake(pieces, pieces[slot].sequence);
            self.reads = 0;
        } else if self.writing == 0 {
            self.reads = READS_ALONE.min(self.reads + 1);
            if self.rest() {
                self.forget();
                return false;
            }
        }
        let conflict = self.may_conflict(&pieces[slot]) && self.conflicts(pieces, &pieces[slot]);
        self.keep(pieces, slot);
        conflict
    }

    /// Whether `piece` may share a unit with one that was added earlier. False means that it certainly does not.
    fn may_conflict(&self, piece: &CommandPiece) -> bool {
        if !piece.writes() && self.writing == 0 {
            return false;
        }
        buckets(piece)
            .any(|bucket| self.writers[bucket] > 0 || (piece.writes() && self.readers[bucket] > 0))
    }

    /// Whether an earlier piece holds, or waits for, one of the units of this piece.
    pub(super) fn conflicts(&self, pieces: &Slab<CommandPiece>, piece: &CommandPiece) -> bool {
        self.working.iter().any(|&slot| {
            let other = &pieces[slot];
            other.sequence < piece.sequence && other.conflicts(piece)
        })
    }

    /// Like [`Locks::remove`], for a piece that is recorded.
    #[inline(never)]
    fn unlock(&mut self, pieces: &mut Slab<CommandPiece>, slot: u32) {
        let piece = &pieces[slot];
        let counts = if piece.writes() {
            self.writing -= 1;
            &mut self.writers
        } else {
            &mut self.readers
        };
        for bucket in buckets(piece) {
            counts[bucket] -= 1;
        }
        let position = piece.position;
        self.working.swap_remove(position as usize);
        if let Some(&moved) = self.working.get(position as usize) {
            pieces[moved].position = position;
        }
    }

    fn keep(&mut self, pieces: &mut Slab<CommandPiece>, slot: u32) {
        let piece = &mut pieces[slot];
        piece.position = self.working.len() as u32;
        self.working.push(slot);
        let counts = if piece.writes() {
            self.writing += 1;
            &mut self.writers
        } else {
            &mut self.readers
        };
        for bucket in buckets(piece) {
            counts[bucket] += 1;
        }
    }

    /// Drops all records.
    fn forget(&mut self) {
        debug_assert_eq!(self.writing, 0);
        self.working.clear();
        self.readers.fill(0);
    }

    /// A piece with this sequence writes: all earlier pieces are recorded from now.
    fn wake(&mut self, pieces: &mut Slab<CommandPiece>, sequence: u64) {
        if !self.rest() {
            return;
        }
        for slot in 0..pieces.all_mut().len() as u32 {
            if (1..sequence).contains(&pieces[slot].sequence) {
                self.keep(pieces, slot);
            }
        }
    }
}

#[inline]
fn buckets(piece: &CommandPiece) -> impl Iterator<Item = usize> {
    let first = piece.first_unit as usize;
    (first..first + piece.units as usize).map(|unit| unit % BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::super::piece::{PieceOwner, PieceWork};
    use super::*;
    use crate::command::Status;
    use crate::random::Stream;
    use crate::time::Time;

    /// Reads and writes of a few units arrive and complete. For long periods there are only reads, more than
    /// `READS_ALONE`. The expected result of whether a piece must wait is computed by comparing it with all earlier
    /// ones.
    #[test]
    fn who_has_to_wait_does_not_depend_on_what_is_kept() {
        let mut random = Stream::new(5, "locks");
        let (mut locks, mut pieces) = (Locks::new(), Slab::<CommandPiece>::default());
        let (mut inside, mut conflicts, mut rested) = (Vec::new(), [0; 2], 0);
        for sequence in 1..20_000u64 {
            // Writes occur in the first third of each 5,000 steps.
            let writes = sequence % 5_000 < 1_700 && random.uniform_below(3) == 0;
            let work = if writes {
                PieceWork::Write
            } else {
                PieceWork::Read
            };
            let (offset, bytes) = (
                random.uniform_below(90) * 4096,
                4096 << random.uniform_below(3),
            );
            let of = PieceOwner::Command(0, Status::Success);
            let mut piece = CommandPiece::new(of, work, offset, bytes as u32, Time::ZERO);
            piece.sequence = sequence;
            let earlier = |&slot: &u32| pieces[slot].conflicts(&piece);
            let expected = inside.iter().any(earlier);
            let slot = pieces.insert(piece);
            assert_eq!(locks.add(&mut pieces, slot), expected, "{sequence}");
            conflicts[usize::from(expected)] += 1;
            rested += usize::from(locks.rest());
            inside.push(slot);
            while inside.len() > 12 || (!inside.is_empty() && random.uniform_below(12) == 0) {
                let done = inside.swap_remove(random.uniform_below(inside.len() as u64) as usize);
                pieces[done].sequence = 0;
                locks.remove(&mut pieces, done);
                pieces.release(done);
            }
        }
        assert!(conflicts[1] > 1_000, "{conflicts:?}");
        assert!(rested > 5_000, "nothing was forgotten: {rested}");
    }
}
