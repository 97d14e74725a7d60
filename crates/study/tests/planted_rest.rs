//! Planted bugs that `prove` does not show, because a read, a repair, a trim or a recovery must coincide with a write
//! or a copy. Each is searched for at many points in time, in sequence, in a running pool.

use model::command::{Command, Completion, Op, Payload, Status};
use model::data::{
    Buffers, Bytes, Contents, DataBackedDrive, DriveFault, Image, Unreadable, Unwritable,
};
use model::media::{Medium, Precondition};
use model::{Device, Span, Time};
use tier::offline::{self, Images};
use tier::planted::{Bug, plant};
use tier::{Drive, DriveConfig, Kind, Pool, PoolConfig, Target};

const UNIT: u32 = 4096;

fn config(pool: &str, slice: u64) -> PoolConfig<DriveConfig> {
    let sheet = catalogue::drive(pool).unwrap_or_else(|problems| panic!("{problems}"));
    let DriveConfig::Pool(config) = &sheet.config else {
        panic!("{pool} is no pool");
    };
    let mut config = PoolConfig::clone(config);
    config.label_bytes = 0;
    for tier in &mut config.tiers {
        for target in &mut tier.children {
            if let Target::Slice { bytes, .. } = target {
                *bytes = slice;
            }
        }
        match &mut tier.kind {
            Kind::WriteBack(cache) => {
                (cache.segment, cache.buffer_limit) = (32 << 10, 128 << 10);
                (cache.record, cache.chunk) = (16 << 10, 16 << 10);
                (cache.destage.round, cache.destage.merge) = (64 << 10, 16 << 10);
                cache.start = 0.0;
            }
            Kind::IntentLog(log) => {
                (log.record, log.run, log.size) = (8 << 10, 32 << 10, 512 << 10);
                log.ram = 4 << 20;
            }
            _ => {}
        }
    }
    assert_eq!(config.problems(), [""; 0]);
    config
}

#[derive(Clone)]
struct Shelf {
    images: Vec<Image>,
    absent: Vec<u16>,
}

impl Images for Shelf {
    fn present(&self, member: u16) -> bool {
        !self.absent.contains(&member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.images[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.images[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _member: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

fn made(config: &PoolConfig<DriveConfig>) -> Shelf {
    let mut shelf = Shelf {
        images: vec![Image::default(); config.members.len()],
        absent: Vec::new(),
    };
    offline::format(config, 7, &mut shelf).expect("all are there");
    shelf
}

/// A running pool.
struct Live {
    pool: Pool<DataBackedDrive<Drive, Image>, Bytes>,
    bytes: Bytes,
    now: Time,
    done: Vec<Completion>,
}

impl Live {
    fn new(config: &PoolConfig<DriveConfig>, shelf: &mut Shelf) -> Option<Live> {
        let found = offline::recover(config, 7, shelf).ok()?;
        let bytes = Bytes::default();
        let members = config.members.iter().zip(&shelf.images);
        let members = members.map(|(member, image)| {
            let drive = member.drive.build(Precondition::Fresh, 1);
            DataBackedDrive::new(drive, image.clone(), bytes.clone(), false)
        });
        let tiers = found.tiers(config);
        let mut live = Live {
            pool: Pool::resume(config, members.collect(), tiers, bytes.clone()),
            bytes,
            now: Time::ZERO,
            done: Vec::new(),
        };
        for &member in &shelf.absent {
            live.befall(member, DriveFault::Dies);
        }
        Some(live)
    }

    fn befall(&mut self, member: u16, trouble: DriveFault) {
        self.pool.befall(self.now, member, trouble);
    }

    fn submit(&mut self, op: Op, unit: u64, byte: u8) -> Payload {
        let mut payload = Payload::default();
        if op.transfers() {
            payload = self.bytes.take(UNIT);
            self.bytes.put(payload, &[byte; UNIT as usize]);
        }
        let (at, bytes) = match op {
            Op::Flush => (0, 0),
            _ => (unit * u64::from(UNIT), UNIT),
        };
        let command = Command {
            payload,
            ..Command::new(0, op, at, bytes)
        };
        self.pool.submit(self.now, command);
        payload
    }

    /// Runs until `commands` commands have ended.
    fn drain(&mut self, commands: usize) {
        while self.done.len() < commands {
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut self.done);
        }
        assert!(self.done.iter().all(|it| it.status == Status::Success));
        self.done.clear();
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while self.pool.next_event() <= until {
            let next = self.pool.next_event();
            self.now = self.pool.advance(next, next, &mut self.done);
        }
        self.now = self.now.max(until);
    }

    fn write(&mut self, unit: u64, byte: u8) {
        self.submit(Op::Write, unit, byte);
        self.drain(1);
    }

    fn read(&mut self, unit: u64) -> u8 {
        let payload = self.submit(Op::Read, unit, 0);
        self.drain(1);
        let mut data = [0; UNIT as usize];
        self.bytes.get(payload, &mut data);
        self.bytes.release(payload);
        data[0]
    }

    /// Returns the stores as a power cut leaves them.
    fn shelf(&self) -> Shelf {
        let members = self.pool.members().iter();
        Shelf {
            images: members.map(|it| it.contents().clone()).collect(),
            absent: Vec::new(),
        }
    }
}

fn start(config: &PoolConfig<DriveConfig>) -> Live {
    Live::new(config, &mut made(config)).expect("it is new")
}

/// A mirror member is stale during its resync.
fn a_read_meets_a_copy() -> bool {
    let config = config("mirror(2*ram-disk; region=64k)", 1 << 20);
    let mut live = start(&config);
    let units = 64;
    (0..units).for_each(|unit| live.write(unit, 1));
    live.befall(1, DriveFault::Dies);
    (0..units).for_each(|unit| live.write(unit, 2));
    live.befall(1, DriveFault::Returns);
    (0..units).rev().any(|unit| live.read(unit) != 2)
}

/// A mirror member cannot read. The data of the other member is written back to it, and a client writes meanwhile.
fn a_repair_meets_a_write() -> bool {
    let config = config("mirror(2*ram-disk; region=64k, reads=first)", 1 << 20);
    (0..300).any(|moment| {
        let mut live = start(&config);
        live.write(0, 1);
        live.befall(0, DriveFault::Unreadable { at: 0, bytes: 4096 });
        live.submit(Op::Read, 0, 0);
        live.wait(Span::from_ns(50 * moment));
        live.submit(Op::Write, 0, 2);
        live.drain(2);
        live.wait(Span::from_ms(1));
        live.befall(1, DriveFault::Dies);
        live.read(0) != 2
    })
}

/// A child of an array cannot read. Its data is computed and written back to it, and a client writes meanwhile.
fn a_repair_of_an_array_meets_a_write() -> bool {
    let config = config("raid5(3*ram-disk; chunk=16k, region=64k)", 1 << 20);
    (0..300).any(|moment| {
        let mut live = start(&config);
        (0..8).for_each(|unit| live.write(unit, 1));
        live.befall(0, DriveFault::Unreadable { at: 0, bytes: 4096 });
        live.submit(Op::Read, 0, 0);
        live.wait(Span::from_ns(50 * moment));
        // Whole stripes need no reads, so they may be written between the reads of the repair and its write.
        let bytes = 8 * UNIT;
        let payload = live.bytes.take(bytes);
        live.bytes.put(payload, &[2; 8 * UNIT as usize]);
        let write = Command::write(0, 0, bytes);
        live.pool.submit(live.now, Command { payload, ..write });
        live.drain(2);
        live.wait(Span::from_ms(1));
        let is_wrong = live.read(0) != 2;
        live.befall(1, DriveFault::Dies);
        is_wrong || live.read(0) != 2 || live.read(4) != 2
    })
}

/// Blocks are trimmed while a cache destages them to its backing drives.
fn a_trim_meets_destaging() -> bool {
    let config = config(
        "write-back-cache(cache=ram-disk, capacity=2*950pro-256; destage_from=10%, destage_until=0%)",
        1 << 20,
    );
    (0..200).any(|moment| {
        let mut live = start(&config);
        let units = 24;
        for unit in 0..units {
            live.submit(Op::Write, unit, 1);
        }
        live.wait(Span::from_us(5 * moment));
        let so_far = live.done.len();
        for unit in 0..units {
            live.submit(Op::Deallocate, unit, 0);
        }
        assert!(so_far <= units as usize);
        live.drain(2 * units as usize);
        live.wait(Span::from_ms(100));
        (0..units).any(|unit| live.read(unit) != 0)
    })
}

/// A log repeats on a mirror the writes that one member missed, and after its resync that member alone is sufficient.
fn a_recovery_meets_a_leg_that_is_behind() -> bool {
    let config = config(
        "intent-log(main=mirror(2*ram-disk; region=64k), log=ram-disk; ram=1GiB)",
        4 << 20,
    );
    (1..24).any(|writes| {
        let mut live = start(&config);
        live.befall(1, DriveFault::Dies);
        for unit in 0..writes {
            live.write(unit % 8, unit as u8 + 1);
            live.submit(Op::Flush, 0, 0);
            live.drain(1);
        }
        let mut shelf = live.shelf();
        let Some(mut live) = Live::new(&config, &mut shelf) else {
            return true;
        };
        live.wait(Span::from_ms(20_000));
        let mut shelf = live.shelf();
        shelf.absent = vec![0];
        let Some(mut live) = Live::new(&config, &mut shelf) else {
            return true;
        };
        let last = |unit: u64| (0..writes).filter(|it| it % 8 == unit).max();
        (0..8.min(writes))
            .any(|unit| Some(u64::from(live.read(unit))) != last(unit).map(|it| it + 1))
    })
}

/// One test, because a planted bug applies to the whole process.
#[test]
fn each_planted_bug_is_found() {
    let tries: [(Bug, fn() -> bool); 5] = [
        (Bug::ReadsWhileCopying, a_read_meets_a_copy),
        (Bug::RepairsOverWrites, a_repair_meets_a_write),
        (
            Bug::ParityRepairsOverWrites,
            a_repair_of_an_array_meets_a_write,
        ),
        (Bug::RemembersTrimmed, a_trim_meets_destaging),
        (Bug::RecoversUnmarked, a_recovery_meets_a_leg_that_is_behind),
    ];
    let mut missed = Vec::new();
    for (bug, is_found) in tries {
        plant(None);
        assert!(!is_found(), "{bug:?}: it is found where nothing is planted");
        plant(Some(bug));
        if !is_found() {
            missed.push(bug);
        }
    }
    assert_eq!(missed, [], "not found");
}
