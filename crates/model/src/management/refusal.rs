//! Reasons why a drive rejects a management operation.

use core::fmt;

/// Reason why a drive rejects an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The drive does not support the feature; the text says what is supported.
    Unsupported(&'static str),
    /// The value is invalid; the text says which values are valid.
    Invalid(&'static str),
    /// Commands are outstanding, or another operation is in progress.
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
    /// The drive has no power governor.
    pub const NO_GOVERNOR: Refusal =
        Refusal::Unsupported("this drive's model has no power governor");
    /// The drive does not wear.
    pub const NO_WEAR: Refusal = Refusal::Unsupported("this drive's medium does not wear");
    /// Nothing in the drive depends on when it was switched on.
    pub const NO_REFRESH: Refusal =
        Refusal::Unsupported("this drive's model does nothing special after power-on");
    /// No governor can enforce this limit.
    pub const BELOW_IDLE: Refusal =
        Refusal::Invalid("the power limit must be above the drive's idle power");
    /// The drive has no spare area.
    pub const NO_SPARE: Refusal = Refusal::Unsupported(
        "the over-provisioning of this drive cannot be changed; the job option `size` limits the capacity that is used",
    );
    /// A composition of members cannot change the sizes of its members.
    pub const OF_MEMBERS: Refusal = Refusal::Unsupported(
        "a pool has no spare area of its own: set that of its members before they are combined",
    );
    /// No drive works with this much over-provisioning.
    pub const NO_OVERPROVISION: Refusal =
        Refusal::Invalid("the over-provisioned share of the capacity must be from 0 to 90 %");
    /// The value is not a share of a drive.
    pub const NOT_FILLED: Refusal = Refusal::Invalid(
        "the share that holds data must be above 0 and at most 100 %; for an empty drive, use `--state fresh`",
    );
    /// No drive can have this wear.
    pub const NO_PERCENTAGE: Refusal = Refusal::Invalid("Percentage Used must be from 0 to 1000");
    /// No drive can wear at this multiple of its own wear.
    pub const NO_WEAR_FACTOR: Refusal =
        Refusal::Invalid("the wear factor must be above 0 and at most 1e12");
    /// The medium rejects all changes.
    pub const READ_ONLY: Refusal =
        Refusal::Invalid("the medium is read-only, since its endurance is used up");
}

/// Returns the part of a capacity that remains, in bytes and whole units, if `share` is over-provisioned; at least one
/// unit.
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

/// Checks the share of a drive that holds data.
///
/// # Errors
/// If it is not above 0 and at most 1.
pub(crate) fn filled(share: f64) -> Result<f64, Refusal> {
    let valid = share > 0.0 && share <= 1.0;
    valid.then_some(share).ok_or(Refusal::NOT_FILLED)
}

/// Checks a Percentage Used.
///
/// # Errors
/// If it is not in 0 to 1000.
pub(crate) fn percentage(percent: f64) -> Result<f64, Refusal> {
    let valid = (0.0..=1000.0).contains(&percent);
    valid.then_some(percent).ok_or(Refusal::NO_PERCENTAGE)
}

/// Checks a multiple of a drive's wear.
///
/// # Errors
/// If it is not above 0 and at most 1e12.
pub(crate) fn wear_factor(factor: f64) -> Result<f64, Refusal> {
    let valid = factor > 0.0 && factor <= 1e12;
    valid.then_some(factor).ok_or(Refusal::NO_WEAR_FACTOR)
}
