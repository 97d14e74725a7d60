//! Options of zones as a job states them.

use crate::strided::StridedZones;

/// Values of `zonemode`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum ZoneMode {
    #[default]
    None,
    Strided,
    /// Zones of a zoned drive, emulated.
    Zbd,
}

/// Options of zones, before they are combined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZoneOptions {
    pub mode: ZoneMode,
    /// `zonesize`, `zonerange` and `zoneskip`.
    pub strided: StridedZones,
    pub capacity: u64,
    pub max_open: u32,
    pub job_max_open: u32,
    pub read_beyond_wp: bool,
    pub reset_threshold: f64,
    pub reset_frequency: f64,
    /// `size`, `io_size`, `offset` and `offset_increment` in zones.
    pub in_zones: [Option<u64>; 4],
}
