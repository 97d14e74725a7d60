//! A store that cannot grow: clients receive an error, a line is logged, and existing data can still be read. A limit
//! of the process on the size of its files simulates a full disk: the kernel refuses at the same point.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use live::nbd::wire::{self, can, command, error, option};

use crate::rig::{
    BLOCK, BLOCKS, Client, Server, connected, end, figure, first_line, serve, serve_with, stamped,
};

/// Serves the store in the folder again, with files of at most `bytes` bytes; returns the server and its output.
fn serve_limited(folder: &Path, drive: &str, bytes: u32) -> (Server, ChildStderr) {
    let socket = folder.join("nbd.sock");
    let mut child = Command::new("prlimit")
        .arg(format!("--fsize={bytes}"))
        .args([
            env!("CARGO_BIN_EXE_drivelab"),
            "serve",
            drive,
            "--speed",
            "0",
        ])
        .arg("--store")
        .arg(folder.join("disk.img"))
        .arg("--nbd")
        .arg(format!("unix:{}", socket.display()))
        .arg("--control")
        .arg(folder.join("control"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("prlimit of util-linux");
    let first = first_line(&mut child);
    let said = child.stderr.take().expect("piped");
    assert!(first.starts_with(drive), "{first}");
    (Server { child, socket }, said)
}

/// Writes a block, or flushes; returns the error of the answer.
pub(crate) fn ends_with(client: &mut Client, command: u16, block: u64) -> u32 {
    let data = match command {
        command::WRITE => stamped(block, 7),
        _ => Vec::new(),
    };
    client.send(command, block, &data).expect("sent");
    let mut head = [0; wire::SIMPLE_REPLY];
    client.0.read_exact(&mut head).expect("an answer");
    wire::be32(&head, 4)
}

/// Returns the flags of the export.
fn flags(server: &Server) -> u16 {
    let mut stream = connected(server);
    stream.read_exact(&mut [0; 18]).expect("a greeting");
    let hello = [
        &3u32.to_be_bytes()[..],
        &wire::option(option::EXPORT_NAME, b""),
    ]
    .concat();
    stream.write_all(&hello).expect("sent");
    let mut export = [0; 10];
    stream.read_exact(&mut export).expect("an export");
    wire::be16(&export, 8)
}

/// Limits the size of a running server's files, for a pool in the folder.
fn may_write(server: &Server, bytes: &str) {
    let status = Command::new("prlimit")
        .args(["--pid", &server.child.id().to_string()])
        .arg(format!("--fsize={bytes}:unlimited"))
        .status();
    assert!(status.expect("prlimit of util-linux").success());
}

/// Messages of a server may go to a file on a full disk, or to a pipe that is closed.
#[test]
fn a_server_whose_messages_cannot_be_written_serves_and_ends_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux")
    };
    let script = folder.path().join("script");
    std::fs::write(&script, "at 100ms medium-error 2048 8\n").expect("a folder of our own");
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    for stderr in [Stdio::from(full()), Stdio::from(closed)] {
        // A fault is reported when it happens, and the end reports what was served.
        let more = ["--fault", &*script.display().to_string()];
        let server = serve_with(folder.path(), "p4800x-375", &more, stderr);
        let mut client = Client::connect(&server);
        assert_eq!(ends_with(&mut client, command::WRITE, 7), 0);
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(client.read(7), stamped(7, 7));
        drop(client);
        end(server);
    }
}

/// A pool on a full disk: only the "no space" error, no member is dropped, and it continues when there is space. After
/// a kill, it has its acknowledged data, and is read-only while there is no space.
#[test]
fn a_pool_without_room_says_so_and_loses_nothing() {
    const POOL: &str = "mirror(2*p4801x-100)";
    let folder = tempfile::tempdir().expect("a folder");
    let (control, metrics) = (folder.path().join("control"), folder.path().join("metrics"));
    let metrics_at = format!("unix:{}", metrics.display());
    let control_at = control.display().to_string();
    let more = ["--control", &*control_at, "--metrics", &*metrics_at];
    let server = crate::rig::serve_logged(folder.path(), POOL, &more);
    let log = || std::fs::read_to_string(folder.path().join("log")).expect("a log");
    let mut client = Client::connect(&server);
    for block in 0..100 {
        assert_eq!(ends_with(&mut client, command::WRITE, block), 0);
    }
    may_write(&server, "64");
    for block in 200..210 {
        assert_eq!(ends_with(&mut client, command::WRITE, block), error::ENOSPC);
    }
    assert_eq!(client.read(99), stamped(99, 7));
    let health = healthz(&metrics);
    assert!(health.starts_with("HTTP/1.1 503 "), "{health}");
    let said = format!("{POOL}: read-only (no room for its stores: p4801x-100.0: File too large");
    assert!(health.contains(&said), "{health}");
    may_write(&server, "unlimited");
    assert_eq!(ends_with(&mut client, command::WRITE, 300), 0);
    let health = healthz(&metrics);
    assert!(health.starts_with("HTTP/1.1 200 OK"), "{health}");
    assert!(health.ends_with(&format!("{POOL}: ok\n")), "{health}");
    may_write(&server, "64");
    assert_eq!(ends_with(&mut client, command::WRITE, 400), error::ENOSPC);
    drop(client);
    drop(server);
    assert!(!log().contains("continues without"), "{}", log());
    // The store is served read-only if there is no space at all.
    let mut child = Command::new("prlimit")
        .args(["--fsize=64", env!("CARGO_BIN_EXE_drivelab"), "serve", POOL])
        .args(["--speed", "0", "--store"])
        .arg(folder.path().join("disk.img"))
        .arg("--nbd")
        .arg(format!("unix:{}", folder.path().join("nbd.sock").display()))
        .stdout(Stdio::piped())
        // If the test's own output is a file, the limit applies to it too.
        .stderr(Stdio::null())
        .spawn()
        .expect("prlimit of util-linux");
    assert!(first_line(&mut child).starts_with(POOL));
    let socket = folder.path().join("nbd.sock");
    let server = Server { child, socket };
    assert_ne!(flags(&server) & can::READ_ONLY, 0);
    let mut client = Client::connect(&server);
    for block in (0..100).chain([300]) {
        assert_eq!(client.read(block), stamped(block, 7), "block {block}");
    }
    assert_eq!(ends_with(&mut client, command::WRITE, 3), error::EPERM);
    drop(client);
    drop(server);
    let server = crate::rig::serve_logged(folder.path(), POOL, &[]);
    assert_eq!(flags(&server) & can::READ_ONLY, 0);
    let mut client = Client::connect(&server);
    assert_eq!(client.read(300), stamped(300, 7));
    assert_eq!(ends_with(&mut client, command::WRITE, 400), 0);
    drop(client);
    end(server);
    assert!(!log().contains("continues without"), "{}", log());
}

/// Returns the answer at `/healthz`.
fn healthz(metrics: &Path) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(metrics).expect("it listens");
    let request = b"GET /healthz HTTP/1.1\r\n\r\n";
    stream.write_all(request).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Returns lines that name the store, after the server has ended.
fn lines_of_the_store(said: ChildStderr) -> Vec<String> {
    let lines = BufReader::new(said).lines().map(|line| line.expect("text"));
    lines.filter(|line| line.contains("disk.img")).collect()
}

#[test]
fn a_write_without_room_ends_with_no_space_and_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    end(serve(folder.path(), "p4800x-375", &[]));
    let (server, said) = serve_limited(folder.path(), "p4800x-375", 1 << 20);
    let mut client = Client::connect(&server);
    assert_eq!(flags(&server) & can::READ_ONLY, 0);
    assert_eq!(ends_with(&mut client, command::WRITE, 3), 0);
    for block in BLOCKS / 2..BLOCKS / 2 + 100 {
        assert_eq!(ends_with(&mut client, command::WRITE, block), error::ENOSPC);
    }
    assert_eq!(client.read(3), stamped(3, 7));
    assert_eq!(client.read(BLOCKS / 2), [0; BLOCK]);
    assert_eq!(
        figure(&folder.path().join("control"), "errors_total"),
        100.0
    );
    drop(client);
    end(server);
    let lines = lines_of_the_store(said);
    assert!(
        lines.len() == 1 && lines[0].contains("File too large"),
        "{lines:?}"
    );
}

#[test]
fn a_flush_without_room_ends_with_no_space() {
    let folder = tempfile::tempdir().expect("a folder");
    end(serve(folder.path(), "950pro-256", &["--state", "fresh"]));
    let (mut server, said) = serve_limited(folder.path(), "950pro-256", 1 << 20);
    let mut client = Client::connect(&server);
    // It is in the volatile cache, and must be written out.
    assert_eq!(ends_with(&mut client, command::WRITE, BLOCKS / 2), 0);
    assert_eq!(ends_with(&mut client, command::FLUSH, 0), error::ENOSPC);
    drop(client);
    let pid = server.child.id().to_string();
    Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill");
    // Acknowledged data could not be stored, so this is not an orderly shutdown.
    assert_eq!(server.child.wait().expect("it ends").code(), Some(1));
    let lines = lines_of_the_store(said);
    assert!(
        lines.last().expect("lines").contains("File too large"),
        "{lines:?}"
    );
}

#[test]
fn where_there_is_no_room_for_its_state_a_store_is_served_read_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "p4800x-375", &[]);
    assert_eq!(
        ends_with(&mut Client::connect(&server), command::WRITE, 3),
        0
    );
    end(server);
    let state = folder.path().join("disk.img.state");
    let before = std::fs::read(&state).expect("a state");
    let (server, said) = serve_limited(folder.path(), "p4800x-375", 64);
    assert_ne!(flags(&server) & can::READ_ONLY, 0);
    let mut client = Client::connect(&server);
    assert_eq!(client.read(3), stamped(3, 7));
    for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        let ended = ends_with(&mut client, command, 3);
        assert_eq!(ended, error::EPERM, "command {command}");
    }
    assert_eq!(client.read(3), stamped(3, 7));
    drop(client);
    end(server);
    let lines = lines_of_the_store(said);
    assert!(
        lines.len() == 1 && lines[0].contains("read-only"),
        "{lines:?}"
    );
    assert_eq!(std::fs::read(&state).expect("a state"), before);
    // A new store there is refused, and leaves no files.
    let new = folder.path().join("new.img");
    let output = Command::new("prlimit")
        .args([
            "--fsize=64",
            env!("CARGO_BIN_EXE_drivelab"),
            "serve",
            "p4800x-375",
        ])
        .args(["--size", "4M", "--nbd"])
        .arg(format!("unix:{}", folder.path().join("nbd.sock").display()))
        .arg("--store")
        .arg(&new)
        .output()
        .expect("prlimit of util-linux");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("new.img"), "{message}");
    assert!(!new.exists(), "{message}");
}

/// A recording of a drive whose store is full ends with the rejected write in flight: the store may have a part of it.
#[test]
fn a_recording_ends_at_a_write_that_the_store_rejects() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.dlog");
    let more = ["--record", &*log.display().to_string()];
    let server = serve_with(folder.path(), "p4800x-375", &more, Stdio::null());
    let mut client = Client::connect(&server);
    assert_eq!(ends_with(&mut client, command::WRITE, 1), 0);
    // The log is smaller than this.
    may_write(&server, "1048576");
    assert_eq!(ends_with(&mut client, command::WRITE, 300), error::ENOSPC);
    assert_eq!(ends_with(&mut client, command::FLUSH, 0), 0);
    assert_eq!(ends_with(&mut client, command::WRITE, 2), 0);
    drop(client);
    end(server);
    let log = std::fs::read(log).expect("the log");
    let log = crash::Log::read(log).expect("a log");
    let completed: Vec<bool> = log
        .commands
        .iter()
        .map(|it| it.completed.is_some())
        .collect();
    assert_eq!(completed, [true, false]);
}

/// The lines on how to connect go to a full disk: the drive is served all the same.
#[test]
fn a_full_disk_below_standard_output_does_not_end_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("nbd.sock");
    let full = File::options().write(true).open("/dev/full");
    let child = Command::new(env!("CARGO_BIN_EXE_drivelab"))
        .args(["serve", "ram-disk", "--size", "4M", "--speed", "0", "--nbd"])
        .arg(format!("unix:{}", socket.display()))
        .stdout(full.expect("Linux has it"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("drivelab starts");
    let mut server = Server { child, socket };
    let mut said = BufReader::new(server.child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("writing to standard output") {
        line.clear();
        assert!(said.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    assert!(line.contains("the drives are served"), "{line}");
    let mut client = Client::connect(&server);
    assert_eq!(ends_with(&mut client, command::WRITE, 3), 0);
    end(server);
}
