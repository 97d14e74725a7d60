//! Input bytes of a trace: decompressed while they are read, as lines or records, within limits.
//!
//! The input is plain, gzip or xz, which its first bytes show. Nothing is read into memory as a whole: a line may
//! have at most [`LONGEST_LINE`] bytes and xz at most [`XZ_MEMORY`] bytes of dictionary, so a hostile file cannot use
//! more.

#[cfg(feature = "compression")]
use std::io::BufReader;
use std::io::{self, Read};

use super::TraceError;
use text::problem::Place;

/// Maximum bytes of one line; the longest lines of the known formats have about 300.
pub(super) const LONGEST_LINE: usize = 64 << 10;
/// Maximum memory of the xz decoder; its highest preset needs 65 MiB.
#[cfg(feature = "compression")]
const XZ_MEMORY: u64 = 256 << 20;
/// Bytes at the start of the file that are used for detecting the format.
const HEAD: usize = 64 << 10;

/// Including the method, deflate: two bytes alone could be a vSCSI serial number.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// Byte order mark of UTF-8, which some programs write at the start of a CSV.
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Containers that are not supported, by their first bytes, with advice.
const NOT_READ: &[(&[u8], &str)] = &[
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (b"7z\xbc\xaf\x27\x1c", "7-zip"),
];

/// Checks whether these are lines of text and not records, in which three bytes may be a byte order mark by chance.
fn is_text(head: &[u8]) -> bool {
    head.iter()
        .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..))
}

/// A trace that is being read.
pub(super) struct Input<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// Start of the unread part of `buffer`.
    from: usize,
    to: usize,
    ended: bool,
    /// Number of lines returned so far.
    line: usize,
    /// Number of bytes returned so far.
    offset: u64,
}

#[cfg(feature = "compression")]
fn gunzipped(raw: Input<'_>) -> Result<Input<'_>, TraceError> {
    let decoder = flate2::bufread::MultiGzDecoder::new(BufReader::new(raw));
    Ok(Input::plain(Box::new(decoder)))
}

#[cfg(feature = "compression")]
fn unxzed(raw: Input<'_>) -> Result<Input<'_>, TraceError> {
    let flags = liblzma::stream::CONCATENATED;
    let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags)
        .map_err(|error| TraceError::whole(format!("the xz decoder cannot start: {error}")))?;
    let decoder = liblzma::bufread::XzDecoder::new_stream(BufReader::new(raw), stream);
    Ok(Input::plain(Box::new(decoder)))
}

#[cfg(not(feature = "compression"))]
fn gunzipped(_: Input<'_>) -> Result<Input<'_>, TraceError> {
    Err(
        TraceError::whole("is compressed, and this input cannot be decompressed")
            .help("decompress it first"),
    )
}

#[cfg(not(feature = "compression"))]
use gunzipped as unxzed;

impl<'a> Input<'a> {
    /// Opens a source; decompresses it if its first bytes show a compressed format.
    pub(super) fn open(source: impl Read + 'a) -> Result<Input<'a>, TraceError> {
        let mut raw = Input::plain(Box::new(source));
        raw.fill(HEAD)?;
        let head = raw.head();
        for (magic, name) in NOT_READ {
            if head.starts_with(magic) {
                return Err(TraceError::whole(format!(
                    "is compressed with {name}, which is not supported"
                ))
                .help("decompress it first; gzip and xz are read as they are"));
            }
        }
        let (gzip, xz) = (head.starts_with(GZIP), head.starts_with(XZ));
        let mut input = if gzip {
            gunzipped(raw)?
        } else if xz {
            unxzed(raw)?
        } else {
            raw
        };
        input.fill(HEAD)?;
        if input.head().starts_with(MARK) && is_text(&input.head()[MARK.len()..]) {
            input.from += MARK.len();
        }
        if input.head().get(257..262) == Some(b"ustar") {
            return Err(TraceError::whole("is a tar archive, not a trace")
                .help("unpack it first (tar -xf)"));
        }
        Ok(input)
    }

    fn plain(source: Box<dyn Read + 'a>) -> Input<'a> {
        Input {
            source,
            buffer: vec![0; 4 * HEAD],
            from: 0,
            to: 0,
            ended: false,
            line: 0,
            offset: 0,
        }
    }

    /// Returns the bytes that have been read but not yet returned: at the start up to 64 KiB, or the whole content.
    pub(super) fn head(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Checks whether [`Input::head`] is the whole remaining content.
    pub(super) fn head_is_all(&self) -> bool {
        self.ended
    }

    /// Reads until `want` bytes (at most the size of the buffer) are available or the source has ended.
    fn fill(&mut self, want: usize) -> Result<(), TraceError> {
        if self.to - self.from >= want || self.ended {
            return Ok(());
        }
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        while self.to < want && !self.ended {
            match self.source.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.to += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
        Ok(())
    }

    /// Returns the problem for a failure of the source: of the disk, or of the compressed data.
    fn broken(&self, error: &io::Error) -> TraceError {
        let after = self.offset + (self.to - self.from) as u64;
        let what = if error.kind() == io::ErrorKind::UnexpectedEof {
            format!(
                "the compressed data ends too early, after {after} bytes of content: the file is truncated"
            )
        } else {
            format!("cannot be read further after {after} bytes of content: {error}")
        };
        TraceError::whole(what)
    }

    /// Returns the next line without its line end, or `None` at the end. Lines end with LF or CRLF; the last line may
    /// have no line end.
    pub(super) fn line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = 0;
        let (length, end) = loop {
            let at_hand = &self.buffer[self.from + searched..self.to];
            if let Some(at) = at_hand.iter().position(|&byte| byte == b'\n') {
                break (searched + at, 1);
            }
            searched = self.to - self.from;
            if searched > LONGEST_LINE {
                break (searched, 0);
            }
            if self.ended {
                break (searched, 0);
            }
            self.fill(searched + 1)?;
        };
        if length == 0 && end == 0 {
            return Ok(None);
        }
        self.line += 1;
        if length > LONGEST_LINE {
            let what =
                format!("the line is longer than {LONGEST_LINE} bytes: this is not a text trace");
            return Err(self.at_line(what));
        }
        let start = self.from;
        self.from += length + end;
        self.offset += (length + end) as u64;
        let line = &self.buffer[start..start + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Returns the number of the last returned line, from 1.
    pub(super) fn line_number(&self) -> usize {
        self.line
    }

    /// Returns the number of content bytes returned so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next `N` bytes, or `None` at the end; an error if the content ends within them.
    pub(super) fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, TraceError> {
        self.fill(N)?;
        let at_hand = self.to - self.from;
        if at_hand == 0 {
            return Ok(None);
        }
        let Some(bytes) = self.head().first_chunk::<N>() else {
            let what = format!("the last record is cut off: {at_hand} of {N} bytes");
            return Err(TraceError::new(Place::Byte(self.offset), what));
        };
        let bytes = *bytes;
        self.from += N;
        self.offset += N as u64;
        Ok(Some(bytes))
    }

    /// Skips `count` bytes; an error if there are fewer.
    pub(super) fn skip(&mut self, count: usize) -> Result<(), TraceError> {
        let start = self.offset;
        let mut left = count;
        while left > 0 {
            self.fill(1)?;
            let step = left.min(self.to - self.from);
            if step == 0 {
                let what = format!(
                    "{count} bytes of payload are announced here, but {left} of them are missing"
                );
                return Err(TraceError::new(Place::Byte(start), what));
            }
            self.from += step;
            self.offset += step as u64;
            left -= step;
        }
        Ok(())
    }

    /// Returns a problem with the last returned line.
    pub(super) fn at_line(&self, what: impl Into<String>) -> TraceError {
        TraceError::new(Place::Line(self.line), what)
    }
}

/// Returns the bytes read ahead for the detection, then the rest: the input of the decoder.
impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.from == self.to {
            return if self.ended {
                Ok(0)
            } else {
                self.source.read(into)
            };
        }
        let count = into.len().min(self.to - self.from);
        into[..count].copy_from_slice(&self.buffer[self.from..self.from + count]);
        self.from += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Result<Vec<String>, TraceError> {
        let mut input = Input::open(text)?;
        let mut lines = Vec::new();
        while let Some(line) = input.line()? {
            lines.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(lines)
    }

    #[test]
    fn lines_end_with_lf_crlf_or_the_file() {
        assert_eq!(lines(b"a\r\nb\n\nc").unwrap(), ["a", "b", "", "c"]);
        assert_eq!(lines(b"").unwrap(), [""; 0]);
        assert_eq!(lines(b"\n").unwrap(), [""]);
    }

    #[test]
    fn a_mark_of_utf_8_is_passed_over_before_text_only() {
        assert_eq!(lines(b"\xef\xbb\xbf1,a\r\n2,b").unwrap(), ["1,a", "2,b"]);
        let records = b"\xef\xbb\xbf\x00\x01\x02";
        assert_eq!(Input::open(&records[..]).unwrap().head(), records);
    }

    #[test]
    fn lines_across_the_buffer_are_whole() {
        let long = "x".repeat(50_000);
        let text = [long.as_str(); 20].join("\n");
        assert_eq!(lines(text.as_bytes()).unwrap(), [long.as_str(); 20]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let fault = lines(&vec![b'1'; 1 << 20]).unwrap_err();
        assert_eq!(fault.place, Place::Line(1));
        assert!(
            fault.what.contains("longer than 65536 bytes"),
            "{}",
            fault.what
        );
    }

    #[test]
    fn a_cut_record_says_where() {
        let mut input = Input::open(&[7u8; 10][..]).unwrap();
        assert_eq!(input.record::<8>().unwrap(), Some([7; 8]));
        let fault = input.record::<8>().unwrap_err();
        assert_eq!(fault.place, Place::Byte(8));
    }
}
