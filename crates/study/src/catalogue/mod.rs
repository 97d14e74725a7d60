//! Drives and hosts as written: one TOML each under `catalogue/`, every figure with its source and kind.

use model::host::HostConfig;
use model::media::DriveConfig;

use crate::problem::Problems;

/// What kind of figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the maker's specification.
    Spec,
    /// Measured by somebody on a real drive.
    Measured,
    /// Set so that the model reproduces the source.
    Fitted,
    /// Nobody has published it; chosen for a stated reason.
    Assumed,
}

/// One figure of a drive or host, as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Dotted key, such as `medium.read`.
    pub key: String,
    /// The value as written, such as `6.9 us`.
    pub value: String,
    /// Its kind.
    pub kind: Kind,
    /// Row ids of `figures.csv`, or the reason for an assumption.
    pub source: String,
}

/// A drive of the catalogue, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct DriveSheet {
    /// Short name: the file's stem, such as `p4800x-375`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// What the model is built from.
    pub config: DriveConfig,
    /// I/O queues the drive offers.
    pub io_queues: u16,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in dollars with its date and source, if published.
    pub price_usd: Option<f64>,
    /// Every figure of the file, in its order.
    pub figures: Vec<Figure>,
}

/// A host of the catalogue, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSheet {
    /// Short name: the file's stem.
    pub id: String,
    /// Full name.
    pub name: String,
    /// What the model is built from (with `io_queues` still to be set from the drive).
    pub config: HostConfig,
    /// Every figure of the file, in its order.
    pub figures: Vec<Figure>,
}

/// The drive of this name, or in the file at this path.
///
/// # Errors
/// Everything wrong with the file, or that there is no such drive and what the nearest name is.
pub fn drive(name_or_path: &str) -> Result<DriveSheet, Problems> {
    Err(Problems::whole(name_or_path, "no such drive"))
}

/// The host of this name, or in the file at this path.
///
/// # Errors
/// Everything wrong with the file, or that there is no such host and what the nearest name is.
pub fn host(name_or_path: &str) -> Result<HostSheet, Problems> {
    Err(Problems::whole(name_or_path, "no such host"))
}

/// All drives of the built-in catalogue, by id.
pub fn drives() -> Vec<DriveSheet> {
    Vec::new()
}
