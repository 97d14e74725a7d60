//! The seed, as an argument of the subcommands that draw random numbers. All of them have the same default (decision
//! 0054).

use study::ask::defaults::{SEED, SEED_RANGE};

/// The seed of every random stream.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct SeedArg {
    /// Seed of every random stream: the same seed gives the same output, byte for byte
    #[arg(long, value_name = "N", default_value_t = SEED, value_parser = clap::value_parser!(u64).range(SEED_RANGE))]
    pub(crate) seed: u64,
}
