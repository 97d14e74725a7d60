//! Checks of all images of a recording, and their verdict.
//!
//! The order of the search does not depend on the number of threads. With [`Checks::second_cuts`], the commands that the
//! check itself sends, such as those of a recovery, are recorded as well, and power is cut a second time during them.
//! Only images that pass are cut again: the first [`ALL_SECOND`], and one in [`SECOND`] of the others.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crash::choice::choices;
use crash::log::Writer;
use crash::name::Name;
use crash::search::{
    Case, Check, Class, Counts, Failure, Judgement, Limits, NoReport, SearchReport, case, grouped,
    judge, search,
};
use crash::{Fork, Log, Walk};
use rayon::prelude::*;

use crate::device::Device;
use crate::recording::{Recording, TestError, Tokens};
use crate::{drives, report};

/// Images if no number is given.
const IMAGES: u64 = 10_000;

/// Number of images that are all cut a second time.
const ALL_SECOND: u64 = 256;

/// Interval between later images that are cut a second time.
const SECOND: u64 = 16;

/// Maximum number of images of each moment of a second cut.
const OF_SECOND_MOMENT: usize = 64;

/// Variable with the name of the only image that [`Checks::assert`] checks.
pub const VARIABLE: &str = "DRIVELAB_CRASH";

/// A rule that an image violates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    class: Class,
    line: String,
}

impl Violation {
    /// An acknowledged operation is lost.
    pub fn lost(token: impl fmt::Display) -> Violation {
        Violation::new(Class::Lost, format!("lost {token}"))
    }

    /// Wrong or mixed data.
    pub fn corrupt(what: impl fmt::Display) -> Violation {
        Violation::new(Class::Corrupt, what.to_string())
    }

    /// The program does not start.
    pub fn unopenable(what: impl fmt::Display) -> Violation {
        Violation::new(Class::Unopenable, what.to_string())
    }

    /// Another rule is violated.
    pub fn rule(what: impl fmt::Display) -> Violation {
        Violation::new(Class::Rule, what.to_string())
    }

    /// Returns the violation of a text whose first word is the class: `lost 57`, `corrupt: page 3`, `unopenable`. Other
    /// texts violate another rule.
    pub fn from_text(text: &str) -> Violation {
        let class = match text.split([' ', ':']).next() {
            Some("lost") => Class::Lost,
            Some("corrupt") => Class::Corrupt,
            Some("unopenable") => Class::Unopenable,
            _ => Class::Rule,
        };
        Violation::new(class, text.to_owned())
    }

    fn new(class: Class, what: String) -> Violation {
        let line = what.lines().next().unwrap_or_default();
        Violation {
            class,
            line: line.chars().take(200).collect(),
        }
    }
}

/// An error of the program on an image counts as unopenable.
impl<E: Error> From<E> for Violation {
    fn from(error: E) -> Violation {
        Violation::unopenable(error)
    }
}

impl Recording {
    /// Returns checks of all images. The check gets a new device with the image, which it may change, and returns the
    /// rule that the image violates. It runs on several threads. An error that it returns by `?` counts as [`Class::Unopenable`], a panic as
    /// [`Class::Crashed`].
    pub fn check<C>(&self, check: C) -> Checks<'_, C>
    where
        C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
    {
        Checks::new(self, check)
    }
}

/// Checks of all images of a recording.
#[must_use = "checks run with `run` or `assert`"]
pub struct Checks<'a, C> {
    recording: &'a Recording,
    check: C,
    limits: Limits,
    budget: Option<Duration>,
    second: bool,
    in_turn: bool,
    stop: Option<Arc<AtomicBool>>,
}

impl<'a, C> Checks<'a, C>
where
    C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
{
    pub(crate) fn new(recording: &'a Recording, check: C) -> Checks<'a, C> {
        Checks {
            recording,
            check,
            limits: Limits {
                images: IMAGES,
                ..Limits::default()
            },
            budget: None,
            second: false,
            in_turn: false,
            stop: None,
        }
    }

    /// Calls the check for one image at a time.
    pub fn one_at_a_time(mut self) -> Checks<'a, C> {
        self.in_turn = true;
        self
    }

    /// Ends the search when this flag is set.
    pub fn stop_by(mut self, stop: Arc<AtomicBool>) -> Checks<'a, C> {
        self.stop = Some(stop);
        self
    }

    /// Sets the maximum number of images [default: 10,000].
    pub fn images(mut self, images: u64) -> Checks<'a, C> {
        self.limits.images = images;
        self
    }

    /// Sets the seed of the random subsets, where a moment has too many to try all [default: 1].
    pub fn seed(mut self, seed: u64) -> Checks<'a, C> {
        self.limits.seed = seed;
        self
    }

    /// Ends the search after this time. The number of images then depends on the machine.
    pub fn budget(mut self, budget: Duration) -> Checks<'a, C> {
        self.budget = Some(budget);
        self
    }

    /// Also cuts power while the check runs, which must then recover again. The check must be deterministic.
    pub fn second_cuts(mut self) -> Checks<'a, C> {
        self.second = true;
        self
    }

    /// Runs the checks.
    ///
    /// # Errors
    /// The check fails on the image with all that the program has written.
    pub fn run(&self) -> Result<Verdict, TestError> {
        let Recording { log, how, .. } = self.recording;
        let mut judging = self.judging();
        let report = search(log, *how, self.limits, &mut judging);
        let report = report.map_err(|why| match why {
            NoReport::CheckFailed(why) => TestError(why),
            NoReport::FailsAtEnd(class, line) => TestError(format!(
                "the check fails on the image with all that was written: {}: correct the check or the program",
                report::words(class, &line)
            )),
        })?;
        Ok(Verdict {
            report,
            recording: self.recording.clone(),
        })
    }

    /// Runs the checks, and panics with the smallest failure if an image fails. If the variable `DRIVELAB_CRASH` names
    /// an image, as the text of the failure does, only this image is checked.
    ///
    /// # Panics
    /// An image fails, the checks cannot run, or the named image does not exist.
    #[track_caller]
    pub fn assert(&self) {
        if let Ok(named) = std::env::var(VARIABLE) {
            match self.replay(&named) {
                Ok(line) => eprintln!("{line}"),
                Err(error) => panic!("{error}"),
            }
            return;
        }
        match self.run() {
            Ok(verdict) if verdict.held() => {}
            Ok(verdict) => panic!("{verdict}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks the image of this name, such as `41-2` or `41-2@1a2b3c4d` with the checksum of the recording. Returns a line
    /// on its result.
    ///
    /// # Errors
    /// The image fails or does not exist, or the program has written something else than in the run that named it.
    pub fn replay(&self, named: &str) -> Result<String, TestError> {
        let (text, sum) = match named.split_once('@') {
            Some((text, sum)) => (text, Some(sum)),
            None => (named, None),
        };
        let own = format!("{:08x}", self.recording.sum);
        if sum.is_some_and(|it| it != own) {
            return Err(TestError(format!(
                "image {named}: this run has recorded other commands ({own}): save the recording with \
                 `Recording::save`, and use `drivelab crashtest --from`"
            )));
        }
        let wrong = |what: String| TestError(format!("image {named}: {what}"));
        let parsed: Name = text.parse().map_err(wrong)?;
        let start = Walk::new(&self.recording.log, self.recording.how);
        let (walk, lost) = parsed.find(&start).map_err(wrong)?;
        let mut judging = self.judging();
        (judging.always_second, judging.names_second) = (self.second, true);
        match judge(&walk, &lost, &mut judging).map_err(wrong)? {
            Judgement::Failed(class, line) => Err(TestError(format!(
                "image {text} fails: {}",
                report::words(class, &line)
            ))),
            _ => Ok(format!("image {text} passes")),
        }
    }

    fn judging(&self) -> Judging<'_, C> {
        Judging {
            recording: self.recording,
            check: &self.check,
            second: self.second,
            always_second: false,
            names_second: false,
            images: 0,
            in_turn: self.in_turn,
            stop: self.stop.as_deref(),
            end: self.budget.map(|it| Instant::now() + it),
        }
    }
}

/// Calls the check for images.
struct Judging<'a, C> {
    recording: &'a Recording,
    check: &'a C,
    second: bool,
    /// Whether a second cut has failed: smaller images are then also cut again.
    always_second: bool,
    /// Whether the text of a failure names the second image.
    names_second: bool,
    /// Number of images before those of the current call.
    images: u64,
    in_turn: bool,
    stop: Option<&'a AtomicBool>,
    end: Option<Instant>,
}

impl<C> Judging<'_, C>
where
    C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
{
    /// Calls the check; also returns the log of its commands.
    fn call(&self, image: &Fork, acks: &Tokens<'_>) -> (Judgement, Vec<u8>) {
        let head = &self.recording.log.head;
        let device = Device::new(image.clone(), head.bytes, Writer::new(head));
        let result = catch_unwind(AssertUnwindSafe(|| (self.check)(&device, acks)));
        let judgement = match result {
            Ok(Ok(())) => Judgement::Sound,
            Ok(Err(violation)) => Judgement::Failed(violation.class, violation.line),
            Err(panic) => Judgement::Failed(Class::Crashed, words_of(&*panic)),
        };
        (judgement, device.end())
    }

    fn judge(&self, number: usize, case: &Case<'_>) -> Judgement {
        let acks = Tokens {
            acks: case.acks,
            tries: case.tries,
            name: &case.name,
        };
        let (judgement, log) = self.call(&case.image, &acks);
        let number = self.images + number as u64;
        // The first image is that of the orderly end. It shows that the check is correct, so it is not cut.
        let in_turn = number > 0 && (number < ALL_SECOND || number % SECOND == 0);
        let chosen = in_turn || self.always_second;
        match judgement {
            Judgement::Sound if self.second && chosen => self.second_cut(&case.image, &acks, log),
            judgement => judgement,
        }
    }

    /// Cuts power during the commands of a check that has passed.
    fn second_cut(&self, image: &Fork, acks: &Tokens<'_>, log: Vec<u8>) -> Judgement {
        let Ok(log) = Log::read(log) else {
            return Judgement::Sound;
        };
        if !log.commands.iter().any(crash::log::Command::writes) {
            return Judgement::Sound;
        }
        let mut walk = Walk::from_image(image.clone(), &log, self.recording.how);
        while walk.advance().is_some() {
            for lost in choices(&walk, OF_SECOND_MOMENT, 1) {
                let case = case(&walk, &lost);
                let (judgement, _) = self.call(&case.image, acks);
                if let Judgement::Failed(class, line) = judgement {
                    // Without the name of the second image, which differs between equal failures.
                    let mut line = report::words(class, &line);
                    if self.names_second {
                        line = format!("{line} (image {} of the check's commands)", case.name);
                    }
                    return Judgement::Failed(Class::SecondCut, line);
                }
            }
        }
        Judgement::Sound
    }
}

impl<C> Check for Judging<'_, C>
where
    C: Fn(&Device, &Tokens<'_>) -> Result<(), Violation> + Sync,
{
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        let judged: Vec<Judgement> = match cases {
            [case] => vec![self.judge(0, case)],
            _ if self.in_turn => {
                let judged = cases.iter().enumerate();
                judged.map(|(at, case)| self.judge(at, case)).collect()
            }
            _ => {
                let judged = cases.par_iter().enumerate();
                judged.map(|(at, case)| self.judge(at, case)).collect()
            }
        };
        self.images += cases.len() as u64;
        let by_second = |it: &Judgement| matches!(it, Judgement::Failed(Class::SecondCut, _));
        self.always_second |= judged.iter().any(by_second);
        Ok(judged)
    }

    fn goes_on(&mut self, _counts: &Counts, _share: f64) -> ControlFlow<()> {
        let stopped = self.stop.is_some_and(|it| it.load(Ordering::Relaxed));
        match self.end {
            _ if stopped => ControlFlow::Break(()),
            Some(end) if Instant::now() > end => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Returns the words of a panic.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    Violation::rule(words.unwrap_or("the check panics")).line
}

/// Result of all checks.
#[derive(Clone, Debug)]
pub struct Verdict {
    report: SearchReport,
    recording: Recording,
}

impl Verdict {
    /// Checks whether no image has failed, not even once: a failure that did not repeat means that the check is not
    /// deterministic.
    pub fn held(&self) -> bool {
        self.report.failures.is_empty() && self.report.counts.flaky == 0
    }

    /// Returns the reduced failures, the one with the fewest needs first.
    pub fn failures(&self) -> &[Failure] {
        &self.report.failures
    }

    /// Returns counts, and failures that did not repeat.
    pub fn report(&self) -> &SearchReport {
        &self.report
    }

    /// Returns the value of `DRIVELAB_CRASH` that repeats a failure.
    pub fn name(&self, failure: &Failure) -> String {
        format!("{}@{:08x}", failure.name, self.recording.sum)
    }
}

/// With `{:#}`, a failure has the variable that repeats it without `cargo test`, for programs that cargo does not run.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counts, log) = (self.report.counts, &self.recording.log);
        writeln!(
            f,
            "crash test on {}: {} images, all there are at {} of {} moments",
            self.recording.drive(),
            counts.tried,
            counts.exhausted,
            counts.moments
        )?;
        let rules = grouped(&self.report.failures, |it| it.rule());
        let ranked = rules.iter().flat_map(|it| (0..).zip(it));
        for (rank, failure) in ranked {
            writeln!(f, "{}{}", report::heading(rank), report::title(failure))?;
            writeln!(f, "  smallest   {}", report::smallest(log, failure))?;
            writeln!(f, "  needs      {}", report::needs(failure))?;
            let possible = drives::possible_text(failure.needs, "");
            writeln!(f, "  possible   {possible}")?;
            // Tests of cargo run in threads with the name of the test.
            let current = thread::current();
            let test = current.name().filter(|it| *it != "main");
            let test = test.unwrap_or_default();
            let again = format!("{VARIABLE}={}", self.name(failure));
            match f.alternate() {
                true => writeln!(f, "  again      {again}")?,
                false => {
                    let command = format!("{again} cargo test {test}");
                    writeln!(f, "  again      {}", command.trim_end())?;
                }
            }
        }
        if counts.flaky > 0 {
            let names = self.report.flaky.join(", ");
            writeln!(
                f,
                "flaky      {} failures did not repeat: {names}",
                counts.flaky
            )?;
        }
        match self.held() {
            true if self.report.stopped => write!(
                f,
                "no failure no image of {} fails; the search was stopped",
                counts.tried
            ),
            true => write!(f, "held       no image of {} fails", counts.tried),
            false => write!(f, "verdict: {}", report::verdict(rules.len(), counts.flaky)),
        }
    }
}
