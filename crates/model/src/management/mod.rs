//! Drive management: administrative operations of a drive, other than reading and writing.
//!
//! Modelled: FORMAT with its duration, LBA formats, the power governor, wear (and the write protection at its end),
//! power-on, sanitize, and health as in SMART. A [`Medium`] accepts settings before a run, and its drive accepts them
//! during the run. A [`ManagedDrive`] adds what a served drive needs: a lifetime that continues after a restart, a
//! temperature, an operation in progress.
//!
//! Management is not in the path of an I/O: a simulated drive does not contain it. Not modelled: several namespaces,
//! firmware download, self-tests. Sources: S4 (formats, FORMAT, governor, wear, refresh, retention), S2 (list of
//! formats, time of a FORMAT), the NVMe base specification for the content of health.
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
    /// Bytes of metadata per block: 0 to 128.
    pub metadata: u16,
    /// Relative performance of this format, as reported by the drive.
    pub performance: RelativePerformance,
}

impl LbaFormat {
    /// Returns a format with blocks of `data` bytes without metadata.
    pub const fn plain(data: u32) -> LbaFormat {
        LbaFormat {
            data,
            metadata: 0,
            performance: RelativePerformance::Best,
        }
    }

    /// Returns the picoseconds per byte of data, metadata included: `ps_per_byte` multiplied by the ratio of data plus
    /// metadata to data.
    pub fn longer(&self, ps_per_byte: u64) -> u64 {
        let share = f64::from(self.metadata) / f64::from(self.data);
        libm::round(ps_per_byte as f64 * (1.0 + share)) as u64
    }

    /// Whether both formats have the same bytes per block, whatever their rating.
    pub const fn same_layout(&self, other: &LbaFormat) -> bool {
        self.data == other.data && self.metadata == other.metadata
    }
}

impl core::fmt::Display for LbaFormat {
    /// Writes the format as administrators do: `4096`, `512+8`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.metadata {
            0 => write!(f, "{}", self.data),
            metadata => write!(f, "{}+{metadata}", self.data),
        }
    }
}

/// Relative performance of a format (the values of NVMe's field RP).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum RelativePerformance {
    /// No format is faster.
    #[default]
    Best = 0,
    /// Between best and good.
    Better = 1,
    /// Slower than the best.
    Good = 2,
    /// Not recommended.
    Degraded = 3,
}

impl RelativePerformance {
    /// All ratings, the best first.
    pub const ALL: [RelativePerformance; 4] = [
        RelativePerformance::Best,
        RelativePerformance::Better,
        RelativePerformance::Good,
        RelativePerformance::Degraded,
    ];

    /// Returns the rating as a word.
    pub const fn name(self) -> &'static str {
        match self {
            RelativePerformance::Best => "best",
            RelativePerformance::Better => "better",
            RelativePerformance::Good => "good",
            RelativePerformance::Degraded => "degraded",
        }
    }
}

/// Management features that a drive offers in addition to those of its medium; created by the catalogue.
#[derive(Clone, PartialEq, Debug)]
pub struct Management {
    /// LBA formats in the order of their numbers; the first is in use on a new drive.
    pub lba_formats: Vec<LbaFormat>,
    /// Settings of the power governor in watts, the default first; empty if not published.
    pub power_limits_watts: Vec<f64>,
    /// Thermal model.
    pub thermal: Thermal,
    /// Time for which the drive keeps data without power at the end of its rated endurance, if published.
    pub retention: Option<Span>,
}

impl Management {
    /// Returns the number of the format with these bytes per block.
    pub fn format_number(&self, data: u32, metadata: u16) -> Option<usize> {
        let found = |format: &LbaFormat| format.data == data && format.metadata == metadata;
        self.lba_formats.iter().position(found)
    }
}
