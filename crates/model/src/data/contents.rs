//! What is on a medium: the bytes that survive a power cut.

/// The medium cannot give these bytes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable;

/// The bytes could not be put on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwritable;

/// The bytes of one medium. Addresses and lengths are within it and multiples of 512.
pub trait Contents {
    /// Reads; what was never written is zeroes.
    ///
    /// # Errors
    /// If a sector of the range cannot be read; `into` then holds nothing of use.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes. A sector that was unreadable can be read again.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// Writes zeroes over the range.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable>;

    /// All that was written is safe from a power cut of the machine that keeps it.
    ///
    /// # Errors
    /// If it is not.
    fn sync(&mut self) -> Result<(), Unwritable>;

    /// The sectors of the range become unreadable until they are written.
    fn spoil(&mut self, at: u64, bytes: u64);
}
