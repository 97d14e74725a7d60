//! An intent log that is started a second time: records that its first crash left after a gap remain there, and
//! missing durable records are reported.

use model::data::{Buffers, Bytes, Contents, DataBackedDrive, Image, Unreadable, Unwritable};
use model::media::ram::RamConfig;
use model::media::{Medium, Precondition};
use model::{Command, Device, Span, Time};
use tier::offline::{self, Images, RecoveredTiers, RecoveryFinding};
use tier::{
    Drive, DriveConfig, IntentLogConfig, Kind, LogCpu, LogScale, Logbias, Member, Pool, PoolConfig,
    SyncPolicy, Target, TierConfig,
};

const POOL: u128 = 7;
const UNIT: u32 = 4096;

struct Shelf(Vec<Image>);

impl Images for Shelf {
    fn present(&self, _: u16) -> bool {
        true
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.0[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

/// Returns a volume with a main pool that takes long to write a transaction group, and a log on which two blocks can
/// be in flight at the same time.
fn volume() -> PoolConfig<DriveConfig> {
    let sizes = [8 << 20, 512 << 10];
    let times = [Span::from_ms(10), Span::from_us(40)];
    let member = |(index, bytes): (usize, u64)| Member {
        name: index.to_string(),
        drive: DriveConfig::Ram(RamConfig {
            bytes,
            per_command: times[index],
            picoseconds_per_byte: 100,
            memory_bus: None,
            spread: 0.0,
        }),
    };
    let slice = |(member, bytes): (usize, u64)| Target::Slice {
        member: member as u16,
        base: 0,
        bytes,
    };
    let log = IntentLogConfig {
        size: 1 << 20,
        ram: 10 << 20,
        record: 16 << 10,
        stored: None,
        autotrim: None,
        run: 64 << 10,
        filled: false,
        lanes: 1,
        sync: SyncPolicy::Standard,
        logbias: Logbias::Latency,
        slog_bulk: 64 << 20,
        block: 128 << 10,
        txg: Span::from_ms(5000),
        cpu: LogCpu::default(),
        scale: LogScale::default(),
    };
    PoolConfig {
        members: sizes.into_iter().enumerate().map(member).collect(),
        tiers: vec![TierConfig {
            name: "tank".into(),
            kind: Kind::IntentLog(log),
            children: sizes.into_iter().enumerate().map(slice).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    }
}

fn found(shelf: &mut Shelf) -> RecoveredTiers {
    offline::recover(&volume(), POOL, shelf).expect("it is right")
}

/// Starts the volume, fills a transaction group with `fill` units, and writes `units` with force unit access, each
/// `apart` after the previous one. Cuts power when all are acknowledged and the group is not on the main pool.
fn life(shelf: &mut Shelf, fill: u64, units: &[u64], apart: Span, byte: u8) {
    let config = volume();
    let tiers = found(shelf).tiers(&config);
    let mut bytes = Bytes::default();
    let members = config.members.iter().zip(&shelf.0);
    let kept = members.map(|(member, image)| {
        let drive: Drive = member.drive.build(Precondition::Fresh, 1);
        DataBackedDrive::new(drive, image.clone(), bytes.clone(), false)
    });
    let mut pool = Pool::resume(&config, kept.collect(), tiers, bytes.clone());
    let (mut at, mut done) = (Time::ZERO, Vec::new());
    let filling = (0..fill).map(|index| (64 + 4 * index, false));
    let all: Vec<(u64, bool)> = filling.chain(units.iter().map(|&it| (it, true))).collect();
    for (id, &(unit, fua)) in (0..).zip(&all) {
        let payload = bytes.take(UNIT);
        bytes.put(payload, &[byte; UNIT as usize]);
        while pool.next_event() <= at {
            let next = pool.next_event();
            pool.advance(next, next, &mut done);
        }
        let command = Command {
            fua,
            payload,
            ..Command::write(id, unit * u64::from(UNIT), UNIT)
        };
        pool.submit(at, command);
        if fua {
            at += apart;
        }
    }
    while done.len() < all.len() {
        let next = pool.next_event();
        pool.advance(next, next, &mut done);
    }
    shelf.0 = pool
        .members()
        .iter()
        .map(|it| it.contents().clone())
        .collect();
}

/// Returns a new volume whose second log block is torn after this epoch. The first block has sixteen units.
fn torn(units: &[u64], apart: Span) -> Shelf {
    let mut shelf = Shelf(vec![Image::default(); 2]);
    offline::format(&volume(), POOL, &mut shelf).expect("all are there");
    life(&mut shelf, 14, units, apart, 7);
    let second = 16 * u64::from(UNIT);
    shelf.0[1].zero(second, 512).expect("it is in memory");
    shelf
}

/// Checks whether any result is wrong.
pub(crate) fn are_wrong() -> bool {
    // In sequence: each record states that the previous one is durable.
    let mut shelf = torn(&[0, 1, 2, 3], Span::from_ms(1));
    let told = found(&mut shelf).found;
    let silent = !told
        .iter()
        .any(|it| matches!(it.1, RecoveryFinding::Lost(_)));
    // Together: neither depends on the other. The second epoch replaces the torn block by another block of that size.
    let mut shelf = torn(&[0, 1, 2], Span::from_us(30));
    life(&mut shelf, 0, &[9], Span::ZERO, 8);
    let tiers = found(&mut shelf);
    let mut data = [0; UNIT as usize];
    let at = 2 * u64::from(UNIT);
    let read = tiers.read(&volume(), &mut shelf, 0, at, &mut data);
    silent || read.is_err() || data[0] != 0
}
