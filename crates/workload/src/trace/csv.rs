//! Text with one request per line, in columns that the user names: `--columns time=1,op=3,offset=4,size=5`.
//!
//! Columns are separated by commas, semicolons or blanks: the first of these that yields all named columns. A first
//! line whose sizes are not numbers contains the column names and is skipped. Nothing is guessed: units and codes are
//! given, or are words with a known meaning.

use model::Op;

use super::fields::{self, Fields};
use super::lines::each_line;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError, input::Input};
use text::problem::{Place, Problem, Problems, nearest};

pub(super) const FORMAT: Format = Format {
    name: "csv",
    title: "text by columns",
    about: "any text of one request a line, by --columns and --time-unit",
    looks: |_| false,
    read,
};

/// Columns of a line. They count from 0 here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Columns of the time, if present, and of the response time.
    time: Option<usize>,
    latency: Option<usize>,
    unit_ns: u64,
    latency_unit_ns: u64,
    op: usize,
    /// The text that means a read, if the words do not have a known meaning.
    read: Option<Vec<u8>>,
    /// Column of the offset, and its unit in bytes.
    offset: (usize, u64),
    size: (usize, u64),
    volume: Option<usize>,
}

/// Columns by name, with the line that names them.
pub(super) struct NamedColumns {
    pub columns: Columns,
    /// The line, without surrounding blanks.
    pub heading: Vec<u8>,
    /// Separator of the columns.
    pub separator: Separator,
    /// Column of the process's name in a table between blanks: the name may contain blanks.
    pub process: Option<usize>,
    /// Columns that the heading has.
    pub count: usize,
    /// The equal value of `--columns`.
    pub option: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Separator {
    Commas,
    Semicolons,
    Blanks,
}

const KEYS: [&str; 9] = [
    "time", "op", "offset", "size", "sector", "sectors", "volume", "latency", "read",
];
const HELP: &str = "such as time=1,op=3,offset=4,size=5 (sector and sectors count 512 B; also volume and latency; read=0 gives the value that means a read)";

/// A list of columns while it is parsed: the column of each key, and the problems.
struct List<'a> {
    given: [Option<&'a str>; KEYS.len()],
    problems: Problems,
}

impl<'a> List<'a> {
    fn add_problem(&mut self, what: String, help: &str) {
        self.problems.0.push(Problem {
            origin: "command line".into(),
            place: Place::Whole,
            what,
            help: Some(help.into()),
        });
    }

    fn new(text: &'a str) -> List<'a> {
        let mut list = List {
            given: [None; KEYS.len()],
            problems: Problems::default(),
        };
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            match KEYS.iter().position(|known| *known == key) {
                Some(index) if list.given[index].is_some() => {
                    list.add_problem(format!("--columns: {key} is given twice"), "each once");
                }
                Some(index) => list.given[index] = Some(value),
                None => {
                    let near = nearest(key, KEYS).map(|near| format!("did you mean `{near}`?"));
                    let help = near.as_deref().unwrap_or(HELP);
                    list.add_problem(format!("--columns: there is no `{key}`"), help);
                }
            }
        }
        list
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.given[KEYS.iter().position(|known| *known == key)?]
    }

    fn column(&mut self, key: &str) -> Option<usize> {
        let value = self.text(key)?;
        match value.parse::<usize>() {
            Ok(number @ 1..=fields::MOST) => Some(number - 1),
            _ => {
                let help = format!("a number from 1 to {}", fields::MOST);
                self.add_problem(format!("--columns: {key}={value} is not a column"), &help);
                Some(0)
            }
        }
    }

    /// Returns the column that counts bytes or the one that counts sectors, with its unit in bytes.
    fn place(&mut self, bytes: &str, sectors: &str) -> (usize, u64) {
        match (self.column(bytes), self.column(sectors)) {
            (Some(column), None) => (column, 1),
            (None, Some(column)) => (column, 512),
            _ => {
                let what = format!("--columns requires one of {bytes} and {sectors}");
                self.add_problem(what, HELP);
                (0, 1)
            }
        }
    }

    fn unit_ns(&mut self, unit: Option<&str>, has_times: bool) -> u64 {
        const UNITS: &str = "s, ms, us or ns";
        match unit {
            Some("s") => 1_000_000_000,
            Some("ms") => 1_000_000,
            Some("us") => 1_000,
            Some("ns") => 1,
            Some(other) => {
                self.add_problem(format!("--time-unit: unknown unit `{other}`"), UNITS);
                1
            }
            None if has_times => {
                let what = "--columns has times, and --time-unit is not given";
                self.add_problem(what.into(), UNITS);
                1
            }
            None => 1,
        }
    }
}

impl Columns {
    /// Parses `time=1,op=3,offset=4,size=5`, with columns counted from 1, and the unit of times (`s`, `ms`, `us` or
    /// `ns`).
    ///
    /// # Errors
    /// All problems in either.
    pub fn new(list: &str, time_unit: Option<&str>) -> Result<Columns, Problems> {
        let mut list = List::new(list);
        let (time, latency) = (list.column("time"), list.column("latency"));
        let (op, volume) = (list.column("op"), list.column("volume"));
        if op.is_none() {
            list.add_problem("--columns wants op".into(), HELP);
        }
        let unit_ns = list.unit_ns(time_unit, time.or(latency).is_some());
        let columns = Columns {
            time,
            latency,
            unit_ns,
            latency_unit_ns: unit_ns,
            op: op.unwrap_or(0),
            read: list.text("read").map(|word| word.as_bytes().to_vec()),
            offset: list.place("offset", "sector"),
            size: list.place("size", "sectors"),
            volume,
        };
        list.problems.or(columns)
    }

    /// Creates columns by their names: of times, response times and volumes; the nanoseconds of a time's and a response
    /// time's unit; offsets and sizes with their unit in bytes.
    pub(super) fn of_names(
        [time, latency, volume]: [Option<usize>; 3],
        units_ns: [Option<u64>; 2],
        op: usize,
        offset: (usize, u64),
        size: (usize, u64),
    ) -> Columns {
        let [unit_ns, latency_unit_ns] = units_ns.map(|unit| unit.unwrap_or(1));
        Columns {
            time,
            latency,
            unit_ns,
            latency_unit_ns,
            op,
            read: None,
            offset,
            size,
            volume,
        }
    }

    /// Returns the number of columns that a line must have.
    fn needed(&self) -> usize {
        let named = [self.op, self.offset.0, self.size.0].into_iter();
        let perhaps = [self.time, self.latency, self.volume].into_iter().flatten();
        named.chain(perhaps).max().unwrap_or(0) + 1
    }

    fn operation(&self, fields: &Fields) -> Result<Op, TraceError> {
        let word = fields.text(self.op);
        if let Some(read) = &self.read {
            return Ok(if word == read { Op::Read } else { Op::Write });
        }
        match word.first().map(u8::to_ascii_lowercase) {
            Some(b'r') => Ok(Op::Read),
            Some(b'w') => Ok(Op::Write),
            Some(b'f' | b's') => Ok(Op::Flush),
            Some(b't' | b'd' | b'u') => Ok(Op::Deallocate),
            _ => Err(fields
                .invalid_column(self.op, "op", "a word such as R, write, trim or flush")
                .help("read=0 in --columns means that 0 is a read, and any other value a write")),
        }
    }

    fn bytes(fields: &Fields, (column, by): (usize, u64), name: &str) -> Result<u64, TraceError> {
        let number = fields.either(column, name)?;
        let bytes = number.checked_mul(by);
        bytes.ok_or_else(|| {
            fields.invalid_column(column, name, "a number of 512 B sectors below 2^55")
        })
    }

    fn request(&self, fields: &Fields) -> Result<RawRequest, TraceError> {
        let at_ns = match self.time {
            Some(column) => fields.time(column, "time", self.unit_ns)?,
            None => 0,
        };
        let op = self.operation(fields)?;
        let (offset, bytes) = if op == Op::Flush {
            (0, 0)
        } else {
            (
                Columns::bytes(fields, self.offset, "offset")?,
                Columns::bytes(fields, self.size, "size")?,
            )
        };
        let mut found = RawRequest::new(at_ns, op, offset, bytes);
        if let Some(column) = self.latency {
            let latency_ns = fields.time(column, "latency", self.latency_unit_ns)?;
            found.latency_ns = u64::try_from(latency_ns).ok();
        }
        Ok(found)
    }
}

/// Returns [`split`] for lines with at least `needed` columns.
fn for_columns(needed: usize) -> impl for<'a> Fn(usize, &'a [u8]) -> Fields<'a> {
    move |line, text| split(line, text, needed)
}

/// Splits a line into at least `needed` columns. A column may contain a comma, as in `259,0`.
fn split(line: usize, text: &[u8], needed: usize) -> Fields<'_> {
    let by_commas = || text.contains(&b',').then(|| Fields::commas(line, text));
    let by_semicolons = || text.contains(&b';').then(|| Fields::semicolons(line, text));
    let by_blanks = || Fields::blanks(line, text);
    let enough = |fields: &Fields| fields.count() >= needed;
    let found = by_commas()
        .filter(enough)
        .or_else(|| by_semicolons().filter(enough));
    let found = found.or_else(|| Some(by_blanks()).filter(enough));
    found
        .or_else(by_commas)
        .or_else(by_semicolons)
        .unwrap_or_else(by_blanks)
}

/// Reads a table whose columns are named by a line; lines before that line are skipped.
pub(super) fn read_named(
    named: &NamedColumns,
    input: &mut Input,
    requests: &mut Requests,
) -> Result<(), TraceError> {
    let columns = &named.columns;
    if columns.time.is_none() {
        requests.untimed();
    }
    let split = as_heading(named);
    let mut below = false;
    each_line(input, requests, split, |fields, volume, _| {
        let is_heading = fields.line_text().ends_with(&named.heading);
        if !below || is_heading {
            below |= is_heading;
            return Ok(None);
        }
        if fields.count() < columns.needed() {
            return Err(fields.fault(format!(
                "has {} columns, and the heading names {}",
                fields.count(),
                named.count
            )));
        }
        let name = columns.volume.map(|column| fields.text(column));
        volume.extend_from_slice(name.unwrap_or(b"volume"));
        columns.request(fields).map(Some)
    })
}

/// Splits a line as the heading is split. In a table between blanks, a process's name may contain blanks.
fn as_heading(named: &NamedColumns) -> impl for<'a> Fn(usize, &'a [u8]) -> Fields<'a> + '_ {
    |line, text| match (named.separator, named.process) {
        (Separator::Commas, _) => Fields::commas(line, text),
        (Separator::Semicolons, _) => Fields::semicolons(line, text),
        (Separator::Blanks, Some(process)) => {
            Fields::split_around(line, text, process, named.count - process - 1)
        }
        (Separator::Blanks, None) => Fields::blanks(line, text),
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let Some(columns) = requests.options().columns.clone() else {
        let what = "is text in columns, and the meaning of its columns is not given";
        return Err(TraceError::whole(what).help(format!("--columns {HELP}")));
    };
    if columns.time.is_none() {
        requests.untimed();
    }
    let needed = columns.needed();
    let split = for_columns(needed);
    each_line(input, requests, split, |fields, volume, _| {
        let heads = fields.line() == 1 && fields::whole(fields.text(columns.size.0)).is_none();
        if heads
            && fields
                .text(columns.size.0)
                .first()
                .is_some_and(u8::is_ascii_alphabetic)
        {
            return Ok(None);
        }
        volume.extend_from_slice(
            columns
                .volume
                .map_or(b"volume", |column| fields.text(column)),
        );
        columns.request(fields).map(Some)
    })
}
