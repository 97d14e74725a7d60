//! Second power cuts: images that pass are mounted and checked once more on a served drive, what that writes is
//! recorded, and power is cut during it.
//!
//! A second recording begins with the image and its tokens, so it is a log like any other: its failures are reduced and
//! repeated as those of the first. The chosen images are spread evenly over the moments. Left out: recoveries without a guest (the crate `crashtest` has them), and third cuts.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use catalogue::{DriveSheet, Settings};
use crash::log::Note;
use crash::name::{END, Name};
use crash::search::{
    Case, Failure as CrashFailure, Judgement, Limits, NoReport, SearchReport, case, search,
};
use crash::{Lost, Needs, Walk};
use crashtest::drives::WORST;
use live::vhost_user::VhostUser;
use live::{ServedDevice, StoreChoice};

use super::cause::FailureCause;
use super::check::{self, Checker, lines};
use super::guest::{Guest, Job, Kernel, Message, Mount, Task, environment};
use super::record::{LOG_LIMIT, serve, server, setup};
use super::source::{GUEST, Source, quoted_path};
use super::{Args, JudgeCommand, Writeback, bad, resident};
use crate::failure::Failure;
use crate::stop::Stop;

/// Maximum number of images of each moment of a recovery.
const OF_MOMENT: usize = 64;

/// Drive that is served if the losses of no drive of the catalogue are assumed; its guarantee is the same.
const STAND_IN: &str = "950pro-256";

/// Time in which a guest must mount, check and unmount, in addition to the limit of a check.
const EXTRA: Duration = Duration::from_secs(60);

/// All second cuts of a test.
pub(super) struct SecondCuts {
    /// Images whose recovery was recorded and cut.
    pub(super) recoveries: Vec<Recovery>,
    /// Images that have passed, and fail while their recovery is recorded.
    pub(super) flaky: Vec<String>,
    /// Seconds of all recordings and checks.
    pub(super) seconds: f64,
}

/// An image whose recovery was recorded and cut.
pub(super) struct Recovery {
    /// Name of the image.
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) report: SearchReport,
    /// Explanation of each failure.
    pub(super) causes: Vec<Option<FailureCause>>,
}

impl SecondCuts {
    /// Returns the total of a count of all recoveries.
    pub(super) fn sum(&self, count: impl Fn(&Recovery) -> u64) -> u64 {
        self.recoveries.iter().map(count).sum()
    }

    /// Returns the number of failures.
    pub(super) fn failures(&self) -> usize {
        self.sum(|it| it.report.failures.len() as u64) as usize
    }
}

/// Returns up to `count` of the names, evenly spread over the moments, with the last one.
fn spread(names: &[String], count: u64) -> Vec<&String> {
    let moment = |name: &&String| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        name[..digits].parse::<u32>().unwrap_or(u32::MAX)
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_by_key(moment);
    let (all, count) = (names.len() as u64, count.min(names.len() as u64));
    let chosen = (1..=count).map(|it| names[(it * all / count) as usize - 1]);
    chosen.collect()
}

/// Checks that second cuts are possible.
///
/// # Errors
/// There is no guest, or no drive on which recoveries can be recorded.
pub(super) fn possible(args: &Args, source: &Source) -> Result<(), Failure> {
    match (args.second_cuts, &source.mount) {
        (Some(_), None) => Err(bad(
            "--second-cuts: no guest mounts the images, so the writes of a checker cannot be recorded",
            "add --fs ext4 or --fs xfs; a program of Rust has `second_cuts()` of the crate drivelab-crashtest",
        )),
        (Some(_), Some(_)) => {
            Kernel::find(args.guest_kernel.as_deref())?;
            sheet(args, source).map(|_| ())
        }
        (None, _) => Ok(()),
    }
}

/// Cuts power during the recovery of some of the images that have passed. Their recordings are in `folder`.
///
/// # Errors
/// A recovery cannot be recorded.
pub(super) fn run(
    args: &Args,
    source: &Source,
    command: JudgeCommand<'_>,
    checker: &mut Checker<'_>,
    folder: &Path,
    stop: &Stop,
) -> Result<Option<SecondCuts>, Failure> {
    let (Some(count), Some(mount)) = (args.second_cuts, &source.mount) else {
        return Ok(None);
    };
    let begin = std::time::Instant::now();
    let cutter = Cutter {
        args,
        source,
        mount,
        command,
        kernel: Kernel::find(args.guest_kernel.as_deref())?,
        sheet: sheet(args, source)?,
        folder,
        stop,
    };
    let passed = checker.passed();
    let chosen = spread(&passed, count);
    let mut cuts = SecondCuts {
        recoveries: Vec::new(),
        flaky: Vec::new(),
        seconds: 0.0,
    };
    let start = Walk::new(&source.log, source.how);
    for (number, name) in (1..).zip(&chosen) {
        let left = args.budget.saturating_sub(begin.elapsed());
        if left.is_zero() || stop.check().is_break() {
            break;
        }
        let parsed: Name = name.parse().map_err(Failure::Failed)?;
        let (walk, lost) = parsed.find(&start).map_err(Failure::Failed)?;
        match cutter.record(number, &case(&walk, &lost))? {
            None => cuts.flaky.push((*name).clone()),
            Some(recorded) => {
                let waiting = chosen.len() - (number - 1);
                checker.begin_again(left / waiting as u32);
                let report = search_images(args, &recorded, checker)?;
                let causes = { report.failures.iter() }
                    .map(|it| {
                        FailureCause::from_failure(&recorded, it, &mut |walk| checker.files(walk))
                    })
                    .collect();
                cuts.recoveries.push(Recovery {
                    name: (*name).clone(),
                    source: recorded,
                    report,
                    causes,
                });
            }
        }
    }
    cuts.seconds = begin.elapsed().as_secs_f64();
    Ok(Some(cuts))
}

/// Tries the images of a recovery. A check that fails on its last image is a failure too: a second check of a
/// recovered image must pass.
fn search_images(
    args: &Args,
    source: &Source,
    checker: &mut Checker<'_>,
) -> Result<SearchReport, Failure> {
    let limits = Limits {
        images: args.images.unwrap_or(u64::MAX),
        sampled: OF_MOMENT,
        seed: args.seed.seed,
    };
    match search(&source.log, source.how, limits, checker) {
        Ok(report) => Ok(report),
        Err(NoReport::CheckFailed(why)) => Err(Failure::Failed(why)),
        Err(NoReport::FailsAtEnd(class, line)) => {
            let walk = Walk::new(&source.log, source.how).go_to_end();
            let nothing = Lost::nothing(walk.undecided().len());
            let mut report = SearchReport::default();
            (report.counts.tried, report.counts.checked) = (1, 1);
            report.counts.failed = 1;
            report.failures.push(CrashFailure {
                class,
                line,
                images: 1,
                name: END.into(),
                moment: walk.moment(),
                lost: Vec::new(),
                needs: Needs::from_loss(&walk, &nothing),
                image_needs: Needs::from_loss(&walk, &nothing),
                reduced: true,
            });
            Ok(report)
        }
    }
}

/// Returns the drive on which recoveries are recorded: the recorded one, or the one whose losses are assumed.
fn sheet(args: &Args, source: &Source) -> Result<DriveSheet, Failure> {
    let named = args.drive.as_deref().unwrap_or(&source.log.head.drive);
    let name = if named == WORST { STAND_IN } else { named };
    let sheet = crate::drive::load(name, &Settings::default())?;
    match sheet.pool {
        Some(_) => Err(bad(
            format!("--second-cuts: recoveries are recorded on a drive, and {name} is a pool"),
            "add --drive with a drive of the same guarantee, or worst-ssd",
        )),
        None => Ok(sheet),
    }
}

/// Records recoveries.
struct Cutter<'a> {
    args: &'a Args,
    source: &'a Source,
    mount: &'a Mount,
    command: JudgeCommand<'a>,
    kernel: Kernel,
    sheet: DriveSheet,
    folder: &'a Path,
    stop: &'a Stop,
}

impl Cutter<'_> {
    /// Records the recovery and the check of an image; `None` if the check fails this time.
    fn record(&self, number: usize, case: &Case<'_>) -> Result<Option<Source>, Failure> {
        let failed = |error: io::Error| {
            let what = format!("recording the recovery of image {}", case.name);
            Failure::failed(what, error)
        };
        let log = self.folder.join(format!("second-{number}.dlog"));
        let folder = super::temporary_folder().map_err(failed)?;
        let mut drive = self.drive(folder.path(), case)?;
        let file = File::create_new(&log).map_err(failed)?;
        drive.record_to(file, LOG_LIMIT).map_err(failed)?;
        let mount = serde_json::to_string(self.mount).map_err(|error| failed(error.into()))?;
        let mark = [(Note::Mark, format!("{GUEST}{mount}"))];
        let tokens = |note, list: &[String]| {
            let list = list.iter().map(move |it| (note, it.clone()));
            list.collect::<Vec<(Note, String)>>()
        };
        let notes = mark.into_iter();
        let notes = notes.chain(tokens(Note::Try, case.tries));
        for (note, text) in notes.chain(tokens(Note::Ack, case.acks)) {
            drive.note(note, &text).map_err(Failure::Failed)?;
        }
        let judged = self.recover(folder.path(), drive, case).map_err(failed)?;
        if judged != Judgement::Sound {
            std::fs::remove_file(&log).map_err(failed)?;
            return Ok(None);
        }
        self.source.of_recovery(&log).map(Some)
    }

    /// Returns a drive with this image.
    fn drive(&self, folder: &Path, case: &Case<'_>) -> Result<ServedDevice, Failure> {
        let bytes = self.source.log.head.bytes;
        // A file, because the contents of a memory are not logged.
        let mut setup = setup(self.args, self.sheet.clone(), bytes);
        setup.size = Some(bytes);
        setup.store = StoreChoice::File(folder.join("disk"));
        let mut drive = setup.open()?;
        drive.prepare();
        for (number, page) in case.image.pages() {
            let at = number * page.len() as u64;
            let length = (bytes - at).min(page.len() as u64) as usize;
            let written = drive.write(at, &page[..length], true);
            written.map_err(|_| Failure::Failed("writing an image to the drive".into()))?;
        }
        Ok(drive)
    }

    /// Mounts the drive in a guest, and runs the checker there.
    fn recover(
        &self,
        folder: &Path,
        drive: ServedDevice,
        case: &Case<'_>,
    ) -> io::Result<Judgement> {
        let socket = folder.join("disk.sock");
        let mut server = server(drive)?;
        server.listen(UnixListener::bind(&socket)?, Box::new(VhostUser::new(0)))?;
        std::fs::write(folder.join("acks"), lines(case.acks))?;
        std::fs::write(folder.join("tries"), lines(case.tries))?;
        let job = self.job(folder, &case.name)?;
        let limit = self.args.limit + EXTRA;
        let heard = serve(&mut server, self.stop, |go_on| {
            let mut guest = Guest::start(&self.kernel, &job, folder, Some(&socket), &[])?;
            guest.ready(go_on)?;
            match guest.hear(limit, go_on)? {
                Some(Message::Ended(ending)) => Ok(Some(ending)),
                None if go_on() == ControlFlow::Continue(()) => Ok(None),
                other => Err(guest.unexpected(other)),
            }
        })?;
        Ok(match heard {
            Some(ending) if self.command.resident => resident::judgement(&ending.said),
            Some(ending) => {
                let status = ExitStatus::from_raw(ending.status);
                check::judgement(status, ending.said, ending.complained)
            }
            None => check::hung(self.args.limit),
        })
    }

    /// Returns the job of a guest that checks its drive once.
    fn job(&self, folder: &Path, name: &str) -> io::Result<Job> {
        let [acks, tries] = ["acks", "tries"].map(Job::shared);
        let mut environment = environment();
        for (variable, value) in [
            ("DRIVELAB_SEED", self.args.seed.seed.to_string()),
            ("DRIVELAB_ACKS", acks.clone()),
            ("DRIVELAB_TRIES", tries.clone()),
            ("DRIVELAB_IMAGE", name.to_owned()),
        ] {
            environment.push((variable.into(), value));
        }
        let command = match self.command.resident {
            // One line, as for the images before.
            true => {
                let line = resident::order("$DRIVELAB_DIR", &acks, &tries, name);
                format!(
                    "printf '%s\\n' \"{line}\" | {{\n{}\n}}",
                    self.command.command
                )
            }
            false => self.command.command.to_owned(),
        };
        Ok(Job {
            task: Task::Record,
            mount: self.mount.clone(),
            eager: self.args.writeback == Writeback::Eager,
            folder: folder.to_owned(),
            directory: std::env::current_dir()?,
            environment,
            program: ["sh".into(), "-c".into(), command].into(),
            resident: false,
            fsck: false,
            limit_ms: 0,
        })
    }
}

impl Source {
    /// Returns the recording of a recovery, with the assumptions of this log.
    fn of_recovery(&self, log: &Path) -> Result<Source, Failure> {
        Ok(Source {
            log: super::source::own(log)?,
            how: self.how,
            drive: self.drive.clone(),
            mount: self.mount.clone(),
            arguments: format!("--from {}{}", quoted_path(log), self.assumed),
            assumed: self.assumed.clone(),
        })
    }
}

/// Keeps the recordings of recoveries that fail, and removes the others.
///
/// # Errors
/// A file cannot be removed.
pub(super) fn keep(folder: tempfile::TempDir, cuts: &SecondCuts) -> io::Result<PathBuf> {
    let folder = folder.keep();
    let failed = cuts.recoveries.iter();
    let failed = failed.filter(|it| !it.report.failures.is_empty());
    let named: Vec<&str> = failed.map(|it| &*it.source.arguments).collect();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let from = format!("--from {}", quoted_path(&path));
        if !named.iter().any(|it| it.starts_with(&from)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn chosen_images_are_spread_over_those_that_passed() {
        let names = ["1", "2", "10", "1-1", "2/1:1", "10-2"].map(String::from);
        assert_eq!(spread(&names, 3), ["1-1", "2/1:1", "10-2"]);
        assert_eq!(spread(&names, 20), ["1", "1-1", "2", "2/1:1", "10", "10-2"]);
        assert_eq!(spread(&names, 1), ["10-2"]);
        assert!(spread(&[], 3).is_empty());
    }
}
