//! The binary trace of Linux's blktrace, of one processor (`sda.blktrace.0`) or merged (`blkparse -i sda -d all.bin`).
//!
//! Each event is a header of 48 bytes, followed by its payload. Header: magic and version u32, sequence u32, time in
//! ns u64, sector u64, bytes u32, action u32, process u32, device u32, processor u32, error u16, payload length u16.
//! The byte order is that of the machine that wrote the file; the magic number shows it. The low half of the action
//! is the event, the high half the kind of request.
//!
//! A request is one that was issued to the driver (action D). Its issue time is the arrival, because the drive sees
//! the request at this time, and the time to its completion (C) is its recorded latency. Queue events (Q) are
//! counted; the time from queue to issue is not part of the latency. Not included: requests that do not access the
//! medium (pass-through commands), merges, splits, remaps and plugs. Source: the layout in the shared traces and the
//! kernel's uapi/linux/blktrace_api.h.

use std::ops::ControlFlow;

use model::Op;

use super::input::Input;
use super::issued::IssueTable;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError};
use text::problem::Place;

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    title: "blktrace binary",
    about: "blktrace's binary: requests by issue, latency to completion",
    looks: |head| {
        head.bytes
            .first_chunk::<4>()
            .is_some_and(|bytes| big_endian(*bytes).is_some())
    },
    read,
};

/// The upper three bytes of the magic number; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Low half of the action.
const QUEUE: u16 = 1;
const REQUEUE: u16 = 6;
const ISSUE: u16 = 7;
const COMPLETE: u16 = 8;

/// High half of the action.
const WRITE: u16 = 1 << 1;
const FLUSH: u16 = 1 << 2;
const PASS_THROUGH: u16 = 1 << 9;
const NOTIFY: u16 = 1 << 10;
const DISCARD: u16 = 1 << 13;
const FUA: u16 = 1 << 15;

/// Checks whether a file with this beginning is big-endian; `None` if it is not a blktrace.
fn big_endian(magic: [u8; 4]) -> Option<bool> {
    if u32::from_le_bytes(magic) & !0xff == MAGIC {
        Some(false)
    } else if u32::from_be_bytes(magic) & !0xff == MAGIC {
        Some(true)
    } else {
        None
    }
}

/// An event with its header fields.
struct BlktraceRecord {
    magic: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    what: u16,
    kind: u16,
    device: u32,
    payload: u16,
}

impl BlktraceRecord {
    fn new(header: &[u8; 48], big_endian: bool) -> BlktraceRecord {
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&header[at..at + 4]);
            if big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let long = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            if big_endian {
                first << 32 | second
            } else {
                second << 32 | first
            }
        };
        let payload = [header[46], header[47]];
        BlktraceRecord {
            magic: word(0),
            time_ns: long(8),
            sector: long(16),
            bytes: word(24),
            what: word(28) as u16,
            kind: (word(28) >> 16) as u16,
            device: word(36),
            payload: if big_endian {
                u16::from_be_bytes(payload)
            } else {
                u16::from_le_bytes(payload)
            },
        }
    }

    fn op(&self) -> Op {
        if self.kind & DISCARD != 0 {
            Op::Deallocate
        } else if self.kind & FLUSH != 0 && self.bytes == 0 {
            Op::Flush
        } else if self.kind & WRITE != 0 {
            Op::Write
        } else {
            Op::Read
        }
    }

    /// Returns device and sector.
    fn target(&self) -> (u64, u64) {
        (u64::from(self.device), self.sector)
    }

    /// Returns the device as the kernel counts it: 20 bits of minor number.
    fn device_name(&self) -> String {
        format!("{},{}", self.device >> 20, self.device & 0xf_ffff)
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let Some(magic) = input.head().first_chunk::<4>() else {
        return Ok(());
    };
    let Some(big_endian) = big_endian(*magic) else {
        return Err(TraceError::new(
            Place::Byte(0),
            "the magic number of blktrace is missing",
        ));
    };
    let mut issued = IssueTable::default();
    loop {
        let at = input.offset();
        let Some(header) = input.record::<48>()? else {
            break;
        };
        let event = BlktraceRecord::new(&header, big_endian);
        if event.magic & !0xff != MAGIC {
            let what = format!(
                "the magic number of an event is missing: found {:#010x}",
                event.magic
            );
            return Err(TraceError::new(Place::Byte(at), what));
        }
        if event.magic & 0xff != VERSION {
            let what = format!(
                "the event is of version {}; only 7 is known",
                event.magic & 0xff
            );
            return Err(TraceError::new(Place::Byte(at), what));
        }
        input.skip(usize::from(event.payload))?;
        if event.kind & NOTIFY != 0 {
            continue;
        }
        match event.what {
            QUEUE => requests.note("requests queued"),
            ISSUE => {
                if let ControlFlow::Break(()) = issue(&event, at, requests, &mut issued)? {
                    break;
                }
            }
            COMPLETE => issued.complete(event.target(), event.time_ns, requests),
            REQUEUE => issued.requeue(event.target(), requests),
            _ => {}
        }
    }
    issued.finish(requests);
    Ok(())
}

fn issue(
    event: &BlktraceRecord,
    at: u64,
    requests: &mut Requests,
    issued: &mut IssueTable,
) -> Result<ControlFlow<()>, TraceError> {
    if event.kind & PASS_THROUGH != 0 {
        requests.note("pass-through commands");
        return Ok(ControlFlow::Continue(()));
    }
    let place = || Place::Byte(at);
    let op = event.op();
    let offset = if op == Op::Flush {
        Some(0)
    } else {
        event.sector.checked_mul(512)
    };
    let Some(offset) = offset else {
        return Err(TraceError::new(
            place(),
            format!("sector {:#x} is out of range", event.sector),
        ));
    };
    let volume = requests.volume(&event.device.to_le_bytes(), &place(), || {
        event.device_name()
    })?;
    let mut found = RawRequest::new(
        u128::from(event.time_ns),
        op,
        offset,
        u64::from(event.bytes),
    );
    found.fua = event.kind & FUA != 0 && op == Op::Write;
    match requests.push(volume, &found, place)? {
        ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
        ControlFlow::Continue(index) => {
            issued.issue(event.target(), index, event.time_ns);
            Ok(ControlFlow::Continue(()))
        }
    }
}
