//! `--rate`: an arrival rate that is equal for all drives.

use study::decide::rate::OfferedRate;

/// Rate of the load on the drives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum RateArg {
    /// Each drive's own maximum.
    Max,
    /// This rate on all drives.
    At(OfferedRate),
}

pub(crate) fn rate(text: &str) -> Result<RateArg, String> {
    match text {
        "max" => Ok(RateArg::Max),
        _ => OfferedRate::read(text)
            .map(RateArg::At)
            .map_err(|help| format!("{help}, or max")),
    }
}
