//! fio's iolog, versions 2 and 3 (`write_iolog`, `read_iolog`).
//!
//! Version 2: `file action [offset length]`, with `file wait N` for pauses in microseconds, each counted from the
//! previous one. Version 3: a time in microseconds before each line (the manual says milliseconds; fio 3.33 writes
//! and reads microseconds). Actions: add, open, close, read, write, trim, sync, datasync, sync_file_range, wait. A
//! file is a volume. Version 2 without any wait contains no times. Not included: open and close, and sync_file_range,
//! which flushes no drive. fio itself ignores waits below 100 µs in version 2; here they count. Source: fio's manual,
//! "Trace file format", and logs written by fio 3.33.

use std::collections::HashSet;
use std::ops::ControlFlow;

use model::Op;

use super::fields::Fields;
use super::input::Input;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError};

pub(super) const FORMAT: Format = Format {
    name: "iolog",
    title: "fio iolog",
    about: "fio's iolog, versions 2 and 3",
    looks: |head| {
        head.lines
            .first()
            .is_some_and(|line| line.starts_with(b"fio version "))
    },
    read,
};

/// Action of one line.
enum Action {
    Add,
    Nothing,
    Wait,
    Io(Op),
}

fn action(text: &[u8], version: usize) -> Option<Action> {
    Some(match text {
        b"add" => Action::Add,
        b"open" | b"close" | b"sync_file_range" => Action::Nothing,
        b"wait" if version == 2 => Action::Wait,
        b"read" => Action::Io(Op::Read),
        b"write" => Action::Io(Op::Write),
        b"trim" => Action::Io(Op::Deallocate),
        b"sync" | b"datasync" => Action::Io(Op::Flush),
        _ => return None,
    })
}

/// Returns the version in the first line; `None` for an empty file.
fn version(input: &mut Input) -> Result<Option<usize>, TraceError> {
    match input.line()?.map(<[u8]>::trim_ascii) {
        None => Ok(None),
        Some(b"fio version 2 iolog") => Ok(Some(2)),
        Some(b"fio version 3 iolog") => Ok(Some(3)),
        Some(_) => {
            let what = "the first line is neither `fio version 2 iolog` nor `fio version 3 iolog`";
            Err(input.at_line(what))
        }
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let Some(version) = version(input)? else {
        return Ok(());
    };
    let mut added: HashSet<Box<[u8]>> = HashSet::new();
    let mut now_us = 0u64;
    let mut waits = version == 3;
    loop {
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else { break };
        let fields = Fields::blanks(number, line);
        if fields.count() == 0 {
            continue;
        }
        // Version 3 has one more column at the start.
        let file = version - 2;
        if version == 3 {
            now_us = fields.number(0, "time in us")?;
        }
        let file_name = fields.text(file);
        let Some(action) = action(fields.text(file + 1), version) else {
            let right = if version == 2 {
                "add, open, close, read, write, trim, sync, datasync, sync_file_range or wait"
            } else {
                "add, open, close, read, write, trim, sync, datasync or sync_file_range"
            };
            return Err(fields.invalid_column(file + 1, "action", right));
        };
        let op = match action {
            Action::Add => {
                added.insert(file_name.into());
                continue;
            }
            Action::Nothing => continue,
            Action::Wait => {
                let us = fields.number(file + 2, "microseconds to wait")?;
                waits = true;
                let later = now_us.checked_add(us);
                now_us = later
                    .ok_or_else(|| fields.fault("the waits add up to more than 584,000 years"))?;
                continue;
            }
            Action::Io(op) => op,
        };
        if !added.contains(file_name) {
            let name = super::fields::shown(file_name);
            return Err(fields
                .fault(format!("file {name} has not been added"))
                .help("a line `FILE add` must come first"));
        }
        let (offset, bytes) = extent(&fields, file, op)?;
        let name = || String::from_utf8_lossy(file_name).into_owned();
        let volume = requests.volume(file_name, &fields.place(), name)?;
        let found = RawRequest::new(u128::from(now_us) * 1_000, op, offset, bytes);
        if let ControlFlow::Break(()) = requests.push(volume, &found, || fields.place())? {
            break;
        }
    }
    if !waits {
        requests.untimed();
    }
    Ok(())
}

/// Returns first byte and length of an I/O.
fn extent(fields: &Fields, file: usize, op: Op) -> Result<(u64, u64), TraceError> {
    if op == Op::Flush {
        return Ok((0, 0));
    }
    fields.expect(
        file + 4,
        "file, action, offset and length (version 3: the time first)",
    )?;
    Ok((
        fields.number(file + 2, "offset")?,
        fields.number(file + 3, "length")?,
    ))
}
