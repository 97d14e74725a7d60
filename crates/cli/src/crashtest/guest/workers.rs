//! Checks of images in guests: each worker has a guest, which mounts one image after the other.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crash::search::{Case, Class, Judgement};

use super::job::Order;
use super::{FileRange, Guest, Job, Kernel, Message, Mount, Task, environment};
use crate::crashtest::check::{self, CheckCommand};
use crate::crashtest::resident;

/// Time for mounting, unmounting and messages of one check, in addition to its limit.
const EXTRA: Duration = Duration::from_secs(60);

/// Guests in which a command checks images.
pub(in crate::crashtest) struct GuestChecks {
    kernel: Kernel,
    mount: Mount,
    directory: PathBuf,
    /// Guests without work.
    idle: Mutex<Vec<Worker>>,
    /// Number of the next check.
    next: AtomicU64,
}

/// A guest and its folder.
struct Worker {
    guest: Guest,
    folder: PathBuf,
}

impl GuestChecks {
    pub(in crate::crashtest) fn new(kernel: Kernel, mount: Mount) -> io::Result<GuestChecks> {
        Ok(GuestChecks {
            kernel,
            mount,
            directory: std::env::current_dir()?,
            idle: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    /// Checks an image in a guest, with files in a folder of the checks.
    pub(in crate::crashtest) fn judge(
        &self,
        command: &CheckCommand<'_>,
        folder: &Path,
        case: &Case<'_>,
    ) -> io::Result<Judgement> {
        let (worker, heard) = self.ask(command, folder, case, false)?;
        let judgement = match heard {
            Some(Message::Ended(ending)) => {
                let status = ExitStatus::from_raw(ending.status);
                check::judgement(status, ending.said, ending.complained)
            }
            Some(Message::Unmountable(why)) => {
                let kind = self.mount.file_system.name();
                let line = format!("unopenable: {kind} does not mount: {why}");
                Judgement::Failed(Class::Unopenable, line)
            }
            Some(Message::Unsound(line)) => Judgement::Failed(Class::Fsck, line),
            Some(Message::Answered(line)) => resident::judgement(&line),
            Some(Message::Gone(why)) => Judgement::Failed(Class::Crashed, why),
            Some(Message::Hung) => check::hung(command.limit),
            // The kernel itself hangs: this guest is given up.
            None => return Ok(check::hung(command.limit + EXTRA)),
            other => return Err(worker.guest.unexpected(other)),
        };
        self.put_back(worker);
        Ok(judgement)
    }

    /// Lists the files of an image; `None` if it does not mount.
    pub(in crate::crashtest) fn files(
        &self,
        command: &CheckCommand<'_>,
        folder: &Path,
        case: &Case<'_>,
    ) -> io::Result<Option<Vec<FileRange>>> {
        let (worker, heard) = self.ask(command, folder, case, true)?;
        let files = match heard {
            Some(Message::Files(files)) => Some(files),
            Some(Message::Unmountable(_)) => None,
            other => return Err(worker.guest.unexpected(other)),
        };
        self.put_back(worker);
        Ok(files)
    }

    fn put_back(&self, worker: Worker) {
        let idle = self.idle.lock();
        idle.unwrap_or_else(PoisonError::into_inner).push(worker);
    }

    /// Sends an image to a guest, and waits for the answer.
    fn ask(
        &self,
        command: &CheckCommand<'_>,
        folder: &Path,
        case: &Case<'_>,
        list: bool,
    ) -> io::Result<(Worker, Option<Message>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.worker(command, &folder.join(format!("guest-{number}")))?,
        };
        // New names: the guest remembers files that it has read.
        let order = Order {
            name: case.name.clone(),
            acks: format!("{number}.acks"),
            tries: format!("{number}.tries"),
            list,
        };
        let at = |name: &str| worker.folder.join(name);
        check::write_image(&mut File::create(at("image"))?, &case.image, command.bytes)?;
        fs::write(at(&order.acks), check::lines(case.acks))?;
        fs::write(at(&order.tries), check::lines(case.tries))?;
        worker.guest.order(&order)?;
        let heard = worker
            .guest
            .hear(command.limit + EXTRA, &|| ControlFlow::Continue(()))?;
        for name in [&order.acks, &order.tries] {
            fs::remove_file(worker.folder.join(name))?;
        }
        Ok((worker, heard))
    }

    /// Starts a guest.
    fn worker(&self, command: &CheckCommand<'_>, folder: &Path) -> io::Result<Worker> {
        fs::create_dir_all(folder)?;
        File::create(folder.join("image"))?.set_len(command.bytes)?;
        let mut environment = environment();
        environment.push(("DRIVELAB_SEED".into(), command.seed.to_string()));
        let job = Job {
            task: Task::Check,
            mount: self.mount.clone(),
            eager: false,
            folder: folder.to_owned(),
            directory: self.directory.clone(),
            environment,
            program: ["sh", "-c", command.command].map(str::to_owned).into(),
            resident: command.resident,
            fsck: command.fsck,
            limit_ms: u64::try_from(command.limit.as_millis()).unwrap_or(u64::MAX),
        };
        let mut guest = Guest::start(&self.kernel, &job, folder, None, &[])?;
        guest.ready(&|| ControlFlow::Continue(()))?;
        Ok(Worker {
            guest,
            folder: folder.to_owned(),
        })
    }
}
