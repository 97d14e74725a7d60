//! Drives with data: the laws of a device hold, reads return the newest data, and a power cut or any fault has its
//! documented effect on the data and no other.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::command::{Command, Completion, Op, Status};
use crate::conformance::{self, samples};
use crate::device::{Device, Range};
use crate::media::nand::{Nand, NandConfig};
use crate::media::ram::{Ram, RamConfig};
use crate::media::{Medium, Precondition};
use crate::random::Stream;
use crate::time::{Span, Time};
use proptest::prelude::*;

fn ram() -> Ram {
    Ram::new(RamConfig {
        bytes: 16 << 20,
        per_command: Span::from_us(3),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    })
}

fn volatile_nand() -> NandConfig {
    let mut config = samples::nand();
    config.buffer.protected = false;
    config
}

fn nand(seed: u64) -> DataBackedDrive<Nand, Image> {
    let config = volatile_nand();
    assert!(config.volatile_write_cache());
    let drive = config.build(Precondition::Fresh, seed);
    DataBackedDrive::new(drive, Image::default(), Bytes::default(), true)
}

fn kept_ram(volatile: bool) -> DataBackedDrive<Ram, Image> {
    DataBackedDrive::new(ram(), Image::default(), Bytes::default(), volatile)
}

#[test]
fn a_drive_with_data_keeps_the_laws() {
    conformance::check_drive(|_| kept_ram(false));
    conformance::check_drive(nand);
}

#[test]
fn a_drive_that_has_become_slow_keeps_the_laws() {
    let by = Span::from_us(70);
    for until in [Time::NEVER, Time::from_ns(2_000_000)] {
        conformance::check_drive(|_| {
            let mut drive = kept_ram(false);
            drive.befall(Time::ZERO, DriveFault::Slows { by, until });
            drive
        });
    }
}

#[test]
fn a_drive_that_is_slow_answers_later_and_one_that_dies_meanwhile_not_at_all() {
    let mut client = Client::new(ram(), false);
    let begin = client.now;
    client.write(0, 1);
    let quick = client.now.since(begin);
    let by = Span::from_us(500);
    let until = client.now + Span::from_ms(10);
    client
        .drive
        .befall(client.now, DriveFault::Slows { by, until });
    let begin = client.now;
    client.write(0, 2);
    assert_eq!(client.now.since(begin), quick + by);
    client.start(Command::write(9, 512, 512), &[3; 512]);
    // The medium has the data; the completion is delayed.
    client.now = client.drive.next_event();
    client
        .drive
        .advance(client.now, client.now, &mut Vec::new());
    client.drive.befall(client.now, DriveFault::Dies);
    let answer = client.wait();
    assert_eq!((answer.id, answer.status), (9, Status::Gone));
    client.drive.befall(client.now, DriveFault::Returns);
    client.now = until;
    let begin = client.now;
    assert_eq!(client.byte(512), Ok(3));
    assert!(client.now.since(begin) < by);
}

#[test]
fn a_drive_that_loses_its_power_alone_loses_what_it_had_not_flushed() {
    let mut client = Client::new(volatile_nand().build(Precondition::Fresh, 1), true);
    client.write(0, 1);
    client.flush();
    client.write(0, 2);
    client.start(Command::write(9, 4096, 512), &[3; 512]);
    client.drive.befall(client.now, DriveFault::LosesPower);
    let answer = client.wait();
    assert_eq!((answer.id, answer.status), (9, Status::Gone));
    assert_eq!(client.byte(0), Err(Status::Gone));
    client.now += Span::from_ms(1000);
    client.drive.befall(client.now, DriveFault::Returns);
    assert_eq!(client.byte(0), Ok(1));
    assert_eq!(client.byte(4096), Ok(0));
    client.write(0, 4);
    assert_eq!(client.byte(0), Ok(4));
}

#[test]
fn the_sum_is_castagnolis() {
    // The check value of CRC-32C in RFC 3720, B.4 and in catalogues of CRCs.
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let bytes: Vec<u8> = (0..5000_u32).map(|it| ((it * it) >> 5) as u8).collect();
    for length in [0, 1, 7, 8, 63, 64, 511, 4096, 5000] {
        assert_eq!(crc32c(&bytes[..length]), table::checksum(&bytes[..length]));
    }
}

/// A client at QD1.
struct Client<D> {
    drive: DataBackedDrive<D, Image>,
    bytes: Bytes,
    now: Time,
}

impl<D: Device> Client<D> {
    fn new(drive: D, volatile: bool) -> Client<D> {
        let bytes = Bytes::default();
        Client {
            drive: DataBackedDrive::new(drive, Image::default(), bytes.clone(), volatile),
            bytes,
            now: Time::ZERO,
        }
    }

    fn start(&mut self, command: Command, data: &[u8]) -> Command {
        let payload = self.bytes.take(command.bytes);
        if command.op == Op::Write {
            self.bytes.put(payload, data);
        }
        let command = Command { payload, ..command };
        self.drive.submit(self.now, command);
        command
    }

    fn wait(&mut self) -> Completion {
        let mut done = Vec::new();
        while done.is_empty() {
            let next = self.drive.next_event();
            assert!(next != Time::NEVER, "nothing is inside");
            self.now = self.drive.advance(next, next, &mut done);
        }
        assert_eq!(done.len(), 1);
        done[0]
    }

    fn run(&mut self, command: Command, data: &[u8]) -> Status {
        let command = self.start(command, data);
        let status = self.wait().status;
        self.bytes.release(command.payload);
        status
    }

    fn write(&mut self, at: u64, byte: u8) -> Status {
        self.run(Command::write(0, at, 512), &[byte; 512])
    }

    fn write_through(&mut self, at: u64, byte: u8) {
        let command = Command {
            fua: true,
            ..Command::write(0, at, 512)
        };
        assert_eq!(self.run(command, &[byte; 512]), Status::Success);
    }

    fn flush(&mut self) {
        assert_eq!(self.run(Command::flush(0), &[]), Status::Success);
    }

    fn read(&mut self, at: u64, bytes: u32) -> Result<Vec<u8>, Status> {
        let command = self.start(Command::read(0, at, bytes), &[]);
        let status = self.wait().status;
        let mut data = vec![0; bytes as usize];
        self.bytes.get(command.payload, &mut data);
        self.bytes.release(command.payload);
        if status == Status::Success {
            Ok(data)
        } else {
            Err(status)
        }
    }

    fn byte(&mut self, at: u64) -> Result<u8, Status> {
        let data = self.read(at, 512)?;
        assert!(data.iter().all(|it| *it == data[0]), "a mixture at {at}");
        Ok(data[0])
    }

    fn on_medium(&self, at: u64) -> u8 {
        let mut data = [0; 512];
        self.drive.contents().read(at, &mut data).expect("readable");
        data[0]
    }
}

/// Versions of a sector, and the oldest one that a power cut may leave.
#[derive(Default)]
struct Sector {
    versions: Vec<u8>,
    durable: usize,
}

/// Random writes, trims, flushes and reads on a drive with a volatile cache, and power cuts with the drive's own
/// outcome.
#[test]
fn reads_give_the_newest_and_a_power_cut_leaves_what_was_flushed_or_newer() {
    let (mut kept_back, mut lost) = (0, 0);
    for seed in 0..8 {
        let mut client = Client::new(volatile_nand().build(Precondition::Fresh, seed), true);
        let mut stream = Stream::new(seed, "client");
        let mut sectors: BTreeMap<u64, Sector> = BTreeMap::new();
        for _ in 0..400 {
            let at = stream.uniform_below(64) * 512;
            let sector = sectors.entry(at).or_insert_with(|| Sector {
                versions: vec![0],
                durable: 0,
            });
            let newest = *sector.versions.last().expect("a version");
            match stream.uniform_below(20) {
                0 => {
                    client.flush();
                    for sector in sectors.values_mut() {
                        sector.durable = sector.versions.len() - 1;
                    }
                }
                1 => {
                    sector.versions.push(0);
                    let zero = Command::new(0, Op::WriteZeroes, at, 512);
                    assert_eq!(client.run(zero, &[]), Status::Success);
                }
                2..=8 => assert_eq!(client.byte(at), Ok(newest)),
                9 => {
                    sector.versions.push(newest.wrapping_add(1));
                    sector.durable = sector.versions.len() - 1;
                    client.write_through(at, newest.wrapping_add(1));
                }
                10 if stream.uniform_below(8) == 0 => {
                    let mut ranges = Vec::new();
                    client.now = client.drive.power_cut(client.now, &mut ranges);
                    for (at, sector) in &mut sectors {
                        let byte = client.byte(*at).expect("readable");
                        let allowed = &sector.versions[sector.durable..];
                        assert!(allowed.contains(&byte), "{byte} of {allowed:?} at {at}");
                        let newest = allowed.last() == Some(&byte);
                        *if newest { &mut kept_back } else { &mut lost } += 1;
                        *sector = Sector {
                            versions: vec![byte],
                            durable: 0,
                        };
                    }
                }
                _ => {
                    sector.versions.push(newest.wrapping_add(1));
                    assert_eq!(client.write(at, newest.wrapping_add(1)), Status::Success);
                }
            }
        }
        assert_eq!(client.bytes.allocated(), 0);
    }
    assert!(kept_back > 50 && lost > 50, "{kept_back} kept, {lost} lost");
}

#[test]
fn an_acknowledged_write_is_undecided_until_a_flush_that_was_submitted_after_it() {
    let mut client = Client::new(ram(), true);
    client.write(0, 1);
    // Submitted before the second write is acknowledged, so it does not cover that write.
    let flush = client.start(Command::flush(1), &[]);
    let write = client.start(Command::write(2, 512, 512), &[2; 512]);
    let changes = client.drive.changes();
    assert_eq!((client.wait().id, client.wait().id), (flush.id, write.id));
    assert!(client.drive.changes() > changes);
    let mut undecided = Vec::new();
    client.drive.undecided(&mut undecided);
    let seen: Vec<_> = undecided.iter().map(|it| (it.at, it.inside)).collect();
    assert_eq!(seen, [(512, false)]);
    assert_eq!((client.on_medium(0), client.on_medium(512)), (1, 0));
}

#[test]
fn what_is_inside_is_undecided_and_a_drive_without_cache_decides_at_completion() {
    let mut client = Client::new(ram(), false);
    client.start(Command::write(0, 4096, 512), &[7; 512]);
    let mut undecided = Vec::new();
    client.drive.undecided(&mut undecided);
    assert_eq!(undecided.len(), 1);
    assert_eq!((undecided[0].at, undecided[0].inside), (4096, true));
    assert_eq!(undecided[0].data, Some(vec![7; 512]));
    client.wait();
    undecided.clear();
    client.drive.undecided(&mut undecided);
    assert_eq!(undecided, []);
    assert_eq!(client.on_medium(4096), 7);
}

/// The older write is in the cache when the newer one bypasses the cache to the medium: the older one must not reach
/// the medium later.
#[test]
fn a_write_through_the_cache_is_not_undone_by_what_was_in_it() {
    let mut client = Client::new(ram(), true);
    client.run(Command::write(0, 0, 1536), &[1; 1536]);
    client.write_through(512, 2);
    client.flush();
    let seen = [0, 512, 1024].map(|at| client.on_medium(at));
    assert_eq!(seen, [1, 2, 1]);
}

#[test]
fn each_trouble_does_what_it_says() {
    let mut client = Client::new(ram(), true);
    let befall = |client: &mut Client<Ram>, trouble| client.drive.befall(client.now, trouble);
    for at in [0, 512, 1024] {
        client.write(at, 1);
    }
    client.flush();

    befall(&mut client, DriveFault::FailsWrite);
    assert_eq!(client.write(0, 2), Status::WriteFault);
    befall(&mut client, DriveFault::LosesWrite);
    assert_eq!(client.write(512, 2), Status::Success);
    befall(&mut client, DriveFault::Misdirects { by: 8192 });
    assert_eq!(client.write(1024, 2), Status::Success);
    let seen = [0, 512, 1024, 9216].map(|at| client.byte(at).expect("readable"));
    assert_eq!(seen, [1, 1, 1, 2]);

    befall(
        &mut client,
        DriveFault::Unreadable {
            at: 512,
            bytes: 512,
        },
    );
    assert_eq!(client.read(0, 4096), Err(Status::UnrecoveredReadError));
    // In the cache, and then on the medium, it can be read again.
    client.write(512, 3);
    assert_eq!(client.byte(512), Ok(3));
    client.flush();
    assert_eq!(client.byte(512), Ok(3));
    befall(&mut client, DriveFault::Rots { at: 700 });
    assert_eq!(client.read(512, 512).expect("readable")[700 - 512], 2);

    befall(&mut client, DriveFault::Lies);
    client.write_through(2048, 4);
    client.flush();
    assert_eq!((client.byte(2048), client.on_medium(2048)), (Ok(4), 0));

    client.start(Command::write(9, 4096, 512), &[5; 512]);
    befall(&mut client, DriveFault::Dies);
    let answer = client.wait();
    assert_eq!((answer.id, answer.status), (9, Status::Gone));
    assert_eq!(client.byte(0), Err(Status::Gone));
    befall(&mut client, DriveFault::Returns);
    // Writes that were outstanding at the failure may be done or not, and no completion reports it; the first is done.
    assert_eq!((client.byte(4096), client.byte(0)), (Ok(5), Ok(1)));
}

#[test]
fn a_drive_that_lies_loses_at_a_power_cut_what_it_called_durable() {
    for lies in [false, true] {
        let mut client = Client::new(volatile_nand().build(Precondition::Fresh, 1), true);
        if lies {
            client.drive.befall(client.now, DriveFault::Lies);
        }
        client.write(0, 1);
        client.flush();
        let mut lost = Vec::new();
        client.now = client.drive.power_cut(client.now, &mut lost);
        assert_eq!(client.byte(0), Ok(u8::from(!lies)));
        assert_eq!(lost.is_empty(), !lies);
    }
}

#[test]
fn buffers_are_used_again_and_parts_of_them_copied() {
    let mut bytes = Bytes::default();
    let (one, two) = (bytes.take(1024), bytes.take(512));
    bytes.put(one, &[3; 1024]);
    bytes.zero(one.skip(512), 256);
    bytes.copy(one.skip(256), two, 512);
    let mut seen = [9; 512];
    bytes.get(two, &mut seen);
    assert_eq!((seen[0], seen[255], seen[256], seen[511]), (3, 3, 0, 0));
    assert_eq!(bytes.sum(two, 512), sum(&seen));
    bytes.copy(one, one.skip(512), 512);
    bytes.get(one.skip(512), &mut seen);
    assert_eq!(seen, [3; 512]);
    bytes.release(one);
    assert_eq!(bytes.take(16).buffer, one.buffer);
    assert_eq!(bytes.allocated(), 2);
    // The buffer without data discards writes and reads as zeroes.
    let nowhere = crate::command::Payload::default();
    bytes.put(nowhere, &[1; 64]);
    bytes.get(nowhere, &mut seen);
    assert_eq!(seen, [0; 512]);
}

proptest! {
    /// The sparse image compared with a flat one; copies are independent.
    #[test]
    fn an_image_is_its_bytes(steps in prop::collection::vec((0u64..40, 1u64..24, 0u8..6), 1..60)) {
        let (mut image, mut flat) = (Image::default(), vec![0_u8; 64 * 512]);
        for (sector, sectors, what) in steps {
            let (at, bytes) = (sector * 512, sectors * 512);
            let range = at as usize..(at + bytes) as usize;
            let copy = image.clone();
            if what == 0 {
                image.zero(at, bytes).expect("in memory");
                flat[range].fill(0);
            } else {
                image.write(at, &vec![what; bytes as usize]).expect("in memory");
                flat[range].fill(what);
            }
            let mut seen = vec![1; flat.len()];
            image.read(0, &mut seen).expect("readable");
            prop_assert_eq!(&seen, &flat);
            let mut before = vec![1; flat.len()];
            copy.read(0, &mut before).expect("readable");
            prop_assert_eq!(copy.same(&image, 0, 64 * 512), before == seen);
        }
    }

    /// The cache compared with one that stores sectors.
    #[test]
    fn a_cache_gives_the_newest_and_flushes_up_to_a_mark(
        steps in prop::collection::vec((0u64..20, 1u64..8, 0u8..8), 1..50)
    ) {
        let (mut cache, mut medium) = (UnflushedWrites::default(), Image::default());
        let mut sectors: Vec<Vec<(u64, u8)>> = vec![vec![(0, 0)]; 32];
        for (order, (sector, count, what)) in (1..).zip(steps) {
            let (at, bytes) = (sector * 512, count * 512);
            let touched = sector as usize..(sector + count) as usize;
            match what {
                0 => {
                    let through = order / 2;
                    cache.flush(through, &mut medium).expect("in memory");
                    for versions in &mut sectors {
                        let last = versions.iter().rposition(|it| it.0 <= through).unwrap_or(0);
                        versions.drain(..last);
                    }
                }
                1 => {
                    cache.supersede(at, bytes);
                    medium.write(at, &vec![100; bytes as usize]).expect("in memory");
                    sectors[touched].fill(vec![(0, 100)]);
                }
                what => {
                    let data = vec![what; bytes as usize];
                    let data = (what > 2).then_some(&data[..]);
                    cache.push(order, at, bytes, data);
                    let byte = if what > 2 { what } else { 0 };
                    sectors[touched].iter_mut().for_each(|it| it.push((order, byte)));
                }
            }
            for (index, versions) in sectors.iter().enumerate() {
                let at = index as u64 * 512;
                let mut data = [0; 512];
                medium.read(at, &mut data).expect("readable");
                prop_assert_eq!(data[0], versions[0].1, "on the medium at {}", at);
                cache.overlay(at, &mut data);
                prop_assert_eq!(data[511], versions[versions.len() - 1].1);
                prop_assert_eq!(cache.covers(at, 512), versions.len() > 1);
            }
        }
    }

    /// Data that the drive has on its medium is moved there; reads do not change, and only data in the buffer stays
    /// separate.
    #[test]
    fn a_cache_that_settles_changes_nothing_that_is_read(
        writes in prop::collection::vec((0u64..24, 1u64..8, 3u8..100), 1..30),
        buffered in prop::collection::btree_set(0u64..32, 0..20),
    ) {
        let (mut cache, mut medium) = (UnflushedWrites::default(), Image::default());
        for (order, &(sector, count, what)) in (1..).zip(&writes) {
            let data = vec![what; (count * 512) as usize];
            cache.push(order, sector * 512, count * 512, Some(&data));
        }
        let read = |cache: &UnflushedWrites, medium: &Image| {
            let mut data = vec![0; 32 * 512];
            medium.read(0, &mut data).expect("in memory");
            cache.overlay(0, &mut data);
            data
        };
        let before = read(&cache, &medium);
        let ranges = buffered.iter().map(|&sector| Range { offset: sector * 512, bytes: 512 });
        cache.settle(ranges.collect(), &mut medium).expect("in memory");
        prop_assert_eq!(read(&cache, &medium), before.clone());
        let inside = |record: &UndecidedWrite| {
            let sectors = record.at / 512..(record.at + record.bytes) / 512;
            sectors.into_iter().all(|sector| buffered.contains(&sector))
        };
        prop_assert!(cache.records().iter().all(inside));
        cache.settle(Vec::new(), &mut medium).expect("in memory");
        prop_assert!(cache.is_empty());
        prop_assert_eq!(read(&cache, &medium), before);
    }
}

/// Half a block of an old version after half of a new one has a different sum, even if each sector ends in its own CRC.
#[test]
fn sums_see_what_a_crc_of_data_with_crcs_does_not() {
    let sector = |number: u8| {
        let mut bytes = [number; 512];
        let own = crc32c(&bytes[..508]);
        bytes[508..].copy_from_slice(&own.to_le_bytes());
        bytes
    };
    let (one, two) = (
        [sector(1), sector(2)].concat(),
        [sector(1), sector(3)].concat(),
    );
    assert_eq!(crc32c(&one), crc32c(&two));
    assert_ne!(sum(&one), sum(&two));
    // Swapped words are detected, too.
    let swapped = [sector(2), sector(1)].concat();
    assert_ne!(sum(&one), sum(&swapped));
}

proptest! {
    /// Runs of zeroes are counted at once, wherever they begin.
    #[test]
    fn the_sum_is_that_of_each_word(pieces in prop::collection::vec((any::<bool>(), 1_usize..200, any::<u8>()), 1..12)) {
        let words = pieces.iter().flat_map(|&(zero, words, with)| {
            let byte = move |index: usize| if zero { 0 } else { with.wrapping_mul(index as u8 | 1) };
            (0..4 * words).map(byte)
        });
        let bytes: Vec<u8> = words.collect();
        let mut terms = [0_u64; 4];
        for word in bytes.chunks_exact(4) {
            let mut more = u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            for term in &mut terms {
                *term = term.wrapping_add(more);
                more = *term;
            }
        }
        let block: Vec<u8> = terms.iter().flat_map(|term| term.to_le_bytes()).collect();
        prop_assert_eq!(sum(&bytes), crc32c(&block));
    }
}
