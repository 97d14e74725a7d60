//! A RAM disk: one server with a fixed time per command and a bandwidth, or one for reads and one for writes.
//!
//! The data of a command may take a random time (`spread`): a fixed share, and an exponentially distributed rest. A module
//! of persistent memory writes lines of its own size from a buffer, so equal writes take unequal times.
//!
//! Its data survives a power cut, as if it had a battery. Nothing else is modelled. Without `spread`, it is the reference
//! for host paths and tiers (S2 measures one), and an M/D/1 queue. The share of persistent memory is set from a measurement
//! (P0439).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::engine::Station;
use crate::management::LbaFormat;
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Properties of a module on the memory bus. The processor copies the data within the call that submits a command, so its
/// host needs no interrupt and no thread sleeps.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MemoryBus {
    /// As [`RamConfig::picoseconds_per_byte`], for reads.
    pub read_picoseconds_per_byte: u64,
}

/// Configuration of a RAM disk.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RamConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Time for any command.
    pub per_command: Span,
    /// Picoseconds for each byte transferred, mean.
    pub picoseconds_per_byte: u64,
    /// Properties of a module on the memory bus; `None` for a device that reports completions.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub memory_bus: Option<MemoryBus>,
    /// Share of that time that is exponentially distributed (0 to 1); the rest is fixed.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub spread: f64,
}

#[cfg(feature = "serde")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// A RAM disk.
#[derive(Clone, Debug)]
pub struct Ram {
    config: RamConfig,
    server: Station,
    /// In order of completion, because one FIFO server completes them.
    in_flight: VecDeque<Completion>,
    read: u64,
    written: u64,
    /// Random parts of times.
    random: Stream,
}

impl Ram {
    /// Creates an empty RAM disk. With a `spread`, its random times are those of seed 0.
    pub fn new(config: RamConfig) -> Ram {
        Ram::seeded(config, 0)
    }

    /// Creates an empty RAM disk with this seed for its random times.
    pub fn seeded(config: RamConfig, seed: u64) -> Ram {
        Ram {
            config,
            random: Stream::new(seed, "transfer"),
            server: Station::default(),
            in_flight: VecDeque::new(),
            read: 0,
            written: 0,
        }
    }
}

impl Ram {
    /// Returns a random time with this mean.
    fn vary(&mut self, mean: Span) -> Span {
        if self.config.spread == 0.0 {
            return mean;
        }
        let random = mean.scale(self.config.spread);
        mean.saturating_sub(random) + self.random.exponential(random)
    }
}

impl Device for Ram {
    fn capacity(&self) -> Capacity {
        Capacity {
            bytes: self.config.bytes,
            block: 512,
        }
    }

    fn submit(&mut self, now: Time, command: Command) {
        let refused = !command.fits(self.config.bytes);
        let moved = if command.op.transfers() && !refused {
            u64::from(command.bytes)
        } else {
            0
        };
        match command.op {
            Op::Read => self.read += moved,
            _ => self.written += moved,
        }
        let per_byte = match (command.op, &self.config.memory_bus) {
            (Op::Read, Some(bus)) => bus.read_picoseconds_per_byte,
            _ => self.config.picoseconds_per_byte,
        };
        let mean = Span::per_bytes(per_byte, moved);
        let transfer = self.vary(mean);
        let (waited, at) = self.server.book(now, self.config.per_command + transfer);
        let mut anatomy = Anatomy::ZERO;
        anatomy.add(Part::Controller, waited + self.config.per_command);
        anatomy.add(Part::Transfer, transfer);
        let status = if refused {
            Status::LbaOutOfRange
        } else {
            Status::Success
        };
        self.in_flight.push_back(Completion {
            id: command.id,
            at,
            status,
            anatomy,
        });
    }

    fn next_event(&self) -> Time {
        self.in_flight
            .front()
            .map_or(Time::NEVER, |completion| completion.at)
    }

    fn advance(&mut self, now: Time, _horizon: Time, done: &mut Vec<Completion>) -> Time {
        while self
            .in_flight
            .front()
            .is_some_and(|completion| completion.at == now)
        {
            done.extend(self.in_flight.pop_front());
        }
        now
    }

    fn power_cut(&mut self, now: Time, _lost: &mut Vec<Range>) -> Time {
        self.in_flight.clear();
        self.server.clear(now);
        now
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        gauges.gauge(Gauge::HostBytesRead, self.read as f64);
        gauges.gauge(Gauge::HostBytesWritten, self.written as f64);
        gauges.gauge(
            Gauge::ControllerBusySeconds,
            self.server.busy(now).seconds(),
        );
        gauges.gauge(Gauge::QueueDepth, self.in_flight.len() as f64);
    }
}

impl Medium for RamConfig {
    type Drive = Ram;

    fn build(&self, _state: Precondition, seeds: impl Into<Seeds>) -> Ram {
        Ram::seeded(self.clone(), seeds.into().run)
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes
    }

    fn shrunk(&self, bytes: u64) -> RamConfig {
        RamConfig {
            bytes: self.bytes.min((bytes / 4096).max(1) * 4096),
            ..self.clone()
        }
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        self.picoseconds_per_byte = format.longer(self.picoseconds_per_byte);
        if let Some(bus) = &mut self.memory_bus {
            bus.read_picoseconds_per_byte = format.longer(bus.read_picoseconds_per_byte);
        }
    }

    /// The whole capacity is overwritten.
    fn format_duration(&self) -> Span {
        Span::from_seconds(self.picoseconds_per_byte as f64 * self.bytes as f64 * 1e-12)
    }

    fn idle_watts(&self) -> f64 {
        0.0
    }
}

impl MediumDrive for Ram {
    type Config = RamConfig;
}
