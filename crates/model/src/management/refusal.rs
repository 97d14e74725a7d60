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
    /// No drive can be so worn.
    pub const NO_PERCENTAGE: Refusal = Refusal::Invalid("Percentage Used must be from 0 to 1000");
}

/// A Percentage Used that can be.
///
/// # Errors
/// If it is not in 0 to 1000.
pub(crate) fn percentage(percent: f64) -> Result<f64, Refusal> {
    let valid = (0.0..=1000.0).contains(&percent);
    valid.then_some(percent).ok_or(Refusal::NO_PERCENTAGE)
}
