//! Selection of the undecided pieces that are lost.
//!
//! If at most [`EXHAUSTIVE`] pieces are undecided, all subsets are listed. Otherwise the list begins with the loss of
//! nothing and of everything. The following kinds then alternate: each write lost alone, each kept alone, prefixes in
//! the order in which pieces apply, prefixes in the order of submission, each torn write cut before and after each of
//! its pieces, runs of adjacent writes, pairs of writes, and random subsets that lose an eighth, a half or seven
//! eighths. The kinds alternate so that a truncated list has some of each kind.

use std::collections::BTreeSet;

use model::Stream;

use crate::lost::Lost;
use crate::moments::Walk;

/// Maximum number of undecided pieces for which all subsets are tried.
pub const EXHAUSTIVE: usize = 12;

/// The undecided pieces of a moment, in the form that subsets are made from.
struct Shape {
    /// By piece: index of its write in the order in which writes apply.
    write: Vec<usize>,
    /// By write: range of its pieces.
    pieces: Vec<std::ops::Range<usize>>,
    /// Writes in the order of submission.
    submitted: Vec<usize>,
    /// Runs of more than one write whose ranges are adjacent.
    runs: Vec<Vec<usize>>,
}

impl Shape {
    fn from_walk(walk: &Walk<'_>) -> Shape {
        let (mut write, mut pieces, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (number, of_one) in walk.writes().enumerate() {
            let from = write.len();
            write.resize(from + of_one.len(), number);
            pieces.push(from..write.len());
            let ends = of_one.iter().flat_map(|it| &it.extents);
            let start = ends.clone().map(|it| it.0).min().unwrap_or_default();
            let end = ends.map(|it| it.1).max().unwrap_or_default();
            places.push((start, end, number));
        }
        let commands: Vec<u32> = walk.writes().map(|it| it[0].command).collect();
        let mut submitted: Vec<usize> = (0..commands.len()).collect();
        submitted.sort_by_key(|it| commands[*it]);
        places.sort_unstable();
        let runs = places.chunk_by(|a, b| a.1 == b.0);
        let runs = runs.filter(|run| run.len() > 1);
        let numbers = |run: &[(u64, u64, usize)]| run.iter().map(|it| it.2).collect();
        Shape {
            write,
            pieces,
            submitted,
            runs: runs.map(numbers).collect(),
        }
    }

    fn count(&self) -> usize {
        self.write.len()
    }

    /// Returns the subset that loses the writes for which `lost` is true.
    fn writes(&self, mut lost: impl FnMut(usize) -> bool) -> Lost {
        Lost::from_fn(self.count(), |piece| lost(self.write[piece]))
    }

    /// Returns the subset with this number of a kind; `None` if there are fewer.
    fn subset(&self, kind: usize, index: usize) -> Option<Lost> {
        let (writes, pieces) = (self.pieces.len(), self.count());
        let below = |count: usize| (index < count).then_some(());
        match kind {
            0 => below(writes).map(|()| self.writes(|it| it == index)),
            1 => below(writes).map(|()| self.writes(|it| it != index)),
            2 => below(pieces).map(|()| Lost::from_fn(pieces, |it| it >= index)),
            3 => below(writes).map(|()| {
                let lost: BTreeSet<usize> = self.submitted[index..].iter().copied().collect();
                self.writes(|it| lost.contains(&it))
            }),
            // Kept before a place and lost after it, and the reverse.
            4 | 5 => below(pieces).map(|()| {
                let of_one = self.pieces[self.write[index]].clone();
                let lost = if kind == 4 {
                    index..of_one.end
                } else {
                    of_one.start..index + 1
                };
                Lost::from_fn(pieces, |it| lost.contains(&it))
            }),
            6 => {
                let run = self.runs.get(index)?;
                Some(self.writes(|it| run.contains(&it)))
            }
            _ => pair(index, writes).map(|(a, b)| self.writes(|it| it == a || it == b)),
        }
    }
}

/// Returns the pair with this number, of numbers below `count`.
fn pair(index: usize, count: usize) -> Option<(usize, usize)> {
    let mut left = index;
    for second in 1..count {
        if left < second {
            return Some((left, second));
        }
        left -= second;
    }
    None
}

/// Returns the number of subsets; `None` if they are not all listed.
pub fn all_of(pieces: usize) -> Option<usize> {
    (pieces <= EXHAUSTIVE).then(|| 1 << pieces)
}

/// Returns the first `most` subsets of the walk's moment, without repetition. A longer list begins with every shorter
/// one.
pub fn choices(walk: &Walk<'_>, most: usize, seed: u64) -> Vec<Lost> {
    let shape = Shape::from_walk(walk);
    let count = shape.count();
    let mut list = List {
        most: all_of(count).map_or(most, |all| all.min(most)),
        chosen: Vec::new(),
        seen: BTreeSet::new(),
    };
    list.add(Lost::nothing(count));
    list.add(Lost::from_fn(count, |_| true));
    let mut stream = Stream::numbered(seed, "crash", walk.moment().number.into());
    for index in 0..(1 << EXHAUSTIVE).max(4 * list.most) {
        if list.is_full() {
            break;
        }
        for kind in 0..8 {
            if let Some(lost) = shape.subset(kind, index) {
                list.add(lost);
            }
        }
        if count > EXHAUSTIVE {
            let eighths = [1, 4, 7][index % 3];
            list.add(Lost::from_fn(count, |_| stream.uniform_below(8) < eighths));
        } else {
            list.add(Lost::from_fn(count, |piece| index & 1 << piece != 0));
        }
    }
    list.chosen
}

struct List {
    most: usize,
    chosen: Vec<Lost>,
    seen: BTreeSet<Lost>,
}

impl List {
    fn is_full(&self) -> bool {
        self.chosen.len() >= self.most
    }

    fn add(&mut self, lost: Lost) {
        if !self.is_full() && self.seen.insert(lost.clone()) {
            self.chosen.push(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_number() {
        let pairs: BTreeSet<_> = (0..).map_while(|it| pair(it, 5)).collect();
        assert_eq!(pairs.len(), 10);
        assert!(pairs.iter().all(|(a, b)| a < b && *b < 5));
    }
}
