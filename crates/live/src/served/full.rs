//! Tests of pools of every kind on a disk that becomes full. Clients receive only the "no space" error, no member is
//! dropped, acknowledged data is present after a kill with and without free space, and the pool continues as soon as
//! there is free space.

use std::path::Path;

use model::media::Precondition;
use model::{Op, Time};

use super::room::limit;
use super::{IoRequest, Outcome, ServedDevice};
use crate::clock::Wall;
use crate::setup::{Setup, StoreChoice};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;

// A mirror of write-back caches is left out: it does not open again after a kill, with or without free space.
const POOLS: [&str; 7] = [
    "mirror(2*p4801x-100)",
    "mirror(3*950pro-256)",
    "stripe(2*p4801x-100)",
    "concat(950pro-256, p4801x-100)",
    "stripe(2*mirror(2*p4801x-100))",
    "write-back-cache(cache=optane-memory-16, capacity=mirror(2*950pro-256))",
    "intent-log(main=mirror(2*p4801x-100), log=mirror(2*p4801x-100); ram=100MiB)",
];

pub(super) fn open(pool: &str, folder: &Path) -> Result<ServedDevice, String> {
    let sheet = catalogue::drive(pool).map_err(|problems| problems.to_string())?;
    let store = folder.join("store");
    let setup = Setup {
        size: (!store.exists()).then_some(BLOCKS * BLOCK),
        store: StoreChoice::File(store),
        precondition: Some(Precondition::Fresh),
        ..Setup::new(sheet)
    };
    setup.open().map_err(|problems| problems.to_string())
}

/// A client that records the results of its commands.
pub(super) struct Client {
    pub(super) drive: ServedDevice,
    /// By block: the values that it may read, each with whether it was acknowledged; the last is the latest write.
    may_be: Vec<Vec<(u8, bool)>>,
    /// Commands that did not succeed, with their outcome.
    pub(super) refused: Vec<Outcome>,
}

impl Client {
    pub(super) fn new(drive: ServedDevice) -> Client {
        Client {
            drive,
            may_be: vec![vec![(0, true)]; BLOCKS as usize],
            refused: Vec::new(),
        }
    }

    fn command(&mut self, op: Op, block: u64, data: &mut [u8]) -> Outcome {
        let bytes = data.len() as u32;
        let request = IoRequest {
            tag: 0,
            op,
            fua: false,
            queue: 0,
            offset: block * BLOCK,
            bytes,
        };
        let now = self.drive.now();
        let given = data.to_vec();
        self.drive.submit_with(now, 0, &request, &mut |into| {
            into.copy_from_slice(&given);
            true
        });
        let mut replies = Vec::new();
        self.drive.complete_all(&mut replies);
        assert_eq!(replies.len(), 1);
        let mut reply = replies[0];
        self.drive.hand_over(&mut reply);
        if op == Op::Read && reply.outcome == Outcome::Success {
            self.drive.read(reply.offset, data).expect("it was read");
        }
        self.drive.take_back(&reply);
        if reply.outcome != Outcome::Success {
            self.refused.push(reply.outcome);
        }
        reply.outcome
    }

    pub(super) fn write(&mut self, block: u64, stamp: u8) -> Outcome {
        let outcome = self.command(Op::Write, block, &mut [stamp; BLOCK as usize]);
        self.may_be[block as usize].push((stamp, outcome == Outcome::Success));
        outcome
    }

    pub(super) fn flush(&mut self) -> Outcome {
        let outcome = self.command(Op::Flush, 0, &mut []);
        if outcome == Outcome::Success {
            self.settled();
        }
        outcome
    }

    /// Records that acknowledged writes are durable now.
    pub(super) fn settled(&mut self) {
        for may_be in &mut self.may_be {
            // A write that failed may be executed at any time.
            let last = may_be.iter().rposition(|(_, acknowledged)| *acknowledged);
            may_be.drain(..last.unwrap_or(0));
        }
    }

    /// Checks that all blocks read one of their allowed values; may be repeated.
    pub(super) fn check(&mut self, what: &str) {
        for block in 0..BLOCKS {
            let mut seen = Vec::new();
            for _ in 0..3 {
                let mut data = [0; BLOCK as usize];
                let outcome = self.command(Op::Read, block, &mut data);
                assert_eq!(outcome, Outcome::Success, "{what}: block {block}");
                assert!(data.iter().all(|byte| *byte == data[0]), "{what}: torn");
                seen.push(data[0]);
            }
            let may_be = &self.may_be[block as usize];
            assert!(
                may_be.iter().any(|(stamp, _)| *stamp == seen[0]),
                "{what}: block {block}: {seen:?} not of {may_be:?}"
            );
            assert!(
                seen.iter().all(|it| *it == seen[0]),
                "{what}: block {block}: {seen:?}"
            );
        }
    }

    /// Writes in rounds until it has written this number of times, with occasional flushes.
    pub(super) fn fill(&mut self, times: u64, first: u64) {
        for step in first..first + times {
            self.write(step * 13 % BLOCKS, (step % 250) as u8 + 1);
            if step % 8 == 7 {
                self.flush();
            }
        }
    }

    /// Kills the server.
    pub(super) fn kill(self) -> Vec<Vec<(u8, bool)>> {
        drop(self.drive);
        self.may_be
    }

    pub(super) fn opened_again(pool: &str, folder: &Path, may_be: Vec<Vec<(u8, bool)>>) -> Client {
        let drive = open(pool, folder).expect("it opens");
        let mut client = Client::new(drive);
        client.may_be = may_be;
        client
    }

    /// Checks that no error other than "no space" was returned, and that no line reports a failed member.
    fn only_no_space(&mut self, pool: &str) {
        let all = &self.refused;
        assert!(
            all.iter().all(|it| *it == Outcome::NoSpace),
            "{pool}: {all:?}"
        );
        while let Some(line) = self.drive.complaint(Wall::default()) {
            assert!(!line.contains("cannot be written"), "{pool}: {line}");
        }
        let warning = self.drive.health(Time::ZERO).warning;
        assert!(!warning.reliability, "{pool}: a member is given up");
    }
}

/// Returns a full store of a pool that has been written, with this many bytes of free space.
fn filled(pool: &str, folder: &Path, more: u64) -> Client {
    let mut client = Client::new(open(pool, folder).expect("a new pool"));
    client.fill(100, 0);
    assert_eq!(client.flush(), Outcome::Success);
    limit(Some(more));
    client.fill(60, 100);
    client
}

const SIZES: [u64; 2] = [5_000, 90_000];

fn each(what: impl Fn(&str, u64, &Path)) {
    for pool in POOLS {
        for more in SIZES {
            let folder = tempfile::tempdir().expect("a folder");
            what(pool, more, folder.path());
            limit(None);
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    each(|pool, more, folder| {
        let mut client = filled(pool, folder, more);
        assert!(!client.refused.is_empty(), "{pool}: {more} are enough");
        client.only_no_space(pool);
        client.check(pool);
        let may_be = client.kill();
        limit(None);
        let mut client = Client::opened_again(pool, folder, may_be);
        assert!(!client.drive.read_only());
        client.check(&format!("{pool}, {more}, killed"));
        client.fill(100, 200);
        assert_eq!(client.flush(), Outcome::Success);
        client.only_no_space(pool);
        assert!(client.refused.is_empty());
        client.check(pool);
    });
}

#[test]
fn it_goes_on_as_soon_as_there_is_room() {
    each(|pool, more, folder| {
        let mut client = filled(pool, folder, more);
        client.only_no_space(pool);
        // Free space for a part of the waiting writes first: the server may be killed then, too.
        limit(Some(9_000));
        client.drive.settle(client.drive.now());
        client.check(pool);
        limit(None);
        assert_eq!(client.write(1, 251), Outcome::Success);
        let lines: Vec<String> =
            std::iter::from_fn(|| client.drive.complaint(Wall::NEVER)).collect();
        assert!(
            lines.iter().any(|it| it.contains("free space again")),
            "{lines:?}"
        );
        client.fill(100, 200);
        assert_eq!(client.flush(), Outcome::Success);
        client.only_no_space(pool);
        let may_be = client.kill();
        let mut client = Client::opened_again(pool, folder, may_be);
        client.check(pool);
        client.drive.shut_down().expect("an orderly end");
    });
}

#[test]
fn a_kill_while_what_waited_is_written_is_a_power_cut() {
    each(|pool, more, folder| {
        let mut client = filled(pool, folder, more);
        limit(Some(more / 3 + 4_096));
        client.drive.settle(client.drive.now());
        let may_be = client.kill();
        limit(None);
        let mut client = Client::opened_again(pool, folder, may_be);
        client.check(pool);
    });
}

#[test]
fn without_room_it_opens_read_only_and_changes_nothing() {
    each(|pool, more, folder| {
        let client = filled(pool, folder, more);
        let may_be = client.kill();
        let contents = |folder: &Path| {
            let entries = std::fs::read_dir(folder.join("store")).expect("a folder");
            let images = entries.map(|it| it.expect("a file").path());
            let images = images.filter(|it| it.extension().is_some_and(|it| it == "img"));
            let blocks = images.map(|it| (std::fs::metadata(&it).expect("a file"), it));
            let mut all: Vec<_> = blocks
                .map(|(data, path)| (path, data.modified().expect("a time")))
                .collect();
            all.sort();
            all
        };
        let before = contents(folder);
        limit(Some(0));
        let mut client = Client::opened_again(pool, folder, may_be.clone());
        client.check(&format!("{pool}, {more}, without room"));
        if client.drive.read_only() {
            let outcome = client.command(Op::Write, 0, &mut [1; BLOCK as usize]);
            assert_eq!(outcome, Outcome::ReadOnly);
            assert_eq!(client.flush(), Outcome::Success);
        }
        client.drive.shut_down().expect("nothing is to be saved");
        drop(client);
        assert_eq!(contents(folder), before, "{pool}");
        limit(None);
        let mut client = Client::opened_again(pool, folder, may_be);
        assert!(!client.drive.read_only());
        client.check(pool);
    });
}

#[test]
fn a_new_pool_without_room_is_refused_and_leaves_nothing() {
    for pool in POOLS {
        let folder = tempfile::tempdir().expect("a folder");
        limit(Some(600));
        let opened = open(pool, folder.path());
        limit(None);
        // A stripe writes nothing before it is used.
        if let Err(why) = opened {
            assert!(why.contains("no storage space"), "{why}");
            let left = std::fs::read_dir(folder.path().join("store")).map_or(0, Iterator::count);
            assert_eq!(left, 0, "{pool}");
        }
    }
}
