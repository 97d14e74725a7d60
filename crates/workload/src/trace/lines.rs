//! What the formats of one request a line share: the loop over the lines, the header, and the volume's name.

use std::ops::ControlFlow;

use super::fields::Fields;
use super::input::Input;
use super::requests::{Found, Requests};
use super::{Fault, is_header};

/// How such a format is written.
pub(super) struct Lines {
    /// Takes a line of this number apart.
    pub split: for<'a> fn(usize, &'a [u8]) -> Fields<'a>,
    /// A first line that is passed over.
    pub header: Option<&'static str>,
    /// The request in a line, and its volume's name in the empty vector.
    pub request: fn(&Fields, &mut Vec<u8>) -> Result<Found, Fault>,
}

impl Lines {
    /// Reads all lines, or as many as are wanted; blank ones are passed over.
    pub(super) fn read(&self, input: &mut Input, requests: &mut Requests) -> Result<(), Fault> {
        each_line(input, requests, self.split, |fields, volume, _| {
            let header = self.header.filter(|_| fields.line() == 1);
            if header.is_some_and(|header| is_header(fields.line_text(), header)) {
                return Ok(None);
            }
            (self.request)(fields, volume).map(Some)
        })
    }
}

/// Gives every line that is not blank to `request`, in columns, and takes the request that it finds there, whose volume's
/// name it puts into the empty vector; ends when enough have been read.
pub(super) fn each_line(
    input: &mut Input,
    requests: &mut Requests,
    split: impl for<'a> Fn(usize, &'a [u8]) -> Fields<'a>,
    mut request: impl FnMut(&Fields, &mut Vec<u8>, &mut Requests) -> Result<Option<Found>, Fault>,
) -> Result<(), Fault> {
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
