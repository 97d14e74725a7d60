//! Data integrity of a device: a read returns the newest data, each sector is consistent, and two reads agree.
//!
//! Writes, zeroes, trims and reads of any size are in flight together over a few regions, so that they overlap. If
//! several writes were in flight together, any of them may be the last, but once a read has returned one, it remains.
//! Not tested: the state after a power cut.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Command, Completion, Op, Payload, Status};
use crate::data::{Buffers, Bytes};
use crate::device::Device;
use crate::random::Stream;
use crate::time::{Span, Time};

/// Maximum number of outstanding commands.
const DEPTH: usize = 12;
/// Commands per seed.
const COMMANDS: u32 = 4000;
/// Number of seeds.
const SEEDS: u64 = 6;
/// Bytes used in a region, and the offsets at which regions begin.
const REGION: u64 = 128 << 10;
const REGIONS: u64 = 4;
const SECTOR: usize = 512;

/// Possible content of a sector: the number of a write, 0 for zeroes.
type Version = u64;
/// After a trim a sector may contain anything.
const ANYTHING: Version = u64::MAX;

/// Panics unless a read of the device that `make(seed, buffers)` builds returns the newest data.
///
/// # Panics
/// With the data that was read instead.
pub fn check_data<D: Device>(make: impl Fn(u64, &Bytes) -> D) {
    for seed in 0..SEEDS {
        let buffers = Bytes::default();
        let device = make(seed, &buffers);
        if let Err(what) = DataHost::new(seed, device, buffers).run() {
            panic!("seed {seed}: {what}");
        }
    }
}

/// Known state of a sector.
#[derive(Clone, Default)]
struct SectorVersions {
    /// Possible contents.
    may: Vec<Version>,
    /// Number of writes in flight, and the index in `may` of the first one since there was none in flight.
    pending: u32,
    group: usize,
    /// Number of changes: if the number is equal at two times, nothing was written in between.
    changes: u64,
}

impl SectorVersions {
    /// A write to the sector is in flight.
    fn begin(&mut self, version: Version) {
        if self.pending == 0 {
            self.group = self.may.len();
        }
        self.may.push(version);
        self.pending += 1;
        self.changes += 1;
    }

    /// A write has completed. If several were in flight together, any may be the last; when the last of them completes,
    /// older contents are no longer possible.
    fn end(&mut self) {
        self.pending -= 1;
        self.changes += 1;
        if self.pending == 0 {
            self.may.drain(..self.group);
        }
    }
}

/// An outstanding command.
struct CheckedCommand {
    command: Command,
    /// First sector of the command.
    first: usize,
    version: Version,
    /// For a read: the possible contents of each sector since its submission, and the sector's number of changes at
    /// that time.
    before: Vec<(Vec<Version>, u64)>,
}

struct DataHost<D> {
    device: D,
    buffers: Bytes,
    stream: Stream,
    now: Time,
    /// Sectors of all regions in sequence, and where each region begins.
    sectors: Vec<SectorVersions>,
    begins: Vec<u64>,
    sent: Vec<Option<CheckedCommand>>,
    last: Version,
}

impl<D: Device> DataHost<D> {
    fn new(seed: u64, device: D, buffers: Bytes) -> DataHost<D> {
        let capacity = device.capacity().bytes;
        let apart = capacity / REGIONS / 4096 * 4096;
        assert!(apart >= REGION, "too small for {REGIONS} regions");
        // The last region ends at the end of the device.
        let begins = (0..REGIONS).map(|region| match region {
            3 => (capacity - REGION) / 4096 * 4096,
            _ => region * apart,
        });
        let sector = SectorVersions {
            may: vec![0],
            ..SectorVersions::default()
        };
        DataHost {
            device,
            buffers,
            stream: Stream::new(seed, "data"),
            now: Time::ZERO,
            sectors: vec![sector; (REGIONS * REGION) as usize / SECTOR],
            begins: begins.collect(),
            sent: (0..DEPTH).map(|_| None).collect(),
            last: 0,
        }
    }

    fn run(mut self) -> Result<(), String> {
        for _ in 0..COMMANDS {
            while self.sent.iter().all(Option::is_some) {
                self.step(Time::NEVER)?;
            }
            self.submit();
            // Sometimes at once, sometimes after a pause.
            let pause = [0, 0, 2_000, 50_000][self.stream.uniform_below(4) as usize];
            let until = self.now + Span::from_ns(self.stream.uniform_below(pause + 1));
            while self.device.next_event() <= until {
                self.step(until)?;
            }
            self.now = until;
        }
        while self.sent.iter().any(Option::is_some) {
            self.step(Time::NEVER)?;
        }
        Ok(())
    }

    fn submit(&mut self) {
        let id = self.sent.iter().position(Option::is_none).unwrap_or(0);
        let region = self.stream.uniform_below(REGIONS);
        let bytes = match self.stream.uniform_below(6) {
            0 => 512 * (1 + self.stream.uniform_below(20)),
            1 => 4096 * (1 + self.stream.uniform_below(16)),
            _ => 4096,
        };
        let unit = if bytes % 4096 == 0 { 4096 } else { 512 };
        let within = self.stream.uniform_below((REGION - bytes) / unit + 1) * unit;
        let op = match self.stream.uniform_below(20) {
            0 => Op::Flush,
            1 => Op::WriteZeroes,
            2 => Op::Deallocate,
            3..=10 => Op::Write,
            _ => Op::Read,
        };
        let payload = match op.transfers() {
            true => self.buffers.take(bytes as u32),
            false => Payload::default(),
        };
        let command = Command {
            payload,
            fua: op == Op::Write && self.stream.uniform_below(8) == 0,
            ..Command::new(
                id as u32,
                op,
                self.begins[region as usize] + within,
                bytes as u32,
            )
        };
        let first = ((region * REGION + within) / SECTOR as u64) as usize;
        let sectors = first..first + bytes as usize / SECTOR;
        let mut sent = CheckedCommand {
            command,
            first,
            version: 0,
            before: Vec::new(),
        };
        match op {
            Op::Flush => {}
            Op::Read => {
                let known = |it: &SectorVersions| (it.may.clone(), it.changes);
                sent.before = self.sectors[sectors].iter().map(known).collect();
            }
            _ => {
                sent.version = match op {
                    Op::Write => self.stamped(payload, bytes as u32, first as u64),
                    Op::WriteZeroes => 0,
                    _ => ANYTHING,
                };
                for sector in &mut self.sectors[sectors.clone()] {
                    sector.begin(sent.version);
                }
                // A read that is in flight may return it, whatever follows.
                for read in self.sent.iter_mut().flatten() {
                    let known = (read.first..).zip(&mut read.before);
                    for (_, before) in known.filter(|(at, _)| sectors.contains(at)) {
                        before.0.push(sent.version);
                    }
                }
            }
        }
        self.sent[id] = Some(sent);
        self.device.submit(self.now, command);
    }

    /// Fills a buffer with the next version of the sectors, starting at `first`.
    fn stamped(&mut self, payload: Payload, bytes: u32, first: u64) -> Version {
        self.last += 1;
        let version = self.last;
        self.buffers.with_mut(payload, bytes, |data| {
            for (at, sector) in (first..).zip(data.chunks_mut(SECTOR)) {
                stamp(sector, version, at);
            }
        });
        version
    }

    /// Processes one event, before `until`.
    fn step(&mut self, until: Time) -> Result<(), String> {
        let next = self.device.next_event();
        if next == Time::NEVER {
            return Err(format!(
                "at {:?} the device is idle with commands inside",
                self.now
            ));
        }
        let mut done = Vec::new();
        self.now = self.device.advance(next, until.max(next), &mut done);
        done.iter().try_for_each(|it| self.complete(it))
    }

    fn complete(&mut self, done: &Completion) -> Result<(), String> {
        let Some(sent) = self.sent[done.id as usize].take() else {
            return Err(format!("{done:?} completes twice"));
        };
        if done.status != Status::Success {
            return Err(format!("{:?} ended with {:?}", sent.command, done.status));
        }
        let command = sent.command;
        let first = sent.first;
        let count = command.bytes as usize / SECTOR;
        match command.op {
            Op::Flush => {}
            Op::Read => {
                let mut data = vec![0; command.bytes as usize];
                self.buffers
                    .with_bytes(command.payload, command.bytes, |bytes| {
                        data.copy_from_slice(bytes)
                    });
                for (index, (bytes, before)) in data.chunks(SECTOR).zip(&sent.before).enumerate() {
                    self.judge(first + index, bytes, before)
                        .map_err(|what| format!("{command:?} at {:?}: {what}", self.now))?;
                }
            }
            _ => {
                for sector in &mut self.sectors[first..first + count] {
                    sector.end();
                }
            }
        }
        if command.op.transfers() {
            self.buffers.release(command.payload);
        }
        Ok(())
    }

    fn judge(
        &mut self,
        at: usize,
        bytes: &[u8],
        before: &(Vec<Version>, u64),
    ) -> Result<(), String> {
        let sector = &mut self.sectors[at];
        let allowed = || before.0.iter();
        if allowed().any(|&it| it == ANYTHING) {
            return Ok(());
        }
        let Some(version) = read_stamp(bytes, at as u64) else {
            return Err(format!(
                "sector {at} is torn or another's: {:?}",
                &bytes[..24]
            ));
        };
        if !allowed().any(|&it| it == version) {
            return Err(format!(
                "sector {at} holds {version}, not one of {:?}",
                before.0
            ));
        }
        // Nothing was written meanwhile, so this is the content from now on.
        if sector.pending == 0 && sector.changes == before.1 {
            sector.may = vec![version];
        }
        Ok(())
    }
}

/// Marks every part of a sector with its write and its location.
fn stamp(sector: &mut [u8], version: Version, at: u64) {
    for (index, word) in sector.chunks_mut(8).enumerate() {
        let value = if index % 2 == 0 { version } else { at };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Returns the write of a sector, if the whole sector is consistent.
fn read_stamp(sector: &[u8], at: u64) -> Option<Version> {
    if sector.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let version = u64::from_le_bytes(sector[..8].try_into().ok()?);
    let mut expected = [0; SECTOR];
    stamp(&mut expected, version, at);
    (sector == expected).then_some(version)
}
