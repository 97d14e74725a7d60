//! Why a drive does not do what its administrator asks.

use core::fmt;

/// Why a drive does not do what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It has no such thing; what would be right.
    Unsupported(&'static str),
    /// The value cannot be; what would be right.
    Invalid(&'static str),
    /// It has commands inside, or another operation is in progress.
    Busy,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unsupported(what) | Refusal::Invalid(what) => f.write_str(what),
            Refusal::Busy => f.write_str("the drive is busy: wait for what is in progress"),
        }
    }
}

impl core::error::Error for Refusal {}

impl Refusal {
    /// It has no power governor.
    pub const NO_GOVERNOR: Refusal =
        Refusal::Unsupported("this drive's model has no power governor");
    /// It does not wear.
    pub const NO_WEAR: Refusal = Refusal::Unsupported("this drive's medium does not wear");
    /// Nothing in it depends on when it was switched on.
    pub const NO_REFRESH: Refusal =
        Refusal::Unsupported("this drive's model does nothing special after power-on");
    /// No governor can hold this limit.
    pub const BELOW_IDLE: Refusal =
        Refusal::Invalid("the power limit must be above the drive's idle power");
    /// It has no spare area.
    pub const NO_SPARE: Refusal = Refusal::Unsupported(
        "this drive has no spare area that could be larger; a job's `size` says how much of it is used",
    );
    /// What lies over members cannot change their sizes.
    pub const OF_MEMBERS: Refusal = Refusal::Unsupported(
        "the spare area of a pool is that of its members: set it before they are put together",
    );
    /// No drive works with so much kept back.
    pub const NO_OVERPROVISION: Refusal =
        Refusal::Invalid("the share of the capacity that is kept back must be from 0 to 90 %");
    /// Not a share of a drive.
    pub const NOT_FILLED: Refusal = Refusal::Invalid(
        "the share that holds data must be above 0 and at most 100 %; a drive that holds none is `--state fresh`",
    );
    /// No drive can be so worn.
    pub const NO_PERCENTAGE: Refusal = Refusal::Invalid("Percentage Used must be from 0 to 1000");
}

/// What is left of a capacity in bytes, in whole units, when this share is kept back; at least a unit.
///
/// # Errors
/// If the share is not in 0 to 0.9.
pub(crate) fn provisioned(bytes: u64, share: f64, unit: u64) -> Result<u64, Refusal> {
    if !(0.0..=0.9).contains(&share) {
        return Err(Refusal::NO_OVERPROVISION);
    }
    let left = libm::floor(bytes as f64 * (1.0 - share)) as u64;
    Ok((left / unit).max(1) * unit)
}

/// A share that holds data.
///
/// # Errors
/// If it is not above 0 and at most 1.
pub(crate) fn filled(share: f64) -> Result<f64, Refusal> {
    let valid = share > 0.0 && share <= 1.0;
    valid.then_some(share).ok_or(Refusal::NOT_FILLED)
}

/// A Percentage Used that can be.
///
/// # Errors
/// If it is not in 0 to 1000.
pub(crate) fn percentage(percent: f64) -> Result<f64, Refusal> {
    let valid = (0.0..=1000.0).contains(&percent);
    valid.then_some(percent).ok_or(Refusal::NO_PERCENTAGE)
}
