//! Choices from a seed: SplitMix64 (Steele, Lea and Flood, 2014).

/// A stream of random choices.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Returns the stream of a seed and a name.
    pub(super) fn new(seed: u64, name: &str) -> Random {
        let mix =
            |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Random(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number between `low` and `high`, both included.
    pub(super) fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Shuffles the elements.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.number(0, at as u64) as usize);
        }
    }
}
