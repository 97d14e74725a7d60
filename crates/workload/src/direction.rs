//! Direction of an I/O.

use serde::{Deserialize, Serialize};

/// Direction of data, as in fio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// Data from the drive.
    Read = 0,
    /// Data to the drive.
    Write = 1,
    /// Trims (deallocation).
    Trim = 2,
}
