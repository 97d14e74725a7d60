//! Data after a kill of the server, a power cut, or an orderly shutdown.

use std::process::Command;

use live::nbd::wire::{self, command};

use crate::rig::{BLOCK, BLOCKS, Client, SIZE, drivelab, end, serve, stamped};

/// Writes generations of stamps, killing the server in the middle of one, and then reads everything. Acknowledged
/// writes count as durable; with `flushes`, only those before the last acknowledged flush.
fn killed_in_the_middle(drive: &str, flushes: bool, after: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = serve(folder.path(), drive, &[]);
    let mut client = Client::connect(&server);
    let mut acknowledged = vec![0u64; BLOCKS as usize];
    let mut sent = vec![0u64; BLOCKS as usize];
    let mut durable = acknowledged.clone();
    let mut generation = 0;
    let mut writes = 0;
    'all: loop {
        generation += 1;
        for first in (0..BLOCKS).step_by(16) {
            for block in first..first + 16 {
                sent[block as usize] = generation;
                if client
                    .send(command::WRITE, block, &stamped(block, generation))
                    .is_err()
                {
                    break 'all;
                }
            }
            for _ in 0..16 {
                writes += 1;
                if writes == after {
                    server.child.kill().expect("kill -9");
                }
                match client.reply() {
                    Ok(block) => acknowledged[block as usize] = generation,
                    Err(_) => break 'all,
                }
            }
        }
        if flushes {
            if client.send(command::FLUSH, 0, &[]).is_err() || client.reply().is_err() {
                break;
            }
            durable = acknowledged.clone();
        }
    }
    if !flushes {
        durable = acknowledged;
    }
    server.child.wait().expect("it was killed");
    let server = serve(folder.path(), drive, &[]);
    let mut client = Client::connect(&server);
    for block in 0..BLOCKS {
        let data = client.read(block);
        let found = wire::be64(&data, 8);
        assert!(
            data.chunks(512).all(|sector| sector == &data[..512]),
            "block {block} is torn"
        );
        let expected = if found == 0 {
            vec![0; BLOCK]
        } else {
            stamped(block, found)
        };
        assert_eq!(data, expected, "block {block} is another's");
        let (least, most) = (durable[block as usize], sent[block as usize]);
        assert!(
            (least..=most).contains(&found),
            "block {block}: {found}, not in {least}..={most}"
        );
    }
    assert!(generation > 1, "killed too early to say anything");
}

#[test]
fn after_kill_9_what_a_drive_without_cache_acknowledged_is_there() {
    for after in [1_500, 2_345] {
        killed_in_the_middle("p4800x-375", false, after);
    }
}

/// A pool's data is in one store: in this respect it is like one drive whose cache contains the data of its tiers and
/// members.
#[test]
fn after_kill_9_what_a_pool_acknowledged_or_flushed_is_there() {
    killed_in_the_middle("mirror(2*p4801x-100)", false, 2_345);
    killed_in_the_middle(
        "write-back-cache(cache=p4801x-100, capacity=950pro-256)",
        false,
        1_500,
    );
    killed_in_the_middle("mirror(2*950pro-256)", true, 3_210);
}

#[test]
fn after_kill_9_what_was_flushed_is_there() {
    for after in [1_500, 3_210] {
        killed_in_the_middle("950pro-256", true, after);
    }
}

#[test]
fn an_orderly_end_loses_nothing_and_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = serve(folder.path(), "950pro-256", &[]);
    let mut client = Client::connect(&server);
    client
        .send(command::WRITE, 5, &stamped(5, 1))
        .expect("sent");
    client.reply().expect("an answer");
    let pid = server.child.id().to_string();
    let asked = Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill");
    assert!(asked.success());
    assert!(server.child.wait().expect("it ends").success());
    let state = std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
    assert!(state.contains("clean true"), "{state}");
    assert!(state.contains("host_write_commands 1\n"), "{state}");
    assert!(!server.socket.exists(), "the socket is left behind");
    let server = serve(folder.path(), "950pro-256", &[]);
    assert_eq!(Client::connect(&server).read(5), stamped(5, 1));
}

#[test]
fn a_power_cut_takes_what_a_volatile_cache_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "950pro-256", &["--power-cut"]);
    let mut client = Client::connect(&server);
    client
        .send(command::WRITE, 1, &stamped(1, 1))
        .expect("sent");
    client.reply().expect("an answer");
    client.send(command::FLUSH, 0, &[]).expect("sent");
    client.reply().expect("an answer");
    client
        .send(command::WRITE, 1, &stamped(1, 2))
        .expect("sent");
    client.reply().expect("an answer");
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-USR1", &pid])
            .status()
            .expect("kill")
            .success()
    );
    // The connection ends, as at a power cut of a drive.
    assert!(client.reply().is_err());
    let found = Client::connect(&server).read(1);
    assert!(
        found == stamped(1, 1) || found == stamped(1, 2),
        "neither old nor new"
    );
}

#[test]
fn what_is_set_on_the_drive_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = [
        "--lba-format",
        "4096+8",
        "--percentage-used",
        "104",
        "--power-limit",
        "12W",
        "--uptime",
        "1h",
    ];
    end(serve(folder.path(), "p4800x-375", &set));
    let state = || std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
    for line in ["\nlba_format 4\n", "\npercentage_used 104\n"] {
        assert!(state().contains(line), "{line}: {}", state());
    }
    // An existing store: wear is set again, the format is unchanged.
    end(serve(
        folder.path(),
        "p4800x-375",
        &["--percentage-used", "50"],
    ));
    assert!(state().contains("\nlba_format 4\npr"), "{}", state());
    assert!(state().contains("\npercentage_used 50\n"), "{}", state());
    let store = folder.path().join("disk.img").display().to_string();
    for (drive, option, value, word) in [
        (
            "p4800x-375",
            "--lba-format",
            "512",
            "it is in LBA format 4096+8",
        ),
        ("p4800x-375", "--lba-format", "4096+3", "it offers 512"),
        ("p4800x-375", "--power-limit", "1W", "idle power"),
        ("950pro-256", "--power-limit", "10W", "--power-limit"),
        ("950pro-256", "--uptime", "1h", "--uptime"),
    ] {
        let args = [
            drive, "--size", SIZE, "--nbd", "unix:x", "--store", &store, option, value,
        ];
        let output = drivelab(&args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[test]
fn what_the_map_was_like_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let ftl = || {
        let state = std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
        let line = state.lines().find_map(|line| line.strip_prefix("ftl "));
        line.expect("a line").to_owned()
    };
    end(serve(folder.path(), "950pro-256", &["--state", "fresh"]));
    assert_eq!(ftl(), "fresh");
    end(serve(folder.path(), "950pro-256", &[]));
    assert_eq!(ftl(), "fresh");
    end(serve(folder.path(), "950pro-256", &["--state", "filled"]));
    assert_eq!(ftl(), "filled");
    end(serve(folder.path(), "950pro-256", &[]));
    assert_eq!(ftl(), "filled");
}
