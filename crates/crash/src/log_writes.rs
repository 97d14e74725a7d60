//! Reader and writer of the format of Linux's dm-log-writes.
//!
//! The format has a super block in one sector, then entries of one sector, each followed by its data. Source: the
//! kernel's `Documentation/admin-guide/device-mapper/log-writes.rst` and `drivers/md/dm-log-writes.c`. The format
//! cannot represent overlapping commands: each command in it completes before the next entry, so nothing is in flight.

use crate::log::{Command, Event};
use crate::log::{EventKind, Head, Log, LogError, Note, Submission, Writer};

/// First eight bytes, little-endian.
const MAGIC: u64 = 0x006a_7366_7773_6872;

/// Version of the format.
const VERSION: u64 = 1;

/// Bytes of a sector in written files.
const SECTOR: usize = 512;

/// Bytes of an entry before the text of a mark.
const ENTRY: usize = 32;

mod flag {
    pub(super) const FLUSH: u64 = 1;
    pub(super) const FUA: u64 = 2;
    pub(super) const DISCARD: u64 = 4;
    pub(super) const MARK: u64 = 8;
    pub(super) const METADATA: u64 = 16;
}

/// Writes a log in this format: writes are in the order of their completion, and those that a flush covers are before
/// the flush. Commands in flight at the end and failed commands are left out. The drive's contents before the first
/// command are writes too.
pub fn write(log: &Log) -> Vec<u8> {
    let mut entries = Entries::default();
    for (offset, data) in log.base() {
        entries.push(offset, data.len() as u64, 0, data);
    }
    if entries.count > 0 {
        entries.push(0, 0, flag::FLUSH, &[]);
        entries.mark("recording begins");
    }
    let done = |it: &Command| (!it.failed).then_some(it.completed).flatten();
    // Writes that completed after the flush was submitted and before it completed are placed after it.
    let mut held: Vec<Event> = Vec::new();
    let mut flushes: Vec<u32> = Vec::new();
    for event in &log.events {
        match *event {
            Event::Submitted(number) => {
                let it = &log.commands[number as usize];
                if it.kind == EventKind::Flush && done(it).is_some() {
                    flushes.push(number);
                }
            }
            Event::Completed(number) => {
                let it = &log.commands[number as usize];
                if it.kind != EventKind::Flush {
                    match it.fua {
                        true => entries.release(log, vec![*event]),
                        false => held.push(*event),
                    }
                } else if done(it).is_some() {
                    flushes.retain(|flush| *flush != number);
                    let covered = |event: &Event| match *event {
                        Event::Completed(write) => {
                            let write = &log.commands[write as usize];
                            write.completed.is_some_and(|at| at < it.submitted)
                        }
                        _ => true,
                    };
                    let (before, after) = std::mem::take(&mut held).into_iter().partition(covered);
                    entries.release(log, before);
                    held = after;
                    entries.push(0, 0, flag::FLUSH, &[]);
                }
            }
            Event::Ack(_) | Event::Try(_) | Event::Mark(_) => held.push(*event),
        }
        if flushes.is_empty() {
            entries.release(log, std::mem::take(&mut held));
        }
    }
    entries.release(log, held);
    entries.finish()
}

#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    count: u64,
}

impl Entries {
    fn push(&mut self, offset: u64, bytes: u64, flags: u64, data: &[u8]) {
        let sectors = SECTOR as u64;
        // The last field is the length of a mark's text.
        let fields = [offset / sectors, bytes / sectors, flags, 0];
        for field in fields {
            self.bytes.extend_from_slice(&field.to_le_bytes());
        }
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
        self.count += 1;
    }

    fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(SECTOR);
        self.bytes.resize(length, 0);
    }

    /// Writes a mark. Its text is in the sector of its entry, truncated to the space there.
    fn mark(&mut self, text: &str) {
        let text = &text.as_bytes()[..text.len().min(SECTOR - ENTRY)];
        for field in [0, 0, flag::MARK, text.len() as u64] {
            self.bytes.extend_from_slice(&field.to_le_bytes());
        }
        self.bytes.extend_from_slice(text);
        self.pad();
        self.count += 1;
    }

    fn release(&mut self, log: &Log, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Completed(number) => {
                    let it = &log.commands[number as usize];
                    if it.failed {
                        continue;
                    }
                    let fua = if it.fua { flag::FUA } else { 0 };
                    match it.kind {
                        EventKind::Write => self.push(it.offset, it.bytes, fua, log.data(it)),
                        EventKind::Zeroes => {
                            self.push(it.offset, it.bytes, fua, &vec![0; it.bytes as usize]);
                        }
                        EventKind::Trim => self.push(it.offset, it.bytes, flag::DISCARD, &[]),
                        EventKind::Flush => {}
                    }
                }
                Event::Ack(number) => self.mark(&format!("ack {}", log.acks[number as usize])),
                Event::Try(number) => self.mark(&format!("try {}", log.tries[number as usize])),
                Event::Mark(number) => self.mark(&log.marks[number as usize]),
                Event::Submitted(_) => {}
            }
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(SECTOR + self.bytes.len());
        for field in [MAGIC, VERSION, self.count] {
            all.extend_from_slice(&field.to_le_bytes());
        }
        all.extend_from_slice(&(SECTOR as u32).to_le_bytes());
        all.resize(SECTOR, 0);
        all.extend_from_slice(&self.bytes);
        all
    }
}

/// An entry that was read.
struct Entry<'a> {
    offset: u64,
    bytes: u64,
    flags: u64,
    data: &'a [u8],
}

/// Reads a file of this format as the log of this drive, which stored `base` (offset and data) before.
///
/// # Errors
/// The error in the bytes, and its offset.
pub fn read(bytes: &[u8], head: &Head, base: &[(u64, &[u8])]) -> Result<Log, LogError> {
    let wrong = |offset: usize, what: &str| LogError {
        offset: offset as u64,
        what: what.to_owned(),
    };
    let number = |at: usize| {
        let eight = bytes.get(at..at + 8)?;
        let mut array = [0; 8];
        array.copy_from_slice(eight);
        Some(u64::from_le_bytes(array))
    };
    let super_block = (number(0), number(8), number(16), number(24));
    let (Some(MAGIC), Some(VERSION), Some(count), Some(sector)) = super_block else {
        return Err(wrong(0, "not a dm-log-writes log of version 1"));
    };
    let sector = sector as u32 as usize;
    if !sector.is_power_of_two() || !(512..=65536).contains(&sector) {
        return Err(wrong(
            24,
            "a sector size that is not a power of two from 512 to 65536",
        ));
    }
    let mut writer = Writer::new(head);
    for (offset, data) in base {
        writer.base(*offset, data);
    }
    let mut at = sector;
    for _ in 0..count {
        let field = |index: usize| number(at + 8 * index);
        let (Some(first), Some(sectors), Some(flags), Some(length)) =
            (field(0), field(1), field(2), field(3))
        else {
            break;
        };
        let size = sector as u64;
        let range = (first.checked_mul(size), sectors.checked_mul(size));
        let (Some(offset), Some(range)) = range else {
            return Err(wrong(at, "a range beyond all drives"));
        };
        // The text of a mark is in the sector of its entry; data begins after it.
        let is_mark = flags & flag::MARK != 0;
        let (from, length) = match (is_mark, flags & flag::DISCARD) {
            (true, _) => (at + ENTRY, length),
            (false, 0) => (at + sector, range),
            (false, _) => (at + sector, 0),
        };
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| from.checked_add(length));
        // A log that ends within an entry is cut before that entry.
        let Some(data) = end.and_then(|end| bytes.get(from..end)) else {
            break;
        };
        if is_mark {
            note(&mut writer, data);
        } else {
            if offset.checked_add(range).is_none_or(|end| end > head.bytes) {
                return Err(wrong(at, "a range beyond the end of the device"));
            }
            let entry = Entry {
                offset,
                bytes: range,
                flags,
                data,
            };
            entry.add(&mut writer).map_err(|what| wrong(at, &what))?;
        }
        at = (from + data.len()).next_multiple_of(sector);
    }
    writer.note(Note::End, "end of the dm-log-writes log");
    Log::read(writer.bytes)
}

fn note(writer: &mut Writer, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end_matches('\0');
    match text.split_once(' ') {
        Some(("ack", token)) => writer.note(Note::Ack, token),
        Some(("try", token)) => writer.note(Note::Try, token),
        _ => writer.note(Note::Mark, text),
    }
}

impl Entry<'_> {
    /// Adds an entry. A flush with data makes the preceding writes durable, and then writes.
    fn add(&self, writer: &mut Writer) -> Result<(), String> {
        let known = flag::FLUSH | flag::FUA | flag::DISCARD | flag::METADATA;
        if self.flags & !known != 0 {
            return Err(format!("unknown flags {:#x}", self.flags));
        }
        if self.flags & flag::FLUSH != 0 {
            self.command(writer, EventKind::Flush, 0, 0, &[])?;
        }
        let (mut at, end) = (self.offset, self.offset.saturating_add(self.bytes));
        let kind = match self.flags & flag::DISCARD {
            0 => EventKind::Write,
            _ => EventKind::Trim,
        };
        // A range may be longer than the maximum of a command.
        while at < end {
            let bytes = (end - at).min(1 << 30) as u32;
            let from = (at - self.offset) as usize;
            let data = match kind {
                EventKind::Write => &self.data[from..from + bytes as usize],
                _ => &[],
            };
            self.command(writer, kind, at, bytes, data)?;
            at += u64::from(bytes);
        }
        Ok(())
    }

    fn command(
        &self,
        writer: &mut Writer,
        kind: EventKind,
        offset: u64,
        bytes: u32,
        data: &[u8],
    ) -> Result<(), String> {
        let submission = Submission {
            kind,
            fua: kind != EventKind::Flush && self.flags & flag::FUA != 0,
            offset,
            bytes,
        };
        let number = writer.submit(submission, &mut |into| {
            into.copy_from_slice(data);
            true
        });
        let number = number.ok_or_else(|| String::from("an entry without its data"))?;
        writer.complete(number, true);
        Ok(())
    }
}
