//! Law 9: data that was acknowledged by a flush, or by a write with force unit access, survives a power cut. Lost data
//! was acknowledged after that, or was being written, and was in a buffer. No command from before the power cut
//! completes after it.
//!
//! Writes, flushes and reads over a few megabytes, so that many overwrite each other, and power cuts at events and
//! between them. Not tested: the outcome of commands that were in flight (both are correct).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{GaugeReadings, Law, Suite, Violation, broken};
use crate::command::{Command, Completion, Op, Status};
use crate::device::{Device, Gauge, Range};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Maximum number of outstanding commands.
const DEPTH: u32 = 24;
/// Bytes that are overwritten repeatedly.
const HOT: u64 = 4 << 20;
/// Power cuts per run.
const CUTS: u32 = 12;
/// Maximum number of commands between two power cuts.
const COMMANDS: u64 = 400;
/// Events without a completion after which a device with outstanding commands is stuck.
const RESTLESS: u32 = 1_000_000;

/// An outstanding command.
#[derive(Clone, Copy)]
struct PendingCommand {
    command: Command,
    at: Time,
    /// Number of earlier acknowledgements.
    before: u64,
}

/// Known state of a sector, as numbers of acknowledgements.
#[derive(Clone, Copy, Default)]
struct SectorDurability {
    written: u64,
    /// Number of acknowledgements before a write with force unit access, which made them durable or was newer.
    through: u64,
}

/// A host that records the acknowledgements which it received.
struct PowerCutHost<D> {
    device: D,
    stream: Stream,
    queues: u64,
    span: u64,
    now: Time,
    sent: Vec<Option<PendingCommand>>,
    /// Acknowledgements so far, and how many of them a flush has made durable.
    acknowledged: u64,
    flushed: u64,
    sectors: BTreeMap<u64, SectorDurability>,
    lost: u64,
}

/// Cuts the power of a device repeatedly; returns the bytes that it lost.
///
/// # Errors
/// The first violated law.
pub(super) fn cuts<D: Device>(suite: &Suite, seed: u64, device: D) -> Result<u64, Violation> {
    let span = device.capacity().bytes.min(HOT);
    let mut host = PowerCutHost {
        device,
        stream: Stream::new(seed, "power cuts"),
        queues: u64::from(suite.queues),
        span,
        now: Time::ZERO,
        sent: vec![None; DEPTH as usize],
        acknowledged: 0,
        flushed: 0,
        sectors: BTreeMap::new(),
        lost: 0,
    };
    for _ in 0..CUTS {
        let commands = 1 + host.stream.uniform_below(COMMANDS);
        for _ in 0..commands {
            host.submit();
            let steps = host.stream.uniform_below(4);
            for _ in 0..steps {
                host.step()?;
            }
            while host.sent.iter().all(Option::is_some) {
                host.step()?;
            }
        }
        host.cut()?;
    }
    while host.sent.iter().any(Option::is_some) {
        host.step()?;
    }
    Ok(host.lost)
}

fn sectors_of(offset: u64, bytes: u64) -> impl Iterator<Item = u64> {
    offset / 512..(offset + bytes).div_ceil(512)
}

impl<D: Device> PowerCutHost<D> {
    fn submit(&mut self) {
        let Some(id) = self.sent.iter().position(Option::is_none) else {
            return;
        };
        let op = match self.stream.uniform_below(16) {
            0 => Op::Flush,
            1 => Op::Read,
            _ => Op::Write,
        };
        let bytes = match self.stream.uniform_below(8) {
            0 => 512 * (1 + self.stream.uniform_below(15)),
            1 => 4096 * (1 + self.stream.uniform_below(16)),
            _ => 4096,
        };
        let unit = if bytes % 4096 == 0 { 4096 } else { 512 };
        let offset = self.stream.uniform_below((self.span - bytes) / unit + 1) * unit;
        let fua = op == Op::Write && self.stream.uniform_below(12) == 0;
        let command = Command {
            fua,
            queue: self.stream.uniform_below(self.queues) as u16,
            ..Command::new(id as u32, op, offset, bytes as u32)
        };
        self.sent[id] = Some(PendingCommand {
            command,
            at: self.now,
            before: self.acknowledged,
        });
        self.device.submit(self.now, command);
    }

    /// Advances to the next event.
    fn step(&mut self) -> Result<(), Violation> {
        let mut done = Vec::new();
        for _ in 0..RESTLESS {
            let next = self.device.next_event();
            if next < self.now {
                return broken(
                    Law::PowerCut,
                    format!("an event at {next:?}, before {:?}", self.now),
                );
            }
            if next == Time::NEVER {
                break;
            }
            self.now = next;
            self.device.advance(next, next, &mut done);
            if !done.is_empty() || self.stream.uniform_below(3) == 0 {
                return done.iter().try_for_each(|it| self.completed(it));
            }
        }
        match self.sent.iter().flatten().next() {
            Some(sent) => broken(Law::PowerCut, format!("{:?} never completes", sent.command)),
            None => Ok(()),
        }
    }

    fn completed(&mut self, completion: &Completion) -> Result<(), Violation> {
        let place = self.sent.get_mut(completion.id as usize);
        let Some(sent) = place.and_then(Option::take) else {
            return broken(
                Law::PowerCut,
                format!("{completion:?}, and nothing is outstanding"),
            );
        };
        if completion.anatomy.total() != self.now.since(sent.at) {
            let of = sent.command;
            return broken(
                Law::PowerCut,
                format!("{completion:?} is not of {of:?}, sent at {:?}", sent.at),
            );
        }
        let command = sent.command;
        if completion.status != Status::Success {
            return Ok(());
        }
        match command.op {
            Op::Flush => self.flushed = self.flushed.max(sent.before),
            Op::Read => {}
            _ => {
                self.acknowledged += 1;
                for sector in sectors_of(command.offset, command.bytes.into()) {
                    let known = self.sectors.entry(sector).or_default();
                    if command.fua {
                        // Data that was acknowledged while the command was outstanding may be newer.
                        known.through = known.through.max(sent.before);
                    } else {
                        known.written = self.acknowledged;
                    }
                }
            }
        }
        Ok(())
    }

    fn cut(&mut self) -> Result<(), Violation> {
        // At an event, or between two events.
        let next = self.device.next_event();
        if next != Time::NEVER && self.stream.uniform_below(2) == 0 {
            self.now = Time::from_ns(self.now.ns().midpoint(next.ns()));
        }
        let buffered = self.gauge(Gauge::BufferedBytes);
        let (mut at_risk, mut lost) = (Vec::new(), Vec::new());
        self.device.at_risk(&mut at_risk);
        let back = self.device.power_cut(self.now, &mut lost);
        if back < self.now {
            return broken(
                Law::PowerCut,
                format!("back at {back:?}, before {:?}", self.now),
            );
        }
        self.now = back;
        let bytes: u64 = lost.iter().map(|it| it.bytes).sum();
        if at_risk != lost {
            return broken(
                Law::PowerCut,
                format!("{at_risk:?} were at risk, and {lost:?} lost"),
            );
        }
        if bytes as f64 > buffered {
            return broken(
                Law::PowerCut,
                format!("{bytes} bytes lost of {buffered} in buffers"),
            );
        }
        lost.iter().try_for_each(|it| self.may_be_lost(it))?;
        if self.gauge(Gauge::QueueDepth) != 0.0 {
            return broken(
                Law::PowerCut,
                "commands are inside after a power cut".into(),
            );
        }
        self.lost += bytes;
        self.sent.fill(None);
        self.sectors.clear();
        self.now += Span::from_us(self.stream.uniform_below(2000));
        // Events due in the meantime belong to the device itself.
        while self.device.next_event() <= self.now {
            let next = self.device.next_event();
            let mut done = Vec::new();
            self.device.advance(next, next, &mut done);
            if let Some(completion) = done.first() {
                return broken(Law::PowerCut, format!("{completion:?} after a power cut"));
            }
        }
        Ok(())
    }

    /// In each unit of the lost data, a sector was written since it was durable, or was being written. (The unit's
    /// other sectors are on the medium, unchanged.)
    fn may_be_lost(&self, lost: &Range) -> Result<(), Violation> {
        let end = lost.offset + lost.bytes;
        for unit in (lost.offset..end).step_by(4096) {
            let mut sectors = sectors_of(unit, (end - unit).min(4096));
            let at_risk = sectors.any(|sector| {
                let known = self.sectors.get(&sector).copied().unwrap_or_default();
                known.written > known.through.max(self.flushed) || self.being_written(sector)
            });
            if !at_risk {
                return broken(
                    Law::PowerCut,
                    format!("{lost:?}: the unit at {unit} was durable, and is lost"),
                );
            }
        }
        Ok(())
    }

    fn being_written(&self, sector: u64) -> bool {
        self.sent.iter().flatten().any(|sent| {
            let command = &sent.command;
            let mut sectors = sectors_of(command.offset, command.bytes.into());
            command.op == Op::Write && sectors.any(|it| it == sector)
        })
    }

    fn gauge(&self, gauge: Gauge) -> f64 {
        let mut readings = GaugeReadings::default();
        self.device.inspect(self.now, &mut readings);
        readings.sum(gauge)
    }
}
