//! A member that has missed writes is not served alone, although its own labels do not say so: `pool.state` does.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use live::nbd::wire::{command, error};

use crate::full::ends_with;
use crate::pools::{Rig, check, end_by, flush, kill, refused, write};
use crate::rig::{Client, end, serve_logged};

const MIRROR: &str = "mirror(2*p4801x-100)";

#[test]
fn a_mirror_member_that_is_behind_is_not_served_alone() {
    let rig = Rig::new();
    let store = rig.store();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    rig.ok("p4801x-100.1: dies");
    write(&mut client, 2);
    kill(server);
    rig.aside("p4801x-100.0", false);
    refused(MIRROR, &store, "p4801x-100.1 has missed writes");
    refused(MIRROR, &store, "--accept-loss");

    // With the other member, everything is there, and it may be missing once this one is in sync again.
    rig.aside("p4801x-100.0", true);
    let (server, mut client) = rig.serve(MIRROR);
    check(&mut client, 2);
    while !rig
        .log()
        .contains("p4801x-100.1 is in sync with mirror again")
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(server);
    rig.aside("p4801x-100.0", false);
    let (server, mut client) = rig.serve(MIRROR);
    check(&mut client, 2);
    write(&mut client, 3);
    kill(server);

    // Now the first member is behind: the pool was opened without it.
    rig.aside("p4801x-100.0", true);
    rig.aside("p4801x-100.1", false);
    refused(MIRROR, &store, "all present members are old copies");
}

#[test]
fn a_member_that_is_behind_is_served_if_the_loss_is_accepted() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    rig.ok("p4801x-100.1: dies");
    write(&mut client, 2);
    end(server);
    rig.aside("p4801x-100.0", false);
    let server = serve_logged(rig.folder.path(), MIRROR, &["--accept-loss"]);
    check(&mut Client::connect(&server), 1);
    end(server);
    let (_server, mut client) = rig.serve(MIRROR);
    check(&mut client, 1);
}

/// The only record that the other cache is behind was in the mirror's labels, which are in the lost cache.
#[test]
fn a_cache_that_is_behind_is_not_served_if_the_other_cannot_read_its_superblocks() {
    let pool = "mirror(2*write-back-cache(cache=optane-memory-16, capacity=950pro-256))";
    let rig = Rig::new();
    let store = rig.store();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    flush(&mut client);
    rig.ok("optane-memory-16.1: dies");
    write(&mut client, 2);
    flush(&mut client);
    end_by(server, "KILL");
    let cache = store.join("optane-memory-16.0.img");
    let file = OpenOptions::new().read(true).write(true).open(cache);
    let file = file.expect("the cache");
    let mut superblocks = vec![0; 16 << 10];
    file.read_exact_at(&mut superblocks, 0).expect("read");
    file.write_all_at(&[0; 16 << 10], 0).expect("written");
    refused(pool, &store, "has missed writes");
    file.write_all_at(&superblocks, 0).expect("written");
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 2);
}

/// Waits until the server has logged this.
fn wait_for(rig: &Rig, text: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while !rig.log().contains(text) {
        assert!(Instant::now() < end, "{text}: {}", rig.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// While `pool.state` cannot be written, no client gets the acknowledgement of a write that a member has missed. A
/// folder in the place of the new file stands for a disk that does not accept the file.
#[test]
fn without_a_note_nothing_is_acknowledged_that_a_member_has_missed() {
    let rig = Rig::new();
    let store = rig.store();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    let obstacle = store.join("pool.state.new");
    std::fs::create_dir(&obstacle).expect("a folder");
    rig.ok("p4801x-100.1: dies");
    for _ in 0..3 {
        assert_eq!(ends_with(&mut client, command::WRITE, 901), error::EIO);
    }
    wait_for(
        &rig,
        "pool.state: which members are in sync: Is a directory",
    );
    kill(server);
    std::fs::remove_dir(&obstacle).expect("the folder");
    // So this member has everything that was acknowledged.
    rig.aside("p4801x-100.0", false);
    let (server, mut client) = rig.serve(MIRROR);
    check(&mut client, 1);
    kill(server);
}

/// The server writes `pool.state` again as soon as that is possible, without another change of the members.
#[test]
fn a_note_that_could_not_be_written_is_written_later() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    let obstacle = rig.store().join("pool.state.new");
    std::fs::create_dir(&obstacle).expect("a folder");
    rig.ok("p4801x-100.1: dies");
    assert_eq!(ends_with(&mut client, command::WRITE, 901), error::EIO);
    drop(client);
    std::fs::remove_dir(&obstacle).expect("the folder");
    // Without clients, too.
    wait_for(&rig, "pool.state can be written again");
    let mut client = Client::connect(&server);
    write(&mut client, 2);
    check(&mut client, 2);
    kill(server);
    rig.aside("p4801x-100.0", false);
    refused(MIRROR, &rig.store(), "p4801x-100.1 has missed writes");
}

/// A mirrored log that lost both copies is not used. The server says so, and what to do.
#[test]
fn a_log_that_is_not_used_is_reported_and_is_used_after_a_restart() {
    let pool = "intent-log(main=mirror(2*950pro-256), log=mirror(2*p4801x-100); ram=100MiB)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    flush(&mut client);
    for copy in ["p4801x-100.0", "p4801x-100.1"] {
        rig.ok(&format!("{copy}: dies"));
    }
    write(&mut client, 2);
    flush(&mut client);
    wait_for(&rig, "log failed and intent-log does not use it");
    assert!(rig.log().contains("after a restart of the server"));
    // The copy that failed first is stale: the mirror rejects writes without the other one.
    rig.ok("p4801x-100.0: returns");
    write(&mut client, 2);
    flush(&mut client);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!rig.log().contains("uses log again"), "{}", rig.log());
    kill(server);
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 2);
    assert!(!rig.log().contains("does not use"), "{}", rig.log());
}
