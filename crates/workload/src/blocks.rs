//! Block sizes: fixed, a range, or a split by percent.

use model::Stream;

use super::job::BlockSizes;

/// Block size generator of one direction.
#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    Fixed(u32),
    Range {
        min: u32,
        step: u32,
        steps: u64,
    },
    /// Cumulative percent and size.
    Split(Box<[(f64, u32)]>),
}

impl Blocks {
    pub(crate) fn new(sizes: &BlockSizes) -> Blocks {
        match sizes {
            BlockSizes::Fixed(bytes) => Blocks::Fixed(*bytes),
            BlockSizes::Range { min, max, step } => Blocks::Range {
                min: *min,
                step: (*step).max(1),
                steps: u64::from((max - min) / (*step).max(1)) + 1,
            },
            BlockSizes::Split(shares) => {
                let mut sum = 0.0;
                Blocks::Split(
                    shares
                        .iter()
                        .map(|&(bytes, share)| {
                            sum += share;
                            (sum, bytes)
                        })
                        .collect(),
                )
            }
        }
    }

    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        match self {
            Blocks::Fixed(bytes) => *bytes,
            Blocks::Range { min, step, steps } => min + step * stream.uniform_below(*steps) as u32,
            Blocks::Split(shares) => {
                let percent = stream.unit() * 100.0;
                shares
                    .iter()
                    .find(|share| percent < share.0)
                    .unwrap_or(&shares[shares.len() - 1])
                    .1
            }
        }
    }
}

/// Returns the smallest and largest size.
pub(crate) fn limits(sizes: &BlockSizes) -> (u32, u32) {
    match sizes {
        BlockSizes::Fixed(bytes) => (*bytes, *bytes),
        BlockSizes::Range { min, max, .. } => (*min, *max),
        BlockSizes::Split(shares) => {
            let sizes = || {
                shares
                    .iter()
                    .filter(|share| share.1 > 0.0)
                    .map(|share| share.0)
            };
            (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
    }
}
