//! Block traces: readers for common formats, and a compact form of their content.
//!
//! One file per format. To add a format, write its file and add a line to [`FORMATS`]. Formats are detected from the
//! first 64 KiB of the content: a format is selected only if no other fits. If two formats look alike and have
//! different meanings, the reader refuses and names both (see `Format::detect`). Sources are plain, gzip or xz. Not
//! included: data, thread and process ids, and everything that is not a request to a drive.

mod alicloud;
mod biosnoop;
mod blkparse;
mod blktrace;
mod csv;
mod disksim;
mod extents;
mod fields;
mod fiu;
mod foreign;
mod ftrace;
mod google;
mod heading;
mod input;
mod iolog;
mod issued;
mod lines;
mod meta;
mod mqsim;
mod msr;
mod record;
mod requests;
mod spc;
mod systor;
mod tencent;
mod vscsi;
mod xperf;

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::{Op, Span};
use serde::{Deserialize, Serialize};

pub use csv::Columns;
pub use record::{Record, Request};

use input::Input;
use requests::Requests;
use text::problem::{Place, Problem, Problems};

/// Options for reading a trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Format; `None` means detection from the content.
    pub format: Option<&'static Format>,
    /// Columns of a text whose format does not define them; without a format, the format is columns.
    pub columns: Option<Columns>,
    /// Read only the requests of the volume with this name.
    pub volume: Option<String>,
    /// Read only this many requests from the beginning of the file.
    pub first: Option<u64>,
    /// Refuse a trace with more requests than this (24 bytes of memory each).
    pub most_records: usize,
}

impl Default for Options {
    /// No restrictions, up to 500 million requests (12 GB).
    fn default() -> Options {
        Options {
            format: None,
            columns: None,
            volume: None,
            first: None,
            most_records: 500_000_000,
        }
    }
}

/// Content of a trace file: requests sorted by arrival.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trace {
    /// The file, as the user named it.
    pub origin: String,
    /// Format of the file.
    #[serde(with = "by_name")]
    pub format: &'static Format,
    /// The requests, by arrival; simultaneous requests in the order of the file. The first arrives at 0.
    pub records: Vec<Record>,
    /// Names of the volumes (devices, disks, files) in the order of their first appearance in the file.
    pub volumes: Vec<String>,
    /// Whether the file contains arrival times, and not only an order.
    pub timed: bool,
    /// Whether the requests in the file were in order of arrival.
    pub in_order: bool,
    /// Number of requests to volumes other than the selected one.
    pub other_volumes: u64,
    /// Whether the format was detected from its columns alone, which other formats could have.
    #[serde(default)]
    pub guessed: bool,
    /// Columns that were assigned by their names, as a value of `--columns`.
    #[serde(default)]
    named: Option<String>,
    /// Other observations, with their counts.
    pub notes: Vec<(Cow<'static, str>, u64)>,
    /// Source for finding a record in its file again.
    #[serde(skip)]
    source: Option<Box<(PathBuf, Options)>>,
    /// Arrival of the first request, on the reader's scale.
    first_arrival: u64,
}

/// Traces are equal if their requests and metadata are equal, independent of where they were read from.
impl PartialEq for Trace {
    fn eq(&self, other: &Trace) -> bool {
        let own = |trace: &Trace| (trace.timed, trace.in_order, trace.other_volumes);
        own(self) == own(other)
            && self.origin == other.origin
            && self.format == other.format
            && self.volumes == other.volumes
            && self.notes == other.notes
            && self.records == other.records
    }
}

/// Serialises a format as its name.
mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Format;

    pub(super) fn serialize<S: Serializer>(format: &&Format, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(format.name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<&'static Format, D::Error> {
        let name = String::deserialize(from)?;
        Format::named(&name)
            .ok_or_else(|| D::Error::custom(format!("unknown trace format: {name}")))
    }
}

/// A trace format.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Name in sentences.
    pub title: &'static str,
    /// Description in a list of formats: at most 80 characters.
    pub about: &'static str,
    /// Checks whether the beginning of a file looks like this format.
    looks: fn(&Head) -> bool,
    /// Reads the whole input.
    read: fn(&mut Input, &mut Requests) -> Result<(), TraceError>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

/// All supported trace formats.
pub static FORMATS: &[Format] = &[
    vscsi::FORMAT,
    mqsim::MQSIM,
    mqsim::SSDSIM,
    disksim::FORMAT,
    msr::FORMAT,
    systor::FORMAT,
    tencent::FORMAT,
    alicloud::FORMAT,
    fiu::FORMAT,
    meta::FORMAT,
    google::FORMAT,
    spc::FORMAT,
    blktrace::FORMAT,
    blkparse::FORMAT,
    ftrace::FORMAT,
    biosnoop::FORMAT,
    xperf::FORMAT,
    iolog::FORMAT,
    csv::FORMAT,
];

impl Format {
    /// Returns the format of this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Checks whether the format consists of columns of numbers and letters, without a header, keyword or magic
    /// number that distinguishes it from others.
    fn is_plain_columns(&self) -> bool {
        let plain = ["mqsim", "disksim", "tencent", "alicloud", "fiu", "spc"];
        plain.contains(&self.name)
    }

    /// Detects the format from the first bytes of the content.
    fn detect(input: &Input) -> Result<&'static Format, TraceError> {
        let head = Head::new(input.head(), input.head_is_all());
        let mut fit = FORMATS.iter().filter(|format| (format.looks)(&head));
        let names = FORMATS
            .iter()
            .map(|format| format.name)
            .collect::<Vec<_>>()
            .join(", ");
        match (fit.next(), fit.next()) {
            (Some(format), None) => Ok(format),
            (None, _) => {
                if head.bytes.is_empty() {
                    return Err(TraceError::whole("is empty"));
                }
                if let Some(encoding) = text::foreign::utf16(head.bytes) {
                    let what = format!("is {encoding}, not UTF-8");
                    return Err(TraceError::whole(what).help(text::foreign::UTF16_HELP));
                }
                if let Some((what, help)) = foreign::advice(&head) {
                    return Err(TraceError::whole(what).help(help));
                }
                if heading::named_columns(&head)?.is_some() {
                    return Ok(&csv::FORMAT);
                }
                let start = match head.lines.first() {
                    Some(line) => format!("its first line is {}", fields::shown(line)),
                    None => format!(
                        "it begins with {}",
                        fields::shown(&head.bytes[..head.bytes.len().min(16)])
                    ),
                };
                let help = format!(
                    "name the format with --format: {names}; or assign the columns with --columns"
                );
                Err(TraceError::whole(format!("is in no known format; {start}")).help(help))
            }
            (Some(one), Some(two)) => {
                let mut both = vec![one.name, two.name];
                both.extend(fit.map(|format| format.name));
                let choices = both.join(" or ");
                Err(TraceError::whole(format!(
                    "could be {choices}: the content fits each of them, and they have different meanings"
                ))
                .help(format!(
                    "select one with --format {}",
                    both.join(" or --format ")
                )))
            }
        }
    }
}

/// The beginning of a file, for detecting its format.
struct Head<'a> {
    bytes: &'a [u8],
    /// Whole non-blank lines, at most 1,000; none if the bytes are not text.
    lines: Vec<&'a [u8]>,
    /// Whether `bytes` is the whole content.
    all: bool,
}

impl Head<'_> {
    fn new(bytes: &[u8], all: bool) -> Head<'_> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let whole = match text.iter().rposition(|&byte| byte == b'\n') {
            Some(last) if !all => &text[..last],
            _ => text,
        };
        let mut lines = Vec::new();
        if !text.contains(&0) {
            let split = whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
            lines.extend(split.filter(|line| !line.is_empty()).take(1_000));
        }
        Head { bytes, lines, all }
    }

    /// Returns the first line that is not the header `header`.
    fn after_header(&self, header: &str) -> Option<&[u8]> {
        let first = self.lines.first()?;
        if is_header(first, header) {
            self.lines.get(1).copied()
        } else {
            Some(first)
        }
    }
}

/// Checks whether a line is this header, ignoring case.
fn is_header(line: &[u8], header: &str) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.trim_ascii().eq_ignore_ascii_case(header.as_bytes())
}

/// A problem with a trace, before the file's name is known.
#[derive(Debug)]
struct TraceError {
    place: Place,
    what: String,
    help: Option<String>,
}

impl TraceError {
    fn new(place: Place, what: impl Into<String>) -> TraceError {
        TraceError {
            place,
            what: what.into(),
            help: None,
        }
    }

    fn whole(what: impl Into<String>) -> TraceError {
        TraceError::new(Place::Whole, what)
    }

    fn help(mut self, help: impl Into<String>) -> TraceError {
        self.help = Some(help.into());
        self
    }

    fn in_file(self, origin: &str) -> Problems {
        Problems(vec![Problem {
            origin: origin.into(),
            place: self.place,
            what: self.what,
            help: self.help,
        }])
    }
}

/// Reads a trace from a file.
///
/// # Errors
/// The file cannot be read, its format cannot be detected, or a record is malformed (with its line or byte offset).
pub fn read(path: &Path, options: &Options) -> Result<Trace, Problems> {
    let origin = path.display().to_string();
    let file = open(path)?;
    let mut trace = read_from(file, &origin, options)?;
    trace.source = Some(Box::new((path.to_owned(), options.clone())));
    Ok(trace)
}

#[cfg(not(feature = "files"))]
fn open(path: &Path) -> Result<File, Problems> {
    let what = "cannot be read: there are no files here";
    Err(Problems::whole(path.display().to_string(), what))
}

#[cfg(feature = "files")]
fn open(path: &Path) -> Result<File, Problems> {
    let origin = path.display().to_string();
    let unreadable = |error| Problems::whole(&origin, format!("cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(Problems::whole(&origin, "is a directory, not a trace"));
    }
    Ok(file)
}

/// Reads a trace from any source; `origin` names it in messages.
///
/// # Errors
/// As [`read`].
pub fn read_from(source: impl Read, origin: &str, options: &Options) -> Result<Trace, Problems> {
    let mut requests = Requests::new(options);
    let (format, named) =
        scan(source, options, &mut requests).map_err(|fault| fault.in_file(origin))?;
    let finished = requests.finish();
    let trace = Trace {
        origin: origin.into(),
        format,
        records: finished.records,
        volumes: finished.volumes,
        timed: finished.timed,
        in_order: finished.in_order,
        other_volumes: finished.other_volumes,
        guessed: options.format.is_none() && options.columns.is_none() && format.is_plain_columns(),
        named,
        notes: finished.notes,
        source: None,
        first_arrival: finished.first_arrival,
    };
    if trace.records.is_empty() {
        return Err(trace.nothing_there(options).in_file(origin));
    }
    Ok(trace)
}

fn scan(
    source: impl Read,
    options: &Options,
    requests: &mut Requests,
) -> Result<(&'static Format, Option<String>), TraceError> {
    let mut input = Input::open(source)?;
    let format = match (options.format, &options.columns) {
        (Some(format), _) => format,
        (None, Some(_)) => &csv::FORMAT,
        (None, None) => {
            let head = Head::new(input.head(), input.head_is_all());
            let unknown = !FORMATS.iter().any(|format| (format.looks)(&head));
            let named = heading::named_columns(&head)
                .ok()
                .flatten()
                .filter(|_| unknown);
            if let Some(named) = named {
                csv::read_named(&named, &mut input, requests)?;
                return Ok((&csv::FORMAT, Some(named.option)));
            }
            Format::detect(&input)?
        }
    };
    (format.read)(&mut input, requests)?;
    Ok((format, None))
}

/// Detects the format of content from its first bytes.
///
/// # Errors
/// The format is unknown, or several formats fit.
pub fn detect(source: impl Read, origin: &str) -> Result<&'static Format, Problems> {
    let told = Input::open(source).and_then(|input| Format::detect(&input));
    told.map_err(|fault| fault.in_file(origin))
}

/// Totals of a whole trace or of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of requests.
    pub requests: u64,
    /// Sum of the requested bytes.
    pub bytes: u64,
    /// Number of requests with a recorded response time.
    pub timed: u64,
    /// Sum of the recorded response times in nanoseconds.
    pub latency_ns: u128,
}

impl Totals {
    /// Returns the mean recorded response time, if any was recorded.
    pub fn mean_latency(&self) -> Option<Span> {
        let mean = self.latency_ns.checked_div(u128::from(self.timed))?;
        Some(Span::from_ns(mean as u64))
    }
}

/// Statistics of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Totals of the reads.
    pub read: Totals,
    /// Totals of the writes.
    pub write: Totals,
    /// Totals of flushes, trims and others.
    pub other: Totals,
    /// Time from the first arrival to the last.
    pub duration: Span,
    /// By volume: the byte after the last accessed byte.
    pub ends: Vec<u64>,
    /// Number of reads and writes of zero bytes.
    pub empty: u64,
    /// Number of requests whose offset or length is not a multiple of 512.
    pub unaligned: u64,
}

impl Trace {
    /// Computes the statistics.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            ends: vec![0; self.volumes.len()],
            duration: Span::from_ns(self.records.last().map_or(0, Record::arrival_ns)),
            ..Summary::default()
        };
        for record in &self.records {
            let request = record.request();
            let totals = match request.op {
                Op::Read => &mut summary.read,
                Op::Write => &mut summary.write,
                _ => &mut summary.other,
            };
            totals.requests += 1;
            totals.bytes += u64::from(request.bytes);
            if let Some(latency) = request.latency {
                totals.timed += 1;
                totals.latency_ns += u128::from(latency.ns());
            }
            if request.op == Op::Flush {
                continue;
            }
            let end = request.offset + u64::from(request.bytes);
            summary.empty += u64::from(request.bytes == 0);
            summary.unaligned += u64::from(request.offset % 512 != 0 || request.bytes % 512 != 0);
            let known = &mut summary.ends[usize::from(request.volume)];
            *known = end.max(*known);
        }
        summary
    }

    /// Returns the place of the first equal record in the file. Reads the file again, because records do not store
    /// their lines. Returns [`Place::Whole`] if the record cannot be found (the trace was not read from a file, or
    /// the file has changed).
    pub fn locate(&self, record: &Record) -> Place {
        let Some(source) = &self.source else {
            return Place::Whole;
        };
        let (path, options) = &**source;
        let mut sought = *record;
        sought.set_arrival(record.arrival_ns() + self.first_arrival);
        let mut requests = Requests::new(options);
        requests.sought = Some(sought);
        let scanned = match open(path) {
            Ok(file) => scan(file, options, &mut requests).is_ok(),
            Err(_) => false,
        };
        requests.found.filter(|_| scanned).unwrap_or(Place::Whole)
    }

    /// Returns a sentence with the detected format and the reason for it; `None` if the content is unambiguous or the
    /// user named the format.
    pub fn grounds(&self) -> Option<String> {
        if let Some(columns) = &self.named {
            return Some(format!(
                "read by the names of its columns ({columns}); --columns says otherwise"
            ));
        }
        self.guessed.then(|| {
            format!(
                "taken for {} by its columns alone ({}); --format NAME or --columns says otherwise",
                self.format.title, self.format.about
            )
        })
    }

    /// Returns why a guessed format is unlikely: its addresses are too large for a drive, or its request sizes are
    /// implausible.
    pub fn doubt(&self) -> Option<String> {
        /// Bytes beyond the size of any traced volume.
        const FAR: u64 = 100_000_000_000_000;
        /// Up to this many requests may all have the same odd size by chance.
        const FEW: usize = 3;
        let grounds = self.grounds()?;
        let end = self.summary().ends.into_iter().max().unwrap_or(0);
        let mut sizes = self.records.iter().map(|record| record.request().bytes);
        let first = sizes.next().unwrap_or(0);
        let alike = self.records.len() > FEW && sizes.all(|size| size == first);
        let why = if end > FAR {
            format!("its requests end at {} TB", end / 1_000_000_000_000)
        } else if alike && (first % 512 != 0 || first > 64 << 20) {
            format!("all its requests are of {first} B")
        } else {
            return None;
        };
        Some(format!(
            "{why}, which is unusual for a drive: it was {grounds}"
        ))
    }

    /// Returns why the trace contains no request.
    fn nothing_there(&self, options: &Options) -> TraceError {
        if let (Some(volume), 1..) = (&options.volume, self.other_volumes) {
            let mut names: Vec<&str> = self.volumes.iter().map(String::as_str).take(20).collect();
            if self.volumes.len() > 20 {
                names.push("…");
            }
            let what = format!("has no volume `{volume}`");
            return TraceError::whole(what).help(format!("its volumes are {}", names.join(", ")));
        }
        let seen: Vec<String> = self
            .notes
            .iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        let mut what = format!("holds no request (read as {})", self.format.title);
        if !seen.is_empty() {
            what.push_str(&format!("; it holds {}", seen.join(", ")));
        }
        TraceError::whole(what)
    }
}
