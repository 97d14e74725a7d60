//! Drive management: what a host's administrator asks of a drive beside reading and writing.
//!
//! FORMAT with its duration, LBA formats, the power governor, wear (and the write protection at its end), power-on,
//! sanitize, and health as SMART would tell it. A [`Medium`] takes settings before a run, its drive while it
//! runs, and a [`ManagedDrive`] adds what a served drive needs besides: a lifetime that goes on after a
//! restart, a temperature, an operation in progress.
//!
//! It stands beside the path of an I/O: a drive in a simulation does not carry it. Left out: several namespaces, firmware
//! download, self-tests. Sources: S4 (formats, FORMAT, governor, wear, refresh, retention), S2 (list of formats, time of
//! a FORMAT), the NVMe base specification for what health consists of.
//!
//! [`Medium`]: crate::media::Medium

mod drive;
pub mod health;
pub mod refusal;
pub mod thermal;

pub use drive::{ManagedDrive, Operation, OperationKind, SanitizeStatus};
pub use health::{CriticalWarning, Health, Lifetime};
pub use refusal::Refusal;
pub use thermal::Thermal;

use alloc::vec::Vec;

use crate::time::Span;

/// A logical block format that a drive offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct LbaFormat {
    /// Bytes of data in a block: 512 or 4096.
    pub data: u32,
    /// Bytes of metadata beside them: 0 to 128.
    pub metadata: u16,
    /// How the drive rates it against its other formats.
    pub performance: RelativePerformance,
}

impl LbaFormat {
    /// Blocks of this many bytes without metadata.
    pub const fn plain(data: u32) -> LbaFormat {
        LbaFormat {
            data,
            metadata: 0,
            performance: RelativePerformance::Best,
        }
    }

    /// What something takes that takes so many picoseconds for a byte of data, metadata and all: as much longer as they
    /// are to the data.
    pub fn longer(&self, ps_per_byte: u64) -> u64 {
        let share = f64::from(self.metadata) / f64::from(self.data);
        libm::round(ps_per_byte as f64 * (1.0 + share)) as u64
    }

    /// Whether both have the same bytes in a block, whatever their rating.
    pub const fn same_layout(&self, other: &LbaFormat) -> bool {
        self.data == other.data && self.metadata == other.metadata
    }
}

impl core::fmt::Display for LbaFormat {
    /// As administrators write it: `4096`, `512+8`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.metadata {
            0 => write!(f, "{}", self.data),
            metadata => write!(f, "{}+{metadata}", self.data),
        }
    }
}

/// How a drive rates a format (NVMe's field RP, whose value each has).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum RelativePerformance {
    /// None is faster.
    #[default]
    Best = 0,
    /// Between best and good.
    Better = 1,
    /// Slower than the best.
    Good = 2,
    /// Not to be preferred.
    Degraded = 3,
}

impl RelativePerformance {
    /// All, the best first.
    pub const ALL: [RelativePerformance; 4] = [
        RelativePerformance::Best,
        RelativePerformance::Better,
        RelativePerformance::Good,
        RelativePerformance::Degraded,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            RelativePerformance::Best => "best",
            RelativePerformance::Better => "better",
            RelativePerformance::Good => "good",
            RelativePerformance::Degraded => "degraded",
        }
    }
}

/// What an administrator may ask of a drive, beyond what its medium says; made by the catalogue.
#[derive(Clone, PartialEq, Debug)]
pub struct Management {
    /// The formats it offers, in the order of their numbers; the first is in use when it leaves the factory.
    pub lba_formats: Vec<LbaFormat>,
    /// What its power governor can be set to in watts, the default first; empty if nothing is published.
    pub power_limits_watts: Vec<f64>,
    /// How warm it becomes.
    pub thermal: Thermal,
    /// How long it keeps data without power when its rated endurance is used up, if published.
    pub retention: Option<Span>,
}

impl Management {
    /// The number of the format with these bytes in a block.
    pub fn format_number(&self, data: u32, metadata: u16) -> Option<usize> {
        let found = |format: &LbaFormat| format.data == data && format.metadata == metadata;
        self.lba_formats.iter().position(found)
    }
}
