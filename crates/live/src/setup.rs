//! What a user asks for: which drive, how large, where its data shall be. `Setup::open` makes a served drive of it.

use std::path::PathBuf;

use catalogue::DriveSheet;
use model::media::Precondition;

/// Where the data of a drive shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreChoice {
    /// In memory.
    Memory,
    /// In this file, with the state beside it.
    File(PathBuf),
}

/// A drive as it was asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// From the catalogue.
    pub sheet: DriveSheet,
    /// Name under which it is exported.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// Bytes of the namespace; if not said, as many as an existing store has, or the whole drive.
    pub size: Option<u64>,
    /// Where the data shall be.
    pub store: StoreChoice,
    /// Number of the LBA format that a new store is in, and an existing one must be in; if not said, the first, or
    /// that which it is in.
    pub lba_format: Option<usize>,
    /// How many of the drive's formats are not its own: the last ones.
    pub added_formats: usize,
    /// State of the drive at the start; if not said, what an existing store remembers, or the steady state.
    pub precondition: Option<Precondition>,
    /// Feeds its random streams.
    pub seed: u64,
    /// Whether a pool goes on without a log that is not there: what only that had is lost then.
    pub accept_loss: bool,
}

impl Setup {
    /// All of this drive, in memory, in its steady state unless that is changed.
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
        }
    }
}
