//! Default values and ranges of requests. The command line and Python take theirs from here.

use std::ops::RangeInclusive;

/// Initial state of the drives, if the load selects it.
pub const AUTO: &str = "auto";
/// Initial state of the drives, if the question needs a given one.
pub const STEADY: &str = "steady";
/// First seed.
pub const SEED: u64 = 1;
/// Number of seeds.
pub const SEEDS: u32 = 3;
/// Access pattern of `max`.
pub const RW: &str = "randread";
/// Access pattern of `mix`.
pub const MIXED_RW: &str = "randrw";
/// Access pattern of the writes of `life`.
pub const WRITES_RW: &str = "randwrite";
/// Block size.
pub const BS: &str = "4k";
/// Lifetime in years that drives must reach.
pub const YEARS: f64 = 5.0;
/// Percentage of reads in a mix.
pub const READ_PERCENT: u32 = 50;

/// Seeds. JSON stores whole numbers up to 2^53 exactly.
pub const SEED_RANGE: RangeInclusive<u64> = 0..=(1 << 53) - 1;
/// Numbers of seeds.
pub const SEEDS_RANGE: RangeInclusive<i64> = 1..=20;
/// Shares in percent: of reads, or of a drive in use.
pub const PERCENT_RANGE: RangeInclusive<i64> = 0..=100;
/// Numbers of threads.
pub const THREADS_RANGE: RangeInclusive<i64> = 1..=256;
/// Numbers of users of a load.
pub const USERS_RANGE: RangeInclusive<i64> = 1..=10_000_000;
/// I/Os of a run.
pub const IOS_RANGE: RangeInclusive<u64> = 1_000..=100_000_000;
/// Steps between mixes, in percent.
pub const STEP_RANGE: RangeInclusive<i64> = 1..=100;
/// Queue depths of a mix: at least one read and one write.
pub const MIX_DEPTH_RANGE: RangeInclusive<i64> = 2..=1024;
/// Queue depths of writes.
pub const DEPTH_RANGE: RangeInclusive<i64> = 1..=1024;
