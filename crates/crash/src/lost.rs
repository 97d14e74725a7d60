//! Sets of lost pieces.

/// A set of lost pieces, by their index at one moment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lost {
    words: Vec<u64>,
}

impl Lost {
    /// Returns the empty set of `count` pieces.
    pub fn nothing(count: usize) -> Lost {
        Lost {
            words: vec![0; count.div_ceil(64)],
        }
    }

    /// Returns the set of pieces for which `lost` is true.
    pub fn from_fn(count: usize, mut lost: impl FnMut(usize) -> bool) -> Lost {
        let mut set = Lost::nothing(count);
        for index in (0..count).filter(|index| lost(*index)) {
            set.words[index / 64] |= 1 << (index % 64);
        }
        set
    }

    /// Checks whether this piece is lost.
    pub fn contains(&self, index: usize) -> bool {
        let word = self.words.get(index / 64);
        word.is_some_and(|word| word & 1 << (index % 64) != 0)
    }

    /// Returns the number of lost pieces.
    pub fn count(&self) -> usize {
        self.words.iter().map(|it| it.count_ones() as usize).sum()
    }
}
