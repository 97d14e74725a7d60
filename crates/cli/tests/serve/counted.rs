//! Faults by count, range and rate on served drives and pools: clients receive errors, and acknowledged data never
//! changes.

use std::io::Read;
use std::path::{Path, PathBuf};

use live::nbd::wire::{self, command};

use crate::rig::{BLOCK, Client, Server, drivelab, serve, serve_logged, stamped, tell};

const EIO: u32 = 5;
const MIRROR: &str = "mirror(2*p4801x-100)";

/// Number of blocks with a stamp of their own.
const SOME: u64 = 64;

struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Rig {
        Rig {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn control(&self) -> PathBuf {
        self.path().join("control")
    }

    /// Serves with a script of these lines, unless it is empty, and a control socket.
    fn serve(&self, drive: &str, script: &str, more: &[&str]) -> Server {
        let path = self.path().join("script");
        std::fs::write(&path, script).expect("written");
        let (path, control) = (path.display().to_string(), self.control());
        let control = control.display().to_string();
        let fault: &[&str] = match script {
            "" => &[],
            _ => &["--fault", &path],
        };
        let args = [fault, &["--control", &control], more].concat();
        serve_logged(self.path(), drive, &args)
    }

    fn ok(&self, line: &str) {
        assert_eq!(tell(&self.control(), line), "ok\n", "{line}");
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).expect("a log")
    }
}

/// Returns the error of a command, 0 for success; `None` if the connection has ended.
fn error(client: &mut Client, what: u16, block: u64, data: &[u8]) -> Option<u32> {
    client.send(what, block, data).ok()?;
    let mut head = [0; wire::SIMPLE_REPLY];
    client.0.read_exact(&mut head).ok()?;
    Some(wire::be32(&head, 4))
}

fn write(client: &mut Client, block: u64, generation: u64) -> Option<u32> {
    error(client, command::WRITE, block, &stamped(block, generation))
}

fn flush(client: &mut Client) -> Option<u32> {
    error(client, command::FLUSH, 0, &[])
}

/// Writes blocks until one is not answered; returns the number of answered ones, each without an error.
fn write_until_the_end(client: &mut Client, generation: u64) -> u64 {
    for block in 0..SOME {
        match write(client, block, generation) {
            None => return block,
            some => assert_eq!(some, Some(0), "block {block}"),
        }
    }
    SOME
}

/// Returns the content of blocks.
fn blocks(client: &mut Client) -> Vec<Vec<u8>> {
    (0..SOME).map(|block| client.read(block)).collect()
}

#[test]
fn power_fails_with_the_write_of_a_number_as_it_fails_at_any_other_moment() {
    for drive in ["p4800x-375", "950pro-256", MIRROR] {
        let by_count = Rig::new();
        let server = by_count.serve(drive, "at write 20: power-cut\n", &[]);
        let mut client = Client::connect(&server);
        assert_eq!(write_until_the_end(&mut client, 1), 19, "{drive}");
        let counted = blocks(&mut Client::connect(&server));
        let log = by_count.log();
        assert!(log.contains("power cut: 1 commands"), "{drive}: {log}");

        let at_once = Rig::new();
        let server = at_once.serve(drive, "", &[]);
        let mut client = Client::connect(&server);
        for block in 0..19 {
            assert_eq!(write(&mut client, block, 1), Some(0));
        }
        at_once.ok("power-cut");
        let told = blocks(&mut Client::connect(&server));
        assert!(counted == told, "{drive}");
        // A drive without a volatile cache has its acknowledged data.
        if drive != "950pro-256" {
            let kept = (0..19).all(|block| counted[block as usize] == stamped(block, 1));
            assert!(kept, "{drive}");
        }
    }
}

#[test]
fn power_fails_after_a_count_of_flushes_which_have_been_answered() {
    let rig = Rig::new();
    let server = rig.serve("950pro-256", "after 2 flushes: power-cut\n", &[]);
    let mut client = Client::connect(&server);
    for block in 0..20 {
        assert_eq!(write(&mut client, block, 1), Some(0));
        if block == 9 {
            assert_eq!(flush(&mut client), Some(0));
        }
    }
    assert_eq!(flush(&mut client), Some(0), "the second is answered");
    assert_eq!(client.0.read(&mut [0]).expect("an end"), 0);
    let mut client = Client::connect(&server);
    for block in 0..20 {
        assert_eq!(client.read(block), stamped(block, 1));
    }
    // Only once.
    assert_eq!(flush(&mut client), Some(0));
    assert_eq!(flush(&mut client), Some(0));
    assert_eq!(flush(&mut client), Some(0));
}

/// Delayed replies: the power cut waits until the command with the number has been answered.
#[test]
fn power_fails_after_a_count_of_delayed_writes_which_have_been_answered() {
    for delay in ["slow 1ms for 1h", "delay 5ms"] {
        let rig = Rig::new();
        let server = rig.serve("p4800x-375", "", &[]);
        let mut client = Client::connect(&server);
        rig.ok(delay);
        for count in [10, 1] {
            rig.ok(&format!("after {count} writes: power-cut"));
            assert_eq!(write_until_the_end(&mut client, 1), count, "{delay}");
            client = Client::connect(&server);
        }
        for block in 0..10 {
            assert_eq!(client.read(block), stamped(block, 1));
        }
    }
}

/// Counts and times on the control socket begin with the line.
#[test]
fn the_control_socket_has_the_same_words() {
    let rig = Rig::new();
    let server = rig.serve("p4800x-375", "", &[]);
    let mut client = Client::connect(&server);
    for block in 0..10 {
        assert_eq!(write(&mut client, block, 1), Some(0));
    }
    rig.ok("at write 5 p4800x-375: power-cut");
    rig.ok("at write 3: write-fault for 1 command");
    let errors: Vec<_> = (0..4).map(|block| write(&mut client, block, 2)).collect();
    assert_eq!(errors, [Some(0), Some(0), Some(EIO), Some(0)]);
    assert_eq!(write(&mut client, 4, 2), None);
    let mut client = Client::connect(&server);
    let generations = [2, 2, 1, 2, 1];
    for (block, generation) in (0..).zip(generations) {
        assert_eq!(client.read(block), stamped(block, generation));
    }
    rig.ok("at 1ms unrecovered-read");
    while error(&mut client, command::READ, 0, &[]) == Some(0) {
        client.0.read_exact(&mut [0; BLOCK]).expect("data");
    }
    rig.ok("clear");
    assert_eq!(client.read(0), stamped(0, 2));
    // A failed single drive answers with errors until it returns, and keeps its data.
    rig.ok("after 1 flush: dies");
    assert_eq!(flush(&mut client), Some(0));
    assert_eq!(write(&mut client, 0, 3), Some(EIO));
    assert_eq!(error(&mut client, command::READ, 0, &[]), Some(EIO));
    rig.ok("returns");
    assert_eq!(client.read(0), stamped(0, 2));
    for (line, why) in [
        ("at write 0: drop", "counted from 1"),
        ("write-fault range 0..1TiB", "beyond the end"),
        ("at write 5 nobody: drop", "there is no drive `nobody`"),
        ("at write 5: lies", "a member of a pool"),
    ] {
        let told = tell(&rig.control(), line);
        assert!(told.starts_with("error: ") && told.contains(why), "{told}");
    }
}

#[test]
fn an_error_of_a_range_is_an_error_and_harms_no_data() {
    let rig = Rig::new();
    // Blocks 10 and 11, starting with the second read and the third write.
    let script = "\
        at read 2: unrecovered-read range 40960..49152 for 3 commands\n\
        at write 65: write-fault range 40960..49152\n";
    let server = rig.serve("p4800x-375", script, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(write_until_the_end(&mut client, 1), SOME);
    assert_eq!(client.error(10), 0);
    let errors = [9, 10, 11, 12, 10, 10].map(|block| client.error(block));
    assert_eq!(errors, [0, EIO, EIO, 0, EIO, 0]);
    let errors = [9, 10, 11, 12].map(|block| write(&mut client, block, 2));
    assert_eq!(errors, [Some(0), Some(EIO), Some(EIO), Some(0)]);
    for (block, generation) in [(9, 2), (10, 1), (11, 1), (12, 2)] {
        assert_eq!(client.read(block), stamped(block, generation));
    }
    rig.ok("clear");
    assert_eq!(write(&mut client, 10, 3), Some(0));
    rig.ok("flush-fault for 1 command");
    assert_eq!(
        [flush(&mut client), flush(&mut client)],
        [Some(EIO), Some(0)]
    );
    assert_eq!(client.read(10), stamped(10, 3));
}

/// Returns the failed writes; each block is written once in order.
fn failed(drive: &str, script: &str, seed: &str) -> Vec<u64> {
    let rig = Rig::new();
    let server = rig.serve(drive, script, &["--seed", seed]);
    let mut client = Client::connect(&server);
    assert_eq!(write_until_the_end(&mut client, 1), SOME);
    rig.ok("at write 1: error-rate writes 0.3");
    let mut failed = Vec::new();
    for block in 0..SOME {
        match write(&mut client, block, 2) {
            Some(0) => {}
            other => {
                assert_eq!(other, Some(EIO));
                failed.push(block);
            }
        }
    }
    for (block, data) in (0..).zip(blocks(&mut client)) {
        let generation = if failed.contains(&block) { 1 } else { 2 };
        assert!(data == stamped(block, generation), "block {block}");
    }
    failed
}

#[test]
fn a_rate_of_errors_follows_the_seed_and_harms_no_data() {
    let one = failed("p4800x-375", "", "1");
    assert_eq!(one, failed("p4800x-375", "", "1"));
    assert_ne!(one, failed("p4800x-375", "", "2"));
    assert!((5..40).contains(&one.len()), "{one:?}");
}

/// Members fail by count, range and rate; the mirror above has all its acknowledged data.
#[test]
fn a_mirror_hides_what_a_member_has_by_count_and_range() {
    let rig = Rig::new();
    let script = "\
        at write 30 p4801x-100.0: dies\n\
        p4801x-100.1: delay 1ms rate 0.1\n";
    let folder = rig.path().to_owned();
    let server = rig.serve(MIRROR, script, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(write_until_the_end(&mut client, 1), SOME);
    let log = rig.log();
    assert!(log.contains("p4801x-100.0: fault: dies"), "{log}");
    rig.ok("p4801x-100.0: returns");
    rig.ok("p4801x-100.0: error-rate reads 0.3 range 0..1MiB for 40 commands");
    for (block, data) in (0..).zip(blocks(&mut client)) {
        assert!(data == stamped(block, 1), "block {block}");
    }
    rig.ok("at write 3 p4801x-100.0: power-cut");
    assert_eq!(write_until_the_end(&mut client, 2), SOME);
    drop(server);
    let server = serve(&folder, MIRROR, &[]);
    let mut client = Client::connect(&server);
    for (block, data) in (0..).zip(blocks(&mut client)) {
        assert!(data == stamped(block, 2), "block {block}");
    }
}

#[test]
fn all_that_is_wrong_with_a_script_is_said_before_anything_is_served() {
    let rig = Rig::new();
    let path = rig.path().join("script");
    let refused = |lines: &str| {
        std::fs::write(&path, lines).expect("written");
        let output = drivelab(&[MIRROR, "--size", "4M", "--nbd", "unix:none.sock"])
            .arg("--fault")
            .arg(&path)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refused("at write none: drop\n\nafter 5 trims: drop\nwrite-fault rate 7\n");
    for wanted in [
        "script:1",
        "`none` is not a valid number here",
        "script:3",
        "`trims` should be reads, writes or flushes",
        "script:4",
        "not a rate above 0 and up to 1",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let told = refused("at write 5: write-fault\np4801x-100.0: write-fault range 0..9TiB\n");
    for wanted in ["script:1", "name one of", "script:2", "beyond the end"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}
