//! Pools whose members store the data: members fail, ignore flushes and return while clients write, the server is
//! killed, and guaranteed data is present; folders that do not fit are refused, and nothing is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use live::nbd::wire::{self, command};

use crate::rig::{
    BLOCKS, Client, SIZE, Server, drivelab, end, first_line, serve_logged, stamped, tell,
};

const MIRROR: &str = "mirror(2*p4801x-100)";

/// Writes the stamp of this generation to every fourth block.
pub(crate) fn write(client: &mut Client, generation: u64) {
    for block in (0..BLOCKS).step_by(4) {
        let data = stamped(block, generation);
        client.send(command::WRITE, block, &data).expect("sent");
        assert_eq!(client.reply().expect("an answer"), block);
    }
}

/// Checks that every fourth block has it.
pub(crate) fn check(client: &mut Client, generation: u64) {
    for block in (0..BLOCKS).step_by(4) {
        let data = client.read(block);
        let found = wire::be64(&data, 8);
        assert_eq!(data, stamped(block, generation), "block {block}: {found}");
    }
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).expect("a log")
}

pub(crate) fn kill(mut server: Server) {
    server.child.kill().expect("kill -9");
    server.child.wait().expect("it was killed");
}

/// Ends the server by a signal, whatever the result is.
pub(crate) fn end_by(mut server: Server, signal: &str) {
    let pid = server.child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.expect("kill").success());
    server.child.wait().expect("it ends");
}

pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    control: PathBuf,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        let folder = tempfile::tempdir().expect("a folder");
        let control = folder.path().join("control");
        Rig { folder, control }
    }

    pub(crate) fn serve(&self, pool: &str) -> (Server, Client) {
        let control = self.control.display().to_string();
        let server = serve_logged(self.folder.path(), pool, &["--control", &control]);
        let client = Client::connect(&server);
        (server, client)
    }

    pub(crate) fn ok(&self, line: &str) {
        assert_eq!(tell(&self.control, line), "ok\n", "{line}");
    }

    pub(crate) fn log(&self) -> String {
        log(self.folder.path())
    }

    /// The store of the pool.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Moves the files of a member out of the store, or back.
    pub(crate) fn aside(&self, member: &str, back: bool) {
        for end in ["img", "img.state"] {
            let name = format!("{member}.{end}");
            let (here, there) = (self.store().join(&name), self.folder.path().join(&name));
            let (from, to) = if back { (there, here) } else { (here, there) };
            fs::rename(from, to).expect("moved");
        }
    }
}

#[test]
fn a_mirror_goes_on_without_a_leg_and_gives_it_what_it_missed() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    rig.ok("p4801x-100.0: dies");
    write(&mut client, 2);
    check(&mut client, 2);
    kill(server);

    // The failed member is back, and has missed a region.
    let (server, mut client) = rig.serve(MIRROR);
    let said = "p4801x-100.0 is being resynchronised: 1 region\n";
    assert!(rig.log().contains(said), "{}", rig.log());
    check(&mut client, 2);
    // So the other one may fail now.
    rig.ok("p4801x-100.1: dies");
    check(&mut client, 2);
    write(&mut client, 3);
    rig.ok("p4801x-100.1: returns");
    write(&mut client, 4);
    kill(server);

    let (server, mut client) = rig.serve(MIRROR);
    check(&mut client, 4);
    end(server);
    // After an orderly shutdown, no recovery is needed.
    let (server, mut client) = rig.serve(MIRROR);
    assert_eq!(rig.log(), "");
    check(&mut client, 4);
    drop(server);
}

/// Data acknowledged by a write-back cache is read back from its ring, and is correct where a client overwrote it.
#[test]
fn what_a_write_back_cache_acknowledged_survives_a_kill() {
    let pool = "write-back-cache(cache=optane-memory-16, capacity=2*950pro-256)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    for generation in 1..4 {
        write(&mut client, generation);
    }
    kill(server);
    // Its drives without their cache have an older state: nothing is served, and with the cache the pool is complete
    // again.
    let store = rig.store();
    let aside = |back| rig.aside("optane-memory-16", back);
    aside(false);
    refused(pool, &store, "and is missing");
    aside(true);
    let (_server, mut client) = rig.serve(pool);
    let said = rig.log();
    assert!(said.contains("of its ring were recovered"), "{said}");
    check(&mut client, 3);
}

pub(crate) fn flush(client: &mut Client) {
    client.send(command::FLUSH, 0, &[]).expect("sent");
    assert_eq!(client.reply().expect("an answer"), 0);
}

/// Flushed data is in the log or on the main pool after a kill, even after failures of the log's members and of the
/// log itself.
#[test]
fn what_an_intent_log_has_flushed_survives_a_kill() {
    let pool = "intent-log(main=mirror(2*950pro-256), log=mirror(2*p4801x-100); ram=100MiB)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    for generation in 1..4 {
        write(&mut client, generation);
    }
    flush(&mut client);
    kill(server);

    let (server, mut client) = rig.serve(pool);
    let said = rig.log();
    assert!(said.contains("blocks of its log were recovered"), "{said}");
    check(&mut client, 3);
    rig.ok("p4801x-100.0: dies");
    write(&mut client, 4);
    flush(&mut client);
    kill(server);

    let (server, mut client) = rig.serve(pool);
    check(&mut client, 4);
    // Without its log, the main pool stores synced data.
    rig.ok("p4801x-100.0: dies");
    rig.ok("p4801x-100.1: dies");
    write(&mut client, 5);
    flush(&mut client);
    rig.ok("950pro-256.0: dies");
    check(&mut client, 5);
    kill(server);

    let (server, mut client) = rig.serve(pool);
    check(&mut client, 5);
    write(&mut client, 6);
    end(server);
    // After an orderly shutdown, the log is empty.
    let (_server, mut client) = rig.serve(pool);
    assert_eq!(rig.log(), "");
    check(&mut client, 6);
}

/// A missing log may only have been forgotten: nothing is started without it, and all is as before when it is back. A
/// user may accept the loss explicitly; the log's data is then ignored when it is back.
#[test]
fn a_pool_is_not_started_without_its_log_unless_the_loss_is_accepted() {
    let pool = "intent-log(main=mirror(2*950pro-256), log=p4801x-100; ram=100MiB)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    flush(&mut client);
    write(&mut client, 2);
    flush(&mut client);
    kill(server);
    let store = rig.store();
    let aside = |back| rig.aside("p4801x-100", back);
    aside(false);
    refused(pool, &store, "p4801x-100, a log of intent-log, is missing");
    aside(true);
    let (server, mut client) = rig.serve(pool);
    check(&mut client, 2);
    kill(server);
    aside(false);
    let server = serve_logged(rig.folder.path(), pool, &["--accept-loss"]);
    let mut client = Client::connect(&server);
    assert!(rig.log().contains("p4801x-100 is missing"), "{}", rig.log());
    write(&mut client, 3);
    flush(&mut client);
    kill(server);
    // When it is back, its data belongs to an earlier epoch.
    aside(true);
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 3);
}

/// Its data is stored like that of one drive: flushed data survives a power cut and a kill, and no member can fail
/// individually.
#[test]
fn a_pool_with_a_raidz_is_served_as_one_drive() {
    let rig = Rig::new();
    let (server, mut client) = rig.serve("s2-slog");
    let said = "its data are kept as one drive's";
    assert!(rig.log().contains(said), "{}", rig.log());
    write(&mut client, 1);
    flush(&mut client);
    rig.ok("power-cut");
    // Its connections ended at the power cut.
    let mut client = Client::connect(&server);
    check(&mut client, 1);
    let refused = tell(&rig.control, "nda.0: dies");
    assert!(refused.starts_with("error"), "{refused}");
    write(&mut client, 2);
    flush(&mut client);
    kill(server);
    let (_server, mut client) = rig.serve("s2-slog");
    check(&mut client, 2);
}

/// A returned mirror member is resynced without client commands; then it suffices alone.
#[test]
fn a_leg_that_returned_is_copied_to_without_clients() {
    let rig = Rig::new();
    let (_server, mut client) = rig.serve(MIRROR);
    rig.ok("p4801x-100.0: dies");
    write(&mut client, 1);
    rig.ok("p4801x-100.0: returns");
    // A region takes a tenth of a second of virtual time, which is a tenth of wall-clock time.
    std::thread::sleep(Duration::from_secs(3));
    rig.ok("p4801x-100.1: dies");
    check(&mut client, 1);
}

#[test]
fn what_was_flushed_survives_a_leg_without_power_and_a_kill() {
    let pool = "mirror(2*950pro-256)";
    let rig = Rig::new();
    let (server, mut client) = rig.serve(pool);
    write(&mut client, 1);
    rig.ok("950pro-256.1: power-cut");
    write(&mut client, 2);
    client.send(command::FLUSH, 0, &[]).expect("sent");
    client.reply().expect("an answer");
    rig.ok("950pro-256.0: slow 1ms");
    check(&mut client, 2);
    kill(server);
    let (_server, mut client) = rig.serve(pool);
    check(&mut client, 2);
}

#[test]
fn a_leg_that_cannot_read_is_helped_and_one_that_rots_is_believed() {
    let rig = Rig::new();
    let (_server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    rig.ok("p4801x-100.0: medium-error 0 64");
    rig.ok("p4801x-100.1: medium-error 2048 64");
    check(&mut client, 1);
    // A mirror cannot tell which member is right: alternating reads return both versions.
    rig.ok("p4801x-100.0: rots 0");
    let reads: Vec<Vec<u8>> = (0..8).map(|_| client.read(0)).collect();
    assert!(
        reads.iter().any(|data| *data != stamped(0, 1)),
        "nothing rotted"
    );
    // A stripe has no second copy.
    let rig = Rig::new();
    let (_server, mut client) = rig.serve("stripe(2*p4801x-100; chunk=4k)");
    write(&mut client, 1);
    rig.ok("p4801x-100.1: dies");
    let errors: Vec<u32> = (0..2).map(|block| client.error(block)).collect();
    assert_eq!(errors, [0, 5]);
    rig.ok("p4801x-100.1: returns");
    check(&mut client, 1);
}

#[test]
fn faults_that_nobody_can_have_are_refused_with_the_names() {
    let rig = Rig::new();
    let (_server, _client) = rig.serve(MIRROR);
    for (line, words) in [
        ("dies", "name one of p4801x-100.0, p4801x-100.1"),
        ("medium-error 0 1", "name one of p4801x-100.0"),
        (
            "nda.0: dies",
            "members of mirror(2*p4801x-100) are p4801x-100.0, p4801x-100.1",
        ),
        ("p4801x-100.0: stuck", "the whole pool"),
        ("p4801x-100.0: rots 999999999", "beyond the end"),
        ("p4801x-100.0: misdirects", "should be `misdirects BLOCKS`"),
    ] {
        let said = tell(&rig.control, line);
        assert!(
            said.starts_with("error: ") && said.contains(words),
            "{line}: {said}"
        );
    }
    let path = |name: &str| rig.folder.path().join(name).display().to_string();
    let (script, nbd) = (path("script"), format!("unix:{}", path("other")));
    fs::write(
        &script,
        "at 1h p4801x-100.0: wear 7000\nat 1h nda.7: dies\n",
    )
    .expect("written");
    let arguments = [MIRROR, "--size", SIZE, "--nbd", &nbd, "--fault", &script];
    let output = drivelab(&arguments).output().expect("drivelab starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(&format!("{script}:2")), "{message}");
    fs::write(&script, "at 1h p4801x-100.0: wear 7000\n").expect("written");
    let output = drivelab(&arguments).output().expect("drivelab starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("p4801x-100.0: `wear 7000`"), "{message}");
}

/// Returns all files of a folder; for large ones, only the first and last blocks.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    use std::os::unix::fs::FileExt;
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let file = fs::File::open(&path).expect("a file");
        let length = file.metadata().expect("its length").len();
        let mut data = vec![0; length.min(1 << 20) as usize];
        file.read_exact_at(&mut data, 0).expect("data");
        let mut tail = vec![0; length.min(1 << 20) as usize];
        let from = length - tail.len() as u64;
        file.read_exact_at(&mut tail, from).expect("data");
        data.extend(tail);
        all.push((path, data));
    }
    all.sort();
    all
}

pub(crate) fn refused(pool: &str, store: &Path, words: &str) {
    refused_with(&[], pool, store, words);
}

/// As [`refused`], with further options.
pub(crate) fn refused_with(options: &[&str], pool: &str, store: &Path, words: &str) {
    let before = contents(store);
    let nbd = format!("unix:{}", store.with_extension("sock").display());
    let text = store.display().to_string();
    let mut server = drivelab(&[pool, "--nbd", &nbd, "--store", &text]);
    let output = server.args(options).output().expect("drivelab starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(words), "{words}: {message}");
    assert!(contents(store) == before, "{words}: something was changed");
}

#[test]
fn folders_that_do_not_fit_are_refused_and_left_as_they_are() {
    let rigs = [Rig::new(), Rig::new()];
    let store = |index: usize| rigs[index].store();
    for rig in &rigs {
        let (server, mut client) = rig.serve(MIRROR);
        write(&mut client, 1);
        end(server);
    }
    let here = store(0);
    refused(
        "mirror(3*p4801x-100)",
        &here,
        "it is of a pool of p4801x-100.0, p4801x-100.1, not",
    );
    refused(
        "stripe(2*p4801x-100; chunk=64k)",
        &here,
        "it belongs to a pool with another structure",
    );
    refused(
        "mirror(2*950pro-256)",
        &here,
        "it is of a pool of p4801x-100.0",
    );
    refused("p4801x-100", &here, "is missing");
    let of = |index: usize, name: &str| store(index).join(name);
    let swap = |one: &Path, two: &Path| {
        let aside = one.with_extension("aside");
        fs::rename(one, &aside).expect("moved");
        fs::rename(two, one).expect("moved");
        fs::rename(&aside, two).expect("moved");
    };
    let (image, state) = ("p4801x-100.1.img", "p4801x-100.1.img.state");
    // The store of another pool's member, with and without its state.
    swap(&of(0, image), &of(1, image));
    refused(MIRROR, &here, "p4801x-100.1 belongs to another pool");
    swap(&of(0, state), &of(1, state));
    refused(MIRROR, &here, "of another pool or another position");
    swap(&of(0, image), &of(1, image));
    swap(&of(0, state), &of(1, state));
    // The members of one pool in exchanged positions.
    for name in ["img", "img.state"] {
        let leg = |leg: u32| of(0, &format!("p4801x-100.{leg}.{name}"));
        swap(&leg(0), &leg(1));
    }
    refused(MIRROR, &here, "of another pool or another position");
    for name in ["img", "img.state"] {
        let leg = |leg: u32| of(0, &format!("p4801x-100.{leg}.{name}"));
        swap(&leg(0), &leg(1));
    }
    let good = fs::read(of(0, "pool.state")).expect("a state");
    let text = String::from_utf8(good.clone()).expect("text");
    fs::write(of(0, "pool.state"), text.replace("bytes 4", "bytes 5")).expect("written");
    refused(MIRROR, &here, "checksum");
    fs::remove_file(of(0, "pool.state")).expect("removed");
    refused(MIRROR, &here, "no pool.state");
    fs::write(of(0, "pool.state"), good).expect("written");
    let (server, mut client) = rigs[0].serve(MIRROR);
    check(&mut client, 1);
    end(server);
}

/// Each member has continued without the other, by copies of its store: it cannot be decided which is right.
#[test]
fn legs_that_went_on_without_each_other_are_refused() {
    let rig = Rig::new();
    let store = rig.store();
    let leg = |leg: u32, name: &str| store.join(format!("p4801x-100.{leg}.{name}"));
    let (server, mut client) = rig.serve(MIRROR);
    write(&mut client, 1);
    end(server);
    let hide = |number: u32, hidden: bool| {
        for name in ["img", "img.state"] {
            let (here, aside) = (leg(number, name), leg(number, &format!("{name}.aside")));
            let (from, to) = if hidden {
                (&here, &aside)
            } else {
                (&aside, &here)
            };
            fs::rename(from, to).expect("moved");
        }
    };
    for alone in [0, 1] {
        hide(1 - alone, true);
        if alone == 1 {
            // The folder records that the pool continued without this member.
            refused(MIRROR, &store, "all present members are old copies");
        }
        let control = rig.control.display().to_string();
        let more = ["--control", &control, "--accept-loss"];
        let server = serve_logged(rig.folder.path(), MIRROR, &more);
        let mut client = Client::connect(&server);
        let said = format!(
            "p4801x-100.{} is missing: mirror continues without it",
            1 - alone
        );
        assert!(rig.log().contains(&said), "{}", rig.log());
        let why = tell(&rig.control, &format!("p4801x-100.{}: returns", 1 - alone));
        assert!(why.contains("was missing at the start"), "{why}");
        write(&mut client, 2 + u64::from(alone));
        check(&mut client, 2 + u64::from(alone));
        end(server);
        hide(1 - alone, false);
    }
    refused(MIRROR, &store, "diverged");
}

/// The default is a machine with 64 GiB, more than the serving machine may have.
#[test]
fn who_serves_a_log_that_may_take_more_memory_than_there_is_hears_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let said = |ram: &str| {
        let pool = format!("intent-log(main=d7-p5510-3840, log=p4801x-100; ram={ram})");
        let mut child = drivelab(&[&pool, "--speed", "0", "--nbd", &socket])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("drivelab starts");
        first_line(&mut child);
        child.kill().expect("it runs");
        let output = child.wait_with_output().expect("its output");
        String::from_utf8(output.stderr).expect("text")
    };
    let warning = said("16TiB");
    assert!(warning.starts_with("warning: "), "{warning}");
    assert!(warning.contains("--set tier.intent-log.ram="), "{warning}");
    assert_eq!(said("64MiB"), "");
}
