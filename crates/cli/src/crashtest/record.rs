//! Recording of a program: it runs once on a served drive, and what it writes is logged.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use catalogue::Settings;
use crash::log::Note;
use crash::{Kind, Log};
use live::nbd::{Nbd, unix_uri};
use live::{Clock, EventLoop, Limits, Served, Setup, TokenPipe, TokenWatch};
use model::media::Precondition;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::{Args, bad};
use crate::failure::Failure;
use crate::output::remark;
use crate::stop::Stop;

/// Size of the drive in bytes, unless it is given.
const SIZE: u64 = 64 << 20;

/// Maximum bytes of a log.
const LOG_LIMIT: u64 = 4 << 30;

/// Maximum bytes of a program's output that are printed.
const OUTPUT: u64 = 8 << 10;

/// Pause between two checks for the end of the program.
const PAUSE: Duration = Duration::from_millis(5);

/// Variables of the program for its tokens; each is the name of a pipe in the folder.
const TOKENS: [(&str, &str, Note); 2] = [
    // A token is begun before it is acknowledged, so attempts are read first.
    ("DRIVELAB_TRIES", "tries", Note::Try),
    ("DRIVELAB_ACKS", "acks", Note::Ack),
];

/// The log of a program that has run.
pub(super) struct Recording {
    /// Socket, pipes and output of the program, and the log unless it has a place of its own.
    folder: TempDir,
    log: PathBuf,
    program: String,
}

impl Recording {
    /// Runs the program on a drive, and records it.
    ///
    /// # Errors
    /// The drive cannot be served, or the program fails.
    pub(super) fn make(args: &Args, drive: &str) -> Result<Recording, Failure> {
        let setup = setup(args, drive)?;
        let folder = super::temporary_folder();
        let folder = folder.map_err(|error| Failure::failed("making a temporary folder", error))?;
        let log = match &args.keep_log {
            Some(path) => path.clone(),
            None => folder.path().join("run.dlog"),
        };
        let mut file = None;
        super::new_file(&log, "--keep-log", |new| {
            file = Some(new.try_clone()?);
            Ok(())
        })?;
        let recording = Recording {
            folder,
            log,
            program: text_of(&args.program),
        };
        let ran = file.map_or(Ok(()), |file| recording.run(args, setup, file));
        if ran.is_err() {
            // The log of a failed program is of no use, and would be in the way of the next attempt.
            let _ = fs::remove_file(&recording.log);
        }
        ran.map(|()| recording)
    }

    /// Returns the path of the log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Checks whether the log can be tested.
    ///
    /// # Errors
    /// The program has not written anything.
    pub(super) fn check(&self, log: &Log) -> Result<(), Failure> {
        if log.commands.iter().all(|it| it.kind == Kind::Flush) {
            return Err(bad(
                format!("{}: wrote nothing to the drive", self.program),
                "the program must write to the NBD export at DRIVELAB_URI, as `nbdinfo $DRIVELAB_URI` reads it",
            ));
        }
        if log.acks.is_empty() {
            remark(
                "note",
                "the program has acknowledged nothing, so no loss can be found: after each operation that must survive, \
                 write a token and a newline to the file DRIVELAB_ACKS",
            );
        }
        Ok(())
    }

    /// Keeps the log, and reports its path.
    ///
    /// # Errors
    /// Other files of the folder cannot be removed.
    pub(super) fn keep(self) -> Result<(), Failure> {
        let folder = self.folder.keep();
        let others = || -> io::Result<()> {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path != self.log {
                    fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        others().map_err(|error| Failure::failed(folder.display(), error))?;
        let log = self.log.display();
        remark(
            "note",
            &format!("the recording is kept: {log} (--keep-log FILE names another place)"),
        );
        Ok(())
    }

    /// Serves the drive while the program runs.
    fn run(&self, args: &Args, setup: Setup, log: File) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::failed("serving the drive", error);
        let at = |name: &str| self.folder.path().join(name);
        let stop = Stop::on_signals()?;
        let socket = at("nbd.sock");
        let listener = UnixListener::bind(&socket)
            .map_err(|error| Failure::failed(socket.display(), error))?;
        let name = setup.name.clone();
        let mut drive = setup.open()?;
        drive.prepare();
        drive.record_to(log, LOG_LIMIT).map_err(failed)?;
        let pipes = self.pipes().map_err(failed)?;
        let watch = TokenWatch::new(0, &pipes).map_err(failed)?;
        drive.record_tokens(pipes);
        let mut server = server(drive).map_err(failed)?;
        let uri = unix_uri(&name, &socket);
        let front = Box::new(Nbd::new(vec![name]));
        server.listen(listener, front).map_err(failed)?;
        server.add("tokens".into(), Box::new(watch));
        let output = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(at("output"))
            .map_err(failed)?;
        let child = self.spawn(args, &uri, &output).map_err(failed)?;
        let child = child.map_err(|error| {
            bad(
                format!("{}: cannot be started: {error}", self.program),
                "name a program after `--`, with its arguments; for a line of shell, -- sh -c 'LINE'",
            )
        })?;
        let status = serve(&mut server, child, &stop).map_err(failed)?;
        for drive in server.drives_mut() {
            drive.end_log("the server ended");
        }
        stop.finish()?;
        match status.success() {
            true => Ok(()),
            false => Err(self.failure(status, output)),
        }
    }

    /// Makes the pipes for tokens.
    fn pipes(&self) -> io::Result<Vec<TokenPipe>> {
        let mut pipes = Vec::new();
        for (_, name, note) in TOKENS {
            let path = self.folder.path().join(name);
            rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Open for writing too: the program can open and close it several times.
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let pipe: OwnedFd = rustix::fs::open(&path, flags, Mode::empty())?;
            pipes.push(TokenPipe::new(note, pipe));
        }
        Ok(pipes)
    }

    /// Starts the program; the inner error is its own.
    fn spawn(&self, args: &Args, uri: &str, output: &File) -> io::Result<io::Result<Child>> {
        let Some((program, rest)) = args.program.split_first() else {
            return Err(io::Error::other("no program"));
        };
        let mut command = Command::new(program);
        command
            .args(rest)
            .env("DRIVELAB_URI", uri)
            .env("DRIVELAB_SEED", args.seed.seed.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0);
        for (variable, name, _) in TOKENS {
            command.env(variable, self.folder.path().join(name));
        }
        Ok(command.spawn())
    }

    /// Returns the failure of the program, with the end of its output.
    fn failure(&self, status: ExitStatus, mut output: File) -> Failure {
        let ending = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        let mut bytes = Vec::new();
        // If the output cannot be read, the exit code is reported alone.
        let _ = output.seek(SeekFrom::End(0)).and_then(|length| {
            output.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)))?;
            output.read_to_end(&mut bytes)
        });
        let said = String::from_utf8_lossy(&bytes);
        let said = match said.trim_end() {
            "" => "it printed nothing",
            said => said,
        };
        Failure::Failed(format!("{}: {ending}; its output:\n{said}", self.program))
    }
}

/// Returns the drive to serve.
fn setup(args: &Args, drive: &str) -> Result<Setup, Failure> {
    let sheet = crate::drive::load(drive, &Settings::default())?;
    Ok(Setup {
        size: Some(args.size.unwrap_or(SIZE)),
        // Wear and free blocks change the drive's speed, and not what it keeps.
        precondition: Some(Precondition::Fresh),
        seed: args.seed.seed,
        ..Setup::new(sheet)
    })
}

/// Returns a server of this drive at full speed.
fn server(drive: Served) -> io::Result<EventLoop> {
    EventLoop::new(
        vec![drive],
        Clock::new(0.0),
        Limits::default(),
        Box::new(|line| remark("note", line)),
    )
}

/// Serves until the program ends. If the user asks to stop, the program is killed.
fn serve(server: &mut EventLoop, mut child: Child, stop: &Stop) -> io::Result<ExitStatus> {
    let (stopper, group) = (server.stopper(), Pid::from_child(&child));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let status = loop {
                match child.try_wait() {
                    Ok(None) if stop.go_on() == ControlFlow::Continue(()) => {
                        std::thread::sleep(PAUSE);
                    }
                    Ok(None) => {
                        // It may have ended just now.
                        let _ = kill_process_group(group, Signal::KILL);
                        break child.wait();
                    }
                    Ok(Some(status)) => break Ok(status),
                    Err(error) => break Err(error),
                }
            };
            stopper.stop();
            status
        });
        if let Err(error) = server.run() {
            // Without a drive the program may wait for ever.
            let _ = kill_process_group(group, Signal::KILL);
            return Err(error);
        }
        let status = waiter.join();
        status.unwrap_or_else(|_| Err(io::Error::other("the thread that waits has panicked")))
    })
}

/// Returns a command line for messages.
fn text_of(program: &[OsString]) -> String {
    let words = program.iter().map(|it| it.to_string_lossy());
    let words: Vec<String> = words.map(|it| super::source::quoted(&it)).collect();
    words.join(" ")
}
