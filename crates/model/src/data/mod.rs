//! Payload data (optional): buffers for the data of commands in flight ([`Buffers`]), and the content of a medium
//! ([`Contents`]).
//!
//! The model computes times without data. A simulation has none: its buffers are `()`, and all operations on them are
//! compiled away. A served pool and the crash checker have real buffers ([`Bytes`]), and put each drive into a
//! [`DataBackedDrive`], which transfers data when the drive reports that it has been transferred. Not modelled: protection
//! information, which only the live server has.
//!
//! The buffer with number 0 has no data ([`Payload`]'s default): it discards writes and reads as zeroes, so that a
//! command without data needs no special case.

mod bytes;
mod contents;
mod delay;
mod drive_fault;
pub mod field;
mod image;
mod inject;
mod kept;
mod nothing;
#[cfg(test)]
mod tests;
mod unflushed;

pub use bytes::Bytes;
pub use contents::{Contents, Unreadable, Unwritable};
pub use drive_fault::{DriveFault, LastingErrors, READY};
pub use image::Image;
pub use inject::{
    CommandKind, Draws, Effect, Injector, Lasting, Moment, OnHit, Rule, Trigger, Verdict,
};
pub use kept::DataBackedDrive;
pub use nothing::NullContents;
pub use unflushed::{UndecidedWrite, UnflushedWrites};

use core::num::Wrapping;

use crate::command::Payload;

/// Returns the CRC-32C (Castagnoli) of `bytes`, as used by NVMe, iSCSI and ext4.
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(bytes)
}

#[cfg(feature = "hardware-crc")]
use ::crc32c::crc32c as checksum;
#[cfg(not(feature = "hardware-crc"))]
use table::checksum;

/// CRC-32C with a table, without the standard library.
#[cfg(any(test, not(feature = "hardware-crc")))]
mod table {
    use crc::{CRC_32_ISCSI, Crc, Table};

    static CASTAGNOLI: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

    pub(super) fn checksum(bytes: &[u8]) -> u32 {
        CASTAGNOLI.checksum(bytes)
    }
}

/// Returns a checksum of `bytes`, whose length must be a multiple of four. It is Fletcher's checksum with four terms
/// over words of 32 bits, as in ZFS (`fletcher_4`, from memory), reduced to 32 bits by a CRC-32C.
///
/// A CRC alone is linear. Data that ends in its own CRC of the same kind, as metadata of file systems does, always has
/// the same CRC. Half of an old block together with half of a new one would then have the same checksum as either.
pub fn sum(bytes: &[u8]) -> u32 {
    let mut terms = [0_u64; 4];
    for piece in bytes.chunks(4 * ZEROES as usize) {
        // Most of a record that is written for the first time is zeroes.
        let zeroes = piece.len() == 4 * ZEROES as usize && is_zero(piece);
        match zeroes {
            true => add_zeroes(&mut terms),
            false => add_words(&mut terms, piece),
        }
    }
    let mut block = [0; 32];
    for (into, term) in block.chunks_exact_mut(8).zip(terms) {
        into.copy_from_slice(&term.to_le_bytes());
    }
    crc32c(&block)
}

/// Words of a piece that is checked as a whole for zeroes.
const ZEROES: u64 = 64;

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    // In pieces, so that the first other byte ends the loop and the compiler can vectorise the check of a piece.
    let mut pieces = bytes.chunks(256);
    pieces.all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Updates the terms with these words.
fn add_words(terms: &mut [u64; 4], words: &[u8]) {
    for word in words.chunks_exact(4) {
        let mut four = [0; 4];
        four.copy_from_slice(word);
        terms[0] = terms[0].wrapping_add(u32::from_le_bytes(four).into());
        terms[1] = terms[1].wrapping_add(terms[0]);
        terms[2] = terms[2].wrapping_add(terms[1]);
        terms[3] = terms[3].wrapping_add(terms[2]);
    }
}

/// Updates the terms with [`ZEROES`] words that are zero: each has grown by the lower terms, multiplied by binomial
/// coefficients.
fn add_zeroes(terms: &mut [u64; 4]) {
    const ONE: Wrapping<u64> = Wrapping(ZEROES);
    const TWO: Wrapping<u64> = Wrapping(ONE.0 * (ZEROES + 1) / 2);
    const THREE: Wrapping<u64> = Wrapping(TWO.0 * (ZEROES + 2) / 3);
    let [a, b, c, d] = terms.map(Wrapping);
    let after = [
        a,
        b + ONE * a,
        c + ONE * b + TWO * a,
        d + ONE * c + TWO * b + THREE * a,
    ];
    *terms = after.map(|term| term.0);
}

/// Buffers for data in flight, identified by the small numbers of a [`Payload`].
pub trait Buffers: Clone {
    /// Whether the buffers hold data: otherwise computations that only affect data can be skipped.
    const REAL: bool;

    /// Allocates a buffer of `bytes` bytes; its content is undefined.
    fn take(&mut self, bytes: u32) -> Payload;

    /// Releases a buffer (the whole result of [`Buffers::take`]).
    fn release(&mut self, payload: Payload);

    /// Writes a record into a buffer.
    fn put(&mut self, to: Payload, record: &[u8]);

    /// Reads a record out of a buffer.
    fn get(&self, from: Payload, into: &mut [u8]);

    /// Copies `bytes` bytes; source and destination may be in one buffer and overlap.
    fn copy(&mut self, from: Payload, to: Payload, bytes: u32);

    /// Sets `bytes` bytes to zero.
    fn zero(&mut self, at: Payload, bytes: u32);

    /// Adds `bytes` bytes, each multiplied by a factor, to bytes in a different buffer: see [`field`].
    fn fold(&mut self, from: Payload, to: Payload, factor: u8, bytes: u32);

    /// Returns the [`sum`] of `bytes` bytes.
    fn sum(&self, at: Payload, bytes: u32) -> u32;
}

/// Buffers without data, for virtual time, where data is not accessed.
impl Buffers for () {
    const REAL: bool = false;

    #[inline]
    fn take(&mut self, _bytes: u32) -> Payload {
        Payload::default()
    }
    #[inline]
    fn release(&mut self, _payload: Payload) {}
    #[inline]
    fn put(&mut self, _to: Payload, _record: &[u8]) {}
    #[inline]
    fn get(&self, _from: Payload, _into: &mut [u8]) {}
    #[inline]
    fn copy(&mut self, _from: Payload, _to: Payload, _bytes: u32) {}
    #[inline]
    fn zero(&mut self, _at: Payload, _bytes: u32) {}
    #[inline]
    fn fold(&mut self, _from: Payload, _to: Payload, _factor: u8, _bytes: u32) {}
    #[inline]
    fn sum(&self, _at: Payload, _bytes: u32) -> u32 {
        0
    }
}
