//! Content of a medium: the bytes that survive a power cut.

use super::drive_fault::LastingErrors;

/// The medium cannot return these bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable;

/// The bytes could not be written to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwritable;

/// Content of one medium. Addresses and lengths are within its capacity and multiples of 512.
pub trait Contents {
    /// Reads; sectors that were never written are zeroes.
    ///
    /// # Errors
    /// If a sector of the range cannot be read; the content of `into` is then undefined.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes. A sector that was unreadable becomes readable.
    ///
    /// # Errors
    /// If the data cannot be stored.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// Writes zeroes to the range.
    ///
    /// # Errors
    /// If they cannot be stored.
    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable>;

    /// Makes all written data durable against a power cut of the machine that stores it.
    ///
    /// # Errors
    /// If that fails.
    fn sync(&mut self) -> Result<(), Unwritable>;

    /// Makes the sectors of the range unreadable until they are written.
    fn spoil(&mut self, at: u64, bytes: u64);

    /// From now on accesses fail. Only media in memory can do this; others ignore it.
    fn fail(&mut self, _errors: LastingErrors) {}
}
