//! A medium without data: for drives in a simulation that can have faults, but whose data is never read.
//!
//! Not modelled: unreadable sectors, because there are no sectors.

use super::contents::{Contents, Unreadable, Unwritable};

/// Discards writes and reads as zeroes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullContents;

impl Contents for NullContents {
    fn read(&self, _at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        into.fill(0);
        Ok(())
    }

    fn write(&mut self, _at: u64, _data: &[u8]) -> Result<(), Unwritable> {
        Ok(())
    }

    fn zero(&mut self, _at: u64, _bytes: u64) -> Result<(), Unwritable> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn spoil(&mut self, _at: u64, _bytes: u64) {}
}
