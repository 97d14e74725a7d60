//! Drives of the catalogue as tables for a terminal.

use crate::catalogue::DriveSheet;

/// The drives as a table, one a line.
pub fn table(drives: &[DriveSheet]) -> String {
    let _ = drives;
    String::new()
}

/// One drive with every figure, its kind and its source.
pub fn sheet(drive: &DriveSheet) -> String {
    drive.name.clone()
}
