//! Each bug that is planted in an array with parity is found: by `prove` if a power cut shows it, otherwise by members
//! that fail and return.

use model::command::{Command, Status};
use model::data::{
    Buffers, Bytes, Contents, DataBackedDrive, DriveFault, Image, Unreadable, Unwritable,
};
use model::media::{Medium, Precondition};
use model::{Device, Time};
use study::prove::{FaultVerdict, ProveSettings, prove};
use tier::offline::{self, Images};
use tier::planted::{Bug, plant};
use tier::{Drive, DriveConfig, Kind, Pool, PoolConfig, Target};

const BYTES: u64 = 1 << 20;
const UNIT: u32 = 4096;

fn config(pool: &str) -> PoolConfig<DriveConfig> {
    let sheet = catalogue::drive(pool).unwrap_or_else(|problems| panic!("{problems}"));
    let DriveConfig::Pool(config) = &sheet.config else {
        panic!("{pool} is no pool");
    };
    PoolConfig::clone(config)
}

/// Checks whether power cuts alone show it.
fn is_found_by_power_cuts() -> bool {
    is_found_by_prove("raid6(5*950pro-256)", "power cut", 3000)
}

/// Checks whether it shows if a member is from an earlier epoch, or cannot read, after a crash.
fn is_found_by_what_is_in_doubt() -> [bool; 2] {
    let pool = "raid5(3*950pro-256)";
    [
        "an old copy of 950pro-256.0",
        "950pro-256.0 cannot read some blocks",
    ]
    .map(|only| is_found_by_prove(pool, only, 3000))
}

fn is_found_by_prove(pool: &str, only: &str, points: u64) -> bool {
    let settings = ProveSettings {
        points,
        seed: 1,
        only: only.to_owned(),
        to_the_first: true,
    };
    let report = prove(&config(pool), &settings, &|_, _| true);
    let report = report.expect("its data can be found again");
    report
        .rows
        .iter()
        .any(|row| row.verdict == FaultVerdict::Broken)
}

/// Checks whether it shows if a member returns before the power cut. Disks keep earlier writes in their caches when they
/// write a label through.
fn is_found_by_a_rebuild_before_the_cut() -> bool {
    is_found_by_prove("raid5(3*wd6001fzwx)", "dies and returns", 8000)
}

/// Checks whether it shows if a member fails, and another one fails a write.
fn is_found_by_two_failures() -> bool {
    is_found_by_prove("raid5(3*950pro-256)", "dies, ", 8000)
}

struct Shelf(Vec<Image>);

impl Images for Shelf {
    fn present(&self, _member: u16) -> bool {
        true
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.0[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _member: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

type Live = Pool<DataBackedDrive<Drive, Image>, Bytes>;

fn start(config: &PoolConfig<DriveConfig>, shelf: &mut Shelf) -> (Live, Bytes) {
    let found = offline::recover(config, 7, shelf).expect("it is whole enough");
    let bytes = Bytes::default();
    let members = config.members.iter().zip(&shelf.0).map(|(member, image)| {
        let drive = member.drive.build(Precondition::Fresh, 1);
        DataBackedDrive::new(drive, image.clone(), bytes.clone(), false)
    });
    let tiers = found.tiers(config);
    (
        Pool::resume(config, members.collect(), tiers, bytes.clone()),
        bytes,
    )
}

/// Writes or reads a unit, and returns its first byte.
fn ask((pool, bytes): &mut (Live, Bytes), now: &mut Time, unit: u64, write: Option<u8>) -> u8 {
    let payload = bytes.take(UNIT);
    let at = unit * u64::from(UNIT);
    let command = match write {
        Some(_) => Command::write(0, at, UNIT),
        None => Command::read(0, at, UNIT),
    };
    bytes.put(payload, &[write.unwrap_or(0); UNIT as usize]);
    pool.submit(*now, Command { payload, ..command });
    let mut done = Vec::new();
    while done.is_empty() {
        let next = pool.next_event();
        *now = pool.advance(next, next, &mut done);
    }
    assert_eq!(done[0].status, Status::Success);
    let mut data = [0; UNIT as usize];
    bytes.get(payload, &mut data);
    bytes.release(payload);
    data[0]
}

/// Creates an array on small slices of its members.
fn made(pool: &str) -> (PoolConfig<DriveConfig>, Shelf) {
    let mut config = config(pool);
    config.label_bytes = 0;
    for (member, target) in config.tiers[0].children.iter_mut().enumerate() {
        *target = Target::Slice {
            member: member as u16,
            base: 0,
            bytes: BYTES,
        };
    }
    assert!(matches!(config.tiers[0].kind, Kind::Raid5(_)));
    let mut shelf = Shelf(vec![Image::default(); config.members.len()]);
    offline::format(&config, 7, &mut shelf).expect("all are there");
    (config, shelf)
}

fn byte(unit: u64) -> u8 {
    (unit * 7 + unit / 200) as u8 | 1
}

/// Checks whether a read differs from the last write.
fn is_wrong(live: &mut (Live, Bytes), now: &mut Time, units: u64) -> bool {
    (0..units).any(|unit| ask(live, now, unit, None) != byte(unit))
}

/// A member fails after others have been rewritten, often enough that overwritten data is read, and not the rest.
fn is_found_by_a_death() -> bool {
    let (config, mut shelf) = made("raid5(6*ram-disk; chunk=16k, region=64k)");
    let mut live = start(&config, &mut shelf);
    let (mut now, units) = (Time::ZERO, config.bytes() / u64::from(UNIT));
    for salt in [0x80, 0] {
        for unit in 0..units {
            ask(&mut live, &mut now, unit, Some(byte(unit) ^ salt));
        }
    }
    live.0.befall(now, 0, DriveFault::Dies);
    is_wrong(&mut live, &mut now, units)
}

/// A member is missing, returns, and is resynced before another one fails.
fn is_found_by_returns() -> bool {
    let (config, mut shelf) = made("raid5(4*ram-disk; chunk=16k, region=64k)");
    let mut live = start(&config, &mut shelf);
    let mut now = Time::ZERO;
    let units = config.bytes() / u64::from(UNIT);
    live.0.befall(now, 1, DriveFault::Dies);
    for unit in 0..units {
        ask(&mut live, &mut now, unit, Some(byte(unit)));
    }
    for unit in 0..24 {
        ask(&mut live, &mut now, unit, Some(byte(unit) ^ 0x80));
    }
    live.0.befall(now, 1, DriveFault::Returns);
    // The last stripes are rebuilt last.
    if (units - 24..units).any(|unit| ask(&mut live, &mut now, unit, None) != byte(unit)) {
        return true;
    }
    // The client writes to rows that have been rebuilt, while others are being rebuilt.
    for unit in 0..24 {
        ask(&mut live, &mut now, unit, Some(byte(unit)));
    }
    if is_wrong(&mut live, &mut now, units) {
        return true;
    }
    // When idle, no write is in flight.
    while live.0.next_event() != Time::NEVER {
        let next = live.0.next_event();
        now = live.0.advance(next, next, &mut Vec::new());
    }
    let mut shelf = Shelf(
        live.0
            .members()
            .iter()
            .map(|it| it.contents().clone())
            .collect(),
    );
    let mut live = start(&config, &mut shelf);
    live.0.befall(now, 0, DriveFault::Dies);
    is_wrong(&mut live, &mut now, units)
}

/// One test, because a planted bug applies to the whole process.
#[test]
fn each_planted_bug_is_found() {
    assert!(
        !is_found_by_power_cuts() && !is_found_by_a_death() && !is_found_by_returns(),
        "nothing is planted"
    );
    assert_eq!(
        is_found_by_what_is_in_doubt(),
        [false; 2],
        "nothing is planted"
    );
    assert!(
        !is_found_by_a_rebuild_before_the_cut() && !is_found_by_two_failures(),
        "nothing is planted"
    );
    for bug in [
        Bug::WrongCoefficient,
        Bug::MarksStripesTooLate,
        Bug::LeavesParity,
    ] {
        plant(Some(bug));
        assert!(is_found_by_power_cuts(), "{bug:?}");
    }
    for bug in [Bug::KeepsOldInParity, Bug::ParityNotUpdated] {
        plant(Some(bug));
        assert!(is_found_by_a_death(), "{bug:?}");
    }
    for bug in [
        Bug::ReadsStaleColumns,
        Bug::SkipsStripes,
        Bug::RebuildsWithoutWrites,
    ] {
        plant(Some(bug));
        assert!(is_found_by_returns(), "{bug:?}");
    }
    plant(Some(Bug::TrustsMissedWrites));
    assert!(is_found_by_two_failures(), "TrustsMissedWrites");
    plant(Some(Bug::JoinsUnflushed));
    assert!(is_found_by_a_rebuild_before_the_cut(), "JoinsUnflushed");
    plant(Some(Bug::OpensOverTheHole));
    assert_eq!(is_found_by_what_is_in_doubt(), [true; 2]);
}
