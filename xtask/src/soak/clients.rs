//! The clients: programs that write, report acknowledgements, and check their data after the next start.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::guest;
use super::server::{Folder, mortal};

/// Debian's Python, which has libnbd's binding.
const PYTHON: &str = "/usr/bin/python3";
const RECORDS: &str = include_str!("records.py");
const FIO: &str = include_str!("fio.py");

/// A client of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Records over NBD, several transactions at a time.
    Records,
    /// fio over NBD.
    Fio,
    /// A program in a guest, on a file system.
    Guest(guest::Program, guest::FileSystem),
}

/// Clients in the order of the table.
pub(super) const CLIENTS: [Client; 6] = [
    Client::Records,
    Client::Guest(guest::Program::Sqlite, guest::FileSystem::Ext4),
    Client::Fio,
    Client::Guest(guest::Program::Postgresql, guest::FileSystem::Xfs),
    Client::Guest(guest::Program::Sqlite, guest::FileSystem::Xfs),
    Client::Guest(guest::Program::Postgresql, guest::FileSystem::Ext4),
];

/// Task of a client in a round.
#[derive(Debug)]
pub(super) struct ClientTask<'a> {
    pub(super) folder: &'a Folder,
    pub(super) seed: u64,
    /// The last acknowledged commit; `None` on a new store. Clients with records of their own know more.
    pub(super) last: Option<u64>,
    /// Whether it writes after its check.
    pub(super) works: bool,
}

impl Client {
    pub(super) fn name(self) -> &'static str {
        match self {
            Client::Records => "records",
            Client::Fio => "fio",
            Client::Guest(guest::Program::Sqlite, guest::FileSystem::Ext4) => "sqlite-ext4",
            Client::Guest(guest::Program::Sqlite, guest::FileSystem::Xfs) => "sqlite-xfs",
            Client::Guest(guest::Program::Postgresql, guest::FileSystem::Ext4) => "postgresql-ext4",
            Client::Guest(guest::Program::Postgresql, guest::FileSystem::Xfs) => "postgresql-xfs",
        }
    }

    /// Returns the size of its namespace; XFS requires this minimum.
    pub(super) fn size(self) -> &'static str {
        match self {
            Client::Guest(_, guest::FileSystem::Xfs) => "320M",
            Client::Guest(_, guest::FileSystem::Ext4) => "160M",
            _ => "64M",
        }
    }

    /// Returns the range of acknowledgements after which a round may end.
    pub(super) fn acknowledgements(self) -> (u64, u64) {
        match self {
            Client::Records => (20, 120),
            Client::Fio => (2, 6),
            Client::Guest(..) => (10, 60),
        }
    }

    pub(super) fn is_guest(self) -> bool {
        matches!(self, Client::Guest(..))
    }

    /// Starts this client for a task.
    pub(super) fn start(self, task: &ClientTask<'_>, tools: &guest::Tools) -> Result<Talk, String> {
        let script = |name: &str, text: &str| -> Result<PathBuf, String> {
            let path = task.folder.path(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(path)
        };
        let command = match self {
            Client::Records => python(&script("records.py", RECORDS)?, task),
            Client::Fio => python(&script("fio.py", FIO)?, task),
            Client::Guest(program, file_system) => {
                guest::command(program, file_system, task, tools)?
            }
        };
        Talk::start(command)
    }
}

fn python(script: &Path, task: &ClientTask<'_>) -> Command {
    let mut command = mortal(PYTHON);
    let (socket, notes) = (task.folder.text("nbd"), task.folder.text("notes"));
    let what = if task.works { "work" } else { "check" };
    command
        .arg(script)
        .args([&socket, &notes, &task.seed.to_string(), what]);
    command
}

/// State of a running client, from its output.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    /// The result of the check, when it is complete.
    pub(super) checked: Option<String>,
    /// Acknowledged data that is missing.
    pub(super) lost: Option<String>,
    /// Messages of commands that failed.
    pub(super) errors: Vec<String>,
    /// Number of acknowledgements so far.
    pub(super) acknowledgements: u64,
    /// Number of the last acknowledgement.
    pub(super) last: Option<u64>,
    /// Whether it has stopped writing.
    pub(super) is_gone: bool,
    /// All other lines.
    pub(super) rest: String,
}

impl ClientState {
    /// Returns the last of the other lines, joined.
    pub(super) fn tail(&self) -> String {
        let lines: Vec<&str> = self.rest.lines().rev().take(6).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    fn hear(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ACK" => {
                self.acknowledgements += 1;
                self.last = rest.trim().parse().ok();
            }
            "CHECKED" => self.checked = Some(rest.to_owned()),
            "LOST" => self.lost = Some(rest.to_owned()),
            "ERROR" => self.errors.push(rest.to_owned()),
            "GONE" => self.is_gone = true,
            _ => {
                self.rest.push_str(line);
                self.rest.push('\n');
            }
        }
    }
}

/// A running client; it is killed when dropped.
#[derive(Debug)]
pub(super) struct Talk {
    child: Child,
    lines: Receiver<String>,
    pub(super) told: ClientState,
    /// Whether its output has ended.
    pub(super) is_over: bool,
}

impl Talk {
    fn start(mut command: Command) -> Result<Talk, String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("the client does not start: {error}"))?;
        let (sender, lines) = channel();
        let outputs: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().ok_or("no output")?),
            Box::new(child.stderr.take().ok_or("no output")?),
        ];
        for output in outputs {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line)
                        .trim_end_matches('\r')
                        .to_owned();
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Talk {
            child,
            lines,
            told: ClientState::default(),
            is_over: false,
        })
    }

    /// Reads output until `done`, or until the output ends, for at most `limit`. Returns whether `done` was reached.
    pub(super) fn until(&mut self, limit: Duration, done: impl Fn(&ClientState) -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if done(&self.told) {
                return true;
            }
            if self.is_over {
                return false;
            }
            match self
                .lines
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.told.hear(&line),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.is_over = true,
            }
        }
    }

    /// Kills the client.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.kill();
    }
}
