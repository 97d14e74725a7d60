//! RAID 5 and RAID 6 while clients write: members die, return and are missing, the server is killed or ends in order, and what was
//! acknowledged is there, or the array is refused.

use std::path::Path;
use std::process::Stdio;

use crate::pools::{Rig, check, flush, kill, refused, write};
use crate::rig::{Client, Server, drivelab, end};

const RAID5: &str = "raid5(3*p4801x-100; chunk=64k, region=1MiB)";
const RAID6: &str = "raid6(5*p4801x-100; chunk=64k, region=1MiB)";

#[test]
fn a_member_that_returned_is_brought_up_and_then_another_may_go() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(RAID5);
    write(&mut client, 1);
    rig.ok("p4801x-100.0: dies");
    check(&mut client, 1);
    write(&mut client, 2);
    rig.ok("p4801x-100.0: returns");
    check(&mut client, 2);
    // The member is rebuilt in use, and an orderly end completes the rebuild.
    end(server);
    let (server, mut client) = rig.serve(RAID5);
    assert!(!rig.log().contains("missed writes"), "{}", rig.log());
    rig.ok("p4801x-100.1: dies");
    check(&mut client, 2);
    end(server);
    rig.aside("p4801x-100.1", false);
    let (server, mut client) = rig.serve(RAID5);
    let said = "p4801x-100.1 is missing: raid5 continues without it";
    assert!(rig.log().contains(said), "{}", rig.log());
    check(&mut client, 2);
    write(&mut client, 3);
    end(server);
    rig.aside("p4801x-100.1", true);
    let (_server, mut client) = rig.serve(RAID5);
    rig.ok("p4801x-100.2: dies");
    check(&mut client, 3);
}

#[test]
fn all_members_are_enough_after_a_kill() {
    for pool in [RAID5, RAID6] {
        let rig = Rig::new();
        let (server, mut client) = rig.serve(pool);
        write(&mut client, 1);
        kill(server);
        let (_server, mut client) = rig.serve(pool);
        assert!(
            rig.log().contains("parity matches the data again"),
            "{}",
            rig.log()
        );
        check(&mut client, 1);
        rig.ok("p4801x-100.2: dies");
        check(&mut client, 1);
    }
}

fn accept_loss(pool: &str, store: &Path) -> String {
    let nbd = format!("unix:{}", store.with_extension("sock").display());
    let mut server = drivelab(&[pool, "--nbd", &nbd, "--accept-loss", "--speed", "0"])
        .args(["--store".as_ref(), store.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("drivelab starts");
    let said = crate::rig::first_line(&mut server);
    server.kill().expect("kill -9");
    server.wait().expect("it was killed");
    said
}

#[test]
fn what_a_kill_leaves_in_doubt_is_refused_unless_the_loss_is_accepted() {
    let rig = Rig::new();
    let store = rig.store();
    let (server, mut client) = rig.serve(RAID5);
    write(&mut client, 1);
    kill(server);
    rig.aside("p4801x-100.1", false);
    let why = "p4801x-100.1 is missing, old, was absent or is partly unreadable";
    refused(RAID5, &store, why);
    refused(RAID5, &store, "--accept-loss");
    // With all of it there is no doubt.
    rig.aside("p4801x-100.1", true);
    let (server, mut client) = rig.serve(RAID5);
    check(&mut client, 1);
    rig.ok("p4801x-100.1: dies");
    write(&mut client, 2);
    kill(server);
    refused(RAID5, &store, why);
    assert!(accept_loss(RAID5, &store).contains("raid5"));
}

#[test]
fn a_raid6_opens_without_a_member_where_its_second_parity_leaves_no_doubt() {
    let rig = Rig::new();
    let store = rig.store();
    let (server, mut client) = rig.serve(RAID6);
    write(&mut client, 1);
    rig.ok("p4801x-100.3: dies");
    write(&mut client, 2);
    kill(server);
    let (server, mut client): (_, Client) = rig.serve(RAID6);
    check(&mut client, 2);
    write(&mut client, 3);
    kill(server);
    rig.aside("p4801x-100.0", false);
    rig.aside("p4801x-100.4", false);
    refused(RAID6, &store, "cannot be computed with certainty");
}

/// Serves this array with a slow rebuild, whose member dies, misses writes and returns.
fn serve_rebuilding(rig: &Rig, pool: &str) -> (String, Server, Client) {
    let slow = pool.replace(';', "; resync_rate=1MB/s,");
    let (server, mut client) = rig.serve(&slow);
    write(&mut client, 1);
    rig.ok("p4801x-100.1: dies");
    check(&mut client, 1);
    write(&mut client, 2);
    flush(&mut client);
    rig.ok("p4801x-100.1: returns");
    (slow, server, client)
}

/// Clients read what they wrote while a returned member is rebuilt. An orderly end completes the rebuild: after a kill
/// of the next server, the array needs no other member.
#[test]
fn clients_read_right_data_until_a_member_is_rebuilt() {
    let rig = Rig::new();
    let (pool, server, mut client) = serve_rebuilding(&rig, RAID5);
    check(&mut client, 2);
    end(server);
    let (server, mut client) = rig.serve(&pool);
    assert!(!rig.log().contains("missed writes"), "{}", rig.log());
    check(&mut client, 2);
    kill(server);
    let (_server, mut client) = rig.serve(&pool);
    check(&mut client, 2);
    rig.ok("p4801x-100.2: dies");
    check(&mut client, 2);
}

/// A RAID 6 that was killed in the middle of a rebuild has what clients wrote, also without another member. A RAID 5
/// that was written before is refused: one member is old, and writes may have been in flight.
#[test]
fn a_kill_in_the_middle_of_a_rebuild_loses_nothing() {
    let rig = Rig::new();
    let (pool, server, mut client) = serve_rebuilding(&rig, RAID6);
    check(&mut client, 2);
    kill(server);
    let (_server, mut client) = rig.serve(&pool);
    let said = "p4801x-100.1 missed writes while it was absent";
    assert!(rig.log().contains(said), "{}", rig.log());
    check(&mut client, 2);
    rig.ok("p4801x-100.2: dies");
    check(&mut client, 2);

    let rig = Rig::new();
    let (pool, server, mut client) = serve_rebuilding(&rig, RAID5);
    check(&mut client, 2);
    kill(server);
    refused(&pool, &rig.store(), "cannot be computed with certainty");
}
