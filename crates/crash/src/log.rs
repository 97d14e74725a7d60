//! The log of a recorded drive: the format `drivelab-log 1`.
//!
//! A text head of `key: value` lines ends with an empty line. Frames of 32 bytes follow, little-endian, some with a payload:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | `B` base, `S` submitted, `C` completed, `A` acknowledgement, `T` try, `M` mark, `E` end |
//! | 1 | of `S`: `W` write, `Z` write zeroes, `D` deallocate, `F` flush; of `C`: 0 success, 1 failure |
//! | 2 | of `S`: bit 0 force unit access |
//! | 4..8 | number of the command: of `S` and `C` |
//! | 8..16 | offset in bytes: of `B` and `S` |
//! | 16..24 | model time in nanoseconds |
//! | 24..28 | bytes of the range or of the payload |
//! | 28..32 | CRC-32C of the 28 bytes before and the payload |
//!
//! Payload: the data of `B` and of writes, the text of `A`, `T`, `M` and `E`. Base frames precede all commands and hold what
//! the drive stored when the recording began; the rest of the drive reads as zeroes. A log may end within a frame, as the log
//! of a killed server does: it counts up to its last whole frame.

use std::fmt;
use std::ops::Range;

/// First line of a log.
pub const MAGIC: &str = "drivelab-log 1";

/// Bytes of a frame without its payload.
pub const FRAME: usize = 32;

/// Most bytes of the text head.
const LONGEST_HEAD: usize = 64 << 10;

/// Most bytes of the text of a frame.
pub const LONGEST_TEXT: usize = 4000;

/// The drive that was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Name in the catalogue.
    pub drive: String,
    /// Bytes of the namespace.
    pub bytes: u64,
    /// Size of a logical block in bytes.
    pub block: u32,
    /// Bytes that the drive keeps or loses as a unit.
    pub part: u32,
    /// Whether acknowledged writes may be lost until they are flushed.
    pub volatile: bool,
}

impl Head {
    /// Returns the head as text, with the empty line that ends it.
    pub fn text(&self) -> String {
        let Head {
            drive,
            bytes,
            block,
            part,
            volatile,
        } = self;
        let volatile = if *volatile { "yes" } else { "no" };
        format!(
            "{MAGIC}\ndrive: {drive}\nbytes: {bytes}\nblock: {block}\npart: {part}\nvolatile: {volatile}\n\n"
        )
    }

    fn parse(text: &str) -> Result<Head, LogError> {
        let mut head = Head {
            drive: String::new(),
            bytes: 0,
            block: 0,
            part: 0,
            volatile: false,
        };
        let mut missing = vec!["drive", "bytes", "block", "part", "volatile"];
        let mut at = MAGIC.len() as u64 + 1;
        for line in text.lines().skip(1) {
            let wrong = |what: String| LogError { offset: at, what };
            let (key, value) = line
                .split_once(": ")
                .ok_or_else(|| wrong(format!("head: `{line}` is not `key: value`")))?;
            let Some(place) = missing.iter().position(|it| *it == key) else {
                return Err(wrong(format!("head: unknown or repeated key `{key}`")));
            };
            missing.remove(place);
            let number = |most: u64| match value.parse::<u64>() {
                Ok(number) if number > 0 && number % 512 == 0 && number <= most => Ok(number),
                _ => Err(wrong(format!(
                    "head: `{key}: {value}`: must be a multiple of 512 up to {most}"
                ))),
            };
            match key {
                "drive" => head.drive = value.to_owned(),
                "bytes" => head.bytes = number(1 << 60)?,
                "block" => head.block = number(1 << 16)? as u32,
                "part" => head.part = number(1 << 20)? as u32,
                _ => {
                    head.volatile = match value {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(wrong(format!("head: `{line}`: must be yes or no"))),
                    }
                }
            }
            at += line.len() as u64 + 1;
        }
        match missing.first() {
            None => Ok(head),
            Some(key) => Err(LogError {
                offset: at,
                what: format!("head: key `{key}` is missing"),
            }),
        }
    }
}

/// Effect of a command on the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// Writes its data.
    Write,
    /// Writes zeroes.
    Zeroes,
    /// Deallocates: the range reads as zeroes.
    Trim,
    /// Makes durable all writes that had completed when it was submitted.
    Flush,
}

impl EventKind {
    /// Returns the word for reports.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Write => "write",
            EventKind::Zeroes => "write zeroes",
            EventKind::Trim => "trim",
            EventKind::Flush => "flush",
        }
    }

    fn letter(self) -> u8 {
        match self {
            EventKind::Write => b'W',
            EventKind::Zeroes => b'Z',
            EventKind::Trim => b'D',
            EventKind::Flush => b'F',
        }
    }

    fn of_letter(letter: u8) -> Option<EventKind> {
        let all = [
            EventKind::Write,
            EventKind::Zeroes,
            EventKind::Trim,
            EventKind::Flush,
        ];
        all.into_iter().find(|kind| kind.letter() == letter)
    }
}

/// Meaning of the text of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// The program has acknowledged this token: it must be present after a power cut.
    Ack,
    /// The program has begun this token: it may be present.
    Try,
    /// A remark.
    Mark,
    /// The recording has ended, for this reason.
    End,
}

impl Note {
    fn letter(self) -> u8 {
        match self {
            Note::Ack => b'A',
            Note::Try => b'T',
            Note::Mark => b'M',
            Note::End => b'E',
        }
    }
}

/// Reason why bytes are not a valid log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogError {
    /// Offset in the file.
    pub offset: u64,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for LogError {}

/// A command of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Kind of the command.
    pub kind: EventKind,
    /// Whether it completes only when it is durable.
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u64,
    /// Index of the event of its submission.
    pub submitted: usize,
    /// Index of the event of its completion; `None` if it was in flight at the end.
    pub completed: Option<usize>,
    /// Whether it completed with an error, so that its data was not stored.
    pub failed: bool,
    data: Range<usize>,
}

impl Command {
    /// Checks whether it changes data.
    pub fn writes(&self) -> bool {
        self.kind != EventKind::Flush
    }
}

/// Events in causal order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The command with this number was submitted.
    Submitted(u32),
    /// The command with this number completed.
    Completed(u32),
    /// The acknowledgement with this number.
    Ack(u32),
    /// The try with this number.
    Try(u32),
    /// The mark with this number.
    Mark(u32),
}

/// A complete recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// The drive.
    pub head: Head,
    /// Commands by number.
    pub commands: Vec<Command>,
    /// Events in causal order.
    pub events: Vec<Event>,
    /// Acknowledged tokens.
    pub acks: Vec<String>,
    /// Tokens that were begun.
    pub tries: Vec<String>,
    /// Remarks.
    pub marks: Vec<String>,
    /// Reason for the end of the recording; `None` if the server was killed.
    pub ending: Option<String>,
    /// Number of bytes after the last complete frame.
    pub rest: usize,
    base: Vec<(u64, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// The first error in the bytes, with its offset. A log that ends within a frame is not an error.
    pub fn read(bytes: Vec<u8>) -> Result<Log, LogError> {
        let (head, at) = read_head(&bytes)?;
        let mut log = Log {
            head,
            commands: Vec::new(),
            events: Vec::new(),
            acks: Vec::new(),
            tries: Vec::new(),
            marks: Vec::new(),
            ending: None,
            rest: 0,
            base: Vec::new(),
            bytes: Vec::new(),
        };
        let mut at = at;
        while let Some(end) = frame_end(&bytes, at)? {
            log.take(&bytes, at..end).map_err(|what| LogError {
                offset: at as u64,
                what,
            })?;
            at = end;
        }
        log.rest = bytes.len() - at;
        log.bytes = bytes;
        Ok(log)
    }

    /// Returns the data of a write; empty for other commands.
    pub fn data(&self, command: &Command) -> &[u8] {
        &self.bytes[command.data.clone()]
    }

    /// Returns the data on the drive at the start of the recording: offset and data.
    pub fn base(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let ranges = self.base.iter();
        ranges.map(|(offset, range)| (*offset, &self.bytes[range.clone()]))
    }

    /// Returns the bytes that the log was read from.
    pub fn file(&self) -> &[u8] {
        &self.bytes
    }

    fn take(&mut self, bytes: &[u8], frame: Range<usize>) -> Result<(), String> {
        if self.ending.is_some() {
            return Err("a frame after the end of the recording".into());
        }
        let (at, payload) = (frame.start, frame.start + FRAME..frame.end);
        match bytes[at] {
            b'B' => self.take_base(u64_at(bytes, at + 8), payload),
            b'S' => self.take_submission(bytes, at, payload),
            b'C' => self.take_completion(u32_at(bytes, at + 4), bytes[at + 1]),
            letter => self.take_text(letter, &bytes[payload]),
        }
    }

    fn take_base(&mut self, offset: u64, data: Range<usize>) -> Result<(), String> {
        if !self.events.is_empty() {
            return Err("a base frame after the first event".into());
        }
        self.check_range(offset, data.len() as u64)?;
        self.base.push((offset, data));
        Ok(())
    }

    fn check_range(&self, offset: u64, bytes: u64) -> Result<(), String> {
        let fits = offset.checked_add(bytes);
        if offset % 512 != 0 || bytes % 512 != 0 || bytes == 0 {
            return Err(format!(
                "{bytes} bytes at {offset}: not multiples of 512 above 0"
            ));
        }
        match fits {
            Some(end) if end <= self.head.bytes => Ok(()),
            _ => Err(format!(
                "{bytes} bytes at {offset}: the drive has {} bytes",
                self.head.bytes
            )),
        }
    }

    fn take_submission(
        &mut self,
        bytes: &[u8],
        at: usize,
        data: Range<usize>,
    ) -> Result<(), String> {
        let letter = bytes[at + 1];
        let kind = EventKind::of_letter(letter)
            .ok_or_else(|| format!("unknown operation {letter}: must be W, Z, D or F"))?;
        let number = u32_at(bytes, at + 4);
        if number as usize != self.commands.len() {
            return Err(format!(
                "command {number}: must be numbered {}",
                self.commands.len()
            ));
        }
        let (offset, length) = match kind {
            EventKind::Flush => (0, 0),
            _ => (u64_at(bytes, at + 8), u32_at(bytes, at + 24).into()),
        };
        if kind != EventKind::Flush {
            self.check_range(offset, length)?;
        }
        self.commands.push(Command {
            kind,
            fua: bytes[at + 2] & 1 != 0,
            offset,
            bytes: length,
            submitted: self.events.len(),
            completed: None,
            failed: false,
            data,
        });
        self.events.push(Event::Submitted(number));
        Ok(())
    }

    fn take_completion(&mut self, number: u32, status: u8) -> Result<(), String> {
        let event = self.events.len();
        match self.commands.get_mut(number as usize) {
            None => return Err(format!("command {number} completes but was not submitted")),
            Some(command) if command.completed.is_some() => {
                return Err(format!("command {number} completes twice"));
            }
            Some(command) => {
                command.completed = Some(event);
                command.failed = status != 0;
            }
        }
        self.events.push(Event::Completed(number));
        Ok(())
    }

    fn take_text(&mut self, letter: u8, text: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8")?;
        let text = text.to_owned();
        let (list, event): (_, fn(u32) -> Event) = match letter {
            b'A' => (&mut self.acks, Event::Ack),
            b'T' => (&mut self.tries, Event::Try),
            b'M' => (&mut self.marks, Event::Mark),
            _ => {
                self.ending = Some(text);
                return Ok(());
            }
        };
        self.events.push(event(list.len() as u32));
        list.push(text);
        Ok(())
    }
}

fn read_head(bytes: &[u8]) -> Result<(Head, usize), LogError> {
    let wrong = |what: &str| LogError {
        offset: 0,
        what: what.to_owned(),
    };
    let begin = &bytes[..bytes.len().min(LONGEST_HEAD)];
    if !begin.starts_with(format!("{MAGIC}\n").as_bytes()) {
        return Err(wrong(&format!(
            "not a log: the first line must be `{MAGIC}`"
        )));
    }
    let end = begin.windows(2).position(|pair| pair == b"\n\n");
    let end = end.ok_or_else(|| wrong("the head does not end with an empty line"))?;
    let text = std::str::from_utf8(&begin[..end]);
    let text = text.map_err(|_| wrong("the head is not UTF-8"))?;
    Ok((Head::parse(text)?, end + 2))
}

/// Returns the end of the frame at `at`; `None` if the bytes end before it.
fn frame_end(bytes: &[u8], at: usize) -> Result<Option<usize>, LogError> {
    if bytes.len() - at < FRAME {
        return Ok(None);
    }
    let wrong = |what: String| LogError {
        offset: at as u64,
        what,
    };
    let length = u32_at(bytes, at + 24) as usize;
    let payload = match (bytes[at], bytes[at + 1]) {
        (b'B', _) | (b'S', b'W') => length,
        (b'A' | b'T' | b'M' | b'E', _) if length <= LONGEST_TEXT => length,
        (b'A' | b'T' | b'M' | b'E', _) => {
            return Err(wrong(format!(
                "a text of {length} bytes: {LONGEST_TEXT} at most"
            )));
        }
        (b'S' | b'C', _) => 0,
        (letter, _) => return Err(wrong(format!("unknown frame {letter}"))),
    };
    let Some(end) = (at + FRAME)
        .checked_add(payload)
        .filter(|it| *it <= bytes.len())
    else {
        return Ok(None);
    };
    let sum = crc32c::crc32c(&bytes[at..at + 28]);
    let sum = crc32c::crc32c_append(sum, &bytes[at + FRAME..end]);
    match sum == u32_at(bytes, at + 28) {
        true => Ok(Some(end)),
        false => Err(wrong("a frame with a wrong checksum".into())),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

/// A command at its submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// Kind of the command.
    pub kind: EventKind,
    /// Whether it completes only when it is durable.
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
}

/// Writes the bytes of a log. The content of [`Writer::bytes`] may be removed at any time.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// Bytes that have been written and not yet removed.
    pub bytes: Vec<u8>,
    commands: u32,
    time_ns: u64,
}

impl Writer {
    /// Returns a writer for the log of this drive.
    pub fn new(head: &Head) -> Writer {
        Writer {
            bytes: head.text().into_bytes(),
            ..Writer::default()
        }
    }

    /// Sets the virtual time of the following frames.
    pub fn set_time(&mut self, ns: u64) {
        self.time_ns = ns;
    }

    /// Writes data that the drive stores before the first command.
    pub fn base(&mut self, offset: u64, data: &[u8]) {
        let at = self.begin([b'B', 0, 0], 0, offset, data.len() as u32);
        self.bytes.extend_from_slice(data);
        self.seal(at);
    }

    /// Writes the submission of a command; `fill` writes the data of a write. Returns its number, `None` if `fill`
    /// failed.
    pub fn submit(
        &mut self,
        it: Submission,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Option<u32> {
        let number = self.commands;
        let letters = [b'S', it.kind.letter(), it.fua.into()];
        let at = self.begin(letters, number, it.offset, it.bytes);
        if it.kind == EventKind::Write {
            let from = self.bytes.len();
            self.bytes.resize(from + it.bytes as usize, 0);
            if !fill(&mut self.bytes[from..]) {
                self.bytes.truncate(at);
                return None;
            }
        }
        self.seal(at);
        self.commands += 1;
        Some(number)
    }

    /// Writes the completion of the command with this number.
    pub fn complete(&mut self, number: u32, success: bool) {
        let at = self.begin([b'C', u8::from(!success), 0], number, 0, 0);
        self.seal(at);
    }

    /// Writes a text, truncated to [`LONGEST_TEXT`] bytes.
    pub fn note(&mut self, note: Note, text: &str) {
        let mut end = text.len().min(LONGEST_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let at = self.begin([note.letter(), 0, 0], 0, 0, end as u32);
        self.bytes.extend_from_slice(&text.as_bytes()[..end]);
        self.seal(at);
    }

    fn begin(&mut self, letters: [u8; 3], number: u32, offset: u64, length: u32) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&letters);
        self.bytes.push(0);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&offset.to_le_bytes());
        self.bytes.extend_from_slice(&self.time_ns.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        at
    }

    fn seal(&mut self, at: usize) {
        let sum = crc32c::crc32c(&self.bytes[at..at + 28]);
        let sum = crc32c::crc32c_append(sum, &self.bytes[at + FRAME..]);
        self.bytes[at + 28..at + FRAME].copy_from_slice(&sum.to_le_bytes());
    }
}
