//! An old copy of a member returns between two epochs of a pool: if others have the missing data, it is resynced;
//! otherwise the pool is refused, and nothing is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pools::{Rig, check, flush, kill, refused, write};
use crate::rig::{Client, end, serve_logged};

/// Copies a file or a folder over another; holes are kept.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .args(["-rT", "--sparse=always"])
        .args([from, to])
        .status();
    assert!(copied.expect("cp").success());
}

/// End of an epoch.
#[derive(Clone, Copy, PartialEq)]
enum End {
    InOrder,
    Killed,
}

/// A pool with two epochs, and copies of its stores.
struct Lives {
    rig: Rig,
    pool: &'static str,
}

impl Lives {
    /// All blocks have generation 1 in the first epoch and 2 in the second.
    fn new(pool: &'static str, how: End) -> Lives {
        let lives = Lives {
            rig: Rig::new(),
            pool,
        };
        for generation in [1, 2] {
            lives.live(generation, how);
            copy(&lives.store(), &lives.kept(generation));
        }
        lives
    }

    fn live(&self, generation: u64, how: End) {
        let (server, mut client) = self.rig.serve(self.pool);
        write(&mut client, generation);
        flush(&mut client);
        match how {
            End::InOrder => end(server),
            End::Killed => kill(server),
        }
    }

    fn store(&self) -> PathBuf {
        self.rig.store()
    }

    fn kept(&self, generation: u64) -> PathBuf {
        self.rig.folder.path().join(format!("kept-{generation}"))
    }

    /// Restores the stores as after the second epoch, but some files as after the first.
    fn with_old(&self, files: &[&str]) {
        fs::remove_dir_all(self.store()).expect("removed");
        copy(&self.kept(2), &self.store());
        for file in files {
            copy(&self.kept(1).join(file), &self.store().join(file));
        }
    }

    fn is_refused(&self, files: &[&str], words: &str) {
        self.with_old(files);
        refused(self.pool, &self.store(), words);
    }
}

#[test]
fn an_old_leg_of_a_mirror_is_found_and_made_whole() {
    for how in [End::InOrder, End::Killed] {
        let lives = Lives::new("mirror(2*optane-memory-16)", how);
        for leg in [0, 1] {
            let files = [
                format!("optane-memory-16.{leg}.img"),
                format!("optane-memory-16.{leg}.img.state"),
            ];
            let files = files.each_ref().map(String::as_str);
            for files in [&files[..], &files[..1]] {
                lives.with_old(files);
                let (server, mut client) = lives.rig.serve(lives.pool);
                let said = lives.rig.log();
                let words = format!("optane-memory-16.{leg} is an old copy");
                assert!(said.contains(&words), "{said}");
                for _ in 0..2 {
                    check(&mut client, 2);
                }
                kill(server);
                // By now it equals the other one.
                let (server, mut client) = lives.rig.serve(lives.pool);
                assert!(!lives.rig.log().contains("old copy"), "{}", lives.rig.log());
                lives.rig.ok(&format!("optane-memory-16.{}: dies", 1 - leg));
                check(&mut client, 2);
                kill(server);
            }
        }
    }
}

#[test]
fn a_state_that_is_older_than_its_data_is_told() {
    let lives = Lives::new("mirror(2*optane-memory-16)", End::InOrder);
    lives.with_old(&["optane-memory-16.1.img.state"]);
    let (_server, mut client) = lives.rig.serve(lives.pool);
    let said = lives.rig.log();
    let words = "optane-memory-16.1: its .state is older than its data";
    assert!(said.contains(words), "{said}");
    check(&mut client, 2);
}

#[test]
fn a_pool_of_which_all_members_are_old_is_served_only_if_the_loss_is_accepted() {
    let lives = Lives::new("mirror(2*optane-memory-16)", End::InOrder);
    let old = ["optane-memory-16.0.img", "optane-memory-16.1.img"];
    lives.is_refused(&old, "all present members are old copies");
    let server = serve_logged(lives.rig.folder.path(), lives.pool, &["--accept-loss"]);
    check(&mut Client::connect(&server), 1);
    end(server);
    let (_server, mut client) = lives.rig.serve(lives.pool);
    check(&mut client, 1);
}

#[test]
fn two_copies_of_a_pool_that_both_went_on_are_not_mixed() {
    let lives = Lives::new("mirror(2*optane-memory-16)", End::InOrder);
    // Another second epoch after the same first one.
    fs::remove_dir_all(lives.store()).expect("removed");
    copy(&lives.kept(1), &lives.store());
    lives.live(3, End::InOrder);
    let leg = "optane-memory-16.1.img";
    for file in [leg, "optane-memory-16.1.img.state"] {
        copy(&lives.kept(2).join(file), &lives.store().join(file));
    }
    refused(lives.pool, &lives.store(), "diverged");
}

#[test]
fn old_parts_that_nothing_stands_in_for_are_refused() {
    let lives = Lives::new("stripe(2*optane-memory-16; chunk=4k)", End::Killed);
    let old = "optane-memory-16.1 is an old copy";
    lives.is_refused(&["optane-memory-16.1.img"], old);
    lives.is_refused(
        &["optane-memory-16.1.img", "optane-memory-16.1.img.state"],
        old,
    );

    let pool = "write-back-cache(cache=optane-memory-16, capacity=950pro-256)";
    for how in [End::Killed, End::InOrder] {
        let lives = Lives::new(pool, how);
        lives.is_refused(&["optane-memory-16.img"], "optane-memory-16 is an old copy");
        lives.is_refused(&["950pro-256.img"], "950pro-256 is an old copy");
        lives.with_old(&[]);
        let (_server, mut client) = lives.rig.serve(lives.pool);
        check(&mut client, 2);
    }
}

#[test]
fn an_old_log_counts_as_one_that_is_gone() {
    let pool = "intent-log(main=mirror(2*950pro-256), log=optane-memory-16; ram=100MiB)";
    let lives = Lives::new(pool, End::Killed);
    let log = "optane-memory-16, a log of intent-log, is an old copy";
    lives.is_refused(&["optane-memory-16.img", "optane-memory-16.img.state"], log);
    lives.is_refused(&["optane-memory-16.img"], log);
    let main = ["950pro-256.0.img", "950pro-256.1.img"];
    lives.is_refused(&main, "is an old copy");
    // After the loss has been accepted, the pool has a log again.
    lives.with_old(&["optane-memory-16.img"]);
    let server = serve_logged(lives.rig.folder.path(), pool, &["--accept-loss"]);
    let mut client = Client::connect(&server);
    write(&mut client, 3);
    flush(&mut client);
    kill(server);
    let (server, mut client) = lives.rig.serve(pool);
    check(&mut client, 3);
    write(&mut client, 4);
    flush(&mut client);
    kill(server);
    let (_server, mut client) = lives.rig.serve(pool);
    check(&mut client, 4);
}

/// The old copy's own label states that the other member is missing. This no longer counts, even if the server is
/// killed before the copy has been resynced.
#[test]
fn an_old_leg_that_went_on_alone_once_may_be_killed_while_it_is_copied_to() {
    let pool = "mirror(2*p4801x-100)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    rig.ok("p4801x-100.0: dies");
    write(&mut client, 2);
    flush(&mut client);
    kill(server);
    let store = rig.store();
    let kept = rig.folder.path().join("kept");
    copy(&store, &kept);

    let (server, mut client) = rig.serve(pool);
    while !rig
        .log()
        .contains("p4801x-100.0 is in sync with mirror again")
    {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    write(&mut client, 3);
    flush(&mut client);
    kill(server);
    for file in ["p4801x-100.1.img", "p4801x-100.1.img.state"] {
        copy(&kept.join(file), &store.join(file));
    }

    // No data is copied to it before the server is killed.
    let script = rig.folder.path().join("script");
    fs::write(&script, "at 0us p4801x-100.1: slow 1000s\n").expect("written");
    let script = script.display().to_string();
    kill(serve_logged(rig.folder.path(), pool, &["--fault", &script]));
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 3);
    check(&mut client, 3);
}
