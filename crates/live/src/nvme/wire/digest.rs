//! Digests of headers and data: CRC32C, least significant byte first on the wire.
//!
//! Source: NVM Express TCP Transport Specification 1.0, chapter 3.3.1 (as in RFC 3720, appendix B.4).

/// A digest that is being computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crc(u32);

impl Crc {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// Returns the digest as sent on the wire.
    pub const fn bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Returns the digest of these bytes.
    pub fn digest(bytes: &[u8]) -> [u8; 4] {
        let mut crc = Crc::default();
        crc.add(bytes);
        crc.bytes()
    }
}
