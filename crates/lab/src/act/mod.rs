//! Aerospike's certification test (ACT): configuration, verdict, and score.

mod score;
pub(crate) mod tested;

pub use score::{Score, at_load, at_share, score, tested, tested_until};
pub use tested::{ActResult, ActTest, LIMITS, Reason};
