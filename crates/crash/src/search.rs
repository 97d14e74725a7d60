//! Tries images with a check until all are tried or a limit is reached, and reduces failures.
//!
//! The images are distributed over the moments in rounds: round `r` tries up to `2^r` images of each moment, the first
//! round the one that loses nothing. A round visits the moments in [`levels`], each of which halves the distances, so a
//! search that is stopped has covered the log evenly. Equal images with the same acknowledgements and tries are checked
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::check::judge_case;
pub use crate::check::{Case, Check, Class, Counts, Judgement, case, judge};
use crate::choice::{all_of, choices};
use crate::log::Log;
use crate::lost::Lost;
use crate::moments::{Assumptions, Moment, Walk};
use crate::name::{END, name};
use crate::needs::{Loss, Needs};
use crate::reduce::{Trial, ranges};

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
    /// Conditions that the smallest image needs: more than [`Failure::needs`] if an image with more loss needs less.
    pub image_needs: Needs,
    /// Whether the reduction was not stopped: otherwise a smaller image, or one that needs less, may fail too.
    pub reduced: bool,
}

impl Failure {
    /// Returns the rule that the image violates: one for each class. A check with several rules of its own names them by
    /// its line, without words that have digits. Several failures may violate one rule: they need different losses, or have other
    /// words.
    pub fn rule(&self) -> (Class, String) {
        let words = match self.class {
            Class::Rule => without_digits(&self.line),
            _ => String::new(),
        };
        (self.class, words)
    }
}

/// Groups items by a key, such as failures by the rule that they violate, in the order of the first of each group.
pub fn grouped<T, K: PartialEq>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let of_item = key(&item);
        match groups.iter_mut().find(|it| it.0 == of_item) {
            Some((_, group)) => group.push(item),
            None => groups.push((of_item, vec![item])),
        }
    }
    groups.into_iter().map(|it| it.1).collect()
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
    /// Whether the reduction of a failure was stopped, so a smaller one may exist.
    pub reduction_stopped: bool,
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

/// Key of equal failures: kind, loss, and the check's line without words that have digits.
type Alike = (Class, Loss, String);

struct Search<'a, 'c> {
    start: Walk<'a>,
    limits: Limits,
    check: &'c mut dyn Check,
    counts: Counts,
    moments: Vec<OfMoment>,
    seen: BTreeSet<(u128, usize, usize)>,
    /// Moments at which the loss of nothing was checked and left a consistent image. If this image is equal to that of
    /// another moment, it was not checked at this one.
    passed: BTreeSet<u32>,
    found: BTreeMap<Alike, UnreducedFailure>,
    flaky: Vec<String>,
    /// Images that wait for their check.
    waiting: Vec<WaitingImage<'a>>,
    stopped: bool,
    reduction_stopped: bool,
}

/// An image that waits for its check.
struct WaitingImage<'a> {
    walk: Rc<Walk<'a>>,
    lost: Lost,
    case: Case<'a>,
}

/// Returns the numbers of `count` moments in the order of a round. Each level has those with the same number of trailing
/// zero bits: every 2^k-th moment is visited before any between them. So after `n` moments, no two neighbours among
/// those that were visited are more than `4 * count / n` apart. A level is in the order of the log, because a walk only
/// goes forward.
pub fn levels(count: u32) -> impl Iterator<Item = impl Iterator<Item = u32>> {
    let top = u32::BITS - count.leading_zeros();
    let level = move |zeros: u32| {
        let first = 1_u32 << zeros;
        (first..=count).step_by((first as usize) << 1)
    };
    (0..top).rev().map(level)
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
        passed: BTreeSet::new(),
        found: BTreeMap::new(),
        flaky: Vec::new(),
        waiting: Vec::new(),
        stopped: false,
        reduction_stopped: false,
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
        reduction_stopped: search.reduction_stopped,
    })
}

impl<'a> Search<'a, '_> {
    fn check_end(&mut self) -> Result<(), NoReport> {
        let mut end = self.start.clone();
        while let Some(moment) = end.advance() {
            let acks = moment.acks;
            self.moments.push(OfMoment {
                acks,
                ..OfMoment::default()
            });
        }
        self.counts.moments = end.moment().number;
        let nothing = Lost::nothing(end.undecided().len());
        let mut orderly = case(&end, &nothing);
        orderly.name = END.to_owned();
        match judge_case(&orderly, self.check).map_err(NoReport::CheckFailed)? {
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
            let goes_on = self.round(done, upto)?;
            self.judge_waiting()?;
            match goes_on {
                Some(true) if upto < most && !self.stopped => done = upto,
                _ => return Ok(()),
            }
        }
    }

    /// Tries the images `done` to `upto` of each moment. Returns whether more images are left; `None` at a limit.
    fn round(&mut self, done: usize, upto: usize) -> Result<Option<bool>, NoReport> {
        let (mut some_left, mut visited) = (false, 0);
        for level in levels(self.counts.moments) {
            let mut walk = self.start.clone();
            for number in level {
                while walk.moment().number < number && walk.advance().is_some() {}
                let all = all_of(walk.undecided().len());
                let share = self.share(done, upto, visited);
                visited += 1;
                if self.check.goes_on(&self.counts, share).is_break() {
                    self.stopped = true;
                    return Ok(None);
                }
                let limit = all.unwrap_or(self.limits.sampled);
                if limit > done {
                    let lost = choices(&walk, upto.min(limit), self.limits.seed);
                    if !self.turn(&walk, lost.get(done..).unwrap_or_default(), share)? {
                        return Ok(None);
                    }
                }
                let of_moment = &mut self.moments[number as usize - 1];
                of_moment.exhausted = all.is_some_and(|all| all <= upto);
                let newly = all.is_some_and(|all| all > done && all <= upto);
                self.counts.exhausted += u32::from(newly);
                some_left |= limit > upto;
            }
        }
        Ok(Some(some_left))
    }

    /// Returns the share of the planned work that is done after some moments of this round.
    fn share(&self, done: usize, upto: usize, visited: u32) -> f64 {
        let of_round = f64::from(visited) / f64::from(self.counts.moments.max(1));
        let before = done as f64 / (upto + 1) as f64;
        let by_rounds = before + of_round * (1.0 - before) / 2.0;
        let by_images = self.counts.tried as f64 / self.limits.images as f64;
        by_rounds.max(by_images).min(1.0)
    }

    /// Tries these images of a moment. Returns whether more may be tried.
    fn turn(&mut self, walk: &Walk<'a>, lost: &[Lost], share: f64) -> Result<bool, NoReport> {
        let (moment, batch) = (walk.moment(), self.check.batch());
        let mut shared = None;
        let mut more = true;
        for lost in lost {
            if self.counts.tried >= self.limits.images {
                more = false;
                break;
            }
            self.counts.tried += 1;
            self.moments[moment.number as usize - 1].tried += 1;
            let image = walk.image(lost);
            if !self.seen.insert((image.sum(), moment.acks, moment.tries)) {
                self.counts.equal += 1;
                continue;
            }
            let mut case = case(walk, &Lost::nothing(0));
            (case.name, case.image) = (name(walk, lost), image);
            let walk = shared.get_or_insert_with(|| Rc::new(walk.clone()));
            self.waiting.push(WaitingImage {
                walk: Rc::clone(walk),
                lost: lost.clone(),
                case,
            });
            if batch.is_some_and(|batch| self.waiting.len() >= batch) {
                self.judge_waiting()?;
                if self.stopped || self.check.goes_on(&self.counts, share).is_break() {
                    (self.stopped, more) = (true, false);
                    break;
                }
            }
        }
        if batch.is_none() {
            self.judge_waiting()?;
        }
        Ok(more)
    }

    /// Judges the images that wait.
    fn judge_waiting(&mut self) -> Result<(), NoReport> {
        let (mut cases, mut of_cases) = (Vec::new(), Vec::new());
        for WaitingImage { walk, lost, case } in self.waiting.drain(..) {
            cases.push(case);
            of_cases.push((walk, lost));
        }
        if cases.is_empty() {
            return Ok(());
        }
        let judged = self.check.check(&cases).map_err(NoReport::CheckFailed)?;
        for (walk, _) in of_cases.iter().skip(judged.len()) {
            self.not_reached(walk.moment());
        }
        for ((case, (walk, lost)), judged) in cases.iter().zip(of_cases).zip(judged) {
            self.counts.checked += 1;
            match judged {
                Judgement::Sound if lost.count() == 0 => {
                    self.passed.insert(walk.moment().number);
                }
                Judgement::Sound => {}
                Judgement::Skipped => self.counts.skipped += 1,
                Judgement::Failed(class, line) => self.failed(&walk, &lost, case, class, &line)?,
            }
        }
        Ok(())
    }

    /// Takes an image that was not judged out of the counts: the search must stop.
    fn not_reached(&mut self, moment: Moment) {
        let of_moment = &mut self.moments[moment.number as usize - 1];
        of_moment.tried -= 1;
        self.counts.tried -= 1;
        self.counts.exhausted -= u32::from(of_moment.exhausted);
        of_moment.exhausted = false;
        self.stopped = true;
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
        let mut before = self.passed.range(..found.moment).rev();
        let passed = before.find(|it| self.moments[**it as usize - 1].failed == 0);
        let passed = passed.copied().unwrap_or(0);
        let mut trial = Trial::new(&mut *self.check, found.class);
        let lost = trial.fewer(&walk, &found.lost);
        let (walk, lost) = match lost.count() {
            0 => (trial.first(&self.start, walk, passed), lost),
            _ => trial.earlier(&self.start, walk, lost),
        };
        let needs = trial.needs(&walk, &lost);
        let stopped = trial.result().map_err(NoReport::CheckFailed)?;
        self.reduction_stopped |= stopped;
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
            needs,
            image_needs: Needs::from_loss(&walk, &lost),
            reduced: !stopped,
        }))
    }
}

/// Returns the words of a line that have no digits: numbers, checksums and keys differ between failures of one rule.
fn without_digits(line: &str) -> String {
    let words = line.split(|it: char| !it.is_alphanumeric());
    let plain = words.filter(|it| !it.is_empty() && !it.chars().any(|it| it.is_ascii_digit()));
    plain.collect::<Vec<&str>>().join(" ")
}
