//! `drivelab serve`, on its own sockets in its own folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

use super::network::Network;
use super::process::{Ended, Running, mortal};

/// Maximum time for a server to start, and to shut down in order: a start was seen to wait for more than a minute while
/// other tests and a build were running.
const LIMIT: Duration = Duration::from_secs(180);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    running: Running,
}

impl Server {
    /// Starts it with these arguments, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Server {
        Server::wait(mortal(cargo_bin!("drivelab")).arg("serve").args(args))
    }

    /// Starts it in a network.
    #[track_caller]
    pub(crate) fn start_in(network: &Network, args: &[&str]) -> Server {
        let mut command = network.program(cargo_bin!("drivelab"));
        Server::wait(command.arg("serve").args(args))
    }

    #[track_caller]
    fn wait(command: &mut Command) -> Server {
        let running = Running::start(command, false);
        // It listens before it prints how to connect; each drive's lines begin with its name and size.
        running.wait_for(LIMIT, |said| said.contains(" GB\n").then_some(()));
        Server { running }
    }

    /// Returns all its output.
    pub(crate) fn said(&self) -> String {
        self.running.said()
    }

    /// Waits until it has printed this text: its lines may arrive after it listens.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let found = |said: &str| said.contains(text).then_some(());
        self.running.wait_for(LIMIT, found);
    }

    /// Asks it to shut down, as Ctrl-C does.
    #[track_caller]
    pub(crate) fn stop(self) -> Ended {
        self.running.signal("INT");
        self.running.end(LIMIT)
    }

    /// Stops the process.
    pub(crate) fn pause(&self) {
        self.running.signal("STOP");
    }

    /// Kills it at once.
    pub(crate) fn kill(self) {
        self.running.kill();
    }

    /// Returns the number of its open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.running.id());
        fs::read_dir(folder).expect("it runs").count()
    }

    /// Returns its used memory in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.running.id());
        let status = fs::read_to_string(status).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words = line.and_then(|line| line.split_whitespace().next());
        words.and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Returns its used CPU time.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = format!("/proc/{}/stat", self.running.id());
        let stat = fs::read_to_string(stat).expect("it runs");
        // After the name in parentheses: state, then the numbers; user and system time are the 12th and 13th.
        let numbers = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = numbers
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * 10)
    }
}

/// A folder for a test's sockets and stores.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Returns a new folder.
    pub(crate) fn new() -> Folder {
        Folder(TempDir::new().expect("a temporary folder"))
    }

    /// Returns a path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a path in the folder, as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Returns the address of a Unix socket in the folder.
    pub(crate) fn unix(&self, name: &str) -> String {
        format!("unix:{}", self.text(name))
    }

    /// Returns the URI of an NBD export at a socket in the folder.
    pub(crate) fn uri(&self, socket: &str, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.text(socket))
    }
}

/// Returns a full-speed server of one small export.
pub(crate) fn fast(folder: &Folder) -> Server {
    let nbd = folder.unix("nbd");
    let args = [
        "p4800x-375",
        "--size",
        "256M",
        "--speed",
        "0",
        "--state",
        "fresh",
        "--nbd",
        &nbd,
    ];
    Server::start(&args)
}
