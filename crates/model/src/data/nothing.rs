//! A medium without bytes: for drives in a run, to which something may happen and whose data nobody reads.
//!
//! Left out: sectors that cannot be read, for there are none.

use super::contents::{Contents, Unreadable, Unwritable};

/// Takes everything and gives zeroes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Contents for Nothing {
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
