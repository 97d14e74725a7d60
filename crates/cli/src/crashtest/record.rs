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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catalogue::{DriveSheet, Settings};
use crash::log::Note;
use crash::{EventKind, Log};
use live::nbd::{Nbd, unix_uri};
use live::vhost_user::VhostUser;
use live::{
    Clock, ConnectionLimits, EventLoop, ServedDevice, Setup, StoreChoice, TokenPipe, TokenWatch,
};
use model::media::Precondition;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::guest::{self, FileSystem, Guest, Job, Kernel, Message, Mount, ProgramEnd, Task};
use super::source::GUEST;
use super::timed::TimedProgram;
use super::{Args, Fs, Writeback, bad};
use crate::failure::Failure;
use crate::output::remark;
use crate::stop::Stop;

/// Maximum bytes of a log.
pub(super) const LOG_LIMIT: u64 = 4 << 30;

/// Maximum bytes of a program's output that are printed.
const OUTPUT: u64 = 8 << 10;

/// Pause between two checks for the end of the program.
const PAUSE: Duration = Duration::from_millis(5);

/// A pipe of the folder to which the program writes tokens.
struct Tokens {
    /// Variable of the program that names the pipe, or in a guest the device.
    variable: &'static str,
    /// Name of the pipe.
    pipe: &'static str,
    /// Device of a guest that writes to the pipe.
    device: &'static str,
    note: Note,
}

/// The pipes. A token is begun before it is acknowledged, so attempts are read first.
const TOKENS: [Tokens; 2] = [
    Tokens {
        variable: "DRIVELAB_TRIES",
        pipe: "tries",
        device: "/dev/tty1",
        note: Note::Try,
    },
    Tokens {
        variable: "DRIVELAB_ACKS",
        pipe: "acks",
        device: "/dev/tty2",
        note: Note::Ack,
    },
];

/// The log of a program that has run.
pub(super) struct ProgramRecording {
    /// Socket, pipes and output of the program, and the log unless it has a place of its own.
    folder: TempDir,
    log: PathBuf,
    program: String,
}

impl ProgramRecording {
    /// Runs the program on a drive, and records it.
    ///
    /// # Errors
    /// The drive cannot be served, or the program fails.
    pub(super) fn make(args: &Args, drive: &str) -> Result<ProgramRecording, Failure> {
        let executor = Executor::new(args)?;
        let sheet = crate::drive::load(drive, &Settings::default())?;
        if sheet.pool.is_some() && matches!(executor, Executor::Guest(..)) {
            return Err(bad(
                format!(
                    "{drive}: a pool, whose file system cannot be recorded: the log begins with data that only its members have"
                ),
                "name a drive, or use the pool without a file system: --fs none; `drivelab prove` tests pools",
            ));
        }
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
        let recording = ProgramRecording {
            folder,
            log,
            program: text_of(&args.program),
        };
        let ran = file.map_or(Ok(()), |file| recording.run(args, &executor, sheet, file));
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
        if log.commands.iter().all(|it| it.kind == EventKind::Flush) {
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
                if path.is_dir() {
                    fs::remove_dir_all(path)?;
                } else if path != self.log {
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
    fn run(
        &self,
        args: &Args,
        executor: &Executor,
        sheet: DriveSheet,
        log: File,
    ) -> Result<(), Failure> {
        let stop = Stop::on_signals()?;
        match executor {
            Executor::Host => self.on_host(args, sheet, log, &stop),
            Executor::Guest(kernel, mount) => {
                let prepared = self.in_guest(args, (kernel, mount), sheet.clone(), None, &stop)?;
                if let Some(ending) = prepared {
                    succeeds("--before", &ending)?;
                }
                let ended = self.in_guest(args, (kernel, mount), sheet, Some(log), &stop)?;
                ended.map_or(Ok(()), |ending| succeeds(&self.program, &ending))
            }
        }
    }

    /// Runs the program on this machine, with the drive over NBD.
    fn on_host(
        &self,
        args: &Args,
        sheet: DriveSheet,
        log: File,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::failed("serving the drive", error);
        let (listener, socket) = self.listener("nbd.sock")?;
        let setup = setup(args, sheet, 64 << 20);
        let name = setup.name.clone();
        let mut drive = setup.open()?;
        drive.prepare();
        let watch = self.record(&mut drive, log).map_err(failed)?;
        let mut server = server(drive).map_err(failed)?;
        let uri = unix_uri(&name, &socket);
        let front = Box::new(Nbd::new(vec![name]));
        server.listen(listener, front).map_err(failed)?;
        server.add("tokens".into(), Box::new(watch));
        let output = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(self.folder.path().join("output"))
            .map_err(failed)?;
        let child = self.spawn(args, &uri, &output).map_err(failed)?;
        let child = child.map_err(|error| self.not_started(args, &error.to_string()))?;
        let timed = TimedProgram::new(args, &self.program, self.log());
        let status = serve(&mut server, stop, |go_on| {
            wait(child, &|| timed.goes_on(go_on))
        });
        stop.finish()?;
        timed.in_time(&end_of(output.try_clone().map_err(failed)?))?;
        let status = status.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(failure(&self.program, status, &end_of(output))),
        }
    }

    /// Runs a guest with the drive: it records the program, or without a log prepares the drive. Returns the end of the
    /// program, or of the command that prepares the drive.
    fn in_guest(
        &self,
        args: &Args,
        (kernel, mount): (&Kernel, &Mount),
        sheet: DriveSheet,
        log: Option<File>,
        stop: &Stop,
    ) -> Result<Option<ProgramEnd>, Failure> {
        let failed = |error: io::Error| Failure::failed("the drive in a guest", error);
        let task = if log.is_some() {
            Task::Record
        } else {
            Task::Prepare
        };
        let (listener, socket) = self.listener("disk.sock")?;
        let setup = Setup {
            store: StoreChoice::File(self.folder.path().join("disk")),
            ..setup(args, sheet, size_for(mount.file_system))
        };
        let mut drive = setup.open()?;
        drive.prepare();
        let mut watch = None;
        if let Some(log) = log {
            watch = Some(self.record(&mut drive, log).map_err(failed)?);
            let mount = serde_json::to_string(mount).map_err(|error| failed(error.into()))?;
            drive
                .note(Note::Mark, &format!("{GUEST}{mount}"))
                .map_err(Failure::Failed)?;
        }
        let mut server = server(drive).map_err(failed)?;
        server
            .listen(listener, Box::new(VhostUser::new(0)))
            .map_err(failed)?;
        let mut consoles = Vec::new();
        if let Some(watch) = watch {
            server.add("tokens".into(), Box::new(watch));
            for tokens in TOKENS {
                consoles
                    .push(guest::console(&self.folder.path().join(tokens.pipe)).map_err(failed)?);
            }
        }
        let job = self.job(args, task, mount).map_err(failed)?;
        let command = match task {
            Task::Prepare => "--before",
            _ => &self.program,
        };
        let timed = TimedProgram::new(args, command, self.log());
        let heard = serve(&mut server, stop, |go_on| {
            let go_on: &dyn Fn() -> ControlFlow<()> = &|| timed.goes_on(go_on);
            let folder = self.folder.path();
            let mut guest = Guest::start(kernel, &job, folder, Some(&socket), &consoles)?;
            guest.ready(go_on)?;
            let first = guest.hear(Duration::MAX, go_on)?;
            match (task, &first) {
                // The drive is unmounted after that.
                (Task::Prepare, Some(Message::Ended(_))) => {
                    match guest.hear(Duration::MAX, go_on)? {
                        Some(Message::Done) => Ok(first),
                        other => Err(guest.unexpected(other)),
                    }
                }
                (_, Some(Message::Ended(_) | Message::NotStarted(_) | Message::Done)) => Ok(first),
                _ => Err(guest.unexpected(first)),
            }
        });
        stop.finish()?;
        timed.in_time("")?;
        match heard.map_err(failed)? {
            Some(Message::Ended(ending)) => Ok(Some(ending)),
            Some(Message::NotStarted(why)) => Err(self.not_started(args, &why)),
            _ => Ok(None),
        }
    }

    /// Returns the failure of a program that cannot be started.
    fn not_started(&self, args: &Args, why: &str) -> Failure {
        let path = args.program.first().map(Path::new);
        let in_guest = args.fs.is_none_or(|it| it != Fs::None);
        if in_guest && path.is_some_and(|it| guest::is_in_memory(it) && it.exists()) {
            return bad(
                format!(
                    "{}: cannot be started in the guest: {why}, though this machine has the file",
                    self.program
                ),
                "start drivelab in a folder above the program, or move the program: /tmp, /run, /var/tmp and /dev/shm \
                 are empty in the guest, except for the current folder",
            );
        }
        bad(
            format!("{}: cannot be started: {why}", self.program),
            "name a program after `--`, with its arguments: an executable file, by its path or in PATH; for a line of \
             shell, -- sh -c 'LINE'",
        )
    }

    /// Returns the job of a guest.
    fn job(&self, args: &Args, task: Task, mount: &Mount) -> io::Result<Job> {
        let mut environment = guest::environment();
        environment.push(("DRIVELAB_SEED".into(), args.seed.seed.to_string()));
        for tokens in TOKENS {
            environment.push((tokens.variable.into(), tokens.device.into()));
        }
        let text = |it: &OsString| it.to_string_lossy().into_owned();
        let program = match (task, &args.before) {
            (Task::Record, _) => args.program.iter().map(text).collect(),
            (_, Some(before)) => vec!["sh".into(), "-c".into(), before.clone()],
            (_, None) => Vec::new(),
        };
        Ok(Job {
            task,
            mount: mount.clone(),
            eager: args.writeback == Writeback::Eager,
            folder: self.folder.path().to_owned(),
            directory: std::env::current_dir()?,
            environment,
            program,
            resident: false,
            fsck: false,
            limit_ms: 0,
        })
    }

    /// Listens on a socket of the folder.
    fn listener(&self, name: &str) -> Result<(UnixListener, PathBuf), Failure> {
        let socket = self.folder.path().join(name);
        // The socket of an earlier guest.
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket);
        let listener = listener.map_err(|error| Failure::failed(socket.display(), error))?;
        Ok((listener, socket))
    }

    /// Begins the log of a drive, with the pipes for tokens.
    fn record(&self, drive: &mut ServedDevice, log: File) -> io::Result<TokenWatch> {
        drive.record_to(log, LOG_LIMIT)?;
        let pipes = self.pipes()?;
        let watch = TokenWatch::new(0, &pipes)?;
        drive.record_tokens(pipes);
        Ok(watch)
    }

    /// Makes the pipes for tokens.
    fn pipes(&self) -> io::Result<Vec<TokenPipe>> {
        let mut pipes = Vec::new();
        for tokens in TOKENS {
            let path = self.folder.path().join(tokens.pipe);
            rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Open for writing too: the program can open and close it several times.
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let pipe: OwnedFd = rustix::fs::open(&path, flags, Mode::empty())?;
            pipes.push(TokenPipe::new(tokens.note, pipe));
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
        for tokens in TOKENS {
            command.env(tokens.variable, self.folder.path().join(tokens.pipe));
        }
        Ok(command.spawn())
    }
}

/// Where the program runs.
enum Executor {
    /// On this machine, with the drive over NBD.
    Host,
    /// In a guest with this kernel, which mounts the drive in this way.
    Guest(Kernel, Mount),
}

impl Executor {
    fn new(args: &Args) -> Result<Executor, Failure> {
        let file_system = match args.fs {
            None | Some(Fs::Ext4) => FileSystem::Ext4,
            Some(Fs::Xfs) => FileSystem::Xfs,
            Some(Fs::None) => {
                let options = [
                    ("--mount", args.mount.is_some()),
                    ("--before", args.before.is_some()),
                    ("--user", args.user.is_some()),
                    ("--second-cuts", args.second_cuts.is_some()),
                    ("--writeback eager", args.writeback == Writeback::Eager),
                ];
                return match options.iter().find(|it| it.1) {
                    Some((option, _)) => Err(bad(
                        format!("{option}: there is no guest with --fs none"),
                        "leave it out, or name a file system",
                    )),
                    None => Ok(Executor::Host),
                };
            }
        };
        let mount = Mount {
            file_system,
            options: args.mount.clone().unwrap_or_default(),
            user: args.user.clone(),
        };
        let least = least_for(file_system);
        if let Some(size) = args.size.filter(|it| *it < least) {
            let size = text::digits::bytes_binary(size as f64);
            let least = text::digits::bytes_binary(least as f64);
            return Err(bad(
                format!("--size: {size} is too small for {}", file_system.name()),
                format!("it needs at least {least}; --fs none needs no file system"),
            ));
        }
        let kernel = Kernel::find(args.guest_kernel.as_deref())?;
        Ok(Executor::Guest(kernel, mount))
    }
}

/// Returns the smallest drive for this file system: ext4 with a journal, and XFS by the limit of its `mkfs`.
fn least_for(file_system: FileSystem) -> u64 {
    match file_system {
        FileSystem::Ext4 => 2 << 20,
        FileSystem::Xfs => 300 << 20,
    }
}

/// Returns the default size of a drive with this file system.
fn size_for(file_system: FileSystem) -> u64 {
    match file_system {
        FileSystem::Ext4 => 256 << 20,
        FileSystem::Xfs => 512 << 20,
    }
}

/// Checks that a program of a guest has ended successfully.
fn succeeds(program: &str, ending: &ProgramEnd) -> Result<(), Failure> {
    let status = ExitStatus::from_raw(ending.status);
    match status.success() {
        true => Ok(()),
        false => Err(failure(program, status, &ending.output)),
    }
}

/// Returns the failure of a program, with the end of its output.
fn failure(program: &str, status: ExitStatus, output: &str) -> Failure {
    let ending = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let said = match output.trim_end() {
        "" => "it printed nothing",
        said => said,
    };
    Failure::Failed(format!("{program}: {ending}; its output:\n{said}"))
}

/// Returns the end of a file with a program's output.
fn end_of(mut output: File) -> String {
    let mut bytes = Vec::new();
    // If the output cannot be read, the exit code is reported alone.
    let _ = output.seek(SeekFrom::End(0)).and_then(|length| {
        output.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)))?;
        output.read_to_end(&mut bytes)
    });
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the drive to serve.
pub(super) fn setup(args: &Args, sheet: DriveSheet, size: u64) -> Setup {
    Setup {
        size: Some(args.size.unwrap_or(size)),
        // Wear and free blocks change the drive's speed, and not what it keeps.
        precondition: Some(Precondition::Fresh),
        seed: args.seed.seed,
        ..Setup::new(sheet)
    }
}

/// Returns a server of this drive at full speed.
pub(super) fn server(drive: ServedDevice) -> io::Result<EventLoop> {
    EventLoop::new(
        vec![drive],
        Clock::new(0.0),
        ConnectionLimits::default(),
        Box::new(|line| remark("note", line)),
    )
}

/// Serves until the work of another thread ends, which must end soon after its argument says so: the user has asked to
/// stop, or there is no drive any more.
pub(super) fn serve<T: Send>(
    server: &mut EventLoop,
    stop: &Stop,
    work: impl FnOnce(&dyn Fn() -> ControlFlow<()>) -> io::Result<T> + Send,
) -> io::Result<T> {
    let (stopper, gone) = (server.stopper(), AtomicBool::new(false));
    let go_on = || match gone.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => stop.check(),
    };
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let done = work(&go_on);
            stopper.stop();
            done
        });
        let served = server.run();
        gone.store(true, Ordering::Relaxed);
        let done = worker.join();
        let done =
            done.unwrap_or_else(|_| Err(io::Error::other("the thread that waits has panicked")));
        served.and(done)
    });
    for drive in server.drives_mut() {
        drive.end_log("the server ended");
    }
    done
}

/// Waits for the end of a program, which is killed if it must end.
fn wait(mut child: Child, go_on: &dyn Fn() -> ControlFlow<()>) -> io::Result<ExitStatus> {
    let group = Pid::from_child(&child);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if go_on().is_break() {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
            return child.wait();
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns a command line for messages.
fn text_of(program: &[OsString]) -> String {
    let words = program.iter().map(|it| it.to_string_lossy());
    let words: Vec<String> = words.map(|it| super::source::quoted(&it)).collect();
    words.join(" ")
}
