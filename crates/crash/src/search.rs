//! Tries images with a check until all are tried or a limit is reached, and reduces failures.
//!
//! The budget is distributed over the moments in rounds: round `r` tries up to `2^r` images of each moment, so a
//! truncated search has covered the whole log. Equal images with the same acknowledgements and tries are checked once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::choice::{all_of, choices};
use crate::image::Fork;
use crate::log::Log;
use crate::lost::Lost;
use crate::moments::{Assumptions, Moment, Walk};
use crate::name::name;
use crate::needs::{Loss, Needs};
use crate::shrink::smallest;

/// Maximum number of checks for reducing one failure.
const REDUCING: usize = 200;

/// Maximum number of earlier moments that are tried for a reduced failure.
const EARLIER: u32 = 32;

/// Kind of failure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// An acknowledged operation is lost.
    Lost,
    /// Wrong or mixed data.
    Corrupt,
    /// The program does not start.
    Unopenable,
    /// Another rule is violated.
    Rule,
    /// The check itself crashed.
    Crashed,
    /// The check does not end.
    Hangs,
    /// The file system has errors after a mount.
    Fsck,
    /// The image passes, but not after a second power cut during the recovery of the check.
    SecondCut,
}

impl Class {
    /// Returns the word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Class::Lost => "lost",
            Class::Corrupt => "corrupt",
            Class::Unopenable => "unopenable",
            Class::Rule => "rule",
            Class::Crashed => "crashed",
            Class::Hangs => "hangs",
            Class::Fsck => "fsck",
            Class::SecondCut => "second cut",
        }
    }
}

/// Result of checking an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// The image is consistent.
    Sound,
    /// The check does not apply to this image.
    Skipped,
    /// The image is inconsistent, with one line on the reason.
    Failed(Class, String),
}

/// An image that must be checked.
#[derive(Debug)]
pub struct Case<'a> {
    /// Name of the image.
    pub name: String,
    /// Contents of the image.
    pub image: Fork,
    /// Tokens that were acknowledged before the cut.
    pub acks: &'a [String],
    /// Tokens that were begun before the cut.
    pub tries: &'a [String],
}

/// Judges images.
pub trait Check {
    /// Judges these images, in order.
    ///
    /// # Errors
    /// The reason why they cannot be judged.
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String>;

    /// Called between checks: returns whether to continue. `share` of the planned work is done.
    fn goes_on(&mut self, _counts: &Counts, _share: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Checks one image at a time.
impl<F: FnMut(&Case<'_>) -> Judgement> Check for F {
    fn check(&mut self, cases: &[Case<'_>]) -> Result<Vec<Judgement>, String> {
        Ok(cases.iter().map(self).collect())
    }
}

/// Limits of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of images.
    pub images: u64,
    /// Maximum number of images of a moment that has too many subsets to try all.
    pub sampled: usize,
    /// Seed of the random subsets.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            images: u64::MAX,
            sampled: 4096,
            seed: 1,
        }
    }
}

/// Counts of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of moments.
    pub moments: u32,
    /// Number of moments at which all images were tried.
    pub exhausted: u32,
    /// Number of images that were made.
    pub tried: u64,
    /// Number of images equal to another with the same acknowledgements.
    pub equal: u64,
    /// Number of images that were checked.
    pub checked: u64,
    /// Number of images that the check did not judge.
    pub skipped: u64,
    /// Number of images that failed.
    pub failed: u64,
    /// Number of failures that did not repeat.
    pub flaky: u64,
}

/// Counts of a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OfMoment {
    /// Number of images that were tried.
    pub tried: u64,
    /// Number of images that failed.
    pub failed: u64,
    /// Number of acknowledgements before it.
    pub acks: usize,
    /// Whether all images were tried.
    pub exhausted: bool,
}

/// A reduced failure that represents all equal failures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Kind of the failure.
    pub class: Class,
    /// The check's line on the smallest image.
    pub line: String,
    /// Number of images that failed in the same way.
    pub images: u64,
    /// Name of the smallest image.
    pub name: String,
    /// Moment of the smallest image.
    pub moment: Moment,
    /// Lost data of the smallest image: number of the command, ranges.
    pub lost: Vec<(u32, Vec<(u64, u64)>)>,
    /// Conditions that the failure needs.
    pub needs: Needs,
}

/// Result of a search.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchReport {
    /// Counts of the search.
    pub counts: Counts,
    /// Counts of each moment, in order.
    pub moments: Vec<OfMoment>,
    /// Failures, the one with the fewest conditions first.
    pub failures: Vec<Failure>,
    /// Names of failures that did not repeat, the first of each kind.
    pub flaky: Vec<String>,
    /// Whether the search was stopped before its limits.
    pub stopped: bool,
}

/// Reason why there is no report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoReport {
    /// The check fails on the image after an orderly end, with this line.
    FailsAtEnd(Class, String),
    /// The check could not be run.
    CheckFailed(String),
}

/// A failure before reduction.
#[derive(Clone, Debug)]
struct UnreducedFailure {
    class: Class,
    moment: u32,
    lost: Lost,
    images: u64,
}

/// Key of equal failures: kind, loss, and the check's line without its digits.
type Alike = (Class, Loss, String);

struct Search<'a, 'c> {
    start: Walk<'a>,
    limits: Limits,
    check: &'c mut dyn Check,
    counts: Counts,
    moments: Vec<OfMoment>,
    seen: BTreeSet<(u128, usize, usize)>,
    found: BTreeMap<Alike, UnreducedFailure>,
    flaky: Vec<String>,
    stopped: bool,
}

/// Tries the images of a log.
///
/// # Errors
/// The check fails on the image after an orderly end, or cannot be run.
pub fn search(
    log: &Log,
    how: Assumptions,
    limits: Limits,
    check: &mut dyn Check,
) -> Result<SearchReport, NoReport> {
    let mut search = Search {
        start: Walk::new(log, how),
        limits,
        check,
        counts: Counts::default(),
        moments: Vec::new(),
        seen: BTreeSet::new(),
        found: BTreeMap::new(),
        flaky: Vec::new(),
        stopped: false,
    };
    search.check_end()?;
    search.rounds()?;
    let failures = search.reduced()?;
    Ok(SearchReport {
        counts: search.counts,
        moments: search.moments,
        failures,
        flaky: search.flaky,
        stopped: search.stopped,
    })
}

/// Judges one image.
///
/// # Errors
/// The reason why it cannot be judged.
pub fn judge(walk: &Walk<'_>, lost: &Lost, check: &mut dyn Check) -> Result<Judgement, String> {
    let judged = check.check(&[case(walk, lost)])?;
    let one = judged.into_iter().next();
    one.ok_or_else(|| String::from("the check judged nothing"))
}

/// Returns the image of a loss, to be checked.
pub fn case<'a>(walk: &Walk<'a>, lost: &Lost) -> Case<'a> {
    let (log, moment) = (walk.log(), walk.moment());
    Case {
        name: name(walk, lost),
        image: walk.image(lost),
        acks: &log.acks[..moment.acks],
        tries: &log.tries[..moment.tries],
    }
}

impl<'a> Search<'a, '_> {
    fn check_end(&mut self) -> Result<(), NoReport> {
        let end = self.start.clone().go_to_end();
        self.counts.moments = end.moment().number;
        self.moments = vec![OfMoment::default(); self.counts.moments as usize];
        let nothing = Lost::nothing(end.undecided().len());
        match self.judge(&end, &nothing)? {
            Judgement::Failed(class, line) => Err(NoReport::FailsAtEnd(class, line)),
            _ => Ok(()),
        }
    }

    fn judge(&mut self, walk: &Walk<'_>, lost: &Lost) -> Result<Judgement, NoReport> {
        judge(walk, lost, self.check).map_err(NoReport::CheckFailed)
    }

    fn rounds(&mut self) -> Result<(), NoReport> {
        let most = self.limits.sampled.max(1 << crate::choice::EXHAUSTIVE);
        let mut done = 0;
        loop {
            let upto = 2 * done + 1;
            let mut some_left = false;
            let mut walk = self.start.clone();
            while walk.advance().is_some() {
                let all = all_of(walk.undecided().len());
                let share = self.share(done, upto, walk.moment());
                if self.check.goes_on(&self.counts, share).is_break() {
                    self.stopped = true;
                    return Ok(());
                }
                let limit = all.unwrap_or(self.limits.sampled);
                if limit > done {
                    let lost = choices(&walk, upto.min(limit), self.limits.seed);
                    if !self.turn(&walk, lost.get(done..).unwrap_or_default())? {
                        return Ok(());
                    }
                }
                let of_moment = &mut self.moments[walk.moment().number as usize - 1];
                of_moment.acks = walk.moment().acks;
                of_moment.exhausted = all.is_some_and(|all| all <= upto);
                let newly = all.is_some_and(|all| all > done && all <= upto);
                self.counts.exhausted += u32::from(newly);
                some_left |= limit > upto;
            }
            if !some_left || upto >= most {
                return Ok(());
            }
            done = upto;
        }
    }

    /// Returns the share of this round that is done.
    fn share(&self, done: usize, upto: usize, moment: Moment) -> f64 {
        let of_round = f64::from(moment.number) / f64::from(self.counts.moments.max(1));
        let before = done as f64 / (upto + 1) as f64;
        let by_rounds = before + of_round * (1.0 - before) / 2.0;
        let by_images = self.counts.tried as f64 / self.limits.images as f64;
        by_rounds.max(by_images).min(1.0)
    }

    /// Tries these images of a moment. Returns whether more may be tried.
    fn turn(&mut self, walk: &Walk<'a>, lost: &[Lost]) -> Result<bool, NoReport> {
        let moment = walk.moment();
        let (mut cases, mut of_cases) = (Vec::new(), Vec::new());
        let mut more = true;
        for lost in lost {
            if self.counts.tried >= self.limits.images {
                more = false;
                break;
            }
            self.counts.tried += 1;
            self.moments[moment.number as usize - 1].tried += 1;
            let image = walk.image(lost);
            if self.seen.insert((image.sum(), moment.acks, moment.tries)) {
                let mut case = case(walk, &Lost::nothing(0));
                (case.name, case.image) = (name(walk, lost), image);
                cases.push(case);
                of_cases.push(lost);
            } else {
                self.counts.equal += 1;
            }
        }
        if cases.is_empty() {
            return Ok(more);
        }
        let judged = self.check.check(&cases).map_err(NoReport::CheckFailed)?;
        for ((case, lost), judged) in cases.iter().zip(of_cases).zip(judged) {
            self.counts.checked += 1;
            match judged {
                Judgement::Sound => {}
                Judgement::Skipped => self.counts.skipped += 1,
                Judgement::Failed(class, line) => self.failed(walk, lost, case, class, &line)?,
            }
        }
        Ok(more)
    }

    fn failed(
        &mut self,
        walk: &Walk<'a>,
        lost: &Lost,
        case: &Case<'_>,
        class: Class,
        line: &str,
    ) -> Result<(), NoReport> {
        let loss = Needs::from_loss(walk, lost).loss;
        let alike = (class, loss, without_digits(line));
        let found = UnreducedFailure {
            class,
            moment: walk.moment().number,
            lost: lost.clone(),
            images: 1,
        };
        if let Some(known) = self.found.get_mut(&alike) {
            known.images += 1;
            let size = |it: &UnreducedFailure| (it.lost.count(), it.moment);
            if size(&found) < size(known) {
                let images = known.images;
                *known = UnreducedFailure { images, ..found };
            }
            self.count_failed(walk.moment());
            return Ok(());
        }
        // The first failure of its kind is checked once more, on a new copy.
        let again = self.judge(walk, lost)?;
        if matches!(again, Judgement::Failed(again, _) if again == class) {
            self.count_failed(walk.moment());
            self.found.insert(alike, found);
        } else {
            self.not_again(case.name.clone());
        }
        Ok(())
    }

    fn count_failed(&mut self, moment: Moment) {
        self.counts.failed += 1;
        self.moments[moment.number as usize - 1].failed += 1;
    }

    fn not_again(&mut self, name: String) {
        self.counts.flaky += 1;
        if self.flaky.len() < 8 {
            self.flaky.push(name);
        }
    }

    /// Reduces the failures and merges those that are then equal.
    fn reduced(&mut self) -> Result<Vec<Failure>, NoReport> {
        let mut failures: BTreeMap<(Loss, Class, String), Failure> = BTreeMap::new();
        for found in std::mem::take(&mut self.found).into_values() {
            let Some(failure) = self.reduce(&found)? else {
                let Some(walk) = self.start.clone().go_to(found.moment) else {
                    continue;
                };
                self.not_again(name(&walk, &found.lost));
                continue;
            };
            let alike = (
                failure.needs.loss,
                failure.class,
                without_digits(&failure.line),
            );
            match failures.get_mut(&alike) {
                Some(known) => known.images += failure.images,
                None => {
                    failures.insert(alike, failure);
                }
            }
        }
        Ok(failures.into_values().collect())
    }

    /// Returns the smallest failure of the same kind; `None` if it does not fail again.
    fn reduce(&mut self, found: &UnreducedFailure) -> Result<Option<Failure>, NoReport> {
        let Some(walk) = self.start.clone().go_to(found.moment) else {
            return Ok(None);
        };
        let mut trial = Trial {
            check: &mut *self.check,
            class: found.class,
            left: REDUCING,
            error: None,
        };
        let lost = trial.fewer(&walk, &found.lost);
        let (walk, lost) = trial.earlier(&self.start, walk, lost);
        let error = trial.error.take();
        if let Some(why) = error {
            return Err(NoReport::CheckFailed(why));
        }
        let Judgement::Failed(class, line) = self.judge(&walk, &lost)? else {
            return Ok(None);
        };
        Ok((class == found.class).then(|| Failure {
            class,
            line,
            images: found.images,
            name: name(&walk, &lost),
            moment: walk.moment(),
            lost: ranges(&walk, &lost),
            needs: Needs::from_loss(&walk, &lost),
        }))
    }
}

/// Checks whether smaller images fail in the same way.
struct Trial<'c> {
    check: &'c mut dyn Check,
    class: Class,
    left: usize,
    error: Option<String>,
}

impl Trial<'_> {
    fn fails(&mut self, walk: &Walk<'_>, lost: &Lost) -> bool {
        if self.left == 0 || self.error.is_some() {
            return false;
        }
        self.left -= 1;
        match judge(walk, lost, self.check) {
            Ok(Judgement::Failed(class, _)) => class == self.class,
            Ok(_) => false,
            Err(why) => {
                self.error = Some(why);
                false
            }
        }
    }

    /// Reduces the loss: fewer lost writes; then, if possible, no torn writes; then fewer pieces of the torn ones.
    fn fewer(&mut self, walk: &Walk<'_>, lost: &Lost) -> Lost {
        let pieces = walk.undecided();
        let all: Vec<usize> = (0..pieces.len()).filter(|it| lost.contains(*it)).collect();
        let mut commands: Vec<u32> = all.iter().map(|it| pieces[*it].command).collect();
        commands.dedup();
        let of = |commands: &[u32], whole: bool| {
            Lost::from_fn(pieces.len(), |it| {
                commands.contains(&pieces[it].command) && (whole || lost.contains(it))
            })
        };
        let commands = smallest(&commands, |some| self.fails(walk, &of(some, false)));
        let best = of(&commands, false);
        let whole = of(&commands, true);
        if best == whole || self.fails(walk, &whole) {
            return whole;
        }
        let all: Vec<usize> = all.into_iter().filter(|it| best.contains(*it)).collect();
        let these = |some: &[usize]| Lost::from_fn(pieces.len(), |it| some.contains(&it));
        let few = smallest(&all, |some| self.fails(walk, &these(some)));
        these(&few)
    }

    /// Returns the first moment at which the same loss fails.
    fn earlier<'a>(&mut self, start: &Walk<'a>, last: Walk<'a>, lost: Lost) -> (Walk<'a>, Lost) {
        let id = |walk: &Walk<'_>, index: usize| {
            let piece = &walk.undecided()[index];
            (piece.command, piece.part)
        };
        let indices = 0..last.undecided().len();
        let wanted: BTreeSet<(u32, u32)> = { indices.filter(|it| lost.contains(*it)) }
            .map(|it| id(&last, it))
            .collect();
        let (mut walk, mut tried) = (start.clone(), 0);
        // If nothing is lost, the first moment in order is the first that was found.
        while !wanted.is_empty() && tried < EARLIER && walk.advance().is_some() {
            if walk.moment().number >= last.moment().number {
                break;
            }
            let same = Lost::from_fn(walk.undecided().len(), |it| wanted.contains(&id(&walk, it)));
            if same.count() < wanted.len() {
                continue;
            }
            tried += 1;
            if self.fails(&walk, &same) {
                return (walk, same);
            }
        }
        (last, lost)
    }
}

/// Returns the lost ranges by command.
fn ranges(walk: &Walk<'_>, lost: &Lost) -> Vec<(u32, Vec<(u64, u64)>)> {
    let mut list: Vec<(u32, Vec<(u64, u64)>)> = Vec::new();
    for (index, piece) in walk.undecided().iter().enumerate() {
        if !lost.contains(index) {
            continue;
        }
        if list
            .last()
            .is_none_or(|(command, _)| *command != piece.command)
        {
            list.push((piece.command, Vec::new()));
        }
        let Some((_, ranges)) = list.last_mut() else {
            continue;
        };
        for &(start, end) in &piece.extents {
            match ranges.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => ranges.push((start, end)),
            }
        }
    }
    list
}

fn without_digits(line: &str) -> String {
    line.chars().filter(|it| !it.is_ascii_digit()).collect()
}
