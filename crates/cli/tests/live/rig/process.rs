//! Programs that end within a time limit, and at the latest with the test.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Returns a program that the kernel kills when the test's thread ends in any way.
pub(crate) fn mortal(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(name);
    command
}

/// Result of a program, with all its output on both streams.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

impl Ended {
    /// Returns its output, if it succeeded.
    #[track_caller]
    pub(crate) fn expect_success(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.said);
        self.said
    }
}

/// A running program whose output is collected; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    child: Child,
    said: Arc<Mutex<String>>,
    /// Receives a message for each piece of output added to `said`; closes when both streams end.
    news: Receiver<()>,
}

impl Running {
    /// Starts it. Its standard input is open for [`Running::write`] only if `talks`.
    pub(crate) fn start(command: &mut Command, talks: bool) -> Running {
        let name = command.get_args().fold(
            command.get_program().to_string_lossy().into_owned(),
            |line, word| line + " " + &word.to_string_lossy(),
        );
        command
            .stdin(if talks { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = Arc::new(Mutex::new(String::new()));
        let (sender, news) = channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("it is piped")),
            Box::new(child.stderr.take().expect("it is piped")),
        ];
        for mut output in outputs {
            let (said, sender) = (Arc::clone(&said), sender.clone());
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = output.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..length]).replace('\r', "");
                    said.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push_str(&text);
                    let _ = sender.send(());
                }
            });
        }
        Running {
            name,
            child,
            said,
            news,
        }
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output so far.
    pub(crate) fn said(&self) -> String {
        self.said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Writes to its standard input.
    pub(crate) fn write(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().expect("it was started to talk");
        // It may have ended; its output shows why.
        let _ = input.write_all(text.as_bytes());
        let _ = input.flush();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status();
        assert!(kill.is_ok_and(|status| status.success()), "kill -s {name}");
    }

    /// Waits until `found` returns a result for all output so far.
    #[track_caller]
    pub(crate) fn wait_for<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&str) -> Option<T>,
    ) -> T {
        let end = Instant::now() + limit;
        loop {
            if let Some(value) = found(&self.said()) {
                return value;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(()) => {}
                Err(why) => {
                    if let Some(value) = found(&self.said()) {
                        return value;
                    }
                    let why = match why {
                        RecvTimeoutError::Timeout => "did not say in time what was waited for",
                        RecvTimeoutError::Disconnected => "ended without what was waited for",
                    };
                    panic!("`{}` {why}; it said:\n{}", self.name, self.said());
                }
            }
        }
    }

    /// Waits until it ends; kills it and panics if that takes longer than `limit`.
    #[track_caller]
    pub(crate) fn end(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!(
                        "`{}` did not end in {limit:?}; it said:\n{}",
                        self.name,
                        self.said()
                    );
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Its output streams are closed, so it has ended or is about to.
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                _ if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
                _ => panic!("`{}` closed its outputs and goes on", self.name),
            }
        };
        Ended {
            code: status.code(),
            said: self.said(),
        }
    }

    /// Kills it at once, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a process of ours");
        self.child.wait().expect("a process of ours");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run(command: &mut Command, limit: Duration) -> Ended {
    Running::start(command, false).end(limit)
}

/// Runs a program with these arguments, for at most a minute.
#[track_caller]
pub(crate) fn call(name: &str, args: &[&str]) -> Ended {
    let program = super::find(name).unwrap_or_else(|| name.into());
    run(mortal(program).args(args), Duration::from_secs(60))
}
