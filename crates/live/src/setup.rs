//! The user's configuration of a served drive: which drive, its size, and the place of its data. `Setup::open` opens
//! the drive.

use std::path::PathBuf;

use catalogue::DriveSheet;
use model::host::PowerTransition;
use model::media::Precondition;

/// Place of a drive's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreChoice {
    /// In memory, lost when the server ends.
    Memory,
    /// In this file, with the state in a file next to it.
    File(PathBuf),
}

/// Configuration of a served drive.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Sheet of the drive in the catalogue.
    pub sheet: DriveSheet,
    /// Name under which it is exported.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// Bytes of the namespace; if `None`, the size of an existing store, or the whole drive.
    pub size: Option<u64>,
    /// Place of the data.
    pub store: StoreChoice,
    /// Number of the LBA format of a new store, which an existing store must also have; if `None`, the first format,
    /// or that of the existing store.
    pub lba_format: Option<usize>,
    /// Number of formats that are not the drive's own; these are the last ones.
    pub added_formats: usize,
    /// Initial state of the drive; if `None`, the saved state of an existing store, or the steady state.
    pub precondition: Option<Precondition>,
    /// Seed of its random streams.
    pub seed: u64,
    /// Whether a pool may be opened without a missing log; data that only the log has is then lost.
    pub accept_loss: bool,
    /// Power state transitions of an idle drive; empty if the host lets it enter no power states. Pools have none.
    pub power_transitions: Vec<PowerTransition>,
}

impl Setup {
    /// Returns the setup of a whole drive, in memory, in steady state.
    pub fn new(sheet: DriveSheet) -> Setup {
        Setup {
            name: sheet.id.clone(),
            serial: sheet.nvme.serial(1),
            sheet,
            size: None,
            store: StoreChoice::Memory,
            lba_format: None,
            added_formats: 0,
            precondition: None,
            seed: 1,
            accept_loss: false,
            power_transitions: Vec::new(),
        }
    }
}
