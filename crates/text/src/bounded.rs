//! Reads whole files up to a maximum size: `/dev/zero` and other files without an end must not fill the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum bytes of a file written by hand (a drive, a job, a script): 16 MiB.
pub const WRITTEN: u64 = 16 << 20;
/// Maximum bytes of results that a program wrote (fio's JSON, logs): 1 GiB.
pub const RESULTS: u64 = 1 << 30;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, or is larger.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    from(File::open(path)?, most)
}

/// Reads a stream of at most `most` bytes to its end.
///
/// # Errors
/// The stream cannot be read, or is longer.
pub fn from(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!(
            "larger than {} MiB, the limit for such a file",
            most >> 20
        ))),
        false => Ok(bytes),
    }
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is larger, or is not UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = from(io::repeat(0), 5 << 20).expect_err("no end");
        assert!(error.to_string().contains("larger than 5 MiB"), "{error}");
        assert_eq!(from(&b"abc"[..], 3).expect("it fits"), b"abc");
        assert!(from(&b"abcd"[..], 3).is_err());
    }
}
