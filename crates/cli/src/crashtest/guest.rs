//! Linux guests for programs that need a file system: user-mode Linux, without privileges.
//!
//! The guest has the caller's files, read-only, and the drive as an ext4 or XFS file system. It is a process of the
//! host, with one processor. Its first process is this program ([`first_process`]). Left out: other kernels, such as
//! QEMU's guests; processors other than x86-64; networks.

mod files;
mod init;
mod job;
mod workers;

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, kill_process_group};

pub(super) use init::is_in_memory;
pub(super) use job::{FileRange, FileSystem, Job, Message, Mount, ProgramEnd, Task};
pub(super) use workers::GuestChecks;

use super::bad;
use crate::failure::Failure;

/// Environment variable with the path of the guest's kernel.
const KERNEL: &str = "DRIVELAB_GUEST_KERNEL";

/// Memory of a guest.
const MEMORY: &str = "mem=512M";

/// Time in which a guest must start; a busy machine takes seconds.
const START: Duration = Duration::from_secs(60);

/// Interval of checks whether the user has asked to stop.
const PAUSE: Duration = Duration::from_millis(20);

/// Variables of the caller that are not passed on, because they would be wrong in the guest.
const OWN_VARIABLES: [&str; 3] = ["TMPDIR", "XDG_RUNTIME_DIR", job::JOB];

/// Whether this process is the first one of a guest: then it does the guest's job, and turns the guest off.
pub(crate) fn first_process() -> bool {
    let job = env::var_os(job::JOB).filter(|_| std::process::id() == 1);
    if let Some(job) = &job {
        init::init(Path::new(job));
    }
    job.is_some()
}

/// The kernel of the guests.
#[derive(Clone, Debug)]
pub(super) struct Kernel(PathBuf);

impl Kernel {
    /// Finds the kernel: the named one, that of the variable, or one next to the program.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(named: Option<&Path>) -> Result<Kernel, Failure> {
        let named = named
            .map(Path::to_owned)
            .or_else(|| env::var_os(KERNEL).map(PathBuf::from));
        let own = env::current_exe().unwrap_or_default();
        let folder = own.parent().unwrap_or(Path::new("."));
        let found = match named {
            Some(path) => Some(path).filter(|it| it.is_file()),
            // The second is that of a build from source.
            None => ["drivelab-guest-linux", "../guest/linux"]
                .map(|it| folder.join(it))
                .into_iter()
                .find(|it| it.is_file()),
        };
        found.map(Kernel).ok_or_else(|| {
            bad(
                "no kernel for the guest",
                "build one with `cargo xtask guest`, and name target/guest/linux with --guest-kernel or \
                 DRIVELAB_GUEST_KERNEL; --fs none needs no guest: PROGRAM then uses the drive over NBD",
            )
        })
    }
}

/// Returns the caller's environment for programs in a guest.
pub(super) fn environment() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !OWN_VARIABLES.contains(&&**name))
        .collect();
    // Programs that make file systems are not in everybody's path.
    let path = env::var("PATH").unwrap_or_default();
    all.retain(|(name, _)| name != "PATH");
    all.push((
        "PATH".into(),
        format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin"),
    ));
    all
}

/// A guest that runs.
pub(super) struct Guest {
    child: Child,
    messages: Receiver<String>,
    /// Output of the kernel.
    printed: String,
}

impl Guest {
    /// Starts a guest. `disk` is the socket of its drive; `consoles` are pipes for tokens.
    pub(super) fn start(
        kernel: &Kernel,
        job: &Job,
        folder: &Path,
        disk: Option<&Path>,
        consoles: &[OwnedFd],
    ) -> io::Result<Guest> {
        let file = folder.join("job");
        fs::write(&file, serde_json::to_string(job)?)?;
        let own = env::current_exe()?;
        let mut command = Command::new(&kernel.0);
        command
            .args([
                MEMORY,
                "root=/dev/root",
                "rootfstype=hostfs",
                "rootflags=/",
                "ro",
            ])
            .arg(format!("init={}", own.display()))
            .args([
                "con=null",
                "ssl=null",
                "con0=fd:0,fd:1",
                "loglevel=1",
                "panic=-1",
            ])
            .arg(format!("{}={}", job::JOB, file.display()))
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        for (number, console) in (1..).zip(consoles) {
            rustix::io::fcntl_setfd(console.as_fd(), FdFlags::empty())?;
            command.arg(format!("con{number}=null,fd:{}", console.as_raw_fd()));
        }
        if let Some(disk) = disk {
            // 2: a block device.
            command.arg(format!("virtio_uml.device={}:2", disk.display()));
        }
        let child = command.spawn();
        for console in consoles {
            rustix::io::fcntl_setfd(console.as_fd(), FdFlags::CLOEXEC)?;
        }
        let mut child = child?;
        let (tell, messages) = mpsc::channel();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).trim().to_owned();
                    if tell.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Guest {
            child,
            messages,
            printed: String::new(),
        })
    }

    /// Waits until the guest is ready; returns the release of its kernel.
    pub(super) fn ready(&mut self, go_on: &dyn Fn() -> ControlFlow<()>) -> io::Result<String> {
        match self.hear(START, go_on)? {
            Some(Message::Ready(release)) => Ok(release),
            other => Err(self.unexpected(other)),
        }
    }

    /// Waits for a message; `None` at the limit or if the user asks to stop.
    pub(super) fn hear(
        &mut self,
        limit: Duration,
        go_on: &dyn Fn() -> ControlFlow<()>,
    ) -> io::Result<Option<Message>> {
        let begin = Instant::now();
        loop {
            match self.messages.recv_timeout(PAUSE) {
                Ok(line) => match line.split_once(job::MARK) {
                    Some((_, text)) => return Ok(Some(serde_json::from_str(text)?)),
                    None => self.printed.extend([&*line, "\n"]),
                },
                Err(RecvTimeoutError::Disconnected) => return Err(self.unexpected(None)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if begin.elapsed() > limit || go_on().is_break() {
                return Ok(None);
            }
        }
    }

    /// Sends an order.
    fn order(&mut self, order: &job::Order) -> io::Result<()> {
        let line = serde_json::to_string(order)?;
        match &mut self.child.stdin {
            Some(input) => writeln!(input, "{line}"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Returns the error of a message that should not have come, or of a guest that has ended.
    pub(super) fn unexpected(&self, message: Option<Message>) -> io::Error {
        io::Error::other(match message {
            Some(Message::Failed(why)) => format!("the guest: {why}"),
            Some(Message::Unmountable(why)) => format!("the guest: mounting the drive: {why}"),
            Some(other) => format!("the guest: an unexpected message: {other:?}"),
            None => {
                let lines: Vec<&str> = self.printed.lines().collect();
                let last = &lines[lines.len().saturating_sub(8)..];
                format!(
                    "the guest did not answer; its last lines:\n{}",
                    last.join("\n")
                )
            }
        })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The kernel's own processes are in its group.
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Opens the writing end of a pipe for a console, so that it neither blocks nor ends.
pub(super) fn console(path: &Path) -> io::Result<OwnedFd> {
    let file: File = File::options().read(true).write(true).open(path)?;
    Ok(file.into())
}
