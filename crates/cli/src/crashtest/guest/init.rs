//! First process of a guest: it prepares the kernel's folders, mounts the drive, and runs programs.
//!
//! The guest's root is that of the host, read-only. Folders that programs write to are in memory. A part of them is the
//! host's if the caller works there. Left out: networks other than the loopback device.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crash::search::Judgement;

use super::super::check::last_line;
use super::super::resident::{self, CheckerAnswer, Resident};
use super::files;
use super::job::{
    DIRECTORY, FileSystem, Job, MARK, Message, Mount, Order, ProgramEnd, SHARED, Task,
};

/// Folders in memory.
const IN_MEMORY: [&str; 4] = ["/tmp", "/run", "/var/tmp", "/dev/shm"];

/// Checks whether a path of the caller is in a folder that is in memory in the guest.
pub(in crate::crashtest) fn is_in_memory(path: &Path) -> bool {
    IN_MEMORY.iter().any(|it| path.starts_with(it))
}

/// Maximum bytes of output that are reported.
const OUTPUT: u64 = 8 << 10;

/// Time after which a file system that is still in use is given up.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(10);

/// Does the job in this file, and turns the guest off.
pub(super) fn init(job: &Path) {
    if let Err(error) = console(job) {
        say(&Message::Failed(error.to_string()));
    }
    let _ = reboot(RebootCommand::PowerOff);
}

/// Sends a message to the host.
fn say(message: &Message) {
    let text = serde_json::to_string(message).unwrap_or_default();
    let mut out = io::stdout().lock();
    // Without a console nobody can be told.
    let _ = writeln!(out, "{MARK}{text}").and_then(|()| out.flush());
}

/// Adds what was being done to an error.
fn doing<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| io::Error::other(format!("{what}: {error}")))
}

fn console(job: &Path) -> io::Result<()> {
    // What the host sends must not come back.
    let mut raw = tcgetattr(io::stdin())?;
    raw.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
    let text = doing("reading the job", fs::read_to_string(job))?;
    let job: Job = doing("reading the job", serde_json::from_str(&text))?;
    folders(&job)?;
    let _ = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    write_back(&job)?;
    match job.task {
        Task::Prepare => prepare(&job),
        Task::Record => record(&job),
        Task::Check => check(&job),
    }
}

fn mounted(what: &str, at: &str, kind: &str, flags: MountFlags, data: &str) -> io::Result<()> {
    let data = CString::new(data)?;
    let done = mount(what, at, kind, flags, Some(&*data));
    doing(&format!("mounting {kind} at {at}"), done)
}

/// Mounts the kernel's folders, those in memory, and the host's within these.
fn folders(job: &Job) -> io::Result<()> {
    let none = MountFlags::empty();
    mounted("none", "/proc", "proc", none, "")?;
    mounted("none", "/sys", "sysfs", none, "")?;
    mounted("none", "/dev", "devtmpfs", none, "")?;
    fs::create_dir_all("/dev/shm")?;
    for folder in IN_MEMORY.iter().filter(|it| Path::new(it).is_dir()) {
        mounted("none", folder, "tmpfs", none, "mode=1777")?;
    }
    let shared = job.folder.to_string_lossy();
    let flags = match job.task {
        Task::Check => none,
        Task::Prepare | Task::Record => MountFlags::RDONLY,
    };
    fs::create_dir_all(SHARED)?;
    mounted("none", SHARED, "hostfs", flags, &shared)?;
    if is_in_memory(&job.directory) {
        let directory = job.directory.to_string_lossy();
        fs::create_dir_all(&job.directory)?;
        mounted("none", &directory, "hostfs", MountFlags::RDONLY, &directory)?;
    }
    fs::create_dir_all(DIRECTORY)?;
    fs::set_permissions("/run", Permissions::from_mode(0o755))?;
    for (name, target) in [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0")] {
        // The kernel may have made it.
        let _ = std::os::unix::fs::symlink(target, Path::new("/dev").join(name));
    }
    for console in ["/dev/tty1", "/dev/tty2"] {
        // A guest for checks has none.
        let _ = fs::set_permissions(console, Permissions::from_mode(0o666));
    }
    Ok(())
}

/// Sets when data is written that no program has synchronized: after 10 ms, or as late as possible.
fn write_back(job: &Job) -> io::Result<()> {
    let (interval, age, xfs) = match job.eager {
        true => ("1", "1", "100"),
        false => ("0", "360000", "720000"),
    };
    let set = |name: &str, value: &str| fs::write(Path::new("/proc/sys").join(name), value);
    doing(
        "vm.dirty_writeback_centisecs",
        set("vm/dirty_writeback_centisecs", interval),
    )?;
    doing(
        "vm.dirty_expire_centisecs",
        set("vm/dirty_expire_centisecs", age),
    )?;
    // It exists only if the kernel has XFS.
    let _ = set("fs/xfs/xfssyncd_centisecs", xfs);
    Ok(())
}

/// Mounts the drive. Some options are flags of the system call; the file system gets the others.
fn mount_drive(device: &str, how: &Mount, eager: bool) -> io::Result<()> {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in how.options.split(',').filter(|it| !it.is_empty()) {
        match option {
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            other => data.push(other),
        }
    }
    let own = data.iter().any(|it| it.starts_with("commit="));
    if how.file_system == FileSystem::Ext4 && !own {
        data.push(if eager { "commit=1" } else { "commit=900" });
    }
    let data = CString::new(data.join(","))?;
    let done = mount(
        device,
        DIRECTORY,
        how.file_system.name(),
        flags,
        Some(&*data),
    );
    done.map_err(io::Error::from)
}

/// Ends all other processes, and unmounts the drive.
fn unmount_drive() -> io::Result<()> {
    let begin = Instant::now();
    loop {
        end_others();
        match unmount(DIRECTORY, UnmountFlags::empty()) {
            Err(rustix::io::Errno::BUSY) if begin.elapsed() < UNMOUNT_LIMIT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return doing("unmounting the file system", done),
        }
    }
}

/// Kills all processes but this one, and waits for those that have ended.
fn end_others() {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    for number in names.filter(|it| *it != own) {
        if let Some(process) = Pid::from_raw(number as i32) {
            // Threads of the kernel ignore it.
            let _ = kill_process(process, Signal::KILL);
        }
    }
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
}

fn prepare(job: &Job) -> io::Result<()> {
    let kind = job.mount.file_system;
    let mut make = Command::new(format!("mkfs.{}", kind.name()));
    match kind {
        // Nothing is initialized later, in the background.
        FileSystem::Ext4 => make.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
        FileSystem::Xfs => make.args(["-q", "-f"]),
    };
    set_environment(&mut make, job);
    let made = doing(
        &format!("mkfs.{}", kind.name()),
        make.arg("/dev/vda").output(),
    )?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(io::Error::other(format!(
            "mkfs.{}: {}",
            kind.name(),
            said.trim()
        )));
    }
    let done = mount_drive("/dev/vda", &job.mount, job.eager);
    doing(
        &format!("mounting {} with `{}`", kind.name(), job.mount.options),
        done,
    )?;
    give_to_user(job)?;
    say(&Message::Ready(release()));
    if !job.program.is_empty() {
        say(&run(job, "/dev/vda")?);
    }
    unmount_drive()?;
    say(&Message::Done);
    Ok(())
}

fn record(job: &Job) -> io::Result<()> {
    doing(
        "mounting the file system",
        mount_drive("/dev/vda", &job.mount, job.eager),
    )?;
    say(&Message::Ready(release()));
    let ended = run(job, "/dev/vda")?;
    // An orderly end: what nobody has synchronized is written now, and this is recorded too.
    unmount_drive()?;
    say(&ended);
    Ok(())
}

fn check(job: &Job) -> io::Result<()> {
    let device = "/dev/loop0";
    let image = Path::new(SHARED).join("image");
    let mut attach = Command::new("losetup");
    set_environment(&mut attach, job);
    let attached = doing("losetup", attach.arg(device).arg(image).output())?;
    if !attached.status.success() {
        let said = String::from_utf8_lossy(&attached.stderr).trim().to_owned();
        return Err(io::Error::other(format!("losetup: {said}")));
    }
    say(&Message::Ready(release()));
    let mut resident = None;
    for line in io::stdin().lock().lines() {
        let order: Order = doing("reading an order", serde_json::from_str(&line?))?;
        say(&judge(job, device, &order, &mut resident)?);
    }
    Ok(())
}

/// Checks one image.
fn judge(
    job: &Job,
    device: &str,
    order: &Order,
    resident: &mut Option<Resident>,
) -> io::Result<Message> {
    let at = |name: &str| Path::new(SHARED).join(name).display().to_string();
    let unsound = match job.fsck && !order.list {
        true => fsck(job, device)?,
        false => None,
    };
    if let Some(message) = unsound {
        forget_image()?;
        return Ok(message);
    }
    let message = match mount_drive(device, &job.mount, job.eager) {
        Err(error) => Message::Unmountable(error.to_string()),
        Ok(()) if order.list => {
            let files = files::list(&job.environment)?;
            unmount_drive()?;
            Message::Files(files)
        }
        Ok(()) if job.resident => by_resident(job, device, order, resident)?,
        Ok(()) => {
            let mut checked = job.clone();
            checked.environment.extend([
                ("DRIVELAB_ACKS".to_owned(), at(&order.acks)),
                ("DRIVELAB_TRIES".to_owned(), at(&order.tries)),
                ("DRIVELAB_IMAGE".to_owned(), order.name.clone()),
            ]);
            let (child, files) = start(&checked, device)?;
            let mut child = doing("sh", child)?;
            let status = wait(&mut child, Duration::from_millis(job.limit_ms))?;
            let message = match status {
                Some(status) => Message::Ended(ending(status, files)?),
                None => Message::Hung,
            };
            unless_gone(unmount_drive())?;
            message
        }
    };
    forget_image()?;
    Ok(message)
}

/// Checks the file system of an image after a mount, which replays its journal. Returns the message if it has errors.
fn fsck(job: &Job, device: &str) -> io::Result<Option<Message>> {
    if let Err(error) = mount_drive(device, &job.mount, job.eager) {
        return Ok(Some(Message::Unmountable(error.to_string())));
    }
    if !is_unmounted()? {
        return Err(io::Error::other(
            "the file system stays in use without a program",
        ));
    }
    let (name, options): (_, &[&str]) = match job.mount.file_system {
        FileSystem::Ext4 => ("e2fsck", &["-f", "-n"]),
        FileSystem::Xfs => ("xfs_repair", &["-n"]),
    };
    let mut command = Command::new(name);
    set_environment(&mut command, job);
    let output = doing(name, command.args(options).arg(device).output())?;
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    // The lines that name errors precede the summary.
    let is_error = |line: &&str| {
        !line.is_empty()
            && !["e2fsck ", "Pass ", "Phase "]
                .iter()
                .any(|it| line.starts_with(it))
    };
    let line = said
        .iter()
        .flat_map(|it| it.lines())
        .map(str::trim)
        .find(is_error);
    let line = line.map_or_else(|| output.status.to_string(), str::to_owned);
    Ok(Some(Message::Unsound(format!("fsck: {line}"))))
}

/// Checks one image by a resident checker, which keeps running.
fn by_resident(
    job: &Job,
    device: &str,
    order: &Order,
    resident: &mut Option<Resident>,
) -> io::Result<Message> {
    let at = |name: &str| Path::new(SHARED).join(name).display().to_string();
    let mut running = match resident.take() {
        Some(running) => running,
        None => {
            let mut command = command(job, device)?;
            Resident::start(command.stderr(new_output("stderr")?))?
        }
    };
    let line = resident::order(DIRECTORY, &at(&order.acks), &at(&order.tries), &order.name);
    let answer = running.ask(&line, Duration::from_millis(job.limit_ms))?;
    let message = match answer {
        CheckerAnswer::Line(line) => {
            if is_unmounted()? {
                *resident = Some(running);
                return Ok(Message::Answered(line));
            }
            Message::Gone("the resident checker keeps files of an image open".into())
        }
        CheckerAnswer::Late => Message::Hung,
        CheckerAnswer::Gone(status) => {
            let complained = last_line(File::open("/run/stderr")?)?;
            match resident::gone(status, complained) {
                Judgement::Failed(_, why) => Message::Gone(why),
                _ => Message::Hung,
            }
        }
    };
    drop(running);
    unless_gone(unmount_drive())?;
    Ok(message)
}

/// Unmounts the drive without ending any process; returns whether that was possible within a second.
fn is_unmounted() -> io::Result<bool> {
    for _ in 0..100 {
        match unmount(DIRECTORY, UnmountFlags::empty()) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => {
                unless_gone(Err(error.into()))?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Writes back and drops the cached pages of the image: the host writes the next image to the same file. The pages of
/// the device were dropped when it was unmounted. Other files stay cached: programs start faster by seconds.
fn forget_image() -> io::Result<()> {
    let image = File::open(Path::new(SHARED).join("image"))?;
    image.sync_all()?;
    rustix::fs::fadvise(&image, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

/// A checker may have unmounted the drive itself.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    let is_mounted = mounts
        .lines()
        .any(|it| it.split(' ').nth(1) == Some(DIRECTORY));
    if is_mounted { done } else { Ok(()) }
}

fn release() -> String {
    let uname = rustix::system::uname();
    uname.release().to_string_lossy().into_owned()
}

fn set_environment(command: &mut Command, job: &Job) {
    command.env_clear().envs(job.environment.iter().cloned());
}

/// Gives the root folder of the file system to the user.
fn give_to_user(job: &Job) -> io::Result<()> {
    match &job.mount.user {
        Some(name) => {
            let (user, group, _) = account(name)?;
            doing(
                "giving the folder to the user",
                chown(DIRECTORY, Some(user), Some(group)),
            )
        }
        None => Ok(()),
    }
}

/// Returns a user's number, group and home.
fn account(name: &str) -> io::Result<(u32, u32, String)> {
    let text = doing("/etc/passwd", fs::read_to_string("/etc/passwd"))?;
    let found = text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [own, _, user, group, _, home, ..] = fields[..] else {
            return None;
        };
        (own == name).then(|| Some((user.parse().ok()?, group.parse().ok()?, home.to_owned())))?
    });
    found.ok_or_else(|| io::Error::other(format!("--user {name}: not in /etc/passwd")))
}

/// Files with the standard output and the standard error of a program.
type Outputs = [File; 2];

/// Starts the job's program; the inner error is its own.
fn start(job: &Job, device: &str) -> io::Result<(io::Result<Child>, Outputs)> {
    let files = [new_output("stdout")?, new_output("stderr")?];
    let mut command = command(job, device)?;
    command
        .stdout(files[0].try_clone()?)
        .stderr(files[1].try_clone()?);
    Ok((command.spawn(), files))
}

/// Makes a file for the output of a program.
fn new_output(name: &str) -> io::Result<File> {
    let path = PathBuf::from("/run").join(name);
    let _ = fs::remove_file(&path);
    let mut options = File::options();
    options.read(true).append(true).create_new(true).open(path)
}

/// Returns the command of the job's program.
fn command(job: &Job, device: &str) -> io::Result<Command> {
    let (name, rest) = job
        .program
        .split_first()
        .ok_or_else(|| io::Error::other("no program"))?;
    let mut command = Command::new(name);
    set_environment(&mut command, job);
    command
        .args(rest)
        .env("DRIVELAB_DIR", DIRECTORY)
        .env("DRIVELAB_DEVICE", device)
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .process_group(0);
    if let Some(name) = &job.mount.user {
        let (user, group, home) = account(name)?;
        command
            .uid(user)
            .gid(group)
            .env("HOME", home)
            .env("USER", name);
    }
    Ok(command)
}

/// Waits for the end of a program, which is killed at the limit: then `None`. It does not poll: a switch
/// between processes is slow in the guest.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let group = Pid::from_child(child);
    let (ended, watched) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let in_time = watched.recv_timeout(limit).is_ok();
            if !in_time {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            in_time
        });
        let status = child.wait();
        // The thread may have ended at the limit.
        let _ = ended.send(());
        let in_time = watch.join().unwrap_or(true);
        Ok(in_time.then_some(status?))
    })
}

/// Runs the job's program to its end; returns the message on it.
fn run(job: &Job, device: &str) -> io::Result<Message> {
    let (child, files) = start(job, device)?;
    Ok(match child {
        Ok(mut child) => Message::Ended(ending(child.wait()?, files)?),
        Err(error) => Message::NotStarted(error.to_string()),
    })
}

fn ending(status: ExitStatus, [mut out, mut errors]: Outputs) -> io::Result<ProgramEnd> {
    let output = [tail(&mut out)?, tail(&mut errors)?];
    Ok(ProgramEnd {
        status: status.into_raw(),
        output: output
            .each_ref()
            .map(|it| it.trim_end())
            .join("\n")
            .trim()
            .to_owned(),
        said: last_line(out)?,
        complained: last_line(errors)?,
    })
}

/// Returns the end of a file.
fn tail(file: &mut File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
