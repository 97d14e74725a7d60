//! A command that judges images, each as a file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crash::name::END;
use crash::search::{Case, Check, Class, Counts, Judgement, case};
use crash::{Fork, Lost, Walk};
use rayon::prelude::*;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::guest::{FileRange, GuestChecks};
use super::resident::{self, CheckerAnswer, Resident};
use crate::progress::Progress;
use crate::stop::Stop;

/// Maximum bytes of a checker's output that are searched for the last line.
const OUTPUT: u64 = 64 << 10;

/// Images that are judged together, so that all processors have work. The budget is compared after each batch.
const BATCH: usize = 16;

/// Least time limit of the reduction of all failures.
const REDUCING: Duration = Duration::from_secs(60);

/// Maximum pause between two checks for the end of a checker.
const PAUSE: Duration = Duration::from_millis(4);

/// A check command and its environment.
pub(super) struct CheckCommand<'a> {
    pub(super) command: &'a str,
    /// Whether one process checks many images.
    pub(super) resident: bool,
    /// Whether guests check the file system of each image first.
    pub(super) fsck: bool,
    /// Time limit of one check.
    pub(super) limit: Duration,
    /// Bytes of the drive.
    pub(super) bytes: u64,
    pub(super) seed: u64,
}

/// Runs a command for each image.
pub(super) struct Checker<'a> {
    command: CheckCommand<'a>,
    /// Guests that mount the images; they end before their folders.
    guests: Option<GuestChecks>,
    /// Resident checkers without work, each with the file of its standard error.
    idle: Mutex<Vec<(Resident, File)>>,
    folder: TempDir,
    budget: Duration,
    begin: Instant,
    /// Begin of the reduction of failures.
    reducing: Option<Instant>,
    /// Names of images that have passed, in the order of the search.
    passed: Vec<String>,
    stop: Option<&'a Stop>,
    bar: Progress,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        command: CheckCommand<'a>,
        guests: Option<GuestChecks>,
        budget: Duration,
        stop: Option<&'a Stop>,
    ) -> io::Result<Checker<'a>> {
        Ok(Checker {
            command,
            guests,
            idle: Mutex::default(),
            folder: super::temporary_folder()?,
            budget,
            begin: Instant::now(),
            reducing: None,
            passed: Vec::new(),
            stop,
            bar: Progress::new("checking [{wide_bar}] {percent:>3} % {elapsed}, {msg}"),
        })
    }

    /// Judges an image by a resident checker, in the folder of a thread.
    fn by_resident(&self, thread: usize, case: &Case<'_>) -> io::Result<Judgement> {
        let folder = self.folder.path().join(thread.to_string());
        self.command.files(&folder, case)?;
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let (mut resident, errors) = match idle {
            Some(idle) => idle,
            None => {
                let mut command = Command::new("sh");
                let seed = self.command.seed.to_string();
                command
                    .args(["-c", self.command.command])
                    .env("DRIVELAB_SEED", seed);
                // Another thread may use this checker later: its file stays with it, and is no file of the next one.
                let path = folder.join("stderr");
                let _ = fs::remove_file(&path);
                let errors = create(&path)?;
                (
                    Resident::start(command.stderr(errors.try_clone()?))?,
                    errors,
                )
            }
        };
        let [image, acks, tries] =
            ["image", "acks", "tries"].map(|it| folder.join(it).display().to_string());
        let order = resident::order(&image, &acks, &tries, &case.name);
        match resident.ask(&order, self.command.limit)? {
            CheckerAnswer::Line(line) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                idle.push((resident, errors));
                Ok(resident::judgement(&line))
            }
            CheckerAnswer::Late => Ok(hung(self.command.limit)),
            CheckerAnswer::Gone(status) => Ok(resident::gone(status, last_line(errors)?)),
        }
    }

    /// Lists the files of the complete image of a walk's moment; an empty list if no guest can mount it.
    pub(super) fn files(&self, walk: &Walk<'_>) -> Vec<FileRange> {
        let case = case(walk, &Lost::nothing(walk.undecided().len()));
        let listed = (self.guests.as_ref()).map(|it| {
            let files = it.files(&self.command, self.folder.path(), &case);
            files.unwrap_or_default().unwrap_or_default()
        });
        listed.unwrap_or_default()
    }

    /// Returns the seconds since the beginning.
    pub(super) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Returns the names of the images that have passed, without that of the orderly end.
    pub(super) fn passed(&mut self) -> Vec<String> {
        let names = std::mem::take(&mut self.passed).into_iter();
        let mut seen = BTreeSet::new();
        let names = names.filter(|it| it != END && seen.insert(it.clone()));
        names.collect()
    }

    /// Begins another search, with a time limit of its own.
    pub(super) fn begin_again(&mut self, budget: Duration) {
        (self.begin, self.budget, self.reducing) = (Instant::now(), budget, None);
    }

    /// Ends.
    pub(super) fn finish(&self) {
        self.bar.finish();
    }
}

impl Check for Checker<'_> {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        let (folder, command) = (self.folder.path(), &self.command);
        let one = |case: &Case<'_>| {
            let thread = rayon::current_thread_index().unwrap_or_default();
            let judged = match &self.guests {
                Some(guests) => guests.judge(command, folder, case),
                None if command.resident => self.by_resident(thread, case),
                None => command.judge(&folder.join(thread.to_string()), case),
            };
            judged.map_err(|error| format!("checking image {}: {error}", case.name))
        };
        let judged: Vec<Judgement> = match cases {
            // If checks arrive one at a time, no thread is needed.
            [case] => vec![one(case)?],
            _ => {
                // An image is taken in order, and none after the end of the time: under one lock, so no image is left out
                // before one that is judged.
                let begun = cases.iter().enumerate();
                let begun = begun.take_while(|(number, _)| *number == 0 || !self.is_over());
                let judged = begun.par_bridge();
                let judged = judged.map(|(number, case)| Ok((number, one(case)?)));
                let mut judged = judged.collect::<Result<Vec<_>, String>>()?;
                judged.sort_unstable_by_key(|it| it.0);
                judged.into_iter().map(|it| it.1).collect()
            }
        };
        let passed = cases.iter().zip(&judged);
        let passed = passed.filter(|(_, it)| **it == Judgement::Sound);
        self.passed
            .extend(passed.map(|(case, _)| case.name.clone()));
        Ok(judged)
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }

    fn goes_on(&mut self, counts: &Counts, share: f64) -> ControlFlow<()> {
        if self.is_over() {
            return ControlFlow::Break(());
        }
        let by_time = self.begin.elapsed().as_secs_f64() / self.budget.as_secs_f64();
        self.bar
            .name(format!("{} images, {} fail", counts.tried, counts.failed));
        self.bar.share(share.max(by_time).min(1.0));
        self.stop.map_or(ControlFlow::Continue(()), Stop::check)
    }

    fn reduces(&mut self) -> ControlFlow<()> {
        let begin = *self.reducing.get_or_insert_with(Instant::now);
        if begin.elapsed() > self.budget.max(REDUCING) {
            return ControlFlow::Break(());
        }
        self.bar.name("reducing the failures".into());
        self.bar.share(1.0);
        self.stop.map_or(ControlFlow::Continue(()), Stop::check)
    }
}

impl Checker<'_> {
    /// Checks whether the time of the search is over.
    fn is_over(&self) -> bool {
        self.begin.elapsed() > self.budget
    }
}

impl CheckCommand<'_> {
    /// Writes the image and its tokens to a folder.
    fn files(&self, folder: &Path, case: &Case<'_>) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let at = |name: &str| folder.join(name);
        // A separate file for each check: a file that a checker still has open is not changed.
        let _ = fs::remove_file(at("image"));
        write_image(&mut File::create(at("image"))?, &case.image, self.bytes)?;
        fs::write(at("acks"), lines(case.acks))?;
        fs::write(at("tries"), lines(case.tries))
    }

    /// Judges an image in a folder of its own.
    fn judge(&self, folder: &Path, case: &Case<'_>) -> io::Result<Judgement> {
        self.files(folder, case)?;
        let at = |name: &str| folder.join(name);
        let (out, errors) = (create(&at("stdout"))?, create(&at("stderr"))?);
        let child = Command::new("sh")
            .args(["-c", self.command])
            .env("DRIVELAB_DEVICE", at("image"))
            .env("DRIVELAB_ACKS", at("acks"))
            .env("DRIVELAB_TRIES", at("tries"))
            .env("DRIVELAB_IMAGE", &case.name)
            .env("DRIVELAB_SEED", self.seed.to_string())
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(errors.try_clone()?)
            .process_group(0)
            .spawn()?;
        let Some(status) = ended(child, self.limit)? else {
            return Ok(hung(self.limit));
        };
        let (said, complained) = (last_line(out)?, last_line(errors)?);
        Ok(judgement(status, said, complained))
    }
}

/// Returns the judgement of a checker that has not ended within its limit.
pub(super) fn hung(limit: Duration) -> Judgement {
    let words = format!("did not end within {} s", limit.as_secs_f64());
    Judgement::Failed(Class::Hangs, words)
}

/// Returns the content of a file with tokens.
pub(super) fn lines(tokens: &[String]) -> String {
    tokens.iter().map(|token| format!("{token}\n")).collect()
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    options.open(path)
}

/// Writes an image, with holes where it is zeroes.
pub(super) fn write_image(file: &mut File, image: &Fork, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    let mut waiting: (u64, Vec<u8>) = (0, Vec::new());
    for (number, page) in image.pages() {
        let at = number * page.len() as u64;
        if waiting.0 + waiting.1.len() as u64 != at || waiting.1.len() >= 1 << 20 {
            file.write_all_at(&waiting.1, waiting.0)?;
            waiting = (at, Vec::new());
        }
        // The drive may end within a page.
        let length = (bytes - at).min(page.len() as u64) as usize;
        waiting.1.extend_from_slice(&page[..length]);
    }
    file.write_all_at(&waiting.1, waiting.0)
}

/// Waits for the end of a program; at the time limit, kills it and all processes that it has started.
fn ended(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}

/// Returns the last line that is not empty.
pub(super) fn last_line(mut file: File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(resident::printable(line.unwrap_or_default()))
}

/// Returns what a checker has found, from its end and its last lines.
pub(super) fn judgement(status: ExitStatus, said: String, complained: String) -> Judgement {
    let named = match said.split([' ', ':']).next() {
        Some("lost") => Some(Class::Lost),
        Some("corrupt") => Some(Class::Corrupt),
        Some("unopenable") => Some(Class::Unopenable),
        Some("fsck") => Some(Class::Fsck),
        _ => None,
    };
    let class = match (status.code(), named) {
        (Some(77), _) => return Judgement::Skipped,
        (Some(_), Some(class)) => class,
        (Some(0), None) => return Judgement::Sound,
        (Some(10), None) => Class::Lost,
        (Some(11), None) => Class::Corrupt,
        (Some(12), None) => Class::Unopenable,
        (Some(_), None) => Class::Rule,
        (None, _) => Class::Crashed,
    };
    let ending = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let line = [said, complained].into_iter().find(|line| !line.is_empty());
    let line = line.unwrap_or_else(|| ending.clone());
    // A shell that cannot run a command, or does not understand it.
    match (status.code(), class) {
        (Some(126 | 127 | 2), Class::Rule) if line.starts_with("sh: ") => {
            Judgement::Failed(class, format!("{ending}: {line}"))
        }
        _ => Judgement::Failed(class, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_last_lines_are_classes() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let class = |status, said: &str| match judgement(status, said.into(), String::new()) {
            Judgement::Failed(class, _) => Some(class),
            _ => None,
        };
        for (code, expected) in [
            (0, None),
            (77, None),
            (10, Some(Class::Lost)),
            (11, Some(Class::Corrupt)),
            (12, Some(Class::Unopenable)),
            (13, Some(Class::Rule)),
            (1, Some(Class::Rule)),
        ] {
            assert_eq!(class(exit(code), "words"), expected, "{code}");
        }
        assert_eq!(class(exit(1), "lost 57"), Some(Class::Lost));
        assert_eq!(class(exit(0), "lost 57"), Some(Class::Lost));
        assert_eq!(class(exit(1), "corrupt: block 7"), Some(Class::Corrupt));
        assert_eq!(class(ExitStatus::from_raw(11), ""), Some(Class::Crashed));
        let missing = judgement(exit(127), String::new(), "sh: 1: x: not found".into());
        let line = "exit code 127: sh: 1: x: not found";
        assert_eq!(missing, Judgement::Failed(Class::Rule, line.into()));
        assert_eq!(resident::printable("a\tb\u{1b}[1m\u{fffd}"), "a?b?[1m?");
    }
}
