//! The served pool of a series: `drivelab serve` on sockets and a store in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time for a server to listen, and to shut down in order.
const LIMIT: Duration = Duration::from_secs(120);
/// Maximum time for an answer of the control socket. A power cut is answered after the recovery.
const ANSWER: Duration = Duration::from_secs(60);

/// Folder with the sockets, the store and the client's records of a series.
#[derive(Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    folder: PathBuf,
}

/// Reason why there is no server.
#[derive(Debug)]
pub(super) struct StartError(pub(super) String);

/// Returns a program that the kernel kills when this one ends.
pub(super) fn mortal(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(name);
    command.stdin(Stdio::null());
    command
}

impl Server {
    /// Starts it and waits until it answers NBD clients.
    pub(super) fn start(
        binary: &Path,
        pool: &str,
        size: &str,
        folder: &Folder,
    ) -> Result<Server, StartError> {
        let failed = |error: std::io::Error| StartError(error.to_string());
        for socket in ["nbd", "disk", "control"] {
            let _ = fs::remove_file(folder.path(socket));
        }
        let log = fs::File::create(folder.path("serve.log")).map_err(failed)?;
        let unix = |name: &str| format!("unix:{}", folder.text(name));
        let mut command = mortal(binary);
        command
            .args([
                "serve", pool, "--size", size, "--state", "fresh", "--speed", "0",
            ])
            .args(["--nbd", &unix("nbd"), "--vhost-user", &folder.text("disk")])
            .args([
                "--control",
                &folder.text("control"),
                "--store",
                &folder.text("store"),
            ])
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        let child = command.spawn().map_err(failed)?;
        let mut server = Server {
            child,
            folder: folder.0.clone(),
        };
        let start = Instant::now();
        loop {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(StartError(format!("{status}: {}", server.log_text())));
            }
            if server.greets() {
                return Ok(server);
            }
            if start.elapsed() > LIMIT {
                server.kill();
                return Err(StartError(format!(
                    "does not listen after {} s",
                    LIMIT.as_secs()
                )));
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Checks whether an NBD client receives a greeting.
    fn greets(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(self.folder.join("nbd")) else {
            return false;
        };
        let mut magic = [0; 8];
        let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
        stream.read_exact(&mut magic).is_ok() && magic == *b"NBDMAGIC"
    }

    /// Returns its log without the advice for clients, on one line.
    pub(super) fn log_text(&self) -> String {
        read_log(&self.folder.join("serve.log"))
    }

    /// Sends a line to the control socket; the error is the server's answer.
    pub(super) fn send_command(&self, line: &str) -> Result<(), String> {
        let answer = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(self.folder.join("control"))?;
            stream.set_read_timeout(Some(ANSWER))?;
            writeln!(stream, "{line}")?;
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer)?;
            Ok(answer)
        };
        match answer() {
            Ok(text) if text.trim() == "ok" => Ok(()),
            Ok(text) => Err(text.trim().to_owned()),
            Err(error) => Err(format!("the control socket does not answer: {error}")),
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", name, &id]).status();
    }

    /// Stops the process, like a machine whose clock has stopped.
    pub(super) fn pause(&self) {
        self.signal("STOP");
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to shut down, and returns its exit status if it ends in time.
    pub(super) fn terminate(&mut self) -> Result<ExitStatus, String> {
        self.signal("TERM");
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(status);
            }
            sleep(Duration::from_millis(10));
        }
        self.kill();
        Err(format!("has not ended {} s after SIGTERM", LIMIT.as_secs()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a server's log without its advice for clients, on one line.
pub(super) fn read_log(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let advice = |line: &&str| {
        line.starts_with("  ") && !line.trim_start().starts_with('=') && !line.contains("lost")
            || line.contains("latency")
            || line.contains("lateness")
            || line.contains(" GB")
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !advice(line))
        .map(str::trim)
        .collect();
    lines.join(" | ")
}
