//! Contract and data integrity of a write-back cache; absorption, destaging and delays.

mod cleaning;
mod client;
mod committing;
mod faults;
mod laws;
mod passing;
mod pressure;
mod recovery;

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use model::device::{Device, Gauge, Gauges};
use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};
use model::time::{Span, Time};

use super::{
    BypassPolicy, Cleaning, CommitPolicy, Congestion, Destage, Durability, IdleCleaning,
    RateControl, WriteBackConfig,
};
use crate::{DriveConfig, Kind, Member, Pool, PoolConfig, Target, TierConfig};

const MIB: u64 = 1 << 20;
const UNIT: u32 = 4096;

/// A drive with 1 us and 10 GB/s.
fn ram(bytes: u64) -> DriveConfig {
    slow(bytes, 1)
}

/// A drive with a latency of `us` microseconds.
fn slow(bytes: u64, us: u64) -> DriveConfig {
    DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(us),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

/// A ring of small segments, with short times.
fn small() -> WriteBackConfig {
    WriteBackConfig {
        segment: 64 << 10,
        record: 32 << 10,
        records_in_flight: 3,
        chunk: 12 << 10,
        destage: Destage {
            pause: Span::from_us(50),
            round: 128 << 10,
            merge: 64 << 10,
            ..WriteBackConfig::VSAN.destage
        },
        congestion: Congestion {
            delay: Span::from_us(100),
            ..WriteBackConfig::VSAN.congestion
        },
        ..WriteBackConfig::PLAIN
    }
}

/// A write-back cache with the first of these drives as cache and the others as capacity tier.
fn group(config: WriteBackConfig, drives: &[DriveConfig]) -> PoolConfig<DriveConfig> {
    let slice = |(member, drive): (usize, &DriveConfig)| Target::Slice {
        member: member as u16,
        base: 0,
        bytes: drive.capacity_bytes() / u64::from(UNIT) * u64::from(UNIT),
    };
    let member = |(index, drive): (usize, &DriveConfig)| Member {
        name: index.to_string(),
        drive: drive.clone(),
    };
    let config = PoolConfig {
        members: drives.iter().enumerate().map(member).collect(),
        tiers: Vec::from([TierConfig {
            name: "group".into(),
            kind: Kind::WriteBack(config),
            children: drives.iter().enumerate().map(slice).collect(),
        }]),
        volumes: Vec::from([0]),
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

fn built(config: &PoolConfig<DriveConfig>) -> Box<Pool<crate::Drive>> {
    Box::new(config.build(Precondition::Steady, 1))
}

/// Gauges that a device reports.
#[derive(Default)]
struct Readings(Vec<(Gauge, f64)>);

impl Gauges for Readings {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        self.0.push((gauge, value));
    }
}

fn gauge<D: Device>(device: &D, now: Time, wanted: Gauge) -> f64 {
    let mut readings = Readings::default();
    device.inspect(now, &mut readings);
    let told = readings.0.iter().filter(|(gauge, _)| *gauge == wanted);
    told.map(|(_, value)| value).sum()
}
