//! The seed, as an argument of the subcommands that draw random numbers. All of them have the same default (decision
//! 0054).

/// The seed of every random stream.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct SeedArg {
    /// Seed of every random stream: the same seed gives the same output, byte for byte
    // JSON stores whole numbers up to 2^53 exactly.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub(crate) seed: u64,
}
