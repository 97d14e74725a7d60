//! A mirror on drives with data: labels before writes and before acknowledgements; members that fail, return, lose data
//! and are recovered.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use model::command::{Command, Op, Status};
use model::data::{Buffers, Bytes, Contents, DataBackedDrive, DriveFault, Image};
use model::device::Device;
use model::media::ram::{Ram, RamConfig};
use model::media::{Medium, Precondition};
use model::time::{Span, Time};

use crate::offline::{self, Damage, RecoveryFinding};
use crate::shelf::Shelf;
use crate::{ChildCommand, Kind, Member, MirrorConfig, Pool, PoolConfig, Target, TierConfig};

const POOL: u128 = 77;
const REGION: u64 = 64 << 10;

fn config(legs: u16) -> PoolConfig<RamConfig> {
    let drive = RamConfig {
        bytes: 1 << 20,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    };
    let slice = |member| Target::Slice {
        member,
        base: 0,
        bytes: drive.bytes,
    };
    let config = PoolConfig {
        members: (0..legs)
            .map(|leg| Member {
                name: leg.to_string(),
                drive: drive.clone(),
            })
            .collect(),
        tiers: vec![TierConfig {
            name: "mirror".to_string(),
            kind: Kind::Mirror(MirrorConfig {
                region: REGION,
                ..MirrorConfig::default()
            }),
            children: (0..legs).map(slice).collect(),
        }],
        volumes: vec![0],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    config
}

/// A pool with data, and one client.
struct Rig {
    pool: Pool<DataBackedDrive<Ram, Image>, Bytes>,
    bytes: Bytes,
    now: Time,
}

impl Rig {
    fn on(shelf: &Shelf, legs: u16) -> Result<(Rig, Vec<RecoveryFinding>), Damage> {
        let config = config(legs);
        let mut shelf = shelf.clone();
        let found = offline::recover(&config, POOL, &mut shelf).map_err(|it| it.1)?;
        let bytes = Bytes::default();
        let members = config.members.iter().zip(&shelf.images);
        let kept = members.map(|(member, image)| {
            let drive = member.drive.build(Precondition::Fresh, 1);
            DataBackedDrive::new(drive, image.clone(), bytes.clone(), false)
        });
        let was_found = found.found.iter().map(|it| it.1).collect();
        let tiers = found.tiers(&config);
        let mut pool = Pool::resume(&config, kept.collect(), tiers, bytes.clone());
        pool.record();
        let now = Time::ZERO;
        Ok((Rig { pool, bytes, now }, was_found))
    }

    fn new(legs: u16) -> Rig {
        let mut shelf = Shelf::new(usize::from(legs));
        offline::format(&config(legs), POOL, &mut shelf).expect("all are there");
        let (rig, found) = Rig::on(&shelf, legs).expect("it has just been made");
        assert_eq!(found, []);
        rig
    }

    /// Returns the current content of the media.
    fn shelf(&self) -> Shelf {
        let members = self.pool.members().iter();
        Shelf {
            images: members.map(|it| it.contents().clone()).collect(),
            absent: Vec::new(),
        }
    }

    fn start(&mut self, command: Command, byte: u8) -> Command {
        let payload = self.bytes.take(command.bytes);
        if command.op == Op::Write {
            self.bytes.put(payload, &vec![byte; command.bytes as usize]);
        }
        let command = Command { payload, ..command };
        self.pool.submit(self.now, command);
        command
    }

    fn wait(&mut self) -> Status {
        let mut done = Vec::new();
        while done.is_empty() {
            let next = self.pool.next_event();
            assert!(next != Time::NEVER, "it never completes");
            self.now = self.pool.advance(next, next, &mut done);
        }
        assert_eq!(done.len(), 1);
        done[0].status
    }

    fn write(&mut self, at: u64, byte: u8) -> Status {
        let command = self.start(Command::write(0, at, 4096), byte);
        let status = self.wait();
        self.bytes.release(command.payload);
        status
    }

    fn read(&mut self, at: u64) -> Result<u8, Status> {
        let command = self.start(Command::read(0, at, 4096), 0);
        let status = self.wait();
        let mut data = [0; 4096];
        self.bytes.get(command.payload, &mut data);
        self.bytes.release(command.payload);
        match status {
            Status::Success => Ok(data[0]),
            other => Err(other),
        }
    }

    fn befall(&mut self, leg: u16, trouble: DriveFault) {
        self.pool.befall(self.now, leg, trouble);
    }

    /// Runs until no event is left.
    fn rest(&mut self) {
        while self.pool.next_event() != Time::NEVER {
            let next = self.pool.next_event();
            let mut done = Vec::new();
            self.now = self.pool.advance(next, next, &mut done);
            assert_eq!(done, []);
        }
        assert_eq!(self.bytes.allocated(), 0, "buffers are kept for nothing");
    }

    fn on_leg(&self, leg: usize, at: u64) -> u8 {
        let mut data = [0; 512];
        let image = self.pool.members()[leg].contents();
        image.read(at, &mut data).expect("readable");
        data[0]
    }

    /// Returns the members that were read since the last call.
    fn reads(&mut self) -> Vec<u16> {
        let asked = self.pool.recorded();
        let reads = asked.iter().filter(|it| it.command.op == Op::Read);
        reads.map(|it| it.member).collect()
    }

    /// Returns the writes to members since the last call: member, and whether it is a label.
    fn writes(&mut self) -> Vec<(u16, bool)> {
        let asked = self.pool.recorded();
        let writes = asked.iter().filter(|it| it.command.op == Op::Write);
        let is_label = |it: &ChildCommand| it.command.offset >= (1 << 20) - 8192;
        writes.map(|it| (it.member, is_label(it))).collect()
    }
}

#[test]
fn a_region_is_marked_before_its_first_write_and_unmarked_when_the_mirror_rests() {
    let mut rig = Rig::new(2);
    rig.write(0, 1);
    assert_eq!(rig.writes(), [(0, true), (1, true), (0, false), (1, false)]);
    rig.write(8192, 2);
    assert_eq!(rig.writes(), [(0, false), (1, false)]);
    let (_, found) = Rig::on(&rig.shelf(), 2).expect("both legs are there");
    assert_eq!(found, [RecoveryFinding::Unclean(1)]);
    rig.rest();
    assert_eq!(rig.writes(), [(0, true), (1, true)]);
    assert!(rig.now >= Time::ZERO + Span::from_ms(5000));
    let (_, found) = Rig::on(&rig.shelf(), 2).expect("both legs are there");
    assert_eq!(found, []);
}

#[test]
fn what_a_leg_has_missed_is_acknowledged_when_the_others_labels_say_so() {
    let mut rig = Rig::new(3);
    rig.write(0, 1);
    rig.writes();
    rig.befall(1, DriveFault::FailsWrite);
    assert_eq!(rig.write(0, 2), Status::Success);
    let writes = rig.writes();
    assert_eq!(writes[..3], [(0, false), (1, false), (2, false)]);
    assert_eq!(writes[3..], [(0, true), (2, true)]);
    // The labels are already written: the media show that the member is stale.
    let (mut again, found) = Rig::on(&rig.shelf(), 3).expect("two legs are enough");
    assert_eq!(
        found,
        [
            RecoveryFinding::Unclean(1),
            RecoveryFinding::Stale(1, Some(1))
        ]
    );
    again.rest();
    assert_eq!([0, 1, 2].map(|leg| again.on_leg(leg, 0)), [2; 3]);
    assert_eq!(again.read(0), Ok(2));
}

#[test]
fn a_leg_that_returns_gets_what_it_has_missed_while_writes_go_on() {
    let mut rig = Rig::new(2);
    for at in (0..512 << 10).step_by(4096) {
        rig.write(at, 1);
    }
    rig.befall(0, DriveFault::Dies);
    assert_eq!(rig.read(0), Ok(1));
    for at in (0..512 << 10).step_by(8192) {
        assert_eq!(rig.write(at, 2), Status::Success);
    }
    rig.befall(0, DriveFault::Returns);
    for at in (0..512 << 10).step_by(16384) {
        assert_eq!(rig.write(at, 3), Status::Success);
    }
    rig.rest();
    let expected = |at: u64| match at {
        at if at % 16384 == 0 => 3,
        at if at % 8192 == 0 => 2,
        _ => 1,
    };
    for at in (0..512 << 10).step_by(4096) {
        let seen = [rig.on_leg(0, at), rig.on_leg(1, at)];
        assert_eq!(seen, [expected(at); 2], "at {at}");
    }
    let (_, found) = Rig::on(&rig.shelf(), 2).expect("both legs are there");
    assert_eq!(found, [], "it is in sync again, and rests");
    // The other member may fail now.
    rig.befall(1, DriveFault::Dies);
    assert_eq!(rig.read(8192), Ok(2));
}

#[test]
fn a_leg_that_dies_again_while_it_is_copied_to_stays_out() {
    let mut rig = Rig::new(2);
    rig.write(0, 1);
    rig.befall(0, DriveFault::Dies);
    rig.write(0, 2);
    rig.befall(0, DriveFault::Returns);
    rig.befall(0, DriveFault::Dies);
    assert_eq!(rig.write(4096, 3), Status::Success);
    assert_eq!(rig.read(0), Ok(2));
    rig.befall(0, DriveFault::Returns);
    rig.rest();
    assert_eq!([rig.on_leg(0, 0), rig.on_leg(0, 4096)], [2, 3]);
}

#[test]
fn the_last_leg_says_that_it_fails() {
    let mut rig = Rig::new(2);
    rig.write(0, 1);
    rig.befall(0, DriveFault::Dies);
    rig.befall(1, DriveFault::FailsWrite);
    assert_eq!(rig.write(0, 2), Status::WriteFault);
    assert_eq!(rig.read(0), Ok(1));
    rig.befall(1, DriveFault::Dies);
    assert_eq!(
        rig.write(1 << 19, 2),
        Status::Gone,
        "a region that is not marked"
    );
    assert_eq!(rig.write(0, 2), Status::Gone);
    assert_eq!(rig.read(0), Err(Status::Gone));
    rig.rest();
}

#[test]
fn what_a_leg_cannot_read_comes_from_the_other_and_is_written_back() {
    let mut rig = Rig::new(2);
    rig.write(0, 7);
    for leg in 0..2 {
        rig.befall(leg, DriveFault::Unreadable { at: 0, bytes: 4096 });
        for _ in 0..2 {
            assert_eq!(rig.read(0), Ok(7));
        }
        assert_eq!(rig.on_leg(usize::from(leg), 0), 7);
    }
    rig.rest();
}

#[test]
fn overlapping_writes_end_alike_on_all_legs() {
    let mut rig = Rig::new(2);
    rig.write(0, 1);
    for byte in 2..10 {
        rig.start(
            Command::write(byte.into(), 4096 * u64::from(byte % 3), 8192),
            byte,
        );
    }
    for _ in 2..10 {
        assert_eq!(rig.wait(), Status::Success);
    }
    let asked = rig.pool.recorded();
    let on_leg = |leg| {
        let writes = asked.iter().filter(move |it| it.member == leg);
        writes
            .map(|it| (it.command.offset, it.at))
            .collect::<Vec<_>>()
    };
    assert_eq!(on_leg(0), on_leg(1));
    for at in (0..16384).step_by(4096) {
        assert_eq!(rig.on_leg(0, at), rig.on_leg(1, at));
    }
}

#[test]
fn what_is_not_a_whole_mirror_is_refused() {
    let refused = |shelf: &Shelf| Rig::on(shelf, 2).map(drop).expect_err("it is no mirror");
    let mut rig = Rig::new(2);
    rig.write(0, 1);
    rig.rest();
    let whole = rig.shelf();
    let blank = Shelf {
        images: vec![Image::default(); 2],
        absent: Vec::new(),
    };
    assert_eq!(refused(&blank), Damage::Unlabelled);

    let mut swapped = whole.clone();
    swapped.images.swap(0, 1);
    assert_eq!(refused(&swapped), Damage::Misplaced(0));

    let mut other = blank.clone();
    offline::format(&config(2), POOL + 1, &mut other).expect("all are there");
    let mut mixed = whole.clone();
    mixed.images[1] = other.images[1].clone();
    assert_eq!(refused(&mixed), Damage::Foreign(1));

    // Each member is used alone, and then both are combined.
    let alone = |absent: u16, byte| {
        let mut shelf = whole.clone();
        shelf.absent.push(absent);
        let (mut rig, found) = Rig::on(&shelf, 2).expect("one leg is enough");
        assert_eq!(found, [RecoveryFinding::Absent(absent)]);
        rig.befall(absent, DriveFault::Dies);
        rig.write(0, byte);
        rig.shelf()
    };
    let (left, right) = (alone(1, 2), alone(0, 3));
    let mut met = left.clone();
    met.images[1] = right.images[1].clone();
    assert_eq!(refused(&met), Damage::Apart(0, 1));

    // One member that was used alone, and the other unchanged: the other is stale.
    let (mut rig, found) = Rig::on(&left, 2).expect("the first has everything");
    assert_eq!(found, [RecoveryFinding::Stale(1, Some(1))]);
    assert_eq!([rig.read(0), rig.read(0)], [Ok(2); 2]);
    // A blank drive in its place gets all data.
    let mut replaced = left;
    replaced.images[1] = Image::default();
    let (mut rig, found) = Rig::on(&replaced, 2).expect("the first has everything");
    assert_eq!(found, [RecoveryFinding::Stale(1, None)]);
    rig.rest();
    assert_eq!(rig.on_leg(1, 0), 2);
    replaced.absent.push(0);
    assert_eq!(refused(&replaced), Damage::Unlabelled);
}

#[test]
fn a_reader_in_order_stays_with_its_leg_and_others_take_turns() {
    let mut rig = Rig::new(2);
    for step in 0..6 {
        rig.read(step * 4096).expect("it is there");
    }
    assert_eq!(rig.reads(), [0; 6]);
    // Another reader begins at the other member, and both stay.
    for step in 0..3 {
        rig.read((512 << 10) + step * 4096).expect("it is there");
        rig.read((6 + step) * 4096).expect("it is there");
    }
    assert_eq!(rig.reads(), [1, 0, 1, 0, 1, 0]);
    // Random reads alternate.
    for at in [40, 20, 60, 10] {
        rig.read(at * 8192).expect("it is there");
    }
    assert_eq!(rig.reads(), [1, 0, 1, 0]);
}

/// The rate limit delays chunks only, not the flush at the end.
#[test]
fn resyncs_of_two_members_take_as_long_as_their_limit_says() {
    let mut config = config(3);
    let Kind::Mirror(mirror) = &mut config.tiers[0].kind else {
        panic!("it is a mirror");
    };
    mirror.resync_rate = 10_000_000;
    let mut pool = config.vulnerable(Precondition::Fresh, 1);
    pool.replace(Time::ZERO, 1);
    pool.replace(Time::ZERO, 2);
    let bytes = config.bytes();
    let mut now = Time::ZERO;
    while pool.rebuild(1).is_some() || pool.rebuild(2).is_some() {
        let next = pool.next_event();
        now = pool.advance(next, next, &mut Vec::new());
    }
    let limit = (2 * bytes) as f64 / 1e7;
    let seconds = now.since(Time::ZERO).seconds();
    assert!(
        (0.97..1.03).contains(&(seconds / limit)),
        "{seconds} {limit}"
    );
}
