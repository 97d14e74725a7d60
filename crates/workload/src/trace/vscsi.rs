//! VMware vSCSI traces of the CloudPhysics collection: binary records, little-endian.
//!
//! Version 1 (32 bytes): serial u32, length in bytes u32, scatter-gather count u32, SCSI operation code u16, version
//! u16 (its high byte counts), LBA of 512 B u64, time in microseconds u64. Version 2 (40 bytes): operation code u16,
//! version u16, serial u32, length u32, scatter-gather count u32, LBA u64, time u64, response time in microseconds
//! u64. Not included: commands that transfer no data to or from the medium; they are counted. Source: the layout in
//! libCacheSim's vscsi reader. The sample in the shared traces is version 1. There is no sample of version 2; that
//! its response time is in microseconds is assumed, because its other time is.

use std::ops::ControlFlow;

use model::Op;

use super::input::Input;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError};
use text::problem::Place;

pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    title: "vSCSI",
    about: "vSCSI records, versions 1 and 2 (CloudPhysics)",
    looks: |head| version(head.bytes, head.all).is_some(),
    read,
};

/// Meaning of a SCSI operation code.
enum Scsi {
    Data(Op),
    /// No access to the medium.
    Other,
}

fn scsi(code: u16) -> Option<Scsi> {
    Some(match code {
        // READ(6), READ(10), READ(12), READ(16)
        0x08 | 0x28 | 0xa8 | 0x88 => Scsi::Data(Op::Read),
        // WRITE(6), (10), (12), (16), WRITE AND VERIFY (10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Scsi::Data(Op::Write),
        // SYNCHRONIZE CACHE (10), (16)
        0x35 | 0x91 => Scsi::Data(Op::Flush),
        // Other common codes: TEST UNIT READY, REQUEST SENSE, INQUIRY, RESERVE, RELEASE, MODE SENSE, START STOP UNIT,
        // READ CAPACITY, VERIFY, WRITE SAME, UNMAP, LOG SENSE, PERSISTENT RESERVE, COMPARE AND WRITE, REPORT LUNS.
        // (WRITE SAME and UNMAP record the length of their parameters here, not of the affected range.)
        0x00 | 0x03 | 0x12 | 0x16 | 0x17 | 0x1a | 0x1b | 0x25 | 0x2f | 0x41 | 0x42 | 0x4d
        | 0x5a | 0x5e | 0x5f | 0x89 | 0x8f | 0x93 | 0x9e | 0xa0 | 0xa3 => Scsi::Other,
        _ => return None,
    })
}

/// One record of either version.
struct Raw {
    code: u16,
    version: u16,
    bytes: u32,
    lba: u64,
    time_us: u64,
    response_us: Option<u64>,
}

fn number<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

fn version_1(record: &[u8; 32]) -> Raw {
    Raw {
        code: u16::from_le_bytes(number(record, 12)),
        version: u16::from_le_bytes(number(record, 14)),
        bytes: u32::from_le_bytes(number(record, 4)),
        lba: u64::from_le_bytes(number(record, 16)),
        time_us: u64::from_le_bytes(number(record, 24)),
        response_us: None,
    }
}

fn version_2(record: &[u8; 40]) -> Raw {
    Raw {
        code: u16::from_le_bytes(number(record, 0)),
        version: u16::from_le_bytes(number(record, 2)),
        bytes: u32::from_le_bytes(number(record, 8)),
        lba: u64::from_le_bytes(number(record, 16)),
        time_us: u64::from_le_bytes(number(record, 24)),
        response_us: Some(u64::from_le_bytes(number(record, 32))),
    }
}

/// Returns the version whose fields are plausible in each of the first records; records have no magic number.
fn version(head: &[u8], all: bool) -> Option<u16> {
    let fits = |line: &Raw, version: u16| line.version >> 8 == version && scsi(line.code).is_some();
    let (one, one_rest) = head.as_chunks::<32>();
    let (two, two_rest) = head.as_chunks::<40>();
    // If a file ends within its first record, no version can be detected.
    let whole = |rest: &[u8], count: usize| count > 1 || count == 1 && (rest.is_empty() || !all);
    if whole(one_rest, one.len())
        && one
            .iter()
            .take(64)
            .all(|record| fits(&version_1(record), 1))
    {
        Some(1)
    } else if whole(two_rest, two.len())
        && two
            .iter()
            .take(64)
            .all(|record| fits(&version_2(record), 2))
    {
        Some(2)
    } else {
        None
    }
}

/// Returns the version from the first record alone, for a file whose format the user named.
fn named_version(head: &[u8]) -> Option<u16> {
    if head
        .first_chunk::<32>()
        .is_some_and(|record| version_1(record).version >> 8 == 1)
    {
        return Some(1);
    }
    let second = head
        .first_chunk::<40>()
        .is_some_and(|record| version_2(record).version >> 8 == 2);
    second.then_some(2)
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    if input.head().is_empty() {
        return Ok(());
    }
    let Some(version) = version(input.head(), false).or_else(|| named_version(input.head())) else {
        let what = "the first record is of neither version 1 (32 bytes) nor version 2 (40 bytes)";
        return Err(TraceError::new(Place::Byte(0), what));
    };
    loop {
        let at = input.offset();
        let line = if version == 1 {
            input.record::<32>()?.map(|record| version_1(&record))
        } else {
            input.record::<40>()?.map(|record| version_2(&record))
        };
        let Some(line) = line else { return Ok(()) };
        let place = || Place::Byte(at);
        if line.version >> 8 != version {
            let what = format!(
                "the record's version is {:#06x}, not {version}",
                line.version
            );
            return Err(TraceError::new(place(), what));
        }
        let op = match scsi(line.code) {
            Some(Scsi::Data(op)) => op,
            Some(Scsi::Other) => {
                requests.note("SCSI commands that move no data of the medium");
                continue;
            }
            None => {
                let what = format!(
                    "the record's SCSI operation code is {:#04x}, which is not known",
                    line.code
                );
                return Err(TraceError::new(place(), what));
            }
        };
        let Some(offset) = line.lba.checked_mul(512) else {
            return Err(TraceError::new(
                place(),
                format!("LBA {:#x} is out of range", line.lba),
            ));
        };
        let volume = requests.volume(b"", &place(), || String::from("disk"))?;
        let bytes = if op == Op::Flush {
            0
        } else {
            u64::from(line.bytes)
        };
        let mut found = RawRequest::new(u128::from(line.time_us) * 1_000, op, offset, bytes);
        found.latency_ns = line.response_us.map(|us| us.saturating_mul(1_000));
        if let ControlFlow::Break(()) = requests.push(volume, &found, place)? {
            return Ok(());
        }
    }
}
