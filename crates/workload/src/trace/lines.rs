//! Common parts of the formats with one request per line: the loop over the lines, the header, and the volume's name.

use std::ops::ControlFlow;

use super::fields::Fields;
use super::input::Input;
use super::requests::{RawRequest, Requests};
use super::{TraceError, is_header};

/// A format with one request per line.
pub(super) struct Lines {
    /// Splits a line; the number is its line number.
    pub split: for<'a> fn(usize, &'a [u8]) -> Fields<'a>,
    /// First line that is skipped, if present.
    pub header: Option<&'static str>,
    /// Parses the request in a line; writes its volume's name into the empty vector.
    pub request: fn(&Fields, &mut Vec<u8>) -> Result<RawRequest, TraceError>,
}

impl Lines {
    /// Reads all lines, or as many as needed; skips blank lines.
    pub(super) fn read(
        &self,
        input: &mut Input,
        requests: &mut Requests,
    ) -> Result<(), TraceError> {
        each_line(input, requests, self.split, |fields, volume, _| {
            let header = self.header.filter(|_| fields.line() == 1);
            if header.is_some_and(|header| is_header(fields.line_text(), header)) {
                return Ok(None);
            }
            (self.request)(fields, volume).map(Some)
        })
    }
}

/// Passes every line that is not blank to `request`, in columns, and stores the request that it returns. `request`
/// writes the volume's name into the empty vector. Ends when enough requests have been read.
pub(super) fn each_line(
    input: &mut Input,
    requests: &mut Requests,
    split: impl for<'a> Fn(usize, &'a [u8]) -> Fields<'a>,
    mut request: impl FnMut(
        &Fields,
        &mut Vec<u8>,
        &mut Requests,
    ) -> Result<Option<RawRequest>, TraceError>,
) -> Result<(), TraceError> {
    let mut volume = Vec::new();
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else {
            return Ok(());
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fields = split(number, line);
        volume.clear();
        let Some(found) = request(&fields, &mut volume, requests)? else {
            continue;
        };
        let name = || String::from_utf8_lossy(&volume).into_owned();
        let volume = requests.volume(&volume, &fields.place(), name)?;
        if let ControlFlow::Break(()) = requests.push(volume, &found, || fields.place())? {
            return Ok(());
        }
    }
}
