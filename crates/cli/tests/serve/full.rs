//! A store that cannot grow: clients are told, a line says so, and what is there can still be read. A limit of the
//! process on the size of its files stands for a full disk: the kernel refuses in the same place.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use live::nbd::wire::{self, can, command, error, option};

use crate::rig::{
    BLOCK, BLOCKS, Client, Server, connected, end, figure, first_line, serve, stamped,
};

/// Serves the store in the folder again, with files of so many bytes at most; and what it says.
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

/// Writes a block, or flushes; the error of the answer.
fn ends_with(client: &mut Client, command: u16, block: u64) -> u32 {
    let data = match command {
        command::WRITE => stamped(block, 7),
        _ => Vec::new(),
    };
    client.send(command, block, &data).expect("sent");
    let mut head = [0; wire::SIMPLE_REPLY];
    client.0.read_exact(&mut head).expect("an answer");
    wire::be32(&head, 4)
}

/// Flags of the export.
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

/// Lines that name the store, when the server has ended.
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
    // It is in the volatile cache, and has to leave it.
    assert_eq!(ends_with(&mut client, command::WRITE, BLOCKS / 2), 0);
    assert_eq!(ends_with(&mut client, command::FLUSH, 0), error::ENOSPC);
    drop(client);
    let pid = server.child.id().to_string();
    Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill");
    // What was acknowledged could not be kept: that is no orderly end.
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
    // A new store there is refused, and leaves nothing behind.
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
