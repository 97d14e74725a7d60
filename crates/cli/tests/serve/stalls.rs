//! No action of one client stops the server for all, fills its log, or prevents its orderly shutdown.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use live::nbd::wire::command;

use crate::rig::{BLOCK, Client, Server, connected, drivelab, end, serve};

/// Returns the CPU time of a server so far, in ticks of 10 ms.
fn cpu_ticks(server: &Server) -> u64 {
    let path = format!("/proc/{}/stat", server.child.id());
    let text = std::fs::read_to_string(path).expect("Linux");
    let after = text.rsplit(')').next().expect("a name in brackets");
    let ticks = |at| {
        after
            .split_whitespace()
            .nth(at)
            .and_then(|it| it.parse::<u64>().ok())
    };
    ticks(11).expect("user") + ticks(12).expect("system")
}

/// The map is computed before the server listens: some hundred ticks, in which no client could be served.
#[test]
fn the_first_write_to_a_steady_drive_costs_no_more_than_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "p3700-1600", &["--state", "steady"]);
    let mut client = Client::connect(&server);
    let before = cpu_ticks(&server);
    client.send(command::WRITE, 3, &[1; BLOCK]).expect("sent");
    client.reply().expect("an answer");
    let used = cpu_ticks(&server) - before;
    assert!(used < 10, "{used} ticks of CPU time for one write");
}

/// Starts a server of a small P4800X or another drive, with its messages kept.
fn started(folder: &std::path::Path, drive: &str) -> Server {
    let socket = folder.join("nbd.sock");
    let child = drivelab(&[drive, "--speed", "0", "--size", "4M", "--nbd"])
        .arg(format!("unix:{}", socket.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("drivelab starts");
    let start = Instant::now();
    while !socket.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no socket");
        std::thread::sleep(Duration::from_millis(1));
    }
    Server { child, socket }
}

#[test]
fn clients_that_make_no_sense_fill_no_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = started(folder.path(), "p4800x-375");
    let mut said = server.child.stderr.take().expect("piped");
    for _ in 0..200 {
        let mut stream = connected(&server);
        stream.read_exact(&mut [0; 18]).expect("a greeting");
        stream.write_all(&[0xff; 4]).expect("sent");
        // Until it is disconnected.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    end(server);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    let lines = text.lines().filter(|line| line.contains("client flags"));
    let lines = lines.count() as u64;
    let counted = text.lines().filter_map(|line| {
        let (count, _) = line.strip_prefix("and ")?.split_once(" more connections")?;
        count.parse::<u64>().ok()
    });
    // It may have taken longer than one interval of the rate limiter, in each of which ten lines are logged.
    assert!((10..=50).contains(&lines), "{text}");
    assert_eq!(lines + counted.sum::<u64>(), 200, "{text}");
}

/// The socket exists before the map is computed, which takes long enough for a signal to arrive meanwhile.
#[test]
fn who_is_told_to_end_while_it_starts_ends_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = started(folder.path(), "p3700-1600");
    let pid = server.child.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status();
    assert!(told.expect("kill").success());
    let status = server.child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    assert!(!server.socket.exists(), "the socket is left behind");
}
