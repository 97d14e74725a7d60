//! Mirror members that are not plain drives, and blank ones: a tier below a mirror that cannot be opened is created
//! again or left out, and clients are served meanwhile.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::pools::{Rig, check, end_by, flush, kill, write};
use crate::rig::end;

/// Two write-back caches, each with the cache `optane-memory-16.0` or `.1` and a backing drive.
const CACHES: &str = "mirror(2*write-back-cache(cache=optane-memory-16, capacity=950pro-256))";

/// Waits until the log contains this text.
fn wait_for(rig: &Rig, words: &str) {
    for _ in 0..3000 {
        if rig.log().contains(words) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not say `{words}`: {}", rig.log());
}

#[test]
fn a_mirror_of_caches_opens_again_after_a_member_has_died() {
    for member in ["optane-memory-16.0", "950pro-256.1"] {
        for (returns, signal) in [(false, "KILL"), (true, "KILL"), (true, "INT")] {
            let rig = Rig::new();
            let (server, mut client) = rig.serve(CACHES);
            write(&mut client, 1);
            rig.ok(&format!("{member}: dies"));
            write(&mut client, 2);
            if returns {
                rig.ok(&format!("{member}: returns"));
            }
            write(&mut client, 3);
            flush(&mut client);
            end_by(server, signal);
            for _ in 0..2 {
                let (server, mut client) = rig.serve(CACHES);
                check(&mut client, 3);
                kill(server);
            }
            // When this member is in sync, the other one may fail.
            let (server, mut client) = rig.serve(CACHES);
            if rig.log().contains("resynchronised") || rig.log().contains("anew") {
                wait_for(&rig, "is in sync with mirror again");
            }
            let other = match member.ends_with('0') {
                true => "optane-memory-16.1",
                false => "optane-memory-16.0",
            };
            rig.ok(&format!("{other}: dies"));
            check(&mut client, 3);
            kill(server);
        }
    }
}

#[test]
fn a_mirror_of_caches_opens_without_the_files_of_one() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(CACHES);
    write(&mut client, 1);
    kill(server);
    let store = rig.store();
    for name in ["optane-memory-16.0.img", "optane-memory-16.0.img.state"] {
        fs::rename(store.join(name), rig.folder.path().join(name)).expect("moved");
    }
    let (server, mut client) = rig.serve(CACHES);
    check(&mut client, 1);
    write(&mut client, 2);
    kill(server);
    let (server, mut client) = rig.serve(CACHES);
    check(&mut client, 2);
    end(server);
    // A returned member has very old data: it is resynced completely.
    for name in ["optane-memory-16.0.img", "optane-memory-16.0.img.state"] {
        fs::rename(rig.folder.path().join(name), store.join(name)).expect("moved");
    }
    let (server, mut client) = rig.serve(CACHES);
    let said = rig.log();
    assert!(said.contains("it is recreated"), "{said}");
    check(&mut client, 2);
    wait_for(&rig, "write-back-cache.0 is in sync with mirror again");
    rig.ok("optane-memory-16.1: dies");
    check(&mut client, 2);
    kill(server);
}

/// Of the drive's 375 GB, only the served range is copied, while clients are served.
#[test]
fn a_blank_leg_gets_all_that_is_used_while_clients_are_served() {
    let pool = "mirror(2*p4800x-375)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    end(server);
    let image = rig.folder.path().join("disk.img/p4800x-375.1.img");
    let file = fs::File::options()
        .write(true)
        .open(&image)
        .expect("a file");
    let length = file.metadata().expect("its length").len();
    file.set_len(0).expect("emptied");
    file.set_len(length).expect("as long as before");
    let (server, mut client) = rig.serve(pool);
    let said = rig.log();
    assert!(said.contains("p4800x-375.1 is blank"), "{said}");
    check(&mut client, 1);
    write(&mut client, 2);
    // A crash during or at the end of the resync loses no data.
    kill(server);
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 2);
    if rig.log().contains("resynchronised") {
        wait_for(&rig, "p4800x-375.1 is in sync with mirror again");
    }
    rig.ok("p4800x-375.0: dies");
    check(&mut client, 2);
    let du = Command::new("du")
        .arg("-sk")
        .arg(&image)
        .output()
        .expect("du");
    let text = String::from_utf8(du.stdout).expect("text");
    let kib: u64 = text
        .split_whitespace()
        .next()
        .expect("a size")
        .parse()
        .expect("KiB");
    assert!(kib < 64 << 10, "{kib} KiB are in use");
}

#[test]
fn five_levels_go_on_when_a_cache_at_the_bottom_dies() {
    let pool = "mirror(stripe(2*mirror(2*write-back-cache(cache=optane-memory-16, capacity=950pro-256)); chunk=64k), p4800x-375)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    rig.ok("optane-memory-16.0: dies");
    rig.ok("950pro-256.3: dies");
    write(&mut client, 2);
    flush(&mut client);
    kill(server);
    for generation in [2, 3] {
        let (server, mut client) = rig.serve(pool);
        check(&mut client, generation);
        write(&mut client, generation + 1);
        flush(&mut client);
        kill(server);
    }
    let (server, mut client) = rig.serve(pool);
    check(&mut client, 4);
    rig.ok("p4800x-375: dies");
    check(&mut client, 4);
    kill(server);
}
